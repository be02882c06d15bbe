#include "plan/occupancy.hpp"

#include <algorithm>
#include <memory>
#include <string>

namespace ptxbench {
namespace {

constexpr std::int64_t kWarp = 32;
constexpr std::int64_t kRegisterUnit = 256;  // registers a warp is given are a multiple of this
constexpr std::int64_t kWarpAllocation = 4;  // warps of a CTA are counted in fours (one a sub-partition)
constexpr std::int64_t kSharedUnit = 128;

std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

struct Known {
  DeviceLimits limits;
  std::vector<ModuleInfo> modules;

  Result<const KernelInfo*> find(const OccupancyQuery& query) const {
    if (query.module < modules.size())
      for (const KernelInfo& kernel : modules[query.module].kernels)
        if (kernel.symbol == query.symbol) return &kernel;
    return make_error(ErrorCode::not_found,
                      "no kernel " + query.symbol + " in module " + std::to_string(query.module));
  }

  Result<std::int64_t> occupancy(const OccupancyQuery& query) const {
    PTXBENCH_TRY_ASSIGN(const KernelInfo* kernel, find(query));
    return static_occupancy(limits, *kernel, query.block[0] * query.block[1] * query.block[2],
                            query.dynamic_shared_bytes);
  }
};

}  // namespace

std::int64_t static_occupancy(const DeviceLimits& limits, const KernelInfo& kernel, std::uint32_t threads,
                              std::uint64_t dynamic_shared_bytes) {
  if (threads == 0 || threads > static_cast<std::uint64_t>(limits.max_threads_per_cta)) return 0;
  const std::int64_t warps = (threads + kWarp - 1) / kWarp;
  std::int64_t ctas = std::min(limits.max_ctas_per_sm, limits.max_threads_per_sm / (warps * kWarp));
  if (kernel.registers > 0) {
    const std::int64_t per_warp = round_up(kernel.registers * kWarp, kRegisterUnit);
    const std::int64_t warps_by_registers = limits.regs_per_sm / per_warp / kWarpAllocation *
                                            kWarpAllocation;  // each sub-partition has its own file
    ctas = std::min(ctas, warps_by_registers / warps);
  }
  const auto shared = static_cast<std::int64_t>(kernel.static_shared_bytes + dynamic_shared_bytes);
  if (shared > limits.smem_optin_bytes) return 0;
  const std::int64_t per_cta = round_up(shared + limits.smem_reserved_bytes, kSharedUnit);
  if (per_cta > 0) ctas = std::min(ctas, limits.smem_per_sm_bytes / per_cta);
  return std::max<std::int64_t>(ctas, 0);
}

DeviceQueries static_queries(DeviceLimits limits, std::vector<ModuleInfo> modules) {
  auto known = std::make_shared<const Known>(Known{std::move(limits), std::move(modules)});
  DeviceQueries queries;
  queries.occupancy = [known](const OccupancyQuery& query) { return known->occupancy(query); };
  queries.max_active_clusters = [known](const OccupancyQuery& query) -> Result<std::int64_t> {
    PTXBENCH_TRY_ASSIGN(const std::int64_t ctas, known->occupancy(query));
    const std::int64_t size = std::int64_t{query.cluster[0]} * query.cluster[1] * query.cluster[2];
    if (size <= 0) return make_error(ErrorCode::invalid_argument, "a cluster of no CTAs");
    return ctas * known->limits.sm_count / size;
  };
  return queries;
}

}  // namespace ptxbench
