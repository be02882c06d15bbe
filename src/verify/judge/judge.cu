// The judge's device code: draws, checks, references, statistics. Compiled by NVRTC once an architecture.
#include "judge.h"

namespace ptxbench::judge {

static __device__ __forceinline__ u64 thread_index() {
  return blockIdx.x * static_cast<u64>(blockDim.x) + threadIdx.x;
}
static __device__ __forceinline__ u64 thread_count() { return gridDim.x * static_cast<u64>(blockDim.x); }

static __device__ __forceinline__ void store_unit(u64 at, u32 type, u64 unit, u64 bits) {
  switch (type_bits(type)) {
    case 64:
      reinterpret_cast<u64*>(at)[unit] = bits;
      break;
    case 32:
      reinterpret_cast<u32*>(at)[unit] = static_cast<u32>(bits);
      break;
    case 16:
      reinterpret_cast<u16*>(at)[unit] = static_cast<u16>(bits);
      break;
    default:
      reinterpret_cast<u8*>(at)[unit] = static_cast<u8>(bits);
  }
}

static __device__ __forceinline__ u64 load_unit(u64 at, u32 type, u64 unit) {
  switch (type_bits(type)) {
    case 64:
      return reinterpret_cast<const u64*>(at)[unit];
    case 32:
      return reinterpret_cast<const u32*>(at)[unit];
    case 16:
      return reinterpret_cast<const u16*>(at)[unit];
    default:
      return reinterpret_cast<const u8*>(at)[unit];
  }
}

static __device__ __forceinline__ void report(u64 result, u64 count, u64 first) {
  if (count == 0) return;
  Mismatch* out = reinterpret_cast<Mismatch*>(result);
  atomicAdd(&out->count, count);
  atomicMin(&out->first, first);
}

extern "C" __global__ void ptxbench_draw(DrawArgs args) {
  const u64 units = draw_units(args.spec);
  for (u64 i = thread_index(); i < units; i += thread_count())
    store_unit(args.at, args.spec.type, i, draw_unit(args.spec, i));
}

extern "C" __global__ void ptxbench_check_draw(DrawArgs args) {
  const u64 units = draw_units(args.spec);
  u64 count = 0, first = ~0ull;
  for (u64 i = thread_index(); i < units; i += thread_count())
    if (load_unit(args.at, args.spec.type, i) != draw_unit(args.spec, i)) {
      if (count++ == 0) first = i;
    }
  report(args.result, count, first);
}

extern "C" __global__ void ptxbench_compare(CompareArgs args) {
  const u8* a = reinterpret_cast<const u8*>(args.a);
  const u8* b = reinterpret_cast<const u8*>(args.b);
  u64 count = 0, first = ~0ull, from = 0;
  if (((args.a | args.b) & 7) == 0) {
    const u64 words = args.bytes / 8;
    for (u64 i = thread_index(); i < words; i += thread_count())
      if (reinterpret_cast<const u64*>(a)[i] != reinterpret_cast<const u64*>(b)[i])
        for (u64 j = 8 * i; j < 8 * i + 8; ++j)
          if (a[j] != b[j]) {
            if (count++ == 0) first = j;
          }
    from = 8 * words;
  }
  for (u64 i = from + thread_index(); i < args.bytes; i += thread_count())
    if (a[i] != b[i]) {
      if (count++ == 0) first = i;
    }
  report(args.result, count, first);
}

extern "C" __global__ void ptxbench_digest(DigestArgs args) {  // `at` is a multiple of 8
  const u64 words = args.bytes / 8;
  Digest digest{0, 0};
  for (u64 i = thread_index(); i < words; i += thread_count())
    add_word(digest, args.key, i, reinterpret_cast<const u64*>(args.at)[i]);
  if (thread_index() == 0 && args.bytes % 8 != 0)
    add_word(digest, args.key, words, last_word(reinterpret_cast<const u8*>(args.at), args.bytes));
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    digest.low += __shfl_down_sync(0xffffffff, digest.low, lanes);
    digest.high += __shfl_down_sync(0xffffffff, digest.high, lanes);
  }
  if (threadIdx.x % 32 != 0) return;
  Digest* out = reinterpret_cast<Digest*>(args.result);
  atomicAdd(&out->low, digest.low);
  atomicAdd(&out->high, digest.high);
}

extern "C" __global__ void ptxbench_count_poison(PoisonArgs args) {
  const u64 mask = args.element_bytes == 8 ? ~0ull : (1ull << (8 * args.element_bytes)) - 1;
  const u64 poison = (0x0101010101010101ull * args.byte) & mask;
  const u32 type = args.element_bytes == 8   ? kUint64
                   : args.element_bytes == 4 ? kUint32
                   : args.element_bytes == 2 ? kUint16
                                             : kUint8;
  u64 count = 0, first = ~0ull;
  for (u64 i = thread_index(); i < args.elements; i += thread_count())
    if (load_unit(args.at, type, i) == poison) {
      if (count++ == 0) first = i;
    }
  report(args.result, count, first);
}

// A GEMM whose sum is one chain over k in order, in `T`: the fp64 reference and the fp32 model. 128x128 a
// CTA, 8x8 a thread, the next slice of k loaded while this one is summed. Rows and columns of a thread come
// in pairs (fp64) or fours (fp32), so that a warp reads whole lines of shared memory.
constexpr u32 kTile = 128, kSlice = 16, kGemmThreads = 256;

template <u32 Type>
__device__ __forceinline__ float input_value(u64 base, u64 index) {
  if constexpr (Type == kFloat32) return reinterpret_cast<const float*>(base)[index];
  if constexpr (Type == kBfloat16)
    return float_of_bits(static_cast<u32>(reinterpret_cast<const u16*>(base)[index]) << 16);
  u32 h = reinterpret_cast<const u16*>(base)[index];
  float f;
  asm("{.reg .b16 t; cvt.u16.u32 t, %1; cvt.f32.f16 %0, t;}" : "=f"(f) : "r"(h));
  return f;
}

template <class T, u32 Type>
struct Slice {
  float a[8], b[8];
  // Thread t takes eight consecutive k of one row: rows 0..127 by t / 2.
  __device__ __forceinline__ void load(const GemmArgs& g, u32 row0, u32 col0, u32 k0) {
    const u32 r = threadIdx.x / 2, k = k0 + (threadIdx.x % 2) * 8;
    const u32 row = row0 + r, col = col0 + r;
    load_row(a, g.a, row, g.m, k, g.k);
    load_row(b, g.b, col, g.n, k, g.k);
  }
  static __device__ __forceinline__ void load_row(float (&v)[8], u64 base, u32 row, u32 rows, u32 k, u32 ks) {
    const u64 at = static_cast<u64>(row) * ks + k;
    if (Type != kFloat32 && row < rows && k + 8 <= ks && ((base + 2 * at) & 15) == 0) {
      const uint4 w = *reinterpret_cast<const uint4*>(base + 2 * at);
      const u32 words[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if constexpr (Type == kBfloat16) {
          v[2 * i] = float_of_bits(words[i] << 16);
          v[2 * i + 1] = float_of_bits(words[i] & 0xffff0000u);
        } else {
          asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}"
              : "=f"(v[2 * i]), "=f"(v[2 * i + 1])
              : "r"(words[i]));
        }
      }
      return;
    }
#pragma unroll
    for (u32 i = 0; i < 8; ++i) v[i] = row < rows && k + i < ks ? input_value<Type>(base, at + i) : 0.0f;
  }
  __device__ __forceinline__ void store(T (&sa)[kSlice][kTile + 2], T (&sb)[kSlice][kTile + 2]) const {
    const u32 r = threadIdx.x / 2, k = (threadIdx.x % 2) * 8;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      sa[k + i][r] = static_cast<T>(a[i]);
      sb[k + i][r] = static_cast<T>(b[i]);
    }
  }
};

static __device__ __forceinline__ float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
static __device__ __forceinline__ double fused(double a, double b, double c) { return __fma_rn(a, b, c); }

template <class T, u32 Type>
__device__ __forceinline__ void gemm(const GemmArgs& g, T (&sum)[8][8], u32 row0, u32 col0) {
  __shared__ T sa[kSlice][kTile + 2], sb[kSlice][kTile + 2];
  const u32 tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  Slice<T, Type> slice;
  slice.load(g, row0, col0, 0);
  for (u32 k0 = 0; k0 < g.k; k0 += kSlice) {
    slice.store(sa, sb);
    __syncthreads();
    if (k0 + kSlice < g.k) slice.load(g, row0, col0, k0 + kSlice);
#pragma unroll 4
    for (u32 k = 0; k < kSlice; ++k) {
      T x[8], y[8];
#pragma unroll
      for (u32 i = 0; i < 8; ++i) {
        x[i] = sa[k][(i / 2) * 32 + ty * 2 + i % 2];
        y[i] = sb[k][(i / 2) * 32 + tx * 2 + i % 2];
      }
#pragma unroll
      for (u32 i = 0; i < 8; ++i)
#pragma unroll
        for (u32 j = 0; j < 8; ++j) sum[i][j] = fused(x[i], y[j], sum[i][j]);
    }
    __syncthreads();
  }
}

// encode_from_float by the hardware's conversions, which do the same in one instruction.
static __device__ __forceinline__ void store_rounded(u64 at, u32 type, u64 index, float value) {
  u16 h;
  if (type == kBfloat16) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(value));
  } else if (type == kFloat16) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(value));
  } else {
    reinterpret_cast<float*>(at)[index] = value;
    return;
  }
  reinterpret_cast<u16*>(at)[index] = h;
}

template <class T, u32 Type>
__device__ __forceinline__ void gemm_kernel(const GemmArgs& g) {
  const u32 row0 = blockIdx.x * kTile, col0 = blockIdx.y * kTile;
  T sum[8][8] = {};
  gemm<T, Type>(g, sum, row0, col0);
  const u32 tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll
  for (u32 i = 0; i < 8; ++i)
#pragma unroll
    for (u32 j = 0; j < 8; ++j) {
      const u32 row = row0 + (i / 2) * 32 + ty * 2 + i % 2, col = col0 + (j / 2) * 32 + tx * 2 + j % 2;
      if (row >= g.m || col >= g.n) continue;
      const u64 at = static_cast<u64>(row) * g.n + col;
      if constexpr (sizeof(T) == 8) {
        reinterpret_cast<double*>(g.out)[at] = sum[i][j];
      } else {
        store_rounded(g.out, g.out_type, at, static_cast<float>(sum[i][j]));
      }
    }
}

#define PTXBENCH_GEMM(name, T, Type)                                                                       \
  extern "C" __global__ void __launch_bounds__(kGemmThreads, sizeof(T) == 8 ? 1 : 2) name(GemmArgs args) { \
    gemm_kernel<T, Type>(args);                                                                            \
  }
PTXBENCH_GEMM(ptxbench_gemm_reference_bfloat16, double, kBfloat16)
PTXBENCH_GEMM(ptxbench_gemm_reference_float16, double, kFloat16)
PTXBENCH_GEMM(ptxbench_gemm_reference_float32, double, kFloat32)
PTXBENCH_GEMM(ptxbench_gemm_model_bfloat16, float, kBfloat16)
PTXBENCH_GEMM(ptxbench_gemm_model_float16, float, kFloat16)
PTXBENCH_GEMM(ptxbench_gemm_model_float32, float, kFloat32)

static __device__ __forceinline__ Partial from_lane(const Partial& p, int offset) {
  Partial q;
  q.elements = __shfl_down_sync(~0u, p.elements, offset);
  q.nonfinite_wrong = __shfl_down_sync(~0u, p.nonfinite_wrong, offset);
  q.sum_squared_error = __shfl_down_sync(~0u, p.sum_squared_error, offset);
  q.max_absolute_error = __shfl_down_sync(~0u, p.max_absolute_error, offset);
  q.max_relative_error = __shfl_down_sync(~0u, p.max_relative_error, offset);
  q.sum_got_times_reference = __shfl_down_sync(~0u, p.sum_got_times_reference, offset);
  q.sum_squared_reference = __shfl_down_sync(~0u, p.sum_squared_reference, offset);
  q.sum_fourth_reference = __shfl_down_sync(~0u, p.sum_fourth_reference, offset);
  q.largest_reference = __shfl_down_sync(~0u, p.largest_reference, offset);
  q.model_sum_squared_error = __shfl_down_sync(~0u, p.model_sum_squared_error, offset);
  q.model_max_error = __shfl_down_sync(~0u, p.model_max_error, offset);
  q.model_times_reference = __shfl_down_sync(~0u, p.model_times_reference, offset);
  return q;
}

// kStatisticsBlocks blocks of 256 threads; the order of every sum is fixed.
extern "C" __global__ void ptxbench_statistics(StatisticsArgs args) {
  __shared__ Partial warps[8];
  Partial p = {};
  const double largest = largest_finite(args.got_type);
  for (u64 i = thread_index(); i < args.elements; i += thread_count()) {
    const u64 at = sampled_element(args.sample, i);
    const double got =
        decode(args.got_type, load_element(reinterpret_cast<const void*>(args.got), args.got_type, at));
    const double reference =
        decode(args.reference_type,
               load_element(reinterpret_cast<const void*>(args.reference), args.reference_type, at));
    const double model =
        args.model
            ? decode(args.got_type, load_element(reinterpret_cast<const void*>(args.model), args.got_type, i))
            : 0;
    add_element(p, got, reference, args.model != 0, model, largest);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    const Partial q = from_lane(p, offset);
    merge(p, q);
  }
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = p;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (u32 w = 1; w < blockDim.x / 32; ++w) merge(p, warps[w]);
  reinterpret_cast<Partial*>(args.partials)[blockIdx.x] = p;
}

extern "C" __global__ void ptxbench_find_wrong(WrongArgs args) {
  const double largest = largest_finite(args.got_type);
  u64 count = 0, first = ~0ull;
  for (u64 i = thread_index(); i < args.elements; i += thread_count()) {
    const double got =
        decode(args.got_type, load_element(reinterpret_cast<const void*>(args.got), args.got_type, i));
    const double reference =
        decode(args.reference_type,
               load_element(reinterpret_cast<const void*>(args.reference), args.reference_type, i));
    if (element_wrong(got, reference, args.atol, args.rtol, largest)) {
      if (count++ == 0) first = i;
    }
  }
  report(args.result, count, first);
}

extern "C" __global__ void ptxbench_wrong_tiles(WrongTilesArgs args) {
  const WrongArgs& w = args.wrong;
  const double largest = largest_finite(w.got_type);
  for (u64 i = thread_index(); i < w.elements; i += thread_count()) {
    const double got = decode(w.got_type, load_element(reinterpret_cast<const void*>(w.got), w.got_type, i));
    const double reference =
        decode(w.reference_type, load_element(reinterpret_cast<const void*>(w.reference), w.reference_type, i));
    if (!element_wrong(got, reference, w.atol, w.rtol, largest)) continue;
    const u64 row = i / args.columns, column = i % args.columns;
    atomicAdd(&reinterpret_cast<u32*>(w.result)[row / args.tile_rows * args.grid_columns + column / args.tile_columns], 1u);
  }
}

// Evicts the L2: writes more than it holds, then reads it, so that dirty lines are gone before a timed run.
extern "C" __global__ void ptxbench_flush_write(FlushArgs args) {
  for (u64 i = thread_index(); i < args.words; i += thread_count())
    reinterpret_cast<uint4*>(args.at)[i] = make_uint4(args.tag, args.tag, args.tag, args.tag);
}
extern "C" __global__ void ptxbench_flush_read(FlushArgs args) {
  u32 seen = 0;
  for (u64 i = thread_index(); i < args.words; i += thread_count()) {
    const uint4 v = reinterpret_cast<const uint4*>(args.at)[i];
    seen |= (v.x ^ args.tag) | (v.y ^ args.tag) | (v.z ^ args.tag) | (v.w ^ args.tag);
  }
  if (seen) *reinterpret_cast<u32*>(args.sink) = seen;  // never, but the compiler cannot know
}

// Overwrites the shared memory of every SM: launched with all that a CTA can have, so one CTA an SM.
extern "C" __global__ void ptxbench_wipe_shared(FlushArgs args) {
  extern __shared__ u32 shared[];
  volatile u32* words = shared;
  for (u64 i = threadIdx.x; i < args.words; i += blockDim.x) words[i] = args.tag;
}

// Launched so that its CTAs fill all SMs, their threads or their shared memory: nothing else fits where one is. They end at random
// such that the number that has ended doubles in equal times, from one at the start to all.
extern "C" __global__ void ptxbench_neighbour(NeighbourArgs args) {
  const Philox random = philox(args.seed, blockIdx.x, 0, 0, 0);
  const float rank = (static_cast<float>(random.v[0]) + 1) * 0x1p-32f;  // in (0, 1]
  const float part = 1 + log2f(rank) / log2f(static_cast<float>(gridDim.x) + 1);
  const u64 wanted = part > 0 ? static_cast<u64>(part * static_cast<float>(args.nanoseconds)) : 0;
  u64 start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  // The timer may tick seldom; the count of turns ends it in any case.
  for (u32 turn = 0; turn < 1u << 16; ++turn) {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    if (now - start >= wanted) break;
    __nanosleep(200);
  }
}

}  // namespace ptxbench::judge

#include "attention_kernels.h"
