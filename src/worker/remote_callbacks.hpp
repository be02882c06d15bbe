// HostCallbacks across the process boundary: the worker asks, its tensors lie in shared memory; the host answers by
// calling what the request brought.
#pragma once

#include "worker/stage.hpp"
#include "worker/worker_process.hpp"

#include <ptxbench/verify.hpp>

namespace ptxbench {

// The worker's side.
class RemoteCallbacks final : public HostCallbacks {
 public:
  explicit RemoteCallbacks(StageHost& host) : host_(host) {}
  Result<void> fill(const Workload& workload, std::uint64_t seed, int trial, std::span<HostTensor> inputs) override;
  Result<void> compute(const Workload& workload, std::span<const HostTensor> inputs,
                       std::span<HostTensor> outputs) override;
  Result<std::vector<OutputCorrectness>> compare(const Workload& workload, std::span<const HostTensor> expected,
                                                 std::span<const HostTensor> got) override;

 private:
  StageHost& host_;
};

// The host's side: a handler that answers such asks about `workload`. Both must outlive it.
CallHandler answer_callbacks(const Workload& workload, HostCallbacks& callbacks);

}  // namespace ptxbench
