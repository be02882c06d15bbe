// What is said of a race: both accesses, and what is missing between them.
#include "emulator/access.hpp"
#include "emulator/mbarrier.hpp"
#include "emulator/op_lanes.hpp"
#include "emulator/races.hpp"
#include "emulator/run.hpp"
#include "emulator/text.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace ptxbench::emulator {

Site Races::site_of(std::uint32_t who, std::uint32_t stamp) const {
  Site site;
  const std::uint32_t index = index_of(who), number = number_of(stamp);
  if (kind_of(who) == Kind::async) {
    if (index < copied_.size())
      for (const Copied& c : copied_[index])
        if (c.phase == number) site = c.site;
    return site;
  }
  const std::size_t warps = cluster_->ctas.front()->warps.size();
  site.cta = static_cast<std::int64_t>(cluster_->ctas[index / warps]->linear_id);
  site.warp = static_cast<std::int32_t>(index % warps);
  site.lane = static_cast<std::int32_t>(stamp & 31);
  const std::vector<std::uint32_t>& ops = logs_[index].ops;
  if (kind_of(who) == Kind::copy) {
    for (const auto& [group, op] : logs_[index].copies)
      if (group == number) site.op = op;
  } else if (number + ops.size() > order.accesses(index)) {
    site.op = ops[number & (ops.size() - 1)];
  }
  return site;
}

void Races::found(const Doing& d, std::uint32_t other_op, bool lanes_only, std::string text) {
  const std::pair<std::uint32_t, std::uint32_t> pair(d.site.op, other_op);
  if (std::find(seen_.begin(), seen_.end(), pair) != seen_.end()) return;
  seen_.push_back(pair);
  text +=
      lanes_only
          ? ": lanes of one warp are ordered by bar.warp.sync (__syncwarp), or by a barrier of the CTA, and "
            "there is none between them"
          : ": no barrier, and no release and acquire, between them";
  d.run->remark(true, "shared_memory_race", d.site, std::move(text));
}

void Races::race(const Doing& d, Cta& where, std::uint32_t offset, std::uint32_t by, std::uint32_t stamp,
                 bool was_write) {
  if (full() || d.same) return;
  if (d.storing != nullptr) {
    // The same bytes again are no matter, not even to who reads them.
    const Exec& x = *d.storing;
    const unsigned n = x.op.a, each = x.op.b;
    const auto lane = static_cast<unsigned>(d.lane);
    const std::uint32_t at = d.starts + (lane - d.first) * n * each;
    bool same = true;
    for (unsigned k = 0; k < n && each <= 8; ++k) {
      std::uint8_t value[8];
      if (each == 8) {
        std::memcpy(value, x.src64(k + 1) + lane, 8);
      } else {
        std::memcpy(value, x.src(k + 1) + lane, 4);
      }
      same = same && std::memcmp(value, where.shared.data() + at + k * each, each) == 0;
    }
    if (same && each <= 8) return;
  }
  const HappensBefore::Event event = event_of(by, stamp);
  const Site other = site_of(by, stamp);
  if (std::find(seen_.begin(), seen_.end(), std::pair(d.site.op, other.op)) != seen_.end()) return;
  const bool lanes_only = order.knows_roughly(d.warp, event);
  std::string text = std::string(d.access == Access::read    ? "reads"
                                 : d.access == Access::write ? "writes"
                                                             : "updates") +
                     " shared memory at " + shared_place(where, offset) + " of CTA " +
                     std::to_string(where.linear_id) + ", which ";
  const Grid& grid = *d.grid;
  if (event.kind == Kind::async) {
    const WaitKey& key = order.key_of(event.index);
    text += "an asynchronous operation of " + who_text(*grid.kernel, other) +
            " writes, and no wait for phase " + std::to_string(event.number) + " of " +
            mbarrier_name(*cluster_->ctas[key.cta], key.address) + ", which it signals, comes before this";
  } else if (event.kind == Kind::copy) {
    text += "a cp.async of " + who_text(*grid.kernel, other) +
            " writes, and no cp.async.wait_group for it comes before this (in that thread, with a barrier "
            "behind it)";
  } else {
    text +=
        who_text(*grid.kernel, other) + (was_write ? " writes" : " reads") + ", and nothing orders the two";
  }
  found(d, other.op, lanes_only, std::move(text));
}

}  // namespace ptxbench::emulator
