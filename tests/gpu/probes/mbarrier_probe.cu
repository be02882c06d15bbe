// Prints what mbarrier states and early transactions look like on a card: nvcc -arch=sm_90a, run by hand.
#include <cstdint>
#include <cstdio>
__global__ void k(uint32_t* out, const uint8_t* g) {
  __shared__ __align__(128) uint8_t buf[256];
  __shared__ __align__(8) uint64_t bar, bar2, bar3;
  uint32_t b = (uint32_t)__cvta_generic_to_shared(&bar), b2 = (uint32_t)__cvta_generic_to_shared(&bar2),
           b3 = (uint32_t)__cvta_generic_to_shared(&bar3), d = (uint32_t)__cvta_generic_to_shared(buf);
  uint64_t s;
  uint32_t p;
  int ok;
  int n = 0;
  asm volatile("mbarrier.init.shared.b64 [%0], 5;" ::"r"(b));
  for (int i = 0; i < 5; i++) {
    asm volatile("mbarrier.arrive.shared.b64 %0,[%1];" : "=l"(s) : "r"(b));
    asm volatile("mbarrier.pending_count.b64 %0,%1;" : "=r"(p) : "l"(s));
    out[n++] = p;
  }
  // tx first, arrive, then expect
  asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(b2));
  asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async;");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],32,[%2];" ::"r"(d), "l"(g),
      "r"(b2)
      : "memory");
  for (int t = 0; t < 50; t++) __nanosleep(1000);
  asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p,[%1],0; selp.s32 %0,1,0,p;}"
               : "=r"(ok)
               : "r"(b2)
               : "memory");
  out[n++] = ok;  // 5
  asm volatile("mbarrier.arrive.shared.b64 _,[%0];" ::"r"(b2));
  asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p,[%1],0; selp.s32 %0,1,0,p;}"
               : "=r"(ok)
               : "r"(b2)
               : "memory");
  out[n++] = ok;  // 6
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 32;" ::"r"(b2));
  asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p,[%1],0; selp.s32 %0,1,0,p;}"
               : "=r"(ok)
               : "r"(b2)
               : "memory");
  out[n++] = ok;  // 7
  // drop
  asm volatile("mbarrier.init.shared.b64 [%0], 3;" ::"r"(b3));
  asm volatile("mbarrier.arrive_drop.shared.b64 %0,[%1];" : "=l"(s) : "r"(b3));
  asm volatile("mbarrier.pending_count.b64 %0,%1;" : "=r"(p) : "l"(s));
  out[n++] = p;
  asm volatile("mbarrier.arrive.shared.b64 %0,[%1];" : "=l"(s) : "r"(b3));
  asm volatile("mbarrier.arrive.shared.b64 %0,[%1];" : "=l"(s) : "r"(b3));
  asm volatile("mbarrier.pending_count.b64 %0,%1;" : "=r"(p) : "l"(s));
  out[n++] = p;
  asm volatile("mbarrier.arrive.shared.b64 %0,[%1];" : "=l"(s) : "r"(b3));
  asm volatile("mbarrier.pending_count.b64 %0,%1;" : "=r"(p) : "l"(s));
  out[n++] = p;  // next phase expects 2
  // zero-size bulk copy, src-size 0 cp.async with a null source
  asm volatile("cp.async.ca.shared.global [%0],[%1],16,0;" ::"r"(d), "l"((uint64_t)0) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  out[n++] = buf[0];
  out[31] = n;
}
int main() {
  uint32_t* o;
  uint8_t* g;
  cudaMallocManaged(&o, 256);
  cudaMalloc(&g, 256);
  k<<<1, 1>>>(o, g);
  int e = cudaDeviceSynchronize();
  printf("bar err %d n %u:", e, o[31]);
  for (int i = 0; i < 12; i++) printf(" %u", o[i]);
  printf("\n");
}
