// Named barriers and the cluster's, as exits see them.
#pragma once

#include "emulator/machine.hpp"

namespace ptxbench::emulator {

// Threads of @p warp have exited: barriers that waited for them only are complete.
void barriers_after_exit(Cta& cta, Warp& warp);
void cluster_barrier_after_exit(Cluster& cluster);

}  // namespace ptxbench::emulator
