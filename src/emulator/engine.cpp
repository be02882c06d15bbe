// A grid over host threads: clusters that do not speak to each other are run one after the other by each thread; those
// that do are interleaved by one thread, as many as the machine holds at a time.
#include "emulator/engine.hpp"

#include "emulator/memory.hpp"
#include "emulator/schedule.hpp"

#include <algorithm>
#include <map>
#include <new>
#include <thread>

namespace ptxbench::emulator {
namespace {

constexpr unsigned kRoundsInARow = 1 << 10;  // of a cluster that does not wait, where clusters are not kept in step

struct Found {  // of one cluster
  std::vector<Remark> remarks;
  std::string output;
  bool output_cut = false;
};

// Brings clusters on of which none can run. False: a deadlock.
class Unblocker {
 public:
  explicit Unblocker(std::vector<ClusterRunner*> runners) : runners_(std::move(runners)) {}
  void set(std::vector<ClusterRunner*> runners) {
    runners_ = std::move(runners);
    gave_up_ = false;
  }

  bool unblock() {
    std::uint64_t world = 0;
    for (ClusterRunner* r : runners_) world += r->cluster().progress;
    bool any = false;
    if (world != released_at_) {
      released_at_ = world;
      gave_up_ = false;
      for (ClusterRunner* r : runners_) any = r->release_time() || any;
      if (any) return true;
    }
    for (ClusterRunner* r : runners_) any = r->advance() || any;
    if (any) return true;
    // Whoever may give up waiting does so once. If after that everybody is where he was, it is a deadlock.
    std::uint64_t fingerprint = world * 0x9e3779b97f4a7c15u;
    bool ends = false;
    for (ClusterRunner* r : runners_) {
      fingerprint = fingerprint * 1099511628211u + r->fingerprint();
      ends = ends || r->may_end_by_itself();
    }
    if (gave_up_ && fingerprint == fingerprint_) {
      if (!ends || ++fruitless_ > kFruitless) return false;
    } else {
      fruitless_ = 0;
    }
    gave_up_ = true;
    fingerprint_ = fingerprint;
    for (ClusterRunner* r : runners_) any = r->time_out() || any;
    return any;
  }

 private:
  std::vector<ClusterRunner*> runners_;
  // Rounds of a loop that counts its tries, in which nothing happened. One that goes on beyond hangs on any machine.
  static constexpr std::uint64_t kFruitless = 100'000;
  std::uint64_t released_at_ = UINT64_MAX, fingerprint_ = 0, fruitless_ = 0;
  bool gave_up_ = false;
};

// One cluster from beginning to end.
void run_cluster(ClusterRunner& runner, Grid& grid) {
  Unblocker unblocker({&runner});
  Run& run = runner.run();
  while (!run.failed()) {
    if (runner.round()) continue;
    if (run.failed()) return;
    if (runner.done()) break;
    if (unblocker.unblock() || run.failed()) continue;
    run.raise(deadlock_fault({&runner.cluster()}, grid, 0));
  }
  if (!run.failed()) runner.drain();
}

void take(Run& run, Found& into) {
  into.remarks = std::exchange(run.remarks, {});
  into.output = std::exchange(run.output, {});
  into.output_cut = std::exchange(run.output_cut, false);
}

void add(const Run& from, Run& to) {
  for (std::size_t i = 0; i < to.counts.size(); ++i) {
    to.counts[i].warps += from.counts[i].warps;
    to.counts[i].threads += from.counts[i].threads;
  }
  to.tma_load_bytes += from.tma_load_bytes;
  to.tma_store_bytes += from.tma_store_bytes;
  to.bulk_bytes += from.bulk_bytes;
  to.steps += from.steps;
  to.shared_high_water = std::max(to.shared_high_water, from.shared_high_water);
}

void add(Found found, Run& to) {
  for (Remark& r : found.remarks) {
    const std::uint64_t times = r.times;
    to.remark(r.hazard, r.code, r.site, std::move(r.message));
    for (Remark& kept : to.remarks)
      if (kept.site.op == r.site.op && kept.code == r.code && kept.hazard == r.hazard) kept.times += times - 1;
  }
  to.print(found.output);
  to.output_cut = to.output_cut || found.output_cut;
}

Run run_apart(Grid& grid, std::uint64_t clusters, unsigned threads) {
  struct Worker {
    explicit Worker(const Kernel& kernel) : run(kernel) {}
    Run run;
    std::map<std::uint64_t, Found> found;
    std::uint64_t fault_cluster = UINT64_MAX;
    bool no_memory = false;
  };
  Budget budget;
  std::atomic<std::uint64_t> next{0};
  std::vector<std::unique_ptr<Worker>> workers;
  for (unsigned i = 0; i < threads; ++i) workers.push_back(std::make_unique<Worker>(*grid.kernel));
  const auto work = [&](Worker& w, unsigned number) {
    try {
      ClusterRunner runner(grid, budget);
      for (;;) {
        const std::uint64_t index = next.fetch_add(1);
        if (index >= clusters || index > budget.lowest_fault.load()) return;
        runner.start(index, number, w.run);
        run_cluster(runner, grid);
        if (!w.run.remarks.empty() || !w.run.output.empty()) take(w.run, w.found[index]);
        if (!w.run.failed()) continue;
        w.fault_cluster = index;
        std::uint64_t lowest = budget.lowest_fault.load();
        while (index < lowest && !budget.lowest_fault.compare_exchange_weak(lowest, index)) {
        }
        return;
      }
    } catch (const std::bad_alloc&) {
      w.no_memory = true;
      budget.lowest_fault.store(0);
    }
  };
  std::vector<std::thread> running;
  for (unsigned i = 1; i < threads; ++i) running.emplace_back(work, std::ref(*workers[i]), i);
  work(*workers[0], 0);
  for (std::thread& t : running) t.join();

  Run all(*grid.kernel);
  std::map<std::uint64_t, Found> found;
  std::uint64_t fault_cluster = UINT64_MAX;
  for (const std::unique_ptr<Worker>& w : workers) {
    if (w->no_memory) throw std::bad_alloc();
    add(w->run, all);
    found.merge(w->found);
    if (w->fault_cluster >= fault_cluster) continue;
    fault_cluster = w->fault_cluster;
    all.fault = std::move(w->run.fault);
  }
  // What clusters behind the fault said depends on how far they came.
  for (auto& [index, f] : found)
    if (index <= fault_cluster) add(std::move(f), all);
  return all;
}

Run run_together(Grid& grid, std::uint64_t clusters) {
  Budget budget;
  Run run(*grid.kernel);
  const std::uint64_t size = std::uint64_t{grid.cluster_dim[0]} * grid.cluster_dim[1] * grid.cluster_dim[2];
  const std::uint64_t places =
      std::clamp<std::uint64_t>(std::uint64_t{grid.sm_count} * std::max(grid.ctas_per_sm, 1u) / size, 1, clusters);
  std::vector<std::unique_ptr<ClusterRunner>> runners;
  std::uint64_t next = 0;
  std::vector<ClusterRunner*> resident;
  for (std::uint64_t i = 0; i < places; ++i) {
    runners.push_back(std::make_unique<ClusterRunner>(grid, budget));
    runners.back()->start(next++, i, run);
    resident.push_back(runners.back().get());
  }
  Unblocker unblocker(resident);
  // Like warps: under the lazy schedule the last cluster is first, and there and under every second seed each goes on for
  // as long as it can. What holds only because all of them are at about the same place does not hold.
  const bool lazy = grid.schedule.mode == Schedule::Mode::lazy;
  const bool in_step = lazy ? false : grid.schedule.mode == Schedule::Mode::eager || (grid.schedule.seed & 1) == 0;
  if (lazy) std::reverse(resident.begin(), resident.end());
  while (!resident.empty() && !run.failed()) {
    bool any = false, changed = false;
    for (std::size_t i = 0; i < resident.size() && !run.failed();) {
      ClusterRunner& r = *resident[i];
      bool ran = r.round();
      any = any || ran;
      for (unsigned more = 0; ran && !in_step && more < kRoundsInARow; ++more) ran = r.round();
      if (!ran && r.done()) {
        r.drain();
        changed = any = true;
        if (next < clusters) {
          const auto slot = static_cast<std::uint64_t>(
              std::find_if(runners.begin(), runners.end(), [&](const auto& p) { return p.get() == &r; }) - runners.begin());
          r.start(next++, slot, run);
        } else {
          resident.erase(resident.begin() + static_cast<std::ptrdiff_t>(i));
          continue;
        }
      }
      ++i;
    }
    if (run.failed() && (run.fault->kind == FaultKind::step_limit || run.fault->kind == FaultKind::time_limit)) {
      std::vector<const Cluster*> all;
      for (const ClusterRunner* r : resident) all.push_back(&r->cluster());
      run.fault->detail = where_everybody_is(all, grid);
    }
    if (changed) unblocker.set(resident);
    if (any || run.failed() || resident.empty() || unblocker.unblock()) continue;
    if (run.failed()) break;
    std::vector<const Cluster*> all;
    for (const ClusterRunner* r : resident) all.push_back(&r->cluster());
    run.raise(deadlock_fault(all, grid, clusters - next));
  }
  return run;
}

}  // namespace

Run run_grid(Grid& grid) {
  const std::uint64_t size = std::uint64_t{grid.cluster_dim[0]} * grid.cluster_dim[1] * grid.cluster_dim[2];
  const std::uint64_t ctas = std::uint64_t{grid.dim[0]} * grid.dim[1] * grid.dim[2];
  const std::uint64_t clusters = ctas / std::max<std::uint64_t>(size, 1);
  if (clusters == 0) return Run(*grid.kernel);
  if (clusters > 1 && (grid.kernel->communicates || grid.cooperative)) return run_together(grid, clusters);
  std::uint64_t threads = grid.limits.threads != 0 ? grid.limits.threads : std::max(std::thread::hardware_concurrency(), 1u);
  threads = std::min<std::uint64_t>({threads, clusters, 256});
  return run_apart(grid, clusters, static_cast<unsigned>(threads));
}

}  // namespace ptxbench::emulator
