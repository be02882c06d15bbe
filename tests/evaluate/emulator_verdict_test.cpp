// Whole judgements on the emulator, through the real worker: each way a candidate can end, and what further runs find.
#include "core/base64.hpp"
#include "emulator_context.hpp"
#include "support/catch.hpp"

#include <ptxbench/agent.hpp>
#include <ptxbench/evaluate.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

using namespace ptxbench;

namespace {

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  INFO("wanted: " + part);
  return text.find(part) != std::string::npos;
}

// y = x + 1, however many there are.
class PlusOne final : public Reference {
  Result<void> compute(const Workload& workload, std::span<const HostTensor> in, std::span<HostTensor> out) override {
    std::int64_t n = 0;
    for (const auto& [axis, value] : workload.axes) n = value;
    const auto* x = static_cast<const float*>(in[0].data);
    auto* y = static_cast<float*>(out[0].data);
    for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] + 1;
    return {};
  }
};
// y[0] = a tenth of the sum of x; a tenth is no number that sums exactly.
class Sum final : public Reference {
  Result<void> compute(const Workload& workload, std::span<const HostTensor> in, std::span<HostTensor> out) override {
    double sum = 0;
    for (const auto& [axis, value] : workload.axes)
      for (std::int64_t i = 0; i < value; ++i) sum += static_cast<const float*>(in[0].data)[i];
    *static_cast<float*>(out[0].data) = static_cast<float>(0.1 * sum);
    return {};
  }
};

std::shared_ptr<Context> context() {
  static const std::shared_ptr<Context> made = ptxbench::testing::emulator_context("emulator");
  return made;
}

struct Trial {
  std::string code;                                                                  // k.cu
  std::string steps = R"json([{"kernel": "k", "grid": ["ceil_div(n, 128)"], "block": [128],
                           "args": [{"tensor": "x"}, {"tensor": "y"}, {"i32": "n"}]}])json";
  std::int64_t n = 1024;
  bool sum = false;
  EvaluateOptions options = {};
  std::vector<SourceFile> sources = {};  // instead of k.cu
};

struct Judged {
  Evaluation evaluation;
  std::string feedback;
  const Verdict& verdict() const { return evaluation.verdicts.at(0); }
};

Judged judge(const Trial& c) {
  Definition d;
  d.name = "own";
  d.op_type = "own";
  d.axes = {{"n", false, 0, {}}};
  d.inputs = {{"x", std::vector<std::string>{"n"}, DType::float32, {}}};
  if (c.sum) d.axes.push_back({"one", true, 1, {}});
  d.outputs = {{"y", std::vector<std::string>{c.sum ? "one" : "n"}, DType::float32, {}}};
  Workload workload;
  workload.definition = make_definition(std::move(d)).value();
  workload.axes = {{"n", c.n}};
  workload.inputs = {{"x", RandomInput{}}};
  workload.uuid = "w";
  Solution solution;
  solution.name = "s";
  solution.definition = "own";
  solution.author = "test";
  solution.spec.language = "cuda";
  solution.spec.target_hardware = {"cuda"};
  solution.spec.entry_point = "launch.json::run";
  solution.sources = c.sources;
  if (solution.sources.empty()) solution.sources = {{"k.cu", c.code}};
  solution.sources.insert(solution.sources.begin(), {"launch.json", R"({"version": 1, "steps": )" + c.steps + "}"});
  Judging judging;
  if (c.sum) judging.reference = std::shared_ptr<Reference>(std::make_shared<Sum>());
  else judging.reference = std::shared_ptr<Reference>(std::make_shared<PlusOne>());
  judging.baseline = NoBaseline{};
  EvaluateOptions options = c.options;
  if (!options.seed) options.seed = 7;
  auto evaluation = evaluate(*context(), solution, {&workload, 1}, judging, options);
  if (!evaluation) FAIL(evaluation.error().to_string());
  return {*evaluation, feedback_text(*evaluation, &solution)};
}

// A bulk copy of 128 floats to shared memory, with what each thread does about it.
std::string bulk_kernel(const std::string& wait, const std::string& result = "y[at] = tile[threadIdx.x] + 1;") {
  return R"cuda(#include <cstdint>
extern "C" __global__ void k(const float* x, float* y, int n) {
  __shared__ alignas(128) float tile[128];
  __shared__ alignas(8) uint64_t bar;
  const uint32_t to = __cvta_generic_to_shared(tile), b = __cvta_generic_to_shared(&bar);
  const int at = blockIdx.x * 128 + threadIdx.x;
  tile[threadIdx.x] = 5;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(b));
    asm volatile("fence.proxy.async;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("fence.proxy.async;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" :: "r"(b) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 512, [%2];"
                 :: "r"(to), "l"(x + blockIdx.x * 128), "r"(b) : "memory");
  }
)cuda" + wait +
         "  " + result + "\n}\n";
}
const std::string kWait = R"cuda(  uint32_t done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(b) : "memory");
)cuda";

const FamilyCount* family(const Verdict& v, const std::string& name) {
  for (const FamilyCount& f : v.counts.families)
    if (f.family == name) return &f;
  return nullptr;
}

}  // namespace

TEST_CASE("emulated: a right kernel passes with counts, and without a time") {
  const Judged j = judge({bulk_kernel(kWait)});
  const Verdict& v = j.verdict();
  INFO(to_json(v));
  REQUIRE(v.status == Status::passed);
  CHECK(v.provenance.device == "emulator:h200");
  CHECK(v.provenance.seed == 7);
  CHECK(v.correctness.trials == 1);  // the emulator's default
  CHECK(v.timing.state == Availability::unavailable);
  CHECK(has(v.timing.reason, "does not measure time"));
  CHECK(v.emulation.state == Availability::measured);
  CHECK(v.emulation.fidelity == "exact");
  CHECK(v.emulation.schedules == std::vector<std::string>{"eager", "lazy", "random:8", "random:9"});
  REQUIRE(v.counts.state == Availability::measured);
  CHECK(v.counts.method == "emulator");
  REQUIRE(family(v, "bulk_copy") != nullptr);
  CHECK(family(v, "bulk_copy")->warp_instructions == 8);
  CHECK(family(v, "bulk_copy")->thread_instructions == 8);
  CHECK(family(v, "bulk_copy")->label == "exact");
  REQUIRE(family(v, "mbarrier") != nullptr);
  CHECK(family(v, "mbarrier")->label == "timing_dependent");  // the loop that waits
  CHECK(family(v, "") == nullptr);
  CHECK(v.counts.bulk_copy_bytes == 8u * 512);
  CHECK(std::any_of(v.counts.lines.begin(), v.counts.lines.end(), [](const LineCount& line) {
    return line.family == "bulk_copy" && line.source.find("k.cu:17") == 0 && line.warp_instructions == 8;
  }));
  CHECK(has(j.feedback, "PASSED"));
  CHECK(has(j.feedback, "Run on an emulator, with asynchronous operations completing eager, lazy, random:8, random:9. Every"));
  CHECK(has(j.feedback, "does not measure time"));
  CHECK(has(j.feedback, "bulk_copy 8\n"));
  CHECK(has(j.feedback, "(some in loops that wait: depends on timing)"));
}

TEST_CASE("emulated: a wrong result, with the first wrong element") {
  const Judged j = judge({"extern \"C\" __global__ void k(const float* x, float* y, int n) {\n"
                          "  const int i = blockIdx.x * 128 + threadIdx.x;\n  y[i] = i == 300 ? -1 : x[i] + 1;\n}\n"});
  INFO(to_json(j.verdict()));
  CHECK(j.verdict().status == Status::incorrect_numerical);
  REQUIRE(j.verdict().correctness.outputs.size() == 1);
  CHECK(j.verdict().correctness.outputs[0].first_wrong_index == std::vector<std::int64_t>{300});
  CHECK(j.verdict().counts.state == Availability::unavailable);
  CHECK(has(j.feedback, "first wrong: y[300]"));
}

TEST_CASE("emulated: a fault is a RUNTIME_ERROR with its CUDA line") {
  const Judged j = judge({"extern \"C\" __global__ void k(const float* x, float* y, int n) {\n"
                          "  const int i = blockIdx.x * 128 + threadIdx.x;\n  y[i] = x[i] + 1;\n"
                          "  if (i == n - 1)\n    y[n] = 1;\n}\n"});
  INFO(to_json(j.verdict()));
  CHECK(j.verdict().status == Status::runtime_error);
  const Finding* f = j.verdict().find_finding("out_of_bounds");
  REQUIRE(f != nullptr);
  CHECK(f->severity == Severity::error);
  CHECK(has(f->message, "k.cu:5"));
  CHECK(has(f->evidence, "\"source\":\"k.cu:5"));
  CHECK(has(j.feedback, "5 |     y[n] = 1;"));
  // A bad kernel harms nobody: the next one is judged by the same worker.
  CHECK(judge({bulk_kernel(kWait)}).verdict().status == Status::passed);
}

TEST_CASE("emulated: a deadlock is a TIMEOUT that says who waits for what") {
  std::string code = bulk_kernel(kWait);
  const std::string tx = "expect_tx.shared::cta.b64 _, [%0], 512";
  code.replace(code.find(tx), tx.size(), "expect_tx.shared::cta.b64 _, [%0], 516");
  const Judged j = judge({code});
  INFO(to_json(j.verdict()));
  CHECK(j.verdict().status == Status::timeout);
  const Finding* f = j.verdict().find_finding("deadlock");
  REQUIRE(f != nullptr);
  CHECK(has(f->evidence, "\"detail\":\""));
  CHECK(has(f->evidence, "4 bytes pending"));
  CHECK(has(j.feedback, "4 bytes pending"));
}

TEST_CASE("emulated: what the emulator does not know is not run, and says which instruction") {
  const Judged j = judge({"extern \"C\" __global__ void k(const float* x, float* y, int n) {\n  float r;\n"
                          "  asm volatile(\"multimem.ld_reduce.global.add.f32 %0, [%1];\" : \"=f\"(r) : \"l\"(x));\n"
                          "  y[0] = r;\n}\n"});
  INFO(to_json(j.verdict()));
  CHECK(j.verdict().outcome == Outcome::not_run);
  CHECK_FALSE(j.verdict().status);
  const Finding* f = j.verdict().find_finding("emulator_unsupported");
  REQUIRE(f != nullptr);
  CHECK(has(f->message, "multimem.ld_reduce"));
  CHECK(has(f->message, "k.cu:3"));
  CHECK(j.verdict().counts.state == Availability::unavailable);
  CHECK(j.evaluation.outcome() == Outcome::not_run);
}

TEST_CASE("emulated: machine code is not run") {
  std::ifstream in(PTXBENCH_SOURCE_DIR "/tests/fixtures/cubins/async.sm_90a.cubin", std::ios::binary);
  const std::string cubin{std::istreambuf_iterator<char>(in), {}};
  Trial c;
  c.sources = {{"k.cubin", base64_encode(cubin)}};
  c.steps = R"json([{"kernel": "k_elect", "grid": [1], "block": [64], "args": [{"tensor": "y"}]}])json";
  const Judged j = judge(c);
  INFO(to_json(j.verdict()));
  CHECK(j.verdict().outcome == Outcome::not_run);
  const Finding* f = j.verdict().find_finding("emulator_unsupported");
  REQUIRE(f != nullptr);
  CHECK(has(f->message, "k.cubin"));
}

TEST_CASE("emulated: right only where copies complete at once is wrong, and the schedule says so") {
  const Judged j = judge({bulk_kernel("  __syncthreads();\n", "y[at] = tile[threadIdx.x] + 1;\n" + kWait)});
  const Verdict& v = j.verdict();
  INFO(to_json(v));
  CHECK(v.status == Status::incorrect_numerical);
  CHECK(v.correctness.trials_failed == 1);
  const Finding* f = v.find_finding("schedule_dependent");
  REQUIRE(f != nullptr);
  CHECK(f->severity == Severity::error);
  CHECK(has(f->message, "lazy"));
  CHECK(has(f->evidence, "\"schedule\":\"lazy\""));
  CHECK(has(f->evidence, "\"seed\":"));
  CHECK(has(j.feedback, "schedule_dependent"));
  // It is only the further runs that see it.
  Trial once{bulk_kernel("  __syncthreads();\n", "y[at] = tile[threadIdx.x] + 1;\n" + kWait)};
  once.options.schedules = 0;
  const Judged blind = judge(once);
  CHECK(blind.verdict().status == Status::passed);
  CHECK(blind.verdict().emulation.schedules == std::vector<std::string>{"eager"});
}

TEST_CASE("emulated: further runs that the budget has no time for are left out, and named") {
  Trial c{bulk_kernel(kWait)};
  c.n = 128 * 512;
  c.options.schedule_budget_ns = 1'000'000;
  c.options.schedules = 40;
  const Judged j = judge(c);
  INFO(to_json(j.verdict()));
  CHECK(j.verdict().status == Status::passed);
  CHECK(j.verdict().emulation.schedules.size() < 41);
  const Finding* f = j.verdict().find_finding("schedules_skipped");
  REQUIRE(f != nullptr);
  CHECK(f->severity == Severity::note);
  CHECK(has(f->message, "random:46"));
}

TEST_CASE("emulated: sums in another order are a note, not a failure") {
  // Who adds first follows the order in which the copies complete.
  Trial c{bulk_kernel(kWait, "atomicAdd(y, 0.1f * tile[threadIdx.x]);")};
  c.sum = true;
  c.n = 128 * 64;
  c.options.schedules = 8;
  c.steps = R"json([{"memset": "y", "value": 0},
                {"kernel": "k", "grid": ["ceil_div(n, 128)"], "block": [128], "args": [{"tensor": "x"}, {"tensor": "y"}, {"i32": "n"}]}])json";
  const Judged j = judge(c);
  INFO(to_json(j.verdict()));
  CHECK(j.verdict().status == Status::passed);
  const Finding* f = j.verdict().find_finding("schedule_differs");
  REQUIRE(f != nullptr);
  CHECK(f->severity == Severity::note);
}

TEST_CASE("emulated: a loop over tiles that is right only where one wave holds them all fails on two SMs") {
  const std::string code = R"(extern "C" __global__ void k(const float* x, float* y, int n) {
  __shared__ float last;
  if (threadIdx.x == 0) last = 0;
  __syncthreads();
  for (int tile = blockIdx.x; tile * 128 < n; tile += gridDim.x) {
    y[tile * 128 + threadIdx.x] = x[tile * 128 + threadIdx.x] + 1 + last;
    __syncthreads();
    if (threadIdx.x == 0) last = 1;
    __syncthreads();
  }
}
)";
  Trial c{code};
  c.steps = R"json([{"kernel": "k", "grid": ["min(sm_count, ceil_div(n, 128))"], "block": [128],
                 "args": [{"tensor": "x"}, {"tensor": "y"}, {"i32": "n"}]}])json";
  const Judged j = judge(c);
  INFO(to_json(j.verdict()));
  CHECK(j.verdict().status == Status::incorrect_numerical);
  const Finding* f = j.verdict().find_finding("schedule_dependent");
  REQUIRE(f != nullptr);
  CHECK(has(f->message, "2 SMs"));
  // Warps that wait for each other: one other order. A plan that says nothing of SMs: no small GPU.
  CHECK(j.verdict().emulation.schedules == std::vector<std::string>{"eager", "lazy", "eager on 2 SMs"});
  CHECK(judge({code}).verdict().emulation.schedules == std::vector<std::string>{"eager", "lazy"});
  // Neither waiting nor asynchronous operations: one run.
  CHECK(judge({"extern \"C\" __global__ void k(const float* x, float* y, int n) {\n  const int i = blockIdx.x * 128 + threadIdx.x;\n"
               "  y[i] = x[i] + 1;\n}\n"})
            .verdict()
            .emulation.schedules == std::vector<std::string>{"eager"});
}

TEST_CASE("emulated: a context for a device that no emulator is says so at once") {
  const auto error = [](const std::string& device) {
    ContextOptions options;
    options.device = device;
    options.worker_path = PTXBENCH_BINARY_DIR "/bin/ptxbench-worker";
    const auto made = Context::create(options);
    REQUIRE_FALSE(made);
    return made.error();
  };
  CHECK(error("emulator:h20").code == ErrorCode::not_found);
  CHECK(has(error("emulator:h20").message, "h200 and h100"));
  CHECK(error("emulator:b200").code == ErrorCode::unsupported);
  CHECK(error("emulator:h200?sms=3").code == ErrorCode::invalid_argument);
}
