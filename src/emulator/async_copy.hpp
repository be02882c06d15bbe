// Where copies of the async proxy go, and what they carry beside bytes.
#pragma once

#include "emulator/async_groups.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace ptxbench::emulator {

// A destination in shared memory with the mbarrier that is signalled there; with multicast the same offsets
// in several CTAs of the cluster.
struct SignalledTarget {
  std::uint32_t to = 0, barrier = 0;  // .shared addresses
  bool own = false;                   // .shared::cta
  std::uint16_t mask = 0;             // CTAs of a multicast; 0: none, `to` says which

  // False, and a fault, where @p mask names a CTA that the cluster does not have.
  bool multicast(const Exec& x, int lane, std::uint16_t mask);
  std::uint64_t ctas(std::uint32_t issuer) const;  // a bit a rank
  bool signals(std::uint16_t rank, std::uint32_t offset) const;
  std::string describe() const;                    // " to shared 0x400, mbarrier 0x8010"
  // f(to, barrier) for each; stops where it returns false.
  template <class F>
  void each(const Cluster& cluster, F&& f) const {
    if (mask == 0) {
      f(to, barrier);
      return;
    }
    for (std::uint32_t rank = 0; rank < cluster.ctas.size() && rank < 16; ++rank)
      if ((mask >> rank & 1) != 0 && !f((to & 0xffffff) | rank << 24, (barrier & 0xffffff) | rank << 24))
        return;
  }
};

// complete_tx at the object at .shared address @p barrier.
bool signal(Agent& agent, std::uint32_t barrier, bool own, std::uint32_t bytes);

// Bits of bytes never written; empty where there are none.
std::vector<std::uint64_t> shared_undefined_of(const Cta& cta, std::uint32_t offset, std::uint32_t bytes);
std::vector<std::uint64_t> global_undefined_of(const Memory& memory, std::uint64_t address,
                                               std::uint32_t bytes);
// Of [offset, offset + bytes) of the window: as @p bits say, defined where they are empty.
void put_undefined(Cta& cta, std::uint32_t offset, std::uint32_t bytes,
                   const std::vector<std::uint64_t>& bits);
// Tells memory what was stored: bits [first, first + bytes) of @p bits. With @p reduced what was there counts
// too. False where a fault was raised.
bool store_undefined(Agent& agent, std::uint64_t address, std::uint32_t bytes,
                     const std::vector<std::uint64_t>& bits, std::uint64_t first, bool reduced);

}  // namespace ptxbench::emulator
