// How a judgement is put together, over workers that are stand-ins: no GPU, no process, no compiler.
#include "evaluate/context.hpp"
#include "support/catch.hpp"

#include <ptxbench/evaluate.hpp>

#include <cstring>
#include <fstream>
#include <iterator>

using namespace ptxbench;

namespace {

std::vector<std::uint8_t> fixture(const std::string& name) {
  std::ifstream in(std::string(PTXBENCH_SOURCE_DIR "/tests/fixtures/cubins/") + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Answers as it is told, and remembers what it was asked.
class FakeWorkers final : public Workers {
 public:
  Result<Compiled> compile(const CompileRequest& request, const CancelToken&) override {
    Compiled compiled;
    compiled.arch = request.arch;
    compiled.compiler = "fake";
    compiled.ok = compiles;
    if (!compiles) {
      compiled.findings.push_back({"compile_error", Severity::error, "no", {}});
      return compiled;
    }
    CompiledModule module;
    module.source = request.sources.empty() ? "k.cu" : request.sources[0].path;
    module.cubin = fixture("async.sm_90a.cubin");  // holds k_elect, which takes one pointer
    compiled.modules.push_back(std::move(module));
    return compiled;
  }
  Result<DeviceInfo> open_device(const std::string&, const std::string&) override { return device; }
  Result<VerifyEvidence> verify(const std::string&, const VerifyJob& job, HostCallbacks&, const CancelToken&) override {
    ++verified;
    VerifyEvidence evidence;
    evidence.trials_requested = job.trials;
    for (int i = 0; i < job.trials - missing_trials; ++i) {
      TrialEvidence trial;
      trial.trial = i;
      if (fault) {
        trial.fault = fault;
        evidence.trials.push_back(trial);
        break;
      }
      OutputEvidence output;
      output.output = "y";
      output.shape = {256};
      output.comparator = ComparatorKind::tolerance;
      output.statistics.elements = 256;
      output.wrong = wrong;
      if (wrong > 0) output.first_wrong = 0;
      trial.outputs.push_back(output);
      evidence.trials.push_back(trial);
    }
    return evidence;
  }
  Result<TimeEvidence> time(const std::string&, const TimeJob& job, HostCallbacks&, const TimeHooks&,
                            const CancelToken&) override {
    ++timed;
    TimeEvidence evidence;
    evidence.protocol = job.protocol;
    evidence.baseline = job.baseline.kind;
    evidence.pairs.assign(8, TimedPair{1000, 0, false});
    return evidence;
  }
  Result<CountEvidence> count(const std::string&, const CountJob&, HostCallbacks&, const CancelToken&) override {
    ++counted;
    return make_error(ErrorCode::worker, "not here");
  }
  void prepare_count() override {}
  Check check() override { return {}; }

  bool compiles = true;
  int missing_trials = 0, verified = 0, timed = 0, counted = 0;
  std::uint64_t wrong = 0;
  std::optional<DeviceFault> fault;
  Result<DeviceInfo> device = [] {
    DeviceInfo info;
    info.id = "cuda:GPU-fake";
    info.name = "fake";
    info.arch = "sm_90a";
    info.limits = device_profile("h200").value();
    return info;
  }();
};

struct Bench {
  std::shared_ptr<FakeWorkers> workers = std::make_shared<FakeWorkers>();
  std::shared_ptr<Context> context;
  Workload workload;
  Solution solution;
  Judging judging;
  EvaluateOptions options;

  Bench() {
    ContextOptions context_options;
    context_options.cache_dir = "";
    context = std::make_shared<ContextImpl>(context_options, workers);
    Definition d;
    d.name = "own";
    d.op_type = "own";
    d.axes = {{"n", true, 256, {}}};
    d.outputs = {{"y", std::vector<std::string>{"n"}, DType::float32, {}}};
    workload.definition = make_definition(std::move(d)).value();
    workload.uuid = "w";
    solution.name = "s";
    solution.definition = "own";
    solution.author = "test";
    solution.spec.language = "cuda";
    solution.spec.target_hardware = {"cuda"};
    solution.spec.entry_point = "launch.json::run";
    solution.sources = {{"launch.json", R"json({"version": 1, "steps": [{"kernel": "k_elect", "grid": [2], "block": [64],
                                            "args": [{"tensor": "y"}]}]})json"},
                        {"k.cu", "extern \"C\" __global__ void k_elect(float* y);"}};
    class Nothing final : public Reference {
      Result<void> compute(const Workload&, std::span<const HostTensor>, std::span<HostTensor>) override { return {}; }
    };
    judging.reference = std::shared_ptr<Reference>(std::make_shared<Nothing>());
    judging.baseline = NoBaseline{};
    options.count = false;
  }
  Result<Evaluation> run() { return evaluate(*context, solution, {&workload, 1}, judging, options); }
  Verdict verdict() {
    auto evaluation = run();
    if (!evaluation) FAIL(evaluation.error().to_string());
    return evaluation->verdicts.at(0);
  }
};

}  // namespace

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
