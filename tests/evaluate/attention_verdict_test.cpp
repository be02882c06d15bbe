// An attention is judged by the library's own reference through the whole product: what its definition says of the mask
// must reach the worker.
#include "emulator_context.hpp"

#include <ptxbench/evaluate.hpp>

#include <memory>
#include <string>

using namespace ptxbench;
using ptxbench::testing::emulator_context;

namespace {

// One thread a row: the maximum, the sum, the output. @p scale is applied to the scores.
std::string kernel(const std::string& scale, bool causal) {
  return R"cuda(
#include <cuda_bf16.h>
extern "C" __global__ void attention(const __nv_bfloat16* Q, const __nv_bfloat16* K, const __nv_bfloat16* V, __nv_bfloat16* O,
                                     float* LSE, int S) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= S) return;
  const long head = (long)blockIdx.y * S * 64;
  const int keys = )cuda" + std::string(causal ? "row + 1" : "S") + R"cuda(;
  float q[64], o[64] = {}, most = -1e30f, sum = 0;
  for (int d = 0; d < 64; ++d) q[d] = __bfloat162float(Q[head + row * 64 + d]);
  for (int pass = 0; pass < 2; ++pass)
    for (int k = 0; k < keys; ++k) {
      float s = 0;
      for (int d = 0; d < 64; ++d) s = fmaf(q[d], __bfloat162float(K[head + k * 64 + d]), s);
      s *= )cuda" + scale + R"cuda(;
      if (pass == 0) {
        most = fmaxf(most, s);
        continue;
      }
      const float p = expf(s - most);
      sum += p;
      for (int d = 0; d < 64; ++d) o[d] = fmaf(p, __bfloat162float(V[head + k * 64 + d]), o[d]);
    }
  for (int d = 0; d < 64; ++d) O[head + row * 64 + d] = __float2bfloat16_rn(o[d] / sum);
  LSE[blockIdx.y * S + row] = most + logf(sum);
}
)cuda";
}

Status judge(Context& context, const std::string& definition_name, const std::string& source) {
  Definition d;
  d.name = definition_name;
  d.op_type = "attention";
  d.tags = {definition_name == "causal" ? "mask:causal" : "mask:none"};
  d.axes = {{"B", true, 1, {}}, {"H", true, 2, {}}, {"S", false, 0, {}}, {"D", true, 64, {}}};
  const std::vector<std::string> shape{"B", "H", "S", "D"};
  for (const char* name : {"Q", "K", "V"}) d.inputs.push_back({name, shape, DType::bfloat16, {}});
  d.outputs = {{"O", shape, DType::bfloat16, {}}, {"LSE", std::vector<std::string>{"B", "H", "S"}, DType::float32, {}}};
  Workload w;
  w.definition = make_definition(std::move(d)).value();
  w.axes = {{"S", 80}};
  w.uuid = "attention";
  const Workload workload = make_workload(std::move(w)).value();
  Solution s;
  s.name = "rows";
  s.definition = definition_name;
  s.author = "test";
  s.spec.language = "cuda";
  s.spec.target_hardware = {"cuda"};
  s.spec.entry_point = "launch.json::run";
  s.sources = {{"launch.json",
                R"json({"version": 1, "steps": [{"kernel": "attention", "grid": ["ceil_div(S, 64)", "B * H"], "block": [64],
                  "args": [{"tensor": "Q"}, {"tensor": "K"}, {"tensor": "V"}, {"tensor": "O"}, {"tensor": "LSE"}, {"i32": "S"}]}]})json"},
               {"rows.cu", source}};
  Judging judging;
  judging.baseline = NoBaseline{};
  EvaluateOptions options;
  options.time = options.count = false;
  options.trials = 3;
  const auto evaluation = evaluate(context, s, {&workload, 1}, judging, options);
  if (!evaluation) FAIL(evaluation.error().to_string());
  const Verdict& verdict = evaluation->verdicts.at(0);
  std::string found;
  for (const Finding& f : verdict.findings) found += f.code + ": " + f.message + "\n";
  INFO(found);
  REQUIRE(verdict.status);
  return *verdict.status;
}

}  // namespace

TEST_CASE("attention: right rows pass, a wrong scale and a wrong mask fail, by the library's own reference") {
  const auto context = emulator_context();
  CHECK(judge(*context, "full", kernel("0.125f", false)) == Status::passed);
  CHECK(judge(*context, "causal", kernel("0.125f", true)) == Status::passed);
  CHECK(judge(*context, "full", kernel("0.0625f", false)) == Status::incorrect_numerical);
  CHECK(judge(*context, "full", kernel("0.125f", true)) == Status::incorrect_numerical);
  CHECK(judge(*context, "causal", kernel("0.125f", false)) == Status::incorrect_numerical);
}
