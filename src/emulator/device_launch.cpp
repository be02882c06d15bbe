// Launching: what a launch is refused for, running it, and how many CTAs fit.
#include "core/guard.hpp"
#include "emulator/device.hpp"
#include "emulator/engine.hpp"
#include "plan/occupancy.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

namespace ptxbench::emulator {
namespace {

std::uint64_t product(const std::array<std::uint32_t, 3>& extent) {
  return std::uint64_t{extent[0]} * extent[1] * extent[2];
}
std::string text(const std::array<std::uint32_t, 3>& extent) {
  return std::to_string(extent[0]) + " x " + std::to_string(extent[1]) + " x " + std::to_string(extent[2]);
}
// Each extent by itself first: the product may not fit.
bool within(const std::array<std::uint32_t, 3>& extent, const std::array<std::int64_t, 3>& most) {
  for (std::size_t i = 0; i < 3; ++i)
    if (extent[i] < 1 || extent[i] > most[i]) return false;
  return true;
}

DeviceFault refused(std::string_view symbol, std::string why) {
  DeviceFault fault;
  fault.kind = DeviceFault::Kind::launch_refused;
  fault.name = "launch_refused";
  fault.message = std::string(symbol) + ": " + std::move(why);
  return fault;
}

// Device memory that lives as long as a launch: its parameters, a cooperative grid's workspace.
class LaunchBlock {
 public:
  static Result<LaunchBlock> make(Memory& memory, std::span<const std::uint8_t> bytes, std::uint64_t size, bool read_only,
                                  std::string name) {
    LaunchBlock block;
    size = std::max<std::uint64_t>({bytes.size(), size, 1});
    PTXBENCH_TRY_ASSIGN(block.address_, memory.allocate(size, read_only));
    block.memory_ = &memory;
    if (!bytes.empty()) std::memcpy(memory.host(block.address_, size), bytes.data(), bytes.size());
    MemoryLabel label;
    label.role = MemoryLabel::Role::variable;
    label.name = std::move(name);
    memory.name(block.address_, size, std::move(label));
    return block;
  }
  LaunchBlock(LaunchBlock&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), address_(other.address_) {}
  LaunchBlock& operator=(LaunchBlock&&) = delete;
  ~LaunchBlock() {
    if (memory_ != nullptr) memory_->release(address_);
  }
  std::uint64_t address() const { return address_; }

 private:
  LaunchBlock() = default;
  Memory* memory_ = nullptr;
  std::uint64_t address_ = 0;
};

}  // namespace

std::vector<int> sms_by_gpc(std::int64_t sm_count) {
  if (sm_count == 132) return {16, 16, 16, 16, 16, 16, 18, 18};
  std::vector<int> gpcs;
  for (std::int64_t left = sm_count; left > 0; left -= 18) gpcs.push_back(static_cast<int>(std::min<std::int64_t>(left, 18)));
  return gpcs;
}

std::int64_t clusters_that_fit(std::int64_t sm_count, std::int64_t ctas_per_sm, std::uint32_t size) {
  std::int64_t clusters = 0;
  for (const int sms : sms_by_gpc(sm_count)) clusters += sms * ctas_per_sm / std::max(size, 1u);
  return clusters;
}

std::optional<std::string> Emulator::refusal(const DeviceLaunch& launch, const KernelInfo& info, const Kernel& kernel,
                                             std::int64_t ctas_per_sm) const {
  const DeviceLimits& limits = info_.limits;
  if (!within(launch.grid, limits.max_grid)) return "the grid " + text(launch.grid) + " is out of range";
  if (!within(launch.block, limits.max_block) || product(launch.block) > static_cast<std::uint64_t>(limits.max_threads_per_cta))
    return "the block " + text(launch.block) + " is out of range; a CTA has at most " +
           std::to_string(limits.max_threads_per_cta) + " threads";
  if (info.required_block && *info.required_block != launch.block)
    return "the block is " + text(launch.block) + ", but the code requires " + text(*info.required_block) + " (.reqntid)";
  if (info.max_block && product(launch.block) > product(*info.max_block))
    return "the block has " + std::to_string(product(launch.block)) + " threads, but the code is compiled for at most " +
           std::to_string(product(*info.max_block)) + " (.maxntid)";
  const std::array<std::uint32_t, 3> cluster = launch.has_cluster ? launch.cluster : std::array<std::uint32_t, 3>{1, 1, 1};
  if (info.required_cluster && *info.required_cluster != cluster)
    return "the cluster is " + text(cluster) + ", but the code requires " + text(*info.required_cluster) + " (.reqnctapercluster)";
  if (info.explicit_cluster && !launch.has_cluster) return "the code wants to be launched with a cluster (.explicitcluster)";
  const std::int64_t most = limits.max_cluster;
  if (!within(cluster, {most, most, most}) || product(cluster) > static_cast<std::uint64_t>(most))
    return "a cluster of " + text(cluster) + "; there are at most " + std::to_string(most) + " CTAs in one";
  for (std::size_t i = 0; i < 3; ++i)
    if (launch.grid[i] % cluster[i] != 0)
      return "the grid " + text(launch.grid) + " is not a multiple of the cluster " + text(cluster);
  const std::uint64_t shared = launch.dynamic_shared_bytes + kernel.static_shared_bytes;
  if (launch.dynamic_shared_bytes > static_cast<std::uint64_t>(limits.smem_optin_bytes) ||
      shared > static_cast<std::uint64_t>(limits.smem_optin_bytes))
    return std::to_string(launch.dynamic_shared_bytes) + " bytes of dynamic and " + std::to_string(kernel.static_shared_bytes) +
           " of static shared memory are more than the " + std::to_string(limits.smem_optin_bytes) + " that a CTA can have";
  if (ctas_per_sm < 1)
    return "a CTA of " + std::to_string(product(launch.block)) + " threads with " + std::to_string(info.registers) +
           " registers each needs more than an SM has";
  if (launch.has_cluster && clusters_that_fit(limits.sm_count, ctas_per_sm, static_cast<std::uint32_t>(product(cluster))) < 1)
    return "a cluster of " + text(cluster) + " does not fit on " + std::to_string(limits.sm_count) + " SMs with " +
           std::to_string(ctas_per_sm) + " of its CTAs on each";
  if (launch.cooperative && product(launch.grid) > static_cast<std::uint64_t>(limits.sm_count * ctas_per_sm))
    return "a cooperative grid must be resident as a whole: " + std::to_string(product(launch.grid)) + " CTAs, and " +
           std::to_string(limits.sm_count * ctas_per_sm) + " fit";
  return std::nullopt;
}

Result<DeviceOutcome> Emulator::launch(const DeviceLaunch& launch) {
  if (launch.beside) return make_error(ErrorCode::unsupported, "the emulator runs one launch at a time");
  return guarded([&]() -> Result<DeviceOutcome> {
    PTXBENCH_TRY_ASSIGN(LoadedModule* module, module_at(launch.module));
    const KernelInfo* info = module->find(launch.symbol);
    if (info == nullptr)
      return make_error(ErrorCode::not_found, module->info().source + " has no kernel " + std::string(launch.symbol));
    if (launch.parameters.size() < info->parameter_bytes)
      return make_error(ErrorCode::invalid_argument, std::string(launch.symbol) + " takes " + std::to_string(info->parameter_bytes) +
                                                         " bytes of parameters, " + std::to_string(launch.parameters.size()) +
                                                         " were given");
    PTXBENCH_TRY_ASSIGN(const std::shared_ptr<const Kernel> kernel, module->kernel(launch.symbol));
    KernelInfo sized = *info;
    sized.static_shared_bytes = kernel->static_shared_bytes;
    const std::uint64_t threads = std::min<std::uint64_t>(product(launch.block), UINT32_MAX);
    const std::int64_t ctas_per_sm =
        static_occupancy(info_.limits, sized, static_cast<std::uint32_t>(threads), launch.dynamic_shared_bytes);
    if (std::optional<std::string> why = refusal(launch, *info, *kernel, ctas_per_sm)) {
      queue_.clear();  // the run has failed; nobody will look at what its other steps did
      return DeviceOutcome(refused(launch.symbol, std::move(*why)));
    }
    Launch queued;
    queued.kernel = kernel;
    queued.grid = launch.grid;
    queued.block = launch.block;
    queued.has_cluster = launch.has_cluster;
    if (launch.has_cluster) queued.cluster = launch.cluster;
    queued.cooperative = launch.cooperative;
    queued.dependent = launch.pdl;
    queued.dynamic_shared_bytes = static_cast<std::uint32_t>(launch.dynamic_shared_bytes);
    queued.parameters.assign(launch.parameters.begin(), launch.parameters.end());
    queued.ctas_per_sm = static_cast<std::uint32_t>(ctas_per_sm);
    queued.sm_count = static_cast<std::uint32_t>(info_.limits.sm_count);
    static_assert(static_cast<int>(Schedule::Mode::lazy) == static_cast<int>(EmulatorSchedule::Mode::lazy) &&
                  static_cast<int>(Schedule::Mode::random) == static_cast<int>(EmulatorSchedule::Mode::random));
    queued.schedule.mode = static_cast<Schedule::Mode>(schedule_.mode);
    queued.schedule.seed = schedule_.seed;
    queue_.push_back(std::move(queued));
    return DeviceOutcome{};
  });
}

Result<DeviceOutcome> Emulator::do_launch(const Launch& launch, bool next_depends, std::uint64_t deadline) {
  const Kernel& kernel = *launch.kernel;
  PTXBENCH_TRY_ASSIGN(const LaunchBlock parameters, LaunchBlock::make(memory_, launch.parameters, kernel.parameter_bytes, true,
                                                                       "parameters of " + kernel.name));
  // What cooperative_groups::this_grid() finds through %envreg1 and %envreg2: its size and a barrier, zero at first.
  constexpr std::array<std::uint8_t, 8> kWorkspace{8};
  std::optional<LaunchBlock> workspace;
  if (launch.cooperative) {
    PTXBENCH_TRY_ASSIGN(LaunchBlock block, LaunchBlock::make(memory_, kWorkspace, 0, false, "workspace of the cooperative grid"));
    workspace.emplace(std::move(block));
  }
  Grid grid;
  grid.kernel = &kernel;
  grid.memory = &memory_;
  grid.dim = launch.grid;
  grid.block = launch.block;
  grid.cluster_dim = launch.cluster;
  grid.has_cluster = launch.has_cluster;
  grid.cooperative = launch.cooperative;
  grid.dependent = launch.dependent;
  grid.remembers_writes = next_depends;
  grid.follows_global = follows_global_;
  memory_.next_launch();
  grid.dynamic_shared_bytes = launch.dynamic_shared_bytes;
  const std::uint32_t align = std::max(kernel.dynamic_shared_align, 1u);
  grid.shared_bytes = (kSystemShared + kernel.static_shared_bytes + align - 1) / align * align + launch.dynamic_shared_bytes;
  grid.parameters = parameters.address();
  if (workspace) grid.cooperative_workspace = workspace->address();
  grid.launch_index = launches_++;
  grid.sm_count = launch.sm_count;
  grid.ctas_per_sm = launch.ctas_per_sm;
  grid.schedule = launch.schedule;
  // What orders two accesses does not depend on the schedule: the first one looks for all.
  grid.finds_races = finds_races_ && grid.schedule.mode == Schedule::Mode::eager && grid.shared_bytes > kSystemShared;
  grid.limits.steps = options_.step_limit;
  grid.limits.deadline_ns = deadline;
  grid.limits.threads = options_.threads;
  Run run(kernel);
  try {
    run = run_grid(grid);
  } catch (const std::bad_alloc&) {
    run.raise({FaultKind::memory_limit, {}, "the machine has no memory for the CTAs that are resident at a time: " +
                                                std::to_string(grid.shared_bytes) + " bytes of shared memory each and " +
                                                std::to_string(kernel.local_bytes) + " bytes of local memory a thread", {}});
  }
  report_.add(launch.kernel, run);
  if (!run.fault) return DeviceOutcome{};
  if (run.fault->kind == FaultKind::unsupported)
    return make_error(ErrorCode::unsupported, place_text(kernel, run.fault->site) + ": " + run.fault->message, {}, "emulator");
  return DeviceOutcome(device_fault(kernel, *run.fault));
}

DeviceQueries Emulator::queries(std::vector<DeviceModule> modules) {
  const auto occupancy = [this, modules](const OccupancyQuery& query) -> Result<std::int64_t> {
    if (query.module >= modules.size()) return make_error(ErrorCode::invalid_argument, "no such module");
    PTXBENCH_TRY_ASSIGN(const LoadedModule* module, module_at(modules[query.module]));
    const KernelInfo* info = module->find(query.symbol);
    if (info == nullptr) return make_error(ErrorCode::not_found, module->info().source + " has no kernel " + query.symbol);
    const std::uint64_t threads = std::min<std::uint64_t>(product(query.block), UINT32_MAX);
    return static_occupancy(info_.limits, *info, static_cast<std::uint32_t>(threads), query.dynamic_shared_bytes);
  };
  DeviceQueries queries;
  queries.occupancy = occupancy;
  queries.max_active_clusters = [this, occupancy](const OccupancyQuery& query) -> Result<std::int64_t> {
    PTXBENCH_TRY_ASSIGN(const std::int64_t ctas, occupancy(query));
    const std::uint64_t size = product(query.cluster);
    if (size == 0) return make_error(ErrorCode::invalid_argument, "a cluster of no CTAs");
    if (size > static_cast<std::uint64_t>(info_.limits.max_cluster)) return std::int64_t{0};
    return clusters_that_fit(info_.limits.sm_count, ctas, static_cast<std::uint32_t>(size));
  };
  return queries;
}

}  // namespace ptxbench::emulator
