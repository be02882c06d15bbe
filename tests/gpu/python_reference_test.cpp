// A definition's own Python `reference` with real torch, end to end on a card. Skipped where python3 has no
// torch; tests/evaluate has the same with a stand-in.
#include "evaluate_case.hpp"
#include "support/attention_solution.hpp"

#include <cstdlib>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

bool python_runs(const std::string& text) {
  return std::system(("python3 -c \"" + text + "\" >/dev/null 2>&1").c_str()) == 0;
}

// False, with a warning, where there is no GPU or no torch.
bool torch_or_skip() {
  if (!gpu_or_skip()) return false;
  if (python_runs("import torch; torch.ones(2).sum()")) return true;
  WARN("skipped: `python3 -c \"import torch\"` does not work here");
  return false;
}

// y = x * w / rms(x), by row, with a scalar that the reference is given by value.
Workload rmsnorm() {
  Definition d;
  d.name = "scaled_rmsnorm";
  d.op_type = "rmsnorm";
  d.axes = {{"rows", false, 0, {}}, {"columns", true, 512, {}}};
  d.inputs = {{"x", std::vector<std::string>{"rows", "columns"}, DType::bfloat16, {}},
              {"w", std::vector<std::string>{"columns"}, DType::bfloat16, {}},
              {"eps", std::nullopt, DType::float32, {}}};
  d.outputs = {{"y", std::vector<std::string>{"rows", "columns"}, DType::bfloat16, {}}};
  d.reference =
      "import torch\n\n\ndef run(x, w, eps):\n    x = x.to(torch.float32)\n"
      "    scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)\n"
      "    return (x * scale * w.to(torch.float32)).to(torch.bfloat16)\n";
  auto definition = make_definition(std::move(d));
  if (!definition) FAIL(definition.error().to_string());
  Workload w;
  w.definition = *definition;
  w.axes = {{"rows", 37}};
  w.uuid = "rmsnorm";
  w.inputs = {{"eps", ScalarInput{0.5}}};
  auto workload = make_workload(std::move(w));
  if (!workload) FAIL(workload.error().to_string());
  return *workload;
}

// A warp a row. @p eps: what is added under the root.
Solution rmsnorm_candidate(const std::string& eps) {
  return candidate("scaled_rmsnorm",
                   R"json({"version": 1, "steps": [{"kernel": "normalise", "grid": ["rows"], "block": [32],
                       "args": [{"tensor": "x"}, {"tensor": "w"}, {"tensor": "y"}, {"scalar": "eps"}]}]})json",
                   "norm.cu",
                   R"cuda(#include <cuda_bf16.h>
extern "C" __global__ void normalise(const __nv_bfloat16* x, const __nv_bfloat16* w, __nv_bfloat16* y, float eps) {
  x += blockIdx.x * 512, y += blockIdx.x * 512;
  float sum = 0;
  for (int i = threadIdx.x; i < 512; i += 32) sum += __bfloat162float(x[i]) * __bfloat162float(x[i]);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
  const float scale = rsqrtf(sum / 512 + )cuda" +
                       eps + R"cuda();
  for (int i = threadIdx.x; i < 512; i += 32)
    y[i] = __float2bfloat16_rn(__bfloat162float(x[i]) * scale * __bfloat162float(w[i]));
}
)cuda");
}

}  // namespace

// One test: each start of Python with torch takes some seconds.
TEST_CASE("gpu: a definition's own reference is run by python3 with torch") {
  if (!torch_or_skip()) return;
  PythonReference python;
  python.gpu = python_runs("import torch; torch.ones(2, device='cuda').sum().item()");
  if (!python.gpu) WARN("torch has no GPU here: its references run on the CPU");
  const auto context = gpu_context();
  EvaluateOptions options;
  options.time = options.count = false;
  options.trials = 1;
  options.headers = hopper_headers();
  Judging on_cpu, on_gpu;
  on_cpu.baseline = on_gpu.baseline = NoBaseline{};
  on_cpu.reference = PythonReference{};
  on_gpu.reference = python;

  const Workload rows = rmsnorm();
  const Verdict norm = judge(*context, rmsnorm_candidate("eps"), rows, on_cpu, options);
  INFO(to_json(norm));
  REQUIRE(norm.status == Status::passed);
  CHECK(norm.correctness.outputs.at(0).comparator == "tolerance");
  const Verdict other_eps = judge(*context, rmsnorm_candidate("1e-6f"), rows, on_cpu, options);
  INFO(to_json(other_eps));
  CHECK(other_eps.status == Status::incorrect_numerical);

  // The reference that a shipped definition brings, though the library has its own.
  const Workload attention = shipped_attention("mha_with_lse_d128_small", {{"B", 1}, {"H", 2}, {"S", 200}});
  const Verdict right = judge(*context, attention_solution(attention, false), attention, on_gpu, options);
  INFO(to_json(right));
  CHECK(right.status == Status::passed);
  const Verdict masked = judge(*context, attention_solution(attention, true), attention, on_gpu, options);
  INFO(to_json(masked));
  CHECK(masked.status == Status::incorrect_numerical);
  CHECK(named_pattern(masked, "O") == "unwanted_mask");

  // What torch refuses is an error in torch's words, and no verdict.
  Definition refused = *vector_add(256).definition;
  refused.reference = "import torch\n\n\ndef run(x, y):\n    return x @ y[:10]\n";
  Workload w;
  w.definition = make_definition(std::move(refused)).value();
  w.axes = {{"n", 256}};
  w.uuid = "refused";
  const auto evaluation = evaluate(*context, vector_add_candidate(), {&w, 1}, on_cpu, options);
  REQUIRE_FALSE(evaluation);
  CHECK(evaluation.error().code == ErrorCode::callback);
  CHECK(evaluation.error().to_string().find("size") != std::string::npos);
}
