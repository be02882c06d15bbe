// Integer arithmetic: add, sub, mul, mad, mul24, mad24, div, rem, abs, neg, min, max, sad, dp4a, dp2a, also
// on two 16-bit halves.
#include "emulator/op_lanes.hpp"

#include <limits>

namespace ptxbench::emulator {
namespace {

// Arithmetic that wraps, without the undefined behaviour of signed or promoted types.
template <class T>
using Wrap = std::conditional_t<sizeof(T) < 4, std::uint32_t, std::make_unsigned_t<T>>;
template <class T>
using Twice = std::conditional_t<
    std::is_signed_v<T>,
    std::conditional_t<sizeof(T) == 2, std::int32_t,
                       std::conditional_t<sizeof(T) == 4, std::int64_t, __int128>>,
    std::conditional_t<sizeof(T) == 2, std::uint32_t,
                       std::conditional_t<sizeof(T) == 4, std::uint64_t, unsigned __int128>>>;

struct Add {
  template <class T>
  PTXBENCH_INLINE T operator()(T a, T b) const {
    return static_cast<T>(Wrap<T>(a) + Wrap<T>(b));
  }
};
struct Sub {
  template <class T>
  PTXBENCH_INLINE T operator()(T a, T b) const {
    return static_cast<T>(Wrap<T>(a) - Wrap<T>(b));
  }
};
PTXBENCH_INLINE std::int32_t clamp32(std::int64_t v) {
  return static_cast<std::int32_t>(v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : v);
}
struct AddSaturated {
  PTXBENCH_INLINE std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    return clamp32(std::int64_t{a} + b);
  }
};
struct SubSaturated {
  PTXBENCH_INLINE std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    return clamp32(std::int64_t{a} - b);
  }
};
struct MulLow {
  template <class T>
  PTXBENCH_INLINE T operator()(T a, T b) const {
    return static_cast<T>(Wrap<T>(a) * Wrap<T>(b));
  }
};
struct MulHigh {
  template <class T>
  PTXBENCH_INLINE T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Twice<T>>(a) * static_cast<Twice<T>>(b) >> (8 * sizeof(T)));
  }
};
struct MulWide {
  template <class T>
  PTXBENCH_INLINE Twice<T> operator()(T a, T b) const {
    return static_cast<Twice<T>>(a) * static_cast<Twice<T>>(b);
  }
};
struct MadLow {
  template <class T>
  PTXBENCH_INLINE T operator()(T a, T b, T c) const {
    return Add{}(MulLow{}(a, b), c);
  }
};
struct MadHigh {
  template <class T>
  PTXBENCH_INLINE T operator()(T a, T b, T c) const {
    return Add{}(MulHigh{}(a, b), c);
  }
};
struct MadHighSaturated {
  PTXBENCH_INLINE std::int32_t operator()(std::int32_t a, std::int32_t b, std::int32_t c) const {
    return clamp32(std::int64_t{MulHigh{}(a, b)} + c);
  }
};
struct MadWide {
  template <class T>
  PTXBENCH_INLINE Twice<T> operator()(T a, T b, Twice<T> c) const {
    return Add{}(MulWide{}(a, b), c);
  }
};

// The 48-bit product of the low 24 bits.
template <class T>
PTXBENCH_INLINE std::int64_t product24(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    const auto extend = [](T v) {
      return static_cast<std::int32_t>(static_cast<std::uint32_t>(v) << 8) >> 8;
    };
    return std::int64_t{extend(a)} * extend(b);
  } else {
    return static_cast<std::int64_t>(std::uint64_t{a & 0xffffff} * (b & 0xffffff));
  }
}
struct Mul24Low {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(product24(a, b));
  }
};
struct Mul24High {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(product24(a, b) >> 16);
  }
};
struct Mad24Low {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add{}(Mul24Low{}(a, b), c);
  }
};
struct Mad24High {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add{}(Mul24High{}(a, b), c);
  }
};
struct Mad24HighSaturated {
  std::int32_t operator()(std::int32_t a, std::int32_t b, std::int32_t c) const {
    return clamp32(std::int64_t{Mul24High{}(a, b)} + c);
  }
};

// PTX leaves division by zero to the machine, which gives all ones for the quotient and the remainder
// (measured).
struct Divide {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(-1);
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return static_cast<T>(Wrap<T>(0) - Wrap<T>(a));
    }
    return static_cast<T>(a / b);
  }
};
struct Remainder {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(-1);
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  }
};
struct Negate {
  template <class T>
  PTXBENCH_INLINE T operator()(T a) const {
    return static_cast<T>(Wrap<T>(0) - Wrap<T>(a));
  }
};
struct Absolute {
  template <class T>
  PTXBENCH_INLINE T operator()(T a) const {
    return a < 0 ? Negate{}(a) : a;
  }
};
struct Minimum {
  template <class T>
  PTXBENCH_INLINE T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};
struct Maximum {
  template <class T>
  PTXBENCH_INLINE T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
template <class F>
struct Relu {
  template <class T>
  PTXBENCH_INLINE T operator()(T a, T b) const {
    const T v = F{}(a, b);
    return v < 0 ? T{0} : v;
  }
};
struct SumOfDifferences {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add{}(a < b ? Sub{}(b, a) : Sub{}(a, b), c);
  }
};
// F on both 16-bit halves of 32 bits.
template <class F, class T>
struct Halves {
  PTXBENCH_INLINE std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const {
    const T low = F{}(static_cast<T>(a), static_cast<T>(b));
    const T high = F{}(static_cast<T>(a >> 16), static_cast<T>(b >> 16));
    return static_cast<std::uint16_t>(low) | std::uint32_t{static_cast<std::uint16_t>(high)} << 16;
  }
};
template <class F, class T>
constexpr Handler halves() {
  return &run_binary<Halves<F, T>, std::uint32_t, std::uint32_t, std::uint32_t>;
}

using U32 = std::uint32_t;
using U64 = std::uint64_t;
using S32 = std::int32_t;
using S64 = std::int64_t;
PTXBENCH_CLONES Flow run_add32(Exec& x) { return binary<U32, U32, U32>(x, Add{}); }
PTXBENCH_CLONES Flow run_add64(Exec& x) { return binary<U64, U64, U64>(x, Add{}); }
PTXBENCH_CLONES Flow run_sub32(Exec& x) { return binary<U32, U32, U32>(x, Sub{}); }
PTXBENCH_CLONES Flow run_sub64(Exec& x) { return binary<U64, U64, U64>(x, Sub{}); }
PTXBENCH_CLONES Flow run_mul_low32(Exec& x) { return binary<U32, U32, U32>(x, MulLow{}); }
PTXBENCH_CLONES Flow run_mad_low32(Exec& x) { return ternary<U32, U32, U32, U32>(x, MadLow{}); }
PTXBENCH_CLONES Flow run_mul_wide_u32(Exec& x) { return binary<U64, U32, U32>(x, MulWide{}); }
PTXBENCH_CLONES Flow run_mul_wide_s32(Exec& x) { return binary<S64, S32, S32>(x, MulWide{}); }
PTXBENCH_CLONES Flow run_mad_wide_u32(Exec& x) { return ternary<U64, U32, U32, U64>(x, MadWide{}); }
PTXBENCH_CLONES Flow run_mad_wide_s32(Exec& x) { return ternary<S64, S32, S32, S64>(x, MadWide{}); }
PTXBENCH_CLONES Flow run_mul_high_u32(Exec& x) { return binary<U32, U32, U32>(x, MulHigh{}); }
PTXBENCH_CLONES Flow run_min_s32(Exec& x) { return binary<S32, S32, S32>(x, Minimum{}); }
PTXBENCH_CLONES Flow run_max_s32(Exec& x) { return binary<S32, S32, S32>(x, Maximum{}); }

template <class F, Handler Fast32, Handler Fast64, class Saturated>
Result<void> decode_add_sub(Decoder& d) {
  Modifiers m(d.instruction());
  const bool saturate = m.take("sat");
  const int packed = m.take_one({"u16x2", "s16x2"});
  Emit e;
  if (packed >= 0) {
    PTXBENCH_TRY(m.finish(d));
    PTXBENCH_TRY(plain_operands(d, e, 32, {Ty::b32, Ty::b32}));
    return emit_typed(d, e, saturate ? nullptr : halves<F, std::uint16_t>(), "int");
  }
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  if (saturate && type != Ty::s32) return d.bad(".sat is for .s32 only");
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(type), {type, type}));
  if (saturate) return emit_typed(d, e, &run_binary<Saturated, S32, S32, S32>, "int");
  if (type == Ty::u32 || type == Ty::s32) return emit_typed(d, e, Fast32, "int");
  if (type == Ty::u64 || type == Ty::s64) return emit_typed(d, e, Fast64, "int");
  return emit_typed(d, e, by_integer<F, Same2>(type), "int");
}

Handler mul_wide(Ty type) {
  switch (type) {
    case Ty::u16:
      return &run_binary<MulWide, std::uint32_t, std::uint16_t, std::uint16_t>;
    case Ty::s16:
      return &run_binary<MulWide, std::int32_t, std::int16_t, std::int16_t>;
    case Ty::u32:
      return run_mul_wide_u32;
    case Ty::s32:
      return run_mul_wide_s32;
    default:
      return nullptr;
  }
}
Handler mad_wide(Ty type) {
  switch (type) {
    case Ty::u16:
      return &run_ternary<MadWide, std::uint32_t, std::uint16_t, std::uint16_t, std::uint32_t>;
    case Ty::s16:
      return &run_ternary<MadWide, std::int32_t, std::int16_t, std::int16_t, std::int32_t>;
    case Ty::u32:
      return run_mad_wide_u32;
    case Ty::s32:
      return run_mad_wide_s32;
    default:
      return nullptr;
  }
}
Ty twice(Ty type) {
  switch (type) {
    case Ty::u16:
      return Ty::u32;
    case Ty::s16:
      return Ty::s32;
    case Ty::u32:
      return Ty::u64;
    default:
      return Ty::s64;
  }
}

}  // namespace

Result<void> decode_mul_integer(Decoder& d) {
  Modifiers m(d.instruction());
  const int part = m.take_one({"lo", "hi", "wide"});
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  if (part < 0) return d.bad("needs .lo, .hi or .wide");
  if (!is_integer(type)) return d.bad("the instruction has no such type");
  Emit e;
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(type) * (part == 2 ? 2 : 1), {type, type}));
  const bool is_32 = ty_bits(type) == 32;
  Handler run = part == 2   ? mul_wide(type)
                : part == 1 ? (type == Ty::u32 ? run_mul_high_u32 : by_integer<MulHigh, Same2>(type))
                : is_32     ? run_mul_low32
                            : by_integer<MulLow, Same2>(type);
  return emit_typed(d, e, run, "int");
}

Result<void> decode_mad_integer(Decoder& d) {
  Modifiers m(d.instruction());
  const int part = m.take_one({"lo", "hi", "wide"});
  const bool saturate = m.take("sat");
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  if (part < 0) return d.bad("needs .lo, .hi or .wide");
  if (!is_integer(type)) return d.bad("the instruction has no such type");
  if (saturate && (type != Ty::s32 || part != 1)) return d.bad(".sat is for .hi.s32 only");
  if (part == 2 && ty_bits(type) > 32) return d.bad("the instruction has no such type");
  Emit e;
  const Ty sum = part == 2 ? twice(type) : type;
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(sum), {type, type, sum}));
  const bool is_32 = ty_bits(type) == 32;
  Handler run = part == 2   ? mad_wide(type)
                : saturate  ? &run_ternary<MadHighSaturated, S32, S32, S32, S32>
                : part == 1 ? by_integer<MadHigh, Same3>(type)
                : is_32     ? run_mad_low32
                            : by_integer<MadLow, Same3>(type);
  return emit_typed(d, e, run, "int");
}

namespace {

Result<void> decode_mul24(Decoder& d) {
  Modifiers m(d.instruction());
  const int part = m.take_one({"lo", "hi"});
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  if (part < 0) return d.bad("needs .lo or .hi");
  Emit e;
  PTXBENCH_TRY(plain_operands(d, e, 32, {type, type}));
  Handler run = nullptr;
  if (type == Ty::u32) run = part == 0 ? Same2<Mul24Low, U32>::run : Same2<Mul24High, U32>::run;
  if (type == Ty::s32) run = part == 0 ? Same2<Mul24Low, S32>::run : Same2<Mul24High, S32>::run;
  return emit_typed(d, e, run, "int");
}
Result<void> decode_mad24(Decoder& d) {
  Modifiers m(d.instruction());
  const int part = m.take_one({"lo", "hi"});
  const bool saturate = m.take("sat");
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  if (part < 0) return d.bad("needs .lo or .hi");
  if (saturate && (type != Ty::s32 || part != 1)) return d.bad(".sat is for .hi.s32 only");
  Emit e;
  PTXBENCH_TRY(plain_operands(d, e, 32, {type, type, type}));
  Handler run = nullptr;
  if (type == Ty::u32) run = part == 0 ? Same3<Mad24Low, U32>::run : Same3<Mad24High, U32>::run;
  if (type == Ty::s32) run = part == 0 ? Same3<Mad24Low, S32>::run : Same3<Mad24High, S32>::run;
  if (saturate) run = Same3<Mad24HighSaturated, S32>::run;
  return emit_typed(d, e, run, "int");
}

template <class F>
Result<void> decode_two(Decoder& d) {  // div, rem
  Modifiers m(d.instruction());
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  Emit e;
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(type), {type, type}));
  return emit_typed(d, e, is_integer(type) ? by_integer<F, Same2>(type) : nullptr, "int");
}

}  // namespace

Result<void> decode_div_integer(Decoder& d) { return decode_two<Divide>(d); }

namespace {

template <class F>
Result<void> decode_signed(Decoder& d) {  // abs, neg
  Modifiers m(d.instruction());
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  Emit e;
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(type), {type}));
  return emit_typed(d, e, is_signed(type) ? by_integer<F, Same1>(type) : nullptr, "int");
}

template <class F, Handler FastS32>
Result<void> decode_extremum(Decoder& d) {
  Modifiers m(d.instruction());
  const bool relu = m.take("relu");
  const int packed = m.take_one({"u16x2", "s16x2"});
  Emit e;
  if (packed >= 0) {
    PTXBENCH_TRY(m.finish(d));
    if (relu && packed == 0) return d.bad(".relu is for signed types only");
    PTXBENCH_TRY(plain_operands(d, e, 32, {Ty::b32, Ty::b32}));
    e.run = packed == 0 ? halves<F, std::uint16_t>()
            : relu      ? halves<Relu<F>, std::int16_t>()
                        : halves<F, std::int16_t>();
    return d.emit(e, "int");
  }
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  if (relu && type != Ty::s32) return d.bad(".relu is for .s32 and .s16x2 only");
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(type), {type, type}));
  if (relu) return emit_typed(d, e, Same2<Relu<F>, S32>::run, "int");
  if (type == Ty::s32) return emit_typed(d, e, FastS32, "int");
  return emit_typed(d, e, is_integer(type) ? by_integer<F, Same2>(type) : nullptr, "int");
}

}  // namespace

Result<void> decode_add_integer(Decoder& d) {
  return decode_add_sub<Add, run_add32, run_add64, AddSaturated>(d);
}
Result<void> decode_sub_integer(Decoder& d) {
  return decode_add_sub<Sub, run_sub32, run_sub64, SubSaturated>(d);
}
Result<void> decode_abs_integer(Decoder& d) { return decode_signed<Absolute>(d); }
Result<void> decode_neg_integer(Decoder& d) { return decode_signed<Negate>(d); }
Result<void> decode_min_integer(Decoder& d) { return decode_extremum<Minimum, run_min_s32>(d); }
Result<void> decode_max_integer(Decoder& d) { return decode_extremum<Maximum, run_max_s32>(d); }

namespace {

Result<void> decode_sad(Decoder& d) {
  Modifiers m(d.instruction());
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  Emit e;
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(type), {type, type, type}));
  return emit_typed(d, e, is_integer(type) ? by_integer<SumOfDifferences, Same3>(type) : nullptr, "int");
}

// Element @p k of @p bits bits, with its sign or without.
std::int32_t element(std::uint32_t v, unsigned k, unsigned bits, bool sign) {
  const std::uint32_t e = v >> (k * bits);
  const unsigned s = 32 - bits;
  return sign ? static_cast<std::int32_t>(e << s) >> s : static_cast<std::int32_t>(e << s >> s);
}
Flow run_dp4a(Exec& x) {
  const bool sa = x.op.a != 0, sb = x.op.b != 0;
  return ternary<U32, U32, U32, U32>(x, [=](U32 a, U32 b, U32 c) {
    for (unsigned k = 0; k < 4; ++k) c += static_cast<U32>(element(a, k, 8, sa) * element(b, k, 8, sb));
    return c;
  });
}
Flow run_dp2a(Exec& x) {
  const bool sa = x.op.a != 0, sb = x.op.b != 0;
  const unsigned from = x.op.c;  // of b's bytes
  return ternary<U32, U32, U32, U32>(x, [=](U32 a, U32 b, U32 c) {
    for (unsigned k = 0; k < 2; ++k)
      c += static_cast<U32>(element(a, k, 16, sa) * element(b, from + k, 8, sb));
    return c;
  });
}
Result<void> decode_dot(Decoder& d, bool two) {
  Modifiers m(d.instruction());
  const int part = two ? m.take_one({"lo", "hi"}) : 0;
  const std::vector<Ty> types = m.types();
  PTXBENCH_TRY(m.finish(d));
  if (part < 0) return d.bad("needs .lo or .hi");
  for (const Ty t : types) {
    if (types.size() != 2 || (t != Ty::u32 && t != Ty::s32)) return d.bad("needs two types, .u32 or .s32");
  }
  if (types.empty()) return d.bad("needs two types, .u32 or .s32");
  Emit e;
  e.a = types[0] == Ty::s32;
  e.b = types[1] == Ty::s32;
  e.c = static_cast<std::uint8_t>(2 * part);
  PTXBENCH_TRY(plain_operands(d, e, 32, {types[0], types[1], e.a || e.b ? Ty::s32 : Ty::u32}));
  e.run = two ? run_dp2a : run_dp4a;
  return d.emit(e, "int");
}

}  // namespace

void register_integer(InstructionTable& table) {
  table.add("mul24", decode_mul24);
  table.add("mad24", decode_mad24);
  table.add("rem", decode_two<Remainder>);
  table.add("sad", decode_sad);
  table.add("dp4a", [](Decoder& d) { return decode_dot(d, false); });
  table.add("dp2a", [](Decoder& d) { return decode_dot(d, true); });
  register_bits(table);
  register_logic(table);
  register_arithmetic(table);
}

}  // namespace ptxbench::emulator
