// What a candidate's sources see of its plan: <launch_plan.h> and macros.
#pragma once

#include "plan/model.hpp"

#include <string>
#include <utility>
#include <vector>

namespace ptxbench::plan {

// The text of <launch_plan.h>: each constant as a `constexpr` of namespace plan.
std::string launch_plan_header(const std::vector<Constant>& constants);

// The text of each macro, sorted by name.
Result<std::vector<std::pair<std::string, std::string>>> macro_texts(const LaunchPlan::Impl& plan,
                                                                     const expr::Environment& environment);

}  // namespace ptxbench::plan
