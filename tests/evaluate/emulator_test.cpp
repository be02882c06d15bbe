// Faults, hazards and limits of the emulator through the whole product: a worker, a verdict, the feedback of
// a turn.
#include "emulator_context.hpp"

#include <ptxbench/agent.hpp>
#include <ptxbench/evaluate.hpp>

#include <memory>
#include <string>
#include <utility>

using namespace ptxbench;

namespace {

class Twice final : public Reference {
  Result<void> compute(const Workload&, std::span<const HostTensor> in, std::span<HostTensor> out) override {
    const auto* x = static_cast<const float*>(in[0].data);
    auto* y = static_cast<float*>(out[0].data);
    for (int i = 0; i < 256; ++i) y[i] = 2 * x[i];
    return {};
  }
};

// One for all cases.
Context& context() {
  static const std::shared_ptr<Context> made = ptxbench::testing::emulator_context();
  return *made;
}

struct Judged {
  Verdict verdict;
  std::string feedback;
  const Finding* find(const std::string& code) const {
    for (const Finding& f : verdict.findings)
      if (f.code == code) return &f;
    return nullptr;
  }
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// y = 2 x over 256 floats by a block of 256 threads; @p body stands behind `y[i] = 2 * x[i];` in lines 5 and
// on.
Judged judge(const std::string& body, int trials = 1) {
  Workload workload;
  Definition d;
  d.name = "twice";
  d.op_type = "elementwise";
  d.axes = {{"n", true, 256, {}}};
  d.inputs = {{"x", std::vector<std::string>{"n"}, DType::float32, {}}};
  d.outputs = {{"y", std::vector<std::string>{"n"}, DType::float32, {}}};
  workload.definition = make_definition(std::move(d)).value();
  workload.uuid = "w";
  Solution solution;
  solution.name = "s";
  solution.definition = "twice";
  solution.author = "test";
  solution.spec.language = "cuda";
  solution.spec.target_hardware = {"cuda"};
  solution.spec.entry_point = "launch.json::run";
  solution.sources = {
      {"launch.json",
       R"json({"version": 1, "steps": [{"kernel": "k", "grid": [1], "block": [256], "args": [{"tensor": "x"}, {"tensor": "y"}]}]})json"},
      {"k.cu",
       "#include <cassert>\n#include <stdio.h>\nextern \"C\" __global__ void k(const float* x, float* y) {\n "
       " int i = threadIdx.x; y[i] = "
       "2 * x[i];\n" +
           body + "}\n"}};
  Judging judging;
  judging.reference = std::shared_ptr<Reference>(std::make_shared<Twice>());
  judging.baseline = NoBaseline{};
  EvaluateOptions options;
  options.time = options.count = false;
  options.trials = trials;
  auto evaluation = evaluate(context(), solution, {&workload, 1}, judging, options);
  if (!evaluation) FAIL(evaluation.error().to_string());
  return {evaluation->verdicts.at(0), feedback_text(*evaluation, &solution)};
}

}  // namespace

TEST_CASE("emulator: a right kernel passes; what it prints is in the verdict") {
  const Judged j = judge("  if (i == 3) printf(\"lane %d\\n\", i);\n");
  INFO(to_json(j.verdict) << j.feedback);
  CHECK(j.verdict.status == Status::passed);
  CHECK(j.verdict.findings.empty());
  CHECK(has(j.verdict.output_log, "lane 3"));
  CHECK(has(j.feedback, "lane 3"));
  CHECK(j.verdict.emulation.state == Availability::measured);
}

TEST_CASE("emulator: a fault is a RUNTIME_ERROR with the line, the tensor and its index") {
  const Judged j = judge("  if (i == 255)\n    y[i + 1] = 0;\n");
  INFO(to_json(j.verdict) << j.feedback);
  CHECK(j.verdict.status == Status::runtime_error);
  const Finding* f = j.find("out_of_bounds");
  REQUIRE(f != nullptr);
  CHECK(f->severity == Severity::error);
  CHECK(has(f->message, "k.cu:6"));
  CHECK(has(f->message, "behind the end of y[256]"));
  CHECK(has(f->message, "warp 7, lane 31"));
  CHECK(has(j.feedback, "k.cu:6"));
  CHECK(has(j.feedback, "6 |     y[i + 1] = 0;"));
}

TEST_CASE("emulator: a deadlock is a TIMEOUT that says who waits for what, as a model reads it") {
  const Judged j = judge(
      "  __shared__ unsigned long long bar;\n  unsigned a = __cvta_generic_to_shared(&bar);\n"
      "  if (i == 0) asm volatile(\"mbarrier.init.shared.b64 [%0], 2;\" :: \"r\"(a));\n  __syncthreads();\n"
      "  if (i == 32) asm volatile(\"mbarrier.arrive.shared.b64 _, [%0];\" :: \"r\"(a));\n"
      "  unsigned done = 0;\n  while (!done)\n"
      "    asm volatile(\"{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, "
      "p; }\" : \"=r\"(done) : \"r\"(a) : \"memory\");\n");
  INFO(to_json(j.verdict) << j.feedback);
  CHECK(j.verdict.status == Status::timeout);
  const Finding* f = j.find("deadlock");
  REQUIRE(f != nullptr);
  CHECK(has(f->evidence, "phase 0, 1 of 2 arrivals and 0 bytes pending"));
  CHECK(has(f->evidence, "arrived in this phase: warp 1"));
  CHECK(has(f->evidence, "CTA 0 warps 0-7"));
  CHECK(has(j.feedback, "phase 0, 1 of 2 arrivals and 0 bytes pending"));
  CHECK(has(j.feedback, "k.cu:12"));
  CHECK(has(j.feedback, "arrived in this phase: warp 1 at PTX line"));
}

TEST_CASE("emulator: a hazard is a warning on a verdict that has passed") {
  const Judged j = judge(
      "  __shared__ alignas(128) float tile[256];\n  tile[i] = 2 * x[i];\n  __syncthreads();\n"
      "  if (i == 0) {\n    asm volatile(\"cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;\" "
      ":: \"l\"(y), "
      "\"r\"((unsigned)__cvta_generic_to_shared(tile)) : \"memory\");\n"
      "    asm volatile(\"cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\" ::: \"memory\");\n  }\n");
  INFO(to_json(j.verdict) << j.feedback);
  CHECK(j.verdict.status == Status::passed);
  const Finding* f = j.find("missing_proxy_fence");
  REQUIRE(f != nullptr);
  CHECK(f->severity == Severity::warning);
  CHECK(has(f->message, "k.cu:9"));
  CHECK(has(j.feedback, "warning missing_proxy_fence"));
  CHECK(has(j.feedback, "fence.proxy.async"));
  CHECK(j.verdict.emulation.schedules.size() > 1);
}

TEST_CASE("emulator: a failed assert has its file and line") {
  const Judged j = judge("  assert(i < 128);\n");
  INFO(to_json(j.verdict) << j.feedback);
  CHECK(j.verdict.status == Status::runtime_error);
  const Finding* f = j.find("assertion");
  REQUIRE(f != nullptr);
  CHECK(has(f->message, "i < 128"));
  CHECK(has(f->message, "k.cu:5"));
}

TEST_CASE("emulator: what it does not know is not run, with the instruction and both lines") {
  const Judged j = judge(
      "  float v; asm volatile(\"multimem.ld_reduce.weak.global.add.f32 %0, [%1];\" : \"=f\"(v) : \"l\"(y)); "
      "y[i] += v;\n");
  INFO(to_json(j.verdict) << j.feedback);
  CHECK(j.verdict.outcome == Outcome::not_run);
  CHECK(!j.verdict.status);
  const Finding* f = j.find("emulator_unsupported");
  REQUIRE(f != nullptr);
  CHECK(f->severity == Severity::warning);
  CHECK(has(f->message, "multimem.ld_reduce"));
  CHECK(has(f->message, "k.cu:5"));
  CHECK(has(j.feedback, "multimem.ld_reduce"));
}
