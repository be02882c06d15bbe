// Library baselines that stay prepared hold memory of the device that a candidate may need.
#pragma once

#include "bench/prepared_libraries.hpp"

#include <ptxbench/verify.hpp>

#include <functional>

namespace ptxbench {

// Runs @p verify; where the device's memory ran out and @p libraries hold some of it, they are dropped and it
// runs once more.
Result<VerifyEvidence> verify_with_room(PreparedLibraries& libraries,
                                        const std::function<Result<VerifyEvidence>()>& verify);

}  // namespace ptxbench
