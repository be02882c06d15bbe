// What each thread of a cluster knows of the accesses of the others, by the rules of the memory consistency
// model: release and acquire patterns, barriers, fences. An access happens before another where the thread of
// the second one knows of the first.
//
// Clocks are kept by warp. What a warp's lanes know together is one clock; what some of them know besides
// (an elected lane that waits alone) is kept apart until bar.warp.sync or a barrier brings them together.
// Where something has to be rounded, it is rounded towards "known": what is not known here is not ordered on
// the card.
#pragma once

#include "emulator/machine.hpp"

#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ptxbench::emulator {

class HappensBefore {
 public:
  // What of one warp: everything up to `low`; of the lanes in `mask` up to `high`.
  struct Known {
    std::uint32_t low = 0, high = 0;
    Mask mask = 0;
    bool covers(std::uint32_t number, unsigned lane) const {
      return number <= low || (number <= high && (mask >> lane & 1) != 0);
    }
    void join(const Known& other);
  };
  struct Clock {
    std::vector<Known> accesses, copies;  // by warp of the cluster
    std::vector<std::uint32_t> phases;    // by barrier: phases that are over
    std::vector<std::uint64_t> waits;     // by warp and Wait: what it has waited for
    void join(const Clock& other);
    void clear();
  };
  // Something that may be known.
  enum class Kind : std::uint8_t {
    access,  // number `number` of lane `lane` of warp `index`
    whole,   // the same of several lanes at once
    copy,    // a cp.async of that lane, in its group `number` (from 1 on)
    async,  // what an asynchronous operation wrote that signals barrier `index` in its phase `number` (from 0
            // on)
  };
  // What a warp waits for itself, each a number that only grows: wgmma of its warpgroup, its bulk stores.
  enum Wait : std::uint8_t { kWgmma, kStores, kWaits };
  struct Event {
    Kind kind = Kind::access;
    std::uint32_t index = 0, number = 0;
    unsigned lane = 0;
  };

  void reset(const Cluster& cluster);
  std::uint32_t warps() const { return static_cast<std::uint32_t>(threads_.size()); }
  std::uint32_t number_of(std::uint32_t rank, std::uint32_t warp) const { return rank * warps_ + warp; }
  std::uint32_t number_of(const Warp& warp) const { return number_of(warp.cta->rank, warp.index); }

  void waited(std::uint32_t warp, Wait what, std::uint64_t value);
  // @p warp issues number @p number of its warpgroup's wgmma. Who waits for it goes on when all four warps
  // have issued it, and what their lanes had accessed then is done: loops that read scales, or A, with
  // ordinary loads and free the buffer by one lane's arrival rest on that (CUTLASS, DeepGEMM).
  void issued(std::uint32_t warp, std::uint64_t number);
  // Whether lane @p lane of @p warp knows that warp @p of has waited so; -1: whether any of its lanes does.
  bool knows_wait(std::uint32_t warp, int lane, std::uint32_t of, Wait what, std::uint64_t value) const;

  // The next access of @p warp: its number, from 1 on.
  std::uint32_t next_access(std::uint32_t warp) { return ++threads_[warp].accesses; }
  std::uint32_t accesses(std::uint32_t warp) const { return threads_[warp].accesses; }
  // What all lanes of a warp know.
  const Clock& known(std::uint32_t warp) const { return threads_[warp].base; }
  // Whether lane @p lane of warp @p warp knows of @p event; -1: whether any of its lanes does.
  bool knows(std::uint32_t warp, int lane, const Event& event) const;
  // The same, if all lanes of each warp were one: what is known so is wanting a bar.warp.sync only.
  bool knows_roughly(std::uint32_t warp, const Event& event) const;

  // Lanes @p lanes of @p warp arrive at a barrier (of any kind), or wait there and go on. A relaxed arrival
  // tells what the last releasing fence covered; what a relaxed wait learns is known from the next acquiring
  // fence on.
  void arrive(const WaitKey& key, const Warp& warp, Mask lanes, bool relaxed);
  void wait(const WaitKey& key, const Warp& warp, Mask lanes, bool relaxed);
  // @p exited: threads that have exited count as having come.
  void complete(const WaitKey& key, bool exited = false);
  // cp.async of @p lane that were in groups up to @p group are complete, for who waits at a barrier.
  void arrive_copies(const WaitKey& key, std::uint32_t warp, unsigned lane, std::uint32_t group);
  // The lane itself has waited for them.
  void copies_done(std::uint32_t warp, unsigned lane, std::uint32_t group);
  void fence(const Warp& warp, Mask lanes, bool acquire, bool release);
  // An access that others may synchronise with. One place for all of memory.
  void strong_access(const Warp& warp, Mask lanes, bool reads, bool writes, bool acquire, bool release);
  void warp_sync(const Warp& warp, Mask lanes);
  // What threads did that have exited is taken to be before the barriers that go on without them.
  void exit(const Warp& warp, Mask lanes);

  // Barriers have numbers; made when first asked for.
  std::uint32_t barrier(const WaitKey& key);
  std::uint32_t phase(std::uint32_t barrier) const { return barriers_[barrier].phase; }
  const WaitKey& key_of(std::uint32_t barrier) const { return barriers_[barrier].key; }

 private:
  struct Part {  // what some lanes know
    Mask lanes = 0;
    Clock clock;
  };
  struct Threads {  // of one warp
    std::uint32_t accesses = 0;
    Clock base;
    std::vector<Part> parts;                     // beside it
    Part released;                               // at the last releasing fence
    Part pending;                                // from relaxed reads and waits, for an acquiring fence
    std::array<std::uint32_t, kLanes> copies{};  // groups of cp.async that a lane has waited for
    std::vector<std::pair<std::uint64_t, std::uint32_t>> issued;  // its last wgmma, and `accesses` then
  };
  struct Barrier {
    WaitKey key;
    Clock under_way, over;
    std::uint32_t phase = 0;
  };
  static bool covers(const Clock& clock, const Event& event);
  static void joined(std::vector<Known>& into, std::uint32_t at, const Known& what);
  void release(Clock& into, std::uint32_t w, Mask lanes, Mask absent) const;
  void acquire(std::uint32_t w, Mask lanes, Mask live, const Clock& clock);

  std::uint32_t warps_ = 0;  // a CTA
  std::vector<Threads> threads_;
  std::vector<Barrier> barriers_;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
  Clock memory_, exited_, scratch_;
  bool any_exited_ = false;
};

// Of a cluster whose accesses are looked at (races.hpp); else null.
HappensBefore* order_of(const Cluster& cluster);

}  // namespace ptxbench::emulator
