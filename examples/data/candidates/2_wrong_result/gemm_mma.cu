// C[M, N] = A[M, K] * B[N, K]^T with mma.sync.m16n8k16. Four warps compute a 64x64 tile, a 32x32 quarter
// each.
#include <cuda_bf16.h>
#include <launch_plan.h>

#include <cstdint>

namespace {

constexpr int kN = PROBLEM_N;
constexpr int kK = PROBLEM_K;
constexpr int kPad = 8;  // bf16 elements: keeps the fragment loads free of bank conflicts
constexpr int kPitch = plan::BK + kPad;

__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ uint32_t load_pair(const __nv_bfloat16* p) {
  return *reinterpret_cast<const uint32_t*>(p);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128)
    gemm_mma(const __nv_bfloat16* __restrict__ A, const __nv_bfloat16* __restrict__ B,
             __nv_bfloat16* __restrict__ C, int M) {
  __shared__ __align__(16) __nv_bfloat16 tile_a[plan::BM][kPitch];
  __shared__ __align__(16) __nv_bfloat16 tile_b[plan::BN][kPitch];

  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int warp_m = (warp / 2) * 32;
  const int warp_n = (warp % 2) * 32;
  const int m0 = blockIdx.y * plan::BM;
  const int n0 = blockIdx.x * plan::BN;
  const int group = lane / 4;       // row of the fragment
  const int pair = (lane % 4) * 2;  // first of its two columns

  float acc[2][4][4] = {};
  for (int k0 = 0; k0 < kK; k0 += plan::BK) {
    // Both tiles are 64 rows of four 16-byte chunks: two chunks of each a thread.
    for (int chunk = threadIdx.x; chunk < plan::BM * plan::BK / 8; chunk += 128) {
      const int row = chunk / (plan::BK / 8);
      const int col = chunk % (plan::BK / 8) * 8;
      uint4 a = make_uint4(0, 0, 0, 0);
      if (m0 + row < M) a = *reinterpret_cast<const uint4*>(A + (size_t)(m0 + row) * kK + k0 + col);
      *reinterpret_cast<uint4*>(&tile_a[row][col]) = a;
      *reinterpret_cast<uint4*>(&tile_b[row][col]) =
          *reinterpret_cast<const uint4*>(B + (size_t)(n0 + row) * kK + k0 + col);
    }
    __syncthreads();

#pragma unroll
    for (int k = 0; k < plan::BK; k += 16) {
      uint32_t a[2][4], b[4][2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int row = warp_m + i * 16 + group;
        a[i][0] = load_pair(&tile_a[row][k + pair]);
        a[i][1] = load_pair(&tile_a[row + 8][k + pair]);
        a[i][2] = load_pair(&tile_a[row][k + pair + 8]);
        a[i][3] = load_pair(&tile_a[row + 8][k + pair + 8]);
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int row = warp_n + j * 8 + group;
        b[j][0] = load_pair(&tile_b[row][k + pair]);
        b[j][1] = load_pair(&tile_b[row][k + pair + 8]);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) mma_m16n8k16(acc[i][j], a[i], b[j]);
    }
    __syncthreads();
  }

  // Accumulators follow the order of A's registers: down the rows first, then along the columns.
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int row = m0 + warp_m + i * 16 + group;
      const int col = n0 + warp_n + j * 8 + pair;
      if (row < M) {
        C[(size_t)row * kN + col] = __float2bfloat16(acc[i][j][0]);
        C[(size_t)row * kN + col + 1] = __float2bfloat16(acc[i][j][2]);
      }
      if (row + 8 < M) {
        C[(size_t)(row + 8) * kN + col] = __float2bfloat16(acc[i][j][1]);
        C[(size_t)(row + 8) * kN + col + 1] = __float2bfloat16(acc[i][j][3]);
      }
    }
  }
}
