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
constexpr std::size_t kMostSpares = 3;

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

Result<WorkerProcess> CountWorkers::start(const std::string* warm_cuda_home) {
  PTXBENCH_TRY_ASSIGN(WorkerLaunch launch, launch_(warm_cuda_home));
  launch.graveyard = graveyard_;
  return WorkerProcess::launch(launch);
}

void CountWorkers::prepare(const std::string& cuda_home) {
  const std::lock_guard lock(mutex_);
  expected_ = std::min(expected_ + 1, kMostSpares);
  start_spares(cuda_home);
}

void CountWorkers::start_spares(const std::string& cuda_home) {
  if (settling_) return;
  std::erase_if(spares_, [](WorkerProcess& spare) { return !spare.ready(); });
  while (spares_.size() < std::max<std::size_t>(expected_, 1)) {
    Result<WorkerProcess> started = start(&cuda_home);
    if (!started) return;
    spares_.push_back(std::move(*started));
  }
}

void CountWorkers::settle(const CancelToken& cancel) {
  const auto until = SteadyClock::now() + kSettle;
  for (graveyard_->collect(); graveyard_->size() > 0 && SteadyClock::now() < until && !cancel.triggered(); graveyard_->collect())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::vector<WorkerProcess> spares;
  {
    const std::lock_guard lock(mutex_);
    spares.swap(spares_);
    settling_ = true;
  }
  // One that was not waited for is still starting; one that did not start is of no use.
  std::erase_if(spares, [&](WorkerProcess& spare) { return !spare.greet(&cancel) && !cancel.triggered(); });
  const std::lock_guard lock(mutex_);
  settling_ = false;
  spares_.swap(spares);
}

std::optional<WorkerProcess> CountWorkers::take_spare() {
  const std::lock_guard lock(mutex_);
  expected_ -= expected_ > 0 ? 1 : 0;
  std::erase_if(spares_, [](WorkerProcess& spare) { return !spare.ready(); });
  if (spares_.empty()) return std::nullopt;
  WorkerProcess spare = std::move(spares_.front());  // started first
  spares_.erase(spares_.begin());
  return spare;
}

Result<CountEvidence> CountWorkers::count(const CountRequest& request, HostCallbacks& callbacks,
                                          const CancelToken& cancel) {
  const Message job = to_message(request);
  const nanoseconds time = kAround + nanoseconds(std::min(request.job.run_deadline_ns, kMostDeadlineNs));
  for (int attempt = 0;; ++attempt) {
    std::optional<WorkerProcess> worker = take_spare();
    // One that does not come up while it opens its libraries says nothing yet: a cold one tells its host what is wrong.
    if (worker && !worker->greet(&cancel)) {
      if (cancel.triggered()) return make_error(ErrorCode::cancelled, "cancelled");
      worker.reset();
    }
    if (!worker) {
      PTXBENCH_TRY_ASSIGN(worker, start(nullptr));
    }
    {
      const std::lock_guard lock(mutex_);
      start_spares(request.cuda_home);  // the next job's
    }
    PTXBENCH_TRY_ASSIGN(CallOutcome outcome, worker->call(job, {}, {time, &cancel},
                                                          answer_callbacks(request.job.workload, callbacks)));
    if (!outcome.died) return count_evidence_from(outcome.reply.message);
    // One that ended before it had begun says nothing about the job: another takes it, once.
    if (outcome.death.begun || attempt > 0) return evidence_of(outcome.death);
  }
}

}  // namespace ptxbench
