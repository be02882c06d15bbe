// Operations with a life of their own: TMA, bulk copies, cp.async, st.async, red.async, wgmma. An instruction
// issues one; when it completes is the schedule's choice, within what the ISA allows: at once (eager), only
// when nobody can run any more (lazy), or at random. An operation reads its source and writes its destination
// when it completes, unless it says that it has two halves.
#pragma once

#include "emulator/machine.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ptxbench::emulator {

class AsyncOp {
 public:
  virtual ~AsyncOp() = default;
  // Whether it may complete now: those that the ISA orders before it are done, all warps of the warpgroup
  // have joined.
  virtual bool ready(const Cluster&) const { return true; }
  // Reads, writes, signals (raises what it finds in @p run; wakes who waits). Called once, then it is
  // destroyed; an operation with halves (a store that first reads its source and later writes) returns false
  // after the first.
  virtual bool complete(Cluster& cluster, Run& run) = 0;
  // Whether it may signal the mbarrier at @p offset of CTA @p rank; asked of operations that signal one.
  virtual bool signals(std::uint16_t rank, std::uint32_t offset) const {
    (void)rank, (void)offset;
    return true;
  }
  // For reports: "TMA load of 16384 bytes of map_a at (0, 128) for CTA 3".
  virtual std::string describe() const = 0;
  Site site;              // of the instruction that issued it
  std::uint16_t cta = 0;  // rank of the issuing CTA
  std::uint32_t warp = 0;
  // Shared memory it will still write or read in which CTAs (by rank): for "exit with work in flight".
  std::uint64_t touches_ctas = 0;  // a bit a rank
  std::uint64_t order = 0;         // number of its issue, set by the queue
};

class AsyncQueue {
 public:
  explicit AsyncQueue(Cluster& cluster) : cluster_(cluster) {}
  // Takes it over. Eager: completes it at once if ready, else as soon as it is.
  void issue(std::unique_ptr<AsyncOp> op, Run& run);
  // Something happened that may make operations ready (a warp joined). Eager ones complete.
  void poke(Run& run);
  // Called after each turn of a warp: under Mode::random completes some.
  void breathe(Run& run);
  // Nobody can run: completes one (lazy: the oldest that is ready; random: any). False where none is ready.
  bool advance(Run& run);
  // Completes the oldest that is ready and for which @p wanted holds.
  template <class Predicate>
  bool advance(Run& run, Predicate wanted) {
    for (std::size_t i = 0; i < pending_.size() && !stopped(run); ++i) {
      if (!wanted(*pending_[i]) || !pending_[i]->ready(cluster_)) continue;
      complete(i, run);
      return true;
    }
    return false;
  }
  // Completes those for which @p wanted holds, in order, as far as they are ready; for who must not go on
  // before.
  template <class Predicate>
  void finish(Predicate wanted, Run& run) {
    for (std::size_t i = 0; i < pending_.size() && !stopped(run);) {
      if (wanted(*pending_[i]) && pending_[i]->ready(cluster_))
        complete(i, run), i = 0;
      else
        ++i;
    }
  }
  bool empty() const { return pending_.empty(); }
  const std::vector<std::unique_ptr<AsyncOp>>& pending() const { return pending_; }

 private:
  bool ready(std::size_t index) const;
  void complete(std::size_t index, Run& run);
  bool complete_any(Run& run);
  static bool stopped(const Run& run);
  Cluster& cluster_;
  std::vector<std::unique_ptr<AsyncOp>> pending_;
  std::uint64_t issued_ = 0;
};

}  // namespace ptxbench::emulator
