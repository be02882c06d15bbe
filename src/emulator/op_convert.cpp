// cvt and cvt.pack. The arithmetic is in formats.hpp; here are the forms, and loops for the common ones.
//
// A register may be wider than its type: a 64-bit source is first cut to 32 bits, a 64-bit destination
// extended from 32 by an op of its own.
#include "emulator/convert_lanes.hpp"
#include "emulator/formats.hpp"
#include "emulator/op_modes.hpp"

#include <algorithm>

namespace ptxbench::emulator {
namespace {

using S32 = std::int32_t;
using S64 = std::int64_t;

// What op.c says: a Rounding in the low three bits, then flags.
constexpr unsigned kRoundingMask = 7, kFtz = 8, kSat = 16, kSatfinite = 32, kRelu = 64;

ConvertMode mode_of(unsigned c) {
  return {static_cast<Rounding>(c & kRoundingMask), (c & kFtz) != 0, (c & kSat) != 0, (c & kSatfinite) != 0,
          (c & kRelu) != 0};
}
std::optional<FloatFormat> float_format(Ty type) {
  switch (type) {
    case Ty::f16:
      return FloatFormat::f16;
    case Ty::bf16:
      return FloatFormat::bf16;
    case Ty::f32:
      return FloatFormat::f32;
    case Ty::f64:
      return FloatFormat::f64;
    default:
      return std::nullopt;
  }
}
IntegerFormat integer_format(Ty type) { return {ty_bits(type), is_signed(type)}; }

// --- integers to integers
// ---------------------------------------------------------------------------------------

// The bits of a 32-bit lane that a register of op.d bits has.
U32 register_mask(const Op& op) { return op.d >= 32 ? ~U32{0} : (U32{1} << op.d) - 1; }

// Without saturation: cut to D, then extended to the register by D's sign.
template <class D, class S>
PTXBENCH_INLINE Flow integer_lanes(Exec& x) {
  if constexpr (sizeof(D) == 8) {
    return unary<D, S>(
        x, [](S v) __attribute__((always_inline)) { return static_cast<D>(v); });
  } else {
    using Extended = std::conditional_t<std::is_signed_v<D>, S32, U32>;
    const U32 keep = register_mask(x.op);
    return unary<U32, S>(
        x, [=](S v) __attribute__((always_inline)) {
          return static_cast<U32>(static_cast<Extended>(static_cast<D>(v))) & keep;
        });
  }
}
template <class D, class S>
Flow run_integer(Exec& x) {
  return integer_lanes<D, S>(x);
}
PTXBENCH_CLONES Flow run_widen_u32(Exec& x) { return integer_lanes<U64, U32>(x); }
PTXBENCH_CLONES Flow run_widen_s32(Exec& x) { return integer_lanes<S64, S32>(x); }
PTXBENCH_CLONES Flow run_narrow_u64(Exec& x) { return integer_lanes<U32, U64>(x); }

template <class D>
Handler integer_from(Ty from) {
  switch (from) {
    case Ty::u8:
      return &run_integer<D, std::uint8_t>;
    case Ty::u16:
      return &run_integer<D, std::uint16_t>;
    case Ty::u32:
      return std::is_same_v<D, U64> || std::is_same_v<D, S64> ? &run_widen_u32 : &run_integer<D, U32>;
    case Ty::u64:
      return std::is_same_v<D, U32> ? &run_narrow_u64 : &run_integer<D, U64>;
    case Ty::s8:
      return &run_integer<D, std::int8_t>;
    case Ty::s16:
      return &run_integer<D, std::int16_t>;
    case Ty::s32:
      return std::is_same_v<D, U64> || std::is_same_v<D, S64> ? &run_widen_s32 : &run_integer<D, S32>;
    case Ty::s64:
      return std::is_same_v<D, U32> ? &run_narrow_u64 : &run_integer<D, S64>;
    default:
      return nullptr;
  }
}
Handler integer_handler(Ty to, Ty from) {
  switch (to) {
    case Ty::u8:
      return integer_from<std::uint8_t>(from);
    case Ty::u16:
      return integer_from<std::uint16_t>(from);
    case Ty::u32:
      return integer_from<U32>(from);
    case Ty::u64:
      return integer_from<U64>(from);
    case Ty::s8:
      return integer_from<std::int8_t>(from);
    case Ty::s16:
      return integer_from<std::int16_t>(from);
    case Ty::s32:
      return integer_from<S32>(from);
    case Ty::s64:
      return integer_from<S64>(from);
    default:
      return nullptr;
  }
}

// --- any to any, one lane at a time
// -------------------------------------------------------------------------------

U64 convert_lane(Ty to, Ty from, unsigned c, bool integral, U64 v) {
  const std::optional<FloatFormat> tf = float_format(to), ff = float_format(from);
  const ConvertMode mode = mode_of(c);
  if (tf && ff) {
    if (integral) return round_to_integral(*tf, v, mode.rounding, mode.ftz, mode.sat);
    return convert_float(*tf, *ff, v, mode);
  }
  if (tf) return float_from_integer(*tf, integer_format(from), v, mode.rounding, mode.sat);
  if (ff) return integer_from_float(integer_format(to), *ff, v, mode.rounding, mode.ftz);
  return integer_from_integer(integer_format(to), integer_format(from), v, mode.sat);
}
// op.a, op.b: the types; op.c: mode; op.imm: rounds to an integral value.
template <class D, class S>
Flow run_any(Exec& x) {
  const Ty to = static_cast<Ty>(x.op.a), from = static_cast<Ty>(x.op.b);
  const unsigned c = x.op.c;
  const bool integral = x.op.imm != 0;
  if constexpr (sizeof(D) == 8) {
    return unary<D, S>(x, [=](S v) { return convert_lane(to, from, c, integral, v); });
  } else {
    const U32 keep = register_mask(x.op);
    return unary<D, S>(x,
                       [=](S v) { return static_cast<U32>(convert_lane(to, from, c, integral, v)) & keep; });
  }
}
Handler any_handler(bool wide_to, bool wide_from) {
  if (wide_to) return wide_from ? &run_any<U64, U64> : &run_any<U64, U32>;
  return wide_from ? &run_any<U32, U64> : &run_any<U32, U32>;
}

// --- common forms of floats
// ---------------------------------------------------------------------------------------

PTXBENCH_CLONES Flow run_f32_from_s32(Exec& x) {
  return unary<float, S32>(
      x, [](S32 v) __attribute__((always_inline)) { return static_cast<float>(v); });
}
PTXBENCH_CLONES Flow run_f32_from_u32(Exec& x) {
  return unary<float, U32>(
      x, [](U32 v) __attribute__((always_inline)) { return static_cast<float>(v); });
}
PTXBENCH_CLONES Flow run_f64_from_s32(Exec& x) {
  return unary<double, S32>(
      x, [](S32 v) __attribute__((always_inline)) { return static_cast<double>(v); });
}
// Clamped; NaN gives 0. (.ftz makes no difference to .rzi.)
PTXBENCH_CLONES Flow run_s32_from_f32(Exec& x) {
  return unary<S32, float>(
      x, [](float v) __attribute__((always_inline)) {
        const bool high = v >= 2147483648.0f, inside = v >= -2147483648.0f && v < 2147483648.0f;
        const S32 r = static_cast<S32>(inside ? v : 0.0f);
        return high ? INT32_MAX : v < -2147483648.0f ? INT32_MIN : r;
      });
}
PTXBENCH_CLONES Flow run_u32_from_f32(Exec& x) {
  return unary<U32, float>(
      x, [](float v) __attribute__((always_inline)) {
        const bool inside = v >= 0.0f && v < 4294967296.0f;
        const U32 r = static_cast<U32>(inside ? v : 0.0f);
        return v >= 4294967296.0f ? ~U32{0} : r;
      });
}

using Array1 = void (*)(U32*, const U32*);
using Array2 = void (*)(U32*, const U32*, const U32*);
template <Array1 F>
Flow run_array1(Exec& x) {
  if (x.mask == ~Mask{0}) {
    F(x.dst(0), x.src(1));
  } else {
    alignas(64) U32 out[kLanes];
    F(out, x.src(1));
    fill_lanes(x.dst(0), x.mask, [&](unsigned i) { return out[i]; });
  }
  return Flow::next;
}
template <Array2 F>
Flow run_array2(Exec& x) {
  if (x.mask == ~Mask{0}) {
    F(x.dst(0), x.src(1), x.src(2));
  } else {
    alignas(64) U32 out[kLanes];
    F(out, x.src(1), x.src(2));
    fill_lanes(x.dst(0), x.mask, [&](unsigned i) { return out[i]; });
  }
  return Flow::next;
}

// f32 to integers of up to 32 bits (op.a), and to integral values, in any rounding.
Flow run_integer_from_f32(Exec& x) {
  const IntegerFormat to = integer_format(static_cast<Ty>(x.op.a));
  const ConvertMode mode = mode_of(x.op.c);
  const U32 keep = register_mask(x.op), top = U32{1} << (to.bits - 1);
  return to_lanes<1>(x, [&](U32* d) {
    if (to.bits == 32 && !to.is_signed) {
      u32_from_f32(d, x.src(1), mode.rounding, mode.ftz);
    } else {
      const U32 low = to.is_signed ? 0 - top : 0, high = to.is_signed ? top - 1 : 2 * top - 1;
      s32_from_f32(d, x.src(1), mode.rounding, mode.ftz, static_cast<S32>(low), static_cast<S32>(high));
    }
    for (unsigned i = 0; i < kLanes; ++i) d[i] &= keep;
  });
}
Flow run_integral_f32(Exec& x) {
  const ConvertMode mode = mode_of(x.op.c);
  return to_lanes<1>(x, [&](U32* d) { integral_f32(d, x.src(1), mode.rounding, mode.ftz); });
}
Flow run_f64_from_f32(Exec& x) {
  const bool ftz = (x.op.c & kFtz) != 0;
  alignas(64) U32 a[kLanes];  // the result is twice as long and may lie over it
  std::copy_n(x.src(1), kLanes, a);
  return to_lanes<2>(x, [&](U32* d) { f64_from_f32(words<U64>(d), a, ftz); });
}
Flow run_f32_from_f64(Exec& x) {
  alignas(64) U64 a[kLanes];
  std::copy_n(x.src64(1), kLanes, a);
  return to_lanes<1>(x, [&](U32* d) { f32_from_f64(d, a); });
}

// The handler of a form that has one of its own: no saturation and no .relu.
Handler common_handler(Ty to, Ty from, Rounding rounding, bool integral, bool ftz) {
  if (integral) {
    if (from != Ty::f32) return nullptr;
    if (to == Ty::f32) return &run_integral_f32;
    if (!is_integer(to) || ty_bits(to) > 32) return nullptr;
    if (rounding != Rounding::zero) return &run_integer_from_f32;
    return to == Ty::s32 ? &run_s32_from_f32 : to == Ty::u32 ? &run_u32_from_f32 : &run_integer_from_f32;
  }
  if (to == Ty::f64 && from == Ty::f32) return &run_f64_from_f32;
  if (rounding != Rounding::nearest_even) return nullptr;
  if (to == Ty::f32 && from == Ty::s32) return &run_f32_from_s32;
  if (to == Ty::f32 && from == Ty::u32) return &run_f32_from_u32;
  if (to == Ty::f64 && from == Ty::s32) return &run_f64_from_s32;
  if (to == Ty::f32 && from == Ty::f16) return &run_array1<Array1{f32_from_f16}>;
  if (to == Ty::f16 && from == Ty::f32) return &run_array1<Array1{f16_from_f32}>;  // .ftz flushes no half
  if (to == Ty::bf16 && from == Ty::f32) return &run_array1<Array1{bf16_from_f32}>;
  if (ftz) return nullptr;
  if (to == Ty::f32 && from == Ty::bf16) return &run_array1<Array1{f32_from_bf16}>;
  if (to == Ty::f32 && from == Ty::f64) return &run_f32_from_f64;
  return nullptr;
}

// --- packed forms: op.a the format, op.c the mode
// ------------------------------------------------------------------

Flow run_pair(Exec& x) {
  const FloatFormat half = static_cast<FloatFormat>(x.op.a);
  const ConvertMode mode = mode_of(x.op.c);
  if (mode.rounding != Rounding::nearest_even)
    return binary<U32, U32, U32>(x, [=](U32 a, U32 b) { return pair_from_f32(half, a, b, mode); });
  return to_lanes<1>(x,
                     [&](U32* d) { pairs_from_f32(half, d, x.src(1), x.src(2), mode.relu, mode.satfinite); });
}
Flow run_f8_from_f32(Exec& x) {
  const FloatFormat f8 = static_cast<FloatFormat>(x.op.a);
  return to_lanes<1>(x, [&](U32* d) { f8x2_from_f32(f8, d, x.src(1), x.src(2), (x.op.c & kRelu) != 0); });
}
Flow run_f8_from_f16(Exec& x) {
  const FloatFormat f8 = static_cast<FloatFormat>(x.op.a);
  return to_lanes<1>(x, [&](U32* d) { f8x2_from_f16x2(f8, d, x.src(1), (x.op.c & kRelu) != 0); });
}
Flow run_f16_from_f8(Exec& x) {
  const FloatFormat f8 = static_cast<FloatFormat>(x.op.a);
  return to_lanes<1>(x, [&](U32* d) { f16x2_from_f8x2(f8, d, x.src(1), (x.op.c & kRelu) != 0); });
}
Flow run_tf32(Exec& x) {
  const ConvertMode mode = mode_of(x.op.c);
  return to_lanes<1>(x, [&](U32* d) { tf32_from_f32(d, x.src(1), mode); });
}
// op.a: bits of a result; op.b: with a sign.
Flow run_cvt_pack(Exec& x) {
  const IntegerFormat to{x.op.a, x.op.b != 0}, from{32, x.op.c != 0};
  if (x.op.sources == 2) {
    return binary<U32, U32, U32>(x, [=](U32 a, U32 b) { return pack_saturated(to, from, a, b); });
  }
  return ternary<U32, U32, U32, U32>(x,
                                     [=](U32 a, U32 b, U32 c) { return pack_saturated(to, from, a, b, c); });
}

// --- decoding
// -----------------------------------------------------------------------------------------------------

struct Form {
  Ty to = Ty::none, from = Ty::none;
  Rounding rounding = Rounding::nearest_even;
  bool rounds = false, integral = false;  // a rounding modifier is there; it is one of rni, rzi, rmi, rpi
  bool ftz = false, sat = false, satfinite = false, relu = false;
  std::uint8_t mode() const {
    return static_cast<std::uint8_t>(static_cast<unsigned>(rounding) | (ftz ? kFtz : 0) | (sat ? kSat : 0) |
                                     (satfinite ? kSatfinite : 0) | (relu ? kRelu : 0));
  }
};

bool is_f8x2(Ty type) { return type == Ty::e4m3x2 || type == Ty::e5m2x2; }

Result<void> decode_packed(Decoder& d, const Form& f) {
  Emit e;
  e.c = f.mode();
  if (f.from == Ty::f32 && (f.to == Ty::f16x2 || f.to == Ty::bf16x2)) {
    if (!f.rounds || f.integral || f.rounding == Rounding::up || f.rounding == Rounding::down) {
      return d.bad("needs .rn or .rz");
    }
    PTXBENCH_TRY(plain_operands(d, e, 32, {Ty::f32, Ty::f32}));
    e.a = static_cast<std::uint8_t>(f.to == Ty::f16x2 ? FloatFormat::f16 : FloatFormat::bf16);
    if (e.c == static_cast<std::uint8_t>(Rounding::nearest_even)) {
      e.run = f.to == Ty::f16x2 ? &run_array2<Array2{f16x2_from_f32}> : &run_array2<Array2{bf16x2_from_f32}>;
    } else {
      e.run = run_pair;
    }
    return d.emit(e, "conversion");
  }
  if (f.to == Ty::tf32 && f.from == Ty::f32) {
    if (!f.rounds || f.integral) return d.bad("needs .rna, .rn or .rz");
    PTXBENCH_TRY(plain_operands(d, e, 32, {Ty::f32}));
    return emit_typed(d, e, run_tf32, "conversion");
  }
  if (is_f8x2(f.to) && (f.from == Ty::f32 || f.from == Ty::f16x2)) {
    if (!f.satfinite) return d.bad("needs .satfinite");
    e.a = static_cast<std::uint8_t>(f.to == Ty::e4m3x2 ? FloatFormat::e4m3 : FloatFormat::e5m2);
    if (f.from == Ty::f32) {
      PTXBENCH_TRY(plain_operands(d, e, 16, {Ty::f32, Ty::f32}));
      return emit_typed(d, e, run_f8_from_f32, "conversion");
    }
    PTXBENCH_TRY(plain_operands(d, e, 16, {Ty::b32}));
    return emit_typed(d, e, run_f8_from_f16, "conversion");
  }
  if (f.to == Ty::f16x2 && is_f8x2(f.from)) {
    e.a = static_cast<std::uint8_t>(f.from == Ty::e4m3x2 ? FloatFormat::e4m3 : FloatFormat::e5m2);
    PTXBENCH_TRY(plain_operands(d, e, 32, {Ty::b16}));
    return emit_typed(d, e, run_f16_from_f8, "conversion");
  }
  return d.unsupported("this pair of types");
}

Result<Form> read_form(Decoder& d) {
  Modifiers m(d.instruction());
  Form f;
  if (m.take("rs")) return d.unsupported("stochastic rounding (it needs sm_100)");
  const int rounding = m.take_one({"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"});
  static constexpr Rounding kRoundings[] = {
      Rounding::nearest_even, Rounding::zero, Rounding::down, Rounding::up, Rounding::nearest_away,
      Rounding::nearest_even, Rounding::zero, Rounding::down, Rounding::up};
  if (rounding >= 0) {
    f.rounds = true;
    f.rounding = kRoundings[rounding];
    f.integral = rounding >= 5;
  }
  f.ftz = m.take("ftz");
  f.sat = m.take("sat");
  f.satfinite = m.take("satfinite");
  f.relu = m.take("relu");
  const std::vector<Ty> types = m.types();
  PTXBENCH_TRY(m.finish(d));
  if (types.size() != 2) return d.bad("needs the types of the result and of the source");
  f.to = types[0];
  f.from = types[1];
  return f;
}

Result<void> decode_cvt(Decoder& d) {
  PTXBENCH_TRY_ASSIGN(const Form f, read_form(d));
  const std::optional<FloatFormat> tf = float_format(f.to), ff = float_format(f.from);
  if ((!tf && !is_integer(f.to)) || (!ff && !is_integer(f.from))) return decode_packed(d, f);
  if (ff && !tf && !f.integral) return d.bad("a conversion to an integer needs .rni, .rzi, .rmi or .rpi");
  if (tf && !ff && (!f.rounds || f.integral)) {
    return d.bad("a conversion from an integer needs .rn, .rz, .rm or .rp");
  }
  if (!tf && !ff && f.rounds) return d.bad("integers are not rounded");
  if (tf && ff && f.integral && f.to != f.from)
    return d.bad("rounding to an integral value needs the same type");
  if (tf && ff && !f.rounds && ty_bits(f.to) < ty_bits(f.from)) return d.bad("needs .rn, .rz, .rm or .rp");
  PTXBENCH_TRY(d.expect_operands(2));
  const ptx::Operand& to = d.instruction().operands[0];
  const ptx::Operand& from = d.instruction().operands[1];
  const unsigned to_bits = ty_bits(f.to), from_bits = ty_bits(f.from);
  const unsigned to_register = std::max(d.register_bits(to), to_bits);

  Emit e;
  const bool widen = to_register == 64 && to_bits < 64;
  Operand narrow = kNoOperand;
  if (d.register_bits(from) == 64 && from_bits < 64) {
    Emit cut;
    narrow = d.temporary(32);
    cut.operands = {narrow};
    cut.destinations = 1;
    cut.d = 32;
    PTXBENCH_TRY(d.src(cut, 1, Ty::b64));
    cut.run = run_narrow_u64;
    PTXBENCH_TRY(d.emit(cut, "conversion"));
  }
  Operand result = kNoOperand;
  if (widen) {
    result = d.temporary(32);
    e.operands.push_back(result);
    e.destinations = 1;
  } else {
    PTXBENCH_TRY(d.dst(e, 0, to_bits, true));
  }
  if (narrow != kNoOperand) {
    e.operands.push_back(narrow);
    e.sources = 1;
  } else {
    PTXBENCH_TRY(d.src(e, 1, f.from, true));
  }
  e.a = static_cast<std::uint8_t>(f.to);
  e.b = static_cast<std::uint8_t>(f.from);
  e.c = f.mode();
  e.d = static_cast<std::uint8_t>(widen ? 32 : to_register);
  e.imm = f.integral;
  const bool plain = !f.sat && !f.satfinite && !f.relu;
  if (!tf && !ff && plain) e.run = integer_handler(f.to, f.from);
  if ((tf || ff) && (plain || (!tf && !f.satfinite && !f.relu))) {  // to an integer .sat is redundant
    e.run = common_handler(f.to, f.from, f.rounding, f.integral, f.ftz);
  }
  if (e.run == nullptr) e.run = any_handler(to_bits == 64, from_bits == 64);
  PTXBENCH_TRY(d.emit(e, "conversion"));
  if (widen) {
    Emit extend;
    PTXBENCH_TRY(d.dst(extend, 0, 64, true));
    extend.operands.push_back(result);
    extend.sources = 1;
    extend.run = is_signed(f.to) ? run_widen_s32 : run_widen_u32;
    PTXBENCH_TRY(d.emit(extend, "conversion"));
  }
  return {};
}

Result<void> decode_cvt_pack(Decoder& d) {
  Modifiers m(d.instruction());
  m.take("pack");
  if (!m.take("sat")) return d.bad("needs .sat");
  static constexpr unsigned kBits[] = {16, 16, 8, 8, 4, 4, 2, 2};
  const int to = m.take_one({"u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"});
  const int from = m.take_one({"u32", "s32"});
  const bool rest = m.take("b32");
  PTXBENCH_TRY(m.finish(d));
  if (to < 0 || from < 0) return d.bad("needs the types of the results and of the sources");
  if (rest != (to >= 2)) return d.bad(rest ? "results of 16 bits leave no room for .b32" : "needs .b32");
  Emit e;
  e.a = static_cast<std::uint8_t>(kBits[to]);
  e.b = to % 2 == 1;
  e.c = from == 1;
  if (rest) {
    PTXBENCH_TRY(plain_operands(d, e, 32, {Ty::s32, Ty::s32, Ty::b32}));
  } else {
    PTXBENCH_TRY(plain_operands(d, e, 32, {Ty::s32, Ty::s32}));
  }
  e.run = run_cvt_pack;
  return d.emit(e, "conversion");
}

}  // namespace

void register_convert(InstructionTable& table) {
  table.add("cvt", decode_cvt);
  table.add("cvt.pack", decode_cvt_pack);
}

}  // namespace ptxbench::emulator
