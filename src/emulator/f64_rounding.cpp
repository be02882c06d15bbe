#include "emulator/f64_rounding.hpp"

#include "emulator/rounding.hpp"

#include <algorithm>

namespace ptxbench::emulator {
namespace {

using u64 = std::uint64_t;
__extension__ using u128 = unsigned __int128;

// significand * 2^exponent. Bits that were cut off set the lowest bit, which lies far below the last one
// kept.
struct Exact {
  bool negative = false;
  int exponent = 0;
  u128 significand = 0;
};

int bit_length(u128 v) {
  const u64 high = static_cast<u64>(v >> 64), low = static_cast<u64>(v);
  return high != 0 ? 128 - __builtin_clzll(high) : low != 0 ? 64 - __builtin_clzll(low) : 0;
}

Exact unpack(u64 v) {
  const int exponent = static_cast<int>(v >> 52 & 2047);
  const u64 fraction = v & ((u64{1} << 52) - 1);
  return {v >> 63 != 0, exponent == 0 ? -1074 : exponent - 1075,
          exponent == 0 ? fraction : fraction | u64{1} << 52};
}

// With `top` its highest bit (counted from 1).
Exact normalized(Exact v, int top) {
  const int shift = top - bit_length(v.significand);
  v.significand <<= shift;
  v.exponent -= shift;
  return v;
}

u128 shifted_right(u128 v, int shift) {  // what is cut off sets the lowest bit
  if (shift >= 128) return v != 0 ? 1 : 0;
  const u128 kept = v >> shift;
  return kept << shift == v ? kept : kept | 1;
}

u64 rounded(const Exact& v, Rounding rounding) {
  const u64 sign = v.negative ? kSignF64 : 0;
  if (v.significand == 0) return sign;
  constexpr int kLowest = -1074;
  const int unit = std::max(v.exponent + bit_length(v.significand) - 53, kLowest);
  const int shift = unit - v.exponent;
  u64 kept = 0;
  if (shift <= 0) {
    kept = static_cast<u64>(v.significand << -shift);
  } else {
    // The part cut off, in eighths: enough to see whether it is a half, more, or less.
    const u128 eighths = shift >= 3 ? shifted_right(v.significand, shift - 3) : v.significand << (3 - shift);
    kept = static_cast<u64>(eighths >> 3);
    const u64 rest = static_cast<u64>(eighths & 7);
    kept +=
        with_rounding(rounding, [&]<Rounding mode>() { return rounds_up<mode>(kept, rest, 4, v.negative); })
            ? 1
            : 0;
  }
  // A significand of 53 bits adds one to the exponent's field, a carry another.
  const u64 magnitude = (static_cast<u64>(unit - kLowest) << 52) + kept;
  if (magnitude < kInfF64) return sign | magnitude;
  const bool finite = rounding == Rounding::zero || (rounding == Rounding::down && !v.negative) ||
                      (rounding == Rounding::up && v.negative);
  return sign | (finite ? kInfF64 - 1 : kInfF64);
}

Exact product(u64 a, u64 b) {
  const Exact x = unpack(a), y = unpack(b);
  return {x.negative != y.negative, x.exponent + y.exponent, x.significand * y.significand};
}

}  // namespace

u64 exact_product(u64 a, u64 b, Rounding rounding) { return rounded(product(a, b), rounding); }

u64 exact_product_sum(u64 a, u64 b, u64 c, Rounding rounding) {
  Exact p = product(a, b), s = unpack(c);
  if (p.significand == 0 && s.significand == 0) {
    return (p.negative == s.negative ? p.negative : rounding == Rounding::down) ? kSignF64 : 0;
  }
  if (p.significand == 0) return c;
  if (s.significand == 0) return rounded(p, rounding);
  // Both with their highest bit in the same place; the smaller is shifted down. A product has at least 18
  // zeros below it and an operand more, so that bits are only lost where the sum stays as long as the larger.
  p = normalized(p, 124);
  s = normalized(s, 124);
  if (p.exponent < s.exponent || (p.exponent == s.exponent && p.significand < s.significand)) std::swap(p, s);
  s.significand = shifted_right(s.significand, p.exponent - s.exponent);
  if (p.negative == s.negative) {
    p.significand += s.significand;
  } else {
    p.significand -= s.significand;
    if (p.significand == 0) p.negative = rounding == Rounding::down;
  }
  return rounded(p, rounding);
}

u64 exact_quotient(u64 a, u64 b, Rounding rounding) {
  const Exact x = normalized(unpack(a), 124), y = normalized(unpack(b), 53);
  const u128 quotient = x.significand / y.significand;
  const bool exact = quotient * y.significand == x.significand;
  return rounded({x.negative != y.negative, x.exponent - y.exponent, exact ? quotient : quotient | 1},
                 rounding);
}

u64 exact_root(u64 a, Rounding rounding) {
  Exact x = normalized(unpack(a), 122);
  if (x.exponent % 2 != 0) x.significand <<= 1, --x.exponent;
  u128 root = 0;
  for (int bit = 61; bit >= 0; --bit) {
    const u128 next = root | u128{1} << bit;
    if (next * next <= x.significand) root = next;
  }
  return rounded({false, x.exponent / 2, root * root == x.significand ? root : root | 1}, rounding);
}

}  // namespace ptxbench::emulator
