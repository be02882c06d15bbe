// The kernels of tests/fixtures/kernels: right ones in many styles, each a folder with its source, its launch
// plan and a case.json {"definition", "axes"}; judged through the whole library, on the emulator or on a GPU.
#pragma once

#include "core/json.hpp"
#include "support/catch.hpp"

#include <ptxbench/evaluate.hpp>
#include <ptxbench/pack.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace ptxbench::testing {

struct KernelCase {
  std::string name;
  Solution solution;
  Workload workload;
  Judging judging;
};

inline std::string kernel_case_folder(const std::string& name) {
  return PTXBENCH_SOURCE_DIR "/tests/fixtures/kernels/" + name;
}

inline float bf16_value(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}
inline std::uint16_t bf16_bits(double exact) {
  const auto value = static_cast<float>(exact);
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// What the definitions of tests/fixtures/kernels/definitions mean, in double precision. GEMMs have the
// library's own.
inline void expected_of(const Workload& workload, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const std::string& op = workload.definition->name;
  const auto f32 = [](const HostTensor& t) { return static_cast<float*>(t.data); };
  const auto u16 = [](const HostTensor& t) { return static_cast<std::uint16_t*>(t.data); };
  const std::vector<std::int64_t>& shape = in[0].shape;
  if (op == "softmax_rows_bf16") {
    for (std::int64_t r = 0; r < shape[0]; ++r) {
      std::vector<double> row(static_cast<std::size_t>(shape[1]));
      for (std::int64_t c = 0; c < shape[1]; ++c) row[c] = bf16_value(u16(in[0])[r * shape[1] + c]);
      const double high = *std::max_element(row.begin(), row.end());
      double sum = 0;
      for (double& x : row) sum += x = std::exp(x - high);
      for (std::int64_t c = 0; c < shape[1]; ++c) u16(out[0])[r * shape[1] + c] = bf16_bits(row[c] / sum);
    }
  } else if (op == "softmax_rows") {
    for (std::int64_t r = 0; r < shape[0]; ++r) {
      const float* x = f32(in[0]) + r * shape[1];
      double sum = 0;
      const double high = *std::max_element(x, x + shape[1]);
      for (std::int64_t c = 0; c < shape[1]; ++c) sum += std::exp(x[c] - high);
      for (std::int64_t c = 0; c < shape[1]; ++c)
        f32(out[0])[r * shape[1] + c] = static_cast<float>(std::exp(x[c] - high) / sum);
    }
  } else if (op == "rmsnorm_rows") {
    for (std::int64_t r = 0; r < shape[0]; ++r) {
      double sum = 0;
      for (std::int64_t c = 0; c < shape[1]; ++c)
        sum += std::pow(bf16_value(u16(in[0])[r * shape[1] + c]), 2);
      const double scale = 1 / std::sqrt(sum / static_cast<double>(shape[1]) + 1e-6);
      for (std::int64_t c = 0; c < shape[1]; ++c)
        u16(out[0])[r * shape[1] + c] =
            bf16_bits(bf16_value(u16(in[0])[r * shape[1] + c]) * scale * bf16_value(u16(in[1])[c]));
    }
  } else if (op == "column_sums") {
    for (std::int64_t c = 0; c < shape[1]; ++c) {
      double sum = 0;
      for (std::int64_t r = 0; r < shape[0]; ++r) sum += f32(in[0])[r * shape[1] + c];
      f32(out[0])[c] = static_cast<float>(sum);
    }
  } else if (op == "transpose") {
    for (std::int64_t r = 0; r < shape[0]; ++r)
      for (std::int64_t c = 0; c < shape[1]; ++c)
        f32(out[0])[c * shape[0] + r] = f32(in[0])[r * shape[1] + c];
  } else if (op == "gemm_nn") {
    const std::int64_t n = in[1].shape[1];
    for (std::int64_t i = 0; i < shape[0]; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < shape[1]; ++k)
          sum += double{bf16_value(u16(in[0])[i * shape[1] + k])} * bf16_value(u16(in[1])[k * n + j]);
        u16(out[0])[i * n + j] = bf16_bits(sum);
      }
  } else if (op == "erf_sine_sum") {
    double sum = 0;
    for (std::int64_t i = 0; i < shape[0]; ++i)
      sum += std::erf(double{f32(in[0])[i]}) + std::sin(double{f32(in[0])[i]});
    f32(out[0])[0] = static_cast<float>(sum);
  } else if (op == "vector_add") {
    for (std::int64_t i = 0; i < shape[0]; ++i) f32(out[0])[i] = f32(in[0])[i] + f32(in[1])[i];
  } else if (op == "attention_small" || op == "attention_outputs") {
    const std::int64_t heads = shape[0] * shape[1], s = shape[2], d = shape[3];
    std::vector<double> p(static_cast<std::size_t>(s));
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < s; ++i) {
        const auto row = [&](int t, std::int64_t r) { return u16(in[t]) + (h * s + r) * d; };
        double high = -INFINITY, sum = 0;
        for (std::int64_t j = 0; j < s; ++j) {
          double dot = 0;
          for (std::int64_t k = 0; k < d; ++k)
            dot += double{bf16_value(row(0, i)[k])} * bf16_value(row(1, j)[k]);
          p[j] = dot / std::sqrt(static_cast<double>(d));
          high = std::max(high, p[j]);
        }
        for (double& x : p) sum += x = std::exp(x - high);
        for (std::int64_t k = 0; k < d; ++k) {
          double o = 0;
          for (std::int64_t j = 0; j < s; ++j) o += p[j] * bf16_value(row(2, j)[k]);
          u16(out[0])[(h * s + i) * d + k] = bf16_bits(o / sum);
        }
        if (out.size() > 1) f32(out[1])[h * s + i] = static_cast<float>(high + std::log(sum));
      }
  } else {
    FAIL("no reference for " << op);
  }
}

class CaseReference final : public Reference {
 public:
  Result<void> compute(const Workload& workload, std::span<const HostTensor> in,
                       std::span<HostTensor> out) override {
    expected_of(workload, in, out);
    return {};
  }
};

inline std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  INFO(path);
  REQUIRE(file);
  return text.str();
}

inline KernelCase kernel_case(const std::string& name) {
  const std::string folder = kernel_case_folder(name);
  const auto document = json::parse(text_of(folder + "/case.json"), {folder + "/case.json", false, 8});
  REQUIRE(document);
  const json::Cursor root(*document);
  const std::string definition_name = root.require("definition").value().as_string().value();
  auto definition = load_definition(kernel_case_folder("definitions/" + definition_name + ".json"));
  if (!definition) FAIL(definition.error().to_string());
  KernelCase out;
  out.name = name;
  Workload w;
  w.definition = *definition;
  w.uuid = name;
  const json::Cursor axes = root.require("axes").value();
  for (const auto& axis : (*definition)->axes)
    w.axes.push_back({axis.name, axes.require(axis.name).value().as_int().value()});
  auto workload = make_workload(std::move(w));
  if (!workload) FAIL(workload.error().to_string());
  out.workload = *workload;
  auto solution = load_solution(folder, **definition);
  if (auto ptx = root.get("ptx").value()) {  // a compiler's output, kept once for all its cases
    Solution s;
    s.name = name;
    s.definition = definition_name;
    s.author = "test";
    s.spec = {"cuda", {"cuda"}, "launch.json::run", {}, true, {}};
    const std::string file = ptx->as_string().value();
    s.sources = {{"launch.json", text_of(folder + "/launch.json")},
                 {file, text_of(PTXBENCH_SOURCE_DIR "/tests/fixtures/compiler_ptx/" + file)}};
    solution = make_solution(std::move(s));
  }
  if (!solution) FAIL(solution.error().to_string());
  out.solution = *solution;
  if (!has_native_reference(**definition)) {
    out.judging.reference = std::shared_ptr<Reference>(std::make_shared<CaseReference>());
    out.judging.comparator.kind = ComparatorKind::tolerance;
    // A softmax of a thousand columns has outputs of a thousandth, which the default would not look at.
    if (definition_name.rfind("softmax", 0) == 0)
      out.judging.comparator.tolerance =
          definition_name == "softmax_rows" ? Tolerance{1e-7, 1e-5} : Tolerance{1e-6, 1.0 / 128};
    // Hundreds of terms in one number.
    if (definition_name == "erf_sine_sum") out.judging.comparator.tolerance = Tolerance{2e-4, 1e-6};
  }
  out.judging.baseline = NoBaseline{};
  return out;
}

inline std::vector<std::string> kernel_case_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kernel_case_folder("")))
    if (std::filesystem::exists(entry.path() / "case.json"))
      names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace ptxbench::testing
