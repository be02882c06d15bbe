// Collectives of a warp: shfl.sync, vote.sync, match.sync, redux.sync, activemask.
//
// Each thread names the members in a mask of its own. Threads that meet at the instruction with different
// masks are different groups; each group runs when all of its members that have not exited are there.
#include "emulator/op_lanes.hpp"

#include <cstdio>
#include <string>

namespace ptxbench::emulator {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

std::string hex(U32 v) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", v);
  return text;
}

// Calls f(group) for the lanes of each mask; @p members is the operand's number. Flow::next where all groups
// are complete, else what the handler has to return, before any call.
template <class F>
PTXBENCH_INLINE Flow for_groups(Exec& x, unsigned members, F f) {
  const U32* masks = x.src(members);
  const Mask undefined = x.undefined_of(x.operand(members)) & x.mask;
  if (undefined != 0) {
    return x.fault(FaultKind::undefined_value, __builtin_ctz(undefined), "the member mask was never written");
  }
  const auto group_of = [&](Mask left) {
    const U32 mine = masks[__builtin_ctz(left)];
    return test_lanes([=](unsigned i) { return masks[i] == mine; }) & left;
  };
  for (Mask left = x.mask; left != 0;) {
    const Mask group = group_of(left);
    const U32 mine = masks[__builtin_ctz(left)];
    if (const Mask outside = group & ~mine; outside != 0) {
      return x.fault(FaultKind::partial_collective, __builtin_ctz(outside),
                     "the thread executes the instruction, but its member mask " + hex(mine) + " lacks it");
    }
    if (!x.converged(mine)) return Flow::again;
    left &= ~group;
  }
  for (Mask left = x.mask; left != 0;) {
    const Mask group = group_of(left);
    f(group);
    left &= ~group;
  }
  return Flow::next;
}

// --- shfl
// ----------------------------------------------------------------------------------------------------------

enum Shuffle : std::uint8_t { kUp, kDown, kBfly, kIdx };

struct Route {
  U32 from[kLanes];
  Mask in_range = 0;
};
// Where each lane reads from, and whether that is within its segment. (The bound of .up is a lower one.)
template <class F>
PTXBENCH_INLINE void route(Route& r, const U32* b, const U32* c, F source, bool up) {
  std::uint8_t fits[kLanes];
  for (unsigned i = 0; i < kLanes; ++i) {
    const std::int32_t segment = static_cast<std::int32_t>(c[i] >> 8 & 31),
                       lane = static_cast<std::int32_t>(i);
    const std::int32_t bound = (lane & segment) | (static_cast<std::int32_t>(c[i] & 31) & ~segment);
    const std::int32_t j = source(lane, static_cast<std::int32_t>(b[i] & 31), segment);
    const bool ok = up ? j >= bound : j <= bound;
    fits[i] = ok;
    r.from[i] = static_cast<U32>(ok ? j : lane);
  }
  r.in_range = pack_bits(fits);
}

PTXBENCH_INLINE void route_all(Route& r, unsigned kind, const U32* b, const U32* c) {
  using S = std::int32_t;
  switch (kind) {
    case kUp:
      route(
          r, b, c, [](S lane, S n, S) { return lane - n; }, true);
      break;
    case kDown:
      route(
          r, b, c, [](S lane, S n, S) { return lane + n; }, false);
      break;
    case kBfly:
      route(
          r, b, c, [](S lane, S n, S) { return lane ^ n; }, false);
      break;
    default:
      route(
          r, b, c, [](S lane, S n, S segment) { return (lane & segment) | (n & ~segment); }, false);
  }
}
// The whole warp, which a member mask known while decoding names, with everything defined: op.b.
PTXBENCH_CLONES Flow run_shfl_whole(Exec& x) {
  Route r;
  route_all(r, x.op.a, x.src(2), x.src(3));
  alignas(64) U32 values[kLanes];
  const U32* a = x.src(1);
  for (unsigned i = 0; i < kLanes; ++i) values[i] = a[i];
  U32* d = x.dst(0);
  for (unsigned i = 0; i < kLanes; ++i) d[i] = values[r.from[i] & 31];
  x.set_undefined(0, 0);
  x.set_pred(5, r.in_range, 0);
  return Flow::next;
}

// Operands: d, a, b, c, members, then p (or the sink).
PTXBENCH_CLONES Flow run_shfl(Exec& x) {
  if (x.op.b != 0 && x.mask == ~Mask{0} &&
      (x.undefined_of(x.operand(1)) | x.undefined_of(x.operand(2)) | x.undefined_of(x.operand(3))) == 0) {
    return run_shfl_whole(x);
  }
  const U32* a = x.src(1);
  const U32* b = x.src(2);
  const U32* c = x.src(3);
  Mask reachable[kLanes];  // of each lane: those of its group
  Mask whole = 0;
  const Flow flow = for_groups(x, 4, [&](Mask group) {
    whole = group;
    for_lanes(group, [&](int i) { reachable[i] = group; });
  });
  if (flow != Flow::next) return flow;
  Route r;
  route_all(r, x.op.a, b, c);
  const Mask undefined_a = x.undefined_of(x.operand(1));
  const Mask undefined_route = x.undefined_of(x.operand(2)) | x.undefined_of(x.operand(3));
  Mask undefined = undefined_route;
  if (whole != ~Mask{0} || undefined_a != 0) {
    // A lane that is not of the group gives what nobody can predict.
    for_lanes(x.mask, [&](int i) {
      const Mask from = Mask{1} << r.from[i];
      if ((reachable[i] & from) == 0 || (undefined_a & from) != 0) undefined |= Mask{1} << i;
    });
  }
  alignas(64) U32 values[kLanes];
  for (unsigned i = 0; i < kLanes; ++i) values[i] = a[i];
  fill_lanes(
      x.dst(0), x.mask, [&](unsigned i) __attribute__((always_inline)) { return values[r.from[i] & 31]; });
  x.set_undefined(0, undefined);
  x.set_pred(5, r.in_range, undefined_route);
  return Flow::next;
}

Result<void> decode_shfl(Decoder& d) {
  Modifiers m(d.instruction());
  if (!m.take("sync")) return d.unsupported("shfl without .sync (sm_70 and later do not have it)");
  const int mode = m.take_one({"up", "down", "bfly", "idx"});
  if (!m.take("b32")) return d.bad("needs .b32");
  PTXBENCH_TRY(m.finish(d));
  if (mode < 0) return d.bad("needs .up, .down, .bfly or .idx");
  PTXBENCH_TRY(d.expect_operands(5));
  const ptx::Operand& to = d.instruction().operands[0];
  const bool two = to.kind == ptx::Operand::Kind::pair;
  Emit e;
  const ptx::Operand& value = two ? to.parts[0] : to;
  if (value.kind == ptx::Operand::Kind::sink) {
    e.operands.push_back(d.temporary(32));
    e.destinations = 1;
  } else {
    PTXBENCH_TRY(d.dst(e, value, 32));
  }
  PTXBENCH_TRY(d.src(e, 1, Ty::b32));
  for (std::size_t i = 2; i <= 4; ++i) PTXBENCH_TRY(d.src(e, i, Ty::b32));
  Operand p = kNoOperand;
  if (two) {
    PTXBENCH_TRY_ASSIGN(p, d.pred_dst(to.parts[1]));
  }
  e.operands.push_back(p);
  e.flags = kNone;
  e.a = static_cast<std::uint8_t>(mode);
  const ptx::Operand& members = d.instruction().operands[4];
  e.b = members.kind == ptx::Operand::Kind::integer && static_cast<U32>(members.bits) == ~U32{0};
  e.run = run_shfl;
  return d.emit(e, "shuffle");
}

// --- vote
// ----------------------------------------------------------------------------------------------------------

enum Vote : std::uint8_t { kAll, kAny, kUni, kBallot };

// Operands: members, then p, a.
Flow run_vote_pred(Exec& x) {
  const Mask a = x.pred(2), undefined = x.pred_undefined(2);
  Mask value = 0, unknown = 0;
  const Flow flow = for_groups(x, 0, [&](Mask group) {
    const Mask on = a & ~undefined & group, off = ~a & ~undefined & group;
    bool v = false, u = (undefined & group) != 0;
    switch (x.op.a) {
      case kAll:
        v = (group & ~a) == 0;
        u = u && off == 0;
        break;
      case kAny:
        v = (group & a) != 0;
        u = u && on == 0;
        break;
      default:
        v = (group & a) == 0 || (group & ~a) == 0;
        u = u && (on == 0 || off == 0);
    }
    if (v) value |= group;
    if (u) unknown |= group;
  });
  if (flow == Flow::next) x.set_pred(1, value, unknown);
  return flow;
}
// Operands: d, members, then a.
Flow run_vote_ballot(Exec& x) {
  const Mask a = x.pred(2), undefined = x.pred_undefined(2);
  U32 result[kLanes];
  Mask unknown = 0;
  const Flow flow = for_groups(x, 1, [&](Mask group) {
    for_lanes(group, [&](int i) { result[i] = a & group; });
    if ((undefined & group) != 0) unknown |= group;
  });
  if (flow != Flow::next) return flow;
  U32* d = x.dst(0);
  for_lanes(x.mask, [&](int i) { d[i] = result[i]; });
  x.set_undefined(0, unknown);
  return Flow::next;
}
Result<void> decode_vote(Decoder& d) {
  Modifiers m(d.instruction());
  if (!m.take("sync")) return d.unsupported("vote without .sync (sm_70 and later do not have it)");
  const int mode = m.take_one({"all", "any", "uni", "ballot"});
  const bool ballot = m.take("b32");
  if (!ballot) m.take("pred");
  PTXBENCH_TRY(m.finish(d));
  if (mode < 0 || ballot != (mode == kBallot))
    return d.bad("needs .all.pred, .any.pred, .uni.pred or .ballot.b32");
  PTXBENCH_TRY(d.expect_operands(3));
  const auto& operands = d.instruction().operands;
  Emit e;
  Operand a = kPredFalse;
  if (operands[1].kind == ptx::Operand::Kind::integer) {
    a = operands[1].bits != 0 ? kPredTrue : kPredFalse;
  } else {
    PTXBENCH_TRY_ASSIGN(a, d.pred_src(operands[1]));
  }
  if (ballot) PTXBENCH_TRY(d.dst(e, 0, 32));
  PTXBENCH_TRY(d.src(e, 2, Ty::b32));
  if (!ballot) {
    PTXBENCH_TRY_ASSIGN(const Operand p, d.pred_dst(operands[0]));
    e.operands.push_back(p);
  }
  e.operands.push_back(a);
  e.flags = kNone;
  e.a = static_cast<std::uint8_t>(mode);
  e.run = ballot ? run_vote_ballot : run_vote_pred;
  return d.emit(e, "vote");
}

// --- match
// ---------------------------------------------------------------------------------------------------------

// Operands: d, a, members, then p. op.a: all.
template <class W>
Flow run_match(Exec& x) {
  const W* a = words<W>(x.src(1));
  const Mask undefined = x.undefined_of(x.operand(1));
  const bool all = x.op.a != 0;
  U32 result[kLanes];
  Mask same = 0, unknown = 0;
  const Flow flow = for_groups(x, 2, [&](Mask group) {
    if ((undefined & group) != 0) unknown |= group;
    for_lanes(group, [&](int i) {
      Mask equal = 0;
      for_lanes(group, [&](int j) { equal |= Mask{a[j] == a[i]} << j; });
      result[i] = !all || equal == group ? equal : 0;
      if (equal == group) same |= Mask{1} << i;
    });
  });
  if (flow != Flow::next) return flow;
  U32* d = x.dst(0);
  for_lanes(x.mask, [&](int i) { d[i] = result[i]; });
  x.set_undefined(0, unknown);
  x.set_pred(3, same, unknown);
  return Flow::next;
}
Result<void> decode_match(Decoder& d) {
  Modifiers m(d.instruction());
  const int mode = m.take_one({"any", "all"});
  if (!m.take("sync")) return d.bad("needs .sync");
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  if (mode < 0) return d.bad("needs .any or .all");
  if (type != Ty::b32 && type != Ty::b64) return d.bad("the instruction has no such type");
  PTXBENCH_TRY(d.expect_operands(3));
  const ptx::Operand& to = d.instruction().operands[0];
  const bool two = to.kind == ptx::Operand::Kind::pair;
  if (two && mode == 0) return d.bad("only .all has a predicate destination");
  const ptx::Operand& value = two ? to.parts[0] : to;
  Emit e;
  if (value.kind == ptx::Operand::Kind::sink) {
    e.operands.push_back(d.temporary(32));
    e.destinations = 1;
  } else {
    PTXBENCH_TRY(d.dst(e, value, 32));
  }
  PTXBENCH_TRY(d.src(e, 1, type));
  PTXBENCH_TRY(d.src(e, 2, Ty::b32));
  Operand p = kNoOperand;
  if (two) {
    PTXBENCH_TRY_ASSIGN(p, d.pred_dst(to.parts[1]));
  }
  e.operands.push_back(p);
  e.flags = kNone;
  e.a = static_cast<std::uint8_t>(mode);
  e.run = type == Ty::b64 ? &run_match<U64> : &run_match<U32>;
  return d.emit(e, "vote");
}

// --- redux
// ---------------------------------------------------------------------------------------------------------

enum Reduction : std::uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor };

// Operands: d, a, members. op.a: the reduction; op.b: signed.
Flow run_redux(Exec& x) {
  const U32* a = x.src(1);
  const Mask undefined = x.undefined_of(x.operand(1));
  const U32 flip = x.op.b != 0 ? 0x80000000 : 0;  // orders signed numbers as unsigned ones
  U32 result[kLanes];
  Mask unknown = 0;
  const Flow flow = for_groups(x, 2, [&](Mask group) {
    if ((undefined & group) != 0) unknown |= group;
    U32 r = a[__builtin_ctz(group)];
    for_lanes(group & (group - 1), [&](int i) {
      const U32 v = a[i];
      switch (x.op.a) {
        case kAdd:
          r += v;
          break;
        case kMin:
          r = (v ^ flip) < (r ^ flip) ? v : r;
          break;
        case kMax:
          r = (v ^ flip) > (r ^ flip) ? v : r;
          break;
        case kAnd:
          r &= v;
          break;
        case kOr:
          r |= v;
          break;
        default:
          r ^= v;
      }
    });
    for_lanes(group, [&](int i) { result[i] = r; });
  });
  if (flow != Flow::next) return flow;
  U32* d = x.dst(0);
  for_lanes(x.mask, [&](int i) { d[i] = result[i]; });
  x.set_undefined(0, unknown);
  return Flow::next;
}
Result<void> decode_redux(Decoder& d) {
  Modifiers m(d.instruction());
  if (!m.take("sync")) return d.bad("needs .sync");
  const int what = m.take_one({"add", "min", "max", "and", "or", "xor"});
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  if (type == Ty::f32) return d.unsupported("redux of .f32 (it needs sm_100)");
  PTXBENCH_TRY(m.finish(d));
  const bool bits = what >= kAnd;
  if (what < 0) return d.bad("needs a reduction");
  if (bits ? type != Ty::b32 : type != Ty::u32 && type != Ty::s32)
    return d.bad("the instruction has no such type");
  Emit e;
  PTXBENCH_TRY(plain_operands(d, e, 32, {type, Ty::b32}));
  e.flags = kNone;
  e.a = static_cast<std::uint8_t>(what);
  e.b = type == Ty::s32;
  e.run = run_redux;
  return d.emit(e, "redux");
}

// --- activemask
// ----------------------------------------------------------------------------------------------------

Flow run_activemask(Exec& x) {
  const U32 mask = x.mask;
  fill_lanes(x.dst(0), x.mask, [=](unsigned) { return mask; });
  return Flow::next;
}
Result<void> decode_activemask(Decoder& d) {
  Modifiers m(d.instruction());
  if (!m.take("b32")) return d.bad("needs .b32");
  PTXBENCH_TRY(m.finish(d));
  Emit e;
  PTXBENCH_TRY(plain_operands(d, e, 32, {}));
  e.run = run_activemask;
  return d.emit(e, "vote");
}

}  // namespace

void register_warp(InstructionTable& table) {
  table.add("shfl", decode_shfl);
  table.add("vote", decode_vote);
  table.add("match", decode_match);
  table.add("redux", decode_redux);
  table.add("activemask", decode_activemask);
}

}  // namespace ptxbench::emulator
