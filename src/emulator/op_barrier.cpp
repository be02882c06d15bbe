// bar and barrier: the CTA's named barriers; bar.warp.sync; barrier.cluster.
//
// A warp arrives at a named barrier when all of its lanes that have not exited have executed one (PTX ISA 9.0, 9.7.13.1):
// it counts as 32 threads then. As threads exit, barriers that waited for them only are complete (exit, 9.7.15).
#include "emulator/barriers.hpp"

#include "emulator/control.hpp"
#include "emulator/decode_builder.hpp"
#include "emulator/mbarrier.hpp"
#include "emulator/happens_before.hpp"
#include "emulator/run.hpp"
#include "emulator/vector_clocks.hpp"

#include <utility>

namespace ptxbench::emulator {
namespace {

enum Kind : std::uint8_t { kSync, kArrive, kPopc, kAnd, kOr };

std::uint32_t warp_bit(const Warp& w) { return 1u << w.index; }

// What has arrived is complete: those who wait go on, the next generation begins.
void complete(Cta& cta, std::uint32_t number) {
  NamedBarrier& b = cta.named[number];
  b.last_count = b.reduction_count, b.last_and = b.reduction_and, b.last_or = b.reduction_or;
  b.reduction_count = 0, b.reduction_and = true, b.reduction_or = false;
  b.expected = b.arrived = b.arrived_warps = 0;
  const bool everyone = std::exchange(b.everyone, false);
  ++b.generation;
  ++cta.cluster->progress;
  const WaitKey key{WaitKey::Kind::named_barrier, static_cast<std::uint16_t>(cta.rank), number};
  if (cta.cluster->clocks != nullptr) cta.cluster->clocks->complete(key);
  if (HappensBefore* order = order_of(*cta.cluster)) order->complete(key, everyone);
  cta.cluster->wake(key);
}

void look(Cta& cta, std::uint32_t number) {
  NamedBarrier& b = cta.named[number];
  if (b.expected == 0) return;
  bool all = b.arrived >= b.expected;
  if (b.everyone) {
    all = true;
    for (const Warp& w : cta.warps)
      if (w.live != 0 && (b.arrived_warps & warp_bit(w)) == 0) all = false;
  }
  if (all) complete(cta, number);
}

void arrive_warp(Cta& cta, Warp& warp, std::uint32_t number) {
  NamedBarrier& b = cta.named[number];
  b.partial[warp.index] = 0;
  b.arrived += kLanes;
  b.arrived_warps |= warp_bit(warp);
  ++cta.cluster->progress;
  look(cta, number);
}

// A source that has to be the same in all lanes.
bool uniform(Exec& x, unsigned i, const char* what, std::uint32_t& value, Flow& flow) {
  const int first = __builtin_ctz(x.mask);
  if (const Mask u = x.undefined_of(x.operand(i)) & x.mask; u != 0) {
    flow = x.fault(FaultKind::undefined_value, __builtin_ctz(u), std::string(what) + " was never written");
    return false;
  }
  const std::uint32_t* v = x.src(i);
  value = v[first];
  for (Mask m = x.mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    if (v[lane] == value) continue;
    flow = x.fault(FaultKind::barrier_misuse, lane,
                   std::string(what) + " is " + std::to_string(v[lane]) + " here and " + std::to_string(value) +
                       " in lane " + std::to_string(first) + " of the same warp");
    return false;
  }
  return true;
}

// Op::a the kind; Op::c whether there is a thread count. Operands: [d,] number[, count][, predicate in or out...].
Flow op_named_barrier(Exec& x) {
  const unsigned at = x.op.destinations;
  std::uint32_t number = 0, count = 0;
  Flow flow = Flow::next;
  if (!uniform(x, at, "the barrier's number", number, flow)) return flow;
  if (number >= 16)
    return x.fault(FaultKind::barrier_misuse, -1, "barrier " + std::to_string(number) + ": a CTA has barriers 0 to 15");
  NamedBarrier& b = x.cta.named[number];
  const WaitKey key{WaitKey::Kind::named_barrier, static_cast<std::uint16_t>(x.cta.rank), number};
  const unsigned predicates = at + x.op.sources;
  if (x.fragment.wait_value == 0) {
    const auto all = static_cast<std::uint32_t>(x.cta.warps.size()) * kLanes;
    bool everyone = x.op.c == 0;
    if (!everyone) {
      if (!uniform(x, at + 1, "the barrier's thread count", count, flow)) return flow;
      if (count == 0 || count % kLanes != 0 || count > all)
        return x.fault(FaultKind::barrier_misuse, -1,
                       "barrier " + std::to_string(number) + " with " + std::to_string(count) +
                           " threads: it takes multiples of 32 up to the " + std::to_string(all) + " of the CTA");
    } else {
      count = all;
    }
    if (b.expected == 0) {
      b.expected = count;
      b.everyone = everyone;
    } else if (b.expected != count) {
      return x.fault(FaultKind::barrier_misuse, -1,
                     "barrier " + std::to_string(number) + " is used for " + std::to_string(count) +
                         " threads here, while others wait at it for " + std::to_string(b.expected));
    }
    b.everyone = b.everyone || everyone;
    if (x.op.a >= kPopc) {
      if (const Mask u = x.pred_undefined(predicates) & x.mask; u != 0)
        return x.fault(FaultKind::undefined_value, __builtin_ctz(u), "the predicate of the reduction was never written");
      const Mask p = x.pred(predicates) & x.mask;
      b.reduction_count += static_cast<std::uint32_t>(__builtin_popcount(p));
      b.reduction_and = b.reduction_and && p == x.mask;
      b.reduction_or = b.reduction_or || p != 0;
    }
    x.fragment.wait_value = b.generation;
    if (x.cluster.clocks != nullptr) x.cluster.clocks->arrive(key, x.cta.rank, x.warp.index);
    if (HappensBefore* order = order_of(x.cluster)) order->arrive(key, x.warp, x.mask, false);
    const Mask have = b.partial[x.warp.index] | x.mask;
    if ((x.warp.live & ~have) != 0) {
      b.partial[x.warp.index] = have;
      ++x.cluster.progress;
    } else {
      arrive_warp(x.cta, x.warp, number);
    }
    if (x.op.a == kArrive) return Flow::next;
  }
  if (b.generation == x.fragment.wait_value) {
    x.fragment.wait = key;
    return Flow::again;
  }
  if (x.cluster.clocks != nullptr) x.cluster.clocks->wait(key, x.cta.rank, x.warp.index);
  if (HappensBefore* order = order_of(x.cluster)) order->wait(key, x.warp, x.mask, false);
  if (x.op.a == kPopc) {
    write_lanes(x.dst(0), x.mask, [&](unsigned) { return b.last_count; });
    x.set_undefined(0, 0);
  } else if (x.op.a == kAnd || x.op.a == kOr) {
    x.set_pred(predicates + 1, (x.op.a == kAnd ? b.last_and : b.last_or) ? ~Mask{0} : 0);
  }
  return Flow::next;
}

constexpr std::uint16_t kWarpSync = UINT16_MAX;  // WaitKey::cta of who waits at a bar.warp.sync

// Lanes wait for those of their member mask, at whatever bar.warp.sync with the same mask these have come to.
Flow op_warp_sync(Exec& x) {
  if (const Mask u = x.undefined_of(x.operand(0)) & x.mask; u != 0)
    return x.fault(FaultKind::undefined_value, __builtin_ctz(u), "the member mask was never written");
  const std::uint32_t* members = x.src(0);
  Mask go_on = 0;
  for (Mask left = x.mask; left != 0;) {
    const int lane = __builtin_ctz(left);
    const Mask m = members[lane];
    Mask group = 0;
    for_lanes(left, [&](int i) { group |= members[i] == m ? 1u << i : 0; });
    left &= ~group;
    if (const Mask outside = group & ~m; outside != 0)
      return x.fault(FaultKind::partial_collective, __builtin_ctz(outside), "the lane is not in its own member mask");
    Mask here = group;
    for (const Fragment& f : x.warp.fragments)
      if (f.wait == WaitKey{WaitKey::Kind::converge, kWarpSync, m}) here |= f.mask;
    if ((m & x.warp.live & ~here) != 0) continue;
    go_on |= group;
    if (HappensBefore* order = order_of(x.cluster)) order->warp_sync(x.warp, here & m);
    for (Fragment& f : x.warp.fragments) {
      if (!(f.wait == WaitKey{WaitKey::Kind::converge, kWarpSync, m})) continue;
      f.wait = {};
      ++f.pc;
      x.warp.ready = true;
    }
  }
  if (go_on == x.mask) return Flow::next;
  Fragment& f = x.fragment;
  const WaitKey key{WaitKey::Kind::converge, kWarpSync, members[__builtin_ctz(x.mask & ~go_on)]};
  if (go_on == 0) {
    f.wait = key;
    return Flow::again;
  }
  Fragment rest = f;
  rest.mask = f.mask & ~go_on;
  rest.wait = {};  // looks again: its lanes may belong to several groups
  f.mask = go_on;
  ++f.pc;
  x.warp.fragments.push_back(rest);
  return Flow::split;
}

constexpr WaitKey kClusterBarrier{WaitKey::Kind::cluster_barrier, 0, 0};

void cluster_phase(Cluster& cluster) {
  const std::uint64_t parity = cluster.barrier.phase & 1;
  for (const std::unique_ptr<Cta>& cta : cluster.ctas)
    for (const Warp& w : cta->warps)
      if ((w.live & ~w.cluster_arrived[parity]) != 0) return;
  cluster.barrier.arrived = 0;
  ++cluster.barrier.phase;
  ++cluster.progress;
  if (cluster.clocks != nullptr) cluster.clocks->complete(kClusterBarrier);
  if (HappensBefore* order = order_of(cluster)) order->complete(kClusterBarrier, true);
  cluster.wake(kClusterBarrier);
}

Flow op_cluster_arrive(Exec& x) {
  const std::uint64_t parity = x.cluster.barrier.phase & 1;
  if (const Mask twice = (x.warp.cluster_arrived[0] | x.warp.cluster_arrived[1]) & x.mask; twice != 0)
    return x.fault(FaultKind::barrier_misuse, __builtin_ctz(twice),
                   "barrier.cluster.arrive twice without a barrier.cluster.wait in between");
  x.warp.cluster_arrived[parity] |= x.mask;
  x.cluster.barrier.arrived += static_cast<std::uint32_t>(__builtin_popcount(x.mask));
  if (x.op.a == 0) mbarrier_inits_fenced(x.cta);
  if (x.cluster.clocks != nullptr) x.cluster.clocks->arrive(kClusterBarrier, x.cta.rank, x.warp.index);
  if (HappensBefore* order = order_of(x.cluster)) order->arrive(kClusterBarrier, x.warp, x.mask, x.op.a != 0);
  ++x.cluster.progress;
  cluster_phase(x.cluster);
  return Flow::next;
}

Flow op_cluster_wait(Exec& x) {
  const std::uint64_t parity = x.cluster.barrier.phase & 1;
  Mask* arrived = x.warp.cluster_arrived;
  if (const Mask none = x.mask & ~(arrived[0] | arrived[1]); none != 0)
    return x.fault(FaultKind::barrier_misuse, __builtin_ctz(none),
                   "barrier.cluster.wait without a barrier.cluster.arrive before it");
  if ((arrived[parity] & x.mask) != 0) {
    x.fragment.wait = kClusterBarrier;
    return Flow::again;
  }
  if (x.cluster.clocks != nullptr) x.cluster.clocks->wait(kClusterBarrier, x.cta.rank, x.warp.index);
  if (HappensBefore* order = order_of(x.cluster)) order->wait(kClusterBarrier, x.warp, x.mask, false);
  arrived[1 - parity] &= ~x.mask;
  return Flow::next;
}

Result<void> decode_bar(Decoder& d) {
  const ptx::Instruction& i = d.instruction();
  Modifiers m(i);
  if (m.take("warp")) {
    if (!m.take("sync")) return d.bad("bar.warp needs .sync");
    PTXBENCH_TRY(m.finish(d));
    PTXBENCH_TRY(d.expect_operands(1));
    Emit e;
    e.run = op_warp_sync;
    e.flags = kNone;
    PTXBENCH_TRY(d.src(e, 0, Ty::b32));
    return d.emit(e, "barrier");
  }
  m.take("cta");
  Emit e;
  e.run = op_named_barrier;
  e.flags = kSideEffect;
  if (m.take("aligned") || i.opcode == "bar") e.flags |= kAligned;
  const bool reduces = m.take("red");
  if (reduces) {
    const int op = m.take_one({"popc", "and", "or"});
    if (op < 0) return d.bad("needs .popc, .and or .or");
    e.a = static_cast<std::uint8_t>(kPopc + op);
    m.take("u32"), m.take("pred");
  } else {
    const int action = m.take_one({"sync", "arrive"});
    if (action < 0) return d.bad("needs .sync, .arrive or .red");
    e.a = static_cast<std::uint8_t>(action == 0 ? kSync : kArrive);
  }
  PTXBENCH_TRY(m.finish(d));
  std::size_t at = 0, last = i.operands.size();
  if (reduces) {
    PTXBENCH_TRY(d.expect_operands(3, 4));
    --last;  // the predicate
    if (e.a == kPopc) PTXBENCH_TRY(d.dst(e, 0, 32));
    at = 1;
  } else if (e.a == kArrive) {
    PTXBENCH_TRY(d.expect_operands(2));
  } else {
    PTXBENCH_TRY(d.expect_operands(1, 2));
  }
  PTXBENCH_TRY(d.src(e, at, Ty::u32));
  if (at + 1 < last) {
    PTXBENCH_TRY(d.src(e, at + 1, Ty::u32));
    e.c = 1;
  }
  if (reduces) {
    PTXBENCH_TRY_ASSIGN(const Operand in, d.pred_src(i.operands[last]));
    e.operands.push_back(in);
    if (e.a != kPopc) {
      PTXBENCH_TRY_ASSIGN(const Operand out, d.pred_dst(i.operands[0]));
      e.operands.push_back(out);
    }
  }
  return d.emit(e, "barrier");
}

Result<void> decode_cluster_barrier(Decoder& d) {
  Modifiers m(d.instruction());
  m.take("cluster");
  const int action = m.take_one({"arrive", "wait"});
  if (action < 0) return d.bad("needs .arrive or .wait");
  const int order = m.take_one({"release", "relaxed", "acquire"});
  Emit e;
  e.a = order == 1;  // an arrival that releases nothing
  e.flags = kSideEffect;
  if (m.take("aligned")) e.flags |= kAligned;
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(0));
  e.run = action == 0 ? op_cluster_arrive : op_cluster_wait;
  return d.emit(e, "cluster_barrier");
}

}  // namespace

void barriers_after_exit(Cta& cta, Warp& warp) {
  for (std::uint32_t n = 0; n < cta.named.size(); ++n) {
    NamedBarrier& b = cta.named[n];
    if (b.expected == 0) continue;
    const Mask partial = b.partial[warp.index];
    if (partial != 0 && (warp.live & ~partial) == 0) arrive_warp(cta, warp, n);
    else look(cta, n);
  }
}

void cluster_barrier_after_exit(Cluster& cluster) {
  if (cluster.barrier.arrived != 0) cluster_phase(cluster);
}

void register_barriers(InstructionTable& table) {
  table.add("bar", decode_bar);
  table.add("barrier", decode_bar);
  table.add("barrier.cluster", decode_cluster_barrier);
}

}  // namespace ptxbench::emulator
