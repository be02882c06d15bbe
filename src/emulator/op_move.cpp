// mov with packing and unpacking, selp, slct, prmt, createpolicy.
#include "emulator/op_lanes.hpp"

#include <array>

namespace ptxbench::emulator {
namespace {

struct Copy {
  template <class T>
  PTXBENCH_INLINE T operator()(T a) const {
    return a;
  }
};
PTXBENCH_CLONES Flow run_mov32(Exec& x) { return unary<std::uint32_t, std::uint32_t>(x, Copy{}); }
PTXBENCH_CLONES Flow run_mov64(Exec& x) { return unary<std::uint64_t, std::uint64_t>(x, Copy{}); }

Flow run_mov128(Exec& x) {
  const std::uint64_t* a = x.src64(1);
  std::uint64_t* d = x.dst64(0);
  for_lanes(x.mask, [&](int i) {
    const std::uint64_t low = a[i], high = a[i + kLanes];
    d[i] = low;
    d[i + kLanes] = high;
  });
  return Flow::next;
}

// Operand 0: destination, then the source.
Flow run_mov_pred(Exec& x) {
  x.set_pred(0, x.pred(1), x.pred_undefined(1));
  return Flow::next;
}

// The commonest packings by hand; the rest (op.a elements of op.b bits) by the loops behind.
PTXBENCH_CLONES Flow run_pack_2x32(Exec& x) {
  return binary<std::uint64_t, std::uint32_t, std::uint32_t>(
      x, [](std::uint32_t low, std::uint32_t high) { return low | std::uint64_t{high} << 32; });
}
PTXBENCH_CLONES Flow run_pack_2x16(Exec& x) {
  return binary<std::uint32_t, std::uint16_t, std::uint16_t>(
      x, [](std::uint16_t low, std::uint16_t high) { return low | std::uint32_t{high} << 16; });
}
PTXBENCH_CLONES Flow run_unpack_2x32(Exec& x) {
  const std::uint64_t* a = x.src64(2);
  alignas(64) std::uint32_t low[kLanes], high[kLanes];
  for (unsigned i = 0; i < kLanes; ++i) {
    low[i] = static_cast<std::uint32_t>(a[i]);
    high[i] = static_cast<std::uint32_t>(a[i] >> 32);
  }
  fill_lanes(x.dst(0), x.mask, [&](unsigned i) { return low[i]; });
  fill_lanes(x.dst(1), x.mask, [&](unsigned i) { return high[i]; });
  return Flow::next;
}
PTXBENCH_CLONES Flow run_unpack_2x16(Exec& x) {
  alignas(64) std::uint32_t a[kLanes];
  const std::uint32_t* source = x.src(2);
  for (unsigned i = 0; i < kLanes; ++i) a[i] = source[i];
  fill_lanes(x.dst(0), x.mask, [&](unsigned i) { return a[i] & 0xffff; });
  fill_lanes(x.dst(1), x.mask, [&](unsigned i) { return a[i] >> 16; });
  return Flow::next;
}

using Wide = std::array<std::uint64_t, 2>;  // low, high

// The value of operand @p k, which has @p bits, in lane @p i.
Wide read(const Exec& x, unsigned k, unsigned bits, unsigned i) {
  if (bits <= 32) return {x.src(k)[i], 0};
  return {x.src64(k)[i], bits == 128 ? x.src64(k)[i + kLanes] : 0};
}
void write(const Exec& x, unsigned k, unsigned bits, unsigned i, const Wide& v) {
  if (bits <= 32) {
    x.dst(k)[i] = static_cast<std::uint32_t>(v[0]);
  } else {
    x.dst64(k)[i] = v[0];
    if (bits == 128) x.dst64(k)[i + kLanes] = v[1];
  }
}

Flow run_pack(Exec& x) {
  const unsigned n = x.op.a, bits = x.op.b, total = n * bits;
  std::array<Wide, kLanes> out{};
  for_lanes(x.mask, [&](int lane) {
    const unsigned i = static_cast<unsigned>(lane);
    for (unsigned k = 0; k < n; ++k) {
      std::uint64_t v = read(x, 1 + k, bits, i)[0];
      if (bits < 64) v &= (std::uint64_t{1} << bits) - 1;
      out[i][k * bits / 64] |= v << (k * bits % 64);
    }
  });
  for_lanes(x.mask,
            [&](int i) { write(x, 0, total, static_cast<unsigned>(i), out[static_cast<unsigned>(i)]); });
  return Flow::next;
}
Flow run_unpack(Exec& x) {
  const unsigned n = x.op.a, bits = x.op.b, total = n * bits;
  std::array<Wide, kLanes> in{};
  for_lanes(x.mask,
            [&](int i) { in[static_cast<unsigned>(i)] = read(x, n, total, static_cast<unsigned>(i)); });
  for_lanes(x.mask, [&](int lane) {
    const unsigned i = static_cast<unsigned>(lane);
    for (unsigned k = 0; k < n; ++k) {
      std::uint64_t v = in[i][k * bits / 64] >> (k * bits % 64);
      if (bits < 64) v &= (std::uint64_t{1} << bits) - 1;
      write(x, k, bits, i, {v, 0});
    }
  });
  return Flow::next;
}

Ty bits_type(unsigned bits) {
  switch (bits) {
    case 8:
      return Ty::b8;
    case 16:
      return Ty::b16;
    case 32:
      return Ty::b32;
    case 64:
      return Ty::b64;
    default:
      return Ty::b128;
  }
}

Result<void> decode_mov(Decoder& d) {
  Modifiers m(d.instruction());
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(2));
  const ptx::Operand& to = d.instruction().operands[0];
  const ptx::Operand& from = d.instruction().operands[1];
  Emit e;
  if (type == Ty::pred) {
    PTXBENCH_TRY_ASSIGN(const Operand p, d.pred_dst(to));
    Operand q = kPredFalse;
    if (from.kind == ptx::Operand::Kind::integer) {
      q = from.bits != 0 ? kPredTrue : kPredFalse;
    } else {
      PTXBENCH_TRY_ASSIGN(q, d.pred_src(from));
    }
    e.operands = {p, q};
    e.flags = kNone;
    e.run = run_mov_pred;
    return d.emit(e, "int");
  }
  const unsigned bits = ty_bits(type);
  const bool pack = from.kind == ptx::Operand::Kind::vector, unpack = to.kind == ptx::Operand::Kind::vector;
  if (pack && unpack) return d.bad("both operands are vectors");
  if (pack || unpack) {
    const std::size_t n = (pack ? from : to).parts.size();
    if (n != 2 && n != 4) return d.bad("a vector of two or four elements is needed");
    const unsigned element = bits / static_cast<unsigned>(n);
    if (element < 8 || element > 64) return d.bad("the elements have no such size");
    e.a = static_cast<std::uint8_t>(n);
    e.b = static_cast<std::uint8_t>(element);
    if (pack) {
      PTXBENCH_TRY(d.dst(e, 0, bits));
      PTXBENCH_TRY(d.src_vector(e, 1, bits_type(element)));
      e.run = n == 2 && element == 32 ? run_pack_2x32 : n == 2 && element == 16 ? run_pack_2x16 : run_pack;
    } else {
      PTXBENCH_TRY(d.dst_vector(e, 0, element));
      for (Operand& o : e.operands) {
        if (o == kNoOperand) o = d.temporary(element);
      }
      e.destinations = static_cast<std::uint16_t>(n);
      PTXBENCH_TRY(d.src(e, 1, bits_type(bits)));
      e.run = n == 2 && element == 32   ? run_unpack_2x32
              : n == 2 && element == 16 ? run_unpack_2x16
                                        : run_unpack;
    }
    return d.emit(e, "int");
  }
  PTXBENCH_TRY(d.dst(e, 0, bits));
  PTXBENCH_TRY(d.src(e, 1, type));
  e.run = bits == 128 ? run_mov128 : bits == 64 ? run_mov64 : run_mov32;
  return d.emit(e, from.kind == ptx::Operand::Kind::special ? "other" : "int");
}

// --- selections
// -------------------------------------------------------------------------------------------------

template <class W>
PTXBENCH_INLINE Flow select_lanes(Exec& x) {
  const W* a = words<W>(x.src(1));
  const W* b = words<W>(x.src(2));
  const Mask p = x.pred(3);
  W choose[kLanes];
  for (unsigned i = 0; i < kLanes; ++i) choose[i] = (p & (Mask{1} << i)) != 0 ? ~W{0} : 0;
  fill_lanes(words<W>(x.dst(0)), x.mask,
             [&](unsigned i) { return (a[i] & choose[i]) | (b[i] & ~choose[i]); });
  x.set_undefined(
      0, (x.undefined_of(x.operand(1)) & p) | (x.undefined_of(x.operand(2)) & ~p) | x.pred_undefined(3));
  return Flow::next;
}
PTXBENCH_CLONES Flow run_selp32(Exec& x) { return select_lanes<std::uint32_t>(x); }
PTXBENCH_CLONES Flow run_selp64(Exec& x) { return select_lanes<std::uint64_t>(x); }

Result<void> decode_selp(Decoder& d) {
  Modifiers m(d.instruction());
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(4));
  const unsigned bits = ty_bits(type);
  Emit e;
  PTXBENCH_TRY(d.dst(e, 0, bits));
  PTXBENCH_TRY(d.src(e, 1, type));
  PTXBENCH_TRY(d.src(e, 2, type));
  PTXBENCH_TRY_ASSIGN(const Operand p, d.pred_src(d.instruction().operands[3]));
  e.operands.push_back(p);
  e.flags = kNone;  // the operand that is not chosen does not count
  return emit_typed(d, e,
                    bits == 64                       ? run_selp64
                    : bits <= 32 && type != Ty::pred ? run_selp32
                                                     : nullptr,
                    "int");
}

// c >= 0 chooses a; NaN does not. A denormal that .ftz flushes is zero, hence >= 0.
bool not_negative(std::uint32_t c, bool is_float, bool ftz) {
  if (!is_float) return static_cast<std::int32_t>(c) >= 0;
  const std::uint32_t magnitude = c & 0x7fffffff;
  if (magnitude > 0x7f800000) return false;
  if (c >> 31 == 0 || magnitude == 0) return true;
  return ftz && magnitude < 0x00800000;
}
template <class W>
Flow run_slct(Exec& x) {
  const bool is_float = x.op.a != 0, ftz = x.op.b != 0;
  return ternary<W, W, W, std::uint32_t>(
      x, [=](W a, W b, std::uint32_t c) { return not_negative(c, is_float, ftz) ? a : b; });
}
Result<void> decode_slct(Decoder& d) {
  Modifiers m(d.instruction());
  const bool ftz = m.take("ftz");
  const std::vector<Ty> types = m.types();
  PTXBENCH_TRY(m.finish(d));
  if (types.size() != 2 || (types[1] != Ty::s32 && types[1] != Ty::f32)) {
    return d.bad("needs the types of the result and of the selector (.s32 or .f32)");
  }
  Emit e;
  e.a = types[1] == Ty::f32;
  e.b = ftz;
  const unsigned bits = ty_bits(types[0]);
  PTXBENCH_TRY(plain_operands(d, e, bits, {types[0], types[0], types[1]}));
  return emit_typed(d, e, bits == 64 ? &run_slct<std::uint64_t> : &run_slct<std::uint32_t>, "int");
}

// --- prmt
// -------------------------------------------------------------------------------------------------------

enum PrmtMode : std::uint8_t { kIndex, kF4e, kB4e, kRc8, kEcl, kEcr, kRc16 };

// Byte @p k of the pair b:a.
PTXBENCH_INLINE std::uint32_t byte_of(std::uint64_t pair, unsigned k) {
  return static_cast<std::uint32_t>(pair >> (8 * k)) & 0xff;
}
PTXBENCH_INLINE std::uint32_t permute(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  const std::uint64_t pair = a | std::uint64_t{b} << 32;
  std::uint32_t r = 0;
  for (unsigned k = 0; k < 4; ++k) {
    const unsigned selector = c >> (4 * k) & 0xf;
    std::uint32_t v = byte_of(pair, selector & 7);
    if ((selector & 8) != 0) v = (v & 0x80) != 0 ? 0xff : 0;
    r |= v << (8 * k);
  }
  return r;
}
// The selector that mode @p mode with control @p c stands for.
std::uint32_t prmt_selector(unsigned mode, std::uint32_t c) {
  static constexpr std::uint16_t kTable[7][4] = {
      {0, 0, 0, 0},
      {0x3210, 0x4321, 0x5432, 0x6543},  // f4e
      {0x5670, 0x6701, 0x7012, 0x0123},  // b4e
      {0x0000, 0x1111, 0x2222, 0x3333},  // rc8
      {0x3210, 0x3211, 0x3222, 0x3333},  // ecl
      {0x0000, 0x1110, 0x2210, 0x3210},  // ecr
      {0x1010, 0x3232, 0x1010, 0x3232},  // rc16
  };
  return mode == kIndex ? c : kTable[mode][c & 3];
}
Flow run_prmt(Exec& x) {
  return ternary<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>(
      x, [](std::uint32_t a, std::uint32_t b, std::uint32_t c) { return permute(a, b, c); });
}
Flow run_prmt_mode(Exec& x) {
  const unsigned mode = x.op.a;
  return ternary<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>(
      x, [=](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
        return permute(a, b, prmt_selector(mode, c));
      });
}
// A constant selector without sign bits, held in op.imm: for each byte one shift and mask, which vectorises.
PTXBENCH_CLONES Flow run_prmt_constant(Exec& x) {
  const std::uint32_t c = static_cast<std::uint32_t>(x.op.imm);
  const std::uint32_t* a = x.src(1);
  const std::uint32_t* b = x.src(2);
  const std::uint32_t* from[4];
  unsigned shift[4];
  for (unsigned k = 0; k < 4; ++k) {
    const unsigned selector = c >> (4 * k) & 7;
    from[k] = selector < 4 ? a : b;
    shift[k] = 8 * (selector & 3);
  }
  const std::uint32_t *p0 = from[0], *p1 = from[1], *p2 = from[2], *p3 = from[3];
  const unsigned s0 = shift[0], s1 = shift[1], s2 = shift[2], s3 = shift[3];
  fill_lanes(
      x.dst(0), x.mask, [=](unsigned i) __attribute__((always_inline)) {
        return (p0[i] >> s0 & 0xff) | (p1[i] >> s1 & 0xff) << 8 | (p2[i] >> s2 & 0xff) << 16 |
               (p3[i] >> s3) << 24;
      });
  return Flow::next;
}
Result<void> decode_prmt(Decoder& d) {
  Modifiers m(d.instruction());
  if (!m.take("b32")) return d.bad("needs .b32");
  const int mode = m.take_one({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  PTXBENCH_TRY(m.finish(d));
  Emit e;
  e.a = static_cast<std::uint8_t>(mode + 1);
  PTXBENCH_TRY(plain_operands(d, e, 32, {Ty::b32, Ty::b32, Ty::b32}));
  e.run = mode < 0 ? run_prmt : run_prmt_mode;
  const ptx::Operand& selector = d.instruction().operands[3];
  if (selector.kind == ptx::Operand::Kind::integer) {
    const std::uint32_t c = prmt_selector(e.a, static_cast<std::uint32_t>(selector.bits));
    if ((c & 0x8888) == 0) {
      e.imm = c;
      e.run = run_prmt_constant;
    }
  }
  return d.emit(e, "int");
}

// --- createpolicy
// -----------------------------------------------------------------------------------------------

// A cache policy is a hint that nothing here reads: any value will do.
Flow run_createpolicy(Exec& x) {
  fill_lanes(x.dst64(0), x.mask, [](unsigned) { return std::uint64_t{0}; });
  return Flow::next;
}
Result<void> decode_createpolicy(Decoder& d) {
  Modifiers m(d.instruction());
  if (!m.take("b64")) return d.bad("needs .b64");
  const std::size_t n = d.instruction().operands.size();
  Emit e;
  PTXBENCH_TRY(d.dst(e, 0, 64));
  if (m.take("fractional")) {  // policy, optional fraction
    PTXBENCH_TRY(d.expect_operands(1, 2));
    if (n == 2) PTXBENCH_TRY(d.src(e, 1, Ty::f32));
  } else if (m.take("range")) {  // policy, [address], primary size, total size
    m.take("global");
    PTXBENCH_TRY(d.expect_operands(4));
    PTXBENCH_TRY(d.address(e, d.instruction().operands[1], ptx::Space::global));
    PTXBENCH_TRY(d.src(e, 2, Ty::u32));
    PTXBENCH_TRY(d.src(e, 3, Ty::u32));
  } else if (m.take("cvt")) {  // policy, access property of 64 bits
    PTXBENCH_TRY(d.expect_operands(2));
    PTXBENCH_TRY(d.src(e, 1, Ty::b64));
  } else {
    return d.bad("needs .fractional, .range or .cvt");
  }
  m.take("L2");
  while (m.take_prefix("L2::")) {
  }
  PTXBENCH_TRY(m.finish(d));
  e.run = run_createpolicy;
  return d.emit(e, "int");
}

}  // namespace

void register_move(InstructionTable& table) {
  table.add("mov", decode_mov);
  table.add("selp", decode_selp);
  table.add("slct", decode_slct);
  table.add("prmt", decode_prmt);
  table.add("createpolicy", decode_createpolicy);
}

}  // namespace ptxbench::emulator
