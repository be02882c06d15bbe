// Bulk copies of contiguous bytes and their groups: cp.async.bulk, cp.reduce.async.bulk, commit_group,
// wait_group, prefetch. PTX ISA 9.7.9.25.4, 9.7.9.25.5.
#include "emulator/async_copy.hpp"
#include "emulator/mbarrier.hpp"
#include "emulator/overwrites.hpp"
#include "emulator/tma.hpp"
#include "emulator/text.hpp"

#include <cstring>

namespace ptxbench::emulator {
namespace {

// The bits of what was never written, of bytes that a copy moves; empty where there are none.
using Bits = std::vector<std::uint64_t>;


// --- into shared memory: from global memory, or from the shared memory of the issuing CTA
// ---------------------------

class BulkIn final : public AsyncOp {
 public:
  std::uint64_t from = 0;  // global, or .shared::cta
  bool from_shared = false;
  SignalledTarget target;
  std::uint32_t bytes = 0;
  std::optional<Reduction> reduction;

  bool complete(Cluster& cluster, Run& run) override {
    Agent agent = agent_of(*this, cluster, run);
    Memory& memory = *cluster.grid->memory;
    std::vector<std::uint8_t> data(bytes);
    Bits undefined;
    if (bytes != 0 && !read(agent, memory, data, undefined)) return true;
    target.each(cluster, [&](std::uint32_t to, std::uint32_t barrier) {
      if (bytes != 0) {
        Cta* cta = nullptr;
        std::uint32_t offset = 0;
        std::uint8_t* p = memory.shared(agent, to, bytes, 16, reduction ? Access::atomic : Access::write,
                                        Proxy::async, target.own, cta, offset);
        if (!p) return false;
        if (reduction) {
          reduce(reduction->op, reduction->type, p, data.data(), bytes);
          add_undefined(*cta, offset, undefined);
        } else {
          std::memcpy(p, data.data(), bytes);
          put_undefined(*cta, offset, bytes, undefined);
        }
      }
      return signal(agent, barrier, target.own, bytes);
    });
    return true;
  }
  bool signals(std::uint16_t rank, std::uint32_t offset) const override { return target.signals(rank, offset); }
  std::string describe() const override {
    return std::string(reduction ? "bulk reduction of " : "bulk copy of ") + bytes_text(bytes) + " from " +
           (from_shared ? "shared " : "") + hex(from) + target.describe();
  }

 private:
  bool read(Agent& agent, Memory& memory, std::vector<std::uint8_t>& data, Bits& undefined) {
    if (from_shared) {
      Cta* cta = nullptr;
      std::uint32_t offset = 0;
      const std::uint8_t* p = memory.shared(agent, static_cast<std::uint32_t>(from), bytes, 16, Access::read,
                                            Proxy::async, true, cta, offset);
      if (!p) return false;
      std::memcpy(data.data(), p, bytes);
      undefined = shared_undefined_of(*cta, offset, bytes);
      return true;
    }
    const std::uint8_t* p = memory.global(agent, from, bytes, 16, Access::read);
    if (!p) return false;
    std::memcpy(data.data(), p, bytes);
    undefined = global_undefined_of(memory, from, bytes);
    return true;
  }
  void add_undefined(Cta& cta, std::uint32_t offset, const Bits& undefined) const {
    for (std::uint32_t b = 0; b < bytes && !undefined.empty(); b += 16)
      put_undefined_bits(
          cta.shared_undefined, offset + b, 16,
          undefined_bits(cta.shared_undefined, offset + b, 16) | undefined_bits(undefined, b, 16));
  }
};

// --- from shared memory to global memory
// ----------------------------------------------------------------------

class BulkOut final : public GroupedOp {
 public:
  std::uint32_t from = 0;
  std::uint64_t to = 0;
  std::uint32_t bytes = 0;
  std::optional<Reduction> reduction;

  bool complete(Cluster& cluster, Run& run) override {
    Agent agent = agent_of(*this, cluster, run);
    Memory& memory = *cluster.grid->memory;
    if (!have_read_) {
      have_read_ = true;
      data_.resize(bytes);
      if (bytes != 0) {
        Cta* cta = nullptr;
        std::uint32_t offset = 0;
        const std::uint8_t* p =
            memory.shared(agent, from, bytes, 16, Access::read, Proxy::async, true, cta, offset);
        if (!p) {
          leave(cluster);
          return true;
        }
        reads_source(note_store_read(agent, *cta, offset, bytes));
        std::memcpy(data_.data(), p, bytes);
        undefined_ = shared_undefined_of(*cta, offset, bytes);
        if (!undefined_.empty())
          run.read_undefined(agent.site, [&] { return hole_text(agent.grid, *cta, offset, bytes); });
      }
      touches_ctas = 0;
      source_read(cluster);
      return false;
    }
    if (bytes != 0) write(agent, memory);
    leave(cluster);
    return true;
  }
  std::string describe() const override {
    return std::string(reduction ? "bulk reduction of " : "bulk copy of ") + bytes_text(bytes) +
           " from shared " + hex(from) + " to " + hex(to) + (have_read_ ? " (source read)" : "");
  }

 private:
  void write(Agent& agent, Memory& memory) {
    std::uint8_t* p = memory.global(agent, to, bytes, 16, reduction ? Access::atomic : Access::write);
    if (!p) return;
    if (reduction) {
      reduce(reduction->op, reduction->type, p, data_.data(), bytes);
    } else {
      std::memcpy(p, data_.data(), bytes);
    }
    store_undefined(agent, to, bytes, undefined_, 0, reduction.has_value());
  }
  bool have_read_ = false;
  std::vector<std::uint8_t> data_;
  Bits undefined_;
};

// --- handlers
// -------------------------------------------------------------------------------------------------

enum Form : std::uint8_t { kGlobalToShared, kSharedToShared, kSharedToGlobal };  // Op::a
enum Flags : std::uint8_t { kOwn = 1, kMulticast = 2, kReduce = 4 };  // Op::c; Op::b: op << 4 | type

std::optional<Reduction> reduction_of(const Op& op) {
  if ((op.c & kReduce) == 0) return {};
  return Reduction{static_cast<ReduceOp>(op.b >> 4), static_cast<ReduceType>(op.b & 15)};
}

// Operands: to, from, size[, barrier[, CTA mask]]; offsets in the same order.
Flow run_bulk(Exec& x) {
  const auto form = static_cast<Form>(x.op.a);
  const bool multicast = (x.op.c & kMulticast) != 0;
  const unsigned sources = x.op.sources;
  if (!defined(x, 0, sources, "an operand of a bulk copy")) return Flow::stop;
  for (Mask m = x.mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    const std::uint32_t bytes = x.src(2)[lane];
    const std::uint64_t to = address_of(x, 0, 0, sources, lane), from = address_of(x, 1, 1, sources, lane);
    if (bytes % 16 != 0)
      return x.fault(FaultKind::misaligned, lane,
                     "a bulk copy of " + bytes_text(bytes) + "; the size must be a multiple of 16");
    if (const unsigned bad = to % 16 != 0 ? 1 : from % 16 != 0 ? 2 : 0; bad != 0)
      return x.fault(FaultKind::misaligned, lane,
                     std::string("the ") + (bad == 1 ? "destination " : "source ") +
                         hex(bad == 1 ? to : from) + " of a bulk copy is not aligned to 16 bytes");
    x.run.bulk_bytes += bytes;
    if (form == kSharedToGlobal) {
      auto op = std::make_unique<BulkOut>();
      set_issuer(*op, x, lane);
      op->from = static_cast<std::uint32_t>(from);
      op->to = to;
      op->bytes = bytes;
      op->reduction = reduction_of(x.op);
      op->touches_ctas = std::uint64_t{1} << x.cta.rank;
      op->join(copy_groups(x.warp), &CopyGroups::bulk, Mask{1} << lane);
      x.cluster.async->issue(std::move(op), x.run);
    } else {
      auto op = std::make_unique<BulkIn>();
      set_issuer(*op, x, lane);
      op->from = from;
      op->from_shared = form == kSharedToShared;
      op->bytes = bytes;
      op->reduction = reduction_of(x.op);
      op->target.to = static_cast<std::uint32_t>(to);
      op->target.barrier = shared_address_of(x, 2, 3, sources, lane);
      op->target.own = (x.op.c & kOwn) != 0;
      if (multicast && !op->target.multicast(x, lane, static_cast<std::uint16_t>(x.src(4)[lane])))
        return Flow::stop;
      op->touches_ctas = op->target.ctas(x.cta.rank) | (op->from_shared ? std::uint64_t{1} << x.cta.rank : 0);
      x.cluster.async->issue(std::move(op), x.run);
    }
    if (x.run.failed()) return Flow::stop;
  }
  return Flow::next;
}

// --- decoders
// -------------------------------------------------------------------------------------------------

Result<void> decode_reduction(Decoder& d, Modifiers& m, Emit& e, bool to_global) {
  const int op = m.take_one({"add", "min", "max", "inc", "dec", "and", "or", "xor"});
  if (op < 0) return d.bad("a reduction operation must be there");
  const bool noftz = m.take("noftz");
  const auto type = m.type();
  if (!type) return d.bad("a type must be there");
  ReduceType t;
  switch (*type) {
    case Ty::u32:
    case Ty::b32:
      t = ReduceType::u32;
      break;
    case Ty::s32:
      t = ReduceType::s32;
      break;
    case Ty::u64:
    case Ty::b64:
      t = ReduceType::u64;
      break;
    case Ty::s64:
      t = ReduceType::s64;
      break;
    case Ty::f16:
      t = ReduceType::f16;
      break;
    case Ty::bf16:
      t = ReduceType::bf16;
      break;
    case Ty::f32:
      t = ReduceType::f32;
      break;
    case Ty::f64:
      t = ReduceType::f64;
      break;
    default:
      return d.bad("a type that no reduction has");
  }
  const auto reduce_op = static_cast<ReduceOp>(op);
  const bool half = t == ReduceType::f16 || t == ReduceType::bf16,
             real = half || t == ReduceType::f32 || t == ReduceType::f64;
  const bool bits = *type == Ty::b32 || *type == Ty::b64, logic = op >= 5;
  if (!reduce_allowed(reduce_op, t) || bits != logic || (!to_global && real))
    return d.bad("." + std::string(reduce_name(reduce_op)) + " does not exist for ." +
                 std::string(ty_name(*type)));
  if (half && reduce_op == ReduceOp::add && !noftz) return d.bad(".add of a 16-bit type needs .noftz");
  e.b = static_cast<std::uint8_t>(op << 4 | static_cast<int>(t));
  e.c |= kReduce;
  return {};
}

Result<void> decode_bulk(Decoder& d) {
  const ptx::Instruction& in = d.instruction();
  Modifiers m(in);
  Emit e;
  e.flags = kAsync;
  e.run = run_bulk;
  const bool reduction = m.take("reduce");
  m.take("async");
  m.take("bulk");
  if (reduction) e.flags |= kCommunicates;
  // The first of the spaces is the destination's.
  const auto place = [&](std::string_view name) {
    for (std::size_t i = 0; i < in.modifiers.size(); ++i)
      if (in.modifiers[i] == name) return static_cast<int>(i);
    return -1;
  };
  const int global = place("global"), cta = place("shared::cta"), cluster = place("shared::cluster");
  if (m.take("cp_mask") || m.take("ignore_oob"))
    return d.unsupported("a masked bulk copy (compute capability 10.0)");
  const bool group = m.take("bulk_group"), barrier = m.take("mbarrier::complete_tx::bytes");
  if (group == barrier)
    return d.bad("a bulk copy completes by .bulk_group or by .mbarrier::complete_tx::bytes");
  if (m.take("multicast::cluster")) e.c |= kMulticast;
  const bool multicast = (e.c & kMulticast) != 0, policy = m.take("L2::cache_hint");
  m.take("global");
  m.take("shared::cta");
  m.take("shared::cluster");
  if (group && global >= 0 && cta > global) {
    e.a = kSharedToGlobal;
  } else if (barrier && global >= 0 && (cluster >= 0 ? cluster < global : cta >= 0 && cta < global)) {
    e.a = kGlobalToShared;
    if (cluster < 0) e.c |= kOwn;
  } else if (barrier && global < 0 && cluster >= 0 && cta > cluster) {
    e.a = kSharedToShared;
  } else {
    return d.bad("these state spaces do not go together in a bulk copy");
  }
  if (multicast && e.a != kGlobalToShared) return d.bad("only a copy from .global can be multicast");
  if (reduction) PTXBENCH_TRY(decode_reduction(d, m, e, e.a == kSharedToGlobal));
  PTXBENCH_TRY(m.finish(d));
  const std::size_t operands = 3 + (barrier ? 1 : 0) + (multicast ? 1 : 0) + (policy ? 1 : 0);
  PTXBENCH_TRY(d.expect_operands(operands, operands));
  AddressOperands addresses(d, e);
  PTXBENCH_TRY(
      addresses.add(in.operands[0], e.a == kSharedToGlobal ? ptx::Space::global : ptx::Space::shared));
  PTXBENCH_TRY(
      addresses.add(in.operands[1], e.a == kGlobalToShared ? ptx::Space::global : ptx::Space::shared));
  PTXBENCH_TRY(d.src(e, 2, Ty::u32));
  if (barrier) PTXBENCH_TRY(addresses.add(in.operands[3], ptx::Space::shared));
  if (multicast) PTXBENCH_TRY(d.src(e, 4, Ty::u16));
  addresses.finish();
  return d.emit(e, "bulk_copy");
}

// --- prefetch: nothing to do but to look at the operands
// --------------------------------------------------------

Flow run_prefetch(Exec& x) {
  if (!defined(x, 0, 2, "an operand of a bulk prefetch")) return Flow::stop;
  for (Mask m = x.mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    const std::uint64_t from = address_of(x, 0, 0, 2, lane);
    if (x.src(1)[lane] % 16 != 0 || from % 16 != 0)
      return x.fault(FaultKind::misaligned, lane,
                     "a bulk prefetch of " + bytes_text(x.src(1)[lane]) + " at " + hex(from) +
                         "; size and address must be multiples of 16");
  }
  return Flow::next;
}

Result<void> decode_prefetch(Decoder& d) {
  Modifiers m(d.instruction());
  Emit e;
  e.flags = kNone;
  e.run = run_prefetch;
  for (const char* name : {"async", "bulk", "prefetch", "L2", "global"}) m.take(name);
  const bool policy = m.take("L2::cache_hint");
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(policy ? 3 : 2));
  AddressOperands addresses(d, e);
  PTXBENCH_TRY(addresses.add(d.instruction().operands[0], ptx::Space::global));
  PTXBENCH_TRY(d.src(e, 1, Ty::u32));
  addresses.finish();
  return d.emit(e, "bulk_copy");
}

// --- groups
// ---------------------------------------------------------------------------------------------------

Flow run_commit(Exec& x) {
  CopyGroups& groups = *copy_groups(x.warp);
  for_lanes(x.mask, [&](int lane) { ++groups.bulk.committed[static_cast<unsigned>(lane)]; });
  return Flow::next;
}

Flow run_wait(Exec& x) {
  CopyGroups& groups = *copy_groups(x.warp);
  const auto newest = static_cast<std::uint32_t>(x.op.imm);
  const Flow flow = wait_for_groups(x, groups.bulk, newest, x.op.a != 0);
  if (flow != Flow::next || groups.stores.empty()) return flow;
  ++groups.waits;
  std::erase_if(groups.stores, [&](const CopyGroups::Unwaited& s) {
    const Mask mine = s.lanes & x.mask;
    if (mine == 0 || groups.bulk.committed[static_cast<unsigned>(__builtin_ctz(mine))] - s.group <= newest) return false;
    store_waited_for(x.cta, x.warp.index, s.number, groups.waits);
    return true;
  });
  return flow;
}

Result<void> decode_commit(Decoder& d) {
  Modifiers m(d.instruction());
  for (const char* name : {"async", "bulk", "commit_group"}) m.take(name);
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(0));
  Emit e;
  e.flags = kNone;
  e.run = run_commit;
  return d.emit(e, "tma_control");
}

Result<void> decode_wait(Decoder& d) {
  Modifiers m(d.instruction());
  for (const char* name : {"async", "bulk", "wait_group"}) m.take(name);
  Emit e;
  e.flags = kNone;
  e.run = run_wait;
  e.a = m.take("read");
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(1));
  PTXBENCH_TRY_ASSIGN(e.imm, d.immediate(0));
  if (e.imm < 0 || e.imm >= kAllCopies) return d.bad("the number of groups must not be negative");
  return d.emit(e, "control");
}

}  // namespace

void register_bulk(InstructionTable& table) {
  table.add("cp.async.bulk", decode_bulk);
  table.add("cp.reduce.async.bulk", decode_bulk);
  table.add("cp.async.bulk.prefetch", decode_prefetch);
  table.add("cp.async.bulk.commit_group", decode_commit);
  table.add("cp.async.bulk.wait_group", decode_wait);
}

}  // namespace ptxbench::emulator
