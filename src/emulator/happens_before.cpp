#include "emulator/happens_before.hpp"

#include <algorithm>

namespace ptxbench::emulator {

void HappensBefore::Known::join(const Known& other) {
  low = std::max(low, other.low);
  if (high <= low && other.high <= low) {
    high = 0, mask = 0;
    return;
  }
  // Where both have some lanes ahead of the others, the lanes of both are taken to be as far as the further.
  mask = (high > low ? mask : 0) | (other.high > low ? other.mask : 0);
  high = std::max(high, other.high);
  if (mask == ~Mask{0}) low = high, high = 0, mask = 0;
}

void HappensBefore::joined(std::vector<Known>& into, std::uint32_t at, const Known& what) {
  if (into.size() <= at) into.resize(at + 1);
  into[at].join(what);
}

void HappensBefore::Clock::join(const Clock& other) {
  const auto known = [](std::vector<Known>& to, const std::vector<Known>& from) {
    if (to.size() < from.size()) to.resize(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) to[i].join(from[i]);
  };
  known(accesses, other.accesses);
  known(copies, other.copies);
  if (waits.size() < other.waits.size()) waits.resize(other.waits.size(), 0);
  for (std::size_t i = 0; i < other.waits.size(); ++i) waits[i] = std::max(waits[i], other.waits[i]);
  if (phases.size() < other.phases.size()) phases.resize(other.phases.size(), 0);
  for (std::size_t i = 0; i < other.phases.size(); ++i) phases[i] = std::max(phases[i], other.phases[i]);
}

void HappensBefore::Clock::clear() {
  accesses.clear();
  copies.clear();
  phases.clear();
  waits.clear();
}

void HappensBefore::reset(const Cluster& cluster) {
  warps_ = static_cast<std::uint32_t>(cluster.ctas.front()->warps.size());
  threads_.resize(cluster.ctas.size() * warps_);
  for (Threads& t : threads_) {
    t.accesses = 0;
    t.base.clear();
    t.base.accesses.resize(threads_.size());
    t.parts.clear();
    t.released.lanes = t.pending.lanes = 0;
    t.released.clock.clear();
    t.pending.clock.clear();
    t.copies.fill(0);
    t.issued.clear();
  }
  barriers_.clear();
  numbers_.clear();
  memory_.clear();
  exited_.clear();
  any_exited_ = false;
}

bool HappensBefore::covers(const Clock& clock, const Event& e) {
  switch (e.kind) {
    case Kind::access:
      return e.index < clock.accesses.size() && clock.accesses[e.index].covers(e.number, e.lane);
    case Kind::whole:
      return e.index < clock.accesses.size() &&
             e.number <= std::max(clock.accesses[e.index].low, clock.accesses[e.index].high);
    case Kind::copy:
      return e.index < clock.copies.size() && clock.copies[e.index].covers(e.number, e.lane);
    case Kind::async:
      return e.index < clock.phases.size() && clock.phases[e.index] > e.number;
  }
  return true;
}

bool HappensBefore::knows(std::uint32_t w, int lane, const Event& e) const {
  const Threads& t = threads_[w];
  if (e.index == w) {
    // Program order.
    if (e.kind == Kind::whole) return true;
    if (e.kind == Kind::access && (lane < 0 || e.lane == static_cast<unsigned>(lane))) return true;
    if (e.kind == Kind::copy && (lane < 0 || e.lane == static_cast<unsigned>(lane)) &&
        e.number <= t.copies[e.lane])
      return true;
  }
  if (covers(t.base, e)) return true;
  for (const Part& p : t.parts)
    if ((lane < 0 || (p.lanes >> lane & 1) != 0) && covers(p.clock, e)) return true;
  return false;
}

bool HappensBefore::knows_roughly(std::uint32_t w, const Event& e) const {
  const Threads& t = threads_[w];
  if (e.index == w && e.kind != Kind::async) {
    if (e.kind != Kind::copy) return true;
    return std::any_of(t.copies.begin(), t.copies.end(),
                       [&](std::uint32_t done) { return done >= e.number; });
  }
  Event whole = e;
  const auto rough = [&](const Clock& c) {
    if (e.kind == Kind::copy)
      return e.index < c.copies.size() && e.number <= std::max(c.copies[e.index].low, c.copies[e.index].high);
    return covers(c, whole);
  };
  if (e.kind == Kind::access) whole.kind = Kind::whole;
  if (rough(t.base)) return true;
  return std::any_of(t.parts.begin(), t.parts.end(), [&](const Part& p) { return rough(p.clock); });
}

void HappensBefore::release(Clock& into, std::uint32_t w, Mask lanes, Mask absent) const {
  const Threads& t = threads_[w];
  into.join(t.base);
  for (const Part& p : t.parts)
    if ((p.lanes & lanes) != 0) into.join(p.clock);
  joined(into.accesses, w, {0, t.accesses, lanes | absent});
  std::uint32_t group = 0;
  for_lanes(lanes, [&](int i) { group = std::max(group, t.copies[static_cast<unsigned>(i)]); });
  if (group != 0) joined(into.copies, w, {0, group, lanes | absent});
}

void HappensBefore::acquire(std::uint32_t w, Mask lanes, Mask live, const Clock& clock) {
  Threads& t = threads_[w];
  if ((live & ~lanes) == 0) {
    t.base.join(clock);
    return;
  }
  for (Part& p : t.parts) {
    if (p.lanes != lanes) continue;
    p.clock.join(clock);
    return;
  }
  constexpr std::size_t kMost = 4;
  if (t.parts.size() == kMost) {
    Part& to = t.parts[kMost - 2];
    to.lanes |= t.parts.back().lanes;
    to.clock.join(t.parts.back().clock);
    t.parts.pop_back();
  }
  t.parts.push_back({lanes, clock});
}

std::uint32_t HappensBefore::barrier(const WaitKey& key) {
  const std::uint64_t number =
      static_cast<std::uint64_t>(key.kind) << 48 | std::uint64_t{key.cta} << 32 | key.address;
  const auto [at, made] = numbers_.try_emplace(number, static_cast<std::uint32_t>(barriers_.size()));
  if (made) {
    barriers_.emplace_back();
    barriers_.back().key = key;
  }
  return at->second;
}

void HappensBefore::arrive(const WaitKey& key, const Warp& warp, Mask lanes, bool relaxed) {
  const std::uint32_t w = number_of(warp);
  Clock& told = barriers_[barrier(key)].under_way;
  if (!relaxed) {
    release(told, w, lanes, ~warp.live);
  } else if ((threads_[w].released.lanes & lanes) != 0) {
    told.join(threads_[w].released.clock);
  }
}

void HappensBefore::arrive_copies(const WaitKey& key, std::uint32_t warp, unsigned lane,
                                  std::uint32_t group) {
  joined(barriers_[barrier(key)].under_way.copies, warp, {0, group, Mask{1} << lane});
}

void HappensBefore::complete(const WaitKey& key, bool exited) {
  const std::uint32_t number = barrier(key);
  Barrier& b = barriers_[number];
  b.over.join(b.under_way);
  if (exited && any_exited_) b.over.join(exited_);
  b.under_way.clear();
  ++b.phase;
  if (b.over.phases.size() <= number) b.over.phases.resize(number + 1, 0);
  b.over.phases[number] = b.phase;
}

void HappensBefore::wait(const WaitKey& key, const Warp& warp, Mask lanes, bool relaxed) {
  const std::uint32_t w = number_of(warp);
  Threads& t = threads_[w];
  const Clock& over = barriers_[barrier(key)].over;
  if (relaxed) {
    t.pending.clock.join(over);
    t.pending.lanes |= lanes;
    return;
  }
  acquire(w, lanes, warp.live, over);
  // All lanes have told there what they know.
  if (key.kind == WaitKey::Kind::named_barrier && (warp.live & ~lanes) == 0) t.parts.clear();
}

void HappensBefore::copies_done(std::uint32_t warp, unsigned lane, std::uint32_t group) {
  std::uint32_t& done = threads_[warp].copies[lane];
  done = std::max(done, group);
}

void HappensBefore::waited(std::uint32_t warp, Wait what, std::uint64_t value) {
  std::vector<std::uint64_t>& waits = threads_[warp].base.waits;
  if (waits.empty()) waits.resize(threads_.size() * kWaits, 0);
  std::uint64_t& own = waits[warp * kWaits + what];
  own = std::max(own, value);
  if (what != kWgmma) return;
  std::vector<Known>& known = threads_[warp].base.accesses;
  const std::uint32_t first = warp - warp % warps_ % 4;
  for (std::uint32_t w = first; w < first + 4 && w < threads_.size(); ++w) {
    const auto& issued = threads_[w].issued;
    for (std::size_t i = issued.size(); i-- > 0;) {
      if (issued[i].first > value) continue;
      known[w].join({issued[i].second, 0, 0});
      break;
    }
  }
}

void HappensBefore::issued(std::uint32_t warp, std::uint64_t number) {
  Threads& t = threads_[warp];
  if (!t.issued.empty() && t.issued.back().second == t.accesses) return;
  constexpr std::size_t kMost = 64;
  if (t.issued.size() == kMost) t.issued.erase(t.issued.begin(), t.issued.begin() + kMost / 2);
  t.issued.emplace_back(number, t.accesses);
}

bool HappensBefore::knows_wait(std::uint32_t warp, int lane, std::uint32_t of, Wait what,
                               std::uint64_t value) const {
  const std::size_t at = std::size_t{of} * kWaits + what;
  const auto known = [&](const Clock& c) { return at < c.waits.size() && c.waits[at] >= value; };
  const Threads& t = threads_[warp];
  if (known(t.base)) return true;
  return std::any_of(t.parts.begin(), t.parts.end(), [&](const Part& p) {
    return (lane < 0 || (p.lanes >> lane & 1) != 0) && known(p.clock);
  });
}

void HappensBefore::fence(const Warp& warp, Mask lanes, bool acquires, bool releases) {
  const std::uint32_t w = number_of(warp);
  Threads& t = threads_[w];
  if (acquires && (t.pending.lanes & lanes) != 0)
    acquire(w, t.pending.lanes & lanes, warp.live, t.pending.clock);
  if (releases) {
    if ((t.released.lanes & ~lanes) == 0) t.released.clock.clear();
    t.released.lanes |= lanes;
    release(t.released.clock, w, lanes, ~warp.live);
  }
}

void HappensBefore::strong_access(const Warp& warp, Mask lanes, bool reads, bool writes, bool acquires,
                                  bool releases) {
  const std::uint32_t w = number_of(warp);
  Threads& t = threads_[w];
  if (reads && acquires) acquire(w, lanes, warp.live, memory_);
  if (reads && !acquires && !memory_.accesses.empty()) {
    t.pending.clock.join(memory_);
    t.pending.lanes |= lanes;
  }
  if (!writes) return;
  if (releases) {
    release(memory_, w, lanes, ~warp.live);
  } else if ((t.released.lanes & lanes) != 0) {
    memory_.join(t.released.clock);
  }
}

void HappensBefore::warp_sync(const Warp& warp, Mask lanes) {
  const std::uint32_t w = number_of(warp);
  Threads& t = threads_[w];
  if ((warp.live & ~lanes) == 0) {
    for (const Part& p : t.parts) t.base.join(p.clock);
    t.parts.clear();
    t.base.accesses[w] = {t.accesses, 0, 0};
    const std::uint32_t group = *std::max_element(t.copies.begin(), t.copies.end());
    if (group != 0) joined(t.base.copies, w, {group, 0, 0});
    return;
  }
  scratch_.clear();
  release(scratch_, w, lanes, 0);
  acquire(w, lanes, warp.live, scratch_);
}

void HappensBefore::exit(const Warp& warp, Mask lanes) {
  any_exited_ = true;
  release(exited_, number_of(warp), lanes, ~warp.live);
}

}  // namespace ptxbench::emulator
