// C[M, N] = A[M, K] * B[N, K]^T, bf16 in and out, fp32 sums: persistent and warp-specialised, for sm_90a.
//
// A CTA computes 128 x BN tiles with three warpgroups. Warpgroup 0 loads: one of its threads keeps a ring of
// buffers filled by TMA. Warpgroups 1 and 2 multiply 64 rows each by wgmma and store. The CTAs of a cluster
// work on neighbouring tiles and share an operand: each loads its part and multicasts it to all. Rows past M
// need no code: TMA reads them as zeros and does not write them.
#include <cuda.h>
#include <launch_plan.h>
#include <ptx/barrier.cuh>
#include <ptx/tma.cuh>
#include <ptx/wgmma.cuh>

#include <cstdint>

namespace {

constexpr int kN = PROBLEM_N;
constexpr int kK = PROBLEM_K;

constexpr int kBM = plan::BM;
constexpr int kBK = plan::BK;
static_assert(kBM == 128, "two consumer warpgroups of 64 rows");
static_assert(kBK == 64, "128 bytes, one row of the swizzle");
constexpr int kKBlocks = (kK + kBK - 1) / kBK;
constexpr int kConsumerWarps = 8;
constexpr int kProducerRegisters = 40;  // 128 * 40 + 256 * 232 = 384 * 168, what the launch provides
constexpr int kConsumerRegisters = 232;
constexpr int kPanelBytes = 16 * 128;  // a warp's 16 rows of 64 columns of C on their way out

template <int BN>
__device__ __forceinline__ void multiply(float (&acc)[BN / 2], uint64_t a, uint64_t b, int accumulate) {
  if constexpr (BN == 256)
    ptx::wgmma_m64n256k16(acc, a, b, accumulate);
  else if constexpr (BN == 128)
    ptx::wgmma_m64n128k16(acc, a, b, accumulate);
  else
    ptx::wgmma_m64n64k16(acc, a, b, accumulate);
}

__device__ __forceinline__ uint32_t pack_bf16(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

/// The place of stage and parity in the ring of buffers; producer and consumers each walk their own.
template <int Stages>
struct Ring {
  int stage = 0;
  uint32_t parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == Stages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

/// Walks the cluster's tiles of C. The order goes down GROUP_ROWS rows of C before it moves to the next
/// column, so that what runs at one time is near square and its operands stay in L2.
template <int TileM, int TileN>
struct Schedule {
  static constexpr int kTilesN = (kN + TileN - 1) / TileN;
  static constexpr int kGroup = plan::GROUP_ROWS / TileM;
  int tiles_m, tile, step;

  __device__ __forceinline__ Schedule(int m, int cluster, int clusters)
      : tiles_m((m + TileM - 1) / TileM), tile(cluster), step(clusters) {}
  __device__ __forceinline__ bool valid() const { return tile < tiles_m * kTilesN; }
  __device__ __forceinline__ void next() { tile += step; }
  __device__ __forceinline__ void origin(int& m, int& n) const {
    const int first = tile / (kGroup * kTilesN) * kGroup;
    const int rows = min(tiles_m - first, kGroup);
    const int place = tile % (kGroup * kTilesN);
    m = (first + place % rows) * TileM;
    n = place / rows * TileN;
  }
};

}  // namespace

/// `BN`: columns of a CTA's tile, 64, 128 or 256. `Cluster`: CTAs of a cluster, side by side in C where they
/// share A, below one another where they share B. The launch plan keeps to this: boxes of the maps are [BK,
/// rows of the tile], of the shared operand a `Cluster`th of these rows, and [64, 16] for C; 384 threads; any
/// multiple of `Cluster` CTAs, best as many as are resident at once; shared memory for the buffers, 16
/// panels, two barriers a stage, and 1024 bytes to align them.
template <int BN, int Stages, int Cluster, bool ShareA>
__global__ void __launch_bounds__(384, 1)
    gemm(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
         const __grid_constant__ CUtensorMap map_c, int M) {
  constexpr uint32_t kBytesA = kBM * kBK * 2;
  constexpr uint32_t kBytesB = BN * kBK * 2;
  using Tiles = Schedule<ShareA ? kBM : kBM * Cluster, ShareA ? BN * Cluster : BN>;

  extern __shared__ uint8_t dynamic_shared[];
  uint8_t* const buffers_a = dynamic_shared + (-ptx::shared_address(dynamic_shared) & 1023);
  uint8_t* const buffers_b = buffers_a + Stages * kBytesA;
  uint8_t* const panels = buffers_b + Stages * kBytesB;
  ptx::Barrier* const full = reinterpret_cast<ptx::Barrier*>(panels + kConsumerWarps * 2 * kPanelBytes);
  ptx::Barrier* const empty = full + Stages;

  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);  // uniform, and known to be
  const int warp = threadIdx.x / 32 % 4;
  const int lane = threadIdx.x % 32;
  const int rank = ptx::cluster_rank();

  if (threadIdx.x == 0) {
    ptx::tma_prefetch_map(&map_a);
    ptx::tma_prefetch_map(&map_b);
    ptx::tma_prefetch_map(&map_c);
    for (int i = 0; i < Stages; ++i) {
      // Full: the own producer has arrived and all bytes have landed. Empty: the consumers of every CTA that
      // the loads for this buffer write to are done.
      ptx::barrier_init(&full[i], 1);
      ptx::barrier_init(&empty[i], kConsumerWarps * Cluster);
    }
    ptx::fence_barrier_init();
  }
  __syncwarp();
  ptx::cluster_sync();

  Ring<Stages> ring;
  Tiles tiles(M, blockIdx.x / Cluster, gridDim.x / Cluster);
  const int offset_m = ShareA ? 0 : rank * kBM;
  const int offset_n = ShareA ? rank * BN : 0;

  if (warpgroup == 0) {
    ptx::registers_lower<kProducerRegisters>();
    if (warp == 0 && ptx::elect_one()) {
      constexpr uint16_t kAll = (1u << Cluster) - 1;
      for (; tiles.valid(); tiles.next()) {
        int m, n;
        tiles.origin(m, n);
        m += offset_m;
        n += offset_n;
        for (int block = 0; block < kKBlocks; ++block, ring.advance()) {
          uint8_t* const a = buffers_a + ring.stage * kBytesA;
          uint8_t* const b = buffers_b + ring.stage * kBytesB;
          ptx::Barrier* const landed = &full[ring.stage];
          ptx::barrier_wait_cluster(&empty[ring.stage], ring.parity ^ 1);
          ptx::barrier_arrive_expect(landed, kBytesA + kBytesB);
          if constexpr (Cluster == 1) {
            ptx::tma_load_2d(a, &map_a, landed, block * kBK, m);
            ptx::tma_load_2d(b, &map_b, landed, block * kBK, n);
          } else if constexpr (!ShareA) {
            ptx::tma_load_2d(a, &map_a, landed, block * kBK, m);
            ptx::tma_load_2d_multicast(b + rank * (kBytesB / Cluster), &map_b, landed, block * kBK,
                                       n + rank * (BN / Cluster), kAll);
          } else {
            ptx::tma_load_2d_multicast(a + rank * (kBytesA / Cluster), &map_a, landed, block * kBK,
                                       m + rank * (kBM / Cluster), kAll);
            ptx::tma_load_2d(b, &map_b, landed, block * kBK, n);
          }
        }
      }
    }
    __syncwarp();
  } else {
    ptx::registers_raise<kConsumerRegisters>();
    const int consumer = warpgroup - 1;
    const uint64_t descriptor_a = ptx::wgmma_descriptor(buffers_a + consumer * (kBytesA / 2));
    const uint64_t descriptor_b = ptx::wgmma_descriptor(buffers_b);
    uint8_t* const panel = panels + (consumer * 4 + warp) * 2 * kPanelBytes;
    // stmatrix: lanes 0-15 address the rows of 8 columns, lanes 16-31 those of the next 8.
    const uint32_t panel_row = ptx::shared_address(panel) + lane % 16 * 128;

    // One arrival a warp frees a buffer in every CTA that may write it.
    auto release = [&](int stage) {
      if constexpr (Cluster == 1) {
        if (lane == 0) ptx::barrier_arrive(&empty[stage]);
      } else {
        if (lane < Cluster) ptx::barrier_arrive_at(&empty[stage], lane);
      }
    };

    float acc[BN / 2];
    for (; tiles.valid(); tiles.next()) {
      int before = 0;
      for (int block = 0; block < kKBlocks; ++block, ring.advance()) {
        ptx::barrier_wait_cluster(&full[ring.stage], ring.parity);
        const uint64_t a = ptx::wgmma_advance(descriptor_a, ring.stage * kBytesA);
        const uint64_t b = ptx::wgmma_advance(descriptor_b, ring.stage * kBytesB);
        ptx::wgmma_fence();
#pragma unroll
        for (int k = 0; k < kBK / 16; ++k)
          multiply<BN>(acc, ptx::wgmma_advance(a, k * 32), ptx::wgmma_advance(b, k * 32), block | k);
        ptx::wgmma_commit();
        // The block before this one is done when only this one is still running.
        ptx::wgmma_wait<1>();
        if (block > 0) release(before);
        before = ring.stage;
      }
      ptx::wgmma_wait<0>();
      ptx::wgmma_settle(acc);
      release(before);

      // Each warp stores its 16 rows by itself, 64 columns at a time, through two panels by turns (BN 64: one).
      int m, n;
      tiles.origin(m, n);
      m += offset_m + consumer * 64 + warp * 16;
      n += offset_n;
#pragma unroll
      for (int p = 0; p < BN / 64; ++p) {
        if (lane == 0) ptx::tma_store_wait_read<BN == 64 ? 0 : 1>();
        __syncwarp();
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float* d = acc + p * 32 + j * 8;
          const uint32_t chunk = (j * 2 + lane / 16) ^ (lane % 8);  // the 128-byte swizzle of map_c
          ptx::store_matrix_x4(panel_row + p % 2 * kPanelBytes + chunk * 16, pack_bf16(d[0], d[1]),
                               pack_bf16(d[2], d[3]), pack_bf16(d[4], d[5]), pack_bf16(d[6], d[7]));
        }
        ptx::fence_proxy_async_shared();
        __syncwarp();
        if (lane == 0) {
          ptx::tma_store_2d(&map_c, panel + p % 2 * kPanelBytes, n + p * 64, m);
          ptx::tma_store_commit();
        }
      }
    }
    if (lane == 0) ptx::tma_store_wait<0>();
    __syncwarp();
  }

  // No CTA leaves while another may still write its buffers or arrive at its barriers.
  ptx::cluster_sync();
}
