// A detector of data races in shared memory. Two accesses of different threads to the same byte, at least one
// of them a write, not both strong (atomics, volatile, relaxed, acquire, release), must be ordered by what
// the threads did: a barrier, an mbarrier, a fence with a flag, bar.warp.sync (happens_before.hpp). It does
// not depend on what the schedule made of it.
//
// For each cell of shared memory it remembers the last write, and the last read of each warp. Cells have 16
// bytes where no access is smaller, else as many as the smallest has, page by page: no byte shares a cell
// with one that another thread accesses on its own.
#pragma once

#include "emulator/happens_before.hpp"
#include "emulator/memory.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace ptxbench::emulator {

struct Place;  // access.hpp
struct SharedLanes;

class Races {
 public:
  // Begins with a cluster: nothing is written, nobody has done anything.
  void reset(const Cluster& cluster);
  HappensBefore order;

  // Accesses of an instruction, before it writes. Lanes of x.mask in their own CTA's memory; @p bytes is a
  // power of two.
  void own(const Exec& x, const SharedLanes& lanes, unsigned bytes, Access access);
  // Lanes of x.mask at places of their own; those that lie not in shared memory are left out.
  void scattered(const Exec& x, const Place place[kLanes], unsigned bytes, Access access);
  // For instructions that go through their elements one by one: first one_by_one, then each.
  void one_by_one(const Exec& x);
  void one(const Exec& x, int lane, const Place& place, unsigned bytes, Access access);

  // Of one lane, any multiple of 16 bytes.
  void object(const Exec& x, int lane, Cta& where, std::uint32_t offset, std::uint32_t bytes, Access access);

  // Of asynchronous operations, issued by agent.site. One that signals the mbarrier at @p barrier of @p
  // owner:
  void async_write(const Agent& agent, Cta& where, std::uint32_t offset, std::uint32_t bytes,
                   const Cta& owner, std::uint32_t barrier, bool reduces);
  // A cp.async of the lane's group @p group (from 1 on). @p same: it writes what is there already.
  void copy_write(const Agent& agent, Cta& where, std::uint32_t offset, std::uint32_t bytes,
                  std::uint32_t group, bool same);
  void async_read(const Agent& agent, Cta& where, std::uint32_t offset, std::uint32_t bytes);
  // Of a wgmma: chunks of 16 bytes.
  void wgmma_read(const Agent& agent, Cta& where, std::uint32_t group, const std::uint32_t* chunks,
                  int count);

  // An mbarrier object is initialised; it is used.
  void barrier_made(const Agent& agent, const Cta& owner, std::uint32_t offset);
  void barrier_used(const Agent& agent, const Cta& owner, std::uint32_t offset);
  // A thread waits for it; it is made invalid, of which waits must be known.
  void barrier_tested(const Agent& agent, const Cta& owner, std::uint32_t offset);
  void barrier_gone(const Agent& agent, const Cta& owner, std::uint32_t offset);

 private:
  static constexpr std::uint32_t kPageBits = 10, kPage = 1 << kPageBits;
  static constexpr unsigned kLargest = 4;  // log2 of the largest cell
  static constexpr std::uint32_t kStrongBit = 1u << 5;
  static constexpr std::uint32_t kMostAccesses = (1u << 26) - 2;  // of a warp
  // Stamps: number << 6 | strong << 5 | lane. Who: HappensBefore::Kind << 28 | index. Stamp 0: nobody yet.
  using Kind = HappensBefore::Kind;
  static constexpr unsigned kWhoBits = 28;
  static constexpr std::uint32_t who_of(Kind kind, std::uint32_t index) {
    return static_cast<std::uint32_t>(kind) << kWhoBits | index;
  }
  static constexpr Kind kind_of(std::uint32_t who) { return static_cast<Kind>(who >> kWhoBits); }
  static constexpr std::uint32_t index_of(std::uint32_t who) { return who & ((1u << kWhoBits) - 1); }
  static constexpr std::uint32_t number_of(std::uint32_t stamp) { return stamp >> 6; }
  struct Reads {  // of one warp
    std::vector<std::uint32_t> stamps;
    std::uint32_t last = 0;  // the highest number among them
  };
  struct Page {
    std::uint32_t generation = 0;
    unsigned shift = kLargest;
    std::vector<std::uint32_t> who, stamps;         // by cell: last ordinary write
    std::vector<std::uint32_t> strong_who, strong;  // the same of strong ones; empty where there were none
    std::vector<Reads> reads;                       // by warp of the cluster; empty where it has read nothing
    std::vector<std::uint32_t> readers;             // warps that have read here
    std::uint32_t cells() const { return kPage >> shift; }
  };
  // Who accesses, and what.
  struct Doing {
    std::uint32_t who = 0;    // of the access, as a cell remembers it
    std::uint32_t stamp = 0;  // without the lane
    std::uint32_t warp = 0;
    int lane = -1;  // -1: all of the warp's
    Access access = Access::read;
    bool strong = false;
    bool repeats = false;           // several lanes may access the same bytes
    const Exec* storing = nullptr;  // a plain st
    bool same = false;              // what it writes is there already
    Run* run = nullptr;
    const Grid* grid = nullptr;
    Site site;
    std::uint32_t starts = 0;  // offset of what lane `first` accesses; those behind it follow
    unsigned first = 0;
  };
  struct Log {  // ops of a warp's last accesses, by number modulo the size
    std::vector<std::uint32_t> ops;
    std::vector<std::pair<std::uint32_t, std::uint32_t>>
        copies;  // groups of its last cp.async, and their ops
  };
  struct Made {
    std::uint32_t who = 0, stamp = 0;
    std::vector<std::uint32_t> tests;  // by warp: stamp of its last wait; 0: none
  };
  struct Copied {  // the last operations that signalled a barrier
    std::uint32_t phase = 0;
    Site site;
  };

  Page& page(const Cta& where, std::uint32_t offset, unsigned shift);
  static void refine(Page& p, unsigned shift);
  // A numbered access of the warp; one of an asynchronous operation, or of an mbarrier object, without a stamp.
  Doing begin(const Exec& x, Access access);
  Doing begin(const Agent& agent, Access access) const;
  std::uint32_t warp_of(const Agent& agent) const;
  std::uint32_t* reads_of(const Doing& d, Page& p);
  void run(Doing& d, Cta& where, std::uint32_t offset, unsigned each, unsigned count, unsigned lane);
  void lane_touches(Doing& d, Cta& where, std::uint32_t offset, std::uint32_t bytes);
  void range(Doing& d, Cta& where, Page& p, std::uint32_t page_offset, std::uint32_t first,
             std::uint32_t count, unsigned lane, unsigned lane_shift);
  // The highest stamp of a write by @p who that all lanes of warp @p warp know of.
  std::uint32_t limit(std::uint32_t warp, std::uint32_t who) const;
  void after_write(const Doing& d, Cta& where, const Page& p, std::uint32_t page_offset, std::uint32_t cell);
  void after_write(const Doing& d, Cta& where, std::uint32_t offset, std::uint32_t who, std::uint32_t stamp);
  // All of the cells' writes before: what is not known to all lanes of the warp is looked at.
  void after_writes(Doing& d, Cta& where, const Page& p, std::uint32_t page_offset, std::uint32_t first,
                    std::uint32_t count, unsigned lane, unsigned lane_shift);
  static void record(const Doing& d, std::uint32_t* who, std::uint32_t* stamps, std::uint32_t count,
                     unsigned lane, unsigned lane_shift);
  void after_reads(Doing& d, Cta& where, const Page& p, std::uint32_t page_offset, std::uint32_t first,
                   std::uint32_t count, unsigned lane, unsigned lane_shift);
  void race(const Doing& d, Cta& where, std::uint32_t offset, std::uint32_t who, std::uint32_t stamp,
            bool was_write);
  void found(const Doing& d, std::uint32_t other_op, bool lanes_only, std::string text);
  std::uint32_t next_use(const Agent& agent, std::uint32_t warp);
  void barrier_race(const Agent& agent, const Cta& owner, std::uint32_t offset, std::uint32_t by,
                    std::uint32_t stamp, const char* does, const char* did);
  static HappensBefore::Event event_of(std::uint32_t who, std::uint32_t stamp);
  Site site_of(std::uint32_t who, std::uint32_t stamp) const;
  void log(std::uint32_t warp, std::uint32_t number, std::uint32_t op);
  bool full() const { return off_ || seen_.size() >= kMostPairs; }

  static constexpr std::size_t kMostPairs = 32;
  const Cluster* cluster_ = nullptr;
  std::uint32_t generation_ = 0;
  bool off_ = false;
  std::vector<std::vector<Page>> pages_;                       // by rank
  std::vector<Log> logs_;                                      // by warp
  std::vector<Made> made_;                                     // by barrier
  std::vector<std::vector<Copied>> copied_;                    // by barrier
  std::vector<std::pair<std::uint32_t, std::uint32_t>> seen_;  // pairs of ops
  std::uint32_t one_number_ = 0;
};

}  // namespace ptxbench::emulator
