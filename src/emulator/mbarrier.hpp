// mbarrier objects (PTX ISA 9.7.13.15): one phase after another; a phase completes when the pending arrivals
// and the transaction count are both zero. Kept beside shared memory, by address; the eight bytes in memory
// hold an opaque image, so that plain code that writes over them is noticed.
#pragma once

#include "emulator/memory.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace ptxbench::emulator {

inline constexpr std::uint32_t kMostArrivals = (1u << 20) - 1;
inline constexpr std::int64_t kMostTransactions = (std::int64_t{1} << 20) - 1;  // bytes, either sign

struct MBarrier {
  std::uint32_t expected = 0;     // arrivals of each phase
  std::int64_t pending = 0;       // arrivals missing in this phase
  std::int64_t transactions = 0;  // bytes; signed within the phase
  std::uint64_t phase = 0;        // number of completed phases
  bool valid = false;
  Site init;   // where it was initialised
  Site inval;  // where it was last made invalid
  bool fenced = false;  // something has made its initialisation visible to other proxies and CTAs
  // Who arrived in this phase, for reports: the first kArrivalsKept.
  std::vector<Site> arrivals;
  static constexpr std::size_t kArrivalsKept = 32;
  // Arrivals since it was initialised, by thread (rank * threads of a CTA + thread); `uncounted`: not all are there, or
  // the count that phases expect has changed.
  std::vector<std::uint32_t> by_thread;
  bool uncounted = false;
  Site last;  // the last arrival
};

class Barriers {
 public:
  // The object at @p offset of the window; null where none was ever initialised.
  MBarrier* find(std::uint32_t offset) {
    const auto it = objects_.find(offset);
    return it == objects_.end() ? nullptr : &it->second;
  }
  const MBarrier* find(std::uint32_t offset) const { return const_cast<Barriers*>(this)->find(offset); }
  MBarrier& create(std::uint32_t offset) { return objects_[offset]; }
  const std::unordered_map<std::uint32_t, MBarrier>& all() const { return objects_; }
  // Initialised with no fence since.
  std::vector<std::uint32_t> unfenced;

 private:
  std::unordered_map<std::uint32_t, MBarrier> objects_;
};

// What an arrival asks for beside its count.
struct Arrival {
  bool drop = false;         // .arrive_drop: one participant less from the next phase on
  bool no_complete = false;  // must not complete the phase
};

// Steps on the object at @p offset of @p cta. False where a fault was raised. Completing a phase wakes who
// waits. The eight bytes lie inside the window (Memory::shared has seen to it).
bool mbarrier_init(Agent& agent, Cta& cta, std::uint32_t offset, std::uint32_t count);
// A fence of @p cta, or its arrival at the cluster's barrier: what was initialised before is visible from now on.
void mbarrier_inits_fenced(Cta& cta);
// An operation of the async proxy is about to signal the object: notes where its initialisation may not be visible.
void note_async_signal(Agent& agent, Cta& cta, std::uint32_t offset);
bool mbarrier_inval(Agent& agent, Cta& cta, std::uint32_t offset);
bool mbarrier_arrive(Agent& agent, Cta& cta, std::uint32_t offset, std::uint32_t count, std::uint64_t* state,
                     Arrival how = {});
// cp.async.mbarrier.arrive without .noinc: one more arrival is pending in this phase.
bool mbarrier_increment(Agent& agent, Cta& cta, std::uint32_t offset, std::uint32_t count);
bool mbarrier_expect_tx(Agent& agent, Cta& cta, std::uint32_t offset, std::int64_t bytes);
bool mbarrier_complete_tx(Agent& agent, Cta& cta, std::uint32_t offset, std::int64_t bytes);
// Whether the phase of @p parity (or of @p state) is over.
bool mbarrier_test_parity(Agent& agent, Cta& cta, std::uint32_t offset, std::uint32_t parity, bool& over);
bool mbarrier_test_state(Agent& agent, Cta& cta, std::uint32_t offset, std::uint64_t state, bool& over);

// The CTA has exited: remarks objects whose count is smaller than the number of threads that take part (arrivals.cpp).
void check_arrival_counts(Run& run, const Grid& grid, const Cta& cta);

// States as arrive returns them: the phase, and the arrivals that were pending before it.
inline std::uint64_t mbarrier_state(std::uint64_t phase, std::int64_t pending) {
  return phase << 20 | (static_cast<std::uint64_t>(pending) & kMostArrivals);
}
inline std::uint32_t mbarrier_pending_count(std::uint64_t state) {
  return static_cast<std::uint32_t>(state & kMostArrivals);
}

// What who waits for it is woken by, and what those who follow who knows of whom call it.
WaitKey mbarrier_key(const Cta& cta, std::uint32_t offset);

// For reports. "mbarrier `full`+8 (0x408) of CTA 3"; and its state: "phase 2, 1 of 2 arrivals and 16384 bytes
// pending".
std::string shared_place(const Cta& cta, std::uint32_t offset);
std::string mbarrier_name(const Cta& cta, std::uint32_t offset);
std::string mbarrier_status(const MBarrier& barrier);

}  // namespace ptxbench::emulator
