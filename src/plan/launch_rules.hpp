// What a device refuses to launch, told before it is asked. Each error has the rule `launch_rule`.
#pragma once

#include "plan/model.hpp"

#include <cstdint>
#include <string>

namespace ptxbench::plan {

// A launch as far as it is known, for both halves of binding.
struct LaunchShape {
  std::string name;     // of the step
  std::string pointer;  // of the step
  const KernelStep* step = nullptr;
  std::optional<Extent> block, cluster, preferred_cluster;
  std::uint64_t shared_bytes = 0;
};

// Before compiling: block, cluster and shared memory against the device's limits alone.
Result<void> check_shape(const LaunchPlan::Impl& plan, const LaunchShape& shape, const DeviceLimits& limits);

// After compiling: what the kernel's code requires. Fills `block` and `cluster` where the code states them
// and the plan does not.
Result<void> check_kernel(const LaunchPlan::Impl& plan, LaunchShape& shape, const KernelInfo& kernel,
                          const DeviceLimits& limits);

// The grid, which may differ from repeat to repeat. `resident` is the number of CTAs that the device holds at
// a time, where the step is cooperative.
Result<Extent> check_grid(const LaunchPlan::Impl& plan, const LaunchShape& shape,
                          const std::vector<std::int64_t>& grid, const DeviceLimits& limits,
                          std::optional<std::int64_t> resident);

// "128 x 1 x 1"
std::string extent_text(const Extent& extent);
std::uint64_t extent_count(const Extent& extent);

}  // namespace ptxbench::plan
