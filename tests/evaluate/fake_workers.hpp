// A judgement's workers as stand-ins that answer as they are told: no GPU, no process, no compiler.
#pragma once

#include "evaluate/context.hpp"
#include "support/catch.hpp"

#include <ptxbench/evaluate.hpp>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>

namespace testing {

using namespace ptxbench;  // NOLINT: a test's header

inline std::vector<std::uint8_t> fixture(const std::string& name) {
  std::ifstream in(std::string(PTXBENCH_SOURCE_DIR "/tests/fixtures/cubins/") + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Answers as it is told, and remembers what it was asked.
class FakeWorkers final : public Workers {
 public:
  Result<Compiled> compile(const CompileRequest& request, const CancelToken& cancel) override {
    if (on_compile) on_compile(request, cancel);
    if (cancel.triggered()) return make_error(ErrorCode::cancelled, "cancelled");
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
  Result<DeviceInfo> open_device(const std::string&, const std::string&, const CancelToken&) override {
    return device;
  }
  Result<VerifyEvidence> verify(const std::string&, const VerifyJob& job, HostCallbacks& callbacks,
                                const CancelToken& cancel) override {
    ++verified;
    if (on_verify) PTXBENCH_TRY(on_verify(job, callbacks, cancel));
    if (cancel.triggered()) return make_error(ErrorCode::cancelled, "cancelled");
    VerifyEvidence evidence;
    evidence.trials_requested = job.trials;
    for (int i = 0; i < job.trials - missing_trials; ++i) {
      TrialEvidence trial;
      trial.trial = job.first_trial + i;
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
  Result<TimeEvidence> time(const std::string&, const TimeJob& job, HostCallbacks&, const TimeHooks& hooks,
                            const CancelToken&) override {
    ++timed;
    if (on_time) on_time(job);
    if (hooks.before) hooks.before();
    if (hooks.after) hooks.after();
    TimeEvidence evidence;
    evidence.protocol = job.protocol;
    evidence.baseline = job.baseline.kind;
    evidence.pairs.assign(8, TimedPair{1000, 0, false});
    if (job.noise) evidence.noise.assign(noise_pairs, TimedPair{1000, 1001, false});
    return evidence;
  }
  Result<CountEvidence> count(const std::string&, const CountJob& job, HostCallbacks&,
                              const CancelToken&) override {
    ++counted;
    if (!on_count) return make_error(ErrorCode::worker, "not here");
    return on_count(job);
  }
  void prepare_count(const std::string&) override {}
  Check check() override { return {}; }

  // Called first, from several threads at once.
  std::function<void(const CompileRequest&, const CancelToken&)> on_compile;
  std::function<Result<void>(const VerifyJob&, HostCallbacks&, const CancelToken&)> on_verify;
  std::function<void(const TimeJob&)> on_time;
  std::function<Result<CountEvidence>(const CountJob&)> on_count;
  bool compiles = true;
  int missing_trials = 0;
  std::size_t noise_pairs = 0;  // that a timing with noise has
  std::atomic<int> verified{0}, timed{0}, counted{0};
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
    solution.sources = {
        {"launch.json", R"json({"version": 1, "steps": [{"kernel": "k_elect", "grid": [2], "block": [64],
                                            "args": [{"tensor": "y"}]}]})json"},
        {"k.cu", "extern \"C\" __global__ void k_elect(float* y);"}};
    class Nothing final : public Reference {
      Result<void> compute(const Workload&, std::span<const HostTensor>, std::span<HostTensor>) override {
        return {};
      }
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

}  // namespace testing
