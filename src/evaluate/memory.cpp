#include "evaluate/memory.hpp"

#include "core/json.hpp"
#include "verify/native.hpp"
#include "verify/session.hpp"

#include <string>
#include <utility>
#include <variant>

namespace ptxbench {
namespace {

// Sizes that no device has need not be exact.
std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return a + b < a ? ~std::uint64_t{0} : a + b; }

std::string parts_of(const MemoryNeed& need) {
  return std::to_string(need.tensors) + " bytes of tensors, " + std::to_string(need.reference) +
         " of the reference";
}

}  // namespace

Result<MemoryNeed> memory_need(const Workload& workload, const Judging& judging) {
  PTXBENCH_TRY_ASSIGN(const TensorLayouts layouts, tensor_layouts(workload));
  MemoryNeed need;
  for (const TensorLayout& input : layouts.inputs) need.tensors = sum(need.tensors, input.bytes);
  // The library's own references: a GEMM's is in fp64, with the model's outputs beside it; an attention's in
  // fp32, and its model's a sample.
  const bool native = std::holds_alternative<NativeReference>(judging.reference);
  const bool gemm = native && match_gemm(*workload.definition).has_value();
  const bool attention = native && match_attention(*workload.definition).has_value();
  for (const TensorLayout& output : layouts.outputs) {
    need.tensors = sum(need.tensors, output.bytes);
    need.reference = sum(need.reference, output.bytes);  // taken away
    if (!attention) need.reference = sum(need.reference, output.bytes);
    if (gemm || attention) need.reference = sum(need.reference, (gemm ? 8 : 4) * output.elements);
  }
  return need;
}

Result<void> check_memory(const MemoryNeed& need, const DeviceInfo& device, const EvaluateOptions& options) {
  const auto refuse = [&](const std::string& why) {
    return make_error(ErrorCode::no_memory, "the workload needs at least " + parts_of(need) + "; " + why, {},
                      "memory");
  };
  if (options.memory_budget_bytes && need.tensors > *options.memory_budget_bytes)
    return refuse("the option memory_budget_bytes allows " + std::to_string(*options.memory_budget_bytes) +
                  " for tensors and workspaces");
  const std::uint64_t memory = device.limits.memory_bytes;
  if (memory != 0 && sum(need.tensors, need.reference) > memory)
    return refuse(device.id + " (" + device.name + ") has " + std::to_string(memory));
  return {};
}

std::optional<Finding> check_workspaces(const MemoryNeed& need, std::uint64_t workspaces,
                                        const DeviceInfo& device) {
  const std::uint64_t memory = device.limits.memory_bytes;
  if (memory == 0 || workspaces == 0 || sum(sum(need.tensors, need.reference), workspaces) <= memory)
    return std::nullopt;
  Finding finding;
  finding.code = "workspace_limit";
  finding.severity = Severity::error;
  finding.message = "the candidate's workspaces have " + std::to_string(workspaces) +
                    " bytes; beside at least " + parts_of(need) + " they do not fit into the " +
                    std::to_string(memory) + " bytes of " + device.name;
  json::Writer w;
  w.begin_object().field("workspace_bytes", workspaces).field("tensor_bytes", need.tensors);
  w.field("reference_bytes", need.reference).field("memory_bytes", memory).end_object();
  finding.evidence = std::move(w).str();
  return finding;
}

}  // namespace ptxbench
