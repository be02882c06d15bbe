#include "worker/device_worker.hpp"

#include "bench/wire.hpp"
#include "device/wire.hpp"
#include "verify/wire.hpp"
#include "worker/device_stages.hpp"
#include "worker/remote_callbacks.hpp"

#include <algorithm>

namespace ptxbench {
namespace {

using std::chrono::nanoseconds;

// What a job may take beside the candidate's runs, whose own deadline the worker keeps itself: inputs, references,
// comparisons. The host kills only a worker that exceeds both.
constexpr nanoseconds kAround = std::chrono::minutes(3);
constexpr std::uint64_t kMostDeadlineNs = std::uint64_t{1} << 55;

nanoseconds time_for(int runs, std::uint64_t run_deadline_ns) {
  return kAround + std::clamp(runs, 1, 10'000) * nanoseconds(std::min(run_deadline_ns, kMostDeadlineNs / 10'000));
}

DeviceFault fault_of(const WorkerDeath& death) {
  DeviceFault fault;
  fault.kind = death.kind == WorkerDeath::Kind::deadline ? DeviceFault::Kind::timeout : DeviceFault::Kind::other;
  fault.name = "WORKER_DIED";
  fault.sticky = true;
  fault.message = "the process that ran the candidate ended: " + death.description;
  if (!death.output.empty()) fault.message += "; its last output: " + death.output;
  return fault;
}

}  // namespace

Result<void> DeviceWorker::ensure_open(const CancelToken* cancel) {
  if (process_ && process_->ready() && info_) return {};
  info_.reset();
  if (!process_) {
    PTXBENCH_TRY_ASSIGN(WorkerProcess started, WorkerProcess::launch(launch_));
    process_.emplace(std::move(started));
  } else if (!process_->ready()) {
    PTXBENCH_TRY(process_->restart());
  }
  PTXBENCH_TRY_ASSIGN(CallOutcome outcome,
                      process_->call(open_device_job(device_, cuda_home_), {}, {std::chrono::minutes(2), cancel}));
  if (outcome.died)
    return make_error(ErrorCode::worker, "the device worker ended while opening " + device_ + ": " +
                                             outcome.death.description +
                                             (outcome.death.output.empty() ? "" : "\n" + outcome.death.output));
  PTXBENCH_TRY_ASSIGN(DeviceInfo info, device_info_from(outcome.reply.message));
  info_ = std::move(info);
  return {};
}

Result<DeviceInfo> DeviceWorker::open(const CancelToken* cancel) {
  const std::lock_guard lock(mutex_);
  PTXBENCH_TRY(ensure_open(cancel));
  return *info_;
}

Result<CallOutcome> DeviceWorker::call(const Message& job, nanoseconds time, const Workload& workload,
                                       HostCallbacks& callbacks, const CancelToken& cancel) {
  for (int attempt = 0;; ++attempt) {
    PTXBENCH_TRY(ensure_open(&cancel));
    PTXBENCH_TRY_ASSIGN(CallOutcome outcome,
                        process_->call(job, {}, {time, &cancel}, answer_callbacks(workload, callbacks)));
    if (!outcome.died) return outcome;
    info_.reset();
    // One that ended before it had begun was sick from before: another takes the job, once.
    if (outcome.death.begun || attempt > 0) return outcome;
  }
}

void DeviceWorker::replace_if_lost(bool lost) {
  if (!lost || !process_) return;
  process_->kill();
  info_.reset();
  // The next candidate should find a healthy one, started meanwhile; a failure to start is its error, not this one's.
  if (process_->restart()) return;
  process_.reset();
}

Result<VerifyEvidence> DeviceWorker::verify(const VerifyJob& job, HostCallbacks& callbacks, const CancelToken& cancel) {
  const std::lock_guard lock(mutex_);
  PTXBENCH_TRY_ASSIGN(CallOutcome outcome, call(to_message(job), time_for(job.trials, job.run_deadline_ns), job.workload,
                                                callbacks, cancel));
  if (outcome.died) {
    VerifyEvidence evidence;
    evidence.trials_requested = job.trials;
    evidence.device_lost = true;
    TrialEvidence trial;
    trial.trial = job.first_trial;
    trial.fault = fault_of(outcome.death);
    evidence.trials.push_back(std::move(trial));
    evidence.output = outcome.death.output;
    replace_if_lost(true);
    return evidence;
  }
  PTXBENCH_TRY_ASSIGN(VerifyEvidence evidence, verify_evidence_from(outcome.reply.message));
  evidence.output = process_->output_tail();
  replace_if_lost(evidence.device_lost);
  return evidence;
}

Result<TimeEvidence> DeviceWorker::time(const TimeJob& job, HostCallbacks& callbacks, const Workers::TimeHooks& hooks,
                                        const CancelToken& cancel) {
  const std::lock_guard lock(mutex_);
  PTXBENCH_TRY(ensure_open(&cancel));
  if (hooks.before) hooks.before();
  const int runs = 2 * (job.pairs + job.warmup_pairs + (job.noise ? job.noise_pairs : 0));
  Result<CallOutcome> outcome = call(to_message(job), time_for(runs, job.run_deadline_ns), job.workload, callbacks, cancel);
  if (hooks.after) hooks.after();
  if (!outcome) return std::move(outcome).error();
  if (outcome->died) {
    TimeEvidence evidence;
    evidence.protocol = job.protocol;
    evidence.fault = fault_of(outcome->death);
    evidence.device_lost = true;
    replace_if_lost(true);
    return evidence;
  }
  PTXBENCH_TRY_ASSIGN(TimeEvidence evidence, time_evidence_from(outcome->reply.message));
  replace_if_lost(evidence.device_lost);
  return evidence;
}

}  // namespace ptxbench
