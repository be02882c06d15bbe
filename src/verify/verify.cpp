// The verify stage: runs a candidate on several draws and notes what happened.
#include "core/guard.hpp"
#include "verify/session.hpp"
#include "verify/trial.hpp"
#include "verify/stopwatch.hpp"

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

class Verification {
 public:
  Verification(Device& device, const VerifyJob& job, HostCallbacks& callbacks)
      : device_(device), job_(job), callbacks_(callbacks) {}

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
      PTXBENCH_TRY(run_trial(trial, watch));
      const bool ended = trial.fault.has_value();
      evidence_.device_lost =
          evidence_.device_lost ||
          (ended && (trial.fault->sticky || trial.fault->kind == DeviceFault::Kind::timeout));
      evidence_.trials.push_back(std::move(trial));
      if (ended) break;
    }
    return std::move(evidence_);
  }

 private:
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

  Result<void> run_trial(TrialEvidence& trial, Stopwatch& watch) {
    PTXBENCH_TRY(set_up(trial));
    watch.lap("inputs");
    if (trial.fault) return {};
    PTXBENCH_TRY_ASSIGN(DeviceOutcome outcome, runner_->enqueue());
    if (!outcome) {
      PTXBENCH_TRY_ASSIGN(outcome, device_.synchronize(job_.run_deadline_ns));
    }
    watch.lap("run");
    if (outcome) {
      trial.fault = std::move(*outcome);
      return {};
    }
    return judge_trial(parts(), trial, watch);
  }

  TrialParts parts() {
    return {device_, job_.workload, job_.comparator, layouts_, *loaded_, *judge_, *expected_, inputs_, buffers_, *runner_, callbacks_};
  }

  Device& device_;
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
