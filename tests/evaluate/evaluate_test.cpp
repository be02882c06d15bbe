// How a judgement is put together, over workers that are stand-ins: no GPU, no process, no compiler.
#include "fake_workers.hpp"

using namespace testing;

TEST_CASE("evaluate: the stages follow one another, and a pass has its times") {
  Bench bench;
  const Verdict verdict = bench.verdict();
  INFO(to_json(verdict));
  CHECK(verdict.status == Status::passed);
  CHECK(bench.workers->verified == 1);
  CHECK(bench.workers->timed == 1);
  CHECK(verdict.timing.state == Availability::measured);
  CHECK(verdict.counts.state == Availability::not_requested);
  CHECK(verdict.provenance.device == "cuda:GPU-fake");
}

TEST_CASE("evaluate: what fails early leaves later blocks unavailable, with the reason") {
  Bench bench;
  bench.workers->wrong = 3;
  Verdict verdict = bench.verdict();
  CHECK(verdict.status == Status::incorrect_numerical);
  CHECK(verdict.timing.state == Availability::unavailable);
  CHECK(verdict.timing.reason == "the candidate did not pass verification");
  CHECK(bench.workers->timed == 0);
  bench.workers->compiles = false;
  verdict = bench.verdict();
  CHECK(verdict.status == Status::compile_error);
  CHECK(verdict.correctness.state == Availability::unavailable);
  CHECK(verdict.timing.reason == "the candidate does not compile");
}

TEST_CASE("evaluate: a fault is the candidate's, a sick device and broken evidence are nobody's verdict") {
  Bench bench;
  bench.workers->fault = DeviceFault{DeviceFault::Kind::trap, "CUDA_ERROR_LAUNCH_FAILED", 719, true, "trap", {}};
  CHECK(bench.verdict().status == Status::runtime_error);
  bench.workers->fault->kind = DeviceFault::Kind::timeout;
  CHECK(bench.verdict().status == Status::timeout);
  bench.workers->fault->kind = DeviceFault::Kind::hardware;
  CHECK(bench.run().error().code == ErrorCode::driver);
  bench.workers->fault.reset();
  bench.workers->missing_trials = 1;
  CHECK(bench.run().error().code == ErrorCode::worker);
}

TEST_CASE("evaluate: no device is not run, another architecture too, a driver that fails is an Error") {
  Bench bench;
  bench.workers->device = make_error(ErrorCode::no_device, "no GPU");
  Verdict verdict = bench.verdict();
  CHECK(verdict.outcome == Outcome::not_run);
  CHECK(verdict.outcome_reason.find("no GPU") != std::string::npos);
  CHECK(verdict.compile.ok);

  Bench other;
  other.options.arch = "sm_100a";
  verdict = other.verdict();
  CHECK(verdict.outcome == Outcome::not_run);
  CHECK_FALSE(verdict.status);
  CHECK(verdict.outcome_reason.find("sm_100a") != std::string::npos);
  CHECK(other.workers->verified == 0);

  Bench old;
  old.workers->device->arch = "sm_80";
  CHECK(old.verdict().outcome == Outcome::not_run);

  Bench sick;
  sick.workers->device = make_error(ErrorCode::driver, "CUDA_ERROR_SYSTEM_NOT_READY");
  CHECK(sick.run().error().code == ErrorCode::driver);
}

TEST_CASE("evaluate: a request that does not hold together is an Error before anything runs") {
  const auto code = [](auto change) {
    Bench bench;
    change(bench);
    const auto evaluation = bench.run();
    CHECK(bench.workers->verified == 0);
    REQUIRE_FALSE(evaluation);
    return evaluation.error().code;
  };
  using E = ErrorCode;
  CHECK(code([](Bench& b) { b.options.protocol = "fast"; }) == E::invalid_argument);
  CHECK(code([](Bench& b) { b.options.target_width = 1; }) == E::invalid_argument);
  CHECK(code([](Bench& b) {
          b.options.protocol = "ptxbench-published";
          b.options.l2 = L2State::warm;
        }) == E::invalid_argument);
  CHECK(code([](Bench& b) { b.options.run_deadline_ns = 0; }) == E::invalid_argument);
  CHECK(code([](Bench& b) { b.options.trials = 0; }) == E::invalid_argument);
  CHECK(code([](Bench& b) { b.options.pairs = 5; }) == E::invalid_argument);
  CHECK(code([](Bench& b) { b.options.schedules = -1; }) == E::invalid_argument);
  CHECK(code([](Bench& b) { b.options.small_sm_count = 2000; }) == E::invalid_argument);
  CHECK(code([](Bench& b) { b.options.schedule_budget_ns = 0; }) == E::invalid_argument);
  CHECK(code([](Bench& b) { b.options.verify = false; }) == E::invalid_argument);
  CHECK(code([](Bench& b) { b.options.stop_if_slower_than = -1; }) == E::invalid_argument);
  CHECK(code([](Bench& b) { b.options.arch = "sm_12"; }) == E::unsupported);
  CHECK(code([](Bench& b) { b.solution.definition = "another"; }) == E::invalid_argument);
  CHECK(code([](Bench& b) { b.judging.reference = NativeReference{}; }) == E::unsupported);
  CHECK(code([](Bench& b) { b.judging.reference = std::shared_ptr<Reference>(); }) == E::invalid_argument);
  CHECK(code([](Bench& b) { b.judging.baseline = FixedTime{0}; }) == E::invalid_argument);
  CHECK(code([](Bench& b) { b.judging.comparator.kind = ComparatorKind::callback; }) == E::invalid_argument);
  CHECK(code([](Bench& b) { b.judging.comparator.by_output = {{"c", Tolerance{}}}; }) == E::invalid_argument);
  CHECK(code([](Bench& b) { b.judging.comparator.tolerance.atol = -1; }) == E::invalid_argument);
}

TEST_CASE("evaluate: a memory budget bounds the candidate's workspaces") {
  Bench bench;
  bench.solution.sources[0].content =
      R"json({"version": 1, "workspaces": [{"name": "w", "dtype": "uint8", "shape": [1000]}],
              "steps": [{"kernel": "k_elect", "grid": [2], "block": [64], "args": [{"workspace": "w"}]}]})json";
  CHECK(bench.verdict().status == Status::passed);
  bench.options.memory_budget_bytes = 256 * 4 + 1000;  // the output, and the workspace
  CHECK(bench.verdict().status == Status::passed);
  bench.options.memory_budget_bytes = 256 * 4 + 999;
  const Verdict verdict = bench.verdict();
  CHECK(verdict.status == Status::compile_error);
  CHECK(verdict.find_finding("workspace_limit") != nullptr);
  const auto options = parse_evaluate_options(to_json(bench.options));
  if (!options) FAIL(options.error().to_string());
  CHECK(options->memory_budget_bytes == 256u * 4 + 999);
}

TEST_CASE("evaluate: the emulator's options are read strictly and written again") {
  const auto options = parse_evaluate_options(R"({"schedules": 0, "small_sm_count": 5, "schedule_budget_s": 1.5})");
  if (!options) FAIL(options.error().to_string());
  CHECK(options->schedules == 0);
  CHECK(options->small_sm_count == 5);
  CHECK(options->schedule_budget_ns == 1'500'000'000);
  CHECK_FALSE(options->trials);
  const auto again = parse_evaluate_options(to_json(*options));
  if (!again) FAIL(again.error().to_string());
  CHECK(again->schedule_budget_ns == options->schedule_budget_ns);
  CHECK(again->small_sm_count == 5);
  for (const char* wrong : {R"({"schedules": -1})", R"({"small_sm_count": 2000})", R"({"schedule_budget_s": 0})", R"({"schedule_budget": 1})"})
    CHECK_FALSE(parse_evaluate_options(wrong));
}
