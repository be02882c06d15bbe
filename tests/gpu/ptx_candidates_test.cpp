// PTX candidates: what compilers emit, as operations of their own, and NVRTC's own PTX of the fast GEMM.
#include "evaluate_case.hpp"

#include <algorithm>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

float from_bf16(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

std::uint16_t to_bf16(double exact) {
  const auto value = static_cast<float>(exact);
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Softmax over each row, for fp32 or bf16.
Workload softmax_workload(std::int64_t rows, std::int64_t columns, DType dtype) {
  Definition d;
  d.name = "softmax";
  d.op_type = "softmax";
  d.axes = {{"rows", false, 0, {}}, {"columns", false, 0, {}}};
  const std::vector<std::string> shape{"rows", "columns"};
  d.inputs = {{"x", shape, dtype, {}}};
  d.outputs = {{"y", shape, dtype, {}}};
  auto definition = make_definition(std::move(d));
  REQUIRE(definition);
  Workload w;
  w.definition = *definition;
  w.axes = {{"rows", rows}, {"columns", columns}};
  w.uuid = "softmax";
  auto workload = make_workload(std::move(w));
  REQUIRE(workload);
  return *workload;
}

Judging judged_by_softmax() {
  return judged_by([](std::span<const HostTensor> in, std::span<HostTensor> out) {
    const std::int64_t rows = in[0].shape[0], columns = in[0].shape[1];
    const bool half = in[0].dtype == DType::bfloat16;
    std::vector<double> row(static_cast<std::size_t>(columns));
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c)
        row[c] = half ? from_bf16(static_cast<const std::uint16_t*>(in[0].data)[r * columns + c])
                      : static_cast<const float*>(in[0].data)[r * columns + c];
      const double most = *std::max_element(row.begin(), row.end());
      double sum = 0;
      for (double& v : row) sum += v = std::exp(v - most);
      for (std::int64_t c = 0; c < columns; ++c) {
        if (half) static_cast<std::uint16_t*>(out[0].data)[r * columns + c] = to_bf16(row[c] / sum);
        else static_cast<float*>(out[0].data)[r * columns + c] = static_cast<float>(row[c] / sum);
      }
    }
  });
}

void require_passed(const Verdict& verdict) {
  INFO(to_json(verdict));
  REQUIRE(verdict.status == Status::passed);
  CHECK(verdict.timing.state == Availability::measured);
}

}  // namespace

TEST_CASE("gpu: Triton's vector add passes, its hidden scratch parameters null") {
  if (!gpu_or_skip()) return;
  const auto context = gpu_context();
  const Solution solution = candidate(
      "vector_add",
      R"json({"version": 1, "steps": [{"kernel": "vadd", "grid": ["ceil_div(n, 1024)"], "block": [128],
          "args": [{"tensor": "x"}, {"tensor": "y"}, {"tensor": "z"}, {"i32": "n"}, {"null": true}, {"null": true}]}]})json",
      "vadd.ptx", fixture_text("tests/fixtures/compiler_ptx/triton3.9.0_vadd_sm90.ptx"));
  for (const std::int64_t n : {std::int64_t{1} << 22, std::int64_t{100003}})
    require_passed(judge(*context, solution, vector_add(n), judged_by_addition()));
}

TEST_CASE("gpu: Triton's softmax passes") {
  if (!gpu_or_skip()) return;
  const auto context = gpu_context();
  const Solution solution = candidate(
      "softmax",
      R"json({"version": 1, "steps": [{"kernel": "softmax", "grid": ["rows"], "block": [256], "shared_bytes": 32,
          "args": [{"tensor": "x"}, {"tensor": "y"}, {"i32": "columns"}, {"i32": "columns"}, {"null": true}, {"null": true}]}]})json",
      "softmax.ptx", fixture_text("tests/fixtures/compiler_ptx/triton3.9.0_softmax_sm90.ptx"));
  require_passed(judge(*context, solution, softmax_workload(257, 4096, DType::bfloat16), judged_by_softmax()));
  require_passed(judge(*context, solution, softmax_workload(64, 1000, DType::bfloat16), judged_by_softmax()));
}

TEST_CASE("gpu: Pallas' vector add and softmax pass, the block left to the code") {
  if (!gpu_or_skip()) return;
  const auto context = gpu_context();
  const Solution add = candidate("vector_add",
                                 R"json({"version": 1, "require": ["n % 1024 == 0"],
                                     "steps": [{"kernel": "k", "grid": ["n / 1024"],
                                                "args": [{"tensor": "x"}, {"tensor": "y"}, {"tensor": "z"}]}]})json",
                                 "k.ptx", fixture_text("tests/fixtures/compiler_ptx/jax0.10.2_pallastriton_vadd_sm90a.ptx"));
  require_passed(judge(*context, add, vector_add(1 << 20), judged_by_addition()));
  CHECK(judge(*context, add, vector_add(1000), judged_by_addition()).outcome == Outcome::not_applicable);
  const Solution softmax =
      candidate("softmax",
                R"json({"version": 1, "steps": [{"kernel": "sm", "grid": ["rows"], "shared_bytes": 64,
                    "args": [{"tensor": "x"}, {"tensor": "y"}]}]})json",
                "sm.ptx", fixture_text("tests/fixtures/compiler_ptx/jax0.10.2_pallastriton_softmax_sm90a.ptx"));
  require_passed(judge(*context, softmax, softmax_workload(300, 4096, DType::float32), judged_by_softmax()));
}

TEST_CASE("gpu: the fast GEMM's own PTX gets its source's verdict") {
  if (!gpu_or_skip()) return;
  const auto context = gpu_context();
  const std::string data = PTXBENCH_SOURCE_DIR "/examples/data/";
  auto definition = load_definition(data + "definitions/gemm/gemm_n7168_k5120.json");
  REQUIRE(definition);
  auto workloads = load_workloads(*definition, data + "workloads/gemm/gemm_n7168_k5120.jsonl");
  REQUIRE(workloads);
  auto source = load_solution(data + "candidates/4_fast", **definition);
  REQUIRE(source);
  EvaluateOptions options;
  for (const char* header : {"barrier", "tma", "wgmma"})
    options.headers.push_back({std::string("ptx/") + header + ".cuh",
                               fixture_text(std::string("knowledge_packs/hopper/include/ptx/") + header + ".cuh")});
  for (const Workload& workload : *workloads) {
    auto compiled = compile_candidate(*context, *source, workload, options);
    REQUIRE(compiled);
    REQUIRE(compiled->compiled.ok);
    REQUIRE(compiled->compiled.modules.size() == 1);
    const CompiledModule& module = compiled->compiled.modules[0];
    // The same plan, its kernels by their symbols.
    std::string plan = source->find_source("launch.json")->content;
    for (const auto& [expression, symbol] : module.lowered) {
      const std::size_t at = plan.find('"' + expression + '"');
      REQUIRE(at != std::string::npos);
      plan.replace(at, expression.size() + 2, '"' + symbol + '"');
    }
    const Solution as_ptx = candidate(source->definition, plan, "gemm.ptx", module.ptx);
    const Verdict of_source = judge(*context, *source, workload, Judging{}, options);
    const Verdict of_ptx = judge(*context, as_ptx, workload, Judging{}, options);
    require_passed(of_source);
    require_passed(of_ptx);
    REQUIRE(of_ptx.timing.speedup);
    CHECK(*of_ptx.timing.speedup == Approx(*of_source.timing.speedup).epsilon(0.1));
  }
}
