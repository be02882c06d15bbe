// wgmma.mma_async, fence, commit_group, wait_group: issuing warpgroup multiplies and waiting for them
// (wgmma.hpp). PTX ISA 9.7.15.
#include "emulator/happens_before.hpp"
#include "emulator/op_tensor.hpp"
#include "emulator/run.hpp"
#include "emulator/vector_clocks.hpp"
#include "emulator/wgmma.hpp"
#include "emulator/text.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

namespace ptxbench::emulator {

namespace {

// The warpgroup's state, made on its first use; null where the warpgroup is incomplete (a fault was raised).
WgmmaState* warpgroup(const Exec& x) {
  const std::size_t group = x.warp.index / 4;
  auto& all = x.cta.warpgroups;
  if (all.size() <= group) all.resize(group + 1);
  if (!all[group]) {
    if (x.cta.warps.size() < 4 * group + 4) {
      x.fault(FaultKind::partial_collective, -1,
              x.kernel.info[x.op.info].text + " needs a warpgroup of four warps; warps " +
                  std::to_string(4 * group) + " to " + std::to_string(4 * group + 3) +
                  " are not all there (the CTA has " + std::to_string(x.cta.warps.size()) + ")");
      return nullptr;
    }
    all[group] = std::make_shared<WgmmaState>();
  }
  return all[group].get();
}

// A value that all lanes must have in common. False where a fault was raised.
bool uniform(const Exec& x, unsigned operand, const char* what, std::uint64_t& value) {
  const Mask live = x.mask & x.warp.live;
  const int first = std::countr_zero(live);
  if (const Mask u = x.undefined_of(x.operand(operand)) & live; u != 0) {
    x.fault(FaultKind::undefined_value, std::countr_zero(u), std::string(what) + " was never written");
    return false;
  }
  const std::uint64_t* lanes = x.src64(operand);
  value = lanes[first];
  Mask differs = 0;
  for (unsigned l = 0; l < kLanes; ++l) differs |= Mask{lanes[l] != value} << l;
  if ((differs & live) == 0) return true;
  const int other = std::countr_zero(differs & live);
  x.fault(FaultKind::descriptor, other,
          std::string(what) + " must be the same in all threads of the warpgroup: lane " +
              std::to_string(first) + " has " + hex(value) + ", lane " + std::to_string(other) + " has " +
              hex(lanes[other]));
  return false;
}

// Op::a: the rule's number; b: n / 8; c: bit 0 A in registers, 1 and 2: A, B MN-major, 3 and 4: negated, 5:
// saturate; imm: k. Operands: D (as destinations), D (as sources), A's registers or descriptor, B's
// descriptor, then the predicate scale-d.
Flow run_wgmma(Exec& x) {
  if (!whole_warp(x)) return Flow::stop;
  WgmmaState* state = warpgroup(x);
  if (state == nullptr) return Flow::stop;
  const unsigned d = x.op.destinations;
  const bool a_in_registers = (x.op.c & 1) != 0;
  const unsigned a = 2 * d, b = a + (a_in_registers ? 4U : 1U), scale = b + 1;
  std::uint64_t descriptors[2] = {0, 0};
  if (!a_in_registers && !uniform(x, a, "the matrix descriptor of A", descriptors[0])) return Flow::stop;
  if (!uniform(x, b, "the matrix descriptor of B", descriptors[1])) return Flow::stop;
  for (int i = a_in_registers ? 1 : 0; i < 2; ++i)
    if (const auto problem = check_descriptor(descriptors[i]))
      return x.fault(
          FaultKind::descriptor, -1,
          std::string("operand ") + (i == 0 ? "A" : "B") + " (" + hex(descriptors[i]) + "): " + *problem);
  const Mask live = x.mask & x.warp.live;
  if (const Mask u = x.pred_undefined(scale) & live; u != 0)
    return x.fault(FaultKind::undefined_value, std::countr_zero(u),
                   "the predicate scale-d was never written");
  const Mask accumulate = x.pred(scale) & live;
  if (accumulate != 0 && accumulate != live)
    return x.fault(FaultKind::descriptor, std::countr_zero(live & ~accumulate),
                   "the predicate scale-d must be the same in all threads of the warpgroup");

  const auto unfenced = [&](unsigned operand) { return x.warp.unfenced[slot_of(x.operand(operand))] != 0; };
  bool fence_missing = false;
  for (unsigned i = 0; i < d; ++i) fence_missing |= unfenced(i);
  for (unsigned i = 0; a_in_registers && i < 4; ++i) fence_missing |= unfenced(a + i);
  if (fence_missing) {
    x.remark(false, "wgmma_fence_missing",
             "no wgmma.fence since a register of the accumulator or of A was written (or none at all before the first "
             "wgmma): ptxas inserts one, or makes the wgmma wait");
    std::fill(x.warp.unfenced.begin(), x.warp.unfenced.end(), std::uint8_t{0});
  }

  const std::uint32_t group = x.warp.index / 4, place = x.warp.index % 4;
  const std::uint64_t number = ++state->issued[place];
  WgmmaOp* op = nullptr;
  if (number <= state->completed + state->under_way.size()) {
    op = state->under_way[number - state->completed - 1];
    const auto differ = [&](const std::string& what) {
      return x.fault(FaultKind::partial_collective, -1,
                     "the warps of a warpgroup must execute the same wgmma: " + what +
                         " (its operation number " + std::to_string(number) + ")");
    };
    if (op->op != &x.op)
      return differ("warp " + std::to_string(x.warp.index) + " is at " + x.kernel.info[x.op.info].text +
                    " of line " + std::to_string(x.kernel.info[x.op.info].where.line) +
                    ", another warp was at " + x.kernel.info[op->op->info].text + " of line " +
                    std::to_string(x.kernel.info[op->op->info].where.line));
    if (op->a_descriptor != descriptors[0] || op->b_descriptor != descriptors[1])
      return differ("warp " + std::to_string(x.warp.index) + " gives descriptors " + hex(descriptors[0]) +
                    ", " + hex(descriptors[1]) + ", another warp gave " + hex(op->a_descriptor) + ", " +
                    hex(op->b_descriptor));
    if (op->options.accumulate != (accumulate != 0)) return differ("the predicate scale-d differs");
  } else {
    auto made = std::make_unique<WgmmaOp>();
    op = made.get();
    op->op = &x.op;
    op->kernel = &x.kernel;
    op->site = x.site();
    op->cta = static_cast<std::uint16_t>(x.cta.rank);
    op->warp = x.warp.index;
    op->touches_ctas = std::uint64_t{1} << x.cta.rank;
    op->group = group;
    op->number = number;
    op->n = 8 * x.op.b;
    op->k = static_cast<int>(x.op.imm);
    op->rule = x.op.a;
    op->a_in_registers = a_in_registers;
    op->a_mn_major = (x.op.c & 2) != 0;
    op->b_mn_major = (x.op.c & 4) != 0;
    op->a_descriptor = descriptors[0];
    op->b_descriptor = descriptors[1];
    op->options.accumulate = accumulate != 0;
    op->options.negate_a = (x.op.c & 8) != 0;
    op->options.negate_b = (x.op.c & 16) != 0;
    op->options.saturate = (x.op.c & 32) != 0;
    state->under_way.push_back(op);
    x.cluster.async->issue(std::move(made), x.run);  // not ready: three warps are missing
  }
  if (x.warp.in_flight.empty()) x.warp.in_flight.resize(x.kernel.slot_words / kLanes);
  const auto mark = [&](unsigned operand, std::uint16_t by) {
    std::uint16_t& count = x.warp.in_flight[slot_of(x.operand(operand))];
    count = static_cast<std::uint16_t>(count + by);
    ++x.warp.in_flight_total;
  };
  for (unsigned i = 0; i < d; ++i) mark(i, kWriteInFlight);
  for (unsigned i = 0; a_in_registers && i < 4; ++i) mark(a + i, kReadInFlight);
  if (HappensBefore* order = order_of(x.cluster)) order->issued(order->number_of(x.warp), number);
  op->joined |= static_cast<std::uint8_t>(1U << place);
  if (op->joined == 15) {
    x.cluster.async->poke(x.run);  // may complete and destroy `op`
    WaitKey key;
    key.kind = WaitKey::Kind::warpgroup;
    key.cta = static_cast<std::uint16_t>(x.cta.rank);
    key.address = 0x8000'0000 | group;
    x.cluster.wake(key);
  }
  return x.run.failed() ? Flow::stop : Flow::next;
}

Flow run_fence(Exec& x) {
  if (!whole_warp(x) || warpgroup(x) == nullptr) return Flow::stop;
  std::fill(x.warp.unfenced.begin(), x.warp.unfenced.end(), std::uint8_t{0});
  return Flow::next;
}

Flow run_commit(Exec& x) {
  if (!whole_warp(x)) return Flow::stop;
  WgmmaState* state = warpgroup(x);
  if (state == nullptr) return Flow::stop;
  const std::uint32_t place = x.warp.index % 4;
  state->groups[place].push_back(state->issued[place]);
  state->committed[place].push_back(state->issued[place]);
  return Flow::next;
}

// imm: groups that may stay pending.
Flow run_wait(Exec& x) {
  if (!whole_warp(x)) return Flow::stop;
  WgmmaState* state = warpgroup(x);
  if (state == nullptr) return Flow::stop;
  auto& groups = state->groups[x.warp.index % 4];
  while (!groups.empty() && groups.front() <= state->completed) groups.pop_front();
  if (groups.size() <= static_cast<std::uint64_t>(x.op.imm)) {
    // What it waited for is known to be done, not what has been done by chance.
    auto& committed = state->committed[x.warp.index % 4];
    std::uint64_t done = 0;
    for (; committed.size() > static_cast<std::uint64_t>(x.op.imm); committed.pop_front()) done = committed.front();
    if (x.cluster.clocks != nullptr && done != 0)
      x.cluster.clocks->learn(x.cta.rank, x.warp.index, VectorClocks::kWgmma, done);
    if (HappensBefore* order = order_of(x.cluster); order != nullptr && done != 0)
      order->waited(order->number_of(x.warp), HappensBefore::kWgmma, done);
    return Flow::next;
  }
  x.fragment.wait.kind = WaitKey::Kind::async_group;
  x.fragment.wait.cta = static_cast<std::uint16_t>(x.cta.rank);
  x.fragment.wait.address = 0x8000'0000 | x.warp.index / 4;
  return Flow::again;
}

Result<void> decode_wgmma(Decoder& d) {
  Modifiers m(d.instruction());
  m.take("mma_async");
  m.take("sync");
  m.take("aligned");
  const auto shape = take_shape(m);
  if (!shape || shape->m != 64) return d.unsupported("is a shape that the emulator does not know");
  const bool saturate = m.take("satfinite");
  const std::vector<Ty> types = m.types();
  PTXBENCH_TRY(m.finish(d));
  if (types.size() != 3) return d.unsupported("needs three types");
  const auto to = accumulator_named(ty_name(types[0]));
  const auto ta = operand_type_named(ty_name(types[1])), tb = operand_type_named(ty_name(types[2]));
  const int number =
      to && ta && tb ? tensor_rule_number(90, TensorInstruction::wgmma, *ta, *tb, *to, shape->k) : -1;
  if (number < 0) return d.unsupported("has types that the emulator does not multiply");
  const TensorRule& rule = tensor_rule(number);
  const bool integer = rule.accumulator == AccumulatorType::s32,
             half = rule.accumulator == AccumulatorType::f16;
  const int n = shape->n;
  if (n < 8 || n > 256 || n % 8 != 0 || (integer && n > 32 && n % 16 != 0))
    return d.bad("has n = " + std::to_string(n) + ": a multiple of 8 up to 256" +
                 (integer ? ", above 32 a multiple of 16" : ""));
  if (saturate && !integer) return d.bad(".satfinite is for integers");

  const auto& operands = d.instruction().operands;
  if (operands.size() < 4) return d.bad("needs d, a, b-descriptor and scale-d");
  const bool a_in_registers = operands[1].kind == ptx::Operand::Kind::vector;
  const bool transposable = operand_bits(*ta) == 16;
  const std::size_t immediates = integer ? 0 : transposable ? (a_in_registers ? 3 : 4) : 2;
  PTXBENCH_TRY(d.expect_operands(4 + immediates));
  Emit e;
  const Ty accumulators = half ? Ty::b32 : integer ? Ty::s32 : Ty::f32;
  PTXBENCH_TRY_ASSIGN(const std::size_t registers, d.dst_vector(e, 0, 32));
  if (registers != static_cast<std::size_t>(half ? n / 4 : n / 2))
    return d.bad("takes " + std::to_string(half ? n / 4 : n / 2) + " registers for d");
  if (std::find(e.operands.begin(), e.operands.end(), kNoOperand) != e.operands.end())
    return d.bad("has an accumulator _");
  PTXBENCH_TRY(d.src_vector(e, 0, accumulators));  // read as well
  if (a_in_registers) {
    PTXBENCH_TRY_ASSIGN(const std::size_t count, d.src_vector(e, 1, Ty::b32));
    if (count != 4) return d.bad("takes 4 registers for a");
    for (std::size_t i = e.operands.size() - 4; i < e.operands.size(); ++i)
      if (e.operands[i] < 0) return d.unsupported("has a constant in a");
  } else {
    PTXBENCH_TRY(d.src(e, 1, Ty::b64));
  }
  PTXBENCH_TRY(d.src(e, 2, Ty::b64));
  PTXBENCH_TRY_ASSIGN(const Operand scale, d.pred_src(operands[3]));
  e.operands.push_back(scale);
  std::uint8_t bits = a_in_registers ? 1 : 0;
  for (std::size_t i = 0; i < immediates; ++i) {
    PTXBENCH_TRY_ASSIGN(const std::int64_t value, d.immediate(4 + i));
    if (i < 2) {
      if (value != 1 && value != -1) return d.bad("imm-scale-a and imm-scale-b are 1 or -1");
      if (value == -1) bits |= static_cast<std::uint8_t>(8U << i);
    } else {
      if (value != 0 && value != 1) return d.bad("imm-trans-a and imm-trans-b are 0 or 1");
      const std::size_t which = a_in_registers ? 1 : i - 2;
      if (value == 1) bits |= static_cast<std::uint8_t>(2U << which);
    }
  }
  if (saturate) bits |= 32;
  e.run = run_wgmma;
  e.flags = kAligned | kAsync | kSideEffect;
  e.a = static_cast<std::uint8_t>(number);
  e.b = static_cast<std::uint8_t>(n / 8);
  e.c = bits;
  e.imm = shape->k;
  e.fidelity = fidelity_of(rule);
  return d.emit(e, "wgmma");
}

Result<void> decode_simple(Decoder& d, std::string_view name, Handler run, bool counts) {
  Modifiers m(d.instruction());
  m.take(name);
  m.take("sync");
  m.take("aligned");
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(counts ? 1 : 0));
  Emit e;
  if (counts) {
    PTXBENCH_TRY_ASSIGN(e.imm, d.immediate(0));
    if (e.imm < 0) return d.bad("waits for a number of groups that is not negative");
  }
  e.run = run;
  e.flags = kAligned | kSideEffect;
  return d.emit(e, "wgmma_sync");
}
Result<void> decode_fence(Decoder& d) { return decode_simple(d, "fence", run_fence, false); }
Result<void> decode_commit(Decoder& d) { return decode_simple(d, "commit_group", run_commit, false); }
Result<void> decode_wait(Decoder& d) { return decode_simple(d, "wait_group", run_wait, true); }

}  // namespace

void register_wgmma(InstructionTable& table) {
  table.add("wgmma.mma_async", decode_wgmma);
  table.add("wgmma.fence", decode_fence);
  table.add("wgmma.commit_group", decode_commit);
  table.add("wgmma.wait_group", decode_wait);
}

}  // namespace ptxbench::emulator
