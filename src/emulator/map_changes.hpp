// Tensor maps that a launch changes in global memory, and the fences between a change and the copies that use
// the map: the changing thread releases (fence.proxy.tensormap::generic.release, or the copy that is one with
// it), and some thread of the CTA that copies acquires the map. PTX ISA: membar, fence (proxy fences);
// tensormap.cp_fenceproxy.
#pragma once

#include "emulator/memory.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>

namespace ptxbench::emulator {

// Of one launch. Host threads of the launch may call everything but clear() at once. What one cluster changes
// is another's business only where clusters speak to each other, and then they run on one host thread: what
// is said does not depend on the number of threads.
class MapChanges {
 public:
  void clear();
  // The 128 bytes at @p address are a changed map from now on; @p released: by the instruction itself.
  void changed(const Agent& agent, std::uint64_t address, bool released);
  // fence.proxy.tensormap::generic.release by a thread of agent.cta.
  void release(const Agent& agent);
  // fence.proxy.tensormap::generic.acquire of the map at @p address.
  void acquire(const Agent& agent, std::uint64_t address);
  // A copy through the map at @p address: remarks what is missing.
  void used(Agent& agent, std::uint64_t address);

 private:
  struct Change {
    Site site;
    std::uint64_t cluster = 0, number = 0;
    bool released = false, said = false;
    std::unordered_map<std::int64_t, std::uint64_t>
        acquired;  // by CTA: number of the change that it has seen
  };
  static bool concerns(const Agent& agent, const Change& change);
  std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::map<std::uint64_t, Change> changes_;  // by address
  std::uint64_t number_ = 0;
};

}  // namespace ptxbench::emulator
