// The time stage: candidate and baseline in alternating pairs, cold, behind a gate, every output verified.
#include "core/guard.hpp"
#include "verify/input_pool.hpp"
#include "verify/session.hpp"
#include "verify/stopwatch.hpp"

#include <ptxbench/bench.hpp>

#include <algorithm>

namespace ptxbench {
namespace {

constexpr std::uint8_t kPoison = 0xff;
constexpr int kPairTrials = 1'000'000;  // trial numbers of timed draws, far from verification's
constexpr int kNoiseTrials = 2'000'000;
constexpr std::size_t kIntervalPairs = 6;  // fewer give no interval

bool right(const OutputStatistics& s, double max, double rms_limit) {
  return s.nonfinite_wrong == 0 && s.max_absolute_error <= max &&
         s.sum_squared_error <= rms_limit * rms_limit * static_cast<double>(s.elements);
}

// Something that can be run on buffers of its own: the candidate, a baseline Solution, or a library.
class Runnable {
 public:
  virtual ~Runnable() = default;
  // Everything that must not lie in the timed interval; may block.
  virtual Result<void> before() = 0;
  virtual Result<DeviceOutcome> enqueue() = 0;
};

class PlanRunnable final : public Runnable {
 public:
  static Result<std::unique_ptr<Runnable>> create(LoadedPlan& loaded, const TensorBuffers& buffers) {
    auto made = std::make_unique<PlanRunnable>(loaded);
    PTXBENCH_TRY_ASSIGN(made->runner_, PlanRunner::create(loaded.device, loaded.plan, loaded.modules,
                                                          buffers.plan_buffers()));
    return std::unique_ptr<Runnable>(std::move(made));
  }
  explicit PlanRunnable(LoadedPlan& loaded) : loaded_(loaded) {}
  Result<void> before() override {
    PTXBENCH_TRY(loaded_.globals->restore());
    PTXBENCH_TRY(runner_->set_globals());
    return runner_->poison_workspaces(kPoison);
  }
  Result<DeviceOutcome> enqueue() override { return runner_->enqueue(); }
  const PlanRunner& runner() const { return *runner_; }

 private:
  LoadedPlan& loaded_;
  std::unique_ptr<PlanRunner> runner_;
};

class LibraryRunnable final : public Runnable {
 public:
  LibraryRunnable(LibraryBaseline& library, PlanBuffers buffers)
      : library_(library), buffers_(std::move(buffers)) {}
  Result<void> before() override { return {}; }
  Result<DeviceOutcome> enqueue() override {
    PTXBENCH_TRY(library_.enqueue(buffers_));
    return DeviceOutcome{};
  }

 private:
  LibraryBaseline& library_;
  PlanBuffers buffers_;
};

struct Run {
  std::uint64_t ns = 0;
  DeviceOutcome fault;
};

class Timing {
 public:
  Timing(Device& device, const TimeJob& job, LibraryBaseline* library, HostCallbacks* callbacks)
      : device_(device), job_(job), library_(library), callbacks_(callbacks) {}

  Result<TimeEvidence> run() {
    Stopwatch watch(evidence_.stages);
    evidence_.protocol = job_.protocol;
    evidence_.baseline = job_.baseline.kind;
    if (job_.baseline.kind == BaselineKind::fixed_time) evidence_.fixed_ns = job_.baseline.fixed_ns;
    PTXBENCH_TRY(check_job());
    PTXBENCH_TRY_ASSIGN(const bool ready, prepare());
    watch.lap("prepare");
    if (!ready) return std::move(evidence_);
    PTXBENCH_TRY(measure());
    watch.lap("pairs");
    if (job_.noise && baseline_ && !evidence_.fault && !evidence_.failure) {
      PTXBENCH_TRY(measure_noise());
      watch.lap("noise");
    }
    return std::move(evidence_);
  }

 private:
  Result<void> check_job() const {
    if (job_.workload.definition == nullptr)
      return make_error(ErrorCode::invalid_argument, "the workload has no definition");
    if (job_.pairs < 1 || job_.pairs > 100000 || job_.warmup_pairs < 0 || job_.warmup_pairs > 1000 ||
        job_.noise_pairs < 1 || job_.noise_pairs > 100000)
      return make_error(ErrorCode::invalid_argument,
                        "pairs must be from 1 to 100000, warm-up pairs from 0 to 1000");
    if (job_.baseline.kind == BaselineKind::solution && !job_.baseline.solution)
      return make_error(ErrorCode::invalid_argument,
                        "a baseline by solution was asked for, but the job has none");
    if (job_.baseline.kind == BaselineKind::fixed_time && job_.baseline.fixed_ns == 0)
      return make_error(ErrorCode::invalid_argument, "a fixed baseline time must be above zero");
    return {};
  }

  // False where there is nothing to measure; the evidence says why.
  Result<bool> prepare() {
    PTXBENCH_TRY_ASSIGN(layouts_, tensor_layouts(job_.workload));
    pool_ = InputPool(job_.workload, layouts_, job_.seed);
    const ScalarValues scalars = draw_scalars(job_.workload, job_.seed);
    PlanProblem problem;
    PTXBENCH_TRY_ASSIGN(loaded_, load_plan(device_, job_.candidate, job_.workload, scalars, problem));
    if (!loaded_) {
      evidence_.plan_error = std::move(problem.error);
      if (problem.not_applicable) evidence_.unavailable = "not applicable: " + *problem.not_applicable;
      return false;
    }
    Result<DeviceEvent> start = device_.create_event();
    if (!start) {
      if (start.error().code != ErrorCode::unsupported) return std::move(start).error();
      evidence_.unavailable =
          device_.info().id + " has no clock that would mean anything: " + start.error().message;
      return false;
    }
    start_ = *start;
    PTXBENCH_TRY_ASSIGN(end_, device_.create_event());
    PTXBENCH_TRY_ASSIGN(judge_, make_judge_ops(device_, job_.judge_cubin));
    PTXBENCH_TRY_ASSIGN(expected_, ExpectedSource::create(device_, job_.workload, layouts_, job_.reference,
                                                          job_.comparator.kind == ComparatorKind::model_error,
                                                          scalars, job_.run_deadline_ns));
    PTXBENCH_TRY_ASSIGN(candidate_buffers_, TensorBuffers::allocate(device_, layouts_, job_.seed, false));
    PTXBENCH_TRY(candidate_buffers_.arm(device_));
    PTXBENCH_TRY_ASSIGN(candidate_, PlanRunnable::create(*loaded_, candidate_buffers_));
    PTXBENCH_TRY(prepare_baseline(scalars));
    PTXBENCH_TRY(judge_->flush_l2());  // allocates what it needs before any gate is closed
    PTXBENCH_TRY(settle(device_, "preparing to time"));
    evidence_.method =
        "events around the run's first to last operation, gated, cold L2 (written, then read), new inputs "
        "for each of alternating pairs, every output verified";
    return true;
  }

  Result<void> prepare_baseline(const ScalarValues& scalars) {
    const BaselineKind kind = job_.baseline.kind;
    if (kind == BaselineKind::none) return {};
    if (kind == BaselineKind::fixed_time) {
      evidence_.baseline_description = "fixed time of " + std::to_string(job_.baseline.fixed_ns) + " ns";
      return {};
    }
    if (kind == BaselineKind::library && library_ == nullptr) {
      evidence_.baseline_missing = "there is no library for this operation here";
      return {};
    }
    PTXBENCH_TRY_ASSIGN(baseline_buffers_, TensorBuffers::allocate(device_, layouts_, job_.seed + 1, false));
    PTXBENCH_TRY(baseline_buffers_.arm(device_));
    if (kind == BaselineKind::solution) {
      PTXBENCH_TRY_ASSIGN(baseline_loaded_, load_trusted_plan(device_, *job_.baseline.solution, job_.workload,
                                                              scalars, "baseline"));
      PTXBENCH_TRY_ASSIGN(baseline_, PlanRunnable::create(*baseline_loaded_, baseline_buffers_));
      evidence_.baseline_description = "solution " + job_.baseline.solution->solution.name;
      return {};
    }
    // Real inputs, because an algorithm is chosen by its time on them.
    PTXBENCH_TRY_ASSIGN(Inputs inputs, draw(kPairTrials - 1));
    PTXBENCH_TRY(inputs.place(*judge_, device_, baseline_buffers_));
    PTXBENCH_TRY(settle(device_, "making the baseline's inputs"));
    Result<void> prepared = library_->prepare(device_, job_.workload, baseline_buffers_.plan_buffers());
    if (!prepared) {
      if (prepared.error().code != ErrorCode::unsupported && prepared.error().code != ErrorCode::toolkit)
        return prepared;
      evidence_.baseline_missing = prepared.error().message;
      return {};
    }
    evidence_.baseline_description = library_->description();
    baseline_ = std::make_unique<LibraryRunnable>(*library_, baseline_buffers_.plan_buffers());
    return {};
  }

  Result<Inputs> draw(int number) {
    if (job_.inputs == InputKind::callback) {
      if (callbacks_ == nullptr)
        return make_error(ErrorCode::invalid_argument,
                          "the job asks for an input source of the host; there is none");
      return Inputs::callback(job_.workload, layouts_, job_.seed, number, *callbacks_);
    }
    return pool_.draw(*judge_, device_, number);
  }

  // One run, cold and timed.
  Result<Run> timed(Runnable& what) {
    PTXBENCH_TRY(what.before());
    PTXBENCH_TRY(judge_->wipe_shared());
    PTXBENCH_TRY(settle(device_, "preparing a timed run"));
    Result<void> closed = ungated_ ? make_error(ErrorCode::unsupported, "too much for the gate") : device_.close_gate();
    if (!closed && closed.error().code != ErrorCode::unsupported) return std::move(closed).error();
    if (!closed) evidence_.method.replace(0, evidence_.method.find(", cold"), "events, not gated");
    const auto queue = [&]() -> Result<DeviceOutcome> {
      PTXBENCH_TRY(judge_->flush_l2());
      PTXBENCH_TRY(device_.record(start_));
      PTXBENCH_TRY_ASSIGN(DeviceOutcome outcome, what.enqueue());
      if (!outcome) PTXBENCH_TRY(device_.record(end_));
      return outcome;
    };
    Result<DeviceOutcome> queued = queue();
    if (closed) PTXBENCH_TRY(device_.open_gate());
    if (!queued && closed && queued.error().code == ErrorCode::state) {
      // More operations or parameters than the driver's queue takes while it is held: from now on without the gate.
      ungated_ = true;
      PTXBENCH_TRY(settle(device_, "what did not fit behind the gate"));
      return timed(what);
    }
    if (!queued) return std::move(queued).error();
    Run run;
    run.fault = std::move(*queued);
    if (run.fault) return run;
    PTXBENCH_TRY_ASSIGN(run.fault, device_.synchronize(job_.run_deadline_ns));
    if (run.fault) return run;
    PTXBENCH_TRY_ASSIGN(run.ns, device_.elapsed_ns(start_, end_));
    return run;
  }

  Error baseline_failed(const DeviceFault& fault) const {
    return make_error(
        job_.baseline.kind == BaselineKind::solution ? ErrorCode::invalid_argument : ErrorCode::driver,
        "the baseline (" + evidence_.baseline_description + ") failed: " + fault.name + ": " + fault.message);
  }

  // Runs the baseline without its time being taken.
  Result<void> run_baseline() {
    PTXBENCH_TRY(baseline_->before());
    PTXBENCH_TRY_ASSIGN(DeviceOutcome outcome, baseline_->enqueue());
    if (!outcome) {
      PTXBENCH_TRY_ASSIGN(outcome, device_.synchronize(job_.run_deadline_ns));
    }
    if (outcome) return baseline_failed(*outcome);
    return {};
  }

  // One pair; false where the candidate failed.
  Result<bool> run_pair(int number, TimedPair& pair) {
    PTXBENCH_TRY_ASSIGN(Inputs inputs, draw(kPairTrials + number));
    PTXBENCH_TRY(inputs.place(*judge_, device_, candidate_buffers_));
    if (baseline_) PTXBENCH_TRY(inputs.place(*judge_, device_, baseline_buffers_));
    PTXBENCH_TRY(candidate_buffers_.poison_outputs(device_, kPoison));
    if (baseline_ && pair.baseline_first) {
      PTXBENCH_TRY_ASSIGN(const Run run, timed(*baseline_));
      if (run.fault) return baseline_failed(*run.fault);
      pair.baseline_ns = run.ns;
    }
    // The candidate finds no result to copy: what the baseline wrote is overwritten first.
    if (baseline_) PTXBENCH_TRY(baseline_buffers_.poison_outputs(device_, kPoison));
    PTXBENCH_TRY_ASSIGN(Run run, timed(*candidate_));
    if (run.fault) {
      evidence_.device_lost = run.fault->sticky || run.fault->kind == DeviceFault::Kind::timeout;
      evidence_.fault = std::move(run.fault);
      evidence_.fault_pair = number;
      return false;
    }
    pair.candidate_ns = run.ns;
    if (baseline_ && !pair.baseline_first) {
      PTXBENCH_TRY_ASSIGN(const Run other, timed(*baseline_));
      if (other.fault) return baseline_failed(*other.fault);
      pair.baseline_ns = other.ns;
    }
    return verify_pair(number, pair.baseline_first, inputs);
  }

  Result<bool> verify_pair(int number, bool baseline_first, Inputs& inputs) {
    TimedFailure failure;
    failure.pair = number;
    PTXBENCH_TRY(inputs.check(*judge_, device_, layouts_, candidate_buffers_, failure.violations));
    PTXBENCH_TRY(candidate_buffers_.check(device_, layouts_, failure.violations));
    const auto& runner = static_cast<const PlanRunnable&>(*candidate_).runner();
    PTXBENCH_TRY(check_workspaces(device_, runner, loaded_->plan, failure.violations));
    if (!failure.violations.empty()) {
      evidence_.failure = std::move(failure);
      return false;
    }
    if (baseline_ && baseline_first) PTXBENCH_TRY(run_baseline());
    const OutputValues got = OutputValues::view(layouts_, candidate_buffers_);
    if (baseline_ && calibrated_) {
      PTXBENCH_TRY_ASSIGN(const bool same, agrees_with_baseline(got));
      if (same) return true;
    }
    // The candidate is not running: what is expected may be computed now.
    PTXBENCH_TRY_ASSIGN(const OutputValues expected,
                        expected_->compute(*judge_, callbacks_, candidate_buffers_,
                                           trial_seed(job_.seed, job_.workload.uuid, kPairTrials + number)));
    PTXBENCH_TRY_ASSIGN(failure.outputs,
                        compare_outputs(*judge_, device_, job_.workload, layouts_, job_.comparator, got,
                                        expected, kPoison, callbacks_));
    if (!all_right(failure.outputs)) {
      evidence_.failure = std::move(failure);
      return false;
    }
    if (baseline_ && !calibrated_) PTXBENCH_TRY(calibrate(expected));
    return true;
  }

  // How far a right candidate may be from the baseline: its own limit and the baseline's error, by output.
  struct Allowance {
    bool by_model = false;
    double max = 0, rms = 0;
    Tolerance tolerance;
  };

  Result<void> calibrate(const OutputValues& expected) {
    if (job_.comparator.kind == ComparatorKind::callback || calibration_failed_) return {};
    PTXBENCH_TRY_ASSIGN(
        const auto outputs,
        compare_outputs(*judge_, device_, job_.workload, layouts_, job_.comparator,
                        OutputValues::view(layouts_, baseline_buffers_), expected, -1, callbacks_));
    if (!all_right(outputs)) {  // then it is no yardstick: every pair is compared with the reference
      calibration_failed_ = true;
      evidence_.baseline_description += " (its own outputs are beyond the limits)";
      return {};
    }
    allowances_.clear();
    for (const OutputEvidence& output : outputs) {
      Allowance allowance;
      const OutputCorrectness judged = judge_output(output);
      allowance.by_model = output.comparator == ComparatorKind::model_error;
      allowance.max = judged.max_limit + judged.max_absolute_error;
      allowance.rms = judged.rms_limit + judged.rms_error;
      allowance.tolerance = output.tolerance;
      allowances_.push_back(allowance);
    }
    calibrated_ = true;
    return {};
  }

  Result<bool> agrees_with_baseline(const OutputValues& got) {
    for (std::size_t i = 0; i < layouts_.outputs.size(); ++i) {
      const TensorLayout& layout = layouts_.outputs[i];
      const ElementsAt at{got.buffers[i].address, layout.dtype};
      const ElementsAt baseline{baseline_buffers_.outputs[i].buffer().address, layout.dtype};
      if (allowances_[i].by_model) {
        PTXBENCH_TRY_ASSIGN(const OutputStatistics s, judge_->statistics(layout.elements, at, baseline, 0));
        if (!right(s, allowances_[i].max, allowances_[i].rms)) return false;
      } else {
        PTXBENCH_TRY_ASSIGN(const judge::Mismatch wrong,
                            judge_->find_wrong(layout.elements, at, baseline, allowances_[i].tolerance.atol,
                                               allowances_[i].tolerance.rtol));
        if (wrong.count != 0) return false;
      }
    }
    return true;
  }

  bool clearly_slower() const {
    if (!job_.stop_if_slower_than || evidence_.pairs.size() < kIntervalPairs) return false;
    std::vector<double> ratios;
    for (const TimedPair& pair : evidence_.pairs) {
      const std::uint64_t baseline = baseline_ ? pair.baseline_ns : job_.baseline.fixed_ns;
      if (baseline == 0 || pair.candidate_ns == 0) return false;
      ratios.push_back(static_cast<double>(baseline) / static_cast<double>(pair.candidate_ns));
    }
    const auto interval = median_interval(std::move(ratios));
    return interval && interval->second < *job_.stop_if_slower_than;
  }

  Result<void> measure() {
    for (int i = -job_.warmup_pairs; i < 0; ++i) {
      TimedPair pair;
      pair.baseline_first = i % 2 != 0;
      PTXBENCH_TRY_ASSIGN(const bool good, run_pair(i, pair));
      if (!good) return {};
    }
    const Stopwatch::Clock::time_point start = Stopwatch::Clock::now();
    evidence_.stop_reason = "pairs";
    for (int i = 0; i < job_.pairs; ++i) {
      if (i > 0 && Stopwatch::nanoseconds(Stopwatch::Clock::now() - start) > job_.budget_ns) {
        evidence_.stop_reason = "budget";
        break;
      }
      TimedPair pair;
      pair.baseline_first = i % 2 != 0;
      PTXBENCH_TRY_ASSIGN(const bool good, run_pair(i, pair));
      if (!good) return {};
      evidence_.pairs.push_back(pair);
      if (clearly_slower()) {
        evidence_.stop_reason = "slower";
        break;
      }
    }
    return {};
  }

  // The baseline against itself, each member on buffers of its own, as in a real pair.
  Result<void> measure_noise() {
    std::unique_ptr<Runnable> other;
    if (baseline_loaded_) {
      PTXBENCH_TRY_ASSIGN(other, PlanRunnable::create(*baseline_loaded_, candidate_buffers_));
    } else {
      other = std::make_unique<LibraryRunnable>(*library_, candidate_buffers_.plan_buffers());
    }
    const Stopwatch::Clock::time_point start = Stopwatch::Clock::now();
    for (int i = -1; i < job_.noise_pairs; ++i) {
      if (i > 0 && Stopwatch::nanoseconds(Stopwatch::Clock::now() - start) > job_.budget_ns) break;
      PTXBENCH_TRY_ASSIGN(Inputs inputs, draw(kNoiseTrials + i));
      PTXBENCH_TRY(inputs.place(*judge_, device_, candidate_buffers_));
      PTXBENCH_TRY(inputs.place(*judge_, device_, baseline_buffers_));
      PTXBENCH_TRY(candidate_buffers_.poison_outputs(device_, kPoison));
      PTXBENCH_TRY(baseline_buffers_.poison_outputs(device_, kPoison));
      TimedPair pair;
      pair.baseline_first = i % 2 != 0;
      for (const bool baseline : {pair.baseline_first, !pair.baseline_first}) {
        PTXBENCH_TRY_ASSIGN(const Run run, timed(baseline ? *baseline_ : *other));
        if (run.fault) return baseline_failed(*run.fault);
        (baseline ? pair.baseline_ns : pair.candidate_ns) = run.ns;
      }
      if (i >= 0) evidence_.noise.push_back(pair);  // the first one warms up
    }
    return {};
  }

  Device& device_;
  const TimeJob& job_;
  LibraryBaseline* library_;
  HostCallbacks* callbacks_;
  bool ungated_ = false;  // the plan does not fit behind the gate
  TimeEvidence evidence_;
  TensorLayouts layouts_;
  std::unique_ptr<LoadedPlan> loaded_, baseline_loaded_;
  std::unique_ptr<JudgeOps> judge_;
  std::unique_ptr<ExpectedSource> expected_;
  InputPool pool_;
  TensorBuffers candidate_buffers_, baseline_buffers_;
  std::unique_ptr<Runnable> candidate_, baseline_;  // after the buffers: they go first
  std::vector<Allowance> allowances_;
  bool calibrated_ = false, calibration_failed_ = false;
  DeviceEvent start_ = 0, end_ = 0;
};

}  // namespace

Result<TimeEvidence> run_time(Device& device, const TimeJob& job, LibraryBaseline* library,
                              HostCallbacks* callbacks) {
  return guarded([&] { return Timing(device, job, library, callbacks).run(); });
}

}  // namespace ptxbench
