// Shared memory that asynchronous operations read: who writes there must know that they have.
#pragma once

#include "emulator/memory.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace ptxbench::emulator {

// The last reads of each granule of 16 bytes of a CTA's shared memory, until somebody who knows that they are
// done writes there. Part of SharedTrack.
struct AsyncReads {
  // Of a warpgroup: its operations have numbers from 1 on.
  struct Warpgroup {
    std::vector<std::uint32_t> number;  // by granule; 0: none
    std::vector<Site> sites;            // by number - 1
  };
  std::vector<Warpgroup> wgmma;
  // Of bulk and tensor stores, by number - 1.
  struct Store {
    Site site;
    std::uint64_t waited = 0;  // number of the wait of its warp that was for it; 0: none yet
  };
  std::vector<std::uint32_t> store;  // by granule: number; 0: none
  std::vector<Store> stores;
  bool any() const { return !wgmma.empty() || !store.empty(); }
};

// Operation @p number of @p group reads chunks of 16 bytes at @p chunks.
void note_wgmma_read(Agent& agent, Cta& cta, std::uint32_t group, std::uint64_t number,
                     const std::uint32_t* chunks, int count);
// A store reads [offset, offset + bytes) of @p cta, the issuer's. Returns its number.
std::uint32_t note_store_read(Agent& agent, Cta& cta, std::uint32_t offset, std::uint32_t bytes);
// Warp @p warp has waited for store @p number.
void store_waited_for(Cta& cta, std::uint32_t warp, std::uint32_t number, std::uint64_t wait);
// @p agent writes there: remarks what it overtakes.
void check_overwrite(Agent& agent, Cta& where, std::uint32_t offset, std::uint32_t bytes);

}  // namespace ptxbench::emulator
