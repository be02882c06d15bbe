// Attention on the GPU, as products of matrices with what lies between them. S x S matrices exist for some
// rows of some heads at a time. Every sum is one chain in the order of k, so results do not depend on the
// launch.
#pragma once

#include "attention.h"

namespace ptxbench::judge {

constexpr u32 kWide = 128, kDeep = 16,
              kGroup = 8;  // tiles of 128 x 128, 16 of k at a time; eight elements a load

static __device__ __forceinline__ u32 row_of(const AttentionRows& w, u32 head, u32 r) {
  const u32 at = w.row0 + r;
  return w.list ? reinterpret_cast<const u32*>(w.list)[static_cast<u64>(head) * w.rows_of_head + at] : at;
}
static __device__ __forceinline__ u32 last_row_of(const AttentionRows& w, u32 head, u32 tile0) {
  const u32 end = tile0 + kWide < w.rows ? tile0 + kWide : w.rows;
  return row_of(w, head, end - 1);
}

static __device__ __forceinline__ float float_of_16(u32 type, u32 bits) {
  if (type == kBfloat16) return float_of_bits(bits << 16);
  float f;
  asm("{.reg .b16 t; cvt.u16.u32 t, %1; cvt.f32.f16 %0, t;}" : "=f"(f) : "r"(bits));
  return f;
}

// Eight elements of a row of `count` that starts at element `start` of a 16-bit tensor, from `k` on; zeros
// beyond.
static __device__ __forceinline__ void load_eight(float (&v)[kGroup], u64 base, u32 type, u64 start, u32 k,
                                                  u32 count) {
  const u64 at = base + 2 * (start + k);
  if (k + kGroup <= count && (at & 15) == 0) {
    const uint4 w = *reinterpret_cast<const uint4*>(at);
    const u32 words[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      v[2 * i] = float_of_16(type, words[i] & 0xffff);
      v[2 * i + 1] = float_of_16(type, words[i] >> 16);
    }
    return;
  }
#pragma unroll
  for (u32 i = 0; i < kGroup; ++i)
    v[i] = k + i < count ? float_of_16(type, reinterpret_cast<const u16*>(base)[start + k + i]) : 0.0f;
}

template <class T>
struct Tiles {
  T a[kDeep][kWide + 2], b[kDeep][kWide + 2];
};

// One slice of k: 8 x 8 sums a thread, whose rows and columns come in pairs.
template <class T>
static __device__ __forceinline__ void multiply_slice(const Tiles<T>& tiles, T (&acc)[8][8]) {
  const u32 tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll 4
  for (u32 k = 0; k < kDeep; ++k) {
    T x[8], y[8];
#pragma unroll
    for (u32 i = 0; i < 8; ++i) {
      x[i] = tiles.a[k][(i / 2) * 32 + ty * 2 + i % 2];
      y[i] = tiles.b[k][(i / 2) * 32 + tx * 2 + i % 2];
    }
#pragma unroll
    for (u32 i = 0; i < 8; ++i)
#pragma unroll
      for (u32 j = 0; j < 8; ++j) acc[i][j] = fused(x[i], y[j], acc[i][j]);
  }
}
static __device__ __forceinline__ u32 tile_row(u32 i) {
  return (i / 2) * 32 + (threadIdx.x / 16) * 2 + i % 2;
}
static __device__ __forceinline__ u32 tile_column(u32 j) {
  return (j / 2) * 32 + (threadIdx.x % 16) * 2 + j % 2;
}

template <class T>
static __device__ __forceinline__ void scores_kernel(const ScoresArgs& g) {
  __shared__ Tiles<T> tiles;
  const u32 col0 = blockIdx.x * kWide, row0 = blockIdx.y * kWide, head = g.which.first_head + blockIdx.z;
  const u32 first = row_of(g.which, head, row0), last = last_row_of(g.which, head, row0);
  if (col0 >= end_column(g.mask, g.by_key, last, g.sequence) ||
      col0 + kWide <= first_column(g.mask, g.by_key, first))
    return;
  const u64 from = static_cast<u64>(head) * g.sequence * g.depth;
  // Thread t loads eight of k of one row of a and of b.
  const u32 r = threadIdx.x / 2, group = (threadIdx.x % 2) * kGroup;
  const bool has_row = row0 + r < g.which.rows, has_column = col0 + r < g.sequence;
  const u64 a_start = from + (has_row ? static_cast<u64>(row_of(g.which, head, row0 + r)) * g.depth : 0);
  const u64 b_start = from + (has_column ? static_cast<u64>(col0 + r) * g.depth : 0);
  T acc[8][8] = {};
  float a[kGroup], b[kGroup];
  const auto load = [&](u32 k0) {
    load_eight(a, g.a, g.type, a_start, k0 + group, has_row ? g.depth : 0);
    load_eight(b, g.b, g.type, b_start, k0 + group, has_column ? g.depth : 0);
  };
  load(0);
  for (u32 k0 = 0; k0 < g.depth; k0 += kDeep) {
#pragma unroll
    for (u32 i = 0; i < kGroup; ++i) {
      tiles.a[group + i][r] = static_cast<T>(a[i]);
      tiles.b[group + i][r] = static_cast<T>(b[i]);
    }
    __syncthreads();
    if (k0 + kDeep < g.depth) load(k0 + kDeep);
    multiply_slice(tiles, acc);
    __syncthreads();
  }
  const T scale = static_cast<T>(g.scale);
  T* out = reinterpret_cast<T*>(g.out) + static_cast<u64>(blockIdx.z) * g.which.rows * g.sequence;
#pragma unroll
  for (u32 i = 0; i < 8; ++i)
#pragma unroll
    for (u32 j = 0; j < 8; ++j) {
      const u32 row = row0 + tile_row(i), column = col0 + tile_column(j);
      if (row < g.which.rows && column < g.sequence)
        out[static_cast<u64>(row) * g.sequence + column] = product(acc[i][j], scale);
    }
}

static __device__ __forceinline__ double reciprocal(double v) { return __drcp_rn(v); }
static __device__ __forceinline__ float reciprocal(float v) { return __frcp_rn(v); }

template <class T>
static __device__ __forceinline__ void weighted_kernel(const WeightedArgs& g) {
  __shared__ Tiles<T> tiles;
  const u32 col0 = blockIdx.x * kWide, row0 = blockIdx.y * kWide, head = g.which.first_head + blockIdx.z;
  const u32 from = first_column(g.mask, g.by_key, row_of(g.which, head, row0)) / kDeep * kDeep,
            to = end_column(g.mask, g.by_key, last_row_of(g.which, head, row0), g.sequence);
  const T* weights =
      reinterpret_cast<const T*>(g.weights) + static_cast<u64>(blockIdx.z) * g.which.rows * g.sequence;
  const u64 b_head = static_cast<u64>(head) * g.sequence * g.depth;
  // Of a: eight of k of one row. Of b: eight columns of one k.
  const u32 r = threadIdx.x / 2, group = (threadIdx.x % 2) * kGroup;
  const u32 k_row = threadIdx.x / 16, column = (threadIdx.x % 16) * kGroup;
  const bool has_row = row0 + r < g.which.rows;
  const T* a_row = weights + (has_row ? static_cast<u64>(row0 + r) * g.sequence : 0);
  T acc[8][8] = {};
  T a[kGroup];
  float b[kGroup];
  const auto load = [&](u32 k0) {
#pragma unroll
    for (u32 i = 0; i < kGroup; ++i) {
      const u32 k = k0 + group + i;
      a[i] = has_row && k < to ? a_row[k] : T(0);
    }
    const u32 k = k0 + k_row;
    load_eight(b, g.b, g.type, b_head + static_cast<u64>(k < to ? k : 0) * g.depth, col0 + column,
               k < to ? g.depth : 0);
  };
  load(from);
  for (u32 k0 = from; k0 < to; k0 += kDeep) {
#pragma unroll
    for (u32 i = 0; i < kGroup; ++i) {
      tiles.a[group + i][r] = a[i];
      tiles.b[k_row][column + i] = static_cast<T>(b[i]);
    }
    __syncthreads();
    if (k0 + kDeep < to) load(k0 + kDeep);
    multiply_slice(tiles, acc);
    __syncthreads();
  }
#pragma unroll
  for (u32 i = 0; i < 8; ++i) {
    const u32 row = row0 + tile_row(i);
    if (row >= g.which.rows) continue;
    T factor = static_cast<T>(g.scale);
    if (g.sums)
      factor =
          reciprocal(reinterpret_cast<const T*>(g.sums)[static_cast<u64>(blockIdx.z) * g.which.rows + row]);
    const u64 to = (static_cast<u64>(head) * g.which.rows_of_head + g.which.row0 + row) * g.depth;
#pragma unroll
    for (u32 j = 0; j < 8; ++j) {
      const u32 d = col0 + tile_column(j);
      if (d < g.depth)
        store_rounded(g.out, g.out_type, to + d, static_cast<float>(product(acc[i][j], factor)));
    }
  }
}

static __device__ __forceinline__ double sum_of_lanes(double v, double before) {
  for (int offset = 16; offset > 0; offset /= 2) v = sum(v, __shfl_xor_sync(~0u, v, offset));
  return sum(before, v);
}
static __device__ __forceinline__ float sum_of_lanes(float v, float before) {  // in order
  for (int lane = 0; lane < 32; ++lane) before = sum(before, __shfl_sync(~0u, v, lane));
  return before;
}

// A warp a row.
template <class T>
static __device__ __forceinline__ void softmax_kernel(const SoftmaxArgs& g) {
  const u32 lane = threadIdx.x % 32;
  const u64 rows = static_cast<u64>(g.heads) * g.which.rows;
  for (u64 at = thread_index() / 32; at < rows; at += thread_count() / 32) {
    const u32 z = static_cast<u32>(at / g.which.rows), r = static_cast<u32>(at % g.which.rows),
              head = g.which.first_head + z;
    const u32 query = row_of(g.which, head, r), visible = end_column(g.mask, 0, query, g.sequence);
    T* s = reinterpret_cast<T*>(g.scores) + at * g.sequence;
    T most = -static_cast<T>(float_of_bits(0x7f800000));
    for (u32 c = lane; c < visible; c += 32) most = s[c] > most ? s[c] : most;
    for (int offset = 16; offset > 0; offset /= 2) {
      const T other = __shfl_xor_sync(~0u, most, offset);
      most = other > most ? other : most;
    }
    T l = T(0);
    for (u32 c0 = 0; c0 < visible; c0 += 32) {
      const u32 c = c0 + lane;
      const T e = c < visible ? weight(sum(s[c], -most)) : T(0);
      if (c < visible) s[c] = narrowed(g.type, e);
      l = sum_of_lanes(e, l);
    }
    for (u32 c = visible + lane; c < g.sequence; c += 32) s[c] = T(0);
    if (lane != 0) continue;
    reinterpret_cast<T*>(g.sums)[at] = l;
    const double lse = static_cast<double>(most) + log(static_cast<double>(l));
    const u64 to = static_cast<u64>(head) * g.which.rows_of_head + g.which.row0 + r;
    if (g.lse_type == kFloat64)
      reinterpret_cast<double*>(g.lse)[to] = lse;
    else
      reinterpret_cast<float*>(g.lse)[to] = static_cast<float>(lse);
  }
}

template <class T>
static __device__ __forceinline__ void gradient_kernel(const GradientArgs& g) {
  const u64 count = static_cast<u64>(g.heads) * g.which.rows * g.sequence;
  T* scores = reinterpret_cast<T*>(g.scores);
  T* products = reinterpret_cast<T*>(g.products);
  for (u64 i = thread_index(); i < count; i += thread_count()) {
    const u64 at = i / g.sequence;
    const u32 c = static_cast<u32>(i % g.sequence), z = static_cast<u32>(at / g.which.rows),
              head = g.which.first_head + z;
    const u32 row = row_of(g.which, head, static_cast<u32>(at % g.which.rows));
    const u32 query = g.by_key ? c : row, key = g.by_key ? row : c;
    T p = T(0), ds = T(0);
    if (sees(g.mask, query, key)) {
      const u64 q = static_cast<u64>(head) * g.sequence + query;
      p = weight(sum(scores[i], -reinterpret_cast<const T*>(g.lse)[q]));
      ds = product(p, sum(products[i], -reinterpret_cast<const T*>(g.dots)[q]));
    }
    scores[i] = narrowed(g.type, p);
    products[i] = narrowed(g.type, ds);
  }
}

template <class T>
static __device__ __forceinline__ void dots_kernel(const DotsArgs& g) {
  for (u64 row = thread_index(); row < g.rows; row += thread_count()) {
    T total = T(0);
    for (u32 d = 0; d < g.depth; ++d) {
      const u64 at = row * g.depth + d;
      const float a = float_of_16(g.type, reinterpret_cast<const u16*>(g.a)[at]),
                  b = float_of_16(g.type, reinterpret_cast<const u16*>(g.b)[at]);
      total = sum(total, product(static_cast<T>(a), static_cast<T>(b)));
    }
    reinterpret_cast<T*>(g.out)[row] = total;
  }
}

#define PTXBENCH_ATTENTION(T, name)                                                  \
  extern "C" __global__ void __launch_bounds__(256, sizeof(T) == 8 ? 1 : 2)          \
      ptxbench_attention_scores_##name(ScoresArgs args) {                            \
    scores_kernel<T>(args);                                                          \
  }                                                                                  \
  extern "C" __global__ void __launch_bounds__(256, 1)                               \
      ptxbench_attention_weighted_##name(WeightedArgs args) {                        \
    weighted_kernel<T>(args);                                                        \
  }                                                                                  \
  extern "C" __global__ void ptxbench_attention_softmax_##name(SoftmaxArgs args) {   \
    softmax_kernel<T>(args);                                                         \
  }                                                                                  \
  extern "C" __global__ void ptxbench_attention_gradient_##name(GradientArgs args) { \
    gradient_kernel<T>(args);                                                        \
  }                                                                                  \
  extern "C" __global__ void ptxbench_attention_dots_##name(DotsArgs args) { dots_kernel<T>(args); }
PTXBENCH_ATTENTION(double, reference)
PTXBENCH_ATTENTION(float, model)

}  // namespace ptxbench::judge
