// Runs the warps of one cluster in turn.
#pragma once

#include "emulator/async.hpp"
#include "emulator/run.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ptxbench::emulator {

// What the host threads of one launch share.
struct Budget {
  std::atomic<std::uint64_t> steps{0};
  std::atomic<std::uint64_t> lowest_fault{UINT64_MAX};  // cluster: those above need not go on
};

class ClusterRunner {
 public:
  ClusterRunner(Grid& grid, Budget& budget);
  ~ClusterRunner();
  ClusterRunner(const ClusterRunner&) = delete;
  ClusterRunner& operator=(const ClusterRunner&) = delete;

  // Begins cluster @p index; what it finds goes to @p run. @p slot: which of the resident ones it is.
  void start(std::uint64_t index, std::uint64_t slot, Run& run);
  // Gives every warp that can run a turn. False where none could, or the run has stopped.
  bool round();
  // Nobody can run: what may bring the cluster on, each true where it did something. Who waits for time looks again; an
  // asynchronous operation completes; whoever may give up does.
  bool release_time();
  bool advance();
  bool time_out();
  // Ends what can still end once all threads have exited.
  void drain();

  bool done() const { return done_; }
  Cluster& cluster() { return cluster_; }
  const Cluster& cluster() const { return cluster_; }
  Run& run() { return *run_; }
  std::uint64_t steps() const { return steps_; }
  // Where every fragment is: two states that are equal, with no progress in between, are a deadlock.
  std::uint64_t fingerprint() const;
  // Whether somebody sleeps, or polls in a loop that may end by itself.
  bool may_end_by_itself() const;

 private:
  bool turn(Warp& warp, std::uint32_t quantum);
  std::size_t choose(Warp& warp);
  bool disturbed(const Warp& warp, std::size_t at) const;
  bool jumped_back(Warp& warp, Fragment& fragment, const Op& op);
  bool settle_in_flight(Warp& warp, Fragment& fragment, const Op& op);
  bool gather(Warp& warp, Fragment& fragment, const Op& op, Mask mask, bool& parked);
  bool stuck(Warp& warp);
  void reset(Cta& cta, std::uint64_t linear_id);
  void propagate(Warp& warp, const Op& op, Mask mask);
  void synchronise(Warp& warp, const Op& op, Mask mask);
  bool within_limits();
  bool awaited(const AsyncOp& op) const;

  Grid& grid_;
  Budget& budget_;
  const Kernel& kernel_;
  Run* run_ = nullptr;
  Cluster cluster_;
  std::vector<Warp*> warps_;               // of all CTAs; in random mode shuffled before each round
  std::vector<std::uint32_t> registers_;   // of all warps, with room to align
  std::vector<Mask> masks_;                // undefined by slot, predicates, undefined predicates of each warp
  std::uint64_t steps_ = 0, checked_ = 0, advanced_ = 0;
  bool random_ = false, done_ = false;
};

// deadlock.cpp. @p waiting_clusters: those that wait for a place on the machine.
Fault deadlock_fault(const std::vector<const Cluster*>& clusters, const Grid& grid, std::uint64_t waiting_clusters);
Fault partial_collective_fault(const Warp& warp, const Grid& grid);
// "CTA 0 warps 4-7 at PTX line 12 (gemm.cu:3): bar.sync" lines, for limits.
std::string where_everybody_is(const std::vector<const Cluster*>& clusters, const Grid& grid);

}  // namespace ptxbench::emulator
