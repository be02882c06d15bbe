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

Result<WorkerProcess> CountWorkers::start(const WarmStart* warm) {
  PTXBENCH_TRY_ASSIGN(WorkerLaunch launch, launch_(warm));
  launch.graveyard = graveyard_;
  return WorkerProcess::launch(launch);
}

void CountWorkers::prepare(const WarmStart& warm) {
  const std::lock_guard lock(mutex_);
  std::size_t& expected = expected_[warm.device];
  expected = std::min(expected + 1, kMostSpares);
  start_spares(warm);
}

void CountWorkers::start_spares(const WarmStart& warm) {
  if (settling_) return;
  std::erase_if(spares_, [](Spare& spare) { return !spare.process.ready(); });
  auto have = static_cast<std::size_t>(
      std::count_if(spares_.begin(), spares_.end(), [&](const Spare& spare) { return spare.device == warm.device; }));
  for (; have < std::max<std::size_t>(expected_[warm.device], 1); ++have) {
    Result<WorkerProcess> started = start(&warm);
    if (!started) return;
    spares_.push_back({warm.device, std::move(*started)});
  }
}

void CountWorkers::settle(const CancelToken& cancel) {
  const auto until = SteadyClock::now() + kSettle;
  for (graveyard_->collect(); graveyard_->size() > 0 && SteadyClock::now() < until && !cancel.triggered(); graveyard_->collect())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::vector<Spare> spares;
  {
    const std::lock_guard lock(mutex_);
    spares.swap(spares_);
    settling_ = true;
  }
  // One that was not waited for is still starting; one that did not start is of no use.
  std::erase_if(spares, [&](Spare& spare) { return !spare.process.greet(&cancel) && !cancel.triggered(); });
  const std::lock_guard lock(mutex_);
  settling_ = false;
  spares_.swap(spares);
}

std::optional<WorkerProcess> CountWorkers::take_spare(const std::string& device) {
  const std::lock_guard lock(mutex_);
  std::size_t& expected = expected_[device];
  expected -= expected > 0 ? 1 : 0;
  std::erase_if(spares_, [](Spare& spare) { return !spare.process.ready(); });
  const auto found = std::find_if(spares_.begin(), spares_.end(),
                                  [&](const Spare& spare) { return spare.device == device; });  // started first
  if (found == spares_.end()) return std::nullopt;
  WorkerProcess process = std::move(found->process);
  spares_.erase(found);
  return process;
}

Result<CountEvidence> CountWorkers::count(const CountRequest& request, HostCallbacks& callbacks,
                                          const CancelToken& cancel) {
  const Message job = to_message(request);
  const nanoseconds time = kAround + nanoseconds(std::min(request.job.run_deadline_ns, kMostDeadlineNs));
  for (int attempt = 0;; ++attempt) {
    std::optional<WorkerProcess> worker = take_spare(request.device);
    // One that does not come up while it opens its libraries and its device says nothing yet: a cold one tells its host what is wrong.
    if (worker && !worker->greet(&cancel)) {
      if (cancel.triggered()) return make_error(ErrorCode::cancelled, "cancelled");
      worker.reset();
    }
    if (!worker) {
      PTXBENCH_TRY_ASSIGN(worker, start(nullptr));
    }
    {
      const std::lock_guard lock(mutex_);
      start_spares({request.cuda_home, request.device});  // the next job's
    }
    PTXBENCH_TRY_ASSIGN(CallOutcome outcome, worker->call(job, {}, {time, &cancel},
                                                          answer_callbacks(request.job.workload, callbacks)));
    if (!outcome.died) return count_evidence_from(outcome.reply.message);
    // One that ended before it had begun says nothing about the job: another takes it, once.
    if (outcome.death.begun || attempt > 0) return evidence_of(outcome.death);
  }
}

}  // namespace ptxbench
