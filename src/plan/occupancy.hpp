// Occupancy from a device's limits and a kernel's resources, where no driver can be asked.
#pragma once

#include <ptxbench/plan.hpp>

#include <cstdint>
#include <vector>

namespace ptxbench {

// CTAs of `kernel` that are resident on one SM at a time, by the allocation rules of compute capability 9.0
// and 10.0 (CUDA C++ Programming Guide, "Compute Capabilities"; cuda_occupancy.h of the toolkit): registers
// are given to warps in units of 256, warps in fours; shared memory in units of 128 bytes, plus the system's
// share.
std::int64_t static_occupancy(const DeviceLimits& limits, const KernelInfo& kernel, std::uint32_t threads,
                              std::uint64_t dynamic_shared_bytes);

// Answers occupancy(kernel) and max_active_clusters(kernel) from `limits` and `modules` alone. Clusters: as
// many as fit if every SM could serve any cluster; a real device, whose clusters stay within a GPC, may hold
// fewer.
DeviceQueries static_queries(DeviceLimits limits, std::vector<ModuleInfo> modules);

}  // namespace ptxbench
