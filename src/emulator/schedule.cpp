// The inner loop: fragments of a warp, chosen by rank, one instruction after the other.
#include "emulator/schedule.hpp"

#include "emulator/memory.hpp"
#include "emulator/happens_before.hpp"
#include "emulator/vector_clocks.hpp"
#include "emulator/wgmma.hpp"

#include <algorithm>
#include <chrono>

namespace ptxbench::emulator {
namespace {

using Kind = WaitKey::Kind;

constexpr std::size_t kNobody = SIZE_MAX;
constexpr std::uint32_t kQuantum = 64;        // instructions of a turn
constexpr std::uint32_t kLongTurn = 1 << 14;  // of one that mostly ends when the warp waits
constexpr std::uint32_t kPatience = 256;      // backward jumps before lanes that wait behind a loop get a turn
constexpr std::uint32_t kPolls = 64;          // of a loop that may end by itself, before it waits like one that cannot
constexpr std::uint32_t kFavour = 64;         // instructions of such a turn
constexpr std::uint64_t kCheckEvery = 8192;   // steps between looks at the clock and the budget
constexpr std::uint64_t kAdvanceEvery = 1 << 16;  // steps of warps that never wait, before something asynchronous ends

bool runs(const Fragment& f) { return f.wait.kind == Kind::none; }

// Lanes at the same instruction that remember the same: one fragment.
bool may_merge(const Fragment& a, const Fragment& b) {
  if (a.pc != b.pc || a.wait_value != b.wait_value || a.timed_out != b.timed_out) return false;
  const bool a_comes = runs(a) || a.wait.kind == Kind::converge, b_comes = runs(b) || b.wait.kind == Kind::converge;
  return a_comes && b_comes;
}

}  // namespace

// The fragment to run: merges those that have met, then the lowest rank, but for fairness. kNobody where all wait.
std::size_t ClusterRunner::choose(Warp& warp) {
  std::vector<Fragment>& all = warp.fragments;
  if (all.size() > 1) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t j = i + 1; j < all.size();) {
        if (!may_merge(all[i], all[j])) {
          ++j;
          continue;
        }
        Fragment& to = all[i];
        to.mask |= all[j].mask;
        to.wait = {};
        to.last_run = std::max(to.last_run, all[j].last_run);
        to.backward = std::max(to.backward, all[j].backward);
        to.polled = to.polled || all[j].polled;
        all[j] = all.back();
        all.pop_back();
      }
    }
  }
  std::size_t best = kNobody;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!runs(all[i])) continue;
    if (best == kNobody) best = i;
    else if (warp.favoured != 0 ? all[i].last_run > all[best].last_run
                                : kernel_.rank[all[i].pc] < kernel_.rank[all[best].pc])
      best = i;
  }
  if (best != kNobody) all[best].last_run = cluster_.clock;
  return best;
}

// Whether another fragment has to be looked at before the next instruction of fragment @p at.
bool ClusterRunner::disturbed(const Warp& warp, std::size_t at) const {
  const Fragment& f = warp.fragments[at];
  const std::uint32_t rank = kernel_.rank[f.pc];
  for (std::size_t i = 0; i < warp.fragments.size(); ++i) {
    if (i == at) continue;
    const Fragment& other = warp.fragments[i];
    if (other.pc == f.pc) return true;
    if (runs(other) && warp.favoured == 0 && kernel_.rank[other.pc] < rank) return true;
  }
  return false;
}

// A fragment went back in a loop. True: the warp's turn shall end, or another fragment be chosen.
bool ClusterRunner::jumped_back(Warp& warp, Fragment& f, const Op& op) {
  ++f.backward;
  if (f.polled) {
    f.polled = false;
    if (!kernel_.info[op.info].in_spin_loop) {
      if (f.progress_seen != cluster_.progress) {
        f.progress_seen = cluster_.progress;
        f.polls = 0;
      } else if (++f.polls < kPolls) {
        return true;
      }
    }
    if (kernel_.info[op.info].in_spin_loop || f.polls != 0) {
      f.polls = f.backward = 0;
      f.wait.kind = Kind::time;
      return true;
    }
  }
  if (warp.fragments.size() == 1 || f.backward < kPatience) return false;
  f.backward = 0;
  Fragment* oldest = nullptr;
  for (Fragment& other : warp.fragments)
    if (&other != &f && runs(other) && (oldest == nullptr || other.last_run < oldest->last_run)) oldest = &other;
  if (oldest == nullptr) return false;
  oldest->last_run = cluster_.clock + 1;  // the newest: favoured
  warp.favoured = kFavour;
  return true;
}

// All fragments of the warp wait for lanes of the same warp: nobody can ever come.
bool ClusterRunner::stuck(Warp& warp) {
  for (const Fragment& f : warp.fragments)
    if (f.wait.kind != Kind::converge) return false;
  run_->raise(partial_collective_fault(warp, grid_));
  return true;
}

// An .aligned instruction needs all lanes that have not exited. False: a fault was raised.
bool ClusterRunner::gather(Warp& warp, Fragment& f, const Op& op, Mask mask, bool& parked) {
  parked = false;
  if (mask == warp.live) return true;
  if (f.mask != warp.live) {
    f.wait = {Kind::converge, static_cast<std::uint16_t>(warp.cta->rank), f.pc};
    parked = true;
    return !stuck(warp);
  }
  const int lane = __builtin_ctz(warp.live & ~mask);
  run_->raise({FaultKind::partial_collective,
               {f.pc, static_cast<std::int64_t>(warp.cta->linear_id), static_cast<std::int32_t>(warp.index), lane},
               kernel_.info[op.info].text + " is executed by " + std::to_string(__builtin_popcount(mask)) + " of the " +
                   std::to_string(__builtin_popcount(warp.live)) +
                   " lanes of its warp: its guard is false in the others, and an .aligned instruction needs all",
               {}});
  return false;
}

// The instruction touches a register that a wgmma under way still uses: that is completed first (ptxas inserts the wait).
// False: it cannot be yet, or a fault was raised.
bool ClusterRunner::settle_in_flight(Warp& warp, Fragment& f, const Op& op) {
  const std::uint32_t first = op.first_operand, last = first + op.destinations + op.sources;
  const auto busy = [&] {
    for (std::uint32_t k = first; k < last; ++k)
      if (const Operand o = kernel_.operands[k]; o >= 0 && warp.in_flight[slot_of(o)] != 0) return true;
    return false;
  };
  if (!busy()) return true;
  run_->remark(false, "wgmma_register_touched",
               {f.pc, static_cast<std::int64_t>(warp.cta->linear_id), static_cast<std::int32_t>(warp.index), -1},
               "a register is used while a wgmma that works on it is under way, before its wait_group: ptxas inserts a "
               "wait here, which costs time");
  const std::uint32_t group = warp.index / 4;
  cluster_.async->finish(
      [&](const AsyncOp& a) {
        return a.cta == warp.cta->rank && a.warp / 4 == group && a.site.op < kernel_.ops.size() &&
               kernel_.info[kernel_.ops[a.site.op].info].family == "wgmma";
      },
      *run_);
  if (run_->failed()) return false;
  if (!busy()) {
    if (const auto& state = warp.cta->warpgroups[group]; state != nullptr && cluster_.clocks != nullptr) {
      cluster_.clocks->learn(warp.cta->rank, warp.index, VectorClocks::kWgmma, state->completed);
      if (HappensBefore* order = order_of(cluster_))
        order->waited(order->number_of(warp), HappensBefore::kWgmma, state->completed);
    }
    return true;
  }
  f.wait.kind = Kind::time;  // other warps of the warpgroup have not issued it yet
  return false;
}

// A strong access, or a fence, has been executed.
void ClusterRunner::synchronise(Warp& warp, const Op& op, Mask mask) {
  if (cluster_.clocks != nullptr) cluster_.clocks->access(warp.cta->rank, warp.index);
  HappensBefore* const order = order_of(cluster_);
  if (order == nullptr) return;
  const bool acquires = (op.flags & kAcquires) != 0, releases = (op.flags & kReleases) != 0;
  if ((op.flags & kFence) != 0) {
    order->fence(warp, mask, acquires, releases);
  } else {
    order->strong_access(warp, mask, (op.flags & kPoll) != 0, (op.flags & kSideEffect) != 0, acquires,
                                        releases);
  }
}

void ClusterRunner::propagate(Warp& warp, const Op& op, Mask mask) {
  const Operand* o = kernel_.operands.data() + op.first_operand;
  const Operand* const sources = o + op.destinations;
  Mask u = 0;
  for (unsigned i = 0; i < op.sources; ++i)
    if (sources[i] >= 0) u |= warp.undefined[slot_of(sources[i])];
  for (unsigned i = 0; i < op.destinations; ++i) {
    if (o[i] < 0) continue;
    Mask& d = warp.undefined[slot_of(o[i])];
    d = (d & ~mask) | (u & mask);
  }
}

// Runs one warp until its quantum ends or all of its fragments wait. False: stopped.
bool ClusterRunner::turn(Warp& warp, std::uint32_t quantum) {
  std::size_t at = choose(warp);
  if (at == kNobody) {
    warp.ready = false;
    return true;
  }
  const Op* const ops = kernel_.ops.data();
  const std::uint32_t* const rank = kernel_.rank.data();
  OpCount* const counts = run_->counts.data();
  Cta& cta = *warp.cta;
  std::uint64_t steps = 0;
  bool go_on = true;
  for (; quantum != 0; --quantum) {
    Fragment& f = warp.fragments[at];
    const std::uint32_t pc = f.pc;
    const Op& op = ops[pc];
    Mask mask = f.mask;
    if (op.guard >= 0) {
      if (const Mask u = warp.preds_undefined[op.guard] & mask; u != 0) {
        run_->raise({FaultKind::undefined_value,
                     {pc, static_cast<std::int64_t>(cta.linear_id), static_cast<std::int32_t>(warp.index), __builtin_ctz(u)},
                     "the predicate that guards this instruction was never written, or depends on a value that was not",
                     {}});
        go_on = false;
        break;
      }
      if ((op.flags & kBranch) == 0) {
        const Mask p = warp.preds[op.guard];
        mask &= op.guard_negated ? ~p : p;
        if (mask == 0) {
          ++counts[op.info].warps;
          ++steps, ++cluster_.clock;
          ++f.pc;
          if (warp.fragments.size() > 1) {
            if (warp.favoured != 0) --warp.favoured;
            if (disturbed(warp, at)) at = choose(warp);
          }
          continue;
        }
      }
    }
    if ((op.flags & (kAligned | kMayBeInFlight | kPropagate)) != 0) {
      if ((op.flags & kAligned) != 0 && mask != warp.live) {
        bool parked = false;
        if (!gather(warp, f, op, mask, parked)) {
          go_on = false;
          break;
        }
        if (parked) {
          at = choose(warp);
          if (at == kNobody) break;
          continue;
        }
      }
      if ((op.flags & (kMayBeInFlight | kAsync)) == kMayBeInFlight) {
        for (std::uint32_t k = op.first_operand, end = k + op.destinations; k < end; ++k)
          if (const Operand o = kernel_.operands[k]; o >= 0) warp.unfenced[slot_of(o)] = 1;
      }
      if ((op.flags & (kMayBeInFlight | kAsync)) == kMayBeInFlight && warp.in_flight_total != 0 &&
          !settle_in_flight(warp, f, op)) {
        if (run_->failed()) {
          go_on = false;
          break;
        }
        at = choose(warp);
        if (at == kNobody) break;
        continue;
      }
      if ((op.flags & kPropagate) != 0) propagate(warp, op, mask);
    }
    if ((op.flags & kPoll) != 0) f.poll = pc, f.polled_for = {};
    Exec x{grid_, cluster_, cta, warp, f, kernel_, op, mask, *run_};
    const Flow flow = op.run(x);
    if (flow == Flow::next) {
      OpCount& c = counts[op.info];
      ++c.warps;
      c.threads += mask == ~Mask{0} ? kLanes : static_cast<unsigned>(__builtin_popcount(mask));
      ++steps, ++cluster_.clock;
      f.pc = pc + 1;
      if ((op.flags & (kSideEffect | kPoll | kStrong)) != 0) {
        if ((op.flags & kStrong) != 0) synchronise(warp, op, mask);
        if ((op.flags & kSideEffect) != 0 && ((op.flags & kPoll) == 0 || !kernel_.info[op.info].in_spin_loop))
          ++cluster_.progress;  // an atomic that a loop waits with is none
        f.polled = f.polled || (op.flags & kPoll) != 0;
      }
      f.wait_value = 0;
      f.timed_out = f.may_time_out = false;
      if (warp.fragments.size() == 1) continue;
      if (warp.favoured != 0) --warp.favoured;
      if (disturbed(warp, at)) at = choose(warp);
      continue;
    }
    if (flow == Flow::stop) {
      go_on = false;
      break;
    }
    if (flow == Flow::again) {
      Fragment& w = warp.fragments[at];
      if (w.wait.kind == Kind::none) w.wait.kind = Kind::time;
      if (w.wait.kind == Kind::converge && stuck(warp)) {
        go_on = false;
        break;
      }
      at = choose(warp);
      if (at == kNobody) break;
      continue;
    }
    // jump or split
    Mask threads = mask;
    if ((op.flags & kBranch) != 0 && op.guard >= 0) threads &= op.guard_negated ? ~warp.preds[op.guard] : warp.preds[op.guard];
    OpCount& c = counts[op.info];
    ++c.warps;
    c.threads += static_cast<unsigned>(__builtin_popcount(threads));
    ++steps, ++cluster_.clock;
    if ((op.flags & kSideEffect) != 0) ++cluster_.progress;
    if (warp.favoured != 0) --warp.favoured;
    if (flow == Flow::jump) {
      Fragment& j = warp.fragments[at];
      j.wait_value = 0;
      j.timed_out = j.may_time_out = false;
      const bool back = rank[j.pc] <= rank[pc] && jumped_back(warp, j, op);
      if (warp.fragments.size() > 1 || (back && !runs(j))) {
        at = choose(warp);
        if (at == kNobody) break;
      }
      if (back && warp.fragments.size() == 1) break;  // a poll yields to the other warps
      continue;
    }
    if (warp.fragments.empty()) break;  // all lanes have exited
    for (Fragment& s : warp.fragments)
      if (s.polled && runs(s) && rank[s.pc] <= rank[pc]) jumped_back(warp, s, op);
    at = choose(warp);
    if (at == kNobody) break;
  }
  warp.steps += steps;
  steps_ += steps;
  run_->steps += steps;
  return go_on;
}

bool ClusterRunner::round() {
  if (run_->failed()) return false;
  if (random_) std::shuffle(warps_.begin(), warps_.end(), cluster_.random);
  bool any = false;
  for (Warp* const warp : warps_) {
    if (!warp->ready) continue;
    if (warp->fragments.empty()) {
      warp->ready = false;
      continue;
    }
    // Where warps are kept in step by nothing but their turns, long ones show it: under the lazy schedule, and under
    // every second seed.
    const bool in_step = random_ ? (grid_.schedule.seed & 1) == 0 : grid_.schedule.mode == Schedule::Mode::eager;
    const std::uint32_t quantum =
        !in_step ? kLongTurn : random_ ? 1 + static_cast<std::uint32_t>(cluster_.random() % kQuantum) : kQuantum;
    const std::uint64_t before = steps_;
    if (!turn(*warp, quantum)) return false;
    const std::uint64_t progress = cluster_.progress;
    if (!cluster_.async->empty()) cluster_.async->breathe(*run_);
    // What completed may have woken a warp that had its turn.
    any = any || steps_ != before || warp->ready || cluster_.progress != progress;
    if (run_->failed()) return false;
  }
  if (steps_ - checked_ >= kCheckEvery) {
    if (!within_limits()) return false;
    // Some may poll in a way that is not told from work: nobody else waits for them for ever.
    any = release_time() || any;
    if (steps_ - advanced_ >= kAdvanceEvery) any = advance() || any;
  }
  if (!any) done_ = std::all_of(cluster_.ctas.begin(), cluster_.ctas.end(), [](const auto& c) { return c->done(); });
  return any;
}

bool ClusterRunner::within_limits() {
  const std::uint64_t all = budget_.steps.fetch_add(steps_ - checked_) + steps_ - checked_;
  checked_ = steps_;
  if (budget_.lowest_fault.load(std::memory_order_relaxed) < cluster_.index) {
    // Somebody before this cluster has a fault: what happens here is of no interest.
    run_->raise({FaultKind::unsupported, {}, "stopped", {}});
    return false;
  }
  FaultKind kind = FaultKind::step_limit;
  std::string message;
  if (grid_.limits.steps != 0 && all > grid_.limits.steps) {
    message = "the launch has executed more than " + std::to_string(grid_.limits.steps) + " warp instructions, the limit";
  } else if (grid_.limits.deadline_ns != 0 &&
             static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                            std::chrono::steady_clock::now().time_since_epoch())
                                            .count()) > grid_.limits.deadline_ns) {
    kind = FaultKind::time_limit;
    message = "the launch has not ended within its time, after " + std::to_string(all) + " warp instructions";
  } else {
    return true;
  }
  // The place is that of the warp that has done most: a loop that does not end, mostly.
  const Warp* most = nullptr;
  for (const Warp* warp : warps_)
    if (!warp->fragments.empty() && (most == nullptr || warp->steps > most->steps)) most = warp;
  Site site;
  if (most != nullptr)
    site = {most->fragments.front().pc, static_cast<std::int64_t>(most->cta->linear_id),
            static_cast<std::int32_t>(most->index), __builtin_ctz(most->fragments.front().mask)};
  run_->raise({kind, site, std::move(message), where_everybody_is({&cluster_}, grid_)});
  return false;
}

bool ClusterRunner::release_time() {
  bool any = false;
  for (Warp* const warp : warps_) {
    for (Fragment& f : warp->fragments) {
      if (f.wait.kind != Kind::time) continue;
      f.wait = {};
      warp->ready = any = true;
    }
  }
  return any;
}

// Whether a fragment that waits could be waiting for @p op.
bool ClusterRunner::awaited(const AsyncOp& op) const {
  if (op.site.op >= kernel_.ops.size()) return true;
  const std::string_view issued = kernel_.info[kernel_.ops[op.site.op].info].text;
  const auto begins = [](std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; };
  const bool announces = issued.find("mbarrier") != std::string_view::npos;
  for (const Warp* const warp : warps_) {
    for (const Fragment& f : warp->fragments) {
      if (f.wait.kind == Kind::mbarrier && announces && op.signals(f.wait.cta, f.wait.address)) return true;
      if (f.wait.kind != Kind::async_group) continue;
      const std::string_view waits = kernel_.info[kernel_.ops[f.pc].info].text;
      const bool bulk = begins(waits, "cp.async.bulk");
      const bool same = begins(waits, "wgmma") ? begins(issued, "wgmma")
                        : bulk ? begins(issued, "cp.async.bulk") || begins(issued, "cp.reduce")
                               : begins(issued, "cp.async.") && !begins(issued, "cp.async.bulk");
      if (same && !announces && static_cast<std::int64_t>(warp->cta->linear_id) == op.site.cta &&
          (begins(waits, "wgmma") || static_cast<std::int32_t>(warp->index) == op.site.warp))
        return true;
    }
  }
  return false;
}

bool ClusterRunner::advance() {
  advanced_ = steps_;
  if (cluster_.async->empty()) return false;
  // The lazy schedule completes only what somebody waits for, as long as that can be.
  const bool lazy = grid_.schedule.mode == Schedule::Mode::lazy;
  if (!(lazy && cluster_.async->advance(*run_, [&](const AsyncOp& op) { return awaited(op); })) &&
      !cluster_.async->advance(*run_))
    return false;
  ++cluster_.progress;
  return true;
}

bool ClusterRunner::time_out() {
  bool any = false;
  for (Warp* const warp : warps_) {
    for (Fragment& f : warp->fragments) {
      if (f.wait.kind == Kind::none) continue;
      if (f.may_time_out) f.timed_out = true;
      else if (f.wait.kind != Kind::time) continue;
      f.wait = {};
      warp->ready = any = true;
    }
  }
  return any;
}

void ClusterRunner::drain() {
  while (!run_->failed() && !cluster_.async->empty() && advance()) {
  }
}

std::uint64_t ClusterRunner::fingerprint() const {
  std::uint64_t h = 1469598103934665603u;
  const auto mix = [&](std::uint64_t v) { h = (h ^ v) * 1099511628211u; };
  for (const std::unique_ptr<Cta>& cta : cluster_.ctas) {
    for (const Warp& warp : cta->warps) {
      mix(warp.index);
      std::uint64_t sum = 0;  // the order of fragments does not matter
      for (const Fragment& f : warp.fragments)
        sum += (std::uint64_t{f.pc} << 32 | f.mask) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(f.wait.kind) * 31 +
               f.wait.address;
      mix(sum);
    }
  }
  return h;
}

bool ClusterRunner::may_end_by_itself() const {
  for (const std::unique_ptr<Cta>& cta : cluster_.ctas)
    for (const Warp& warp : cta->warps)
      for (const Fragment& f : warp.fragments)
        if ((f.wait.kind == Kind::time || f.may_time_out) && !kernel_.info[kernel_.ops[f.pc].info].in_spin_loop) return true;
  return false;
}

}  // namespace ptxbench::emulator
