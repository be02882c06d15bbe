// cp.async (not bulk), its groups, and the arrival that follows it: PTX ISA 9.7.9.25.3, 9.7.13.15.16.
#include "emulator/async_groups.hpp"
#include "emulator/mbarrier.hpp"
#include "emulator/races.hpp"
#include "emulator/text.hpp"

#include <algorithm>
#include <cstring>

namespace ptxbench::emulator {
namespace {

// --- the copy
// -------------------------------------------------------------------------------------------------

// One instruction of a warp: up to 32 small copies.
class ThreadCopies final : public GroupedOp {
 public:
  struct Lane {
    std::uint64_t from = 0;
    std::uint32_t to = 0;
    std::uint8_t read = 0;  // bytes to read; the rest of `bytes` becomes zero
  };
  std::array<Lane, kLanes> copies;
  std::uint8_t bytes = 0;
  bool generic_to = false;

  bool complete(Cluster& cluster, Run& run) override {
    Agent agent = agent_of(*this, cluster, run);
    Memory& memory = *cluster.grid->memory;
    const bool track = memory.any_global_undefined();
    for (Mask m = lanes(); m != 0; m &= m - 1) {
      const int lane = __builtin_ctz(m);
      const Lane& c = copies[static_cast<unsigned>(lane)];
      agent.site.lane = lane;
      Cta* cta = nullptr;
      std::uint32_t offset = 0;
      // Kept apart from ordinary stores: no kernel fences these against the async proxy, and none needs to.
      std::uint8_t* to =
          memory.shared(agent, c.to, bytes, bytes, Access::write, Proxy::async, !generic_to, cta, offset);
      if (!to) break;
      std::uint64_t undefined = 0;
      const std::uint8_t* from = nullptr;
      if (c.read != 0) {
        from = memory.global(agent, c.from, c.read, bytes, Access::read);
        if (!from) break;
      }
      if (cluster.races != nullptr) {
        const bool same = (c.read == 0 || std::memcmp(to, from, c.read) == 0) &&
                          std::all_of(to + c.read, to + bytes, [](std::uint8_t b) { return b == 0; });
        cluster.races->copy_write(agent, *cta, offset, bytes, group_of(lane) + 1, same);
      }
      if (c.read != 0) {
        std::memcpy(to, from, c.read);
        if (track) memory.global_undefined(c.from, c.read, &undefined);
      }
      if (c.read < bytes) std::memset(to + c.read, 0, bytes - c.read);
      if (!cta->shared_undefined.empty()) put_undefined_bits(cta->shared_undefined, offset, bytes, undefined);
    }
    leave(cluster);
    return true;
  }
  std::string describe() const override {
    const auto lane = static_cast<unsigned>(__builtin_ctz(lanes()));
    return "cp.async of " + std::to_string(bytes) + " bytes by each of " +
           std::to_string(__builtin_popcount(lanes())) + " lanes of warp " + std::to_string(warp) +
           " (lane " + std::to_string(lane) + ": to shared address " + hex(copies[lane].to) + ")";
  }
};

enum Optional : std::uint8_t { kSourceSize = 1, kIgnoreSource = 2, kGenericTo = 4 };  // Op::c

// Operands: to, from[, source size]; two offsets[, predicate]. Op::a: bytes.
Flow run_copy(Exec& x) {
  const bool sized = (x.op.c & kSourceSize) != 0;
  const unsigned offsets = sized ? 3 : 2;
  if (!defined(x, 0, "the destination address of cp.async") ||
      !defined(x, 1, "the source address of cp.async"))
    return Flow::stop;
  if (sized && !defined(x, 2, "the source size of cp.async")) return Flow::stop;
  Mask ignored = 0;
  if ((x.op.c & kIgnoreSource) != 0) {
    ignored = x.pred(offsets + 2);
    if (const Mask u = x.pred_undefined(offsets + 2) & x.mask; u != 0)
      return x.fault(FaultKind::undefined_value, __builtin_ctz(u),
                     "the ignore-src predicate of cp.async was never written");
  }
  auto op = std::make_unique<ThreadCopies>();
  set_issuer(*op, x, -1);
  op->bytes = x.op.a;
  op->generic_to = (x.op.c & kGenericTo) != 0;
  op->touches_ctas = std::uint64_t{1} << x.cta.rank;
  for (Mask m = x.mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    ThreadCopies::Lane& c = op->copies[static_cast<unsigned>(lane)];
    const std::uint64_t to = address_of(x, 0, 0, offsets, lane);
    c.to = static_cast<std::uint32_t>(to);
    if (op->generic_to && !shared_from_generic(to, c.to))
      return x.fault(FaultKind::out_of_bounds, lane,
                     "the destination of cp.async is not in shared memory: " + x.grid.memory->describe(to));
    c.from = address_of(x, 1, 1, offsets, lane);
    const std::uint32_t size = sized ? x.src(2)[lane] : x.op.a;
    if (size > x.op.a)
      return x.fault(FaultKind::out_of_bounds, lane,
                     "a source size of " + std::to_string(size) + " bytes for a cp.async of " +
                         std::to_string(x.op.a) + "; it must not be larger");
    c.read = (ignored >> lane & 1) != 0 ? 0 : static_cast<std::uint8_t>(size);
  }
  op->join(copy_groups(x.warp), &CopyGroups::cp_async, x.mask);
  x.cluster.async->issue(std::move(op), x.run);
  return x.run.failed() ? Flow::stop : Flow::next;
}

Result<void> decode_copy(Decoder& d) {
  Modifiers m(d.instruction());
  m.take("async");
  const int cache = m.take_one({"ca", "cg"});
  if (cache < 0) return d.bad("one of .ca and .cg must be there");
  Emit e;
  e.flags = kAsync;
  e.run = run_copy;
  if (m.take_one({"shared", "shared::cta"}) < 0) e.c |= kGenericTo;
  const bool generic_to = (e.c & kGenericTo) != 0;
  if (!m.take("global")) return d.bad("the source must be in .global");
  const bool policy = m.take("L2::cache_hint");
  m.take_one({"L2::64B", "L2::128B", "L2::256B"});
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(3, 5));
  const auto& operands = d.instruction().operands;
  PTXBENCH_TRY_ASSIGN(const std::int64_t bytes, d.immediate(2));
  if (bytes != 16 && (cache == 1 || (bytes != 4 && bytes != 8)))
    return d.bad("a copy of " + std::to_string(bytes) + " bytes; it must have " +
                 (cache == 1 ? "16 with .cg" : "4, 8 or 16"));
  e.a = static_cast<std::uint8_t>(bytes);
  AddressOperands addresses(d, e);
  PTXBENCH_TRY(addresses.add(operands[0], generic_to ? ptx::Space::generic : ptx::Space::shared));
  PTXBENCH_TRY(addresses.add(operands[1], ptx::Space::global));
  Operand ignore = kNoOperand;
  // The cache policy comes last; what stands before it is a size or a predicate.
  if (operands.size() > (policy ? 4u : 3u)) {
    const ptx::Operand& o = operands[3];
    if (o.kind == ptx::Operand::Kind::reg && d.function().registers[o.index].type == ptx::Type::pred) {
      e.c |= kIgnoreSource;
      PTXBENCH_TRY_ASSIGN(ignore, d.pred_src(o));
    } else {
      e.c |= kSourceSize;
      PTXBENCH_TRY(d.src(e, 3, Ty::u32));
    }
  }
  addresses.finish();
  if (ignore != kNoOperand) e.operands.push_back(ignore);
  return d.emit(e, "cp_async");
}

// --- groups
// ---------------------------------------------------------------------------------------------------

Flow run_commit(Exec& x) {
  CopyGroups& groups = *copy_groups(x.warp);
  for_lanes(x.mask, [&](int lane) { ++groups.cp_async.committed[static_cast<unsigned>(lane)]; });
  return Flow::next;
}

Flow run_wait(Exec& x) {
  CopyGroups::Family& copies = copy_groups(x.warp)->cp_async;
  const auto newest = static_cast<std::uint32_t>(x.op.imm);
  const Flow flow = wait_for_groups(x, copies, newest, false);
  if (flow != Flow::next) return flow;
  for_lanes(x.mask, [&](int lane) {
    std::uint32_t& committed = copies.committed[static_cast<unsigned>(lane)];
    if (newest == kAllCopies) ++committed;  // wait_all commits what is open
    const std::uint32_t pending = newest == kAllCopies ? 0 : newest;
    if (x.cluster.races != nullptr && committed > pending)
      x.cluster.races->order.copies_done(x.cluster.races->order.number_of(x.warp), static_cast<unsigned>(lane),
                                         committed - pending);
  });
  return flow;
}

Result<void> decode_commit(Decoder& d) {
  Modifiers m(d.instruction());
  m.take("async");
  m.take("commit_group");
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(0));
  Emit e;
  e.flags = kNone;
  e.run = run_commit;
  return d.emit(e, "cp_async");
}

Result<void> decode_wait(Decoder& d) {
  Modifiers m(d.instruction());
  m.take("async");
  const bool all = m.take("wait_all");
  m.take("wait_group");
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(all ? 0 : 1));
  Emit e;
  e.flags = kNone;
  e.run = run_wait;
  e.imm = kAllCopies;
  if (!all) {
    PTXBENCH_TRY_ASSIGN(e.imm, d.immediate(0));
    if (e.imm < 0 || e.imm >= kAllCopies) return d.bad("the number of groups must not be negative");
  }
  return d.emit(e, "control");
}

// --- cp.async.mbarrier.arrive
// ---------------------------------------------------------------------------------

class ArriveAfterCopies final : public AsyncOp {
 public:
  Mask lanes = 0;
  std::array<std::uint32_t, kLanes> offsets{};  // of the objects, in the issuing CTA
  std::array<std::uint32_t, kLanes> open{};     // the group of each lane's last copies
  std::shared_ptr<const CopyGroups> groups;

  bool ready(const Cluster&) const override {
    for (const GroupedOp* op : groups->cp_async.pending)
      if (op->order < order && (op->lanes() & lanes) != 0) return false;
    return true;
  }
  bool complete(Cluster& cluster, Run& run) override {
    Agent agent = agent_of(*this, cluster, run);
    for (Mask m = lanes; m != 0; m &= m - 1) {
      agent.site.lane = __builtin_ctz(m);
      const auto lane = static_cast<unsigned>(agent.site.lane);
      if (cluster.races != nullptr) {
        HappensBefore& order = cluster.races->order;
        const WaitKey key{WaitKey::Kind::mbarrier, cta, offsets[lane]};
        order.arrive(key, agent.cta.warps[warp], Mask{1} << lane, false);
        order.arrive_copies(key, order.number_of(cta, warp), lane, open[lane]);
      }
      if (!mbarrier_arrive(agent, agent.cta, offsets[lane], 1, nullptr))
        break;
    }
    return true;
  }
  std::string describe() const override {
    return "arrival of cp.async.mbarrier.arrive by " + std::to_string(__builtin_popcount(lanes)) +
           " lanes of warp " + std::to_string(warp) + " at the mbarrier at " +
           hex(offsets[static_cast<unsigned>(__builtin_ctz(lanes))]);
  }
};

// Op::a: the pending count is not raised first; Op::c: kGenericTo.
Flow run_arrive(Exec& x) {
  if (!defined(x, 0, "the address of an mbarrier object")) return Flow::stop;
  auto op = std::make_unique<ArriveAfterCopies>();
  set_issuer(*op, x, -1);
  op->lanes = x.mask;
  op->groups = copy_groups(x.warp);
  op->touches_ctas = std::uint64_t{1} << x.cta.rank;
  const bool generic = (x.op.c & kGenericTo) != 0;
  for (Mask m = x.mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    Agent agent = agent_of(x, lane);
    const std::uint64_t address = address_of(x, 0, 0, 1, lane);
    auto shared = static_cast<std::uint32_t>(address);
    if (generic && !shared_from_generic(address, shared))
      return x.fault(FaultKind::out_of_bounds, lane,
                     "the mbarrier object is not in shared memory: " + x.grid.memory->describe(address));
    Cta* cta = nullptr;
    std::uint32_t offset = 0;
    if (!x.grid.memory->shared(agent, shared, 8, 8, Access::atomic, Proxy::generic, true, cta, offset))
      return Flow::stop;
    if (x.op.a == 0 && !mbarrier_increment(agent, *cta, offset, 1)) return Flow::stop;
    op->offsets[static_cast<unsigned>(lane)] = offset;
    op->open[static_cast<unsigned>(lane)] = op->groups->cp_async.committed[static_cast<unsigned>(lane)] + 1;
  }
  x.cluster.async->issue(std::move(op), x.run);
  return x.run.failed() ? Flow::stop : Flow::next;
}

Result<void> decode_arrive(Decoder& d) {
  Modifiers m(d.instruction());
  m.take("async");
  m.take("mbarrier");
  if (!m.take("arrive")) return d.bad("only .arrive is known");
  Emit e;
  e.flags = kAsync | kSideEffect;
  e.run = run_arrive;
  e.a = m.take("noinc");
  if (m.take_one({"shared", "shared::cta"}) < 0) e.c = kGenericTo;
  if (!m.take("b64")) return d.bad("the type must be .b64");
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(1));
  AddressOperands addresses(d, e);
  PTXBENCH_TRY(
      addresses.add(d.instruction().operands[0], e.c == 0 ? ptx::Space::shared : ptx::Space::generic));
  addresses.finish();
  return d.emit(e, "cp_async");
}

}  // namespace

void register_cp_async(InstructionTable& table) {
  table.add("cp.async", decode_copy);
  table.add("cp.async.commit_group", decode_commit);
  table.add("cp.async.wait_group", decode_wait);
  table.add("cp.async.wait_all", decode_wait);
  table.add("cp.async.mbarrier", decode_arrive);
}

}  // namespace ptxbench::emulator
