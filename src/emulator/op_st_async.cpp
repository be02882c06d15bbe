// Stores and reductions into the shared memory of a cluster that signal an mbarrier there: st.async,
// red.async. PTX ISA 9.7.9.13, 9.7.13.9.
#include "emulator/async_copy.hpp"
#include "emulator/mbarrier.hpp"
#include "emulator/races.hpp"
#include "emulator/tma.hpp"
#include "emulator/text.hpp"

#include <cstring>

namespace ptxbench::emulator {
namespace {

// One instruction of a warp.
class RemoteStores final : public AsyncOp {
 public:
  struct Lane {
    std::uint32_t to = 0, barrier = 0;
    std::uint64_t undefined = 0;  // a bit a byte
    std::array<std::uint8_t, 32> value{};
  };
  std::array<Lane, kLanes> stores;
  Mask lanes = 0;
  std::uint8_t bytes = 0, align = 0;
  std::optional<Reduction> reduction;

  bool complete(Cluster& cluster, Run& run) override {
    Agent agent = agent_of(*this, cluster, run);
    for (Mask m = lanes; m != 0; m &= m - 1) {
      agent.site.lane = __builtin_ctz(m);
      const Lane& s = stores[static_cast<unsigned>(agent.site.lane)];
      Cta* cta = nullptr;
      std::uint32_t offset = 0;
      // The ISA has these in the generic proxy's order; who waits on the mbarrier sees them.
      std::uint8_t* to =
          cluster.grid->memory->shared(agent, s.to, bytes, align, reduction ? Access::atomic : Access::write,
                                       Proxy::generic, false, cta, offset);
      if (!to) break;
      if (cluster.races != nullptr)
        cluster.races->async_write(agent, *cta, offset, bytes, owner_of(agent, s.barrier, false), s.barrier & 0xffffff,
                                   reduction.has_value());
      std::uint64_t undefined = s.undefined;
      if (reduction) {
        reduce(reduction->op, reduction->type, to, s.value.data(), bytes);
        undefined |= undefined_bits(cta->shared_undefined, offset, bytes);
      } else {
        std::memcpy(to, s.value.data(), bytes);
      }
      if (!cta->shared_undefined.empty()) put_undefined_bits(cta->shared_undefined, offset, bytes, undefined);
      if (!signal(agent, s.barrier, false, bytes)) break;
    }
    return true;
  }
  std::string describe() const override {
    const Lane& s = stores[static_cast<unsigned>(__builtin_ctz(lanes))];
    return std::string(reduction ? "red.async" : "st.async") + " of " + std::to_string(bytes) +
           " bytes by each of " + std::to_string(__builtin_popcount(lanes)) + " lanes, the first to shared " +
           hex(s.to) + ", mbarrier " + hex(s.barrier);
  }
};

// Operands: address, values, barrier; offsets. Op::a: bytes of an element; Op::b: elements; Op::c: 1 + (op <<
// 4 | type) of a reduction, else 0.
Flow run_remote(Exec& x) {
  const unsigned elements = x.op.b, sources = elements + 2;
  if (!defined(x, 0, "the address of an asynchronous store") ||
      !defined(x, elements + 1, "the mbarrier of an asynchronous store"))
    return Flow::stop;
  auto op = std::make_unique<RemoteStores>();
  set_issuer(*op, x, -1);
  op->lanes = x.mask;
  op->align = op->bytes = static_cast<std::uint8_t>(x.op.a * elements);
  if (x.op.c != 0)
    op->reduction =
        Reduction{static_cast<ReduceOp>((x.op.c - 1) >> 4), static_cast<ReduceType>((x.op.c - 1) & 15)};
  for (Mask m = x.mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    RemoteStores::Lane& s = op->stores[static_cast<unsigned>(lane)];
    s.to = shared_address_of(x, 0, 0, sources, lane);
    s.barrier = shared_address_of(x, 1, elements + 1, sources, lane);
    op->touches_ctas |= std::uint64_t{1} << (s.to >> 24 & 63) | std::uint64_t{1} << (s.barrier >> 24 & 63);
    for (unsigned i = 0; i < elements; ++i) {
      if (x.op.a == 8) {
        std::memcpy(s.value.data() + 8 * i, &x.src64(1 + i)[lane], 8);
      } else {
        std::memcpy(s.value.data() + 4 * i, &x.src(1 + i)[lane], 4);
      }
      if ((x.undefined_of(x.operand(1 + i)) >> lane & 1) != 0)
        s.undefined |= ((std::uint64_t{1} << x.op.a) - 1) << (x.op.a * i);
    }
  }
  x.cluster.async->issue(std::move(op), x.run);
  return x.run.failed() ? Flow::stop : Flow::next;
}

Result<void> decode_st_async(Decoder& d) {
  Modifiers m(d.instruction());
  Emit e;
  e.flags = kAsync;
  e.run = run_remote;
  m.take("async");
  if (m.take("mmio") || m.take("release"))
    return d.unsupported("st.async to global memory (compute capability 10.0)");
  m.take("weak");
  if (!m.take("shared::cluster")) return d.bad("the destination must be in .shared::cluster");
  if (!m.take("mbarrier::complete_tx::bytes")) return d.bad(".mbarrier::complete_tx::bytes must be there");
  const int vector = m.take_one({"v2", "v4"});
  const auto type = m.type();
  if (!type) return d.bad("a type must be there");
  PTXBENCH_TRY(m.finish(d));
  const unsigned bits = ty_bits(*type);
  if ((bits != 32 && bits != 64) || (bits == 64 && vector == 1))
    return d.bad("st.async stores one, two or four values of 32 bits, or one or two of 64");
  PTXBENCH_TRY(d.expect_operands(3));
  AddressOperands addresses(d, e);
  PTXBENCH_TRY(addresses.add(d.instruction().operands[0], ptx::Space::shared));
  PTXBENCH_TRY_ASSIGN(const std::size_t n, d.src_vector(e, 1, *type));
  if (n != (vector < 0 ? 1u : vector == 0 ? 2u : 4u))
    return d.bad("the number of values is not the vector's");
  PTXBENCH_TRY(addresses.add(d.instruction().operands[2], ptx::Space::shared));
  e.a = static_cast<std::uint8_t>(bits / 8);
  e.b = static_cast<std::uint8_t>(n);
  addresses.finish();
  return d.emit(e, "dsmem");
}

Result<void> decode_red_async(Decoder& d) {
  Modifiers m(d.instruction());
  Emit e;
  e.flags = kAsync;
  e.run = run_remote;
  m.take("async");
  if (m.take("mmio") || m.take("release"))
    return d.unsupported("red.async to global memory (compute capability 10.0)");
  m.take_one({"weak", "relaxed"});
  m.take("cluster");
  if (!m.take("shared::cluster")) return d.bad("the destination must be in .shared::cluster");
  if (!m.take("mbarrier::complete_tx::bytes")) return d.bad(".mbarrier::complete_tx::bytes must be there");
  const int op = m.take_one({"add", "min", "max", "inc", "dec", "and", "or", "xor"});
  const auto type = m.type();
  if (op < 0 || !type) return d.bad("an operation and a type must be there");
  PTXBENCH_TRY(m.finish(d));
  const auto reduce_op = static_cast<ReduceOp>(op);
  const bool logic = op >= 5;
  ReduceType t = ReduceType::u32;
  bool exists = false;
  if (*type == Ty::u32) exists = !logic;
  if (*type == Ty::b32) exists = logic;
  if (*type == Ty::s32) t = ReduceType::s32, exists = op <= 2;
  if (*type == Ty::u64) t = ReduceType::u64, exists = op == 0;
  if (*type == Ty::s64) t = ReduceType::u64, exists = op == 0;  // a sum has no sign
  if (!exists)
    return d.bad("." + std::string(reduce_name(reduce_op)) + " does not exist for ." +
                 std::string(ty_name(*type)));
  PTXBENCH_TRY(d.expect_operands(3));
  AddressOperands addresses(d, e);
  PTXBENCH_TRY(addresses.add(d.instruction().operands[0], ptx::Space::shared));
  PTXBENCH_TRY(d.src(e, 1, *type));
  PTXBENCH_TRY(addresses.add(d.instruction().operands[2], ptx::Space::shared));
  e.a = static_cast<std::uint8_t>(ty_bits(*type) / 8);
  e.b = 1;
  e.c = static_cast<std::uint8_t>(1 + (op << 4 | static_cast<int>(t)));
  addresses.finish();
  return d.emit(e, "dsmem");
}

}  // namespace

void register_st_async(InstructionTable& table) {
  table.add("st.async", decode_st_async);
  table.add("red.async", decode_red_async);
}

}  // namespace ptxbench::emulator
