// mbarriers, cluster barriers, named barriers and the fences between them, for sm_90a.
// Needs PTX ISA 8.6 (CUDA 12.8).
//
// Every wrapper is one PTX instruction, or one and the loop that waits for it. All are `asm volatile` with a
// "memory" clobber, so that the compiler moves no access across them. `Barrier*` is the address of an
// mbarrier object: 8 bytes of shared memory, aligned to 8.
#pragma once

#include <cstdint>

namespace ptx {

using Barrier = uint64_t;

/// The 32-bit address in the window of shared memory that PTX instructions take.
__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// ---- mbarrier -----------------------------------------------------------------------------------
// A phase completes when all `arrivals` have come and all expected bytes have landed; the next phase then
// begins by itself. A waiter names the parity (0, 1, 0, ...) of the phase it waits for. On a fresh barrier
// the wait for parity 1 returns at once: the phase "before the first" counts as complete. That is how a
// producer finds its buffers empty.

/// One thread initialises; `fence_barrier_init` and a barrier over the CTA (or cluster) come before any other
/// use.
__device__ __forceinline__ void barrier_init(Barrier* barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
               : "memory");
}

/// Makes initialised mbarriers visible to the cluster's other CTAs and to the async proxy (TMA's
/// complete_tx).
__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// Arrives once at a barrier of the own CTA.
__device__ __forceinline__ void barrier_arrive(Barrier* barrier) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}

/// Arrives once at the barrier at the same offset in CTA `rank` of the cluster (which may be the own one),
/// and releases what this thread has done with shared memory; pairs with `barrier_wait_cluster`. The release
/// is a fence restricted to shared memory: `mbarrier.arrive.release.cluster` would wait for global memory as
/// well, which in a GEMM's inner loop costs a third of its speed.
__device__ __forceinline__ void barrier_arrive_at(Barrier* barrier, uint32_t rank) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "fence.release.sync_restrict::shared::cta.cluster;\n"
      "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [remote];\n"
      "}" ::"r"(shared_address(barrier)),
      "r"(rank)
      : "memory");
}

/// Arrives once and adds `bytes` to what the current phase waits for. TMA loads subtract as their data lands,
/// also where they land before this arrival.
__device__ __forceinline__ void barrier_arrive_expect(Barrier* barrier, uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}

/// True when the phase of this parity has completed. May suspend the thread for a while before it says no.
__device__ __forceinline__ bool barrier_try_wait(Barrier* barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}"
      : "=r"(done)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return done != 0;
}

/// Waits for the phase of this parity: what its arrivals (own CTA) and TMA loads wrote is then visible.
__device__ __forceinline__ void barrier_wait(Barrier* barrier, uint32_t parity) {
  while (!barrier_try_wait(barrier, parity)) {
  }
}

/// Waits for a phase that other CTAs of the cluster take part in, by arrivals or multicast loads: what they
/// wrote to shared memory is then visible. The acquire is a fence restricted to shared memory, as the release
/// is.
__device__ __forceinline__ void barrier_wait_cluster(Barrier* barrier, uint32_t parity) {
  uint32_t done;
  do {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  } while (done == 0);
  asm volatile("fence.acquire.sync_restrict::shared::cluster.cluster;" ::: "memory");
}

// ---- clusters -----------------------------------------------------------------------------------

/// The own CTA's number in its cluster; 0 where there is no cluster.
__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// Waits for all threads of the cluster. Every warp calls it converged (.aligned). No CTA may leave the
/// kernel before the others are done with its shared memory and barriers: end with this.
__device__ __forceinline__ void cluster_sync() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}

// ---- within a CTA -------------------------------------------------------------------------------

/// Named barrier `id` (1 to 15; 0 is __syncthreads) over `threads` threads, a multiple of 32; warps are
/// converged.
__device__ __forceinline__ void named_barrier_sync(uint32_t id, uint32_t threads) {
  asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// Orders the thread's ordinary accesses to shared memory before later ones of the async proxy (TMA, wgmma).
/// Each writing thread calls it, then a barrier, then one thread issues the store.
__device__ __forceinline__ void fence_proxy_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// True in exactly one lane of a converged warp.
__device__ __forceinline__ bool elect_one() {
  uint32_t elected;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "elect.sync _|p, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}"
      : "=r"(elected)::"memory");
  return elected != 0;
}

}  // namespace ptx
