// The buffers of a run (inputs, outputs, workspaces), and the steps that fill and copy them.
#pragma once

#include "plan/model.hpp"
#include "plan/tensor_map.hpp"

#include <string_view>
#include <vector>

namespace ptxbench::plan {

// The definition's inputs and outputs with the workload's shapes; scalars left out.
Result<std::vector<Buffer>> tensor_buffers(const Workload& workload);

// Evaluates the workspaces, appends them to `buffers` and `out`. What does not fit the device beside the
// tensors is an error with the rule workspace_limit.
Result<void> resolve_workspaces(const LaunchPlan::Impl& plan, const BoundPlan::Impl& bound,
                                const expr::Environment& environment, std::vector<Buffer>& buffers,
                                std::vector<ResolvedWorkspace>& out);

// Tensors, then workspaces; their names are disjoint. Null: there is none.
const Buffer* find_any_buffer(const std::vector<Buffer>& buffers, std::string_view name);

struct BufferContext {
  const LaunchPlan::Impl& plan;
  const std::vector<Buffer>& buffers;
  expr::Environment environment;
};
Result<ResolvedMemset> resolve_memset(const BufferContext& context, const Step& step,
                                      const MemsetStep& memset);
Result<ResolvedCopy> resolve_copy(const BufferContext& context, const Step& step, const CopyStep& copy);

}  // namespace ptxbench::plan
