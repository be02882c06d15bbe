// mbarrier objects (PTX ISA 9.7.13.15): one phase after another; a phase completes when the pending arrivals and the
// transaction count are both zero. Kept beside shared memory, by address; the eight bytes in memory hold an opaque
// image, so that plain code that writes over them is noticed.
#pragma once

#include "emulator/memory.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace ptxbench::emulator {

struct MBarrier {
  std::uint32_t expected = 0;             // arrivals of each phase
  std::int64_t pending = 0;               // arrivals missing in this phase
  std::int64_t transactions = 0;          // bytes; signed within the phase
  std::uint64_t phase = 0;                // number of completed phases
  bool valid = false;
  Site init;                              // where it was initialised
  // Who arrived in this phase, for reports.
  std::vector<Site> arrivals;
};

class Barriers {
 public:
  // The object at @p offset of the window; null where none was ever initialised.
  MBarrier* find(std::uint32_t offset);
  MBarrier& create(std::uint32_t offset);
  const std::unordered_map<std::uint32_t, MBarrier>& all() const { return objects_; }

 private:
  std::unordered_map<std::uint32_t, MBarrier> objects_;
};

// Steps on the object at @p offset of @p cta. False where a fault was raised. Completing a phase wakes who waits.
bool mbarrier_init(Agent& agent, Cta& cta, std::uint32_t offset, std::uint32_t count);
bool mbarrier_inval(Agent& agent, Cta& cta, std::uint32_t offset);
bool mbarrier_arrive(Agent& agent, Cta& cta, std::uint32_t offset, std::uint32_t count, std::uint64_t* state);
bool mbarrier_expect_tx(Agent& agent, Cta& cta, std::uint32_t offset, std::int64_t bytes);
bool mbarrier_complete_tx(Agent& agent, Cta& cta, std::uint32_t offset, std::int64_t bytes);
// Whether the phase of @p parity (or of @p state) is over.
bool mbarrier_test_parity(Agent& agent, Cta& cta, std::uint32_t offset, std::uint32_t parity, bool& over);
bool mbarrier_test_state(Agent& agent, Cta& cta, std::uint32_t offset, std::uint64_t state, bool& over);

}  // namespace ptxbench::emulator
