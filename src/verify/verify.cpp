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

  // The same inputs under other legal orders of asynchronous operations, and on a smaller GPU. True after a fault.
  Result<bool> explore_schedules(const TrialEvidence& first, const JudgedOutputs& judged, Stopwatch& watch) {
    const auto again = [&](const EmulatorSchedule& schedule, const std::string& name) -> Result<bool> {
      TrialEvidence trial;
      trial.trial = first.trial;
      trial.seed = first.seed;
      trial.distribution = first.distribution;
      trial.poison = first.poison;
      trial.reused_addresses = true;
      trial.extra = true;
      trial.schedule = name;
      emulator_->set_schedule(schedule);
      PTXBENCH_TRY(arm_trial(parts(), trial.poison));
      watch.lap("inputs");
      PTXBENCH_TRY(run_armed(trial, watch));
      emulator_->set_schedule({});
      if (evidence_.unsupported) return make_error(ErrorCode::internal, "a second run met what the first did not: " +
                                                                            evidence_.unsupported->to_string());
      if (!trial.fault) PTXBENCH_TRY(judge_trial(parts(), trial, watch, &judged));
      return keep(std::move(trial));
    };
    // Where nothing is asynchronous the order of warps is all that can differ: the first of them shows it best.
    std::size_t runs = 0;
    if (evidence_.emulator && evidence_.emulator->synchronised) runs = std::min<std::size_t>(1, job_.schedules.size());
    if (evidence_.emulator && evidence_.emulator->asynchronous) runs = job_.schedules.size();
    for (std::size_t i = 0; i < runs; ++i) {
      PTXBENCH_TRY_ASSIGN(const bool faulted, again(job_.schedules[i], schedule_name(job_.schedules[i])));
      if (faulted) return true;
    }
    if (job_.small_sm_count <= 0) return false;
    // A plan that is the same on any number of SMs need not be run again; nor one that does not fit on so few.
    emulator_->set_sm_count(job_.small_sm_count);
    PlanProblem problem;
    Result<std::unique_ptr<LoadedPlan>> small =
        load_plan(device_, job_.candidate, job_.workload, evidence_.scalars, problem);
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
        faulted = again({}, "eager on " + std::to_string(job_.small_sm_count) + " SMs");
      } else {
        faulted = std::move(made).error();
      }
      runner_.reset();  // a later trial makes its own
      std::swap(loaded_, *small);
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
      PTXBENCH_TRY_ASSIGN(inputs_, Inputs::random(layouts_, trial.seed, distribution));
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

  // Runs what is armed; its fault, and what an emulator saw.
  Result<void> run_armed(TrialEvidence& trial, Stopwatch& watch) {
    if (emulator_ != nullptr) emulator_->begin_report();
    Result<DeviceOutcome> outcome = runner_->enqueue();
    if (outcome && !*outcome) outcome = device_.synchronize(job_.run_deadline_ns);
    if (!outcome && !cannot(outcome.error())) return std::move(outcome).error();
    watch.lap("run");
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
    return judge_trial(parts(), trial, watch, nullptr, judged);
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
  std::unique_ptr<PlanRunner> runner_;  // after buffers_: it goes first
};

}  // namespace

Result<VerifyEvidence> run_verify(Device& device, const VerifyJob& job, HostCallbacks& callbacks) {
  return guarded([&] { return Verification(device, job, callbacks).run(); });
}

}  // namespace ptxbench
