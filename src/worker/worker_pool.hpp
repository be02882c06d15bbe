// Workers of one kind, reused, at most so many at a time, given out in the order of asking.
#pragma once

#include "worker/worker_process.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ptxbench {

// Thread-safe; has no threads of its own.
class WorkerPool {
 public:
  // `path` is asked for before each start, until it answers.
  WorkerPool(WorkerLaunch launch, std::function<Result<std::string>()> path, int most, LogFn log);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  struct Outcome : CallOutcome {
    bool fresh = false;  // whether it was the worker's first job
  };
  // Waits for a worker and runs one job in it. A worker that dies is replaced. Errors as WorkerProcess::call.
  Result<Outcome> run(const Message& job, std::optional<std::chrono::nanoseconds> time,
                      const CancelToken& cancel, bool want_fresh = false);

  // Starts one and greets it, beside the pool's limit.
  Result<WorkerProcess> start_one(const CancelToken* cancel = nullptr);

  struct Statistics {
    std::uint64_t started = 0, died = 0;
    std::size_t waiting = 0;  // calls that wait for a place, now
    std::chrono::nanoseconds last_start{0}, last_kill_to_ready{0};
  };
  Statistics statistics() const;

 private:
  class Turn;
  Result<WorkerProcess> take(bool want_fresh, const CancelToken& cancel);
  void give_back(WorkerProcess worker);
  void note_ready(const WorkerProcess& worker);
  void note_death(pid_t pid, const WorkerDeath& death, bool harmless);
  void log(LogLevel level, const std::string& text) const;

  const WorkerLaunch launch_;
  const std::function<Result<std::string>()> path_;
  const int most_;
  const LogFn log_;
  const pid_t owner_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int running_ = 0;
  std::list<std::uint64_t> waiting_;  // tickets, in order
  std::uint64_t next_ticket_ = 0;
  std::vector<WorkerProcess> idle_;  // the most recently used last
  std::string found_path_;
  Statistics statistics_;
};

}  // namespace ptxbench
