// mbarrier.*: PTX ISA 9.7.13.15.
#include "emulator/async_operands.hpp"
#include "emulator/mbarrier.hpp"
#include "emulator/happens_before.hpp"

namespace ptxbench::emulator {
namespace {

enum Space : std::uint8_t { kGenericSpace, kCtaSpace, kClusterSpace };  // Op::b
enum Flags : std::uint8_t {                                             // Op::c
  kHasState = 1,                                                        // a state is returned, or waited for
  kHasCount = 2,                                                        // a count, or bytes to expect
  kExpect = 4,                                                          // the operand is bytes
  kDrop = 8,
  kNoComplete = 16,
  kParity = 32,
  kRelaxed = 64,
};

// The object that @p lane names: address number 0, whose base is operand @p base and whose offset operand @p
// offset.
bool locate(Exec& x, Agent& agent, int lane, unsigned base, unsigned offset_operand, Cta*& cta,
            std::uint32_t& offset) {
  const std::uint64_t address = address_of(x, 0, base, offset_operand, lane);
  auto shared = static_cast<std::uint32_t>(address);
  if (x.op.b == kGenericSpace && !shared_from_generic(address, shared)) {
    x.fault(FaultKind::out_of_bounds, lane,
            "a generic address of an mbarrier object that is not in shared memory: " +
                x.grid.memory->describe(address));
    return false;
  }
  // A generic address says which CTA it means.
  return x.grid.memory->shared(agent, shared, 8, 8, Access::atomic, Proxy::generic, x.op.b == kCtaSpace, cta,
                               offset) != nullptr;
}

// --- init, inval, expect_tx, complete_tx
// ----------------------------------------------------------------------

enum class Step : std::uint8_t { init, inval, expect_tx, complete_tx };  // Op::a

Flow run_step(Exec& x) {
  const auto step = static_cast<Step>(x.op.a);
  const bool has_count = (x.op.c & kHasCount) != 0;
  const unsigned offsets = has_count ? 2 : 1;
  if (!defined(x, 0, "the address of an mbarrier object")) return Flow::stop;
  if (has_count && !defined(x, 1, "the count of an mbarrier operation")) return Flow::stop;
  for (Mask m = x.mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    Agent agent = agent_of(x, lane);
    Cta* cta = nullptr;
    std::uint32_t offset = 0;
    if (!locate(x, agent, lane, 0, offsets, cta, offset)) return Flow::stop;
    const std::uint32_t count = has_count ? x.src(1)[lane] : 0;
    bool good = false;
    switch (step) {
      case Step::init:
        good = mbarrier_init(agent, *cta, offset, count);
        break;
      case Step::inval:
        good = mbarrier_inval(agent, *cta, offset);
        break;
      case Step::expect_tx:
        good = mbarrier_expect_tx(agent, *cta, offset, count);
        break;
      case Step::complete_tx:
        good = mbarrier_complete_tx(agent, *cta, offset, count);
        break;
    }
    if (!good) return Flow::stop;
  }
  return Flow::next;
}

// Takes the modifiers that say where and how; Op::b.
Result<void> take_space(Decoder& d, Modifiers& m, Emit& e, bool cluster_allowed) {
  const int space = m.take_one({"shared", "shared::cta", "shared::cluster"});
  e.b = space < 0 ? kGenericSpace : space == 2 ? kClusterSpace : kCtaSpace;
  if (space == 2 && !cluster_allowed)
    return d.bad("an object of .shared::cluster where only .shared::cta is possible");
  if (!m.take("b64")) return d.bad("the type must be .b64");
  return {};
}
void take_ordering(Modifiers& m, Emit& e) {
  if (m.take_one({"release", "acquire", "relaxed"}) == 2) e.c |= kRelaxed;
  m.take_one({"cta", "cluster"});
}
ptx::Space address_space(const Emit& e) {
  return e.b == kGenericSpace ? ptx::Space::generic : ptx::Space::shared;
}

template <Step step>
Result<void> decode_step(Decoder& d) {
  Modifiers m(d.instruction());
  Emit e;
  e.flags = kSideEffect;
  e.a = static_cast<std::uint8_t>(step);
  e.run = run_step;
  constexpr bool kTransaction = step == Step::expect_tx || step == Step::complete_tx;
  m.take(step == Step::init        ? "init"
         : step == Step::inval     ? "inval"
         : step == Step::expect_tx ? "expect_tx"
                                   : "complete_tx");
  if (kTransaction) take_ordering(m, e);
  PTXBENCH_TRY(take_space(d, m, e, kTransaction));
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(step == Step::inval ? 1 : 2));
  AddressOperands addresses(d, e);
  PTXBENCH_TRY(addresses.add(d.instruction().operands[0], address_space(e)));
  if (step != Step::inval) {
    e.c |= kHasCount;
    PTXBENCH_TRY(d.src(e, 1, Ty::u32));
  }
  addresses.finish();
  return d.emit(e, "mbarrier");
}

// Lanes of @p mask that name the same object as @p lane: all arrive, or wait, at once.
Mask same_object(const Exec& x, Mask mask, int lane, unsigned base, unsigned offset_operand) {
  const std::uint64_t address = address_of(x, 0, base, offset_operand, lane);
  Mask same = 0;
  for_lanes(mask, [&](int i) { same |= Mask{address_of(x, 0, base, offset_operand, i) == address} << i; });
  return same;
}

// --- arrive, arrive_drop
// --------------------------------------------------------------------------------------

Flow run_arrive(Exec& x) {
  const bool has_state = (x.op.c & kHasState) != 0, has_count = (x.op.c & kHasCount) != 0;
  const unsigned base = has_state ? 1 : 0, offsets = base + (has_count ? 2 : 1);
  if (!defined(x, base, "the address of an mbarrier object")) return Flow::stop;
  if (has_count && !defined(x, base + 1, "the count of an arrival")) return Flow::stop;
  const Arrival how{(x.op.c & kDrop) != 0, (x.op.c & kNoComplete) != 0};
  Mask told = 0;
  for (Mask m = x.mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    Agent agent = agent_of(x, lane);
    Cta* cta = nullptr;
    std::uint32_t offset = 0;
    if (!locate(x, agent, lane, base, offsets, cta, offset)) return Flow::stop;
    if (HappensBefore* order = order_of(x.cluster); order != nullptr && (told >> lane & 1) == 0) {
      const Mask same = same_object(x, m, lane, base, offsets);
      told |= same;
      order->arrive(mbarrier_key(*cta, offset), x.warp, same, (x.op.c & kRelaxed) != 0);
    }
    std::uint32_t count = has_count ? x.src(base + 1)[lane] : 1;
    if ((x.op.c & kExpect) != 0) {
      // One step: the transaction first, so that the arrival sees it.
      if (!mbarrier_expect_tx(agent, *cta, offset, count)) return Flow::stop;
      count = 1;
    }
    std::uint64_t state = 0;
    if (!mbarrier_arrive(agent, *cta, offset, count, &state, how)) return Flow::stop;
    if (has_state) x.dst64(0)[lane] = state;
  }
  if (has_state) x.set_undefined(0, 0);
  return Flow::next;
}

template <bool drop>
Result<void> decode_arrive(Decoder& d) {
  Modifiers m(d.instruction());
  Emit e;
  e.flags = kSideEffect;
  e.run = run_arrive;
  m.take(drop ? "arrive_drop" : "arrive");
  if (drop) e.c |= kDrop;
  const bool expect = m.take("expect_tx"), no_complete = m.take("noComplete");
  if (no_complete) e.c |= kNoComplete;
  take_ordering(m, e);
  PTXBENCH_TRY(take_space(d, m, e, true));
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(expect || no_complete ? 3 : 2, 3));
  const auto& operands = d.instruction().operands;
  if (operands[0].kind != ptx::Operand::Kind::sink) {
    if (e.b == kClusterSpace)
      return d.bad("an arrival at an object of .shared::cluster returns no state: write `_`");
    e.c |= kHasState;
    PTXBENCH_TRY(d.dst(e, 0, 64));
  }
  AddressOperands addresses(d, e);
  PTXBENCH_TRY(addresses.add(operands[1], address_space(e)));
  if (operands.size() > 2) {
    e.c |= kHasCount;
    PTXBENCH_TRY(d.src(e, 2, Ty::u32));
  }
  if (expect) e.c |= kExpect;
  addresses.finish();
  return d.emit(e, "mbarrier");
}

// --- test_wait, try_wait
// --------------------------------------------------------------------------------------

// Operands: address, state or parity[, time hint]; offset; predicate.
Flow run_wait(Exec& x) {
  const bool may_park = x.op.a != 0, parity = (x.op.c & kParity) != 0;
  const unsigned offsets = (x.op.c & kHasCount) != 0 ? 3 : 2, predicate = offsets + 1;
  if (!defined(x, 0, "the address of an mbarrier object")) return Flow::stop;
  if (!defined(x, 1, parity ? "the parity of a wait" : "the state of a wait")) return Flow::stop;
  Mask over = 0;
  bool one_object = true, previous_over = false;
  Cta* cta = nullptr;
  std::uint32_t offset = 0;
  std::uint64_t previous_address = 0, previous_what = 0;
  for (Mask m = x.mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    const std::uint64_t address = address_of(x, 0, 0, offsets, lane);
    const std::uint64_t what = parity ? x.src(1)[lane] : x.src64(1)[lane];
    if (m == x.mask || address != previous_address || what != previous_what) {
      one_object &= m == x.mask || address == previous_address;
      Agent agent = agent_of(x, lane);
      if (!locate(x, agent, lane, 0, offsets, cta, offset)) return Flow::stop;
      if (parity ? !mbarrier_test_parity(agent, *cta, offset, static_cast<std::uint32_t>(what), previous_over)
                 : !mbarrier_test_state(agent, *cta, offset, what, previous_over))
        return Flow::stop;
      if (HappensBefore* order = order_of(x.cluster); order != nullptr && previous_over)
        order->wait(mbarrier_key(*cta, offset), x.warp, same_object(x, m, lane, 0, offsets), (x.op.c & kRelaxed) != 0);
      previous_address = address;
      previous_what = what;
    }
    if (previous_over) over |= Mask{1} << lane;
  }
  // Where nobody's phase is over the warp may sleep until it is. Try_wait may also give up early; that some
  // seeds see.
  if (may_park && over == 0 && !x.fragment.timed_out) {
    const bool give_up = x.grid.schedule.mode == Schedule::Mode::random && (x.cluster.random() & 15) == 0 &&
                         x.fragment.wait_value == 0;
    if (!give_up) {
      x.fragment.wait = one_object
                            ? mbarrier_key(*cta, offset)
                            : WaitKey{WaitKey::Kind::time, 0, 0};
      x.fragment.may_time_out = true;
      x.fragment.wait_value = 1;
      return Flow::again;
    }
  }
  x.fragment.wait_value = 0;
  if (over == 0 && one_object)
    x.fragment.polled_for = mbarrier_key(*cta, offset);
  x.set_pred(predicate, over);
  return Flow::next;
}

template <bool try_wait>
Result<void> decode_wait(Decoder& d) {
  Modifiers m(d.instruction());
  Emit e;
  e.flags = kPoll;
  e.a = try_wait;
  e.run = run_wait;
  m.take(try_wait ? "try_wait" : "test_wait");
  const bool parity = m.take("parity");
  take_ordering(m, e);
  PTXBENCH_TRY(take_space(d, m, e, false));
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(3, try_wait ? 4 : 3));
  const auto& operands = d.instruction().operands;
  AddressOperands addresses(d, e);
  PTXBENCH_TRY(addresses.add(operands[1], address_space(e)));
  if (parity) {
    e.c |= kParity;
    PTXBENCH_TRY(d.src(e, 2, Ty::u32));
  } else {
    PTXBENCH_TRY(d.src(e, 2, Ty::b64));
  }
  if (operands.size() > 3) {  // for how long it may sleep: nothing takes time here
    e.c |= kHasCount;
    PTXBENCH_TRY(d.src(e, 3, Ty::u32));
  }
  addresses.finish();
  PTXBENCH_TRY_ASSIGN(const Operand predicate, d.pred_dst(operands[0]));
  e.operands.push_back(predicate);
  return d.emit(e, "mbarrier");
}

// --- pending_count
// --------------------------------------------------------------------------------------------

Flow run_pending_count(Exec& x) {
  const std::uint64_t* state = x.src64(1);
  write_lanes(x.dst(0), x.mask, [&](unsigned i) { return mbarrier_pending_count(state[i]); });
  return Flow::next;
}

Result<void> decode_pending_count(Decoder& d) {
  Modifiers m(d.instruction());
  m.take("pending_count");
  m.take("b64");
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(2));
  Emit e;
  e.run = run_pending_count;
  PTXBENCH_TRY(d.dst(e, 0, 32));
  PTXBENCH_TRY(d.src(e, 1, Ty::b64));
  return d.emit(e, "mbarrier");
}

}  // namespace

void register_mbarrier(InstructionTable& table) {
  table.add("mbarrier.init", decode_step<Step::init>);
  table.add("mbarrier.inval", decode_step<Step::inval>);
  table.add("mbarrier.expect_tx", decode_step<Step::expect_tx>);
  table.add("mbarrier.complete_tx", decode_step<Step::complete_tx>);
  table.add("mbarrier.arrive", decode_arrive<false>);
  table.add("mbarrier.arrive_drop", decode_arrive<true>);
  table.add("mbarrier.test_wait", decode_wait<false>);
  table.add("mbarrier.try_wait", decode_wait<true>);
  table.add("mbarrier.pending_count", decode_pending_count);
}

}  // namespace ptxbench::emulator
