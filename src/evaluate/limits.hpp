// What a candidate may take (CandidateLimits): each limit that is exceeded is a finding that names it.
#pragma once

#include <ptxbench/evaluate.hpp>

#include <optional>
#include <vector>

namespace ptxbench {

// Before anything is read: `source_limit`.
std::optional<Finding> check_sources(const Solution& solution, const CandidateLimits& limits);
// After compiling: `globals_limit`.
std::optional<Finding> check_globals(const std::vector<ModuleInfo>& modules, const CandidateLimits& limits);
// After resolving: `plan_limit`, `grid_limit`, `workspace_limit`.
std::optional<Finding> check_plan(const ResolvedPlan& plan, const CandidateLimits& limits);

}  // namespace ptxbench
