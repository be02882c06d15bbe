// C[M, N] = A[M, K] * B[N, K]^T with TMA and wgmma. One warpgroup computes a 64x128 tile from one shared
// buffer.
#include <cuda.h>
#include <cuda_bf16.h>
#include <launch_plan.h>
#include <ptx/barrier.cuh>
#include <ptx/wgmma.cuh>

#include <cstdint>

namespace {

constexpr int kN = PROBLEM_N;
constexpr int kK = PROBLEM_K;
constexpr uint32_t kBytesA = plan::BM * plan::BK * 2;
constexpr uint32_t kBytesB = plan::BN * plan::BK * 2;

__device__ __forceinline__ void load_tile(void* shared, const CUtensorMap* map, uint64_t* barrier, int k,
                                          int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx [%0], [%1, {%3, %4}], [%2];"
      :
      : "r"(ptx::shared_address(shared)), "l"(reinterpret_cast<uint64_t>(map)),
        "r"(ptx::shared_address(barrier)), "r"(k), "r"(row)
      : "memory");
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128)
    gemm_tma(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
             __nv_bfloat16* __restrict__ C, int M) {
  extern __shared__ uint8_t dynamic_shared[];
  __shared__ uint64_t full;

  uint8_t* tile_a = dynamic_shared + (-ptx::shared_address(dynamic_shared) & 1023);
  uint8_t* tile_b = tile_a + kBytesA;
  const int m0 = blockIdx.y * plan::BM;
  const int n0 = blockIdx.x * plan::BN;

  if (threadIdx.x == 0) {
    ptx::barrier_init(&full, 1);
    ptx::fence_barrier_init();
  }
  __syncthreads();

  float acc[plan::BN / 2];
  for (int step = 0; step < kK / plan::BK; ++step) {
    if (threadIdx.x == 0) {
      ptx::barrier_arrive_expect(&full, kBytesA + kBytesB);
      load_tile(tile_a, &map_a, &full, step * plan::BK, m0);
      load_tile(tile_b, &map_b, &full, step * plan::BK, n0);
    }
    ptx::barrier_wait(&full, step & 1);

    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < plan::BK / 16; ++k)
      ptx::wgmma_m64n128k16(acc, ptx::wgmma_advance(ptx::wgmma_descriptor(tile_a), k * 32),
                            ptx::wgmma_advance(ptx::wgmma_descriptor(tile_b), k * 32), step + k);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    ptx::wgmma_settle(acc);
    __syncthreads();  // the tiles are free for the next load
  }

  const int row = m0 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
  for (int j = 0; j < plan::BN / 8; ++j) {
    const int col = n0 + j * 8 + threadIdx.x % 4 * 2;
    if (row < M)
      *reinterpret_cast<__nv_bfloat162*>(C + (size_t)row * kN + col) =
          __floats2bfloat162_rn(acc[4 * j], acc[4 * j + 1]);
    if (row + 8 < M)
      *reinterpret_cast<__nv_bfloat162*>(C + (size_t)(row + 8) * kN + col) =
          __floats2bfloat162_rn(acc[4 * j + 2], acc[4 * j + 3]);
  }
}
