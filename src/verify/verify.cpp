// The verify stage: runs a candidate on several draws and notes what happened.
#include "core/guard.hpp"
#include "verify/session.hpp"
#include "verify/trial.hpp"
#include "verify/stopwatch.hpp"

#include <algorithm>

namespace ptxbench {
namespace {

Result<void> check_job(const VerifyJob& job) {
  if (job.workload.definition == nullptr)
    return make_error(ErrorCode::invalid_argument, "the workload has no definition");
  if (job.trials < 1 || job.trials > 1000)
    return make_error(ErrorCode::invalid_argument,
                      "trials must be from 1 to 1000, not " + std::to_string(job.trials));
  for (const auto& [name, spec] : job.workload.inputs)
    if (std::holds_alternative<SafetensorsInput>(spec) && job.inputs == InputKind::random)
      return make_error(ErrorCode::unsupported,
                        "input \"" + name +
                            "\" is stored in a safetensors file; this version draws inputs or asks a "
                            "callback for them");
  return {};
}

// Adds what a later run found to what the first one did; counts stay those of the first.
void merge(const EmulatorReport& run, std::optional<EmulatorReport>& all) {
  if (!all) {
    all = run;
    return;
  }
  all->fidelity = std::max(all->fidelity, run.fidelity);
  all->asynchronous = all->asynchronous || run.asynchronous;
  all->synchronised = all->synchronised || run.synchronised;
  for (const std::string& line : run.inexact)
    if (std::find(all->inexact.begin(), all->inexact.end(), line) == all->inexact.end()) all->inexact.push_back(line);
  for (const EmulatorFinding& finding : run.findings) {
    const auto known = std::find_if(all->findings.begin(), all->findings.end(), [&](const EmulatorFinding& other) {
      return other.code == finding.code && other.kernel == finding.kernel && other.ptx_line == finding.ptx_line &&
             other.instruction == finding.instruction;
    });
    if (known != all->findings.end()) known->times += finding.times;
    else if (finding.grade == EmulatorFinding::Grade::fault) all->findings.insert(all->findings.begin(), finding);
    else all->findings.push_back(finding);
  }
}

class Verification {
 public:
  Verification(Device& device, const VerifyJob& job, HostCallbacks& callbacks)
      : device_(device), emulator_(device.emulator()), job_(job), callbacks_(callbacks) {}

  Result<VerifyEvidence> run() {
    Stopwatch watch(evidence_.stages);
    evidence_.trials_requested = job_.trials;
    PTXBENCH_TRY(check_job(job_));
    if (emulator_ != nullptr) {  // whatever a job that ended in an error left behind
      emulator_->set_schedule({});
      emulator_->set_sm_count(0);
    }
    PTXBENCH_TRY_ASSIGN(layouts_, tensor_layouts(job_.workload));
    evidence_.scalars = draw_scalars(job_.workload, job_.seed);
    PlanProblem problem;
    PTXBENCH_TRY_ASSIGN(loaded_,
                        load_plan(device_, job_.candidate, job_.workload, evidence_.scalars, problem));
    if (!loaded_) {
      evidence_.plan_error = std::move(problem.error);
      evidence_.not_applicable = std::move(problem.not_applicable);
      evidence_.unsupported = std::move(problem.unsupported);
      return std::move(evidence_);
    }
    evidence_.findings = loaded_->findings;
    evidence_.resolved_plan = loaded_->plan.evidence;
    PTXBENCH_TRY_ASSIGN(judge_, make_judge_ops(device_, job_.judge_cubin));
    PTXBENCH_TRY_ASSIGN(expected_, ExpectedSource::create(device_, job_.workload, layouts_, job_.reference,
                                                          job_.comparator.kind == ComparatorKind::model_error,
                                                          evidence_.scalars, job_.run_deadline_ns));
    watch.lap("plan");
    for (int i = 0; i < job_.trials; ++i) {
      TrialEvidence trial;
      trial.trial = job_.first_trial + i;
      trial.seed = trial_seed(job_.seed, job_.workload.uuid, trial.trial);
      trial.poison = i % 2 == 0 ? 0xff : 0x5b;  // NaN in every float type, and a large number
      trial.reused_addresses = i % 3 == 1;
      trial.disturbed = trial.trial % 2 == 1;  // races that the usual order of CTAs hides
      const bool explore = i == 0 && emulator_ != nullptr && (!job_.schedules.empty() || job_.small_sm_count > 0);
      std::optional<JudgedOutputs> judged;
      PTXBENCH_TRY(run_trial(trial, watch, explore ? &judged : nullptr));
      if (evidence_.unsupported) {
        evidence_.trials.clear();
        return std::move(evidence_);
      }
      const TrialEvidence first = trial;
      if (keep(std::move(trial))) break;
      if (judged && first.violations.empty() && all_right(first.outputs)) {
        PTXBENCH_TRY_ASSIGN(const bool faulted, explore_schedules(first, *judged, watch));
        if (faulted) break;
      }
    }
    if (emulator_ == nullptr) PTXBENCH_TRY(repeat(watch));
    return std::move(evidence_);
  }

 private:
  // True where it ended in a fault.
  bool keep(TrialEvidence trial) {
    const bool ended = trial.fault.has_value();
    // A GPU that did not answer is lost; an emulator has stopped the run itself.
    evidence_.device_lost =
        evidence_.device_lost ||
        (ended && (trial.fault->sticky ||
                   (trial.fault->kind == DeviceFault::Kind::timeout && emulator_ == nullptr)));
    evidence_.trials.push_back(std::move(trial));
    return ended;
  }

  static bool is_wrong(const TrialEvidence& trial) { return !trial.violations.empty() || !all_right(trial.outputs); }

  // Wrong now and then: because of the inputs, or because of the timing? The same inputs tell.
  Result<void> repeat(Stopwatch& watch) {
    constexpr int kRuns = 4;
    const TrialEvidence* wrong = nullptr;
    bool right = false;
    for (const TrialEvidence& trial : evidence_.trials) {
      if (trial.fault) return {};
      if (!is_wrong(trial)) right = true;
      else if (wrong == nullptr) wrong = &trial;
    }
    if (wrong == nullptr || !right) return {};
    RepeatedTrial repeated{wrong->trial, 0, 0};
    const TrialEvidence like = *wrong;
    diagnosed_ = kMostDiagnosed;  // it has been looked at
    std::optional<JudgedOutputs> judged;  // of the first run: what is expected is computed once
    for (int i = 0; i < kRuns; ++i) {
      TrialEvidence trial;
      trial.trial = like.trial;
      trial.seed = like.seed;
      trial.poison = like.poison;
      // As it was, and the other way, by turns: what only late CTAs make wrong is no matter of the inputs.
      trial.disturbed = like.disturbed == (i % 2 == 0);
      if (i == 0) {
        PTXBENCH_TRY(run_trial(trial, watch, &judged));
        PTXBENCH_TRY(inputs_.keep(device_, buffers_));
      } else {
        PTXBENCH_TRY(arm_trial(parts(), trial.poison, true));
        watch.lap("inputs");
        PTXBENCH_TRY(run_armed(trial, watch));
        if (!trial.fault) PTXBENCH_TRY(judge(parts(), trial, watch, &*judged));
      }
      if (trial.fault) {
        keep(std::move(trial));
        return {};
      }
      ++repeated.runs;
      repeated.wrong += is_wrong(trial) ? 1 : 0;
    }
    evidence_.repeated = repeated;
    return {};
  }

  // The same inputs under other legal orders of asynchronous operations, and on a smaller GPU. True after a fault.
  // First what finds most for one run: the lazy order, the small GPU, then the random orders.
  Result<bool> explore_schedules(const TrialEvidence& first, const JudgedOutputs& judged, Stopwatch& watch) {
    PTXBENCH_TRY(inputs_.keep(device_, buffers_));
    FurtherRuns further{first, judged, watch, Stopwatch::Clock::now(), run_ns_};
    const bool asynchronous = evidence_.emulator && evidence_.emulator->asynchronous;
    // Where nothing is asynchronous the order of warps is all that can differ: the first of them shows it best.
    const bool synchronised = evidence_.emulator && evidence_.emulator->synchronised;
    const std::size_t schedules =
        asynchronous ? job_.schedules.size() : synchronised ? std::min<std::size_t>(1, job_.schedules.size()) : 0;
    for (std::size_t i = 0; i < schedules || i == 0; ++i) {
      if (i < schedules) {
        const EmulatorSchedule& schedule = job_.schedules[i];
        PTXBENCH_TRY_ASSIGN(const bool faulted, run_again(further, schedule, schedule_name(schedule)));
        if (faulted) return true;
      }
      if (i > 0) continue;
      PTXBENCH_TRY_ASSIGN(const bool faulted, run_on_few_sms(further));
      if (faulted) return true;
    }
    return false;
  }

  struct FurtherRuns {
    const TrialEvidence& first;
    const JudgedOutputs& judged;
    Stopwatch& watch;
    const Stopwatch::Clock::time_point start;
    std::uint64_t longest_ns;  // of the runs so far
  };

  // True where the run ended in a fault. A run that would exceed the budget is left out, and the evidence says so.
  Result<bool> run_again(FurtherRuns& further, const EmulatorSchedule& schedule, const std::string& name) {
    const std::uint64_t spent = Stopwatch::nanoseconds(Stopwatch::Clock::now() - further.start);
    if (job_.schedule_budget_ns < spent || job_.schedule_budget_ns - spent < further.longest_ns) {
      evidence_.schedules_skipped.push_back(name);
      return false;
    }
    TrialEvidence trial;
    trial.trial = further.first.trial;
    trial.seed = further.first.seed;
    trial.distribution = further.first.distribution;
    trial.poison = further.first.poison;
    trial.reused_addresses = true;
    trial.extra = true;
    trial.schedule = name;
    emulator_->set_schedule(schedule);
    PTXBENCH_TRY(arm_trial(parts(), trial.poison, true));
    further.watch.lap("inputs");
    PTXBENCH_TRY(run_armed(trial, further.watch));
    emulator_->set_schedule({});
    further.longest_ns = std::max(further.longest_ns, run_ns_);
    if (evidence_.unsupported)
      return make_error(ErrorCode::internal,
                        "a second run met what the first did not: " + evidence_.unsupported->to_string());
    if (!trial.fault) PTXBENCH_TRY(judge(parts(), trial, further.watch, &further.judged));
    return keep(std::move(trial));
  }

  // A plan that is the same on any number of SMs need not be run again. One whose clusters do not fit on so few gets
  // twice as many, and so on.
  Result<bool> run_on_few_sms(FurtherRuns& further) {
    if (job_.small_sm_count <= 0) return false;
    constexpr int kMostFactor = 8;
    int sms = job_.small_sm_count;
    Result<std::unique_ptr<LoadedPlan>> small = std::unique_ptr<LoadedPlan>();
    for (; sms <= kMostFactor * job_.small_sm_count; sms *= 2) {
      emulator_->set_sm_count(sms);
      PlanProblem problem;
      small = load_plan(device_, job_.candidate, job_.workload, evidence_.scalars, problem);
      if (!small || *small != nullptr) break;
    }
    Result<bool> faulted = false;
    if (!small) {
      faulted = std::move(small).error();
    } else if (*small != nullptr && (*small)->plan.evidence != loaded_->plan.evidence) {
      runner_.reset();
      std::swap(loaded_, *small);
      Result<std::unique_ptr<PlanRunner>> made =
          PlanRunner::create(device_, loaded_->plan, loaded_->modules, buffers_.plan_buffers());
      if (made) {
        runner_ = std::move(*made);
        faulted = run_again(further, {}, "eager on " + std::to_string(sms) + (sms == 1 ? " SM" : " SMs"));
        runner_.reset();
      } else {
        faulted = std::move(made).error();
      }
      std::swap(loaded_, *small);
      // What follows runs on the whole GPU again.
      if (faulted && !*faulted) {
        emulator_->set_sm_count(0);
        PTXBENCH_TRY_ASSIGN(runner_, PlanRunner::create(device_, loaded_->plan, loaded_->modules, buffers_.plan_buffers()));
      }
    }
    emulator_->set_sm_count(0);
    return faulted;
  }

  // What an emulator cannot do is no error of the call.
  bool cannot(const Error& error) {
    if (emulator_ == nullptr || error.code != ErrorCode::unsupported) return false;
    evidence_.unsupported = error;
    return true;
  }

  Result<void> set_up(TrialEvidence& trial) {
    const judge::Distribution distribution = distribution_of_trial(trial.trial);
    trial.distribution = job_.inputs == InputKind::callback ? "callback" : distribution_name(distribution);
    if (job_.inputs == InputKind::callback) {
      PTXBENCH_TRY_ASSIGN(inputs_,
                          Inputs::callback(job_.workload, layouts_, job_.seed, trial.trial, callbacks_));
    } else {
      PTXBENCH_TRY_ASSIGN(inputs_, Inputs::random(job_.workload, layouts_, trial.seed, distribution));
    }
    if (!trial.reused_addresses || !runner_) {
      trial.reused_addresses = false;
      // The old buffers stay until the new ones are there, so that none comes back to the same address; where
      // memory is short, they go first.
      Result<TensorBuffers> fresh = TensorBuffers::allocate(device_, layouts_, trial.seed, true);
      if (!fresh && fresh.error().code == ErrorCode::no_memory && runner_) {
        runner_.reset();
        buffers_ = {};
        fresh = TensorBuffers::allocate(device_, layouts_, trial.seed, true);
      }
      if (!fresh) return std::move(fresh).error();
      runner_.reset();
      buffers_ = std::move(*fresh);
      Result<std::unique_ptr<PlanRunner>> made =
          PlanRunner::create(device_, loaded_->plan, loaded_->modules, buffers_.plan_buffers());
      if (!made) {
        if (cannot(made.error())) return {};
        // Workspaces that do not fit, or a tensor map that the driver refuses at this address, are the candidate's.
        const ErrorCode code = made.error().code;
        if (code != ErrorCode::no_memory && code != ErrorCode::invalid_argument) return std::move(made).error();
        trial.fault = DeviceFault{code == ErrorCode::no_memory ? DeviceFault::Kind::out_of_memory
                                                               : DeviceFault::Kind::launch_refused,
                                  {}, 0, false, made.error().to_string(), std::nullopt};
        return {};
      }
      runner_ = std::move(*made);
    }
    return arm_trial(parts(), trial.poison);
  }

  // Of the first kernel with several CTAs: those whose order may matter.
  JudgeOps::CtaShape first_shape() const {
    for (const ResolvedOperation& operation : loaded_->plan.operations) {
      const auto* launch = std::get_if<ResolvedLaunch>(&operation);
      if (launch == nullptr || std::uint64_t{launch->grid[0]} * launch->grid[1] * launch->grid[2] < 2) continue;
      return {std::uint64_t{launch->block[0]} * launch->block[1] * launch->block[2], launch->dynamic_shared_bytes};
    }
    return {};
  }

  // Runs what is armed; its fault, and what an emulator saw.
  Result<void> run_armed(TrialEvidence& trial, Stopwatch& watch) {
    if (emulator_ != nullptr) emulator_->begin_report();
    if (trial.disturbed) {
      PTXBENCH_TRY_ASSIGN(trial.disturbed, judge_->disturb(trial.seed + disturbances_++, first_shape()));
    }
    const Stopwatch::Clock::time_point start = Stopwatch::Clock::now();
    Result<DeviceOutcome> outcome = runner_->enqueue();
    if (outcome && !*outcome) outcome = device_.synchronize(job_.run_deadline_ns);
    if (!outcome && !cannot(outcome.error())) return std::move(outcome).error();
    watch.lap("run");
    run_ns_ = Stopwatch::nanoseconds(Stopwatch::Clock::now() - start);
    if (emulator_ != nullptr) merge(emulator_->report(), evidence_.emulator);
    if (outcome) trial.fault = std::move(*outcome);
    return {};
  }

  Result<void> run_trial(TrialEvidence& trial, Stopwatch& watch, std::optional<JudgedOutputs>* judged) {
    PTXBENCH_TRY(set_up(trial));
    watch.lap("inputs");
    if (trial.fault || evidence_.unsupported) return {};
    if (emulator_ != nullptr) trial.schedule = schedule_name({});
    PTXBENCH_TRY(run_armed(trial, watch));
    if (trial.fault || evidence_.unsupported) return {};
    const bool diagnose = diagnosed_ < kMostDiagnosed;
    TrialParts with = parts();
    with.digest = job_.digest && trial.trial == job_.first_trial;
    PTXBENCH_TRY(judge(with, trial, watch, nullptr, judged, diagnose));
    if (diagnose && !all_right(trial.outputs)) ++diagnosed_;
    return {};
  }

  static Result<void> judge(const TrialParts& parts, TrialEvidence& trial, Stopwatch& watch, const JudgedOutputs* first = nullptr,
                            std::optional<JudgedOutputs>* keep = nullptr, bool diagnose = false) {
    PTXBENCH_TRY_ASSIGN(OutputValues got, take_outputs(parts, trial, watch));
    return judge_outputs(parts, std::move(got), trial, watch, first, keep, diagnose);
  }

  TrialParts parts() {
    return {device_, job_.workload, job_.comparator, layouts_, *loaded_, *judge_, *expected_, inputs_, buffers_, *runner_, callbacks_};
  }

  Device& device_;
  EmulatedDevice* const emulator_;  // the device, where it is one
  const VerifyJob& job_;
  HostCallbacks& callbacks_;
  VerifyEvidence evidence_;
  TensorLayouts layouts_;
  std::unique_ptr<LoadedPlan> loaded_;
  std::unique_ptr<JudgeOps> judge_;
  std::unique_ptr<ExpectedSource> expected_;
  Inputs inputs_;
  TensorBuffers buffers_;
  static constexpr int kMostDiagnosed = 3;  // trials that are looked at closer
  int diagnosed_ = 0;
  std::uint64_t disturbances_ = 0;      // no two alike
  std::uint64_t run_ns_ = 0;            // what the last run took
  std::unique_ptr<PlanRunner> runner_;  // after buffers_: it goes first
};

}  // namespace

Result<VerifyEvidence> run_verify(Device& device, const VerifyJob& job, HostCallbacks& callbacks) {
  return guarded([&] { return Verification(device, job, callbacks).run(); });
}

}  // namespace ptxbench
