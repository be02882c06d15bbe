// cvta, isspacep, mapa, getctarank: addresses between state spaces and CTAs of a cluster. See memory.hpp for
// what the bits of an address mean.
#include "emulator/access.hpp"

namespace ptxbench::emulator {

namespace {

// Op::a: what is added. Constant and global addresses are generic ones already.
enum class Base : std::uint8_t { nothing, shared, local, parameters };

std::uint64_t base_of(const Exec& x) {
  switch (static_cast<Base>(x.op.a)) {
    case Base::shared:
      return kSharedWindow;
    case Base::local:
      return kLocalWindow;
    case Base::parameters:
      return x.grid.parameters;
    case Base::nothing:
      break;
  }
  return 0;
}
Flow run_to_generic(Exec& x) {
  const std::uint64_t base = base_of(x);
  const std::uint64_t* a = x.src64(1);
  write_lanes(x.dst64(0), x.mask, [&](unsigned i) { return a[i] + base; });
  return Flow::next;
}
// An address of another space stays wrong: it does not become a right one of this space.
Flow run_from_generic(Exec& x) {
  const std::uint64_t base = base_of(x);
  const std::uint64_t* a = x.src64(1);
  write_lanes(x.dst64(0), x.mask, [&](unsigned i) { return a[i] - base; });
  return Flow::next;
}

Result<void> decode_cvta(Decoder& d) {
  Modifiers m(d.instruction());
  const bool from_generic = m.take("to");
  ptx::Space space;
  const Where where = take_where(m, space);
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  if (where == Where::generic) return d.bad("a state space is missing");
  if (ty_bits(type) != 64) return d.unsupported("addresses of 32 bits are not generic ones here");
  PTXBENCH_TRY(d.expect_operands(2));
  Emit e;
  PTXBENCH_TRY(d.dst(e, 0, 64));
  PTXBENCH_TRY(d.src(e, 1, Ty::u64));
  const Base base = where == Where::local       ? Base::local
                    : where == Where::parameter ? Base::parameters
                    : where == Where::global    ? Base::nothing
                                                : Base::shared;
  e.run = from_generic ? run_from_generic : run_to_generic;
  e.a = static_cast<std::uint8_t>(base);
  return d.emit(e, "int");
}

// --- isspacep; Op::a: Test ---
enum class Test : std::uint8_t { global, constant, parameter, local, shared_cta, shared_cluster };

Flow run_isspacep(Exec& x) {
  const std::uint64_t* a = x.src64(1);
  const auto test = static_cast<Test>(x.op.a);
  Memory& memory = *x.grid.memory;
  Mask answer = 0;
  for_lanes(x.mask, [&](int i) {
    const std::uint64_t high = a[i] >> 32, rank = a[i] >> 24 & 0xff;
    const bool shared = high == kSharedWindow >> 32, local = high == kLocalWindow >> 32;
    const auto read_only = [&] {
      const Block* b = memory.find(a[i]);
      return b != nullptr && b->read_only ? b : nullptr;
    };
    const auto parameters = [&] {
      return read_only() != nullptr && read_only() == memory.find(x.grid.parameters);
    };
    bool yes = false;
    switch (test) {
      case Test::shared_cta:
        yes = shared && rank == x.cta.rank;
        break;
      case Test::shared_cluster:
        yes = shared && rank < x.cluster.ctas.size();
        break;
      case Test::local:
        yes = local;
        break;
      case Test::parameter:
        yes = parameters();
        break;
      case Test::constant:
        yes = read_only() != nullptr && !parameters();
        break;
      // The window of kernel parameters lies in that of global memory.
      case Test::global:
        yes = !shared && !local && (read_only() == nullptr || parameters());
        break;
    }
    answer |= Mask{yes} << i;
  });
  x.set_pred(0, answer, x.undefined_of(x.operand(1)));
  return Flow::next;
}

Result<void> decode_isspacep(Decoder& d) {
  Modifiers m(d.instruction());
  const int which = m.take_one(
      {"global", "const", "param", "param::entry", "local", "shared", "shared::cta", "shared::cluster"});
  PTXBENCH_TRY(m.finish(d));
  if (which < 0) return d.bad("a state space is missing");
  constexpr Test kTests[] = {Test::global, Test::constant,   Test::parameter,  Test::parameter,
                             Test::local,  Test::shared_cta, Test::shared_cta, Test::shared_cluster};
  PTXBENCH_TRY(d.expect_operands(2));
  Emit e;
  PTXBENCH_TRY_ASSIGN(const Operand p, d.pred_dst(d.instruction().operands[0]));
  e.operands.push_back(p);
  PTXBENCH_TRY(d.src(e, 1, Ty::u64));
  e.run = run_isspacep;
  e.a = static_cast<std::uint8_t>(kTests[which]);
  e.flags = kNone;
  return d.emit(e, "int");
}

// --- mapa, getctarank ---
Flow run_mapa32(Exec& x) {
  const std::uint32_t *a = x.src(1), *rank = x.src(2);
  write_lanes(x.dst(0), x.mask, [&](unsigned i) { return (a[i] & 0xffffff) | rank[i] << 24; });
  return Flow::next;
}
Flow run_mapa64(Exec& x) {
  const std::uint64_t* a = x.src64(1);
  const std::uint32_t* rank = x.src(2);
  write_lanes(x.dst64(0), x.mask, [&](unsigned i) {
    return (a[i] & ~std::uint64_t{0xff000000}) | std::uint64_t{rank[i] & 0xff} << 24;
  });
  return Flow::next;
}
Flow run_rank32(Exec& x) {
  const std::uint32_t* a = x.src(1);
  write_lanes(x.dst(0), x.mask, [&](unsigned i) { return a[i] >> 24; });
  return Flow::next;
}
Flow run_rank64(Exec& x) {
  const std::uint64_t* a = x.src64(1);
  write_lanes(x.dst(0), x.mask, [&](unsigned i) { return static_cast<std::uint32_t>(a[i] >> 24 & 0xff); });
  return Flow::next;
}

// Whether the operands are .u64; a .u32 address is a .shared::cluster one.
Result<bool> take_cluster_form(Decoder& d) {
  Modifiers m(d.instruction());
  const bool cluster = m.take("shared::cluster");
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  if (type != Ty::u32 && type != Ty::u64) return d.bad("the type must be .u32 or .u64");
  if (type == Ty::u32 && !cluster) return d.unsupported("generic addresses of 32 bits");
  return type == Ty::u64;
}

Result<void> decode_mapa(Decoder& d) {
  PTXBENCH_TRY_ASSIGN(const bool wide, take_cluster_form(d));
  PTXBENCH_TRY(d.expect_operands(3));
  Emit e;
  PTXBENCH_TRY(d.dst(e, 0, wide ? 64 : 32));
  PTXBENCH_TRY(d.src(e, 1, wide ? Ty::u64 : Ty::u32));
  PTXBENCH_TRY(d.src(e, 2, Ty::u32));
  e.run = wide ? run_mapa64 : run_mapa32;
  return d.emit(e, "int");
}

Result<void> decode_getctarank(Decoder& d) {
  PTXBENCH_TRY_ASSIGN(const bool wide, take_cluster_form(d));
  PTXBENCH_TRY(d.expect_operands(2));
  Emit e;
  PTXBENCH_TRY(d.dst(e, 0, 32));
  PTXBENCH_TRY(d.src(e, 1, wide ? Ty::u64 : Ty::u32));
  e.run = wide ? run_rank64 : run_rank32;
  return d.emit(e, "int");
}

Result<void> decode_istypep(Decoder& d) {
  return d.unsupported("textures, samplers and surfaces are not emulated");
}

}  // namespace

void register_address(InstructionTable& table) {
  table.add("cvta", decode_cvta);
  table.add("isspacep", decode_isspacep);
  table.add("mapa", decode_mapa);
  table.add("getctarank", decode_getctarank);
  table.add("istypep", decode_istypep);
}

}  // namespace ptxbench::emulator
