// Small operations judged through the whole library on a GPU: a context, a definition in memory, a callback as reference.
#pragma once

#include "support/catch.hpp"
#include "support/gpu.hpp"

#include <ptxbench/evaluate.hpp>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace ptxbench::testing {

inline std::string fixture_text(const std::string& path) {
  std::ifstream in(std::string(PTXBENCH_SOURCE_DIR "/") + path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  REQUIRE(in);
  return text.str();
}

// A reference that is a function.
class FunctionReference final : public Reference {
 public:
  using Function = std::function<void(std::span<const HostTensor>, std::span<HostTensor>)>;
  explicit FunctionReference(Function function) : function_(std::move(function)) {}
  Result<void> compute(const Workload&, std::span<const HostTensor> inputs, std::span<HostTensor> outputs) override {
    function_(inputs, outputs);
    return {};
  }

 private:
  Function function_;
};

inline Judging judged_by(FunctionReference::Function function) {
  Judging judging;
  judging.reference = std::shared_ptr<Reference>(std::make_shared<FunctionReference>(std::move(function)));
  judging.baseline = NoBaseline{};
  return judging;
}

inline std::shared_ptr<Context> gpu_context() {
  ContextOptions options;
  options.worker_path = PTXBENCH_BINARY_DIR "/bin/ptxbench-worker";
  options.cache_dir = "";
  auto context = Context::create(options);
  if (!context) FAIL(context.error().to_string());
  return *context;
}

// z = x + y over n fp32 elements.
inline Workload vector_add(std::int64_t n) {
  Definition d;
  d.name = "vector_add";
  d.op_type = "elementwise";
  d.axes = {{"n", false, 0, {}}};
  const std::vector<std::string> shape{"n"};
  d.inputs = {{"x", shape, DType::float32, {}}, {"y", shape, DType::float32, {}}};
  d.outputs = {{"z", shape, DType::float32, {}}};
  auto definition = make_definition(std::move(d));
  REQUIRE(definition);
  Workload w;
  w.definition = *definition;
  w.axes = {{"n", n}};
  w.uuid = "n-" + std::to_string(n);
  auto workload = make_workload(std::move(w));
  if (!workload) FAIL(workload.error().to_string());
  return *workload;
}

inline Judging judged_by_addition() {
  return judged_by([](std::span<const HostTensor> in, std::span<HostTensor> out) {
    const auto *x = static_cast<const float*>(in[0].data), *y = static_cast<const float*>(in[1].data);
    auto* z = static_cast<float*>(out[0].data);
    for (std::uint64_t i = 0; i < out[0].bytes / sizeof(float); ++i) z[i] = x[i] + y[i];
  });
}

inline Solution candidate(const std::string& definition, std::string plan, std::string file, std::string text) {
  Solution s;
  s.name = "candidate";
  s.definition = definition;
  s.author = "test";
  s.spec.language = "cuda";
  s.spec.target_hardware = {"cuda"};
  s.spec.entry_point = "launch.json::run";
  s.sources = {{"launch.json", std::move(plan)}, {std::move(file), std::move(text)}};
  auto made = make_solution(std::move(s));
  if (!made) FAIL(made.error().to_string());
  return *made;
}

// A vector add in CUDA whose body a test may replace.
inline Solution vector_add_candidate(const std::string& body = "if (i < n) z[i] = x[i] + y[i];") {
  return candidate("vector_add",
                   R"json({"version": 1, "steps": [{"kernel": "add", "grid": ["ceil_div(n, 256)"], "block": [256],
                       "args": [{"tensor": "x"}, {"tensor": "y"}, {"tensor": "z"}, {"i32": "n"}]}]})json",
                   "add.cu",
                   "extern \"C\" __global__ void add(const float* x, const float* y, float* z, int n) {\n"
                   "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  " + body + "\n}\n");
}

inline Verdict judge(Context& context, const Solution& solution, const Workload& workload, const Judging& judging,
                     EvaluateOptions options = {}) {
  auto evaluation = evaluate(context, solution, {&workload, 1}, judging, options);
  if (!evaluation) FAIL(evaluation.error().to_string());
  return evaluation->verdicts.at(0);
}

}  // namespace ptxbench::testing
