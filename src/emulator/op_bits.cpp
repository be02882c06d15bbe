// Bits counted, found and moved: popc, clz, bfind, fns, brev, bfe, bfi, bmsk, szext.
#include "emulator/op_lanes.hpp"

namespace ptxbench::emulator {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

template <class T>
constexpr U32 kBits = 8 * sizeof(T);

// The low @p n bits set; all of them from the width of T on.
template <class T>
PTXBENCH_INLINE T low_bits(U32 n) {
  return n >= kBits<T> ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << n) - 1);
}

template <class T>
struct CountOnes {
  U32 operator()(T a) const { return static_cast<U32>(std::popcount(a)); }
};
template <class T>
struct CountLeadingZeros {
  U32 operator()(T a) const { return static_cast<U32>(std::countl_zero(a)); }
};
template <class T>
struct Reverse {
  PTXBENCH_INLINE T operator()(T a) const {
    const auto swap = [&](unsigned n, T keep) { a = static_cast<T>(((a >> n) & keep) | ((a & keep) << n)); };
    swap(1, static_cast<T>(0x5555555555555555));
    swap(2, static_cast<T>(0x3333333333333333));
    swap(4, static_cast<T>(0x0f0f0f0f0f0f0f0f));
    if constexpr (sizeof(T) == 8) {
      return __builtin_bswap64(a);
    } else {
      return __builtin_bswap32(a);
    }
  }
};
// The position of the highest bit that differs from the sign, or the shift that brings it to the top; -1:
// none.
template <class T, bool ShiftAmount>
struct Find {
  U32 operator()(T v) const {
    using U = std::make_unsigned_t<T>;
    const U a = static_cast<U>(v < 0 ? ~v : v);
    if (a == 0) return ~U32{0};
    const U32 zeros = static_cast<U32>(std::countl_zero(a));
    return ShiftAmount ? zeros : kBits<T> - 1 - zeros;
  }
};
template <class T>
struct Extract {
  PTXBENCH_INLINE T operator()(T a, U32 position, U32 length) const {
    using U = std::make_unsigned_t<T>;
    const U32 pos = position & 0xff, len = length & 0xff;
    if (len == 0) return 0;
    const U field = low_bits<U>(len);
    if constexpr (std::is_signed_v<T>) {
      // The sign is the field's top bit or, where the field reaches beyond, the value's: a shift with the
      // sign brings it.
      const U v = static_cast<U>(a >> (pos > kBits<T> - 1 ? kBits<T> - 1 : pos)) & field;
      const U sign = len >= kBits<T> ? 0 : U{1} << (len - 1);
      return static_cast<T>((v ^ sign) - sign);
    } else {
      return pos >= kBits<T> ? T{0} : static_cast<T>((a >> pos) & field);
    }
  }
};
PTXBENCH_CLONES Flow run_bfe_u32(Exec& x) { return ternary<U32, U32, U32, U32>(x, Extract<U32>{}); }
PTXBENCH_CLONES Flow run_bfe_s32(Exec& x) {
  return ternary<std::int32_t, std::int32_t, U32, U32>(x, Extract<std::int32_t>{});
}

// d, a, b, c, length: four sources.
template <class T>
Flow run_bfi(Exec& x) {
  const T* a = words<T>(x.src(1));
  const T* b = words<T>(x.src(2));
  const U32* c = x.src(3);
  const U32* n = x.src(4);
  fill_lanes(words<T>(x.dst(0)), x.mask, [=](unsigned i) -> T {
    const U32 pos = c[i] & 0xff, len = n[i] & 0xff;
    if (pos >= kBits<T> || len == 0) return b[i];
    const T field = static_cast<T>(low_bits<T>(len) << pos);
    return static_cast<T>((b[i] & ~field) | ((a[i] << pos) & field));
  });
  return Flow::next;
}

struct FindNthSet {
  U32 operator()(U32 mask, U32 base, std::int32_t offset) const {
    if (base > 31) return ~U32{0};
    if (offset == 0) return (mask >> base & 1) != 0 ? base : ~U32{0};
    const std::int64_t step = offset > 0 ? 1 : -1;
    std::int64_t left = offset > 0 ? offset : -std::int64_t{offset};
    for (std::int64_t pos = base; pos >= 0 && pos < 32; pos += step) {
      if ((mask >> pos & 1) != 0 && --left == 0) return static_cast<U32>(pos);
    }
    return ~U32{0};
  }
};

template <bool Clamp>
struct MakeMask {
  U32 operator()(U32 a, U32 b) const {
    if (Clamp) {
      if (a >= 32) return 0;
      const U64 field = b >= 32 ? ~U64{0} : (U64{1} << b) - 1;
      return static_cast<U32>(field << a);
    }
    return static_cast<U32>(((U64{1} << (b & 31)) - 1) << (a & 31));
  }
};

// The low n bits of a with their sign or without. n = 0 gives 0; 32 or more: all of a (clamp) or n mod 32
// (wrap).
template <class T, bool Clamp>
struct Extend {
  T operator()(T a, U32 n) const {
    if (Clamp && n >= 32) return a;
    n &= 31;
    if (n == 0) return 0;
    return static_cast<T>(static_cast<T>(static_cast<U32>(a) << (32 - n)) >> (32 - n));
  }
};

template <template <class> class F>
Result<void> decode_count(Decoder& d) {  // popc, clz
  Modifiers m(d.instruction());
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  Emit e;
  PTXBENCH_TRY(plain_operands(d, e, 32, {type}));
  return emit_typed(d, e,
                    type == Ty::b32   ? &run_unary<F<U32>, U32, U32>
                    : type == Ty::b64 ? &run_unary<F<U64>, U32, U64>
                                      : nullptr,
                    "int");
}
Result<void> decode_brev(Decoder& d) {
  Modifiers m(d.instruction());
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  Emit e;
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(type), {type}));
  return emit_typed(d, e,
                    type == Ty::b32   ? Same1<Reverse<U32>, U32>::run
                    : type == Ty::b64 ? Same1<Reverse<U64>, U64>::run
                                      : nullptr,
                    "int");
}
template <class T>
Handler find_handler(bool shift) {
  return shift ? &run_unary<Find<T, true>, U32, T> : &run_unary<Find<T, false>, U32, T>;
}
Result<void> decode_bfind(Decoder& d) {
  Modifiers m(d.instruction());
  const bool shift = m.take("shiftamt");
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  Emit e;
  PTXBENCH_TRY(plain_operands(d, e, 32, {type}));
  Handler run = nullptr;
  if (type == Ty::u32) run = find_handler<U32>(shift);
  if (type == Ty::s32) run = find_handler<std::int32_t>(shift);
  if (type == Ty::u64) run = find_handler<U64>(shift);
  if (type == Ty::s64) run = find_handler<std::int64_t>(shift);
  return emit_typed(d, e, run, "int");
}
Result<void> decode_bfe(Decoder& d) {
  Modifiers m(d.instruction());
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  Emit e;
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(type), {type, Ty::u32, Ty::u32}));
  Handler run = nullptr;
  if (type == Ty::u32) run = run_bfe_u32;
  if (type == Ty::s32) run = run_bfe_s32;
  if (type == Ty::u64) run = &run_ternary<Extract<U64>, U64, U64, U32, U32>;
  if (type == Ty::s64) run = &run_ternary<Extract<std::int64_t>, std::int64_t, std::int64_t, U32, U32>;
  return emit_typed(d, e, run, "int");
}
Result<void> decode_bfi(Decoder& d) {
  Modifiers m(d.instruction());
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  Emit e;
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(type), {type, type, Ty::u32, Ty::u32}));
  return emit_typed(d, e, type == Ty::b32 ? &run_bfi<U32> : type == Ty::b64 ? &run_bfi<U64> : nullptr, "int");
}
Result<void> decode_fns(Decoder& d) {
  Modifiers m(d.instruction());
  if (!m.take("b32")) return d.bad("needs .b32");
  PTXBENCH_TRY(m.finish(d));
  Emit e;
  PTXBENCH_TRY(plain_operands(d, e, 32, {Ty::b32, Ty::b32, Ty::s32}));
  return emit_typed(d, e, &run_ternary<FindNthSet, U32, U32, U32, std::int32_t>, "int");
}
Result<void> decode_bmsk(Decoder& d) {
  Modifiers m(d.instruction());
  const int mode = m.take_one({"wrap", "clamp"});
  if (!m.take("b32")) return d.bad("needs .b32");
  PTXBENCH_TRY(m.finish(d));
  if (mode < 0) return d.bad("needs .wrap or .clamp");
  Emit e;
  PTXBENCH_TRY(plain_operands(d, e, 32, {Ty::u32, Ty::u32}));
  return emit_typed(d, e, mode == 1 ? Same2<MakeMask<true>, U32>::run : Same2<MakeMask<false>, U32>::run,
                    "int");
}
Result<void> decode_szext(Decoder& d) {
  Modifiers m(d.instruction());
  const int mode = m.take_one({"wrap", "clamp"});
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  if (mode < 0) return d.bad("needs .wrap or .clamp");
  Emit e;
  PTXBENCH_TRY(plain_operands(d, e, 32, {type, Ty::u32}));
  using S32 = std::int32_t;
  Handler run = nullptr;
  if (type == Ty::u32)
    run = mode == 1 ? &run_binary<Extend<U32, true>, U32, U32, U32>
                    : &run_binary<Extend<U32, false>, U32, U32, U32>;
  if (type == Ty::s32)
    run = mode == 1 ? &run_binary<Extend<S32, true>, S32, S32, U32>
                    : &run_binary<Extend<S32, false>, S32, S32, U32>;
  return emit_typed(d, e, run, "int");
}

}  // namespace

void register_bits(InstructionTable& table) {
  table.add("popc", decode_count<CountOnes>);
  table.add("clz", decode_count<CountLeadingZeros>);
  table.add("brev", decode_brev);
  table.add("bfind", decode_bfind);
  table.add("bfe", decode_bfe);
  table.add("bfi", decode_bfi);
  table.add("fns", decode_fns);
  table.add("bmsk", decode_bmsk);
  table.add("szext", decode_szext);
}

}  // namespace ptxbench::emulator
