// Where ptxbench-worker is.
#pragma once

#include <ptxbench/core.hpp>

#include <string>
#include <vector>

namespace ptxbench {

// `option` if it is not empty, and nothing else then. Else the first executable file of: beside the shared
// library or program that this code is part of, in the `bin` folder next to that one's folder, both again for
// the running program, and the place where this build is installed. Errors: ErrorCode::worker, naming all.
Result<std::string> find_worker(const std::string& option);

}  // namespace ptxbench
