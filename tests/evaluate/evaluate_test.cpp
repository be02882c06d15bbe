// How a judgement is put together, over workers that are stand-ins: no GPU, no process, no compiler.
#include "fake_workers.hpp"

using namespace testing;

TEST_CASE("evaluate: the stages follow one another, and a pass has its times") {
  Bench bench;
  const Verdict verdict = bench.verdict();
  INFO(to_json(verdict));
  CHECK(verdict.status == Status::passed);
  CHECK(bench.workers->verified == 2);  // the last trial comes after the timing
  CHECK(bench.workers->timed == 1);
  CHECK(verdict.correctness.trials == 3);
  CHECK(verdict.timing.state == Availability::measured);
  CHECK(verdict.counts.state == Availability::not_requested);
  CHECK(verdict.provenance.device == "cuda:GPU-fake");
}

TEST_CASE("evaluate: the last trial is run after the timing, and decides as the others do") {
  Bench bench;
  std::string order;
  bench.workers->on_verify = [&](const VerifyJob& job, HostCallbacks&, const CancelToken&) -> Result<void> {
    order += "v" + std::to_string(job.first_trial) + "x" + std::to_string(job.trials) + " ";
    bench.workers->wrong = job.first_trial == 2 ? 3 : 0;
    return {};
  };
  bench.workers->on_time = [&](const TimeJob&) { order += "t "; };
  const Verdict verdict = bench.verdict();
  INFO(to_json(verdict));
  CHECK(order == "v0x2 t v2x1 ");
  CHECK(verdict.status == Status::incorrect_numerical);
  CHECK(verdict.correctness.trials == 3);
  CHECK(verdict.correctness.trials_failed == 1);
  REQUIRE_FALSE(verdict.findings.empty());
  CHECK(verdict.findings.back().message.find("in the trial after timing") != std::string::npos);
  CHECK(verdict.timing.state == Availability::unavailable);  // of a wrong candidate
  CHECK(verdict.timing.reason == "the candidate failed in the trial after timing");

  // A fault there is one as well.
  order.clear();
  bench.workers->on_verify = [&](const VerifyJob& job, HostCallbacks&, const CancelToken&) -> Result<void> {
    bench.workers->wrong = 0;
    bench.workers->fault.reset();
    if (job.first_trial == 2)
      bench.workers->fault = DeviceFault{DeviceFault::Kind::trap, "CUDA_ERROR_LAUNCH_FAILED", 719, true, "trap", {}};
    return {};
  };
  CHECK(bench.verdict().status == Status::runtime_error);
  // Without a timing, or with one trial, all come at once.
  order.clear();
  bench.workers->on_verify = [&](const VerifyJob& job, HostCallbacks&, const CancelToken&) -> Result<void> {
    bench.workers->fault.reset();
    order += "v" + std::to_string(job.first_trial) + "x" + std::to_string(job.trials) + " ";
    return {};
  };
  bench.options.time = false;
  CHECK(bench.verdict().status == Status::passed);
  bench.options.time = true;
  bench.options.trials = 1;
  CHECK(bench.verdict().status == Status::passed);
  CHECK(order == "v0x3 v0x1 t ");
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

TEST_CASE("evaluate: what a candidate takes beyond a limit is named: the limit, the value, what is allowed") {
  const auto finding_of = [](Bench& bench, std::string_view code) -> std::string {
    const Verdict verdict = bench.verdict();
    INFO(to_json(verdict));
    CHECK(verdict.status == Status::compile_error);
    CHECK(bench.workers->verified == 0);
    const Finding* finding = verdict.find_finding(code);
    REQUIRE(finding != nullptr);
    return finding->message;
  };
  Bench sources;
  sources.options.limits.source_bytes = 100;
  CHECK(finding_of(sources, "source_limit").find("limits.source_bytes allows 100") != std::string::npos);

  Bench grid;
  grid.options.limits.grid_ctas = 1;
  CHECK(finding_of(grid, "grid_limit").find("CTAs are 2; the option limits.grid_ctas allows 1") != std::string::npos);

  Bench steps;
  steps.solution.sources[0].content = R"json({"version": 1, "steps": [{"kernel": "k_elect", "grid": [2], "block": [64],
                                               "args": [{"tensor": "y"}], "repeat": 5}]})json";
  steps.options.limits.steps = 4;
  CHECK(finding_of(steps, "plan_limit").find("are 5; the option limits.steps allows 4") != std::string::npos);

  Bench workspaces;
  workspaces.solution.sources[0].content =
      R"json({"version": 1, "workspaces": [{"name": "w", "dtype": "uint8", "shape": [1000]}, {"name": "v", "dtype": "uint8", "shape": [24]}],
              "steps": [{"kernel": "k_elect", "grid": [2], "block": [64], "args": [{"workspace": "w"}]}]})json";
  workspaces.options.limits.workspace_bytes = 1023;
  CHECK(finding_of(workspaces, "workspace_limit").find("are 1024; the option limits.workspace_bytes allows 1023") != std::string::npos);

  Bench all;
  all.solution.sources[0].content = workspaces.solution.sources[0].content;
  all.options.limits = {1000, 1, 2, 1024, 0};
  CHECK(all.verdict().status == Status::passed);  // each at its limit
  const auto again = parse_evaluate_options(to_json(all.options));
  if (!again) FAIL(again.error().to_string());
  CHECK(again->limits.source_bytes == 1000);
  CHECK(again->limits.steps == 1);
  CHECK(again->limits.grid_ctas == 2);
  CHECK(again->limits.workspace_bytes == 1024u);
  CHECK(again->limits.global_bytes == 0);
  for (const char* wrong : {R"({"limits": {"grid": 1}})", R"({"limits": {"steps": -1}})", R"({"limits": 5})"})
    CHECK_FALSE(parse_evaluate_options(wrong));
}

TEST_CASE("evaluate: memory that is needed is computed first, and named by its parts") {
  Bench bench;
  // 1024 bytes of output; taken away and expected: twice as much.
  bench.workers->device->limits.memory_bytes = 3 * 1024 - 1;
  auto evaluation = bench.run();
  REQUIRE_FALSE(evaluation);
  CHECK(evaluation.error().code == ErrorCode::no_memory);
  CHECK(evaluation.error().rule == "memory");
  CHECK(evaluation.error().message.find("1024 bytes of tensors, 2048 of the reference") != std::string::npos);
  CHECK(bench.workers->verified == 0);

  Bench budget;
  budget.options.memory_budget_bytes = 1023;
  evaluation = budget.run();
  REQUIRE_FALSE(evaluation);
  CHECK(evaluation.error().message.find("memory_budget_bytes") != std::string::npos);

  Bench workspaces;
  workspaces.solution.sources[0].content =
      R"json({"version": 1, "workspaces": [{"name": "w", "dtype": "uint8", "shape": [1000]}],
              "steps": [{"kernel": "k_elect", "grid": [2], "block": [64], "args": [{"workspace": "w"}]}]})json";
  workspaces.workers->device->limits.memory_bytes = 3 * 1024 + 1000;
  CHECK(workspaces.verdict().status == Status::passed);
  Bench large;
  large.solution.sources = workspaces.solution.sources;
  large.workers->device->limits.memory_bytes = 3 * 1024 + 999;
  const Verdict verdict = large.verdict();
  CHECK(verdict.status == Status::compile_error);
  const Finding* finding = verdict.find_finding("workspace_limit");
  REQUIRE(finding != nullptr);
  CHECK(finding->message.find("1000 bytes") != std::string::npos);
  CHECK(large.workers->verified == 0);
}

TEST_CASE("evaluate: a reference solution is compiled once for all candidates, and not held to their limits") {
  Bench bench;
  Solution reference = bench.solution;
  reference.sources[1].content += "// reference";
  std::atomic<int> compiled{0};
  bench.workers->on_compile = [&](const CompileRequest& request, const CancelToken&) {
    for (const SourceFile& file : request.files)
      if (file.content.find("// reference") != std::string::npos) ++compiled;
  };
  bench.judging.reference = SolutionChoice{std::make_shared<const Solution>(reference), {}};
  bench.options.limits.source_bytes = 0;
  for (const SourceFile& file : bench.solution.sources) bench.options.limits.source_bytes += file.content.size();
  for (int i = 0; i < 3; ++i) CHECK(bench.verdict().status == Status::passed);
  CHECK(compiled == 1);
}

TEST_CASE("evaluate: a noise floor is kept with the context once it has an interval") {
  Bench bench;
  bench.judging.baseline = LibraryKernel{};
  std::vector<bool> asked;
  bench.workers->on_time = [&](const TimeJob& job) { asked.push_back(job.noise); };
  for (const std::size_t pairs : {0, 5, 6, 0}) {
    bench.workers->noise_pairs = pairs;
    CHECK(bench.verdict().status == Status::passed);
  }
  CHECK(asked == std::vector<bool>{true, true, true, false});
}
