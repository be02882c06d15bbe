// What ptxas says about each kernel's use of registers, shared memory and spills.
#pragma once

#include <ptxbench/compile.hpp>

#include <string_view>
#include <vector>

namespace ptxbench {

// From a log made with `--ptxas-options=-v` (NVRTC) or `-v` (ptxas). `kernel` and `symbol` are the symbol.
std::vector<KernelResources> parse_resources(std::string_view log);

}  // namespace ptxbench
