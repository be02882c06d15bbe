#include "emulator/scalar_math.hpp"

#include "emulator/clones.hpp"
#include "emulator/f64_rounding.hpp"
#include "emulator/rounding.hpp"

#include <algorithm>
#include <cmath>

// f32: to nearest the host's own operation; in the other modes an f64 that is exact, or rounded so that
// rounding it again is rounding the exact result. Halves: in f32 or f64, likewise.
namespace ptxbench::emulator {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

constexpr u32 kSign = 0x80000000, kMagnitude = 0x7fffffff, kInf = 0x7f800000, kOne = 0x3f800000;

PTXBENCH_INLINE float value_of(u32 bits) { return std::bit_cast<float>(bits); }
PTXBENCH_INLINE bool is_nan(u32 v) { return (v & kMagnitude) > kInf; }
PTXBENCH_INLINE u32 flushed(u32 v) { return select((v & kMagnitude) < 0x00800000, v & kSign, v); }
PTXBENCH_INLINE u32 canonical(float r) { return select(r != r, kNanF32, std::bit_cast<u32>(r)); }
PTXBENCH_INLINE u32 clamped(u32 v) {  // NaN, negative numbers and -0 give +0
  return select(is_nan(v) | ((v & kSign) != 0), 0, select(v > kOne, kOne, v));
}
PTXBENCH_INLINE u32 finished(u32 v, FloatMode mode) {
  v = select(mode.ftz, flushed(v), v);
  return select(mode.sat, clamped(v), v);
}
PTXBENCH_INLINE u32 prepared(u32 v, FloatMode mode) { return select(mode.ftz, flushed(v), v); }
bool to_nearest(FloatMode mode) { return mode.rounding == Rounding::nearest_even; }
bool plain(FloatMode mode) { return to_nearest(mode) && !mode.ftz && !mode.sat; }

// An f64 that rounds like the exact result, as an f32.
u32 round_to_f32(double v, Rounding rounding) {
  return with_rounding(rounding, [v]<Rounding mode>() -> u32 {
    return static_cast<u32>(round_f64<kShapeF32, mode>(f64_bits(v)));
  });
}

// p + c, p a product or a number, to be rounded in that mode.
double add_for(double p, double c, Rounding rounding) {
  const double s = add_to_odd(p, c);
  // An exact zero of two signs is +0, or -0 where rounding is down.
  return s == 0.0 && rounding == Rounding::down && std::signbit(p) != std::signbit(c) ? -0.0 : s;
}

// A result that rounds like the exact one. What is subnormal before it is rounded is flushed.
u32 finished_f64(double v, FloatMode mode) {
  const u32 out = round_to_f32(v, mode.rounding);
  return finished(mode.ftz && std::fabs(v) < 0x1p-126 ? out & kSign : out, mode);
}

double f64_of(u32 v) { return f64_value(f64_from_f32_bits(v)); }

// Hot loops: to nearest without flags, and with them.
#define PTXBENCH_F32_LANES(name, expression)                                              \
  PTXBENCH_CLONES void name(u32* d, const u32* x, const u32* y) {                         \
    PTXBENCH_LANE_LOOP                                                                    \
    for (int i = 0; i < kLaneCount; ++i) {                                                \
      const float a = value_of(x[i]), b = value_of(y[i]);                                 \
      d[i] = canonical(expression);                                                       \
    }                                                                                     \
  }                                                                                       \
  PTXBENCH_CLONES void name##_flags(u32* d, const u32* x, const u32* y, FloatMode mode) { \
    PTXBENCH_LANE_LOOP                                                                    \
    for (int i = 0; i < kLaneCount; ++i) {                                                \
      const float a = value_of(prepared(x[i], mode)), b = value_of(prepared(y[i], mode)); \
      d[i] = finished(canonical(expression), mode);                                       \
    }                                                                                     \
  }

PTXBENCH_F32_LANES(lanes_add, a + b)
PTXBENCH_F32_LANES(lanes_sub, a - b)
PTXBENCH_F32_LANES(lanes_mul, a* b)
PTXBENCH_F32_LANES(lanes_div, a / b)

PTXBENCH_CLONES void lanes_rcp(u32* d, const u32* a) {
  PTXBENCH_LANE_LOOP
  for (int i = 0; i < kLaneCount; ++i) d[i] = canonical(1.0f / value_of(a[i]));
}

// fma: in hardware, or rounded to odd in f64 where there is none.
PTXBENCH_INLINE u32 portable_fma(u32 a, u32 b, u32 c) {
  const double p = static_cast<double>(value_of(a)) * static_cast<double>(value_of(b));
  return canonical(static_cast<float>(add_to_odd(p, static_cast<double>(value_of(c)))));
}
#define PTXBENCH_FMA_LANES(name, target, expression)                                           \
  target void name(u32* d, const u32* x, const u32* y, const u32* z) {                         \
    PTXBENCH_LANE_LOOP                                                                         \
    for (int i = 0; i < kLaneCount; ++i) {                                                     \
      const u32 a = x[i], b = y[i], c = z[i];                                                  \
      d[i] = expression;                                                                       \
    }                                                                                          \
  }                                                                                            \
  target void name##_flags(u32* d, const u32* x, const u32* y, const u32* z, FloatMode mode) { \
    PTXBENCH_LANE_LOOP                                                                         \
    for (int i = 0; i < kLaneCount; ++i) {                                                     \
      const u32 a = prepared(x[i], mode), b = prepared(y[i], mode), c = prepared(z[i], mode);  \
      d[i] = finished(expression, mode);                                                       \
    }                                                                                          \
  }
PTXBENCH_FMA_LANES(fma_portable, , portable_fma(a, b, c))
#if defined(__x86_64__)
PTXBENCH_FMA_LANES(fma_avx2, __attribute__((target("avx2,fma"))),
                   canonical(__builtin_fmaf(value_of(a), value_of(b), value_of(c))))
PTXBENCH_FMA_LANES(fma_avx512, __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,fma"))),
                   canonical(__builtin_fmaf(value_of(a), value_of(b), value_of(c))))
#endif

// Where flushing depends on the exact result: products and quotients that were rounded up to the least normal
// number.
PTXBENCH_INLINE bool on_the_edge(u32 v, FloatMode mode) { return mode.ftz && (v & kMagnitude) == 0x00800000; }
bool any_on_the_edge(const u32* d, FloatMode mode) {
  bool any = false;
  for (int i = 0; i < kLaneCount; ++i) any |= on_the_edge(d[i], mode);
  return any;
}

// Halves. Sums and products of f16 in f32, and sums of bf16, are exact or have bits enough that rounding
// twice is rounding once; products of bf16 leave f32's range.
struct F16 {
  static constexpr u32 kInfinity = 0x7c00, kMinNormal = 0x0400, kUnit = 0x3c00;
  PTXBENCH_INLINE static float widen(u32 h) { return value_of(widen_f16(h)); }
  // What is subnormal before it is rounded is flushed.
  PTXBENCH_INLINE static u32 narrow(float v, HalfMode mode) {
    const u32 bits = std::bit_cast<u32>(v), out = nearest_f16(bits);
    return select(mode.ftz & ((bits & kMagnitude) < 0x38800000), out & 0x8000, out);  // 2^-14
  }
  PTXBENCH_INLINE static u32 multiply(u32 a, u32 b, HalfMode mode) {
    return narrow(widen(a) * widen(b), mode);
  }
  PTXBENCH_INLINE static u32 multiply_add(u32 a, u32 b, u32 c, HalfMode mode) {
    const float p = widen(a) * widen(b), w = widen(c), s = p + w, t = s - p;  // to odd, as add_to_odd does
    const u32 error = std::bit_cast<u32>((p - (s - t)) + (w - t)), bits = std::bit_cast<u32>(s);
    const u32 toward = 1 - 2 * ((error ^ bits) >> 31);
    const bool inexact = (error & kMagnitude) - 1 < kInf;
    return narrow(value_of(bits + select(inexact, toward & ((bits & 1) - 1), 0)), mode);
  }
};
struct Bf16 {  // PTX has no ftz for it
  static constexpr u32 kInfinity = 0x7f80, kMinNormal = 0x0080, kUnit = 0x3f80;
  PTXBENCH_INLINE static float widen(u32 h) { return value_of(h << 16); }
  PTXBENCH_INLINE static double widen64(u32 h) { return static_cast<double>(value_of(h << 16)); }
  PTXBENCH_INLINE static u32 narrow(float v, HalfMode) { return nearest_bf16(std::bit_cast<u32>(v)); }
  // By way of an f32 rounded to odd.
  PTXBENCH_INLINE static u32 narrow64(double v) {
    const float rounded = static_cast<float>(v);
    const u64 error = f64_bits(v - static_cast<double>(rounded));
    const u32 bits = std::bit_cast<u32>(rounded);
    const u32 toward = 1 - 2 * (static_cast<u32>(error >> 63) ^ bits >> 31);
    const bool inexact = (error << 1 >> 1) - 1 < kInfF64;
    return nearest_bf16(bits + select(inexact, toward & ((bits & 1) - 1), 0));
  }
  PTXBENCH_INLINE static u32 multiply(u32 a, u32 b, HalfMode) { return narrow64(widen64(a) * widen64(b)); }
  PTXBENCH_INLINE static u32 multiply_add(u32 a, u32 b, u32 c, HalfMode) {
    return narrow64(add_to_odd(widen64(a) * widen64(b), widen64(c)));
  }
};

template <typename H>
PTXBENCH_INLINE u32 half_flushed(u32 h) {
  return select((h & 0x7fff) < H::kMinNormal, h & 0x8000, h);
}
template <typename H>
PTXBENCH_INLINE u32 half_prepared(u32 h, HalfMode mode) {
  return select(mode.ftz, half_flushed<H>(h), h);
}
template <typename H>
PTXBENCH_INLINE u32 half_finished(u32 h, HalfMode mode) {
  const bool nan = (h & 0x7fff) > H::kInfinity, negative = (h & 0x8000) != 0;
  h = select(mode.relu & negative & !nan, 0, h);
  return select(mode.sat, select(nan | negative, 0, select(h > H::kUnit, H::kUnit, h)), h);
}

template <typename H>
PTXBENCH_INLINE u32 half_add(u32 a, u32 b, HalfMode mode) {
  a = half_prepared<H>(a, mode), b = half_prepared<H>(b, mode);
  return half_finished<H>(H::narrow(H::widen(a) + H::widen(b), mode), mode);
}
template <typename H>
PTXBENCH_INLINE u32 half_sub(u32 a, u32 b, HalfMode mode) {
  a = half_prepared<H>(a, mode), b = half_prepared<H>(b, mode);
  return half_finished<H>(H::narrow(H::widen(a) - H::widen(b), mode), mode);
}
template <typename H>
PTXBENCH_INLINE u32 half_mul(u32 a, u32 b, HalfMode mode) {
  return half_finished<H>(H::multiply(half_prepared<H>(a, mode), half_prepared<H>(b, mode), mode), mode);
}
template <typename H>
PTXBENCH_INLINE u32 half_fma(u32 a, u32 b, u32 c, HalfMode mode) {
  a = half_prepared<H>(a, mode), b = half_prepared<H>(b, mode), c = half_prepared<H>(c, mode);
  return half_finished<H>(H::multiply_add(a, b, c, mode), mode);
}

#define PTXBENCH_HALF_LANES(name, function)                                                               \
  PTXBENCH_CLONES void name(u32* d, const u32* a, const u32* b, HalfMode mode) {                          \
    PTXBENCH_LANE_LOOP                                                                                    \
    for (int i = 0; i < kLaneCount; ++i) {                                                                \
      d[i] = function(a[i] & 0xffff, b[i] & 0xffff, mode) | function(a[i] >> 16, b[i] >> 16, mode) << 16; \
    }                                                                                                     \
  }
#define PTXBENCH_HALF_FMA_LANES(name, function)                                                \
  PTXBENCH_CLONES void name(u32* d, const u32* a, const u32* b, const u32* c, HalfMode mode) { \
    PTXBENCH_LANE_LOOP                                                                         \
    for (int i = 0; i < kLaneCount; ++i) {                                                     \
      d[i] = function(a[i] & 0xffff, b[i] & 0xffff, c[i] & 0xffff, mode) |                     \
             function(a[i] >> 16, b[i] >> 16, c[i] >> 16, mode) << 16;                         \
    }                                                                                          \
  }
PTXBENCH_HALF_LANES(lanes_add_f16, half_add<F16>)
PTXBENCH_HALF_LANES(lanes_sub_f16, half_sub<F16>)
PTXBENCH_HALF_LANES(lanes_mul_f16, half_mul<F16>)
PTXBENCH_HALF_FMA_LANES(lanes_fma_f16, half_fma<F16>)
PTXBENCH_HALF_LANES(lanes_add_bf16, half_add<Bf16>)
PTXBENCH_HALF_LANES(lanes_sub_bf16, half_sub<Bf16>)
PTXBENCH_HALF_LANES(lanes_mul_bf16, half_mul<Bf16>)
PTXBENCH_HALF_FMA_LANES(lanes_fma_bf16, half_fma<Bf16>)

// min and max compare patterns: as signed integers with the magnitude of negative ones complemented they have
// the order of the numbers, -0 below +0.
struct Order32 {
  u32 sign, infinity, smallest_normal, nan;
};
constexpr Order32 kOrderF32{kSign, kInf, 0x00800000, kNanF32}, kOrderF16{0x8000, 0x7c00, 0x0400, kNanHalf},
    kOrderBf16{0x8000, 0x7f80, 0x0080, kNanHalf};

template <Order32 order, bool take_larger>
PTXBENCH_INLINE u32 extreme(u32 a, u32 b, MinMaxMode mode) {
  constexpr u32 kMask = order.sign - 1;
  const u32 both = (a ^ b) & order.sign;
  const bool a_nan = (a & kMask) > order.infinity, b_nan = (b & kMask) > order.infinity;
  a = select(mode.ftz & ((a & kMask) < order.smallest_normal), a & order.sign, a);
  b = select(mode.ftz & ((b & kMask) < order.smallest_normal), b & order.sign, b);
  a &= select(mode.xorsign_abs, kMask, ~0u);
  b &= select(mode.xorsign_abs, kMask, ~0u);
  const i32 key_a = static_cast<i32>(select((a & order.sign) != 0, ~(a & kMask), a));
  const i32 key_b = static_cast<i32>(select((b & order.sign) != 0, ~(b & kMask), b));
  u32 out = select((key_a > key_b) == take_larger, a, b);
  out = select(a_nan, b, out);
  out = select(b_nan, a, out);
  out = select(mode.xorsign_abs, (out & kMask) | both, out);
  return select((a_nan & b_nan) | (mode.nan & (a_nan | b_nan)), order.nan, out);
}

#define PTXBENCH_EXTREME_LANES(name, order, larger)                                       \
  PTXBENCH_CLONES void name(u32* d, const u32* x, const u32* y, MinMaxMode mode) {        \
    PTXBENCH_LANE_LOOP                                                                    \
    for (int i = 0; i < kLaneCount; ++i) d[i] = extreme<order, larger>(x[i], y[i], mode); \
  }
#define PTXBENCH_HALF_EXTREME_LANES(name, order, larger)                           \
  PTXBENCH_CLONES void name(u32* d, const u32* x, const u32* y, MinMaxMode mode) { \
    PTXBENCH_LANE_LOOP                                                             \
    for (int i = 0; i < kLaneCount; ++i) {                                         \
      d[i] = extreme<order, larger>(x[i] & 0xffff, y[i] & 0xffff, mode) |          \
             extreme<order, larger>(x[i] >> 16, y[i] >> 16, mode) << 16;           \
    }                                                                              \
  }
PTXBENCH_EXTREME_LANES(lanes_min_f32, kOrderF32, false)
PTXBENCH_EXTREME_LANES(lanes_max_f32, kOrderF32, true)
PTXBENCH_HALF_EXTREME_LANES(lanes_min_f16, kOrderF16, false)
PTXBENCH_HALF_EXTREME_LANES(lanes_max_f16, kOrderF16, true)
PTXBENCH_HALF_EXTREME_LANES(lanes_min_bf16, kOrderBf16, false)
PTXBENCH_HALF_EXTREME_LANES(lanes_max_bf16, kOrderBf16, true)

template <bool take_larger>
u64 extreme_f64(u64 a, u64 b) {
  const bool a_nan = (a & ~kSignF64) > kInfF64, b_nan = (b & ~kSignF64) > kInfF64;
  if (a_nan && b_nan) return b | 0x0008000000000000;
  if (a_nan || b_nan) return a_nan ? b : a;
  const i64 key_a = static_cast<i64>((a & kSignF64) != 0 ? ~(a & ~kSignF64) : a);
  const i64 key_b = static_cast<i64>((b & kSignF64) != 0 ? ~(b & ~kSignF64) : b);
  return (key_a > key_b) == take_larger ? a : b;
}

constexpr u64 kQuietF64 = 0x0008000000000000;
bool is_nan64(u64 v) { return (v & ~kSignF64) > kInfF64; }
// f64 keeps payloads: a NaN operand becomes quiet and is the result. A new NaN is 0xfff8000000000000.
u64 made_f64(double v) { return v != v ? kNanF64 : f64_bits(v); }

u32 of_pair(u32 (*f)(u32, bool), u32 v, bool ftz) { return f(v & 0xffff, ftz) | f(v >> 16, ftz) << 16; }
template <Order32 order, bool negate>
u32 half_sign(u32 h, bool ftz) {
  if ((h & 0x7fff) > order.infinity) return kNanHalf;
  if (ftz && (h & 0x7fff) < order.smallest_normal) h &= 0x8000;
  return negate ? h ^ 0x8000 : h & 0x7fff;
}

}  // namespace

u32 add_f32(u32 a, u32 b, FloatMode mode) {
  a = prepared(a, mode), b = prepared(b, mode);
  if (to_nearest(mode))
    return finished(canonical(value_of(a) + value_of(b)), mode);  // what is subnormal is exact
  return finished_f64(add_for(f64_of(a), f64_of(b), mode.rounding), mode);
}
u32 sub_f32(u32 a, u32 b, FloatMode mode) { return add_f32(a, b ^ kSign, mode); }
u32 mul_f32(u32 a, u32 b, FloatMode mode) {
  return finished_f64(f64_of(prepared(a, mode)) * f64_of(prepared(b, mode)), mode);
}
u32 fma_f32(u32 a, u32 b, u32 c, FloatMode mode) {
  const double product = f64_of(prepared(a, mode)) * f64_of(prepared(b, mode));
  // Unlike a product, its result is flushed as it is after rounding.
  const double sum = add_for(product, f64_of(prepared(c, mode)), mode.rounding);
  return finished(round_to_f32(sum, mode.rounding), mode);
}
// A quotient or root of f32 numbers that is no f32 and no midpoint of two is further from one than an f64's
// error.
u32 div_f32(u32 a, u32 b, FloatMode mode) {
  return finished_f64(f64_of(prepared(a, mode)) / f64_of(prepared(b, mode)), mode);
}
u32 rcp_f32(u32 a, FloatMode mode) { return div_f32(kOne, a, mode); }
u32 sqrt_f32(u32 a, FloatMode mode) { return finished_f64(std::sqrt(f64_of(prepared(a, mode))), mode); }

#define PTXBENCH_F32_ARRAYS(name)                                                   \
  void name##_f32(u32* d, const u32* x, const u32* y, FloatMode mode) {             \
    if (plain(mode)) return lanes_##name(d, x, y);                                  \
    if (to_nearest(mode)) {                                                         \
      alignas(64) u32 out[kLaneCount];                                              \
      lanes_##name##_flags(out, x, y, mode);                                        \
      if (any_on_the_edge(out, mode)) {                                             \
        for (int i = 0; i < kLaneCount; ++i) out[i] = name##_f32(x[i], y[i], mode); \
      }                                                                             \
      std::copy(out, out + kLaneCount, d);                                          \
      return;                                                                       \
    }                                                                               \
    for (int i = 0; i < kLaneCount; ++i) d[i] = name##_f32(x[i], y[i], mode);       \
  }
PTXBENCH_F32_ARRAYS(add)
PTXBENCH_F32_ARRAYS(sub)
PTXBENCH_F32_ARRAYS(mul)
PTXBENCH_F32_ARRAYS(div)

void fma_f32(u32* d, const u32* a, const u32* b, const u32* c, FloatMode mode) {
  if (!to_nearest(mode)) {
    for (int i = 0; i < kLaneCount; ++i) d[i] = fma_f32(a[i], b[i], c[i], mode);
    return;
  }
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) {
    return plain(mode) ? fma_avx512(d, a, b, c) : fma_avx512_flags(d, a, b, c, mode);
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return plain(mode) ? fma_avx2(d, a, b, c) : fma_avx2_flags(d, a, b, c, mode);
  }
#endif
  plain(mode) ? fma_portable(d, a, b, c) : fma_portable_flags(d, a, b, c, mode);
}
void rcp_f32(u32* d, const u32* a, FloatMode mode) {
  if (plain(mode)) return lanes_rcp(d, a);
  for (int i = 0; i < kLaneCount; ++i) d[i] = rcp_f32(a[i], mode);
}
void sqrt_f32(u32* d, const u32* a, FloatMode mode) {
  if (plain(mode)) {
    for (int i = 0; i < kLaneCount; ++i) d[i] = canonical(std::sqrt(value_of(a[i])));
    return;
  }
  for (int i = 0; i < kLaneCount; ++i) d[i] = sqrt_f32(a[i], mode);
}

u64 add_f64(u64 a, u64 b, Rounding rounding) {
  if (is_nan64(b)) return b | kQuietF64;
  if (is_nan64(a)) return a | kQuietF64;
  if (rounding == Rounding::nearest_even) return made_f64(f64_value(a) + f64_value(b));
  return fma_f64(a, f64_bits(1.0), b, rounding);
}
u64 sub_f64(u64 a, u64 b, Rounding rounding) { return add_f64(a, is_nan64(b) ? b : b ^ kSignF64, rounding); }
u64 mul_f64(u64 a, u64 b, Rounding rounding) {
  if (is_nan64(b)) return b | kQuietF64;
  if (is_nan64(a)) return a | kQuietF64;
  const double x = f64_value(a), y = f64_value(b);
  if (rounding == Rounding::nearest_even || !std::isfinite(x) || !std::isfinite(y)) return made_f64(x * y);
  return exact_product(a, b, rounding);
}
u64 fma_f64(u64 a, u64 b, u64 c, Rounding rounding) {
  if (is_nan64(b)) return b | kQuietF64;
  if (is_nan64(c)) return c | kQuietF64;
  if (is_nan64(a)) return a | kQuietF64;
  const double x = f64_value(a), y = f64_value(b), z = f64_value(c);
  if (rounding == Rounding::nearest_even || !std::isfinite(x) || !std::isfinite(y) || !std::isfinite(z)) {
    return made_f64(std::fma(x, y, z));
  }
  return exact_product_sum(a, b, c, rounding);
}
u64 div_f64(u64 a, u64 b, Rounding rounding) {
  if (is_nan64(a)) return a | kQuietF64;
  if (is_nan64(b)) return b | kQuietF64;
  const double x = f64_value(a), y = f64_value(b);
  if (rounding == Rounding::nearest_even || !std::isfinite(x) || !std::isfinite(y) || x == 0.0 || y == 0.0) {
    return made_f64(x / y);
  }
  return exact_quotient(a, b, rounding);
}
u64 rcp_f64(u64 a, Rounding rounding) { return div_f64(f64_bits(1.0), a, rounding); }
u64 sqrt_f64(u64 a, Rounding rounding) {
  if (is_nan64(a)) return a | kQuietF64;
  const double x = f64_value(a);
  if (rounding == Rounding::nearest_even || !(x > 0.0) || !std::isfinite(x)) return made_f64(std::sqrt(x));
  return exact_root(a, rounding);
}

#define PTXBENCH_F64_ARRAYS(name)                                                 \
  void name##_f64(u64* d, const u64* a, const u64* b, Rounding rounding) {        \
    for (int i = 0; i < kLaneCount; ++i) d[i] = name##_f64(a[i], b[i], rounding); \
  }
PTXBENCH_F64_ARRAYS(add)
PTXBENCH_F64_ARRAYS(sub)
PTXBENCH_F64_ARRAYS(mul)
PTXBENCH_F64_ARRAYS(div)
void fma_f64(u64* d, const u64* a, const u64* b, const u64* c, Rounding rounding) {
  for (int i = 0; i < kLaneCount; ++i) d[i] = fma_f64(a[i], b[i], c[i], rounding);
}
void rcp_f64(u64* d, const u64* a, Rounding rounding) {
  for (int i = 0; i < kLaneCount; ++i) d[i] = rcp_f64(a[i], rounding);
}
void sqrt_f64(u64* d, const u64* a, Rounding rounding) {
  for (int i = 0; i < kLaneCount; ++i) d[i] = sqrt_f64(a[i], rounding);
}

#define PTXBENCH_HALF_ARRAYS(name, half)                                      \
  void name##_##half##x2(u32* d, const u32* a, const u32* b, HalfMode mode) { \
    lanes_##name##_##half(d, a, b, mode);                                     \
  }
PTXBENCH_HALF_ARRAYS(add, f16)
PTXBENCH_HALF_ARRAYS(sub, f16)
PTXBENCH_HALF_ARRAYS(mul, f16)
PTXBENCH_HALF_ARRAYS(add, bf16)
PTXBENCH_HALF_ARRAYS(sub, bf16)
PTXBENCH_HALF_ARRAYS(mul, bf16)
void fma_f16x2(u32* d, const u32* a, const u32* b, const u32* c, HalfMode mode) {
  lanes_fma_f16(d, a, b, c, mode);
}
void fma_bf16x2(u32* d, const u32* a, const u32* b, const u32* c, HalfMode mode) {
  lanes_fma_bf16(d, a, b, c, mode);
}

void min_f32(u32* d, const u32* a, const u32* b, MinMaxMode mode) { lanes_min_f32(d, a, b, mode); }
void max_f32(u32* d, const u32* a, const u32* b, MinMaxMode mode) { lanes_max_f32(d, a, b, mode); }
void min_f64(u64* d, const u64* a, const u64* b) {
  for (int i = 0; i < kLaneCount; ++i) d[i] = extreme_f64<false>(a[i], b[i]);
}
void max_f64(u64* d, const u64* a, const u64* b) {
  for (int i = 0; i < kLaneCount; ++i) d[i] = extreme_f64<true>(a[i], b[i]);
}
void min_f16x2(u32* d, const u32* a, const u32* b, MinMaxMode mode) { lanes_min_f16(d, a, b, mode); }
void max_f16x2(u32* d, const u32* a, const u32* b, MinMaxMode mode) { lanes_max_f16(d, a, b, mode); }
void min_bf16x2(u32* d, const u32* a, const u32* b, MinMaxMode mode) { lanes_min_bf16(d, a, b, mode); }
void max_bf16x2(u32* d, const u32* a, const u32* b, MinMaxMode mode) { lanes_max_bf16(d, a, b, mode); }

u32 abs_f32(u32 a, bool ftz) { return is_nan(a) ? kNanF32 : (ftz ? flushed(a) : a) & kMagnitude; }
u32 neg_f32(u32 a, bool ftz) { return is_nan(a) ? kNanF32 : (ftz ? flushed(a) : a) ^ kSign; }
u64 abs_f64(u64 a) { return is_nan64(a) ? a | kQuietF64 : a & ~kSignF64; }
u64 neg_f64(u64 a) { return is_nan64(a) ? a | kQuietF64 : a ^ kSignF64; }
u32 abs_f16x2(u32 a, bool ftz) { return of_pair(half_sign<kOrderF16, false>, a, ftz); }
u32 neg_f16x2(u32 a, bool ftz) { return of_pair(half_sign<kOrderF16, true>, a, ftz); }
u32 abs_bf16x2(u32 a) { return of_pair(half_sign<kOrderBf16, false>, a, false); }
u32 neg_bf16x2(u32 a) { return of_pair(half_sign<kOrderBf16, true>, a, false); }

bool test_f32(FloatTest test, u32 a) {
  const u32 magnitude = a & kMagnitude;
  switch (test) {
    case FloatTest::finite:
      return magnitude < kInf;
    case FloatTest::infinite:
      return magnitude == kInf;
    case FloatTest::number:
      return magnitude <= kInf;
    case FloatTest::not_a_number:
      return magnitude > kInf;
    case FloatTest::normal:
      return (magnitude >= 0x00800000 || magnitude == 0) && magnitude < kInf;
    case FloatTest::subnormal:
      return magnitude < 0x00800000 && magnitude != 0;
  }
  return false;
}
bool test_f64(FloatTest test, u64 a) {
  const u64 magnitude = a & ~kSignF64, smallest = u64{1} << 52;
  switch (test) {
    case FloatTest::finite:
      return magnitude < kInfF64;
    case FloatTest::infinite:
      return magnitude == kInfF64;
    case FloatTest::number:
      return magnitude <= kInfF64;
    case FloatTest::not_a_number:
      return magnitude > kInfF64;
    case FloatTest::normal:
      return (magnitude >= smallest || magnitude == 0) && magnitude < kInfF64;
    case FloatTest::subnormal:
      return magnitude < smallest && magnitude != 0;
  }
  return false;
}

}  // namespace ptxbench::emulator
