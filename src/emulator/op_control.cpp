// Branches, exits, and what touches neither registers nor memory.
#include "emulator/mbarrier.hpp"
#include "emulator/async.hpp"
#include "emulator/barriers.hpp"
#include "emulator/control.hpp"
#include "emulator/decode_builder.hpp"
#include "emulator/memory.hpp"
#include "emulator/run.hpp"
#include "emulator/vector_clocks.hpp"

#include <cstring>

namespace ptxbench::emulator {

void register_barriers(InstructionTable& table);

namespace {

Mask guard_mask(const Exec& x) {
  if (x.op.guard < 0) return ~Mask{0};
  const Mask p = x.warp.preds[x.op.guard];
  return x.op.guard_negated ? ~p : p;
}

}  // namespace

Flow go(Exec& x, Mask taken, std::uint32_t target) {
  Fragment& f = x.fragment;
  const Mask rest = f.mask & ~taken;
  if (rest == 0) {
    f.pc = target;
    return Flow::jump;
  }
  if (taken == 0) return Flow::next;
  Fragment other = f;
  other.mask = taken;
  other.pc = target;
  f.mask = rest;
  ++f.pc;
  x.warp.fragments.push_back(other);
  return Flow::split;
}

Flow op_branch(Exec& x) { return go(x, x.mask & guard_mask(x), static_cast<std::uint32_t>(x.op.imm)); }

Flow op_branch_table(Exec& x) {
  const Mask mask = x.mask & guard_mask(x);
  if (mask == 0) return Flow::next;
  if (const Mask u = x.undefined_of(x.operand(0)) & mask; u != 0)
    return x.fault(FaultKind::undefined_value, __builtin_ctz(u), "the index of the branch was never written");
  const std::uint32_t* table = x.kernel.branch_tables.data() + x.op.imm;
  const std::uint32_t* index = x.src(0);
  Mask left = mask;
  std::vector<Fragment> fragments;
  const Fragment base = x.fragment;
  while (left != 0) {
    const unsigned first = static_cast<unsigned>(__builtin_ctz(left));
    if (index[first] >= table[0])
      return x.fault(FaultKind::illegal_instruction, static_cast<int>(first),
                     "index " + std::to_string(index[first]) + " of a table of " + std::to_string(table[0]) + " targets");
    Mask same = 0;
    for_lanes(left, [&](int i) { same |= index[i] == index[first] ? 1u << i : 0; });
    Fragment f = base;
    f.mask = same;
    f.pc = table[1 + index[first]];
    fragments.push_back(f);
    left &= ~same;
  }
  if (const Mask rest = base.mask & ~mask; rest != 0) {
    Fragment f = base;
    f.mask = rest;
    ++f.pc;
    fragments.push_back(f);
  }
  x.fragment = fragments[0];
  if (fragments.size() == 1) return Flow::jump;
  for (std::size_t i = 1; i < fragments.size(); ++i) x.warp.fragments.push_back(fragments[i]);
  return Flow::split;
}

bool exit_lanes(Exec& x, Mask mask) {
  Warp& warp = x.warp;
  Cta& cta = x.cta;
  warp.live &= ~mask;
  cta.exited += static_cast<std::uint32_t>(__builtin_popcount(mask));
  ++x.cluster.progress;
  for (Fragment& f : warp.fragments)  // a collective may have waited for these lanes only
    if (f.wait.kind == WaitKey::Kind::converge) f.wait = {}, warp.ready = true;
  barriers_after_exit(cta, warp);
  cluster_barrier_after_exit(x.cluster);
  if (!cta.done()) return true;
  for (const std::unique_ptr<AsyncOp>& op : x.cluster.async->pending()) {
    if ((op->touches_ctas >> cta.rank & 1) == 0) continue;
    Fault f{FaultKind::exit_with_work, op->site,
            "CTA " + std::to_string(cta.linear_id) + " has exited while this has not finished with its shared memory: " +
                op->describe(),
            {}};
    x.run.raise(std::move(f));
    return false;
  }
  check_arrival_counts(x.run, x.grid, cta);
  return true;
}

Flow op_exit(Exec& x) {
  if (!exit_lanes(x, x.mask)) return Flow::stop;
  Fragment& f = x.fragment;
  f.mask &= ~x.mask;
  if (f.mask != 0) {
    ++f.pc;
    return Flow::split;
  }
  std::vector<Fragment>& all = x.warp.fragments;
  all.erase(all.begin() + (&f - all.data()));
  return Flow::split;
}

Flow op_trap(Exec& x) { return x.fault(FaultKind::trap, __builtin_ctz(x.mask), "the kernel executed trap"); }

Flow op_nop(Exec&) { return Flow::next; }

Flow op_negate_pred(Exec& x) {
  x.set_pred(0, ~x.pred(1), x.pred_undefined(1));
  return Flow::next;
}

Flow op_store_argument(Exec& x) {
  Agent agent{x.run, x.grid, x.cluster, x.cta, x.site()};
  const std::uint32_t bytes = x.op.a / 8u;
  const Mask undefined = x.undefined_of(x.operand(0));
  for (Mask m = x.mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    agent.site.lane = lane;
    std::uint8_t* to = x.grid.memory->local(agent, x.thread(lane), static_cast<std::uint64_t>(x.op.imm), bytes, 1, Access::write);
    if (to == nullptr) return Flow::stop;
    if (bytes == 8) std::memcpy(to, x.src64(0) + lane, 8);
    else std::memcpy(to, x.src(0) + lane, bytes);
    if (undefined >> lane & 1)
      set_undefined(x.cta.local_undefined,
                    std::uint64_t{x.thread(lane)} * x.kernel.local_bytes + static_cast<std::uint64_t>(x.op.imm), bytes, true);
  }
  return Flow::next;
}

Flow op_load_result(Exec& x) {
  Agent agent{x.run, x.grid, x.cluster, x.cta, x.site()};
  const std::uint32_t bytes = x.op.a / 8u;
  Mask undefined = 0;
  for (Mask m = x.mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    agent.site.lane = lane;
    const std::uint8_t* from = x.grid.memory->local(agent, x.thread(lane), static_cast<std::uint64_t>(x.op.imm), bytes, 1, Access::read);
    if (from == nullptr) return Flow::stop;
    if (bytes == 8) {
      std::memcpy(x.dst64(0) + lane, from, 8);
    } else {
      std::uint32_t value = 0;
      std::memcpy(&value, from, bytes);
      x.dst(0)[lane] = value;
    }
    if (any_undefined(x.cta.local_undefined,
                      std::uint64_t{x.thread(lane)} * x.kernel.local_bytes + static_cast<std::uint64_t>(x.op.imm), bytes))
      undefined |= 1u << lane;
  }
  x.set_undefined(0, undefined);
  return Flow::next;
}

namespace {

Flow op_nanosleep(Exec& x) {
  if (x.fragment.wait_value != 0) return Flow::next;
  x.fragment.wait_value = 1;
  x.fragment.wait.kind = WaitKey::Kind::time;
  return Flow::again;
}

// setmaxnreg: Op::imm registers a thread; a: increase.
Flow op_setmaxnreg(Exec& x) {
  const auto wanted = static_cast<std::uint32_t>(x.op.imm);
  std::uint32_t& quota = x.warp.register_quota;
  if (x.op.a == 0) {
    if (wanted < quota) {
      x.cta.free_registers += (quota - wanted) * kLanes;
      quota = wanted;
      x.cluster.wake({WaitKey::Kind::registers, static_cast<std::uint16_t>(x.cta.rank), 0});
    }
    return Flow::next;
  }
  if (wanted <= quota) return Flow::next;
  const std::uint32_t need = (wanted - quota) * kLanes;
  if (x.cta.free_registers < need) {
    x.fragment.wait = {WaitKey::Kind::registers, static_cast<std::uint16_t>(x.cta.rank), 0};
    return Flow::again;
  }
  x.cta.free_registers -= need;
  quota = wanted;
  return Flow::next;
}

// elect.sync d|p, members: operands: [d,] members, p.
Flow op_elect(Exec& x) {
  const unsigned at = x.op.destinations;
  if (const Mask u = x.undefined_of(x.operand(at)) & x.mask; u != 0)
    return x.fault(FaultKind::undefined_value, __builtin_ctz(u), "the member mask was never written");
  const std::uint32_t* m = x.src(at);
  const int first = __builtin_ctz(x.mask);
  const Mask members = m[first];
  for (Mask k = x.mask; k != 0; k &= k - 1)
    if (m[__builtin_ctz(k)] != members)
      return x.fault(FaultKind::partial_collective, __builtin_ctz(k), "lanes of one elect.sync give different member masks");
  if ((members >> first & 1) == 0)
    return x.fault(FaultKind::partial_collective, first, "the lane is not in its own member mask");
  if (!x.converged(members)) return Flow::again;
  const Mask present = members & x.warp.live;
  const int leader = present != 0 ? __builtin_ctz(present) : first;
  if (x.op.destinations != 0) {
    write_lanes(x.dst(0), x.mask, [&](unsigned) { return static_cast<std::uint32_t>(leader); });
    x.set_undefined(0, 0);
  }
  x.set_pred(at + 1, Mask{1} << leader);
  return Flow::next;
}

Builder& builder(Decoder& d) { return static_cast<Builder&>(d); }

Result<void> decode_bra(Decoder& d) {
  Modifiers m(d.instruction());
  m.take("uni");
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(1));
  Emit e;
  e.run = op_branch;
  e.flags = kBranch;
  return builder(d).emit_branch(e, d.instruction().operands[0], "control");
}

Result<void> decode_brx(Decoder& d) {
  Modifiers m(d.instruction());
  if (!m.take("idx")) return d.bad("brx without .idx");
  m.take("uni");
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(2));
  Emit e;
  e.run = op_branch_table;
  e.flags = kBranch;
  PTXBENCH_TRY(d.src(e, 0, Ty::u32));
  const ptx::Operand& table = d.instruction().operands[1];
  if (table.kind != ptx::Operand::Kind::list || table.parts.empty()) return d.bad("brx.idx needs a table of targets");
  return builder(d).emit_branch_table(e, table.parts, "control");
}

Result<void> decode_ret(Decoder& d) {
  Modifiers m(d.instruction());
  m.take("uni");
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(0));
  return builder(d).emit_return();
}

Result<void> plain(Decoder& d, Handler run, std::uint16_t flags, std::string_view family) {
  Emit e;
  e.run = run;
  e.flags = flags;
  return d.emit(e, family);
}

Result<void> decode_exit(Decoder& d) {
  PTXBENCH_TRY(d.expect_operands(0));
  return plain(d, op_exit, kSideEffect, "control");
}
Result<void> decode_trap(Decoder& d) { return plain(d, op_trap, kSideEffect, "control"); }
Result<void> decode_nop(Decoder& d) { return plain(d, op_nop, kNone, "control"); }

Result<void> decode_nanosleep(Decoder& d) {
  Modifiers m(d.instruction());
  m.take("u32");
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(1));
  Emit e;
  e.run = op_nanosleep;
  e.flags = kNone;
  PTXBENCH_TRY(d.src(e, 0, Ty::u32));
  return d.emit(e, "control");
}

Result<void> decode_setmaxnreg(Decoder& d) {
  Modifiers m(d.instruction());
  const int action = m.take_one({"dec", "inc"});
  if (action < 0) return d.bad("needs .inc or .dec");
  m.take("sync"), m.take("aligned"), m.take("u32");
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(1));
  PTXBENCH_TRY_ASSIGN(const std::int64_t count, d.immediate(0));
  if (count < 24 || count > 256 || count % 8 != 0)
    return d.bad(std::to_string(count) + " registers: it takes multiples of 8 from 24 to 256");
  Emit e;
  e.run = op_setmaxnreg;
  e.flags = kAligned | kSideEffect;
  e.imm = count;
  e.a = static_cast<std::uint8_t>(action);
  builder(d).mark_setmaxnreg();
  return d.emit(e, "setmaxnreg");
}

Result<void> decode_elect(Decoder& d) {
  Modifiers m(d.instruction());
  if (!m.take("sync")) return d.bad("elect without .sync");
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(2));
  const ptx::Operand& pair = d.instruction().operands[0];
  if (pair.kind != ptx::Operand::Kind::pair || pair.parts.size() != 2) return d.bad("elect.sync writes d|p");
  Emit e;
  e.run = op_elect;
  e.flags = kNone;
  if (pair.parts[0].kind != ptx::Operand::Kind::sink) PTXBENCH_TRY(d.dst(e, pair.parts[0], 32));
  PTXBENCH_TRY(d.src(e, 1, Ty::b32));
  PTXBENCH_TRY_ASSIGN(const Operand p, d.pred_dst(pair.parts[1]));
  e.operands.push_back(p);
  return d.emit(e, "elect");
}

// Launches run one after the other: what it waits for is done. That it was waited for is remembered.
Flow op_grid_wait(Exec& x) {
  if (x.cluster.clocks != nullptr) x.cluster.clocks->learn(x.cta.rank, x.warp.index, VectorClocks::kGrid, 1);
  return Flow::next;
}

Result<void> decode_griddepcontrol(Decoder& d) {
  Modifiers m(d.instruction());
  const int action = m.take_one({"launch_dependents", "wait"});
  if (action < 0) return d.bad("needs .launch_dependents or .wait");
  PTXBENCH_TRY(m.finish(d));
  return plain(d, action == 1 ? op_grid_wait : op_nop, kNone, "pdl");
}

}  // namespace

void register_control(InstructionTable& table) {
  table.add("bra", decode_bra);
  table.add("brx", decode_brx);
  table.add("ret", decode_ret);
  table.add("exit", decode_exit);
  table.add("trap", decode_trap);
  table.add("brkpt", decode_nop);
  table.add("pmevent", decode_nop);
  table.add("nanosleep", decode_nanosleep);
  table.add("setmaxnreg", decode_setmaxnreg);
  table.add("elect", decode_elect);
  table.add("griddepcontrol", decode_griddepcontrol);
  register_barriers(table);
}

}  // namespace ptxbench::emulator
