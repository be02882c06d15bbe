// Attention: what its kernels are passed, and the scalar arithmetic that the GPU's and the CPU's form share.
//
// Two arithmetics. The reference: everything in fp64 (an error near 1e-15, where a candidate's is 1e-3). The
// model: fp32 sums in the order of k, P and dS rounded to the input's type before they are multiplied again.
#pragma once

#include "values.h"

namespace ptxbench::judge {

// One rounding each: neither compiler may fuse them, so that both forms have the same bits.
#ifdef __CUDACC__
static __device__ __forceinline__ double product(double a, double b) { return __dmul_rn(a, b); }
static __device__ __forceinline__ double sum(double a, double b) { return __dadd_rn(a, b); }
static __device__ __forceinline__ float product(float a, float b) { return __fmul_rn(a, b); }
static __device__ __forceinline__ float sum(float a, float b) { return __fadd_rn(a, b); }
#else  // compiled with -ffp-contract=off
static inline double product(double a, double b) { return a * b; }
static inline double sum(double a, double b) { return a + b; }
static inline float product(float a, float b) { return a * b; }
static inline float sum(float a, float b) { return a + b; }
#endif

// exp(x) within 2 ulp: x = n ln 2 + r, a Taylor polynomial of degree 13 in r (|r| < 0.35), times 2^n.
// Branch-free for the sake of loops; minus infinity gives zero.
PTXBENCH_JUDGE_FN double exponential(double x) {
  const double low = x < -746.0 ? -746.0 : x, clamped = low > 710.0 ? 710.0 : low;
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
  const double shifted = sum(product(clamped, 1.4426950408889634), kRound), n = sum(shifted, -kRound);
  const double r =
      sum(sum(clamped, product(n, -6.93147180369123816490e-01)), product(n, -1.90821492927058770002e-10));
  double p = 1.6059043836821613e-10;
  p = sum(product(p, r), 2.08767569878681e-09);
  p = sum(product(p, r), 2.505210838544172e-08);
  p = sum(product(p, r), 2.755731922398589e-07);
  p = sum(product(p, r), 2.7557319223985893e-06);
  p = sum(product(p, r), 2.48015873015873e-05);
  p = sum(product(p, r), 1.984126984126984e-04);
  p = sum(product(p, r), 1.3888888888888889e-03);
  p = sum(product(p, r), 8.333333333333333e-03);
  p = sum(product(p, r), 4.1666666666666664e-02);
  p = sum(product(p, r), 1.6666666666666666e-01);
  p = sum(product(p, r), 0.5);
  p = sum(product(product(p, r), r), r);
  p = sum(p, 1.0);
  // 2^n in two steps, so that subnormal results are rounded once and 2^1024 does not overflow on the way.
  const i32 whole = static_cast<i32>(n), half = whole >> 1;
  const double first = double_of_bits(static_cast<u64>(1023 + half) << 52),
               second = double_of_bits(static_cast<u64>(1023 + whole - half) << 52);
  return x != x ? x : product(product(p, first), second);
}

// What differs between the two arithmetics.
PTXBENCH_JUDGE_FN double weight(double x) { return exponential(x); }
PTXBENCH_JUDGE_FN float weight(float x) { return static_cast<float>(exponential(static_cast<double>(x))); }

// Before it is multiplied again.
PTXBENCH_JUDGE_FN double narrowed(u32, double v) { return v; }
PTXBENCH_JUDGE_FN float narrowed(u32 type, float v) {
#ifdef __CUDACC__
  u16 h;
  float wide;
  if (type == kBfloat16) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(v));
    return float_of_bits(static_cast<u32>(h) << 16);
  }
  asm("{.reg .b16 t; cvt.rn.f16.f32 t, %1; cvt.f32.f16 %0, t;}" : "=f"(wide) : "f"(v));
  return wide;
#else
  const u64 code = encode_from_float(type, v);
  return type == kBfloat16 ? float_of_bits(static_cast<u32>(code) << 16)
                           : static_cast<float>(decode(type, code));
#endif
}

// Which keys a query sees, as one number: 0 is all of them, any other m the keys 0 .. query + m - 2. So 2 is the causal mask,
// and 1 and 3 are those one off, which only a diagnosis asks for: under 1 the first query sees nothing, and has no softmax.
constexpr u32 kNoMask = 0, kCausalMask = 2;
PTXBENCH_JUDGE_FN bool sees(u32 mask, u32 query, u32 key) { return !mask || key + 2 <= query + mask; }
// How many keys, from the first on.
PTXBENCH_JUDGE_FN u32 keys_seen(u32 mask, u32 query, u32 sequence) {
  return mask && query + mask - 1 < sequence ? query + mask - 1 : sequence;
}
// The first query that sees a key; all after it do. May be the end of the sequence.
PTXBENCH_JUDGE_FN u32 first_to_see(u32 mask, u32 key) { return mask && key + 2 > mask ? key + 2 - mask : 0; }

// Which rows of every head a launch works on: its row r is sequence position `list[head * rows_of_head + row0
// + r]`, or row0 + r where there is no list. Lists ascend.
struct AttentionRows {
  u64 list;
  u32 rows_of_head, row0, rows;
  u32 first_head;  // blockIdx.z = 0
};

// out[z, r, c] = scale * sum over d of a[head, row(r), d] * b[head, c, d]; `out` is T [heads of the launch,
// rows, sequence]. With a mask, tiles that nobody sees are left out. `by_key`: rows are keys and columns
// queries, else the reverse.
struct ScoresArgs {
  AttentionRows which;
  u64 a, b, out;
  u32 sequence, depth, type;
  u32 mask, by_key;
  double scale;
};

// Of rows of scores: the maximum m, l = sum of exp(s - m), P = exp(s - m) in place (zeros where masked) and
// lse = m + log(l).
struct SoftmaxArgs {
  AttentionRows which;
  u64 scores;
  u64 sums;  // T [heads of the launch, rows]: l
  u64 lse;   // [all heads, rows_of_head], of lse_type
  u32 sequence, type, lse_type;
  u32 mask, heads;
};

// From scores s and dP to P and dS = P * (dP - D), in place: both are T [heads of the launch, rows,
// sequence].
struct GradientArgs {
  AttentionRows which;
  u64 scores, products;
  u64 lse, dots;  // T [all heads, sequence], by query
  u32 sequence, type;
  u32 mask, by_key, heads, unused;
};

// out[head, row0 + r, d] = sum over c of weights[z, r, c] * b[head, c, d], times 1 / sums[z, r], or scale where there are no
// sums.
struct WeightedArgs {
  AttentionRows which;
  u64 weights, b, sums, out;
  u32 sequence, depth, type, out_type;
  u32 mask, by_key;
  double scale;
};

// out[row] = sum over d of a[row, d] * b[row, d], in order.
struct DotsArgs {
  u64 a, b, out, rows;
  u32 depth, type;
};

// The columns that a tile of rows [first, last] has anything of: [from, to).
PTXBENCH_JUDGE_FN u32 first_column(u32 mask, u32 by_key, u32 first) { return by_key ? first_to_see(mask, first) : 0; }
PTXBENCH_JUDGE_FN u32 end_column(u32 mask, u32 by_key, u32 last, u32 sequence) {
  return by_key ? sequence : keys_seen(mask, last, sequence);
}

}  // namespace ptxbench::judge
