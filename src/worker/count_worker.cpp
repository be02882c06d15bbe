#include "worker/count_worker.hpp"

#include "worker/remote_callbacks.hpp"

#include <algorithm>
#include <thread>

namespace ptxbench {
namespace {

using std::chrono::nanoseconds;

// What a job may take beside the counted run, whose own deadline the worker keeps itself: opening the device,
// inputs, the reference, the comparison.
constexpr nanoseconds kAround = std::chrono::minutes(3);
constexpr std::uint64_t kMostDeadlineNs = std::uint64_t{1} << 55;
constexpr auto kSettle = std::chrono::seconds(2);

CountEvidence evidence_of(const WorkerDeath& death) {
  const bool hang = death.kind == WorkerDeath::Kind::deadline;
  CountEvidence evidence;
  evidence.unavailable = {hang ? CountUnavailable::Kind::hang : CountUnavailable::Kind::fault,
                          (hang ? "the count worker did not end in time: " : "the count worker died: ") +
                              death.description +
                              (death.output.empty() ? "" : "; its last output: " + death.output)};
  return evidence;
}

}  // namespace

Result<WorkerProcess> CountWorkers::start() {
  PTXBENCH_TRY_ASSIGN(WorkerLaunch launch, launch_());
  launch.graveyard = graveyard_;
  return WorkerProcess::launch(launch);
}

void CountWorkers::prepare() {
  const std::lock_guard lock(mutex_);
  if (spare_ && spare_->ready()) return;
  spare_.reset();
  if (Result<WorkerProcess> started = start()) spare_.emplace(std::move(*started));
}

void CountWorkers::settle(const CancelToken& cancel) {
  const auto until = SteadyClock::now() + kSettle;
  for (graveyard_->collect(); graveyard_->size() > 0 && SteadyClock::now() < until && !cancel.triggered(); graveyard_->collect())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

Result<WorkerProcess> CountWorkers::take() {
  {
    const std::lock_guard lock(mutex_);
    if (spare_ && spare_->ready()) {
      WorkerProcess worker = std::move(*spare_);
      spare_.reset();
      return worker;
    }
    spare_.reset();
  }
  return start();
}

Result<CountEvidence> CountWorkers::count(const CountRequest& request, HostCallbacks& callbacks,
                                          const CancelToken& cancel) {
  const Message job = to_message(request);
  const nanoseconds time = kAround + nanoseconds(std::min(request.job.run_deadline_ns, kMostDeadlineNs));
  for (int attempt = 0;; ++attempt) {
    PTXBENCH_TRY_ASSIGN(WorkerProcess worker, take());
    prepare();  // the next job's
    PTXBENCH_TRY_ASSIGN(CallOutcome outcome, worker.call(job, {}, {time, &cancel},
                                                         answer_callbacks(request.job.workload, callbacks)));
    if (!outcome.died) return count_evidence_from(outcome.reply.message);
    // One that ended before it had begun says nothing about the job: another takes it, once.
    if (outcome.death.begun || attempt > 0) return evidence_of(outcome.death);
  }
}

}  // namespace ptxbench
