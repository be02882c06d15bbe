#include "emulator/map_changes.hpp"

#include "emulator/run.hpp"
#include "emulator/text.hpp"

namespace ptxbench::emulator {

void MapChanges::clear() {
  changes_.clear();
  any_.store(false, std::memory_order_relaxed);
}

bool MapChanges::concerns(const Agent& agent, const Change& change) {
  return change.cluster == agent.cluster.index || agent.grid.kernel->communicates || agent.grid.cooperative;
}

void MapChanges::changed(const Agent& agent, std::uint64_t address, bool released) {
  const std::lock_guard lock(mutex_);
  Change& c = changes_[address];
  c.site = agent.site;
  c.cluster = agent.cluster.index;
  c.number = ++number_;
  c.released = released;
  c.said = false;
  any_.store(true, std::memory_order_relaxed);
}

void MapChanges::release(const Agent& agent) {
  if (!any_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  for (auto& [address, c] : changes_)
    if (c.site.cta == agent.site.cta) c.released = true;
}

void MapChanges::acquire(const Agent& agent, std::uint64_t address) {
  if (!any_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  const auto at = changes_.find(address);
  if (at != changes_.end() && concerns(agent, at->second))
    at->second.acquired[agent.site.cta] = at->second.number;
}

void MapChanges::used(Agent& agent, std::uint64_t address) {
  if (!any_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  const auto at = changes_.find(address);
  if (at == changes_.end() || !concerns(agent, at->second)) return;
  Change& c = at->second;
  const auto acquired = c.acquired.find(agent.site.cta);
  const bool seen = acquired != c.acquired.end() && acquired->second == c.number;
  if ((c.released && seen) || c.said) return;
  c.said = true;
  agent.run.remark(true, "tensormap_unfenced", agent.site,
                   "a tensor copy through the map at " + agent.grid.memory->describe(address) +
                       ", which this launch has changed: " + who_text(*agent.grid.kernel, c.site) +
                       (c.released ? ". No thread of CTA " + std::to_string(agent.site.cta) +
                                         " has executed fence.proxy.tensormap::generic.acquire on it since"
                                   : ". No fence.proxy.tensormap::generic.release came after the change") +
                       ": the copy may use what the map was before");
}

}  // namespace ptxbench::emulator
