// Bulk tensor copies (TMA) between global and shared memory, for sm_90a.
//
// One thread issues each copy. Coordinates are in elements, innermost dimension first, and may lie outside
// the tensor: loads fill with zeros (and still count the whole box on the barrier), stores write only what
// lies inside. Shared addresses are aligned to 128 bytes; with the 128-byte swizzle to 1024, so that the
// pattern starts at a tile's first row. A tensor map is a kernel parameter: `const __grid_constant__
// CUtensorMap map`.
#pragma once

#include <cuda.h>
#include <ptx/barrier.cuh>

#include <cstdint>

namespace ptx {

/// Fetches the descriptor ahead of its first use.
__device__ __forceinline__ void tma_prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(reinterpret_cast<uint64_t>(map)) : "memory");
}

/// Loads the map's box at (x, y) to shared memory; its bytes count on `barrier` of the own CTA.
__device__ __forceinline__ void tma_load_2d(void* shared, const CUtensorMap* map, Barrier* barrier, int x,
                                            int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4}], [%2];" ::"r"(shared_address(shared)),
      "l"(reinterpret_cast<uint64_t>(map)), "r"(shared_address(barrier)), "r"(x), "r"(y)
      : "memory");
}

/// Loads the box once and writes it to the same offset in every CTA of the cluster whose bit is set in
/// `ranks`; its bytes count on the barrier at the same offset there. All of these buffers must be free.
__device__ __forceinline__ void tma_load_2d_multicast(void* shared, const CUtensorMap* map, Barrier* barrier,
                                                      int x, int y, uint16_t ranks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], "
      "[%1, {%3, %4}], [%2], %5;" ::"r"(shared_address(shared)),
      "l"(reinterpret_cast<uint64_t>(map)), "r"(shared_address(barrier)), "r"(x), "r"(y), "h"(ranks)
      : "memory");
}

/// Stores the map's box from shared memory to (x, y). The data was written before fence_proxy_async_shared
/// and a barrier.
__device__ __forceinline__ void tma_store_2d(const CUtensorMap* map, const void* shared, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(
                   reinterpret_cast<uint64_t>(map)),
               "r"(shared_address(shared)), "r"(x), "r"(y)
               : "memory");
}

/// Closes the group of stores that this thread has issued since the last commit.
__device__ __forceinline__ void tma_store_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/// Waits until at most `Pending` of this thread's groups have not yet read their shared memory, which may
/// then be reused.
template <int Pending>
__device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}

/// Waits until at most `Pending` of this thread's groups are not yet complete: read and written.
template <int Pending>
__device__ __forceinline__ void tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(Pending) : "memory");
}

}  // namespace ptx
