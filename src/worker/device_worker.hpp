// The worker of one device as its host sees it: holds the device's context, is replaced when a candidate kills it.
#pragma once

#include "worker/gpu_lock.hpp"
#include "worker/turn.hpp"
#include "worker/worker_process.hpp"

#include <ptxbench/worker.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ptxbench {

// Thread-safe: jobs run one at a time, as their turns come.
class DeviceWorker {
 public:
  DeviceWorker(WorkerLaunch launch, std::string device, std::string cuda_home, LogFn log)
      : launch_(std::move(launch)), device_(std::move(device)), cuda_home_(std::move(cuda_home)), log_(std::move(log)) {}

  // Starts it if need be, and asks what the device is.
  Result<DeviceInfo> open(const CancelToken* cancel);
  Result<VerifyEvidence> verify(const VerifyJob& job, HostCallbacks& callbacks, const CancelToken& cancel);
  // `alone` is called when it is this job's turn, before anything runs, and what it gives is kept for so long.
  Result<TimeEvidence> time(const TimeJob& job, HostCallbacks& callbacks, const Workers::TimeHooks& hooks,
                            const std::function<Result<GpuLock>()>& alone, const CancelToken& cancel);

  // Whose turn it is on this device; also of jobs that run in a process of their own.
  Turns& turns() { return turns_; }
  const std::string& cuda_home() const { return cuda_home_; }

 private:
  Result<void> ensure_open(const CancelToken* cancel);
  // The same, and that the device works: tested after anything that may have hurt it.
  Result<void> ensure_healthy(const std::vector<std::uint8_t>& judge_cubin, const CancelToken& cancel);
  Result<void> self_test(const std::vector<std::uint8_t>& judge_cubin, const CancelToken& cancel);
  Result<void> start_and_open(const CancelToken* cancel);
  Result<CallOutcome> call(const Message& job, std::chrono::nanoseconds time, const Workload& workload,
                           const std::vector<std::uint8_t>& judge_cubin, HostCallbacks& callbacks, const CancelToken& cancel);
  void replace_if_lost(bool lost);
  // After a fault that a sick device could have caused as well as a candidate: an Error where it is sick.
  Result<void> doubt(const DeviceFault& fault, const std::vector<std::uint8_t>& judge_cubin, const CancelToken& cancel);

  const WorkerLaunch launch_;
  std::string device_;  // as asked for; once opened its id, so that a replacement opens the same one
  const std::string cuda_home_;
  const LogFn log_;
  Turns turns_;
  std::optional<WorkerProcess> process_;
  std::optional<DeviceInfo> info_;  // of the process that runs now
  // Since when the device is in doubt: a worker was killed, or had lost it.
  std::optional<SteadyClock::time_point> suspect_since_;
};

}  // namespace ptxbench
