#include "emulator/formats.hpp"

#include "emulator/clones.hpp"
#include "emulator/rounding.hpp"

// Every format but f64 is a part of f64, so that a conversion is: widen, clamp, round once.
namespace ptxbench::emulator {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;

constexpr u64 kOneF64 = 0x3ff0000000000000, kHiddenF64 = 0x0010000000000000,
              kFractionF64 = 0x000fffffffffffff;
constexpr u64 kQuietF64 = 0x0008000000000000;

u64 magnitude_of(u64 f64) { return f64 & ~kSignF64; }
bool is_nan(u64 f64) { return magnitude_of(f64) > kInfF64; }
u64 low_bits(u64 v, unsigned bits) { return bits >= 64 ? v : v & ((u64{1} << bits) - 1); }
u64 sign_extended(u64 v, unsigned bits) {
  return bits >= 64 ? v : static_cast<u64>(static_cast<std::int64_t>(v << (64 - bits)) >> (64 - bits));
}

// e4m3 has no infinity: the first magnitude that is no number is its NaN.
u64 f64_from_f8(u32 v, int fraction_bits, int bias, u32 end, bool has_infinity) {
  const u32 magnitude = v & 0x7f;
  const u64 sign = static_cast<u64>(v >> 7 & 1) << 63;
  if (magnitude >= end) return has_infinity && magnitude == end ? sign | kInfF64 : kNanF64;
  if (magnitude >> fraction_bits == 0) {
    const double unit = f64_value(static_cast<u64>(1023 + 1 - bias - fraction_bits) << 52);
    return sign | f64_bits(static_cast<double>(static_cast<i32>(magnitude)) * unit);
  }
  return sign |
         ((static_cast<u64>(magnitude) << (52 - fraction_bits)) + (static_cast<u64>(1023 - bias) << 52));
}

template <FloatShape shape>
u64 narrow(u64 f64, Rounding rounding, bool satfinite) {
  return with_rounding(rounding, [&]<Rounding mode>() -> u64 {
    if (is_nan(f64)) return round_f64<shape, mode>(f64);
    const u64 sign = f64 >> 63 << (shape.precision + shape.exponent_bits - 1);
    if (satfinite && round_magnitude<shape, mode>(f64) >= shape.overflow) return sign | (shape.overflow - 1);
    return round_f64<shape, mode>(f64);
  });
}

bool rounds_up_integer(Rounding rounding, u64 kept, u64 rest, u64 half, bool negative) {
  return with_rounding(rounding, [&]<Rounding mode>() -> u64 {
           return rounds_up<mode>(kept, rest, half, negative) ? 1 : 0;
         }) != 0;
}

// |v| as an integer; false where it has 2^64 or more (v no NaN).
bool integral_magnitude(u64 v, Rounding rounding, u64& out) {
  const bool negative = v >> 63 != 0;
  const u64 magnitude = magnitude_of(v);
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  if (exponent >= 64) return false;
  const u64 significand = magnitude < kHiddenF64 ? magnitude : (magnitude & kFractionF64) | kHiddenF64;
  if (exponent >= 52) {
    out = significand << (exponent - 52);
    return true;
  }
  const int shift = 52 - exponent < 60 ? 52 - exponent : 60;  // from 54 on only zero or not counts
  const u64 kept = significand >> shift, rest = significand & ((u64{1} << shift) - 1);
  out = kept + (rounds_up_integer(rounding, kept, rest, u64{1} << (shift - 1), negative) ? 1 : 0);
  return true;
}

u64 flush_f32(u64 f64) {  // an f32's value
  return magnitude_of(f64) < u64{1023 - 126} << 52 ? f64 & kSignF64 : f64;
}

u64 clamp_to_one(u64 f64) {  // no NaN
  if (f64 >> 63 != 0) return 0;
  return f64 > kOneF64 ? kOneF64 : f64;
}

u64 from_f64(FloatFormat to, u64 f64, Rounding rounding, bool satfinite) {
  switch (to) {
    case FloatFormat::f16:
      return narrow<kShapeF16>(f64, rounding, satfinite);
    case FloatFormat::bf16:
      return narrow<kShapeBf16>(f64, rounding, satfinite);
    case FloatFormat::tf32:
      return is_nan(f64) ? kNanF32 : narrow<kShapeTf32>(f64, rounding, satfinite) << 13;
    case FloatFormat::f32:
      return narrow<kShapeF32>(f64, rounding, satfinite);
    case FloatFormat::e4m3:
      return narrow<kShapeE4m3>(f64, rounding, true);
    case FloatFormat::e5m2:
      return narrow<kShapeE5m2>(f64, rounding, true);
    case FloatFormat::f64:
      break;
  }
  return f64;
}

// A NaN in another format. Most conversions give the format's one NaN; these carry a payload or treat its
// bits as a number's.
u64 converted_nan(FloatFormat to, FloatFormat from, u64 bits, ConvertMode mode) {
  if (from == FloatFormat::f64) {
    const u64 quiet = bits | kQuietF64, sign = bits >> 63;
    switch (to) {
      case FloatFormat::f64:
        return quiet;
      case FloatFormat::f32:
        return sign << 31 | 0x7f800000 | low_bits(quiet >> 29, 23);
      case FloatFormat::f16:
        return sign << 15 | 0x7c00 | low_bits(quiet >> 42, 10);
      case FloatFormat::bf16:
        return sign << 15 | 0x7f80 | low_bits(quiet >> 45, 7);
      default:
        break;
    }
  }
  if (to == FloatFormat::f64) {
    if (from == FloatFormat::f32 && !mode.ftz) {
      return (bits >> 31 & 1) << 63 | kInfF64 | kQuietF64 | low_bits(bits, 23) << 29;
    }
    if (from == FloatFormat::bf16)
      return (bits >> 15 & 1) << 63 | kInfF64 | kQuietF64 | low_bits(bits, 7) << 45;
    if (from == FloatFormat::f16)
      return (bits >> 15 & 1) << 63 | kInfF64 | kQuietF64 | low_bits(bits, 10) << 42;
    return u64{kNanF32} << 32 | 0xe0000000;  // the f32's NaN, widened
  }
  if (from == FloatFormat::bf16 && to == FloatFormat::f32) return low_bits(bits, 16) << 16;
  if (to == FloatFormat::tf32) {
    if (mode.rounding != Rounding::nearest_away) return kNanF32 & ~u64{0x1fff};
    return (bits & 0xffffe000) - (mode.satfinite ? 0x2000 : 0);
  }
  return from_f64(to, kNanF64, mode.rounding, false);
}

PTXBENCH_UNARY_LANES(lanes_widen_f16, u32, widen_f16(v & 0xffff))
PTXBENCH_UNARY_LANES(lanes_widen_bf16, u32, widen_bf16(v))
PTXBENCH_UNARY_LANES(lanes_f16, u32, nearest_f16(v))
PTXBENCH_UNARY_LANES(lanes_bf16, u32, nearest_bf16(v))
PTXBENCH_BINARY_LANES(lanes_f16x2, nearest_f16(a) << 16 | nearest_f16(b))
PTXBENCH_BINARY_LANES(lanes_bf16x2, nearest_bf16(a) << 16 | nearest_bf16(b))

}  // namespace

u64 widen_to_f64(FloatFormat from, u64 bits) {
  const u32 low = static_cast<u32>(bits);
  switch (from) {
    case FloatFormat::f16:
      return f64_from_f16_bits(low);
    case FloatFormat::bf16:
      return f64_from_bf16_bits(low);
    case FloatFormat::tf32:
    case FloatFormat::f32:
      return f64_from_f32_bits(low);
    case FloatFormat::e4m3:
      return f64_from_f8(low, 3, 7, 0x7f, false);
    case FloatFormat::e5m2:
      return f64_from_f8(low, 2, 15, 0x7c, true);
    case FloatFormat::f64:
      break;
  }
  return is_nan(bits) ? kNanF64 : bits;
}

u64 convert_float(FloatFormat to, FloatFormat from, u64 bits, ConvertMode mode) {
  u64 v = widen_to_f64(from, bits);
  if (is_nan(v)) return mode.sat ? 0 : converted_nan(to, from, bits, mode);
  // To halves and tf32 the card does not flush.
  if (mode.ftz && from == FloatFormat::f32 && (to == FloatFormat::f32 || to == FloatFormat::f64))
    v = flush_f32(v);
  if (mode.relu && v >> 63 != 0) v = 0;
  if (mode.sat) v = clamp_to_one(v);
  if (mode.ftz && to == FloatFormat::f32) v = flush_f32(v);  // before it is rounded
  return from_f64(to, v, mode.rounding, mode.satfinite);
}

u64 round_to_integral(FloatFormat format, u64 bits, Rounding rounding, bool ftz, bool sat) {
  u64 v = widen_to_f64(format, bits);
  if (is_nan(v))
    return sat ? 0 : format == FloatFormat::f64 ? bits | kQuietF64 : from_f64(format, v, rounding, false);
  if (ftz && format == FloatFormat::f32) v = flush_f32(v);
  u64 magnitude = 0;
  if (magnitude_of(v) < u64{1023 + 52} << 52) {  // else it has no fraction
    integral_magnitude(v, rounding, magnitude);
    v = (v & kSignF64) | f64_bits(static_cast<double>(static_cast<std::int64_t>(magnitude)));
  }
  if (sat) v = clamp_to_one(v);
  return from_f64(format, v, rounding, false);
}

u64 integer_from_float(IntegerFormat to, FloatFormat from, u64 bits, Rounding rounding, bool ftz) {
  u64 v = widen_to_f64(from, bits);
  if (is_nan(v)) {
    const u64 top = u64{1} << (to.bits - 1);
    if (from != FloatFormat::f64 && to.bits < 64) return 0;
    return to.is_signed ? sign_extended(top, to.bits) : top;
  }
  if (ftz && from == FloatFormat::f32) v = flush_f32(v);
  u64 magnitude = 0;
  const bool small = integral_magnitude(v, rounding, magnitude), negative = v >> 63 != 0;
  const u64 top = u64{1} << (to.bits - 1);
  if (!to.is_signed) {
    if (negative) return 0;
    const u64 largest = low_bits(~u64{0}, to.bits);
    return small && magnitude <= largest ? magnitude : largest;
  }
  if (negative) return small && magnitude <= top ? 0 - magnitude : sign_extended(top, to.bits);
  return small && magnitude < top ? magnitude : top - 1;
}

u64 float_from_integer(FloatFormat to, IntegerFormat from, u64 bits, Rounding rounding, bool sat) {
  const u64 value = from.is_signed ? sign_extended(bits, from.bits) : low_bits(bits, from.bits);
  const bool negative = from.is_signed && value >> 63 != 0;
  const u64 magnitude = negative ? 0 - value : value;
  if (magnitude == 0) return 0;
  u64 kept = magnitude;
  int shift = 11 - __builtin_clzll(magnitude);  // what 53 bits have no room for
  if (shift > 0) {
    kept = magnitude >> shift;
    const u64 rest = magnitude & ((u64{1} << shift) - 1);
    if (to == FloatFormat::f64) {
      kept += rounds_up_integer(rounding, kept, rest, u64{1} << (shift - 1), negative) ? 1 : 0;
    } else {
      kept |= rest != 0 ? 1 : 0;  // to odd: it is rounded again, to fewer bits
    }
  } else {
    shift = 0;
  }
  const double scale = f64_value(static_cast<u64>(1023 + shift) << 52);
  u64 v = f64_bits(static_cast<double>(static_cast<std::int64_t>(kept)) * scale) | (negative ? kSignF64 : 0);
  if (sat) v = clamp_to_one(v);
  return from_f64(to, v, rounding, false);
}

u64 integer_from_integer(IntegerFormat to, IntegerFormat from, u64 bits, bool sat) {
  const u64 value = from.is_signed ? sign_extended(bits, from.bits) : low_bits(bits, from.bits);
  if (sat) {
    const bool negative = from.is_signed && value >> 63 != 0;
    const u64 top = u64{1} << (to.bits - 1);
    if (negative) {
      if (!to.is_signed) return 0;
      const u64 smallest = sign_extended(top, to.bits);
      return static_cast<std::int64_t>(value) < static_cast<std::int64_t>(smallest) ? smallest : value;
    }
    const u64 largest = to.is_signed ? top - 1 : low_bits(~u64{0}, to.bits);
    return value > largest ? largest : value;
  }
  return to.is_signed ? sign_extended(value, to.bits) : low_bits(value, to.bits);
}

u32 pack_saturated(IntegerFormat to, IntegerFormat from, u32 a, u32 b, u32 c) {
  const u64 high = low_bits(integer_from_integer(to, from, a, true), to.bits);
  const u64 low = low_bits(integer_from_integer(to, from, b, true), to.bits);
  return static_cast<u32>(static_cast<u64>(c) << (2 * to.bits) | high << to.bits | low);
}

u32 f32_from_f16(u16 a) { return widen_f16(a); }
u32 f32_from_bf16(u16 a) { return widen_bf16(a); }
u16 f16_from_f32(u32 a) { return static_cast<u16>(nearest_f16(a)); }
u16 bf16_from_f32(u32 a) { return static_cast<u16>(nearest_bf16(a)); }
u16 f16_from_e4m3(u8 a) { return static_cast<u16>(convert_float(FloatFormat::f16, FloatFormat::e4m3, a)); }
u16 f16_from_e5m2(u8 a) { return static_cast<u16>(convert_float(FloatFormat::f16, FloatFormat::e5m2, a)); }
u8 e4m3_from_f32(u32 a, bool relu) {
  return static_cast<u8>(convert_float(FloatFormat::e4m3, FloatFormat::f32, a, {.relu = relu}));
}
u8 e5m2_from_f32(u32 a, bool relu) {
  return static_cast<u8>(convert_float(FloatFormat::e5m2, FloatFormat::f32, a, {.relu = relu}));
}

void f32_from_f16(u32* d, const u32* a) { lanes_widen_f16(d, a); }
void f32_from_bf16(u32* d, const u32* a) { lanes_widen_bf16(d, a); }
void f16_from_f32(u32* d, const u32* a) { lanes_f16(d, a); }
void bf16_from_f32(u32* d, const u32* a) { lanes_bf16(d, a); }
void f16x2_from_f32(u32* d, const u32* a, const u32* b) { lanes_f16x2(d, a, b); }
void bf16x2_from_f32(u32* d, const u32* a, const u32* b) { lanes_bf16x2(d, a, b); }

u32 pair_from_f32(FloatFormat half, u32 a, u32 b, ConvertMode mode) {
  return static_cast<u32>(convert_float(half, FloatFormat::f32, a, mode) << 16 |
                          convert_float(half, FloatFormat::f32, b, mode));
}

}  // namespace ptxbench::emulator
