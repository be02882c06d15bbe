// Rounding an exact f64 (or one rounded to odd) into a narrower format with any rounding mode, in integers
// alone. Written without branches, so that loops over lanes become vector code.
#pragma once

#include "emulator/formats.hpp"
#include "emulator/lane_loop.hpp"

#include <bit>
#include <cstdint>

namespace ptxbench::emulator {

// Significand bits (the hidden one included) and exponent bits of an IEEE-like format. e4m3 has no infinity:
// its largest exponent holds numbers, and its last pattern NaN.
struct FloatShape {
  int precision, exponent_bits;
  std::uint32_t overflow;  // the first magnitude that is no finite number
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};
inline constexpr FloatShape kShapeF16{11, 5, 0x7c00}, kShapeBf16{8, 8, 0x7f80}, kShapeF32{24, 8, 0x7f800000},
    kShapeTf32{11, 8, 0x3fc00}, kShapeE4m3{4, 4, 0x7f}, kShapeE5m2{3, 5, 0x7c};

PTXBENCH_INLINE std::uint64_t f64_bits(double v) { return std::bit_cast<std::uint64_t>(v); }
PTXBENCH_INLINE double f64_value(std::uint64_t bits) { return std::bit_cast<double>(bits); }

// Whether the part cut off, `rest` of a unit 2^shift, rounds the magnitude up.
template <Rounding rounding>
PTXBENCH_INLINE bool rounds_up(std::uint64_t kept, std::uint64_t rest, std::uint64_t half, bool negative) {
  switch (rounding) {
    case Rounding::nearest_even:
      return rest > half || (rest == half && (kept & 1) != 0);
    case Rounding::nearest_away:
      return rest >= half;
    case Rounding::down:
      return negative && rest != 0;
    case Rounding::up:
      return !negative && rest != 0;
    case Rounding::zero:
      break;
  }
  return false;
}

// The magnitude (sign bit clear) of a number's rounding, where overflow is any result from shape.overflow on;
// infinity and NaN give such a result too.
template <FloatShape shape, Rounding rounding>
PTXBENCH_INLINE std::uint64_t round_magnitude(std::uint64_t bits) {
  constexpr int kDrop = 53 - shape.precision;  // bits cut off a normal number
  constexpr std::uint64_t kSmallest =
      static_cast<std::uint64_t>(1023 - shape.bias() + 1);  // f64 exponent of a normal
  const bool negative = (bits >> 63) != 0;
  const std::uint64_t magnitude = bits << 1 >> 1, exponent = magnitude >> 52;
  // Normal numbers are cut where they are. Smaller ones are shifted to the fixed unit of subnormals.
  const bool normal = exponent >= kSmallest;
  const std::uint64_t deeper = normal ? 0 : kSmallest - exponent;
  const std::uint64_t significand = (magnitude & 0xfffffffffffff) | 0x10000000000000;
  const std::uint64_t shift = kDrop + (deeper < 54 - kDrop + 4 ? deeper : 54 - kDrop + 4);  // at most 58
  std::uint64_t source = normal ? magnitude - ((kSmallest - 1) << 52) : significand;
  source = magnitude == 0 ? 0 : source;
  const std::uint64_t kept = source >> shift, rest = source & ((std::uint64_t{1} << shift) - 1);
  return kept + (rounds_up<rounding>(kept, rest, std::uint64_t{1} << (shift - 1), negative) ? 1 : 0);
}

// Calls f with the rounding as a constant.
template <typename F>
auto with_rounding(Rounding rounding, F&& f) {
  switch (rounding) {
    case Rounding::zero:
      return f.template operator()<Rounding::zero>();
    case Rounding::down:
      return f.template operator()<Rounding::down>();
    case Rounding::up:
      return f.template operator()<Rounding::up>();
    case Rounding::nearest_away:
      return f.template operator()<Rounding::nearest_away>();
    case Rounding::nearest_even:
      break;
  }
  return f.template operator()<Rounding::nearest_even>();
}

// What an overflow becomes: infinity, or the largest finite number.
template <FloatShape shape, Rounding rounding>
PTXBENCH_INLINE std::uint64_t overflowed(bool negative) {
  const bool finite = rounding == Rounding::zero || (rounding == Rounding::down && !negative) ||
                      (rounding == Rounding::up && negative);
  return finite ? shape.overflow - 1 : shape.overflow;
}

// An f64 as the IEEE-like format `shape`, its sign on top of `width` bits; NaN is all ones below the sign.
template <FloatShape shape, Rounding rounding>
PTXBENCH_INLINE std::uint64_t round_f64(std::uint64_t bits) {
  constexpr int kWidth = shape.precision + shape.exponent_bits;
  const bool negative = (bits >> 63) != 0;
  const std::uint64_t magnitude = bits << 1 >> 1;
  std::uint64_t out = round_magnitude<shape, rounding>(bits);
  out = out >= shape.overflow ? overflowed<shape, rounding>(negative) : out;
  out = magnitude == 0x7ff0000000000000 ? shape.overflow : out;
  out |= bits >> 63 << (kWidth - 1);
  return magnitude > 0x7ff0000000000000 ? (std::uint64_t{1} << (kWidth - 1)) - 1 : out;
}

// p + c rounded to odd: exact, or the neighbour whose last bit is 1, so that rounding it again to fewer than
// 52 bits is rounding the exact sum. No sum here overflows or loses subnormal bits (the operands come from
// narrower formats).
PTXBENCH_INLINE double add_to_odd(double p, double c) {
  const double s = p + c, t = s - p;
  const std::uint64_t error = f64_bits((p - (s - t)) + (c - t)), bits = f64_bits(s);
  // No step where the error is 0, or NaN (of infinities and NaN), or where the last bit is 1.
  const std::uint64_t toward = 1 - 2 * ((error ^ bits) >> 63);
  const bool inexact = (error << 1 >> 1) - 1 < 0x7ff0000000000000;
  return f64_value(bits + select(inexact, toward & ((bits & 1) - 1), std::uint64_t{0}));
}

inline constexpr std::uint64_t kInfF64 = 0x7ff0000000000000, kSignF64 = 0x8000000000000000;
// The f64 that stands for any NaN on the way from one format to another.
inline constexpr std::uint64_t kNanF64 = 0xfff8000000000000;

// Exact widening, without arithmetic on subnormals (the host might flush them).
PTXBENCH_INLINE std::uint64_t f64_from_f32_bits(std::uint32_t v) {
  const std::uint32_t magnitude = v & 0x7fffffff;
  std::uint64_t out = (static_cast<std::uint64_t>(magnitude) << 29) + (std::uint64_t{1023 - 127} << 52);
  out = magnitude < 0x00800000
            ? f64_bits(static_cast<double>(static_cast<std::int32_t>(magnitude)) * 0x1p-149)
            : out;
  out = magnitude >= 0x7f800000 ? kInfF64 : out;
  out |= static_cast<std::uint64_t>(v >> 31) << 63;
  return magnitude > 0x7f800000 ? kNanF64 : out;
}
PTXBENCH_INLINE std::uint64_t f64_from_f16_bits(std::uint32_t v) {
  const std::uint32_t magnitude = v & 0x7fff;
  std::uint64_t out = (static_cast<std::uint64_t>(magnitude) << 42) + (std::uint64_t{1023 - 15} << 52);
  out = magnitude < 0x0400 ? f64_bits(static_cast<double>(static_cast<std::int32_t>(magnitude)) * 0x1p-24)
                           : out;
  out = magnitude >= 0x7c00 ? kInfF64 : out;
  out |= static_cast<std::uint64_t>(v >> 15 & 1) << 63;
  return magnitude > 0x7c00 ? kNanF64 : out;
}
PTXBENCH_INLINE std::uint64_t f64_from_bf16_bits(std::uint32_t v) { return f64_from_f32_bits(v << 16); }

// The common conversions of halves, in 32 bits.
PTXBENCH_INLINE std::uint32_t widen_f16(std::uint32_t h) {
  const std::uint32_t magnitude = h & 0x7fff;
  std::uint32_t out = (magnitude << 13) + ((127 - 15) << 23);
  const float subnormal = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f;
  out = select(magnitude < 0x0400, std::bit_cast<std::uint32_t>(subnormal), out);
  out = select(magnitude >= 0x7c00, 0x7f800000, out);
  out |= (h & 0x8000) << 16;
  return select(magnitude > 0x7c00, kNanF32, out);
}

PTXBENCH_INLINE std::uint32_t widen_bf16(std::uint32_t h) { return h << 16; }

PTXBENCH_INLINE std::uint32_t nearest_f16(std::uint32_t v) {
  const std::uint32_t magnitude = v & 0x7fffffff;
  const std::uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  // A float's unit from 0.5 on is 2^-24, that of f16's subnormals.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
  std::uint32_t out = select(magnitude < 0x38800000, subnormal, normal);  // 2^-14
  out = select(magnitude >= 0x477ff000, 0x7c00, out);                     // 65520
  return select(magnitude > 0x7f800000, 0x7fff, out | (v >> 16 & 0x8000));
}

PTXBENCH_INLINE std::uint32_t nearest_bf16(std::uint32_t v) {
  const std::uint32_t rounded = (v + 0x7fff + (v >> 16 & 1)) >> 16;
  return select((v & 0x7fffffff) > 0x7f800000, 0x7fff, rounded);
}

}  // namespace ptxbench::emulator
