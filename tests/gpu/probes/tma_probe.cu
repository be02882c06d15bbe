// Records what the TMA of a card does: boxes of random maps loaded and stored (swizzles, interleaves, element
// strides, NaN fill, negative coordinates), reductions of every type, misaligned destinations. Run by hand on
// the card:
//   nvcc -arch=sm_90a -o tma_probe tma_probe.cu -lcuda
//   tma_probe load FILE COUNT SEED | store FILE COUNT SEED | reduce FILE TYPE OP VECTORS | misalign FILE
//   SWIZZLE OFFSET
// The records (struct Config, then a length and bytes) are what the emulator is compared with.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#define CK(x)                                                         \
  do {                                                                \
    auto e_ = (x);                                                    \
    if (e_ != 0) {                                                    \
      fprintf(stderr, "%s:%d err %d\n", __FILE__, __LINE__, (int)e_); \
      exit(3);                                                        \
    }                                                                 \
  } while (0)
struct Config {
  int32_t kind;
  int32_t dtype, rank, interleave, swizzle, oob;
  int64_t dims[5], strides[4];
  int32_t box[5], es[5];
  int32_t at[5];
  uint32_t off;
  uint32_t bytes;
  int32_t op;
  int32_t encode_rc;
  int32_t done;
  int32_t err;
  uint32_t global_bytes;
};
static uint64_t rs = 12345;
static uint32_t rnd() {
  rs = rs * 6364136223846793005ull + 1442695040888963407ull;
  return rs >> 33;
}
static int rr(int a, int b) { return a + rnd() % (b - a + 1); }
static int ebytes(int t) {
  const int k[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  return k[t];
}
__global__ void load_k(const __grid_constant__ CUtensorMap map, int rank, int a0, int a1, int a2, int a3,
                       int a4, uint32_t off, uint32_t bytes, uint8_t* out, int outn, int* done) {
  extern __shared__ __align__(1024) uint8_t sm[];
  __shared__ __align__(8) uint64_t bar;
  uint32_t base = (uint32_t)__cvta_generic_to_shared(sm);
  uint32_t pad = (1024 - base % 1024) % 1024;
  for (int i = threadIdx.x; i < outn; i += blockDim.x) sm[pad + i] = 0xCD;
  uint32_t b = (uint32_t)__cvta_generic_to_shared(&bar);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(b));
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  asm volatile("fence.proxy.async;");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(b), "r"(bytes));
    uint32_t d = base + pad + off;
    uint64_t m = (uint64_t)&map;
    if (rank == 1)
      asm volatile(
          "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes "
          "[%0],[%1,{%3}],[%2];" ::"r"(d),
          "l"(m), "r"(b), "r"(a0)
          : "memory");
    if (rank == 2)
      asm volatile(
          "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
          "[%0],[%1,{%3,%4}],[%2];" ::"r"(d),
          "l"(m), "r"(b), "r"(a0), "r"(a1)
          : "memory");
    if (rank == 3)
      asm volatile(
          "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
          "[%0],[%1,{%3,%4,%5}],[%2];" ::"r"(d),
          "l"(m), "r"(b), "r"(a0), "r"(a1), "r"(a2)
          : "memory");
    if (rank == 4)
      asm volatile(
          "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
          "[%0],[%1,{%3,%4,%5,%6}],[%2];" ::"r"(d),
          "l"(m), "r"(b), "r"(a0), "r"(a1), "r"(a2), "r"(a3)
          : "memory");
    if (rank == 5)
      asm volatile(
          "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
          "[%0],[%1,{%3,%4,%5,%6,%7}],[%2];" ::"r"(d),
          "l"(m), "r"(b), "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(a4)
          : "memory");
    int ok = 0;
    for (int t = 0; t < 200 && !ok; t++) {
      asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p,[%1],0; selp.s32 %0,1,0,p;}"
                   : "=r"(ok)
                   : "r"(b)
                   : "memory");
    }
    *done = ok;
    for (int t = 0; t < 20; t++) __nanosleep(1000);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < outn; i += blockDim.x) out[i] = sm[pad + i];
}
#define ST(OPN, SUF)                                                                                        \
  if (rank == 1)                                                                                            \
    asm volatile("cp." OPN ".1d.global.shared::cta" SUF ".bulk_group [%0,{%2}],[%1];" ::"l"(m), "r"(d),     \
                 "r"(a0)                                                                                    \
                 : "memory");                                                                               \
  if (rank == 2)                                                                                            \
    asm volatile("cp." OPN ".2d.global.shared::cta" SUF ".bulk_group [%0,{%2,%3}],[%1];" ::"l"(m), "r"(d),  \
                 "r"(a0), "r"(a1)                                                                           \
                 : "memory");                                                                               \
  if (rank == 3)                                                                                            \
    asm volatile("cp." OPN ".3d.global.shared::cta" SUF ".bulk_group [%0,{%2,%3,%4}],[%1];" ::"l"(m),       \
                 "r"(d), "r"(a0), "r"(a1), "r"(a2)                                                          \
                 : "memory");                                                                               \
  if (rank == 4)                                                                                            \
    asm volatile("cp." OPN ".4d.global.shared::cta" SUF ".bulk_group [%0,{%2,%3,%4,%5}],[%1];" ::"l"(m),    \
                 "r"(d), "r"(a0), "r"(a1), "r"(a2), "r"(a3)                                                 \
                 : "memory");                                                                               \
  if (rank == 5)                                                                                            \
    asm volatile("cp." OPN ".5d.global.shared::cta" SUF ".bulk_group [%0,{%2,%3,%4,%5,%6}],[%1];" ::"l"(m), \
                 "r"(d), "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(a4)                                        \
                 : "memory");
__global__ void store_k(const __grid_constant__ CUtensorMap map, int rank, int a0, int a1, int a2, int a3,
                        int a4, uint32_t off, const uint8_t* in, int inn, int op) {
  extern __shared__ __align__(1024) uint8_t sm[];
  uint32_t base = (uint32_t)__cvta_generic_to_shared(sm);
  uint32_t pad = (1024 - base % 1024) % 1024;
  for (int i = threadIdx.x; i < inn; i += blockDim.x) sm[pad + i] = in[i];
  asm volatile("fence.proxy.async;");
  __syncthreads();
  if (threadIdx.x == 0) {
    uint32_t d = base + pad + off;
    uint64_t m = (uint64_t)&map;
    switch (op) {
      case -1:
        ST("async.bulk.tensor", "") break;
      case 0:
        ST("reduce.async.bulk.tensor", ".add") break;
      case 1:
        ST("reduce.async.bulk.tensor", ".min") break;
      case 2:
        ST("reduce.async.bulk.tensor", ".max") break;
      case 3:
        ST("reduce.async.bulk.tensor", ".inc") break;
      case 4:
        ST("reduce.async.bulk.tensor", ".dec") break;
      case 5:
        ST("reduce.async.bulk.tensor", ".and") break;
      case 6:
        ST("reduce.async.bulk.tensor", ".or") break;
      case 7:
        ST("reduce.async.bulk.tensor", ".xor") break;
    }
    asm volatile("cp.async.bulk.commit_group;");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
static void pattern(uint8_t* p, size_t n, uint64_t seed) {
  for (size_t i = 0; i < n; i++) {
    uint64_t h = (i + 1) * 0x9e3779b97f4a7c15ull + seed * 0xff51afd7ed558ccdull;
    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9ull;
    p[i] = h >> 37;
  }
}
static CUresult enc(CUtensorMap* m, Config& c, void* g) {
  cuuint64_t d[5], s[4];
  cuuint32_t b[5], e[5];
  for (int i = 0; i < 5; i++) {
    d[i] = c.dims[i];
    b[i] = c.box[i];
    e[i] = c.es[i];
    if (i < 4) s[i] = c.strides[i];
  }
  return cuTensorMapEncodeTiled(m, (CUtensorMapDataType)c.dtype, c.rank, g, d, s, b, e,
                                (CUtensorMapInterleave)c.interleave, (CUtensorMapSwizzle)c.swizzle,
                                CU_TENSOR_MAP_L2_PROMOTION_NONE, (CUtensorMapFloatOOBfill)c.oob);
}
static Config draw(int kind) {
  Config c;
  memset(&c, 0, sizeof c);
  c.kind = kind;
  c.op = -1;
  for (;;) {
    c.dtype = rr(0, 12);
    c.rank = rr(1, 5);
    c.interleave = rr(0, 5) == 0 ? rr(1, 2) : 0;
    c.swizzle = c.interleave == 2 ? 1 : rr(0, 3);
    if (c.interleave && c.rank < 3) c.rank = rr(3, 5);
    bool fl = c.dtype >= 6;
    c.oob = fl && rr(0, 1);
    int eb = ebytes(c.dtype);
    int span = c.swizzle ? 16 << c.swizzle : 512;
    int maxin = c.interleave ? (c.interleave == 1 ? 16 : 32) : span;
    int inner = 16 * rr(1, maxin / 16);
    if (inner / eb > 256) continue;
    if (inner / eb < 1) continue;
    int rowbytes;
    int64_t stride = 1;
    size_t total;
    c.es[0] = 1;
    c.box[0] = inner / eb;
    c.dims[0] = rr(1, 2 * inner / eb + 3);
    if (c.interleave && rr(0, 2) == 0) {
      c.es[0] = rr(1, 3);
    }
    int al = c.interleave == 2 ? 32 : 16;
    stride = (c.dims[0] * eb + al - 1) / al * al + al * rr(0, 1);
    int64_t boxn = inner;
    for (int d = 1; d < 5; d++) {
      if (d < c.rank) {
        c.dims[d] = rr(1, 9);
        c.es[d] = rr(0, 2) == 0 ? rr(1, 4) : 1;
        c.box[d] = rr(1, 9);
        c.strides[d - 1] = stride;
        stride *= c.dims[d];
        if (rr(0, 3) == 0) stride += al;
        boxn *= (c.box[d] + c.es[d] - 1) / c.es[d];
      } else {
        c.dims[d] = 1;
        c.es[d] = 1;
        c.box[d] = 1;
        c.strides[d - 1] = 0;
      }
    }
    total = stride;
    c.global_bytes = total + 256;
    int e0 = c.interleave ? c.es[0] : 1;
    boxn = boxn / inner * ((c.box[0] + e0 - 1) / e0 * eb);
    if (boxn > 24576 || total > (1 << 20)) continue;
    c.bytes = boxn;
    for (int d = 0; d < 5; d++) c.at[d] = d < c.rank ? rr(-c.box[d], (int)c.dims[d]) : 0;
    if (rr(0, 1))
      for (int d = 0; d < c.rank; d++) c.at[d] = c.at[d] / 4;
    c.off = 128 * rr(0, 9);
    return c;
  }
}
int main(int argc, char** argv) {
  cuInit(0);
  CK(cudaFree(0));
  const int SM = 40960;
  CK(cudaFuncSetAttribute(load_k, cudaFuncAttributeMaxDynamicSharedMemorySize, SM + 1024));
  CK(cudaFuncSetAttribute(store_k, cudaFuncAttributeMaxDynamicSharedMemorySize, SM + 1024));
  uint8_t *g, *o;
  int* done;
  CK(cudaMalloc(&g, 2 << 20));
  CK(cudaMalloc(&o, SM));
  CK(cudaMallocManaged(&done, 4));
  std::vector<uint8_t> h(2 << 20), s(SM);
  std::string mode = argv[1];
  FILE* f = fopen(argv[2], "wb");
  if (mode == "load" || mode == "store") {
    int n = atoi(argv[3]);
    int written = 0, rejected = 0;
    rs = atoi(argv[4]);
    for (int k = 0; k < n; k++) {
      Config c = draw(mode == "load" ? 0 : 1);
      CUtensorMap m;
      c.encode_rc = enc(&m, c, g);
      if (c.encode_rc) {
        rejected++;
        fwrite(&c, sizeof c, 1, f);
        continue;
      }
      pattern(h.data(), c.global_bytes, 1);
      CK(cudaMemcpy(g, h.data(), c.global_bytes, cudaMemcpyHostToDevice));
      if (mode == "load") {
        *done = 0;
        load_k<<<1, 128, SM + 1024>>>(m, c.rank, c.at[0], c.at[1], c.at[2], c.at[3], c.at[4], c.off, c.bytes,
                                      o, SM, done);
        c.err = cudaDeviceSynchronize();
        if (c.err) {
          fwrite(&c, sizeof c, 1, f);
          fprintf(stderr, "load err %d at %d\n", c.err, k);
          break;
        }
        c.done = *done;
        CK(cudaMemcpy(s.data(), o, SM, cudaMemcpyDeviceToHost));
        fwrite(&c, sizeof c, 1, f);
        uint32_t keep = (c.off + c.bytes + 1024) & ~127u;
        fwrite(&keep, 4, 1, f);
        fwrite(s.data(), 1, keep, f);
      } else {
        pattern(s.data(), SM, 2);
        CK(cudaMemcpy(o, s.data(), SM, cudaMemcpyHostToDevice));
        store_k<<<1, 128, SM + 1024>>>(m, c.rank, c.at[0], c.at[1], c.at[2], c.at[3], c.at[4], c.off, o, SM,
                                       -1);
        c.err = cudaDeviceSynchronize();
        if (c.err) {
          fwrite(&c, sizeof c, 1, f);
          fprintf(stderr, "store err %d at %d\n", c.err, k);
          break;
        }
        c.done = 1;
        CK(cudaMemcpy(h.data(), g, c.global_bytes, cudaMemcpyDeviceToHost));
        fwrite(&c, sizeof c, 1, f);
        uint32_t keep = c.global_bytes;
        fwrite(&keep, 4, 1, f);
        fwrite(h.data(), 1, keep, f);
      }
      written++;
    }
    printf("%s: %d written %d rejected\n", mode.c_str(), written, rejected);
  } else if (mode == "reduce") {
    int dt = atoi(argv[3]), op = atoi(argv[4]);
    Config c;
    memset(&c, 0, sizeof c);
    c.kind = 2;
    c.dtype = dt;
    c.rank = 2;
    c.op = op;
    int eb = ebytes(dt);
    c.dims[0] = 128 / eb;
    c.dims[1] = 64;
    for (int d = 2; d < 5; d++) c.dims[d] = 1;
    c.strides[0] = 128;
    c.box[0] = 128 / eb;
    c.box[1] = 64;
    for (int d = 0; d < 5; d++) {
      c.es[d] = 1;
      if (d > 1) c.box[d] = 1;
    }
    c.bytes = 8192;
    c.global_bytes = 8192;
    FILE* in = fopen(argv[5], "rb");
    fseek(in, (long)dt * 16384, SEEK_SET);
    if (fread(h.data(), 1, 16384, in) != 16384) return 4;
    CUtensorMap m;
    c.encode_rc = enc(&m, c, g);
    CK(c.encode_rc);
    CK(cudaMemcpy(g, h.data(), 8192, cudaMemcpyHostToDevice));
    CK(cudaMemcpy(o, h.data() + 8192, 8192, cudaMemcpyHostToDevice));
    store_k<<<1, 128, SM + 1024>>>(m, 2, 0, 0, 0, 0, 0, 0, o, 8192, op);
    c.err = cudaDeviceSynchronize();
    if (!c.err) CK(cudaMemcpy(h.data(), g, 8192, cudaMemcpyDeviceToHost));
    fwrite(&c, sizeof c, 1, f);
    fwrite(h.data(), 1, 8192, f);
    printf("reduce dt %d op %d err %d\n", dt, op, c.err);
  } else if (mode == "misalign") {
    int sw = atoi(argv[3]);
    uint32_t off = atoi(argv[4]);
    Config c;
    memset(&c, 0, sizeof c);
    c.dtype = 0;
    c.rank = 2;
    c.swizzle = sw;
    int in = sw ? 16 << sw : 64;
    c.dims[0] = in;
    c.dims[1] = 8;
    c.strides[0] = in;
    c.box[0] = in;
    c.box[1] = 8;
    for (int d = 0; d < 5; d++) {
      c.es[d] = 1;
      if (d > 1) {
        c.box[d] = 1;
        c.dims[d] = 1;
      }
    }
    c.bytes = in * 8;
    c.global_bytes = in * 8;
    c.off = off;
    pattern(h.data(), 4096, 1);
    CK(cudaMemcpy(g, h.data(), 4096, cudaMemcpyHostToDevice));
    CUtensorMap m;
    CK(enc(&m, c, g));
    *done = 0;
    load_k<<<1, 128, SM + 1024>>>(m, 2, 0, 0, 0, 0, 0, off, c.bytes, o, SM, done);
    int e = cudaDeviceSynchronize();
    printf("misalign sw %d off %u: err %d done %d", sw, off, e, e ? 0 : *done);
    if (!e) {
      CK(cudaMemcpy(s.data(), o, SM, cudaMemcpyDeviceToHost));
      int first = -1;
      for (int i = 0; i < 8192; i++)
        if (s[i] != 0xCD) {
          first = i;
          break;
        }
      printf(" first byte written %d", first);
    }
    printf("\n");
  }
  fclose(f);
  return 0;
}
