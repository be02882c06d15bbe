#include "worker/worker_pool.hpp"

#include <unistd.h>

#include <algorithm>

namespace ptxbench {

// The right to use one of the pool's places, in the order of asking.
class WorkerPool::Turn {
 public:
  explicit Turn(WorkerPool& pool) : pool_(pool) {}
  ~Turn() {
    if (!held_) return;
    const std::lock_guard lock(pool_.mutex_);
    --pool_.running_;
    pool_.changed_.notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  bool wait(const CancelToken& cancel) {
    std::unique_lock lock(pool_.mutex_);
    const auto place = pool_.waiting_.insert(pool_.waiting_.end(), pool_.next_ticket_++);
    while (!(pool_.running_ < pool_.most_ && place == pool_.waiting_.begin())) {
      if (cancel.triggered()) {
        pool_.waiting_.erase(place);
        pool_.changed_.notify_all();
        return false;
      }
      pool_.changed_.wait_for(lock, std::chrono::milliseconds(10));
    }
    pool_.waiting_.erase(place);
    ++pool_.running_;
    held_ = true;
    pool_.changed_.notify_all();  // the next may have a place too
    return true;
  }

 private:
  WorkerPool& pool_;
  bool held_ = false;
};

WorkerPool::WorkerPool(WorkerLaunch launch, std::function<Result<std::string>()> path, int most, LogFn log)
    : launch_([&] {
        if (!launch.graveyard) launch.graveyard = std::make_shared<Graveyard>();
        return std::move(launch);
      }()),
      path_(std::move(path)),
      most_(std::max(most, 1)),
      log_(std::move(log)),
      owner_(::getpid()) {}

WorkerPool::~WorkerPool() = default;

void WorkerPool::log(LogLevel level, const std::string& text) const {
  if (log_) log_(level, text);
}

Result<WorkerProcess> WorkerPool::start_one(const CancelToken* cancel) {
  WorkerLaunch launch = launch_;
  {
    const std::lock_guard lock(mutex_);
    launch.path = found_path_;
  }
  if (launch.path.empty()) {
    PTXBENCH_TRY_ASSIGN(launch.path, path_());
  }
  PTXBENCH_TRY_ASSIGN(WorkerProcess worker, WorkerProcess::launch(launch));
  PTXBENCH_TRY(worker.greet(cancel));
  note_ready(worker);
  const std::lock_guard lock(mutex_);
  found_path_ = launch.path;
  return worker;
}

void WorkerPool::note_ready(const WorkerProcess& worker) {
  {
    const std::lock_guard lock(mutex_);
    ++statistics_.started;
    statistics_.last_start = worker.start_time();
    if (worker.kill_to_ready().count() > 0) statistics_.last_kill_to_ready = worker.kill_to_ready();
  }
  log(LogLevel::debug, launch_.arguments.kind + " worker " + std::to_string(worker.pid()) + " started in " +
                           std::to_string(worker.start_time().count() / 1000) + " us");
}

// An idle worker that is alive, or a new one. One that ended while idle (it had grown, or somebody killed it)
// is nobody's fault.
Result<WorkerProcess> WorkerPool::take(bool want_fresh, const CancelToken& cancel) {
  for (;;) {
    std::optional<WorkerProcess> worker;
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        // A fresh one is wanted where an old one failed: of those that are idle, take the one to replace.
        auto which = want_fresh ? std::find_if(idle_.begin(), idle_.end(),
                                               [](const WorkerProcess& w) { return w.jobs_done() == 0; })
                                : std::prev(idle_.end());
        if (which == idle_.end()) which = idle_.begin();
        worker.emplace(std::move(*which));
        idle_.erase(which);
      }
    }
    if (!worker) break;
    if (!worker->ready() || (want_fresh && worker->jobs_done() > 0)) continue;  // ends it
    return std::move(*worker);
  }
  return start_one(&cancel);
}

void WorkerPool::give_back(WorkerProcess worker) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(worker));
}

Result<WorkerPool::Outcome> WorkerPool::run(const Message& job, std::optional<std::chrono::nanoseconds> time,
                                            const CancelToken& cancel, bool want_fresh) {
  if (owner_ != ::getpid())
    return make_error(ErrorCode::state,
                      "this process is a forked copy of the one that made these workers; only after "
                      "exec can it make its own");
  Turn turn(*this);
  if (!turn.wait(cancel)) return make_error(ErrorCode::cancelled, "cancelled while waiting for a worker");
  // A worker that ends before it has begun the job (it had grown, or somebody killed it) says nothing about
  // the job.
  constexpr int kMostAttempts = 3;
  for (int attempt = 1;; ++attempt) {
    PTXBENCH_TRY_ASSIGN(WorkerProcess worker, take(want_fresh, cancel));
    const bool fresh = worker.jobs_done() == 0;
    const bool unready = worker.start_time().count() == 0;
    const pid_t pid = worker.pid();
    auto result = worker.call(job, {}, {time, &cancel});
    if (unready && worker.start_time().count() > 0) note_ready(worker);
    const WorkerDeath* death = result && result->died ? &result->death : nullptr;
    if (death == nullptr) {
      if (worker.ready()) give_back(std::move(worker));
      if (!result) return std::move(result).error();
      return Outcome{{std::move(result).value()}, fresh};
    }
    const bool again = !death->begun && death->kind != WorkerDeath::Kind::deadline && attempt < kMostAttempts;
    note_death(pid, *death, again);
    // Its replacement gets ready while the host goes on; what goes wrong here shows when it is used.
    if (worker.restart()) give_back(std::move(worker));
    if (!again) return Outcome{{std::move(result).value()}, fresh};
  }
}

void WorkerPool::note_death(pid_t pid, const WorkerDeath& death, bool harmless) {
  if (!harmless) {
    const std::lock_guard lock(mutex_);
    ++statistics_.died;
  }
  log(harmless ? LogLevel::debug : LogLevel::info, launch_.arguments.kind + " worker " + std::to_string(pid) +
                                                       (harmless ? " ended before its job (" : " died (") +
                                                       std::string(death_name(death.kind)) +
                                                       "): " + death.description);
}

WorkerPool::Statistics WorkerPool::statistics() const {
  const std::lock_guard lock(mutex_);
  Statistics result = statistics_;
  result.waiting = waiting_.size();
  return result;
}

}  // namespace ptxbench
