// C[M, N] = A[M, K] * B[N, K]^T with ldmatrix and mma.sync.m16n8k16. Eight warps compute a 128x128 tile,
// 64x32 each. One buffer in shared memory: loading and multiplying take turns.
#include <cuda_bf16.h>
#include <launch_plan.h>

#include <cstdint>

namespace {

constexpr int kN = PROBLEM_N;
constexpr int kK = PROBLEM_K;
constexpr int kThreads = 256;
constexpr int kPitch = plan::BK + 8;  // 80 bytes: the eight rows of an ldmatrix fall into different banks

__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], const uint32_t* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Four 8x8 matrices; lane i gives the address of row i % 8 of matrix i / 8.
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], const __nv_bfloat16* row) {
  const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    gemm_mma(const __nv_bfloat16* __restrict__ A, const __nv_bfloat16* __restrict__ B,
             __nv_bfloat16* __restrict__ C, int M) {
  __shared__ __align__(16) __nv_bfloat16 tile_a[plan::BM][kPitch];
  __shared__ __align__(16) __nv_bfloat16 tile_b[plan::BN][kPitch];

  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int warp_m = (warp / 4) * 64;
  const int warp_n = (warp % 4) * 32;
  const int m0 = blockIdx.y * plan::BM;
  const int n0 = blockIdx.x * plan::BN;

  float acc[4][4][4] = {};
  for (int k0 = 0; k0 < kK; k0 += plan::BK) {
    for (int chunk = threadIdx.x; chunk < plan::BM * plan::BK / 8; chunk += kThreads) {
      const int row = chunk / (plan::BK / 8);
      const int col = chunk % (plan::BK / 8) * 8;
      uint4 a = make_uint4(0, 0, 0, 0);  // rows past M count as zero
      if (m0 + row < M) a = *reinterpret_cast<const uint4*>(A + (size_t)(m0 + row) * kK + k0 + col);
      *reinterpret_cast<uint4*>(&tile_a[row][col]) = a;
    }
    for (int chunk = threadIdx.x; chunk < plan::BN * plan::BK / 8; chunk += kThreads) {
      const int row = chunk / (plan::BK / 8);
      const int col = chunk % (plan::BK / 8) * 8;
      *reinterpret_cast<uint4*>(&tile_b[row][col]) =
          *reinterpret_cast<const uint4*>(B + (size_t)(n0 + row) * kK + k0 + col);
    }
    __syncthreads();

#pragma unroll
    for (int k = 0; k < plan::BK; k += 16) {
      uint32_t a[4][4], b[2][4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        ldmatrix_x4(a[i], &tile_a[warp_m + i * 16 + lane % 16][k + (lane / 16) * 8]);
        // One ldmatrix holds two n8 fragments: rows 0-7 at k and k + 8, then rows 8-15 at k and k + 8.
#pragma unroll
      for (int j = 0; j < 2; ++j)
        ldmatrix_x4(b[j], &tile_b[warp_n + j * 16 + lane % 8 + (lane / 16) * 8][k + (lane / 8 % 2) * 8]);
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) mma_m16n8k16(acc[i][j], a[i], &b[j / 2][j % 2 * 2]);
    }
    __syncthreads();
  }

  // Registers 0 and 1 are two neighbours in a row, 2 and 3 the same columns eight rows below.
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int row = m0 + warp_m + i * 16 + lane / 4;
      const int col = n0 + warp_n + j * 8 + lane % 4 * 2;
      if (row < M)
        *reinterpret_cast<__nv_bfloat162*>(C + (size_t)row * kN + col) =
            __floats2bfloat162_rn(acc[i][j][0], acc[i][j][1]);
      if (row + 8 < M)
        *reinterpret_cast<__nv_bfloat162*>(C + (size_t)(row + 8) * kN + col) =
            __floats2bfloat162_rn(acc[i][j][2], acc[i][j][3]);
    }
  }
}
