#include "emulator/races.hpp"

#include "emulator/access.hpp"
#include "emulator/clones.hpp"
#include "emulator/mbarrier.hpp"
#include "emulator/op_lanes.hpp"
#include "emulator/run.hpp"

#include <algorithm>

namespace ptxbench::emulator {
namespace {

using Event = HappensBefore::Event;

// Whether all of the cells were written by @p who, with stamps up to @p limit.
PTXBENCH_CLONES
bool all_within(const std::uint32_t* who, const std::uint32_t* stamps, std::uint32_t count, std::uint32_t by,
                std::uint32_t limit) {
  std::uint32_t bad = 0;
  for (std::uint32_t i = 0; i < count; ++i)
    bad |= (who[i] ^ by) | static_cast<std::uint32_t>(stamps[i] > limit);
  return bad == 0;
}
PTXBENCH_CLONES
bool all_up_to(const std::uint32_t* stamps, std::uint32_t count, std::uint32_t limit) {
  std::uint32_t bad = 0;
  for (std::uint32_t i = 0; i < count; ++i) bad |= static_cast<std::uint32_t>(stamps[i] > limit);
  return bad == 0;
}

// Of lanes @p distance to 31: whether the lane lies @p by bytes behind the one @p distance lanes before.
PTXBENCH_CLONES
void compare_steps(const std::uint32_t* offset, unsigned distance, std::uint32_t by, std::uint8_t* flags) {
  for (unsigned i = distance; i < kLanes; ++i) flags[i] = offset[i] - offset[i - distance] == by ? 1 : 0;
}
Mask steps(const std::uint32_t* offset, unsigned distance, std::uint32_t by) {
  alignas(64) std::uint8_t flags[kLanes] = {};
  compare_steps(offset, distance, by, flags);
  return pack_bits(flags);
}

unsigned log2_of(std::uint32_t power) { return static_cast<unsigned>(__builtin_ctz(power)); }

}  // namespace

HappensBefore* order_of(const Cluster& cluster) {
  return cluster.races != nullptr ? &cluster.races->order : nullptr;
}

void Races::reset(const Cluster& cluster) {
  cluster_ = &cluster;
  order.reset(cluster);
  ++generation_;
  off_ = false;
  pages_.resize(cluster.ctas.size());
  for (std::size_t r = 0; r < pages_.size(); ++r)
    pages_[r].resize((cluster.ctas[r]->shared.size() >> kPageBits) + 1);
  logs_.resize(order.warps());
  for (Log& l : logs_) l.copies.clear();
  made_.clear();
  copied_.clear();
  seen_.clear();
}

// ---- cells ----

void Races::refine(Page& p, unsigned shift) {
  const unsigned by = p.shift - shift;
  const auto spread = [&](std::vector<std::uint32_t>& v) {
    if (v.empty()) return;
    std::vector<std::uint32_t> fine(v.size() << by);
    for (std::size_t i = 0; i < fine.size(); ++i) fine[i] = v[i >> by];
    v.swap(fine);
  };
  spread(p.who);
  spread(p.stamps);
  spread(p.strong_who);
  spread(p.strong);
  for (Reads& r : p.reads) spread(r.stamps);
  p.shift = shift;
}

Races::Page& Races::page(const Cta& where, std::uint32_t offset, unsigned shift) {
  Page& p = pages_[where.rank][offset >> kPageBits];
  if (p.generation != generation_) {
    p.generation = generation_;
    p.who.assign(p.cells(), 0);
    p.stamps.assign(p.cells(), 0);
    p.strong_who.clear();
    p.strong.clear();
    for (const std::uint32_t w : p.readers) {
      p.reads[w].last = 0;
      std::fill(p.reads[w].stamps.begin(), p.reads[w].stamps.end(), 0);
    }
    p.readers.clear();
    p.reads.resize(order.warps());
  }
  if (shift < p.shift) refine(p, shift);
  return p;
}

void Races::log(std::uint32_t warp, std::uint32_t number, std::uint32_t op) {
  constexpr std::size_t kMost = 1 << 14;
  std::vector<std::uint32_t>& ops = logs_[warp].ops;
  if (ops.size() <= number && ops.size() < kMost)
    ops.resize(std::max<std::size_t>(64, 2 * ops.size()), UINT32_MAX);
  ops[number & (ops.size() - 1)] = op;
}

Races::Doing Races::begin(const Exec& x, Access access) {
  Doing d;
  d.warp = order.number_of(x.warp);
  const std::uint32_t number = order.next_access(d.warp);
  if (number > kMostAccesses) off_ = true;
  d.access = access;
  d.strong = access == Access::atomic || (x.op.flags & kStrong) != 0;
  d.who = who_of(Kind::access, d.warp);
  d.stamp = number << 6 | (d.strong ? kStrongBit : 0);
  d.run = &x.run;
  d.grid = &x.grid;
  d.site = x.site();
  log(d.warp, number, d.site.op);
  return d;
}

std::uint32_t Races::warp_of(const Agent& agent) const {
  return order.number_of(agent.cta.rank, static_cast<std::uint32_t>(agent.site.warp));
}

Races::Doing Races::begin(const Agent& agent, Access access) const {
  Doing d;
  d.warp = warp_of(agent);
  d.who = who_of(Kind::access, d.warp);
  d.lane = agent.site.lane;
  d.access = access;
  d.run = &agent.run;
  d.grid = &agent.grid;
  d.site = agent.site;
  return d;
}

std::uint32_t Races::limit(std::uint32_t warp, std::uint32_t who) const {
  const HappensBefore::Clock& c = order.known(warp);
  const std::uint32_t i = index_of(who);
  switch (kind_of(who)) {
    case Kind::access:
    case Kind::whole:
      return i < c.accesses.size() ? c.accesses[i].low << 6 | 63 : 0;
    case Kind::copy:
      return i < c.copies.size() ? c.copies[i].low << 6 | 63 : 0;
    case Kind::async:
      return i < c.phases.size() && c.phases[i] != 0 ? (c.phases[i] - 1) << 6 | 63 : 0;
  }
  return 0;
}

Event Races::event_of(std::uint32_t who, std::uint32_t stamp) {
  return {kind_of(who), index_of(who), number_of(stamp), stamp & 31};
}

// What was written in a cell before the access that begins now.
void Races::after_write(const Doing& d, Cta& where, std::uint32_t offset, std::uint32_t who,
                        std::uint32_t stamp) {
  if (stamp == 0 || (d.strong && (stamp & kStrongBit) != 0)) return;
  if (order.knows(d.warp, d.lane, event_of(who, stamp))) return;
  // Another lane of the same instruction.
  if (who == d.who && number_of(stamp) == number_of(d.stamp)) return;
  race(d, where, offset, who, stamp, true);
}

void Races::after_write(const Doing& d, Cta& where, const Page& p, std::uint32_t page_offset,
                        std::uint32_t cell) {
  const std::uint32_t offset = page_offset + (cell << p.shift);
  after_write(d, where, offset, p.who[cell], p.stamps[cell]);
  if (!p.strong.empty()) after_write(d, where, offset, p.strong_who[cell], p.strong[cell]);
}

void Races::after_writes(Doing& d, Cta& where, const Page& p, std::uint32_t page_offset, std::uint32_t first,
                         std::uint32_t count, unsigned lane, unsigned lane_shift) {
  const auto look = [&](const std::vector<std::uint32_t>& all_who,
                        const std::vector<std::uint32_t>& all_stamps) {
    const std::uint32_t* const who = all_who.data() + first;
    const std::uint32_t* const stamps = all_stamps.data() + first;
    const std::uint32_t known = limit(d.warp, who[0]);
    if (count == 1 ? stamps[0] <= known : all_within(who, stamps, count, who[0], known)) return;
    std::uint32_t good_who = UINT32_MAX, good = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (who[i] != good_who) good_who = who[i], good = limit(d.warp, good_who);
      if (stamps[i] <= good) continue;
      const unsigned l = lane + (i >> lane_shift);
      if (who[i] == d.who && (stamps[i] & 31) == l) continue;
      d.lane = static_cast<int>(l);
      after_write(d, where, page_offset + ((first + i) << p.shift), who[i], stamps[i]);
    }
  };
  look(p.who, p.stamps);
  if (!d.strong && !p.strong.empty()) look(p.strong_who, p.strong);
}

void Races::after_reads(Doing& d, Cta& where, const Page& p, std::uint32_t page_offset, std::uint32_t first,
                        std::uint32_t count, unsigned lane, unsigned lane_shift) {
  for (const std::uint32_t w : p.readers) {
    const Reads& r = p.reads[w];
    const std::uint32_t known = order.known(d.warp).accesses[w].low;
    if (r.last <= known || all_up_to(r.stamps.data() + first, count, known << 6 | 63)) continue;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t stamp = r.stamps[first + i];
      if (stamp <= (known << 6 | 63) || (d.strong && (stamp & kStrongBit) != 0)) continue;
      d.lane = static_cast<int>(lane + (i >> lane_shift));
      const std::uint32_t who = who_of(Kind::access, w);
      if (who == d.who && number_of(stamp) == number_of(d.stamp)) continue;
      if (!order.knows(d.warp, d.lane, event_of(who, stamp)))
        race(d, where, page_offset + ((first + i) << p.shift), who, stamp, false);
    }
  }
}

void Races::record(const Doing& d, std::uint32_t* who, std::uint32_t* stamps, std::uint32_t count,
                   unsigned lane, unsigned lane_shift) {
  if (d.repeats) {
    // Several lanes of one instruction that write the same bytes count as one.
    for (std::uint32_t i = 0; i < count; ++i) {
      const bool again = stamps[i] != 0 && index_of(who[i]) == d.warp &&
                         number_of(stamps[i]) == number_of(d.stamp) &&
                         (kind_of(who[i]) == Kind::access || kind_of(who[i]) == Kind::whole);
      who[i] = again && kind_of(d.who) == Kind::access ? who_of(Kind::whole, d.warp) : d.who;
      stamps[i] = d.stamp | (lane + (i >> lane_shift));
    }
    return;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    who[i] = d.who;
    stamps[i] = d.stamp | (lane + (i >> lane_shift));
  }
}

// The stamps of the reads of d.warp, which reads there now.
std::uint32_t* Races::reads_of(const Doing& d, Page& p) {
  Reads& r = p.reads[d.warp];
  if (r.last == 0) {
    p.readers.push_back(d.warp);
    if (r.stamps.size() != p.cells()) r.stamps.assign(p.cells(), 0);
  }
  r.last = number_of(d.stamp);
  return r.stamps.data();
}

// Cells [first, first + count); lane @p lane + (i >> lane_shift) accesses number i of them.
void Races::range(Doing& d, Cta& where, Page& p, std::uint32_t page_offset, std::uint32_t first,
                  std::uint32_t count, unsigned lane, unsigned lane_shift) {
  after_writes(d, where, p, page_offset, first, count, lane, lane_shift);
  // A strong write counts among the reads too: it races with ordinary writes only.
  if (d.access == Access::read || d.strong) {
    if (d.access != Access::read) after_reads(d, where, p, page_offset, first, count, lane, lane_shift);
    std::uint32_t* const to = reads_of(d, p) + first;
    for (std::uint32_t i = 0; i < count; ++i) to[i] = d.stamp | (lane + (i >> lane_shift));
    if (d.access == Access::read) return;
    if (p.strong.empty()) {
      p.strong.assign(p.cells(), 0);
      p.strong_who.assign(p.cells(), 0);
    }
    record(d, p.strong_who.data() + first, p.strong.data() + first, count, lane, lane_shift);
    return;
  }
  after_reads(d, where, p, page_offset, first, count, lane, lane_shift);
  record(d, p.who.data() + first, p.stamps.data() + first, count, lane, lane_shift);
}

// Lanes from @p lane on, one behind the other from @p offset on.
void Races::run(Doing& d, Cta& where, std::uint32_t offset, unsigned each, unsigned count, unsigned lane) {
  d.starts = offset;
  d.first = lane;
  const unsigned wide = log2_of(each), shift = std::min(wide, kLargest);
  const std::uint32_t end = offset + each * count;
  for (std::uint32_t at = offset; at < end;) {
    Page& p = page(where, at, shift);
    const std::uint32_t in_page = at & (kPage - 1), n = std::min(kPage - in_page, end - at);
    range(d, where, p, at - in_page, in_page >> p.shift, n >> p.shift, lane + ((at - offset) >> wide),
          wide - p.shift);
    at += n;
  }
}

void Races::own(const Exec& x, const SharedLanes& lanes, unsigned bytes, Access access) {
  if (full()) return;
  Doing d = begin(x, access);
  if (access == Access::write) d.storing = &x;
  if (lanes.contiguous) {
    run(d, x.cta, lanes.low, bytes, kLanes, 0);
    return;
  }
  // Runs of lanes that lie one behind the other; what lanes before have read already is left out.
  d.repeats = true;
  const bool reads = access == Access::read;
  const Mask both = x.mask & x.mask << 1;  // the lane and the one before
  const Mask same = steps(lanes.offset, 1, 0) & both;
  const Mask next = steps(lanes.offset, 1, bytes) & both & ~(same << 1);
  Mask starts = x.mask & ~next;
  if (reads) {
    starts &= ~same;
    // Two halves of the warp that read the same.
    if (x.mask == ~Mask{0} && steps(lanes.offset, 16, 0) >> 16 == 0xffff) starts &= 0xffff;
  }
  const Page* in = nullptr;
  std::uint32_t in_index = 0, good_who = UINT32_MAX, good = 0;
  std::uint32_t* to = nullptr;
  for (; starts != 0; starts &= starts - 1) {
    const auto lane = static_cast<unsigned>(__builtin_ctz(starts));
    const std::uint32_t offset = lanes.offset[lane];
    const auto count = static_cast<unsigned>(__builtin_ctzll(~(std::uint64_t{next} >> (lane + 1)))) + 1;
    if (!reads || count > 1 || bytes > 4) {
      run(d, x.cta, offset, bytes, count, lane);
      in = nullptr;
      continue;
    }
    // A lane on its own, most often in the page of the one before.
    if (in == nullptr || offset >> kPageBits != in_index) {
      Page& p = page(x.cta, offset, log2_of(bytes));
      in = &p;
      in_index = offset >> kPageBits;
      to = reads_of(d, p);
    }
    const std::uint32_t in_page = offset & (kPage - 1), first = in_page >> in->shift,
                        cells = bytes >> in->shift;
    for (std::uint32_t cell = first; cell < first + cells; ++cell) {
      if (in->who[cell] != good_who) good_who = in->who[cell], good = limit(d.warp, good_who);
      if (in->stamps[cell] > good || !in->strong.empty()) {
        d.starts = offset;
        d.first = lane;
        after_writes(d, x.cta, *in, offset - in_page, cell, 1, lane, 31);
      }
      to[cell] = d.stamp | lane;
    }
  }
}

// One lane; the bytes lie in one page where there are no more than 16.
void Races::lane_touches(Doing& d, Cta& where, std::uint32_t offset, std::uint32_t bytes) {
  const unsigned shift = std::min(kLargest, log2_of(offset | bytes | kPage));
  const auto lane = static_cast<unsigned>(d.lane);
  for (const std::uint32_t end = offset + bytes; offset < end;) {
    Page& p = page(where, offset, shift);
    const std::uint32_t in_page = offset & (kPage - 1), n = std::min(kPage - in_page, end - offset);
    range(d, where, p, offset - in_page, in_page >> p.shift, n >> p.shift, lane, 31);
    offset += n;
  }
}

void Races::scattered(const Exec& x, const Place place[kLanes], unsigned bytes, Access access) {
  if (full()) return;
  Doing d = begin(x, access);
  if (access == Access::write) d.storing = &x;
  d.repeats = true;
  for_lanes(x.mask, [&](int i) {
    const Place& to = place[i];
    if (to.kind != Place::Kind::shared) return;
    d.lane = i;
    d.starts = static_cast<std::uint32_t>(to.at);
    d.first = static_cast<unsigned>(i);
    lane_touches(d, *to.cta, d.starts, bytes);
  });
}

void Races::object(const Exec& x, int lane, Cta& where, std::uint32_t offset, std::uint32_t bytes,
                   Access access) {
  if (full()) return;
  Doing d = begin(x, access);
  d.lane = lane;
  d.starts = offset;
  d.first = static_cast<unsigned>(lane);
  lane_touches(d, where, offset, bytes);
}

void Races::one_by_one(const Exec& x) { one_number_ = begin(x, Access::read).stamp; }

void Races::one(const Exec& x, int lane, const Place& place, unsigned bytes, Access access) {
  if (place.kind != Place::Kind::shared || full()) return;
  Doing d;
  d.warp = order.number_of(x.warp);
  d.access = access;
  d.who = who_of(Kind::access, d.warp);
  d.stamp = one_number_;
  d.lane = lane;
  d.repeats = true;
  d.run = &x.run;
  d.grid = &x.grid;
  d.site = x.site();
  d.starts = static_cast<std::uint32_t>(place.at);
  lane_touches(d, *place.cta, d.starts, bytes);
}

// ---- asynchronous operations ----

void Races::async_write(const Agent& agent, Cta& where, std::uint32_t offset, std::uint32_t bytes,
                        const Cta& owner, std::uint32_t barrier, bool reduces) {
  if (full() || agent.site.warp < 0) return;
  const std::uint32_t number = order.barrier(mbarrier_key(owner, barrier));
  const std::uint32_t phase = order.phase(number);
  if (copied_.size() <= number) copied_.resize(number + 1);
  std::vector<Copied>& last = copied_[number];
  if (last.empty() || last.back().phase != phase || last.back().site.op != agent.site.op) {
    constexpr std::size_t kKept = 8;
    if (last.size() == kKept) last.erase(last.begin());
    last.push_back({phase, agent.site});
  }
  Doing d = begin(agent, Access::write);
  d.strong = reduces;
  d.who = who_of(Kind::async, number);
  d.stamp = phase << 6 | (reduces ? kStrongBit : 0);
  if (d.stamp == 0) d.stamp = 1;  // 0 is nobody
  d.starts = offset;
  const unsigned shift = std::min(kLargest, log2_of(offset | bytes | kPage));
  for (const std::uint32_t end = offset + bytes; offset < end;) {
    Page& p = page(where, offset, shift);
    const std::uint32_t in_page = offset & (kPage - 1), n = std::min(kPage - in_page, end - offset);
    const std::uint32_t first = in_page >> p.shift, count = n >> p.shift;
    std::uint32_t good_who = UINT32_MAX, good = 0;
    for (std::uint32_t i = first; i < first + count; ++i) {
      if (p.who[i] == good_who && p.stamps[i] <= good) continue;
      good_who = p.who[i], good = limit(d.warp, good_who);
      // Several copies into one phase of a barrier may share a cell's neighbourhood, never a byte.
      if (p.stamps[i] > good || !p.strong.empty()) after_write(d, where, p, offset - in_page, i);
    }
    const int lane = d.lane;
    after_reads(d, where, p, offset - in_page, first, count, static_cast<unsigned>(std::max(lane, 0)), 31);
    d.lane = lane;
    std::fill_n(p.who.begin() + first, count, d.who);
    std::fill_n(p.stamps.begin() + first, count, d.stamp);
    offset += n;
  }
}

void Races::copy_write(const Agent& agent, Cta& where, std::uint32_t offset, std::uint32_t bytes,
                       std::uint32_t group, bool same) {
  if (full() || agent.site.warp < 0) return;
  Doing d = begin(agent, Access::write);
  d.who = who_of(Kind::copy, d.warp);
  d.stamp = group << 6;
  d.same = same;
  auto& copies = logs_[d.warp].copies;
  if (const std::pair copy(group, agent.site.op); copies.empty() || copies.back() != copy) {
    constexpr std::size_t kKept = 64;
    if (copies.size() == kKept) copies.erase(copies.begin());
    copies.push_back(copy);
  }
  d.starts = offset;
  lane_touches(d, where, offset, bytes);
}

void Races::async_read(const Agent& agent, Cta& where, std::uint32_t offset, std::uint32_t bytes) {
  if (full() || agent.site.warp < 0) return;
  Doing d = begin(agent, Access::read);
  std::uint32_t good_who = UINT32_MAX, good = 0;
  for (const std::uint32_t end = offset + bytes; offset < end;) {
    const Page& p = page(where, offset, kLargest);
    const std::uint32_t in_page = offset & (kPage - 1), n = std::min(kPage - in_page, end - offset);
    for (std::uint32_t i = in_page >> p.shift; i <= (in_page + n - 1) >> p.shift; ++i) {
      if (p.who[i] == good_who && p.stamps[i] <= good) continue;
      good_who = p.who[i], good = limit(d.warp, good_who);
      if (p.stamps[i] > good || !p.strong.empty()) after_write(d, where, p, offset - in_page, i);
    }
    offset += n;
  }
}

void Races::wgmma_read(const Agent& agent, Cta& where, std::uint32_t group, const std::uint32_t* chunks,
                       int count) {
  if (full()) return;
  Doing d;
  d.lane = -1;
  d.run = &agent.run;
  d.grid = &agent.grid;
  d.site = agent.site;
  // The whole warpgroup issues it: each of its warps has to know what is read.
  std::uint32_t good_who = UINT32_MAX, good_stamp = 0;
  for (int i = 0; i < count; ++i) {
    const Page& p = page(where, chunks[i], kLargest);
    const std::uint32_t in_page = chunks[i] & (kPage - 1);
    for (std::uint32_t cell = in_page >> p.shift; cell <= (in_page + 15) >> p.shift; ++cell) {
      if (p.who[cell] == good_who && p.stamps[cell] == good_stamp) continue;
      good_who = p.who[cell], good_stamp = p.stamps[cell];
      for (std::uint32_t w = 4 * group; w < 4 * group + 4; ++w) {
        d.warp = order.number_of(where.rank, w);
        d.who = who_of(Kind::access, d.warp);
        if (good_stamp > limit(d.warp, good_who) || !p.strong.empty())
          after_write(d, where, p, chunks[i] - in_page, cell);
      }
    }
  }
}

}  // namespace ptxbench::emulator
