#include "emulator/overwrites.hpp"

#include "emulator/happens_before.hpp"
#include "emulator/mbarrier.hpp"
#include "emulator/run.hpp"
#include "emulator/text.hpp"
#include "emulator/vector_clocks.hpp"

namespace ptxbench::emulator {
namespace {

std::size_t granules(const Cta& cta) { return cta.shared.size() / 16 + 1; }

AsyncReads* reads_of(const Cluster& cluster, Cta& cta) {
  SharedTrack* track = cluster.clocks != nullptr ? shared_track(*cluster.grid, cta) : nullptr;
  if (track == nullptr) return nullptr;
  if (!track->reads) track->reads = std::make_shared<AsyncReads>();
  return track->reads.get();
}

}  // namespace

void note_wgmma_read(Agent& agent, Cta& cta, std::uint32_t group, std::uint64_t number,
                     const std::uint32_t* chunks, int count) {
  AsyncReads* reads = reads_of(agent.cluster, cta);
  if (reads == nullptr) return;
  if (reads->wgmma.size() <= group) reads->wgmma.resize(group + 1);
  AsyncReads::Warpgroup& g = reads->wgmma[group];
  if (g.number.empty()) g.number.assign(granules(cta), 0);
  g.sites.resize(number, agent.site);
  g.sites[number - 1] = agent.site;
  for (int i = 0; i < count; ++i) g.number[chunks[i] / 16] = static_cast<std::uint32_t>(number);
}

std::uint32_t note_store_read(Agent& agent, Cta& cta, std::uint32_t offset, std::uint32_t bytes) {
  AsyncReads* reads = reads_of(agent.cluster, cta);
  if (reads == nullptr || bytes == 0) return 0;
  if (reads->store.empty()) reads->store.assign(granules(cta), 0);
  reads->stores.push_back({agent.site, 0});
  const auto number = static_cast<std::uint32_t>(reads->stores.size());
  const std::uint32_t last = (offset + bytes - 1) / 16;
  for (std::uint32_t i = offset / 16; i <= last; ++i) reads->store[i] = number;
  return number;
}

void store_waited_for(Cta& cta, std::uint32_t warp, std::uint32_t number, std::uint64_t wait) {
  VectorClocks* clocks = cta.cluster->clocks.get();
  if (number == 0 || clocks == nullptr || cta.track == nullptr || !cta.track->reads) return;
  cta.track->reads->stores[number - 1].waited = wait;
  clocks->learn(cta.rank, warp, VectorClocks::kStores, wait);
  if (HappensBefore* order = order_of(*cta.cluster))
    order->waited(order->number_of(cta.rank, warp), HappensBefore::kStores, wait);
}

void check_overwrite(Agent& agent, Cta& where, std::uint32_t offset, std::uint32_t bytes) {
  AsyncReads* reads = where.track != nullptr ? where.track->reads.get() : nullptr;
  const VectorClocks* clocks = agent.cluster.clocks.get();
  if (reads == nullptr || !reads->any() || clocks == nullptr || agent.site.warp < 0 || bytes == 0) return;
  const auto writer = static_cast<std::uint32_t>(agent.site.warp);
  // Whether it knows that warp w of the memory's CTA has waited. The stricter of the two clocks, where it
  // runs.
  const HappensBefore* order = order_of(agent.cluster);
  const auto waited = [&](std::uint32_t w, bool wgmma, std::uint64_t value) {
    if (order == nullptr)
      return clocks->known(agent.cta.rank, writer, wgmma ? VectorClocks::kWgmma : VectorClocks::kStores,
                           where.rank, w, value);
    return order->knows_wait(order->number_of(agent.cta.rank, writer), agent.site.lane,
                             order->number_of(where.rank, w),
                             wgmma ? HappensBefore::kWgmma : HappensBefore::kStores, value);
  };
  const std::uint32_t last = (offset + bytes - 1) / 16;
  const auto place = [&](std::uint32_t granule) { return shared_place(where, granule * 16); };
  for (std::uint32_t group = 0; group < reads->wgmma.size(); ++group) {
    AsyncReads::Warpgroup& g = reads->wgmma[group];
    std::uint32_t good = 0;
    for (std::uint32_t i = offset / 16; i <= last && !g.number.empty(); ++i) {
      const std::uint32_t number = g.number[i];
      if (number == 0) continue;
      g.number[i] = 0;
      if (number <= good) continue;
      bool known = false;
      for (std::uint32_t w = 4 * group; w < 4 * group + 4 && !known; ++w) known = waited(w, true, number);
      if (known) {
        good = number;
        continue;
      }
      agent.run.remark(
          true, "wgmma_operand_overwritten", agent.site,
          "writes shared memory at " + place(i) + " of CTA " + std::to_string(where.linear_id) +
              " while a wgmma may still read it: that of warpgroup " + std::to_string(group) +
              ", issued by " + who_text(*agent.grid.kernel, g.sites[number - 1]) +
              ". No wgmma.wait_group for it comes before this write (in a warp that then arrived at a "
              "barrier for which the writer waited)");
      return;
    }
  }
  for (std::uint32_t i = offset / 16; i <= last && !reads->store.empty(); ++i) {
    const std::uint32_t number = reads->store[i];
    if (number == 0) continue;
    reads->store[i] = 0;
    const AsyncReads::Store& s = reads->stores[number - 1];
    if (s.waited != 0 && waited(static_cast<std::uint32_t>(s.site.warp), false, s.waited)) continue;
    agent.run.remark(
        true, "store_source_overwritten", agent.site,
        "writes shared memory at " + place(i) + " of CTA " + std::to_string(where.linear_id) +
            " while a bulk store may still read it: that of " + who_text(*agent.grid.kernel, s.site) +
            ". No cp.async.bulk.wait_group (or wait_group.read) for it comes before this write (in a "
            "thread that then arrived at a barrier for which the writer waited)");
    return;
  }
}

}  // namespace ptxbench::emulator
