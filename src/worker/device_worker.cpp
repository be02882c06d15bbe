#include "worker/device_worker.hpp"

#include "bench/stop_rule.hpp"
#include "bench/wire.hpp"
#include "device/wire.hpp"
#include "verify/stopwatch.hpp"
#include "verify/wire.hpp"
#include "worker/device_stages.hpp"
#include "worker/remote_callbacks.hpp"

#include <algorithm>
#include <csignal>

namespace ptxbench {
namespace {

using std::chrono::nanoseconds;

// What a job may take beside the candidate's runs, whose own deadline the worker keeps itself: inputs, references,
// comparisons. The host kills only a worker that exceeds both.
constexpr nanoseconds kAround = std::chrono::minutes(3);
constexpr std::uint64_t kMostDeadlineNs = std::uint64_t{1} << 55;

constexpr nanoseconds kSelfTest = std::chrono::seconds(60);

// For each run its deadline twice (the candidate's, and a reference that is a solution), and what the judge does about it.
constexpr nanoseconds kAroundRun = std::chrono::seconds(10);

nanoseconds time_for(int runs, std::uint64_t run_deadline_ns) {
  const auto deadline = nanoseconds(std::min(run_deadline_ns, kMostDeadlineNs / 100'000));
  return kAround + std::clamp(runs, 1, 30'000) * (kAroundRun + 2 * deadline);
}

// A death that says nothing of the candidate: out of memory in the judge's own code, or somebody's SIGKILL (the kernel's, for
// want of memory, or a person's). The host's own kill at the deadline is none of these.
bool environment_died(const WorkerDeath& death) {
  return death.kind == WorkerDeath::Kind::memory ||
         (death.kind != WorkerDeath::Kind::deadline && death.signal == SIGKILL);
}

Error death_error(const WorkerDeath& death) {
  return make_error(ErrorCode::worker, "the device worker ended for a reason that is not the candidate's: " + death.description +
                                           (death.output.empty() ? "" : "\n" + death.output));
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
  Result<void> opened = start_and_open(cancel);
  // A process in which the driver did not start stays so: the next try is a new one.
  if (!opened) process_.reset();
  return opened;
}

Result<void> DeviceWorker::start_and_open(const CancelToken* cancel) {
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
  device_ = info.id;
  info_ = std::move(info);
  return {};
}

Result<DeviceInfo> DeviceWorker::open(const CancelToken* cancel) {
  PTXBENCH_TRY_ASSIGN(const Turns::Turn turn, turns_.take(TurnKind::verify, cancel));
  PTXBENCH_TRY(ensure_open(cancel));
  return *info_;
}

Result<void> DeviceWorker::self_test(const std::vector<std::uint8_t>& judge_cubin, const CancelToken& cancel) {
  PTXBENCH_TRY(ensure_open(&cancel));
  PTXBENCH_TRY_ASSIGN(const CallOutcome outcome, process_->call(self_test_job(judge_cubin), {}, {kSelfTest, &cancel}));
  if (!outcome.died) return {};
  info_.reset();
  return make_error(ErrorCode::driver, outcome.death.description +
                                           (outcome.death.output.empty() ? "" : "; its last output: " + outcome.death.output));
}

Result<void> DeviceWorker::ensure_healthy(const std::vector<std::uint8_t>& judge_cubin, const CancelToken& cancel) {
  if (!suspect_since_) return ensure_open(&cancel);
  // A second process decides: the first may have come while the driver still cleaned up.
  for (int attempt = 0;; ++attempt) {
    const Result<void> tested = self_test(judge_cubin, cancel);
    if (tested) break;
    replace_if_lost(true);
    if (cancel.triggered()) return tested.error();
    if (attempt == 0) continue;
    return make_error(ErrorCode::driver, "the device " + device_ + " is sick: after a fault a fresh worker's self-test failed: " +
                                             tested.error().to_string(),
                      {}, "device_sick");
  }
  if (log_)
    log_(LogLevel::debug, device_ + " answers again " +
                              std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(SteadyClock::now() -
                                                                                                   *suspect_since_)
                                                 .count()) +
                              " ms after its worker was killed");
  suspect_since_.reset();
  return {};
}

Result<void> DeviceWorker::doubt(const DeviceFault& fault, const std::vector<std::uint8_t>& judge_cubin,
                                 const CancelToken& cancel) {
  switch (fault.kind) {
    case DeviceFault::Kind::illegal_address:
    case DeviceFault::Kind::misaligned:
    case DeviceFault::Kind::illegal_instruction:
    case DeviceFault::Kind::trap:
    case DeviceFault::Kind::launch_refused:
    case DeviceFault::Kind::hardware: return {};  // as it says; what comes next is tested then
    default: break;
  }
  if (!suspect_since_) return {};
  Result<void> healthy = ensure_healthy(judge_cubin, cancel);
  if (!healthy && healthy.error().code != ErrorCode::cancelled)
    healthy.error().message += " (the fault was: " + fault.name + ": " + fault.message + ")";
  return healthy;
}

Result<CallOutcome> DeviceWorker::call(const Message& job, nanoseconds time, const Workload& workload,
                                       const std::vector<std::uint8_t>& judge_cubin, HostCallbacks& callbacks,
                                       const CancelToken& cancel) {
  for (int attempt = 0;; ++attempt) {
    PTXBENCH_TRY(ensure_healthy(judge_cubin, cancel));
    Result<CallOutcome> called = process_->call(job, {}, {time, &cancel}, answer_callbacks(workload, callbacks));
    if (!called) {
      // A stage that ended in an Error may have lost the device on the way (a reference that faults, say).
      const ErrorCode code = called.error().code;
      if (code == ErrorCode::cancelled) suspect_since_ = SteadyClock::now();  // killed in the middle of something
      else if (code != ErrorCode::callback) replace_if_lost(true);
      return std::move(called).error();
    }
    CallOutcome outcome = std::move(*called);
    if (!outcome.died) return outcome;
    info_.reset();
    suspect_since_ = SteadyClock::now();
    // One that ended before it had begun was sick from before: another takes the job, once.
    if (outcome.death.begun || attempt > 0) return outcome;
  }
}

void DeviceWorker::replace_if_lost(bool lost) {
  if (!lost || !process_) return;
  process_->kill();
  info_.reset();
  if (!suspect_since_) suspect_since_ = SteadyClock::now();
  // The next candidate should find a healthy one, started meanwhile; a failure to start is its error, not this one's.
  if (process_->restart()) return;
  process_.reset();
}

Result<VerifyEvidence> DeviceWorker::verify(const VerifyJob& job, HostCallbacks& callbacks, const CancelToken& cancel) {
  std::vector<StageTime> waited;
  Stopwatch watch(waited);
  PTXBENCH_TRY_ASSIGN(const Turns::Turn turn, turns_.take(job.alone ? TurnKind::alone : TurnKind::verify, &cancel));
  watch.lap("turn");
  PTXBENCH_TRY_ASSIGN(CallOutcome outcome, call(to_message(job), time_for(job.trials + static_cast<int>(job.schedules.size()) + 1, job.run_deadline_ns),
                                                job.workload, job.judge_cubin, callbacks, cancel));
  if (outcome.died) {
    if (environment_died(outcome.death)) {
      replace_if_lost(true);
      return death_error(outcome.death);
    }
    VerifyEvidence evidence;
    evidence.trials_requested = job.trials;
    evidence.device_lost = true;
    TrialEvidence trial;
    trial.trial = job.first_trial;
    trial.fault = fault_of(outcome.death);
    evidence.trials.push_back(std::move(trial));
    evidence.output = outcome.death.output;
    replace_if_lost(true);
    PTXBENCH_TRY(doubt(*evidence.trials.back().fault, job.judge_cubin, cancel));
    return evidence;
  }
  PTXBENCH_TRY_ASSIGN(VerifyEvidence evidence, verify_evidence_from(outcome.reply.message));
  evidence.stages.insert(evidence.stages.begin(), waited.begin(), waited.end());
  evidence.output = process_->output_tail();
  replace_if_lost(evidence.device_lost);
  if (evidence.device_lost && !evidence.trials.empty() && evidence.trials.back().fault)
    PTXBENCH_TRY(doubt(*evidence.trials.back().fault, job.judge_cubin, cancel));
  return evidence;
}

Result<TimeEvidence> DeviceWorker::time(const TimeJob& job, HostCallbacks& callbacks, const Workers::TimeHooks& hooks,
                                        const std::function<Result<GpuLock>()>& alone, const CancelToken& cancel) {
  std::vector<StageTime> waited;
  Stopwatch watch(waited);
  PTXBENCH_TRY_ASSIGN(const Turns::Turn turn, turns_.take(TurnKind::alone, &cancel));
  PTXBENCH_TRY(ensure_healthy(job.judge_cubin, cancel));
  watch.lap("turn");
  PTXBENCH_TRY_ASSIGN(const GpuLock lock, alone());
  watch.lap("quiet");
  if (hooks.before) hooks.before();
  const nanoseconds time = time_for(planned_runs(job), job.run_deadline_ns) + 2 * nanoseconds(std::min(job.budget_ns, kMostDeadlineNs));
  Result<CallOutcome> outcome = call(to_message(job), time, job.workload, job.judge_cubin, callbacks, cancel);
  if (hooks.after) hooks.after();
  if (!outcome) return std::move(outcome).error();
  if (outcome->died) {
    if (environment_died(outcome->death)) {
      replace_if_lost(true);
      return death_error(outcome->death);
    }
    TimeEvidence evidence;
    evidence.protocol = job.protocol;
    evidence.fault = fault_of(outcome->death);
    evidence.device_lost = true;
    replace_if_lost(true);
    PTXBENCH_TRY(doubt(*evidence.fault, job.judge_cubin, cancel));
    return evidence;
  }
  PTXBENCH_TRY_ASSIGN(TimeEvidence evidence, time_evidence_from(outcome->reply.message));
  evidence.stages.insert(evidence.stages.begin(), waited.begin(), waited.end());
  replace_if_lost(evidence.device_lost);
  if (evidence.device_lost && evidence.fault) PTXBENCH_TRY(doubt(*evidence.fault, job.judge_cubin, cancel));
  return evidence;
}

}  // namespace ptxbench
