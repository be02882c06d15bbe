// z = 2 x over floats: the operation of programs that judge many good and bad candidates.
#pragma once

#include <ptxbench/evaluate.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace testing {

using namespace ptxbench;  // NOLINT: a header of two programs

class Twice final : public Reference {
 public:
  Result<void> compute(const Workload&, std::span<const HostTensor> in, std::span<HostTensor> out) override {
    const auto* x = static_cast<const float*>(in[0].data);
    auto* z = static_cast<float*>(out[0].data);
    for (std::uint64_t i = 0; i < out[0].bytes / sizeof(float); ++i) z[i] = x[i] + x[i];
    return {};
  }
};

inline Result<Workload> twice_workload(std::int64_t n) {
  Definition d;
  d.name = "twice";
  d.op_type = "elementwise";
  d.axes = {{"n", false, 0, {}}};
  d.inputs = {{"x", std::vector<std::string>{"n"}, DType::float32, {}}};
  d.outputs = {{"z", std::vector<std::string>{"n"}, DType::float32, {}}};
  PTXBENCH_TRY_ASSIGN(DefinitionPtr definition, make_definition(std::move(d)));
  Workload w;
  w.definition = definition;
  w.axes = {{"n", n}};
  w.uuid = "w";
  return make_workload(std::move(w));
}

// @p body stands behind `const int i = ...` with x, z and n; @p head in front of the kernel.
inline Result<Solution> twice_solution(const std::string& name, const std::string& body, const std::string& head = {}) {
  Solution s;
  s.name = name;
  s.definition = "twice";
  s.author = "test";
  s.spec.language = "cuda";
  s.spec.target_hardware = {"cuda"};
  s.spec.entry_point = "launch.json::run";
  s.sources = {{"launch.json", R"json({"version": 1, "steps": [{"kernel": "twice", "grid": ["ceil_div(n, 256)"], "block": [256],
                                    "args": [{"tensor": "x"}, {"tensor": "z"}, {"i32": "n"}]}]})json"},
               {"twice.cu", head +
                                "extern \"C\" __global__ void twice(const float* x, float* z, int n) {\n"
                                "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n" +
                                body + "\n}\n"}};
  return make_solution(std::move(s));
}

inline Judging twice_judging() {
  Judging judging;
  judging.reference = std::shared_ptr<Reference>(std::make_shared<Twice>());
  judging.baseline = NoBaseline{};
  return judging;
}

}  // namespace testing
