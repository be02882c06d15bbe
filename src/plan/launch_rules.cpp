#include "plan/launch_rules.hpp"

#include <algorithm>

namespace ptxbench::plan {
namespace {

constexpr std::uint64_t kWarp = 32;
constexpr std::uint64_t kRegisterUnit = 256;  // registers that a warp is given are a multiple of this
constexpr std::uint64_t kWarpAllocation = 4;  // warps of a CTA are counted in fours

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

// Each dimension by itself first: the product of three may not fit.
bool too_large(const Extent& extent, std::int64_t most) {
  const auto limit = static_cast<std::uint64_t>(most);
  return std::any_of(extent.begin(), extent.end(), [&](std::uint32_t v) { return v > limit; }) ||
         extent_count(extent) > limit;
}

// What code states counts only if it means something.
bool stated(const std::optional<Extent>& extent) {
  return extent && std::all_of(extent->begin(), extent->end(), [](std::uint32_t v) { return v > 0; });
}

Error refuse(const LaunchPlan::Impl& plan, const LaunchShape& shape, const char* field, std::string message) {
  return plan.error(shape.pointer + "/" + field, shape.name + ": " + std::move(message), kLaunchRule);
}

}  // namespace

std::uint64_t extent_count(const Extent& extent) { return std::uint64_t{extent[0]} * extent[1] * extent[2]; }

std::string extent_text(const Extent& extent) {
  return std::to_string(extent[0]) + " x " + std::to_string(extent[1]) + " x " + std::to_string(extent[2]);
}

Result<void> check_shape(const LaunchPlan::Impl& plan, const LaunchShape& shape, const DeviceLimits& limits) {
  if (shape.block) {
    for (std::size_t d = 0; d < 3; ++d)
      if ((*shape.block)[d] > limits.max_block[d])
        return refuse(plan, shape, "block",
                      "block[" + std::to_string(d) + "] = " + std::to_string((*shape.block)[d]) +
                          ", but at most " + std::to_string(limits.max_block[d]) + " are allowed");
    const std::uint64_t threads = extent_count(*shape.block);
    if (threads > static_cast<std::uint64_t>(limits.max_threads_per_cta))
      return refuse(plan, shape, "block",
                    "a CTA of " + extent_text(*shape.block) + " has " + std::to_string(threads) +
                        " threads; at most " + std::to_string(limits.max_threads_per_cta) + " are allowed");
  }
  if (shape.cluster) {
    const std::uint64_t ctas = extent_count(*shape.cluster);
    if (too_large(*shape.cluster, limits.max_cluster))
      return refuse(plan, shape, "cluster",
                    "a cluster of " + extent_text(*shape.cluster) + " has " + std::to_string(ctas) +
                        " CTAs; " + limits.name + " takes at most " + std::to_string(limits.max_cluster));
  }
  if (shape.preferred_cluster) {
    if (!shape.cluster)
      return refuse(plan, shape, "preferred_cluster",
                    "a preferred cluster takes effect only beside `cluster`");
    for (std::size_t d = 0; d < 3; ++d)
      if ((*shape.preferred_cluster)[d] % (*shape.cluster)[d] != 0)
        return refuse(plan, shape, "preferred_cluster",
                      "the preferred cluster " + extent_text(*shape.preferred_cluster) +
                          " is not a multiple of the cluster " + extent_text(*shape.cluster) +
                          " in each dimension");
    if (too_large(*shape.preferred_cluster, limits.max_cluster))
      return refuse(plan, shape, "preferred_cluster",
                    "a cluster of " + extent_text(*shape.preferred_cluster) + " has more than the " +
                        std::to_string(limits.max_cluster) + " CTAs that " + limits.name + " takes");
    if (limits.compute_major < 10)
      return refuse(plan, shape, "preferred_cluster",
                    "preferred clusters need compute capability 10.0; " + limits.name + " has " +
                        std::to_string(limits.compute_major) + "." + std::to_string(limits.compute_minor));
  }
  if (shape.shared_bytes > static_cast<std::uint64_t>(limits.smem_optin_bytes))
    return refuse(plan, shape, "shared_bytes",
                  std::to_string(shape.shared_bytes) + " bytes of dynamic shared memory are more than the " +
                      std::to_string(limits.smem_optin_bytes) + " that a CTA can have on " + limits.name);
  return {};
}

Result<void> check_kernel(const LaunchPlan::Impl& plan, LaunchShape& shape, const KernelInfo& kernel,
                          const DeviceLimits& limits) {
  if (stated(kernel.required_block)) {
    if (shape.block && *shape.block != *kernel.required_block)
      return refuse(plan, shape, "block",
                    "the plan's block is " + extent_text(*shape.block) + ", but the code requires " +
                        extent_text(*kernel.required_block) + " (.reqntid)");
    shape.block = kernel.required_block;
  }
  if (!shape.block)
    return refuse(plan, shape, "block", "`block` is missing, and the code does not state it (no .reqntid)");
  if (stated(kernel.required_cluster)) {
    if (shape.cluster && *shape.cluster != *kernel.required_cluster)
      return refuse(plan, shape, "cluster",
                    "the plan's cluster is " + extent_text(*shape.cluster) + ", but the code requires " +
                        extent_text(*kernel.required_cluster) + " (.reqnctapercluster)");
    shape.cluster = kernel.required_cluster;
  } else if (kernel.explicit_cluster && !shape.cluster) {
    return refuse(plan, shape, "cluster",
                  "`cluster` is missing, and the code wants to be launched with one (.explicitcluster)");
  }
  PTXBENCH_TRY(check_shape(plan, shape, limits));  // what the code states has to fit as well
  const std::uint64_t threads = extent_count(*shape.block);
  if (stated(kernel.max_block) && threads > extent_count(*kernel.max_block))
    return refuse(plan, shape, "block",
                  "a CTA of " + extent_text(*shape.block) + " has " + std::to_string(threads) +
                      " threads, but the code is compiled for at most " +
                      std::to_string(extent_count(*kernel.max_block)) + " (.maxntid, __launch_bounds__)");
  if (kernel.static_shared_bytes + shape.shared_bytes > static_cast<std::uint64_t>(limits.smem_optin_bytes))
    return refuse(plan, shape, "shared_bytes",
                  std::to_string(shape.shared_bytes) + " bytes of dynamic and " +
                      std::to_string(kernel.static_shared_bytes) + " of static shared memory make " +
                      std::to_string(kernel.static_shared_bytes + shape.shared_bytes) + ", more than the " +
                      std::to_string(limits.smem_optin_bytes) + " that a CTA can have on " + limits.name);
  if (kernel.registers > 0) {
    const std::uint64_t warps = round_up((threads + kWarp - 1) / kWarp, kWarpAllocation);
    const std::uint64_t per_warp =
        round_up(static_cast<std::uint64_t>(kernel.registers) * kWarp, kRegisterUnit);
    if (warps * per_warp > static_cast<std::uint64_t>(limits.regs_per_cta))
      return refuse(plan, shape, "block",
                    std::to_string(threads) + " threads of " + std::to_string(kernel.registers) +
                        " registers need " + std::to_string(warps * per_warp) + " registers (allocated to " +
                        std::to_string(warps) + " warps in units of " + std::to_string(kRegisterUnit) +
                        "); a CTA has at most " + std::to_string(limits.regs_per_cta) +
                        " (use __launch_bounds__ or `compile.maxrregcount`)");
  }
  return {};
}

Result<Extent> check_grid(const LaunchPlan::Impl& plan, const LaunchShape& shape,
                          const std::vector<std::int64_t>& grid, const DeviceLimits& limits,
                          std::optional<std::int64_t> resident) {
  Extent out{1, 1, 1};
  for (std::size_t d = 0; d < grid.size(); ++d) {
    if (grid[d] < 1 || grid[d] > limits.max_grid[d])
      return refuse(plan, shape, "grid",
                    "grid[" + std::to_string(d) + "] = " + std::to_string(grid[d]) + " (`" +
                        shape.step->grid[d].text() + "`), but it must be 1 to " +
                        std::to_string(limits.max_grid[d]));
    out[d] = static_cast<std::uint32_t>(grid[d]);
  }
  for (const auto& [extent, what] :
       {std::pair{&shape.cluster, "cluster"}, std::pair{&shape.preferred_cluster, "preferred cluster"}}) {
    if (!*extent) continue;
    for (std::size_t d = 0; d < 3; ++d)
      if (out[d] % (**extent)[d] != 0)
        return refuse(plan, shape, "grid",
                      "the grid " + extent_text(out) + " is not a multiple of the " + what + " " +
                          extent_text(**extent) + " in each dimension (the grid counts CTAs)");
  }
  if (resident && extent_count(out) > static_cast<std::uint64_t>(std::max<std::int64_t>(*resident, 0)))
    return refuse(plan, shape, "grid",
                  "a cooperative launch of " + std::to_string(extent_count(out)) +
                      " CTAs: the device holds only " + std::to_string(*resident) + " at a time");
  return out;
}

}  // namespace ptxbench::plan
