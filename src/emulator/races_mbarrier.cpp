// Races about mbarrier objects: who uses or waits for one that another initialises or makes invalid.
#include "emulator/mbarrier.hpp"
#include "emulator/races.hpp"
#include "emulator/run.hpp"
#include "emulator/text.hpp"

#include <algorithm>
#include <string>

namespace ptxbench::emulator {

std::uint32_t Races::next_use(const Agent& agent, std::uint32_t warp) {
  const std::uint32_t number = order.next_access(warp);
  if (number > kMostAccesses) off_ = true;
  log(warp, number, agent.site.op);
  return number << 6 | static_cast<std::uint32_t>(std::max(agent.site.lane, 0));
}

void Races::barrier_race(const Agent& agent, const Cta& owner, std::uint32_t offset, std::uint32_t by,
                         std::uint32_t stamp, const char* does, const char* did) {
  const Doing d = begin(agent, Access::read);
  const Site other = site_of(by, stamp);
  found(d, other.op, order.knows_roughly(d.warp, event_of(by, stamp)),
        std::string(does) + mbarrier_name(owner, offset) + ", which " + who_text(*agent.grid.kernel, other) +
            did + ", and nothing orders the two");
}

void Races::barrier_made(const Agent& agent, const Cta& owner, std::uint32_t offset) {
  if (agent.site.warp < 0) return;
  const std::uint32_t number = order.barrier(mbarrier_key(owner, offset));
  if (made_.size() <= number) made_.resize(number + 1);
  const std::uint32_t warp = warp_of(agent);
  made_[number] = {who_of(Kind::access, warp), next_use(agent, warp), {}};
}

void Races::barrier_used(const Agent& agent, const Cta& owner, std::uint32_t offset) {
  if (agent.site.warp < 0 || full()) return;
  const std::uint32_t number = order.barrier(mbarrier_key(owner, offset));
  if (made_.size() <= number || made_[number].stamp == 0) return;
  const Made& made = made_[number];
  const std::uint32_t warp = warp_of(agent);
  if (made.stamp > limit(warp, made.who) &&
      !order.knows(warp, agent.site.lane, event_of(made.who, made.stamp)))
    barrier_race(agent, owner, offset, made.who, made.stamp, "uses ", " initialises");
}

void Races::barrier_tested(const Agent& agent, const Cta& owner, std::uint32_t offset) {
  if (agent.site.warp < 0) return;
  const std::uint32_t number = order.barrier(mbarrier_key(owner, offset));
  if (made_.size() <= number) return;
  const std::uint32_t warp = warp_of(agent);
  std::vector<std::uint32_t>& tests = made_[number].tests;
  if (tests.size() <= warp) tests.resize(warp + 1, 0);
  tests[warp] = next_use(agent, warp);
}

void Races::barrier_gone(const Agent& agent, const Cta& owner, std::uint32_t offset) {
  if (agent.site.warp < 0 || full()) return;
  const std::uint32_t number = order.barrier(mbarrier_key(owner, offset));
  if (made_.size() <= number) return;
  const std::uint32_t warp = warp_of(agent);
  for (std::uint32_t w = 0; w < made_[number].tests.size(); ++w) {
    const std::uint32_t stamp = made_[number].tests[w], by = who_of(Kind::access, w);
    if (stamp > limit(warp, by) && !order.knows(warp, agent.site.lane, event_of(by, stamp)))
      barrier_race(agent, owner, offset, by, stamp, "makes invalid ", " waits for");
  }
  made_[number] = {};
}

}  // namespace ptxbench::emulator
