// Count workers as their host sees them: a process for each job, with a spare one that is started beforehand.
#pragma once

#include "count/wire.hpp"
#include "worker/worker_process.hpp"

#include <ptxbench/verify.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

namespace ptxbench {

// Thread-safe; has no threads of its own. A worker opens its device when it gets its job, so a spare one
// touches none.
class CountWorkers {
 public:
  // `launch` is asked for before each start.
  explicit CountWorkers(std::function<Result<WorkerLaunch>()> launch) : launch_(std::move(launch)) {}

  // One job in a worker that has had none; its end comes meanwhile. The caller keeps other jobs off the
  // device.
  Result<CountEvidence> count(const CountRequest& request, HostCallbacks& callbacks,
                              const CancelToken& cancel);
  // Starts the spare one if there is none. What goes wrong shows when it is used.
  void prepare();
  // Waits until workers that have done their job are gone, 2 s at most, or until cancelled.
  void settle(const CancelToken& cancel = {});

 private:
  Result<WorkerProcess> start();
  Result<WorkerProcess> take();

  const std::function<Result<WorkerLaunch>()> launch_;
  const std::shared_ptr<Graveyard> graveyard_ = std::make_shared<Graveyard>();
  std::mutex mutex_;
  std::optional<WorkerProcess> spare_;
};

}  // namespace ptxbench
