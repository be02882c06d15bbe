// A cluster's memory and warps at their beginning. They are kept from one cluster to the next.
#include "emulator/mbarrier.hpp"
#include "emulator/races.hpp"
#include "emulator/schedule.hpp"
#include "emulator/vector_clocks.hpp"

#include <algorithm>

namespace ptxbench::emulator {
namespace {

constexpr std::uint32_t kRegistersPerSm = 65536;

// Registers that a thread has at launch: what the kernel's directives leave it. ptxas gives kernels with setmaxnreg as
// many as their bounds allow.
std::uint32_t launch_registers(const Grid& grid, std::uint32_t threads) {
  const ptx::Function* f = grid.kernel->function;
  if (f != nullptr && f->max_registers) return *f->max_registers;
  const std::uint32_t ctas = f != nullptr ? std::max(f->min_ctas_per_sm.value_or(1), 1u) : 1;
  const std::uint32_t rounded = (threads + 127) / 128 * 128;
  return std::min(kRegistersPerSm / (rounded * ctas) / 8 * 8, 248u);
}

}  // namespace

ClusterRunner::ClusterRunner(Grid& grid, Budget& budget)
    : grid_(grid), budget_(budget), kernel_(*grid.kernel), random_(grid.schedule.mode == Schedule::Mode::random) {
  cluster_.grid = &grid;
  cluster_.async = std::make_unique<AsyncQueue>(cluster_);
  const std::uint32_t ctas = grid.cluster_dim[0] * grid.cluster_dim[1] * grid.cluster_dim[2];
  const std::uint32_t threads = grid.block[0] * grid.block[1] * grid.block[2];
  const std::uint32_t warps = (threads + kLanes - 1) / kLanes;
  constexpr std::size_t kLine = 64 / sizeof(std::uint32_t);
  registers_.resize(std::size_t{ctas} * warps * kernel_.slot_words + kLine);
  const std::size_t slots = kernel_.slot_words / kLanes, predicates = kernel_.predicates;
  masks_.resize(std::size_t{ctas} * warps * (slots + 2 * predicates));
  std::uint32_t* registers = registers_.data();
  while (reinterpret_cast<std::uintptr_t>(registers) % 64 != 0) ++registers;
  Mask* masks = masks_.data();
  for (std::uint32_t r = 0; r < ctas; ++r) {
    auto cta = std::make_unique<Cta>();
    cta->cluster = &cluster_;
    cta->rank = r;
    cta->threads = threads;
    cta->warps.resize(warps);
    for (std::uint32_t w = 0; w < warps; ++w) {
      Warp& warp = cta->warps[w];
      warp.cta = cta.get();
      warp.index = w;
      const std::uint32_t lanes = std::min(threads - w * kLanes, kLanes);
      warp.all = lanes == kLanes ? ~Mask{0} : (Mask{1} << lanes) - 1;
      warp.regs = registers, registers += kernel_.slot_words;
      warp.undefined = masks, masks += slots;
      warp.preds = masks, masks += predicates;
      warp.preds_undefined = masks, masks += predicates;
      warp.fragments.reserve(kLanes + 1);
    }
    cluster_.ctas.push_back(std::move(cta));
  }
}

ClusterRunner::~ClusterRunner() = default;

void ClusterRunner::reset(Cta& cta, std::uint64_t linear_id) {
  cta.linear_id = linear_id;
  cta.shared.assign(grid_.shared_bytes, 0);
  cta.shared_undefined.assign((grid_.shared_bytes + 63) / 64, ~std::uint64_t{0});
  const std::size_t local = std::size_t{cta.threads} * kernel_.local_bytes;
  cta.local.assign(local, 0);
  cta.local_undefined.assign((local + 63) / 64, ~std::uint64_t{0});
  cta.barriers = std::make_unique<Barriers>();
  cta.track.reset();
  cta.named = {};
  cta.exited = 0;
  const std::uint32_t registers = launch_registers(grid_, cta.threads);
  cta.free_registers = 0;
  cta.warpgroups.assign((cta.warps.size() + 3) / 4, nullptr);
  for (Warp& warp : cta.warps) {
    warp.live = warp.all;
    std::fill_n(warp.regs, kernel_.slot_words, 0);
    std::fill_n(warp.undefined, kernel_.slot_words / kLanes, ~Mask{0});
    std::fill_n(warp.preds, kernel_.predicates, 0);
    std::fill_n(warp.preds_undefined, kernel_.predicates, ~Mask{0});
    warp.fragments.clear();
    Fragment f;
    f.mask = warp.all;
    warp.fragments.push_back(f);
    warp.register_quota = registers;
    warp.in_flight.assign(kernel_.slot_words / kLanes, 0);
    warp.in_flight_total = 0;
    warp.unfenced.assign(kernel_.any_async ? kernel_.slot_words / kLanes : 0, 1);
    warp.copies.reset();
    warp.steps = 0;
    warp.ready = true;
    warp.favoured = 0;
    warp.cluster_arrived[0] = warp.cluster_arrived[1] = 0;
  }
}

void ClusterRunner::start(std::uint64_t index, std::uint64_t slot, Run& run) {
  run_ = &run;
  run.forget_undefined_reads();
  done_ = false;
  advanced_ = steps_;
  cluster_.index = index;
  const std::array<std::uint32_t, 3>& c = grid_.cluster_dim;
  const std::uint64_t nx = grid_.dim[0] / c[0], ny = grid_.dim[1] / c[1];
  cluster_.id = {static_cast<std::uint32_t>(index % nx), static_cast<std::uint32_t>(index / nx % ny),
                 static_cast<std::uint32_t>(index / nx / ny)};
  cluster_.async = std::make_unique<AsyncQueue>(cluster_);
  if (kernel_.any_async || grid_.dependent) {
    if (!cluster_.clocks) cluster_.clocks = std::make_shared<VectorClocks>();
    cluster_.clocks->reset(cluster_);
  }
  cluster_.barrier = {};
  cluster_.progress = 0;
  cluster_.clock = 0;
  // Two clusters of one seed, and two seeds of one cluster, have nothing in common.
  std::seed_seq seed{grid_.schedule.seed & 0xffff'ffff, grid_.schedule.seed >> 32, index & 0xffff'ffff, index >> 32};
  if (random_) cluster_.random.seed(seed);
  warps_.clear();
  for (const std::unique_ptr<Cta>& cta : cluster_.ctas) {
    const std::uint32_t r = cta->rank;
    cta->id = {cluster_.id[0] * c[0] + r % c[0], cluster_.id[1] * c[1] + r / c[0] % c[1],
               cluster_.id[2] * c[2] + r / (c[0] * c[1])};
    const std::uint64_t linear = cta->id[0] + std::uint64_t{grid_.dim[0]} * (cta->id[1] + std::uint64_t{grid_.dim[1]} * cta->id[2]);
    const std::uint64_t place = slot * cluster_.ctas.size() + r;
    cta->sm = static_cast<std::uint32_t>(place % std::max(grid_.sm_count, 1u));
    cta->slot = static_cast<std::uint32_t>(place / std::max(grid_.sm_count, 1u));
    reset(*cta, linear);
    for (Warp& warp : cta->warps) warps_.push_back(&warp);
  }
  if (grid_.finds_races) {
    if (!cluster_.races) cluster_.races = std::make_shared<Races>();
    cluster_.races->reset(cluster_);
  }
  // The last warp first: what holds only because the first ones run first does not hold.
  if (grid_.schedule.mode == Schedule::Mode::lazy) std::reverse(warps_.begin(), warps_.end());
}

}  // namespace ptxbench::emulator
