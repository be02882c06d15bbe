// Runs a grid: clusters over host threads, warps in turn, waiting ones parked, and what is said when nobody can run.
#pragma once

#include "emulator/run.hpp"

namespace ptxbench::emulator {

// Runs the whole grid. Never throws but bad_alloc; every problem of the kernel is in the result's `fault`.
Run run_grid(Grid& grid);

}  // namespace ptxbench::emulator
