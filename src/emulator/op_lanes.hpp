// What the scalar families share: values of lanes in their types, loops over the 32 lanes, and the decoding
// of plain `op.type d, a, b, c`.
//
// Loops compute all lanes into a buffer before they write any, so that a destination may lie over a source.
// They are forced inline: a handler marked PTXBENCH_CLONES then has them compiled for each instruction set.
#pragma once

#include "emulator/clones.hpp"
#include "emulator/decode.hpp"
#include "emulator/lane_loop.hpp"
#include "emulator/machine.hpp"

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

namespace ptxbench::emulator {

// What holds a value of type T in a lane: 8 and 16 bits lie in the low bits of 32.
template <class T>
using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <class T>
PTXBENCH_INLINE T from_word(Word<T> w) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(w);
  } else {
    return std::bit_cast<T>(w);
  }
}
template <class T>
PTXBENCH_INLINE Word<T> to_word(T v) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::make_unsigned_t<T>>(v);
  } else {
    return std::bit_cast<Word<T>>(v);
  }
}

template <class T>
PTXBENCH_INLINE const Word<T>* words(const std::uint32_t* p) {
  return reinterpret_cast<const Word<T>*>(p);
}
template <class T>
PTXBENCH_INLINE Word<T>* words(std::uint32_t* p) {
  return reinterpret_cast<Word<T>*>(p);
}

// d[i] = f(i) for the lanes of @p mask.
template <class W, class F>
PTXBENCH_INLINE void fill_lanes(W* d, Mask mask, F f) {
  alignas(64) W out[kLanes];
  if (mask == ~Mask{0}) {
    for (unsigned i = 0; i < kLanes; ++i) out[i] = f(i);
    for (unsigned i = 0; i < kLanes; ++i) d[i] = out[i];
  } else {
    for (Mask m = mask; m != 0; m &= m - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(m));
      out[i] = f(i);
    }
    for (Mask m = mask; m != 0; m &= m - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(m));
      d[i] = out[i];
    }
  }
}

// D d = f(A a), f(A a, B b), f(A a, B b, C c): operand 0 is d, the sources follow.
template <class D, class A, class F>
PTXBENCH_INLINE Flow unary(Exec& x, F f) {
  const Word<A>* a = words<A>(x.src(1));
  fill_lanes(
      words<D>(x.dst(0)),
      x.mask, [=](unsigned i) __attribute__((always_inline)) { return to_word<D>(f(from_word<A>(a[i]))); });
  return Flow::next;
}
template <class D, class A, class B, class F>
PTXBENCH_INLINE Flow binary(Exec& x, F f) {
  const Word<A>* a = words<A>(x.src(1));
  const Word<B>* b = words<B>(x.src(2));
  fill_lanes(
      words<D>(x.dst(0)), x.mask, [=](unsigned i) __attribute__((always_inline)) {
        return to_word<D>(f(from_word<A>(a[i]), from_word<B>(b[i])));
      });
  return Flow::next;
}
template <class D, class A, class B, class C, class F>
PTXBENCH_INLINE Flow ternary(Exec& x, F f) {
  const Word<A>* a = words<A>(x.src(1));
  const Word<B>* b = words<B>(x.src(2));
  const Word<C>* c = words<C>(x.src(3));
  fill_lanes(
      words<D>(x.dst(0)), x.mask, [=](unsigned i) __attribute__((always_inline)) {
        return to_word<D>(f(from_word<A>(a[i]), from_word<B>(b[i]), from_word<C>(c[i])));
      });
  return Flow::next;
}

// The same with a stateless functor as the handler itself.
template <class F, class D, class A>
Flow run_unary(Exec& x) {
  return unary<D, A>(x, F{});
}
template <class F, class D, class A, class B>
Flow run_binary(Exec& x) {
  return binary<D, A, B>(x, F{});
}
template <class F, class D, class A, class B, class C>
Flow run_ternary(Exec& x) {
  return ternary<D, A, B, C>(x, F{});
}

// Handlers for a functor whose operands all have the instruction's type; nullptr where the type is none of
// them. b16, b32, b64 count as unsigned.
template <class F, template <class, class> class Pick>
Handler by_integer(Ty type) {
  switch (type) {
    case Ty::u16:
    case Ty::b16:
      return Pick<F, std::uint16_t>::run;
    case Ty::u32:
    case Ty::b32:
      return Pick<F, std::uint32_t>::run;
    case Ty::u64:
    case Ty::b64:
      return Pick<F, std::uint64_t>::run;
    case Ty::s16:
      return Pick<F, std::int16_t>::run;
    case Ty::s32:
      return Pick<F, std::int32_t>::run;
    case Ty::s64:
      return Pick<F, std::int64_t>::run;
    default:
      return nullptr;
  }
}
template <class F, class T>
struct Same1 {
  static constexpr Handler run = &run_unary<F, T, T>;
};
template <class F, class T>
struct Same2 {
  static constexpr Handler run = &run_binary<F, T, T, T>;
};
template <class F, class T>
struct Same3 {
  static constexpr Handler run = &run_ternary<F, T, T, T, T>;
};

// Bits that 32 bytes of 0 or 1 make, the first the lowest.
PTXBENCH_INLINE Mask pack_bits(const std::uint8_t* flags) {
  Mask m = 0;
  for (unsigned k = 0; k < 4; ++k) {
    std::uint64_t v;
    __builtin_memcpy(&v, flags + 8 * k, 8);
    if constexpr (std::endian::native == std::endian::big) v = __builtin_bswap64(v);
    m |= static_cast<Mask>((v * 0x0102040810204080u) >> 56) << (8 * k);
  }
  return m;
}
// The lanes for which f(lane) holds, computed for all of them.
template <class F>
PTXBENCH_INLINE Mask test_lanes(F f) {
  alignas(64) std::uint8_t flags[kLanes];
  for (unsigned i = 0; i < kLanes; ++i) flags[i] = f(i) ? 1 : 0;
  return pack_bits(flags);
}

inline bool is_signed(Ty type) {
  return type == Ty::s8 || type == Ty::s16 || type == Ty::s32 || type == Ty::s64;
}
inline bool is_integer(Ty type) {  // with a sign or without; no bare bits
  return is_signed(type) || type == Ty::u8 || type == Ty::u16 || type == Ty::u32 || type == Ty::u64;
}

// `d, a, b, ...`: one register destination of @p bits, sources of the types given, and nothing else.
inline Result<void> plain_operands(Decoder& d, Emit& e, unsigned bits, std::initializer_list<Ty> sources) {
  PTXBENCH_TRY(d.expect_operands(1 + sources.size()));
  PTXBENCH_TRY(d.dst(e, 0, bits));
  std::size_t i = 1;
  for (const Ty type : sources) PTXBENCH_TRY(d.src(e, i++, type));
  return {};
}

// Sets the handler and emits; a null handler means that the instruction has no such type.
inline Result<void> emit_typed(Decoder& d, Emit& e, Handler run, std::string_view family) {
  if (run == nullptr) return d.bad("the instruction has no such type");
  e.run = run;
  return d.emit(e, family);
}

// Opcodes whose type decides what they are: op_arithmetic.cpp looks at it and calls one of these.
Result<void> decode_add_integer(Decoder& d);
Result<void> decode_sub_integer(Decoder& d);
Result<void> decode_mul_integer(Decoder& d);
Result<void> decode_div_integer(Decoder& d);
Result<void> decode_abs_integer(Decoder& d);
Result<void> decode_neg_integer(Decoder& d);
Result<void> decode_min_integer(Decoder& d);
Result<void> decode_max_integer(Decoder& d);
Result<void> decode_mad_integer(Decoder& d);
Result<void> decode_carry(Decoder& d);  // add.cc, addc, sub.cc, subc, mad.cc, madc

Result<void> decode_add_float(Decoder& d);
Result<void> decode_sub_float(Decoder& d);
Result<void> decode_mul_float(Decoder& d);
Result<void> decode_fma_float(Decoder& d);
Result<void> decode_div_float(Decoder& d);
Result<void> decode_abs_float(Decoder& d);
Result<void> decode_neg_float(Decoder& d);
Result<void> decode_min_float(Decoder& d);
Result<void> decode_max_float(Decoder& d);
Result<void> decode_ex2_float(Decoder& d);
Result<void> decode_tanh_float(Decoder& d);

Result<void> decode_add_half(Decoder& d);
Result<void> decode_sub_half(Decoder& d);
Result<void> decode_mul_half(Decoder& d);
Result<void> decode_fma_half(Decoder& d);
Result<void> decode_abs_half(Decoder& d);
Result<void> decode_neg_half(Decoder& d);
Result<void> decode_min_half(Decoder& d);
Result<void> decode_max_half(Decoder& d);
Result<void> decode_ex2_half(Decoder& d);
Result<void> decode_tanh_half(Decoder& d);

void register_arithmetic(InstructionTable& table);
void register_bits(InstructionTable& table);
void register_logic(InstructionTable& table);

}  // namespace ptxbench::emulator
