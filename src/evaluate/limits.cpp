#include "evaluate/limits.hpp"

#include "core/json.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace ptxbench {
namespace {

// "<what> is <value>; the option limits.<option> allows <limit>"
Finding exceeded(std::string_view code, std::string_view option, const std::string& what, std::uint64_t value,
                 std::uint64_t limit) {
  Finding finding;
  finding.code = std::string(code);
  finding.severity = Severity::error;
  finding.message = what + " " + std::to_string(value) + "; the option limits." + std::string(option) +
                    " allows " + std::to_string(limit);
  json::Writer w;
  w.begin_object()
      .field("limit", "limits." + std::string(option))
      .field("value", value)
      .field("allowed", limit)
      .end_object();
  finding.evidence = std::move(w).str();
  return finding;
}

}  // namespace

std::optional<Finding> check_sources(const Solution& solution, const CandidateLimits& limits) {
  std::uint64_t bytes = 0;
  for (const SourceFile& file : solution.sources) bytes += file.content.size();
  if (bytes <= limits.source_bytes) return std::nullopt;
  return exceeded("source_limit", "source_bytes", "the bytes of the candidate's files together are", bytes,
                  limits.source_bytes);
}

std::optional<Finding> check_globals(const std::vector<ModuleInfo>& modules, const CandidateLimits& limits) {
  std::uint64_t bytes = 0, largest = 0;
  std::string name;
  for (const ModuleInfo& module : modules)
    for (const GlobalInfo& global : module.globals) {
      bytes = bytes + global.bytes < bytes ? ~std::uint64_t{0} : bytes + global.bytes;
      if (global.bytes <= largest) continue;
      largest = global.bytes;
      name = global.symbol;
    }
  if (bytes <= limits.global_bytes) return std::nullopt;
  return exceeded("globals_limit", "global_bytes",
                  "`__device__` and `__constant__` variables are for small things, workspaces for large "
                  "ones: the largest is " +
                      name + " with " + std::to_string(largest) + " bytes, and all of them have",
                  bytes, limits.global_bytes);
}

std::optional<Finding> check_plan(const ResolvedPlan& plan, const CandidateLimits& limits) {
  if (plan.operations.size() > limits.steps)
    return exceeded("plan_limit", "steps", "the operations of one run, repeats counted, are",
                    plan.operations.size(), limits.steps);
  for (const ResolvedOperation& operation : plan.operations) {
    const auto* launch = std::get_if<ResolvedLaunch>(&operation);
    if (launch == nullptr) continue;
    // At most 2^31 * 2^16 * 2^16.
    const std::uint64_t ctas = std::uint64_t{launch->grid[0]} * launch->grid[1] * launch->grid[2];
    if (ctas > limits.grid_ctas)
      return exceeded("grid_limit", "grid_ctas",
                      "steps/" + std::to_string(launch->step) + " (" + launch->name + "): its CTAs are", ctas,
                      limits.grid_ctas);
  }
  const std::uint64_t bytes = workspace_bytes(plan);
  if (limits.workspace_bytes && bytes > *limits.workspace_bytes)
    return exceeded("workspace_limit", "workspace_bytes",
                    "the bytes of the candidate's workspaces together are", bytes, *limits.workspace_bytes);
  return std::nullopt;
}

}  // namespace ptxbench
