#include "emulator/convert_lanes.hpp"

#include "emulator/clones.hpp"
#include "emulator/rounding.hpp"

// Integer arithmetic on patterns, and float operations that are exact or rounded to nearest.
namespace ptxbench::emulator {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;

constexpr u32 kSign = 0x80000000, kMagnitude = 0x7fffffff, kInf = 0x7f800000;

PTXBENCH_INLINE float value_of(u32 bits) { return std::bit_cast<float>(bits); }
PTXBENCH_INLINE bool is_nan(u32 v) { return (v & kMagnitude) > kInf; }
PTXBENCH_INLINE u32 flushed(u32 v, bool ftz) {
  return select(ftz & ((v & kMagnitude) < 0x00800000), v & kSign, v);
}
PTXBENCH_INLINE u32 rectified(u32 v, bool relu) {
  return select(relu & ((v & kSign) != 0) & !is_nan(v), 0, v);
}

// What is added to the integer part @p t of a number whose rest, of the same sign, is @p rest.
PTXBENCH_INLINE u32 step(u32 t, float rest, bool nearest, bool down, bool up) {
  const bool odd = (t & 1) != 0;
  const bool more = (nearest & ((rest > 0.5f) | ((rest == 0.5f) & odd))) | (up & (rest > 0.0f));
  const bool less = (nearest & ((rest < -0.5f) | ((rest == -0.5f) & odd))) | (down & (rest < 0.0f));
  return static_cast<u32>(more) - static_cast<u32>(less);
}

// f32 to e4m3 and e5m2 as nearest_f16 does it; beyond the largest number that number.
PTXBENCH_INLINE u32 nearest_e4m3(u32 v) {
  const u32 magnitude = v & kMagnitude;
  const u32 normal = (magnitude - (120u << 23) + 0x7ffff + (magnitude >> 20 & 1)) >> 20;
  const u32 subnormal = std::bit_cast<u32>(value_of(magnitude) + 0x1p14f) - 0x46800000;  // of units 2^-9
  u32 out = select(magnitude < 0x3c800000, subnormal, normal);                           // 2^-6
  out = select(out > 0x7e, 0x7e, out);
  return select(magnitude > kInf, 0x7f, out | (v >> 24 & 0x80));
}
PTXBENCH_INLINE u32 nearest_e5m2(u32 v) {
  const u32 magnitude = v & kMagnitude;
  const u32 normal = (magnitude - (112u << 23) + 0xfffff + (magnitude >> 21 & 1)) >> 21;
  const u32 subnormal = std::bit_cast<u32>(value_of(magnitude) + 0x1p7f) - 0x43000000;  // of units 2^-16
  u32 out = select(magnitude < 0x38800000, subnormal, normal);                          // 2^-14
  out = select(out > 0x7b, 0x7b, out);
  return select(magnitude > kInf, 0x7f, out | (v >> 24 & 0x80));
}
PTXBENCH_INLINE u32 f16_of_e4m3(u32 v) {
  const u32 magnitude = v & 0x7f;
  const u32 normal = (magnitude << 7) + (8u << 10);
  const u32 subnormal =
      nearest_f16(std::bit_cast<u32>(static_cast<float>(static_cast<i32>(magnitude)) * 0x1p-9f));
  const u32 out = select(magnitude < 8, subnormal, normal) | (v & 0x80) << 8;
  return select(magnitude == 0x7f, 0x7fff, out);
}
PTXBENCH_INLINE u32 f16_of_e5m2(u32 v) { return select((v & 0x7f) > 0x7c, 0x7fff, (v & 0xff) << 8); }
PTXBENCH_INLINE u32 rectified_f16(u32 h, bool relu) {
  return select(relu & ((h & 0x8000) != 0) & ((h & 0x7fff) <= 0x7c00), 0, h);
}
// A half beyond the largest number is that number; @p infinity is the pattern after it.
PTXBENCH_INLINE u32 finite(u32 h, u32 infinity, bool satfinite) {
  return select(satfinite & ((h & 0x7fff) == infinity), (h & 0x8000) | (infinity - 1), h);
}

#define PTXBENCH_PAIR_LANES(name, narrow)                                              \
  PTXBENCH_CLONES void name(u32* d, const u32* x, const u32* y, bool relu, bool sat) { \
    PTXBENCH_LANE_LOOP                                                                 \
    for (int i = 0; i < kLaneCount; ++i) {                                             \
      const u32 a = rectified(x[i], relu), b = rectified(y[i], relu);                  \
      d[i] = narrow;                                                                   \
    }                                                                                  \
  }
PTXBENCH_PAIR_LANES(lanes_f16x2,
                    finite(nearest_f16(a), 0x7c00, sat) << 16 | finite(nearest_f16(b), 0x7c00, sat))
PTXBENCH_PAIR_LANES(lanes_bf16x2,
                    finite(nearest_bf16(a), 0x7f80, sat) << 16 | finite(nearest_bf16(b), 0x7f80, sat))
PTXBENCH_PAIR_LANES(lanes_e4m3x2, ((void)sat, nearest_e4m3(a) << 8 | nearest_e4m3(b)))
PTXBENCH_PAIR_LANES(lanes_e5m2x2, ((void)sat, nearest_e5m2(a) << 8 | nearest_e5m2(b)))

#define PTXBENCH_RELU_LANES(name, expression)                  \
  PTXBENCH_CLONES void name(u32* d, const u32* x, bool relu) { \
    PTXBENCH_LANE_LOOP                                         \
    for (int i = 0; i < kLaneCount; ++i) {                     \
      const u32 v = x[i];                                      \
      d[i] = expression;                                       \
    }                                                          \
  }
PTXBENCH_RELU_LANES(lanes_e4m3x2_f16, nearest_e4m3(rectified(widen_f16(v >> 16), relu)) << 8 |
                                          nearest_e4m3(rectified(widen_f16(v & 0xffff), relu)))
PTXBENCH_RELU_LANES(lanes_e5m2x2_f16, nearest_e5m2(rectified(widen_f16(v >> 16), relu)) << 8 |
                                          nearest_e5m2(rectified(widen_f16(v & 0xffff), relu)))
PTXBENCH_RELU_LANES(lanes_f16x2_e4m3, rectified_f16(f16_of_e4m3(v >> 8 & 0xff), relu) << 16 |
                                          rectified_f16(f16_of_e4m3(v & 0xff), relu))
PTXBENCH_RELU_LANES(lanes_f16x2_e5m2, rectified_f16(f16_of_e5m2(v >> 8 & 0xff), relu) << 16 |
                                          rectified_f16(f16_of_e5m2(v & 0xff), relu))

PTXBENCH_CLONES void lanes_s32(u32* d, const u32* a, bool nearest, bool down, bool up, bool ftz, i32 low,
                               i32 high) {
  PTXBENCH_LANE_LOOP
  for (int i = 0; i < kLaneCount; ++i) {
    const float v = value_of(flushed(a[i], ftz));
    const bool above = v >= 2147483648.0f, below = v < -2147483648.0f,
               inside = (v >= -2147483648.0f) & !above;
    const float x = value_of(select(inside, std::bit_cast<u32>(v), 0));  // NaN gives 0
    const i32 t = static_cast<i32>(x);
    u32 out = static_cast<u32>(t) + step(static_cast<u32>(t), x - static_cast<float>(t), nearest, down, up);
    out = select(above, 0x7fffffff, select(below, kSign, out));
    i32 r = static_cast<i32>(out);
    r = r < low ? low : r;
    r = r > high ? high : r;
    d[i] = static_cast<u32>(r);
  }
}
PTXBENCH_CLONES void lanes_u32(u32* d, const u32* a, bool nearest, bool down, bool up, bool ftz) {
  PTXBENCH_LANE_LOOP
  for (int i = 0; i < kLaneCount; ++i) {
    const float v = value_of(flushed(a[i], ftz));
    const bool above = v >= 4294967296.0f, inside = (v >= 0.0f) & !above;  // negative numbers give 0
    const float x = value_of(select(inside, std::bit_cast<u32>(v), 0));
    const u32 t = static_cast<u32>(x);
    d[i] = select(above, ~0u, t + step(t, x - static_cast<float>(t), nearest, down, up));
  }
}
PTXBENCH_CLONES void lanes_integral(u32* d, const u32* a, bool nearest, bool down, bool up, bool ftz) {
  PTXBENCH_LANE_LOOP
  for (int i = 0; i < kLaneCount; ++i) {
    const u32 v = flushed(a[i], ftz);
    const bool inside = (v & kMagnitude) < 0x4b000000;  // 2^23: beyond it there is no fraction
    const float x = value_of(select(inside, v, 0));
    const i32 t = static_cast<i32>(x);
    const u32 whole =
        static_cast<u32>(t) + step(static_cast<u32>(t), x - static_cast<float>(t), nearest, down, up);
    const u32 out = std::bit_cast<u32>(static_cast<float>(static_cast<i32>(whole))) | (v & kSign);
    d[i] = select(is_nan(v), kNanF32, select(inside, out, v));
  }
}

PTXBENCH_CLONES void lanes_f64(u64* d, const u32* a, bool ftz) {
  for (int i = 0; i < kLaneCount; ++i) {
    const u32 v = flushed(a[i], ftz);
    const u64 quiet =
        static_cast<u64>(v >> 31) << 63 | kInfF64 | 0x0008000000000000 | u64{v & 0x7fffff} << 29;
    const u64 nan = select(ftz, u64{kNanF32} << 32 | 0xe0000000, quiet);
    d[i] = select(is_nan(v), nan, f64_from_f32_bits(v));
  }
}
PTXBENCH_CLONES void lanes_f32(u32* d, const u64* a) {
  for (int i = 0; i < kLaneCount; ++i) {
    const u64 v = a[i];
    const u32 number = static_cast<u32>(round_f64<kShapeF32, Rounding::nearest_even>(v));
    const u32 nan =
        static_cast<u32>(v >> 63) << 31 | kInf | 0x00400000 | (static_cast<u32>(v >> 29) & 0x7fffff);
    d[i] = select((v & ~kSignF64) > kInfF64, nan, number);
  }
}

// @p half: what is added for ties of any last bit; @p even: and of an odd one.
PTXBENCH_CLONES void lanes_tf32(u32* d, const u32* a, u32 half, u32 even, bool away, bool relu,
                                bool satfinite) {
  PTXBENCH_LANE_LOOP
  for (int i = 0; i < kLaneCount; ++i) {
    const u32 v = a[i], magnitude = v & kMagnitude;
    u32 out = (magnitude + half + (magnitude >> 13 & even)) & ~0x1fffu;
    out = select(out >= kInf, select(satfinite, kInf - 0x2000, kInf), out) | (v & kSign);
    out = select(relu & ((v & kSign) != 0), 0, out);
    const u32 nan =
        select(away, (v & 0xffffe000) - select(satfinite, u32{0x2000}, u32{0}), kNanF32 & ~0x1fffu);
    d[i] = select(is_nan(v), nan, out);
  }
}

}  // namespace

void s32_from_f32(u32* d, const u32* a, Rounding rounding, bool ftz, i32 low, i32 high) {
  lanes_s32(d, a, rounding == Rounding::nearest_even, rounding == Rounding::down, rounding == Rounding::up,
            ftz, low, high);
}
void u32_from_f32(u32* d, const u32* a, Rounding rounding, bool ftz) {
  lanes_u32(d, a, rounding == Rounding::nearest_even, rounding == Rounding::down, rounding == Rounding::up,
            ftz);
}
void integral_f32(u32* d, const u32* a, Rounding rounding, bool ftz) {
  lanes_integral(d, a, rounding == Rounding::nearest_even, rounding == Rounding::down,
                 rounding == Rounding::up, ftz);
}
void f64_from_f32(u64* d, const u32* a, bool ftz) { lanes_f64(d, a, ftz); }
void f32_from_f64(u32* d, const u64* a) { lanes_f32(d, a); }
void tf32_from_f32(u32* d, const u32* a, ConvertMode mode) {
  const bool away = mode.rounding == Rounding::nearest_away,
             nearest = mode.rounding == Rounding::nearest_even;
  lanes_tf32(d, a, away ? 0x1000 : nearest ? 0xfff : 0, nearest ? 1 : 0, away, mode.relu, mode.satfinite);
}
void pairs_from_f32(FloatFormat half, u32* d, const u32* a, const u32* b, bool relu, bool satfinite) {
  (half == FloatFormat::f16 ? lanes_f16x2 : lanes_bf16x2)(d, a, b, relu, satfinite);
}
void f8x2_from_f32(FloatFormat f8, u32* d, const u32* a, const u32* b, bool relu) {
  (f8 == FloatFormat::e4m3 ? lanes_e4m3x2 : lanes_e5m2x2)(d, a, b, relu, true);
}
void f8x2_from_f16x2(FloatFormat f8, u32* d, const u32* a, bool relu) {
  (f8 == FloatFormat::e4m3 ? lanes_e4m3x2_f16 : lanes_e5m2x2_f16)(d, a, relu);
}
void f16x2_from_f8x2(FloatFormat f8, u32* d, const u32* a, bool relu) {
  (f8 == FloatFormat::e4m3 ? lanes_f16x2_e4m3 : lanes_f16x2_e5m2)(d, a, relu);
}

}  // namespace ptxbench::emulator
