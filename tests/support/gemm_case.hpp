// A small GEMM to be judged on a FakeDevice: the definition, a workload, a candidate whose kernel is a C++
// function, and honest ways of summing.
#pragma once

#include "support/fake_device.hpp"
#include "verify/judge/values.h"

#include <ptxbench/verify.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace ptxbench::testing {

inline DefinitionPtr gemm_definition(std::int64_t n, std::int64_t k, DType in = DType::bfloat16,
                                     DType out = DType::bfloat16, std::string op_type = "gemm") {
  Definition d;
  d.name = "small_gemm";
  d.op_type = std::move(op_type);
  d.axes = {{"M", false, 0, {}}, {"N", true, n, {}}, {"K", true, k, {}}};
  d.inputs = {{"X", std::vector<std::string>{"M", "K"}, in, {}},
              {"W", std::vector<std::string>{"N", "K"}, in, {}}};
  d.outputs = {{"Y", std::vector<std::string>{"M", "N"}, out, {}}};
  return make_definition(std::move(d)).value();
}

inline Workload gemm_workload(DefinitionPtr definition, std::int64_t m, std::string uuid = "w") {
  Workload w;
  w.definition = std::move(definition);
  w.axes = {{"M", m}};
  w.uuid = std::move(uuid);
  return make_workload(std::move(w)).value();
}

inline constexpr const char* kGemmPlan = R"json({
  "version": 1,
  "steps": [{"kernel": "gemm", "grid": ["ceil_div(M, 16)"], "block": [128],
             "args": [{"tensor": "X"}, {"tensor": "W"}, {"tensor": "Y"}, {"i32": "M"}, {"i32": "N"}, {"i32": "K"}]}]
})json";

inline Candidate candidate_of(const std::string& name, const std::string& plan, const std::string& definition,
                              const std::string& source = "gemm.cu") {
  Candidate c;
  c.solution.name = name;
  c.solution.definition = definition;
  c.solution.author = "test";
  c.solution.spec.language = "cuda";
  c.solution.spec.target_hardware = {"H200"};
  c.solution.spec.entry_point = "launch.json::run";
  c.solution.sources = {{"launch.json", plan}, {source, "extern \"C\" __global__ void gemm() {}\n"}};
  CompiledModule module;
  module.source = source;
  module.ptx = "//";
  c.modules = {module};
  return c;
}

// What a fake GEMM kernel sees.
struct GemmCall {
  explicit GemmCall(FakeCall& fake)
      : call(fake),
        x(fake.pointer<std::uint16_t>(0)),
        w(fake.pointer<std::uint16_t>(1)),
        y(fake.pointer<std::uint16_t>(2)),
        m(fake.argument<std::int32_t>(3)),
        n(fake.argument<std::int32_t>(4)),
        k(fake.argument<std::int32_t>(5)) {}
  FakeCall& call;
  std::uint16_t *x, *w, *y;  // bf16
  std::int64_t m, n, k;

  bool wide = false;  // Y is fp32
  void store(std::int64_t at, float value) {
    if (wide)
      reinterpret_cast<float*>(y)[at] = value;
    else
      y[at] = narrow(value);
  }

  static float widen(std::uint16_t bits) { return judge::float_of_bits(judge::u32{bits} << 16); }
  static std::uint16_t narrow(float value) {
    return static_cast<std::uint16_t>(judge::encode_from_float(judge::kBfloat16, value));
  }
  // Row i of X and row j of W as floats.
  std::vector<float> row(const std::uint16_t* of, std::int64_t r) const {
    std::vector<float> v(static_cast<std::size_t>(k));
    for (std::int64_t i = 0; i < k; ++i) v[static_cast<std::size_t>(i)] = widen(of[r * k + i]);
    return v;
  }
};

// The sum of a[i] * b[i] in some arithmetic and order.
using Dot = std::function<float(const std::vector<float>& a, const std::vector<float>& b)>;

inline void honest_gemm(GemmCall& g, const Dot& dot) {
  std::vector<std::vector<float>> w;
  for (std::int64_t j = 0; j < g.n; ++j) w.push_back(g.row(g.w, j));
  for (std::int64_t i = 0; i < g.m; ++i) {
    const std::vector<float> x = g.row(g.x, i);
    for (std::int64_t j = 0; j < g.n; ++j) g.store(i * g.n + j, dot(x, w[static_cast<std::size_t>(j)]));
  }
}

inline float dot_in_order(const std::vector<float>& a, const std::vector<float>& b) {
  float sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
inline float dot_reversed(const std::vector<float>& a, const std::vector<float>& b) {
  float sum = 0;
  for (std::size_t i = a.size(); i-- > 0;) sum += a[i] * b[i];
  return sum;
}
inline float dot_split_k(const std::vector<float>& a, const std::vector<float>& b) {
  float parts[4] = {};
  for (std::size_t i = 0; i < a.size(); ++i) parts[i * 4 / a.size()] += a[i] * b[i];
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}
inline float dot_pairwise(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> v(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) v[i] = a[i] * b[i];
  while (v.size() > 1) {
    std::vector<float> half((v.size() + 1) / 2);
    for (std::size_t i = 0; i < half.size(); ++i)
      half[i] = v[2 * i] + (2 * i + 1 < v.size() ? v[2 * i + 1] : 0);
    v.swap(half);
  }
  return v.empty() ? 0 : v[0];
}
// As a tensor core does it: sixteen products exactly, each cut to 25 fraction bits at the largest exponent,
// the sum cut to fp32 towards zero.
inline float dot_tensor_core(const std::vector<float>& a, const std::vector<float>& b) {
  float sum = 0;
  for (std::size_t i = 0; i < a.size(); i += 16) {
    double terms[17] = {sum};
    const std::size_t count = std::min<std::size_t>(16, a.size() - i);
    double largest = std::abs(terms[0]);
    for (std::size_t j = 0; j < count; ++j) {
      terms[j + 1] = double{a[i + j]} * b[i + j];
      largest = std::max(largest, std::abs(terms[j + 1]));
    }
    if (largest == 0) continue;
    const double quantum = std::ldexp(1.0, std::ilogb(largest) - 25);
    double exact = 0;
    for (std::size_t j = 0; j <= count; ++j) exact += std::trunc(terms[j] / quantum) * quantum;
    float cut = static_cast<float>(exact);
    if (std::abs(double{cut}) > std::abs(exact)) cut = std::nextafter(cut, 0.0f);
    sum = cut;
  }
  return sum;
}
// Cheap: every partial sum rounded to bf16.
inline float dot_bf16_accumulate(const std::vector<float>& a, const std::vector<float>& b) {
  float sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum = GemmCall::widen(GemmCall::narrow(sum + a[i] * b[i]));
  return sum;
}
// Cheap: partial sums of 64 products rounded to bf16, as a kernel that stages its accumulator in bf16.
inline float dot_bf16_chunks(const std::vector<float>& a, const std::vector<float>& b) {
  float sum = 0;
  for (std::size_t i = 0; i < a.size(); i += 64) {
    float part = 0;
    for (std::size_t j = i; j < std::min(a.size(), i + 64); ++j) part += a[j] * b[j];
    sum = GemmCall::widen(GemmCall::narrow(sum + part));
  }
  return sum;
}
// Cheap: split-K whose partial sums are kept in bf16.
template <int Parts>
float dot_bf16_split(const std::vector<float>& a, const std::vector<float>& b) {
  float parts[Parts] = {}, sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) parts[i * Parts / a.size()] += a[i] * b[i];
  for (const float part : parts) sum += GemmCall::widen(GemmCall::narrow(part));
  return sum;
}
// Cheap: tensor cores with fp16 accumulators, sixteen products at a time.
inline float dot_fp16_accumulate(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); i += 16) {
    for (std::size_t j = i; j < std::min(a.size(), i + 16); ++j) sum += double{a[j]} * b[j];
    sum = judge::decode(judge::kFloat16, judge::encode_from_float(judge::kFloat16, static_cast<float>(sum)));
  }
  return static_cast<float>(sum);
}
// Cheap: partial sums of 256 products kept in fp16.
inline float dot_fp16_chunks(const std::vector<float>& a, const std::vector<float>& b) {
  float sum = 0;
  for (std::size_t i = 0; i < a.size(); i += 256) {
    float part = 0;
    for (std::size_t j = i; j < std::min(a.size(), i + 256); ++j) part += a[j] * b[j];
    sum +=
        static_cast<float>(judge::decode(judge::kFloat16, judge::encode_from_float(judge::kFloat16, part)));
  }
  return sum;
}
// Cheap: operands rounded to fp8 (e4m3) before they are multiplied.
inline float dot_fp8(const std::vector<float>& a, const std::vector<float>& b) {
  const auto cut = [](float v) {
    const judge::u32 bits = judge::bits_of_float(v);
    const judge::u32 exponent = bits >> 23 & 0xff;
    const judge::u64 code =
        exponent == 0 ? 0
                      : judge::encode_float(judge::kFloat8E4m3, bits >> 31, (bits & 0x7fffff) | 0x800000,
                                            static_cast<int>(exponent) - 127 - 23);
    return static_cast<float>(judge::decode(judge::kFloat8E4m3, code));
  };
  float sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += cut(a[i]) * cut(b[i]);
  return sum;
}

}  // namespace ptxbench::testing
