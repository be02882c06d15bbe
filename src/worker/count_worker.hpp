// Count workers as their host sees them: a process for each job, with a spare one that is started beforehand.
#pragma once

#include "count/wire.hpp"
#include "worker/worker_process.hpp"

#include <ptxbench/verify.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace ptxbench {

// Thread-safe; has no threads of its own. A spare worker opens CUDA's libraries and its device, a context with it, before it says
// hello: nothing of that falls into a job or a timing.
class CountWorkers {
 public:
  // Asked for before each start; with what to open for one that is to be warm.
  using Launch = std::function<Result<WorkerLaunch>(const WarmStart* warm)>;
  explicit CountWorkers(Launch launch) : launch_(std::move(launch)) {}

  // One job in a worker that has had none; its end comes meanwhile. The caller keeps other jobs off the
  // device.
  Result<CountEvidence> count(const CountRequest& request, HostCallbacks& callbacks,
                              const CancelToken& cancel);
  // A job will come: starts a spare one for it, unless there are as many as jobs are expected on its device, or three. What goes
  // wrong shows when it is used.
  void prepare(const WarmStart& warm);
  // Waits until workers that have done their job are gone, 2 s at most, and spare ones are ready, or until cancelled. No job may
  // begin meanwhile.
  void settle(const CancelToken& cancel = {});

 private:
  struct Spare {
    std::string device;
    WorkerProcess process;
  };
  Result<WorkerProcess> start(const WarmStart* warm);
  std::optional<WorkerProcess> take_spare(const std::string& device);

  const Launch launch_;
  const std::shared_ptr<Graveyard> graveyard_ = std::make_shared<Graveyard>();
  void start_spares(const WarmStart& warm);  // under the lock

  std::mutex mutex_;
  std::vector<Spare> spares_;
  std::map<std::string, std::size_t> expected_;  // by device: jobs that were announced and have not come
  bool settling_ = false;     // the spare ones are in `settle`'s hands
};

}  // namespace ptxbench
