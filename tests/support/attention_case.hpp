// Attention to be judged on a FakeDevice: definitions, workloads, and candidates whose kernel is a C++
// function that computes as a GPU's would: tensor cores that truncate, a softmax over tiles of keys, P and dS
// in bf16.
#pragma once

#include "support/attention_definition.hpp"
#include "support/fake_device.hpp"
#include "verify/judge/values.h"

#include <ptxbench/verify.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ptxbench::testing {

inline Candidate attention_candidate(const Definition& definition) {
  std::string args;
  for (const auto* list : {&definition.inputs, &definition.outputs})
    for (const TensorSpec& tensor : *list) args += "{\"tensor\": \"" + tensor.name + "\"}, ";
  Candidate c;
  c.solution.name = "candidate";
  c.solution.definition = definition.name;
  c.solution.author = "test";
  c.solution.spec.language = "cuda";
  c.solution.spec.target_hardware = {"H200"};
  c.solution.spec.entry_point = "launch.json::run";
  c.solution.sources = {
      {"launch.json",
       R"({"version": 1, "steps": [{"kernel": "attention", "grid": [1], "block": [128], "args": [)" + args +
           R"({"i32": "B * H"}, {"i32": "S"}, {"i32": "D"}]}]})"},
      {"attention.cu", "extern \"C\" __global__ void attention() {}\n"}};
  CompiledModule module;
  module.source = "attention.cu";
  module.ptx = "//";
  c.modules = {module};
  return c;
}

inline float widen_bf16(std::uint16_t bits) { return judge::float_of_bits(judge::u32{bits} << 16); }
inline std::uint16_t narrow_bf16(float v) {
  return static_cast<std::uint16_t>(judge::encode_from_float(judge::kBfloat16, v));
}
inline float to_bf16(float v) { return widen_bf16(narrow_bf16(v)); }
inline float to_fp8(float v) {
  const judge::u32 bits = judge::bits_of_float(v), exponent = bits >> 23 & 0xff;
  const judge::u64 code =
      exponent == 0 ? 0
                    : judge::encode_float(judge::kFloat8E4m3, bits >> 31, (bits & 0x7fffff) | 0x800000,
                                          static_cast<int>(exponent) - 127 - 23);
  return static_cast<float>(judge::decode(judge::kFloat8E4m3, code));
}

// c + sum of a[i * a_step] * b[i * b_step] as a tensor core does it: sixteen at a time, each cut to 25
// fraction bits at the largest exponent, the sum cut to fp32 towards zero.
inline float tensor_core_dot(float c, const float* a, std::size_t a_step, const float* b, std::size_t b_step,
                             std::size_t n) {
  for (std::size_t i = 0; i < n; i += 16) {
    double terms[17] = {c}, largest = std::abs(double{c});
    const std::size_t count = std::min<std::size_t>(16, n - i);
    for (std::size_t j = 0; j < count; ++j) {
      terms[j + 1] = double{a[(i + j) * a_step]} * b[(i + j) * b_step];
      largest = std::max(largest, std::abs(terms[j + 1]));
    }
    if (largest == 0) continue;
    const double quantum = std::ldexp(1.0, std::ilogb(largest) - 25);
    double exact = 0;
    for (std::size_t j = 0; j <= count; ++j) exact += std::trunc(terms[j] / quantum) * quantum;
    c = static_cast<float>(exact);
    if (std::abs(double{c}) > std::abs(exact)) c = std::nextafter(c, 0.0f);
  }
  return c;
}

// How a candidate computes; the defaults are honest.
struct AttentionStyle {
  bool causal = false;
  int mask_offset = 0;               // with a mask, query i sees keys 0 .. i + offset
  float score_scale = 1;             // times 1 / sqrt(D)
  bool one_scale = false;            // backward: dQ and dK are scaled as the scores are
  std::size_t tile = 64;             // keys at a time
  float (*weight)(float) = to_bf16;  // what P and dS are rounded to before they are multiplied
  bool bf16_accumulator = false;     // O (or dQ, dK, dV) is kept in bf16 between tiles
  bool fp32_units = false;           // sums without tensor cores, in the reverse order
  bool lse_base_2 = false;
  bool coarse_lse = false;  // to bf16
  bool skip_last_key = false;
  bool no_row_sum = false;  // backward: dS = P * dP
  bool no_scale = false;    // backward: dQ and dK without 1 / sqrt(D)
  float output_scale = 1;

  std::size_t keys_seen(std::size_t query, std::size_t s) const {
    if (!causal) return s - (skip_last_key && s > 1);
    return std::min(s, query + static_cast<std::size_t>(1 + mask_offset));
  }
};

struct AttentionCall {
  AttentionCall(FakeCall& call, bool backward)
      : heads(call.argument<std::int32_t>(backward ? 9 : 5)),
        s(static_cast<std::size_t>(call.argument<std::int32_t>(backward ? 10 : 6))),
        d(static_cast<std::size_t>(call.argument<std::int32_t>(backward ? 11 : 7))) {
    const std::size_t tensors = backward ? 9 : 5;
    for (std::size_t i = 0; i < tensors; ++i) at.push_back(call.pointer<std::uint8_t>(i));
  }
  std::vector<std::uint8_t*> at;
  std::int32_t heads;
  std::size_t s, d;

  std::vector<float> head(std::size_t tensor, std::size_t h) const {
    std::vector<float> v(s * d);
    const auto* from = reinterpret_cast<const std::uint16_t*>(at[tensor]) + h * s * d;
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = widen_bf16(from[i]);
    return v;
  }
  std::uint16_t* out(std::size_t tensor, std::size_t h) const {
    return reinterpret_cast<std::uint16_t*>(at[tensor]) + h * s * d;
  }
  float* rows(std::size_t tensor, std::size_t h) const {
    return reinterpret_cast<float*>(at[tensor]) + h * s;
  }
};

inline float style_dot(const AttentionStyle& style, float c, const float* a, std::size_t a_step,
                       const float* b, std::size_t b_step, std::size_t n) {
  if (!style.fp32_units) return tensor_core_dot(c, a, a_step, b, b_step, n);
  for (std::size_t i = n; i-- > 0;) c = std::fma(a[i * a_step], b[i * b_step], c);
  return c;
}
// The sum over n of weights[i] * m[i * d], tile by tile.
inline float style_sum(const AttentionStyle& style, const float* weights, const float* m, std::size_t d,
                       std::size_t n) {
  float acc = 0;
  for (std::size_t i = 0; i < n; i += style.tile) {
    acc = style_dot(style, acc, weights + i, 1, m + i * d, d, std::min(style.tile, n - i));
    if (style.bf16_accumulator) acc = to_bf16(acc);
  }
  return acc;
}

inline void attention_forward(const AttentionCall& call, const AttentionStyle& style) {
  const std::size_t s = call.s, d = call.d;
  const float scale = style.score_scale / std::sqrt(static_cast<float>(d)), log2e = 1.44269504f;
  for (std::size_t h = 0; h < static_cast<std::size_t>(call.heads); ++h) {
    const std::vector<float> q = call.head(0, h), k = call.head(1, h), v = call.head(2, h);
    std::vector<float> p(s), acc(d);
    for (std::size_t i = 0; i < s; ++i) {
      const std::size_t seen = style.keys_seen(i, s);
      float most = -INFINITY, sum = 0;
      std::fill(acc.begin(), acc.end(), 0.0f);
      for (std::size_t t = 0; t < seen; t += style.tile) {
        const std::size_t n = std::min(style.tile, seen - t);
        float top = most;
        for (std::size_t j = 0; j < n; ++j) {
          p[j] = style_dot(style, 0, &q[i * d], 1, &k[(t + j) * d], 1, d);
          top = std::max(top, p[j]);
        }
        const float keep = most == -INFINITY ? 0 : std::exp2((most - top) * scale * log2e);
        most = top;
        sum *= keep;
        for (std::size_t j = 0; j < n; ++j) {
          const float e = std::exp2(std::fma(p[j], scale * log2e, -(most * (scale * log2e))));
          sum += e;
          p[j] = style.weight(e);
        }
        for (std::size_t c = 0; c < d; ++c) {
          acc[c] = style_dot(style, acc[c] * keep, p.data(), 1, &v[t * d + c], d, n);
          if (style.bf16_accumulator) acc[c] = to_bf16(acc[c]);
        }
      }
      for (std::size_t c = 0; c < d; ++c)
        call.out(3, h)[i * d + c] = narrow_bf16(acc[c] * (1 / sum) * style.output_scale);
      float lse = most * scale + std::log(sum);
      if (style.lse_base_2) lse *= log2e;
      if (style.coarse_lse) lse = to_bf16(lse);
      call.rows(4, h)[i] = lse;
    }
  }
}

inline void attention_backward(const AttentionCall& call, const AttentionStyle& style) {
  const std::size_t s = call.s, d = call.d;
  const float root = 1 / std::sqrt(static_cast<float>(d)), scale = style.score_scale * root,
              log2e = 1.44269504f;
  const float after = (style.no_scale ? 1 : style.one_scale ? scale : root) * style.output_scale;
  for (std::size_t h = 0; h < static_cast<std::size_t>(call.heads); ++h) {
    const std::vector<float> q = call.head(0, h), k = call.head(1, h), v = call.head(2, h),
                             o = call.head(3, h), d_o = call.head(4, h);
    const float* lse = call.rows(5, h);
    std::vector<float> p(s * s), ds(s * s), p_t(s * s), ds_t(s * s);
    for (std::size_t i = 0; i < s; ++i) {
      float row_sum = 0;
      for (std::size_t c = 0; c < d; ++c) row_sum = std::fma(d_o[i * d + c], o[i * d + c], row_sum);
      if (style.no_row_sum) row_sum = 0;
      for (std::size_t j = 0; j < style.keys_seen(i, s); ++j) {
        const float score = style_dot(style, 0, &q[i * d], 1, &k[j * d], 1, d);
        const float e = std::exp2(std::fma(score, scale * log2e, -(lse[i] * log2e)));
        const float dp = style_dot(style, 0, &d_o[i * d], 1, &v[j * d], 1, d);
        p[i * s + j] = p_t[j * s + i] = style.weight(e);
        ds[i * s + j] = ds_t[j * s + i] = style.weight(e * (dp - row_sum));
      }
    }
    for (std::size_t i = 0; i < s; ++i)
      for (std::size_t c = 0; c < d; ++c) {
        call.out(6, h)[i * d + c] = narrow_bf16(style_sum(style, &ds[i * s], &k[c], d, s) * after);
        call.out(7, h)[i * d + c] = narrow_bf16(style_sum(style, &ds_t[i * s], &q[c], d, s) * after);
        call.out(8, h)[i * d + c] =
            narrow_bf16(style_sum(style, &p_t[i * s], &d_o[c], d, s) * style.output_scale);
      }
  }
}

}  // namespace ptxbench::testing
