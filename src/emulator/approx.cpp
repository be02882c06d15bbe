#include "emulator/approx.hpp"

#include "emulator/approx_tables.hpp"
#include "emulator/clones.hpp"
#include "emulator/lane_loop.hpp"

#include <bit>

// The card's multi-function unit evaluates one quadratic a segment in fixed point,
//   p = (A << s) + B*x + (C*q << t) + K,   q = a truncated square of x,
// and truncates p. Everything here is written without branches, so that loops over lanes become vector code.
namespace ptxbench::emulator {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

constexpr u32 kSign = 0x80000000, kMagnitude = 0x7fffffff, kInf = 0x7f800000, kNan = 0x7fffffff;
constexpr u32 kMinNormal = 0x00800000, kHidden = 0x00800000, kFraction = 0x007fffff;

PTXBENCH_INLINE float to_float(u32 bits) { return std::bit_cast<float>(bits); }
PTXBENCH_INLINE u32 to_bits(float value) { return std::bit_cast<u32>(value); }
PTXBENCH_INLINE u32 exponent_of(u32 v) { return v >> 23 & 255; }
PTXBENCH_INLINE bool is_nan(u32 v) { return (v & kMagnitude) > kInf; }
PTXBENCH_INLINE bool below_normal(u32 v) { return (v & kMagnitude) < kMinNormal; }

// The square of a 17-bit x in units of 2^19. The unit has no partial product of bits i and j with i + j < 18:
// of x = high*2^9 + low all of high*high exists, some of high*low, and none of low*low.
PTXBENCH_INLINE u32 truncated_square(u32 x) {
  const u32 high = x >> 9, low = x & 0x1ff;
  u32 cross = 0;
  for (u32 i = 1; i < 8; ++i) cross += (low >> (9 - i)) & (0u - (high >> i & 1u));
  return (high * high + 2 * cross) >> 1;
}

// floor(p / 2^drop) for an A shifted by drop + rest: with B = B1*2^drop + B0 no sum needs more than 32 bits.
template <int drop, int rest, int square_shift>
PTXBENCH_INLINE u32 quadratic32(i32 a, i32 b, i32 c, u32 x, u32 square, i32 k) {
  const i32 b1 = b >> drop, b0 = b & ((1 << drop) - 1);
  const i32 low = b0 * static_cast<i32>(x) + c * static_cast<i32>(square) * (1 << square_shift) + k;
  return (static_cast<u32>(a) << rest) + static_cast<u32>(b1) * x + static_cast<u32>(low >> drop);
}

template <int a_shift, int square_shift>
PTXBENCH_INLINE i64 quadratic64(i32 a, i32 b, i32 c, u32 x, u32 square) {
  return static_cast<i64>(a) * (i64{1} << a_shift) + static_cast<i64>(b) * static_cast<i64>(x) +
         static_cast<i64>(c) * static_cast<i64>(square) * (i64{1} << square_shift);
}

// A fixed-point 0 <= v < 2^52 with that many fraction bits as a float, truncated.
PTXBENCH_INLINE u32 normalize(i64 v, u32 fraction_bits) {
  const u64 bits = std::bit_cast<u64>(static_cast<double>(v));
  const u32 rebiased = static_cast<u32>(bits >> 29) - ((1023 - 127 + fraction_bits) << 23);
  return select(v == 0, 0, rebiased);
}

// 1/1.fraction, rounded up to 32 significant bits: p / 2^8.
PTXBENCH_INLINE u32 rcp_sum(u32 fraction) {
  const u32 i = fraction >> 16, x = fraction & 0xffff;
  return quadratic32<8, 5, 0>(kRcpTable.a[i], kRcpTable.b[i], kRcpTable.c[i], x, truncated_square(x << 1),
                              0x47e7);
}

// 1/sqrt(m) of an m in [1,4), which is the exponent's parity and the fraction in 24 bits: p / 2^8.
PTXBENCH_INLINE u32 rsqrt_sum(u32 m) {
  const u32 i = m >> 17, x = m & 0x1ffff;
  return quadratic32<8, 6, 2>(kRsqrtTable.a[i], kRsqrtTable.b[i], kRsqrtTable.c[i], x, truncated_square(x),
                              0x7fff);
}

PTXBENCH_INLINE u32 unit_rcp(u32 v) {
  const i32 exponent = static_cast<i32>(exponent_of(v));
  // The mantissa has its hidden bit, which adds one to the exponent.
  const i32 r = (252 - exponent) * (1 << 23) + static_cast<i32>(rcp_sum(v & kFraction) >> 7);
  u32 out = select(r < static_cast<i32>(kMinNormal), 0, static_cast<u32>(r));
  out = select(exponent == 0, kInf, out);
  out = select(exponent == 255, 0, out);
  return select(is_nan(v), kNan, out | (v & kSign));
}

PTXBENCH_INLINE u32 unit_rsqrt(u32 v) {
  const i32 exponent = static_cast<i32>(exponent_of(v)) - 127;
  const u32 m = (v & kFraction) | static_cast<u32>(exponent & 1) << 23;
  const i32 mantissa =
      static_cast<i32>(select(m == 0, 1 << 24, rsqrt_sum(m) >> 8));  // m = 1 passes the table by
  u32 out = static_cast<u32>((125 - (exponent >> 1)) * (1 << 23) + mantissa);
  out = select(exponent == 128, 0, out);
  out = select((v & kSign) != 0, kNan, out);
  out = select(exponent == -127, (v & kSign) | kInf, out);
  return select(is_nan(v), kNan, out);
}

PTXBENCH_INLINE u32 unit_sqrt(u32 v) {
  const i32 exponent = static_cast<i32>(exponent_of(v)) - 127;
  const u32 m = (v & kFraction) | static_cast<u32>(exponent & 1) << 23, i = m >> 17, x = m & 0x1ffff;
  const u32 sum =
      quadratic32<9, 6, 1>(kSqrtTable.a[i], kSqrtTable.b[i], kSqrtTable.c[i], x, truncated_square(x), 0x7fff);
  u32 out = static_cast<u32>((126 + (exponent >> 1)) * (1 << 23)) + (sum >> 8);
  out = select(exponent == 128, kInf, out);
  out = select((v & kSign) != 0, kNan, out);
  out = select(exponent == -127, v & kSign, out);
  return select(is_nan(v), kNan, out);
}

PTXBENCH_INLINE u32 unit_ex2(u32 v) {
  const u32 exponent = exponent_of(v), negative = 0u - (v >> 31);
  const u32 shift = 134 - exponent;
  u32 fixed =
      ((v & kFraction) | kHidden) << 7 >> (shift < 31 ? shift : 31);  // |x|, 23 fraction bits, truncated
  // A negative x is complemented where it has a fraction, and negated where it has none.
  fixed = (fixed ^ negative) + (negative & static_cast<u32>((fixed & kFraction) == 0));
  const u32 i = fixed >> 17 & 63, x = fixed & 0x1ffff;
  const u32 sum =
      quadratic32<8, 5, 0>(kEx2Table.a[i], kEx2Table.b[i], kEx2Table.c[i], x, truncated_square(x), 0x77e2);
  const i32 r = static_cast<i32>((fixed & ~kFraction) + (126u << 23) + (sum >> 7));
  u32 out = select(r < static_cast<i32>(kMinNormal), 0, static_cast<u32>(r));
  out = select(exponent >= 134, kInf & ~negative, out);
  return select(is_nan(v), kNan, out);
}

PTXBENCH_INLINE u32 unit_lg2(u32 v) {
  const i32 exponent = static_cast<i32>(exponent_of(v)) - 127;
  const u32 i = v >> 17 & 63, x = v & 0x1ffff;
  const i64 fraction =
      (quadratic64<12, 1>(kLg2Table.a[i], kLg2Table.b[i], kLg2Table.c[i], x, truncated_square(x)) + 0x3345) >>
      2;
  i64 sum = fraction + static_cast<i64>(exponent) * (i64{1} << 36);
  sum &= static_cast<i64>(v == 0x3f800000) - 1;  // 1 passes the table by
  const i64 negative = sum >> 63;
  u32 out = normalize(sum ^ negative, 36) | (static_cast<u32>(negative) & kSign);
  out = select(exponent == 128, kInf, out);
  out = select((v & kSign) != 0, kNan, out);
  out = select(exponent == -127, kSign | kInf, out);
  return select(is_nan(v), kNan, out);
}

// sin of v turns, or with quadrant 1 cos.
PTXBENCH_INLINE u32 unit_sin(u32 v, u32 quadrant) {
  const u32 exponent = exponent_of(v), mantissa = (v & kFraction) | kHidden;
  const u32 left = exponent - 125, right = 125 - exponent;  // one of them is huge
  // |x| in units of 2^-25, truncated; whole turns run over the top or are not looked at.
  u32 fixed = select(exponent >= 125, select(left < 25, mantissa << (left & 31), 0),
                     mantissa >> (right < 31 ? right : 31));
  fixed += quadrant << 23;
  const u32 sign = (fixed << 7 & kSign) ^ select(quadrant == 0, v & kSign, 0);
  const u32 f = (fixed ^ (0u - (fixed >> 23 & 1u))) & kFraction;
  const u32 i = f >> 17, x = f & 0x1ffff;
  const i64 p = quadratic64<11, 0>(kSinTable.a[i], kSinTable.b[i], kSinTable.c[i], x, truncated_square(x));
  return select(exponent == 255, kNan, sign | normalize(p, 37));
}

constexpr u32 kTanhLow = 0x3b800000, kTanhHigh = 0x41000000;  // 2^-8: below it tanh(x) = x; 8: above it 1

PTXBENCH_INLINE u32 unit_tanh(u32 v) {
  const u32 magnitude = v & kMagnitude, fraction = v & kFraction;
  const u32 clamped =
      select(magnitude < kTanhLow, kTanhLow, select(magnitude >= kTanhHigh, kTanhHigh - 1, magnitude));
  const u32 octave = (clamped - kTanhLow) >> 23, bits = static_cast<u32>(kTanhBits[octave]);
  const u32 i = static_cast<u32>(kTanhFirst[octave]) + (fraction >> (23 - bits));
  const u32 x = fraction >> (6 - bits) & 0x1ffff;
  const i64 p = quadratic64<13, 0>(kTanhTable.a[i], kTanhTable.b[i], kTanhTable.c[i], x, truncated_square(x));
  u32 out = normalize(p, 39);
  out = select(magnitude >= kTanhHigh, 0x3f800000, out);
  out = select(magnitude < kTanhLow, magnitude, out);
  return select(magnitude > kInf, kNan, out | (v & kSign));
}

PTXBENCH_INLINE u32 unit_rcp64h(u32 v) {
  const i32 exponent = static_cast<i32>(v >> 20 & 2047);
  const i32 r = (2044 - exponent) * (1 << 20) + static_cast<i32>(rcp_sum((v & 0xfffff) << 3) >> 10);
  u32 out = select(r < 0x00100000, 0, static_cast<u32>(r));
  out = select(exponent == 0, 0x7ff00000, out);
  out = select(exponent == 2047, 0, out);
  return select((v & kMagnitude) > 0x7ff00000, kNan, out | (v & kSign));
}

PTXBENCH_INLINE u32 unit_rsqrt64h(u32 v) {
  const i32 exponent = static_cast<i32>(v >> 20 & 2047) - 1023;
  const u32 m = (v & 0xfffff) << 3 | static_cast<u32>(exponent & 1) << 23;
  const i32 mantissa = static_cast<i32>(select(m == 0, 1 << 21, rsqrt_sum(m) >> 11));
  u32 out = static_cast<u32>((1021 - (exponent >> 1)) * (1 << 20) + mantissa);
  out = select(exponent == 1024, 0, out);
  out = select((v & kSign) != 0, kNan, out);
  out = select(exponent == -1023, (v & kSign) | 0x7ff00000, out);
  return select((v & kMagnitude) > 0x7ff00000, kNan, out);
}

// What ptxas puts around the unit: scaling by powers of two, so that subnormals survive.

// a * b to nearest with the card's NaN.
PTXBENCH_INLINE u32 times(u32 a, float b) {
  const u32 product = to_bits(to_float(a) * b);
  return select(is_nan(product), kNan, product);
}
PTXBENCH_INLINE u32 flush(u32 v) { return select(below_normal(v), v & kSign, v); }

// What to scale by: `high` or `low` where that holds, else 1.
PTXBENCH_INLINE float scale_of(bool if_high, float high, bool if_low, float low) {
  return to_float(select(if_high, to_bits(high), select(if_low, to_bits(low), to_bits(1.0f))));
}

PTXBENCH_INLINE u32 full_ex2(u32 v) {
  const bool low = to_float(v) < -126.0f;
  const u32 r = unit_ex2(select(low, to_bits(to_float(v) * 0.5f), v));
  return select(low, to_bits(to_float(r) * to_float(r)), r);
}
PTXBENCH_INLINE u32 full_lg2(u32 v) {
  const u32 r = unit_lg2(select(below_normal(v), times(v, 0x1p24f), v));
  const u32 shifted = to_bits(to_float(r) - 24.0f);
  return select(below_normal(v), select(is_nan(shifted), kNan, shifted), r);
}
PTXBENCH_INLINE u32 full_rcp(u32 v) {
  const u32 magnitude = v & kMagnitude;
  const float scale = scale_of(magnitude > 0x7e800000, 0x1p-2f, magnitude < kMinNormal, 0x1p24f);
  return times(unit_rcp(times(v, scale)), scale);
}
PTXBENCH_INLINE u32 full_rsqrt(u32 v) {
  const bool low = below_normal(v);
  return times(unit_rsqrt(times(v, scale_of(false, 1.0f, low, 0x1p24f))),
               scale_of(false, 1.0f, low, 0x1p12f));
}
PTXBENCH_INLINE u32 full_sqrt(u32 v) {
  const bool low = below_normal(v);
  return times(unit_sqrt(times(v, scale_of(false, 1.0f, low, 0x1p24f))),
               scale_of(false, 1.0f, low, 0x1p-12f));
}
// v / (2 pi): a product by 0x3e22f983, truncated. A subnormal product may be 0: the unit flushes it.
PTXBENCH_INLINE u32 in_turns(u32 v) {
  const double product = static_cast<double>(to_float(v & kMagnitude)) * static_cast<double>(0x1.45f306p-3f);
  const i64 rebiased = static_cast<i64>(std::bit_cast<u64>(product) >> 29) - (i64{1023 - 127} << 23);
  u32 out = select(rebiased < static_cast<i64>(kMinNormal), 0, static_cast<u32>(rebiased));
  out = select(exponent_of(v) == 255, kInf, out);
  return out | (v & kSign);
}
PTXBENCH_INLINE u32 divide_approx_ftz(u32 a, u32 b) { return flush(times(flush(a), to_float(unit_rcp(b)))); }
PTXBENCH_INLINE u32 divide_approx(u32 a, u32 b) {
  const float scale = scale_of(false, 1.0f, below_normal(b), 0x1p24f);
  return times(times(a, scale), to_float(unit_rcp(times(b, scale))));
}
PTXBENCH_INLINE u32 divide_full_ftz(u32 a, u32 b) {
  const u32 magnitude = b & kMagnitude;
  const float scale = scale_of((magnitude > 0x7e800000) & (magnitude <= kInf), 0x1p-2f, false, 1.0f);
  const u32 scaled = flush(times(flush(a), scale));
  return flush(times(scaled, to_float(unit_rcp(times(b, scale)))));
}
PTXBENCH_INLINE u32 divide_full(u32 a, u32 b) {
  const u32 magnitude = b & kMagnitude;
  const float scale =
      scale_of((magnitude > 0x7e800000) & (magnitude <= kInf), 0x1p-2f, magnitude < kMinNormal, 0x1p24f);
  return times(times(a, scale), to_float(unit_rcp(times(b, scale))));
}

// The half forms widen exactly, and truncate the unit's result.
PTXBENCH_INLINE u32 widen_f16(u32 h) {
  const u32 exponent = h >> 10 & 31, fraction = h & 0x3ff;
  u32 out = ((h & 0x7fff) << 13) + ((127 - 15) << 23);
  out = select(exponent == 0, to_bits(static_cast<float>(static_cast<i32>(fraction)) * 0x1p-24f), out);
  out = select(exponent == 31, kInf | fraction << 13, out);
  return out | (h & 0x8000) << 16;
}
PTXBENCH_INLINE u32 truncate_f16(u32 v) {
  const u32 magnitude = v & kMagnitude, shift = 126 - (magnitude >> 23);
  const u32 subnormal = ((magnitude & kFraction) | kHidden) >> (shift < 31 ? shift : 31);
  u32 out = (magnitude - ((127 - 15) << 23)) >> 13;
  out = select(magnitude < 0x38800000, subnormal, out);  // 2^-14
  out = select(magnitude >= 0x47800000, 0x7c00, out);    // 2^16
  out |= v >> 16 & 0x8000;
  return select(magnitude > kInf, 0x7fff, out);
}
PTXBENCH_INLINE u32 truncate_bf16(u32 v) { return select(is_nan(v), 0x7fff, v >> 16); }

PTXBENCH_INLINE u32 half_ex2_f16(u32 h) { return truncate_f16(unit_ex2(widen_f16(h))); }
PTXBENCH_INLINE u32 half_ex2_bf16(u32 h) { return truncate_bf16(unit_ex2(h << 16)); }
PTXBENCH_INLINE u32 half_tanh_f16(u32 h) { return truncate_f16(unit_tanh(widen_f16(h))); }
PTXBENCH_INLINE u32 half_tanh_bf16(u32 h) { return truncate_bf16(unit_tanh(h << 16)); }

PTXBENCH_INLINE u64 high_word(u32 word) { return static_cast<u64>(word) << 32; }

PTXBENCH_UNARY_LANES(lanes_ex2_ftz, u32, unit_ex2(v))
PTXBENCH_UNARY_LANES(lanes_ex2, u32, full_ex2(v))
PTXBENCH_UNARY_LANES(lanes_lg2_ftz, u32, unit_lg2(v))
PTXBENCH_UNARY_LANES(lanes_lg2, u32, full_lg2(v))
PTXBENCH_UNARY_LANES(lanes_rcp_ftz, u32, unit_rcp(v))
PTXBENCH_UNARY_LANES(lanes_rcp, u32, full_rcp(v))
PTXBENCH_UNARY_LANES(lanes_rsqrt_ftz, u32, unit_rsqrt(v))
PTXBENCH_UNARY_LANES(lanes_rsqrt, u32, full_rsqrt(v))
PTXBENCH_UNARY_LANES(lanes_sqrt_ftz, u32, unit_sqrt(v))
PTXBENCH_UNARY_LANES(lanes_sqrt, u32, full_sqrt(v))
PTXBENCH_UNARY_LANES(lanes_sin, u32, unit_sin(in_turns(v), 0))
PTXBENCH_UNARY_LANES(lanes_cos, u32, unit_sin(in_turns(v), 1))
PTXBENCH_UNARY_LANES(lanes_tanh, u32, unit_tanh(v))
PTXBENCH_UNARY_LANES(lanes_ex2_f16x2, u32, half_ex2_f16(v & 0xffff) | half_ex2_f16(v >> 16) << 16)
PTXBENCH_UNARY_LANES(lanes_ex2_bf16x2, u32, half_ex2_bf16(v & 0xffff) | half_ex2_bf16(v >> 16) << 16)
PTXBENCH_UNARY_LANES(lanes_tanh_f16x2, u32, half_tanh_f16(v & 0xffff) | half_tanh_f16(v >> 16) << 16)
PTXBENCH_UNARY_LANES(lanes_tanh_bf16x2, u32, half_tanh_bf16(v & 0xffff) | half_tanh_bf16(v >> 16) << 16)
PTXBENCH_UNARY_LANES(lanes_rcp_f64, u64, high_word(unit_rcp64h(static_cast<u32>(v >> 32))))
PTXBENCH_UNARY_LANES(lanes_rsqrt_f64, u64, high_word(unit_rsqrt64h(static_cast<u32>(v >> 32))))
PTXBENCH_BINARY_LANES(lanes_div_approx_ftz, divide_approx_ftz(a, b))
PTXBENCH_BINARY_LANES(lanes_div_approx, divide_approx(a, b))
PTXBENCH_BINARY_LANES(lanes_div_full_ftz, divide_full_ftz(a, b))
PTXBENCH_BINARY_LANES(lanes_div_full, divide_full(a, b))

}  // namespace

u32 ex2_approx(u32 a, bool ftz) { return ftz ? unit_ex2(a) : full_ex2(a); }
u32 lg2_approx(u32 a, bool ftz) { return ftz ? unit_lg2(a) : full_lg2(a); }
u32 rcp_approx(u32 a, bool ftz) { return ftz ? unit_rcp(a) : full_rcp(a); }
u32 rsqrt_approx(u32 a, bool ftz) { return ftz ? unit_rsqrt(a) : full_rsqrt(a); }
u32 sqrt_approx(u32 a, bool ftz) { return ftz ? unit_sqrt(a) : full_sqrt(a); }
u32 sin_approx(u32 a) { return unit_sin(in_turns(a), 0); }
u32 cos_approx(u32 a) { return unit_sin(in_turns(a), 1); }
u32 tanh_approx(u32 a) { return unit_tanh(a); }
u32 div_approx(u32 a, u32 b, bool ftz) { return ftz ? divide_approx_ftz(a, b) : divide_approx(a, b); }
u32 div_full(u32 a, u32 b, bool ftz) { return ftz ? divide_full_ftz(a, b) : divide_full(a, b); }
u16 ex2_approx_f16(u16 a) { return static_cast<u16>(half_ex2_f16(a)); }
u16 ex2_approx_bf16(u16 a) { return static_cast<u16>(half_ex2_bf16(a)); }
u16 tanh_approx_f16(u16 a) { return static_cast<u16>(half_tanh_f16(a)); }
u16 tanh_approx_bf16(u16 a) { return static_cast<u16>(half_tanh_bf16(a)); }
u64 rcp_approx_ftz_f64(u64 a) { return high_word(unit_rcp64h(static_cast<u32>(a >> 32))); }
u64 rsqrt_approx_ftz_f64(u64 a) { return high_word(unit_rsqrt64h(static_cast<u32>(a >> 32))); }

void ex2_approx(u32* d, const u32* a, bool ftz) { ftz ? lanes_ex2_ftz(d, a) : lanes_ex2(d, a); }
void lg2_approx(u32* d, const u32* a, bool ftz) { ftz ? lanes_lg2_ftz(d, a) : lanes_lg2(d, a); }
void rcp_approx(u32* d, const u32* a, bool ftz) { ftz ? lanes_rcp_ftz(d, a) : lanes_rcp(d, a); }
void rsqrt_approx(u32* d, const u32* a, bool ftz) { ftz ? lanes_rsqrt_ftz(d, a) : lanes_rsqrt(d, a); }
void sqrt_approx(u32* d, const u32* a, bool ftz) { ftz ? lanes_sqrt_ftz(d, a) : lanes_sqrt(d, a); }
void sin_approx(u32* d, const u32* a) { lanes_sin(d, a); }
void cos_approx(u32* d, const u32* a) { lanes_cos(d, a); }
void tanh_approx(u32* d, const u32* a) { lanes_tanh(d, a); }
void div_approx(u32* d, const u32* a, const u32* b, bool ftz) {
  ftz ? lanes_div_approx_ftz(d, a, b) : lanes_div_approx(d, a, b);
}
void div_full(u32* d, const u32* a, const u32* b, bool ftz) {
  ftz ? lanes_div_full_ftz(d, a, b) : lanes_div_full(d, a, b);
}
void ex2_approx_f16x2(u32* d, const u32* a) { lanes_ex2_f16x2(d, a); }
void ex2_approx_bf16x2(u32* d, const u32* a) { lanes_ex2_bf16x2(d, a); }
void tanh_approx_f16x2(u32* d, const u32* a) { lanes_tanh_f16x2(d, a); }
void tanh_approx_bf16x2(u32* d, const u32* a) { lanes_tanh_bf16x2(d, a); }
void rcp_approx_ftz_f64(u64* d, const u64* a) { lanes_rcp_f64(d, a); }
void rsqrt_approx_ftz_f64(u64* d, const u64* a) { lanes_rsqrt_f64(d, a); }

u32 mufu_sin(u32 turns) { return unit_sin(turns, 0); }
u32 mufu_cos(u32 turns) { return unit_sin(turns, 1); }
u32 mufu_rcp64h(u32 high) { return unit_rcp64h(high); }
u32 mufu_rsq64h(u32 high) { return unit_rsqrt64h(high); }

}  // namespace ptxbench::emulator
