// Who knows of whose completed waits: vector clocks over the warps of a cluster. A warp that has waited for
// its wgmma, for its bulk stores, or for the launch before knows that they are done; whoever synchronises
// with it later knows too. So it can be told whether a write comes after the reads that it must not overtake,
// whatever the schedule did.
//
// Edges are taken generously (all lanes of a warp are one, every strong access or fence synchronises with
// every other): what is missing here is missing on the card.
#pragma once

#include "emulator/machine.hpp"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace ptxbench::emulator {

class VectorClocks {
 public:
  // What a warp has waited for, each a number that only grows.
  enum What : std::uint8_t {
    kWgmma,   // operations of its warpgroup, numbered in the order of their issue
    kStores,  // waits for its bulk stores
    kGrid,    // 1: griddepcontrol.wait
    kWhats
  };

  void reset(const Cluster& cluster);
  // Warp @p warp of CTA @p rank has waited itself.
  void learn(std::uint32_t rank, std::uint32_t warp, What what, std::uint64_t value);
  // Whether it knows that @p of_warp of @p of_rank has.
  bool known(std::uint32_t rank, std::uint32_t warp, What what, std::uint32_t of_rank, std::uint32_t of_warp,
             std::uint64_t value) const;
  // The same of any warp of the cluster.
  bool known_of_any(std::uint32_t rank, std::uint32_t warp, What what, std::uint64_t value) const;

  // Barriers of all kinds, named by what one waits for there: arriving tells what is known to the phase under
  // way; waiting learns what the phases that are over were told.
  void arrive(const WaitKey& key, std::uint32_t rank, std::uint32_t warp);
  void complete(const WaitKey& key);
  void wait(const WaitKey& key, std::uint32_t rank, std::uint32_t warp);
  // A strong access to memory, or a fence: one place for all.
  void access(std::uint32_t rank, std::uint32_t warp);

 private:
  using Clock = std::vector<std::uint64_t>;
  struct Barrier {
    Clock under_way, over;
  };
  static std::uint64_t number_of(const WaitKey& key);
  static void join(Clock& into, const Clock& from);
  Clock& of(std::uint32_t rank, std::uint32_t warp) { return clocks_[rank * warps_ + warp]; }
  const Clock& of(std::uint32_t rank, std::uint32_t warp) const { return clocks_[rank * warps_ + warp]; }
  std::size_t place(std::uint32_t rank, std::uint32_t warp, What what) const {
    return (std::size_t{rank} * warps_ + warp) * kWhats + what;
  }

  std::uint32_t warps_ = 0;  // a CTA
  std::vector<Clock> clocks_;
  std::unordered_map<std::uint64_t, Barrier> barriers_;
  Clock memory_;
};

}  // namespace ptxbench::emulator
