// Whether everything that a plan refers to exists: names in expressions, kernels, tensors, workspaces, maps.
#pragma once

#include "plan/names.hpp"

namespace ptxbench::plan {

// Checks all of the plan without evaluating anything, so that a slip in a grid is told before compiling.
Result<void> check_references(const LaunchPlan::Impl& plan, const Definition& definition, const Names& names);

}  // namespace ptxbench::plan
