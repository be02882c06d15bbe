// What a judgement needs of a device's memory, computed before anything is allocated.
#pragma once

#include <ptxbench/evaluate.hpp>

#include <cstdint>
#include <optional>

namespace ptxbench {

struct MemoryNeed {
  std::uint64_t tensors = 0;  // the definition's inputs and outputs
  std::uint64_t reference =
      0;  // what is expected, what it is measured by, and the outputs that are taken away
};
// At least so much; a reference that is a Solution has workspaces beside.
Result<MemoryNeed> memory_need(const Workload& workload, const Judging& judging);

// That the workload fits without any candidate. Errors: no_memory (rule memory), naming each part.
Result<void> check_memory(const MemoryNeed& need, const DeviceInfo& device, const EvaluateOptions& options);

// The finding workspace_limit where the candidate's workspaces do not fit beside the rest.
std::optional<Finding> check_workspaces(const MemoryNeed& need, std::uint64_t workspaces,
                                        const DeviceInfo& device);

}  // namespace ptxbench
