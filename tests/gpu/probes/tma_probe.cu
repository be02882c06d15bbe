// Records what the TMA of a card does with one box or one reduction. A case that the card refuses ends its
// process, so each is one of its own; tma_cases.py makes the lists. Run by hand on the card:
//   nvcc -arch=sm_90a -o tma_probe tma_probe.cu -lcuda
//   tma_probe FILE case (numbers as tma_cases.py prints them, and if it is a reduction, which)
//   tma_probe FILE reduce TYPE OP VECTORS
// Appends to FILE a struct Config, then a length and that many bytes: the window of shared memory that a load
// left, or the tensor that a store or reduction left.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#define CHECK(x)                                                 \
  do {                                                           \
    const int e_ = static_cast<int>(x);                          \
    if (e_ != 0) {                                               \
      std::fprintf(stderr, "line %d: error %d\n", __LINE__, e_); \
      std::exit(3);                                              \
    }                                                            \
  } while (0)

struct Config {
  std::int32_t kind;  // 0 load, 1 store, 2 reduction
  std::int32_t dtype, rank, interleave, swizzle, oob;
  std::int64_t dims[5], strides[4];
  std::int32_t box[5], es[5], at[5];
  std::uint32_t off, global_bytes;
  std::int32_t op, encode, error;
  std::uint64_t expected, complete;  // bytes that a load's mbarrier expects, and whether as many were signalled
};

constexpr int kWindow = 40960;

#define TENSOR(RANK, HEAD, TAIL, COORDS, ...) \
  if (rank == RANK) asm volatile(HEAD "." #RANK "d" TAIL COORDS ";" ::__VA_ARGS__ : "memory")

__global__ void load_box(const __grid_constant__ CUtensorMap map, int rank, int a0, int a1, int a2, int a3,
                         int a4, std::uint32_t off, std::uint8_t* out, std::uint32_t expected,
                         std::uint32_t* complete) {
  extern __shared__ __align__(1024) std::uint8_t window[];
  __shared__ __align__(8) unsigned long long bar;
  const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(window));
  const std::uint32_t pad = (1024 - base % 1024) % 1024, d = base + pad + off;
  const auto b = static_cast<std::uint32_t>(__cvta_generic_to_shared(&bar));
  for (int i = threadIdx.x; i < kWindow; i += blockDim.x) window[pad + i] = 0xCD;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(b) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    const auto m = reinterpret_cast<std::uint64_t>(&map);
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(b), "r"(expected) : "memory");
#define LOAD(RANK, COORDS, ...)                                                                          \
  TENSOR(RANK, "cp.async.bulk.tensor", ".shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1,", \
         COORDS "],[%2]", "r"(d), "l"(m), "r"(b), __VA_ARGS__)
    LOAD(1, "{%3}", "r"(a0));
    LOAD(2, "{%3,%4}", "r"(a0), "r"(a1));
    LOAD(3, "{%3,%4,%5}", "r"(a0), "r"(a1), "r"(a2));
    LOAD(4, "{%3,%4,%5,%6}", "r"(a0), "r"(a1), "r"(a2), "r"(a3));
    LOAD(5, "{%3,%4,%5,%6,%7}", "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(a4));
    std::uint32_t done = 0;
    for (int t = 0; t < 20000 && done == 0; ++t) {
      asm volatile(
          "{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
          : "=r"(done)
          : "r"(b)
          : "memory");
      if (done == 0) __nanosleep(1000);
    }
    *complete = done;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kWindow; i += blockDim.x) out[i] = window[pad + i];
}

#define STORE(HEAD, SUFFIX)                                                                                  \
  TENSOR(1, HEAD, ".global.shared::cta" SUFFIX ".bulk_group [%0,", "{%2}],[%1]", "l"(m), "r"(d), "r"(a0));   \
  TENSOR(2, HEAD, ".global.shared::cta" SUFFIX ".bulk_group [%0,", "{%2,%3}],[%1]", "l"(m), "r"(d), "r"(a0), \
         "r"(a1));                                                                                           \
  TENSOR(3, HEAD, ".global.shared::cta" SUFFIX ".bulk_group [%0,", "{%2,%3,%4}],[%1]", "l"(m), "r"(d),       \
         "r"(a0), "r"(a1), "r"(a2));                                                                         \
  TENSOR(4, HEAD, ".global.shared::cta" SUFFIX ".bulk_group [%0,", "{%2,%3,%4,%5}],[%1]", "l"(m), "r"(d),    \
         "r"(a0), "r"(a1), "r"(a2), "r"(a3));                                                                \
  TENSOR(5, HEAD, ".global.shared::cta" SUFFIX ".bulk_group [%0,", "{%2,%3,%4,%5,%6}],[%1]", "l"(m), "r"(d), \
         "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(a4));

__global__ void store_box(const __grid_constant__ CUtensorMap map, int rank, int a0, int a1, int a2, int a3,
                          int a4, std::uint32_t off, const std::uint8_t* in, int bytes, int op) {
  extern __shared__ __align__(1024) std::uint8_t window[];
  const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(window));
  const std::uint32_t pad = (1024 - base % 1024) % 1024, d = base + pad + off;
  for (int i = threadIdx.x; i < bytes; i += blockDim.x) window[pad + i] = in[i];
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  if (threadIdx.x != 0) return;
  const auto m = reinterpret_cast<std::uint64_t>(&map);
  switch (op) {
    case -1:
      STORE("cp.async.bulk.tensor", "") break;
    case 0:
      STORE("cp.reduce.async.bulk.tensor", ".add") break;
    case 1:
      STORE("cp.reduce.async.bulk.tensor", ".min") break;
    case 2:
      STORE("cp.reduce.async.bulk.tensor", ".max") break;
    case 3:
      STORE("cp.reduce.async.bulk.tensor", ".inc") break;
    case 4:
      STORE("cp.reduce.async.bulk.tensor", ".dec") break;
    case 5:
      STORE("cp.reduce.async.bulk.tensor", ".and") break;
    case 6:
      STORE("cp.reduce.async.bulk.tensor", ".or") break;
    case 7:
      STORE("cp.reduce.async.bulk.tensor", ".xor") break;
  }
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

static void pattern(std::uint8_t* p, std::size_t n, std::uint64_t seed) {
  for (std::size_t i = 0; i < n; ++i) {
    std::uint64_t h = (i + 1) * 0x9e3779b97f4a7c15ull + seed * 0xff51afd7ed558ccdull;
    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9ull;
    p[i] = static_cast<std::uint8_t>(h >> 37);
  }
}

static int encode(CUtensorMap* m, const Config& c, void* global) {
  cuuint64_t dims[5], strides[4];
  cuuint32_t box[5], es[5];
  for (int d = 0; d < 5; ++d) {
    dims[d] = c.dims[d];
    box[d] = c.box[d];
    es[d] = c.es[d];
    if (d < 4) strides[d] = c.strides[d];
  }
  return cuTensorMapEncodeTiled(m, static_cast<CUtensorMapDataType>(c.dtype), c.rank, global, dims, strides,
                                box, es, static_cast<CUtensorMapInterleave>(c.interleave),
                                static_cast<CUtensorMapSwizzle>(c.swizzle), CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                static_cast<CUtensorMapFloatOOBfill>(c.oob));
}

// What a box has. An interleaved tensor's dimensions count slices of 16 or 32 bytes, of which it has one in its last
// but one: found by this program.
static std::uint32_t box_bytes(const Config& c) {
  const std::uint32_t element[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  std::uint32_t n = c.interleave == 0 ? element[c.dtype] : 16 * c.interleave;
  for (int d = 0; d < c.rank; ++d) {
    const int step = c.interleave == 0 && d == 0 ? 1 : c.es[d];
    if (c.interleave == 0 || d != c.rank - 2) n *= (c.box[d] + step - 1) / step;
  }
  return n;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  Config c;
  std::memset(&c, 0, sizeof c);
  std::vector<std::uint8_t> tensor(1 << 20), window(kWindow);
  const bool reduction = std::string(argv[2]) == "reduce";
  int window_bytes = kWindow;
  if (reduction) {
    if (argc < 6) return 2;
    const int bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    c.kind = 2;
    c.dtype = std::atoi(argv[3]);
    c.op = std::atoi(argv[4]);
    c.rank = 2;
    for (int d = 0; d < 5; ++d) c.dims[d] = c.box[d] = c.es[d] = 1;
    c.dims[0] = c.box[0] = 128 / bytes[c.dtype];
    c.dims[1] = c.box[1] = 64;
    c.strides[0] = 128;
    c.global_bytes = window_bytes = 8192;
    std::FILE* in = std::fopen(argv[5], "rb");
    if (in == nullptr || std::fseek(in, c.dtype * 16384L, SEEK_SET) != 0 ||
        std::fread(tensor.data(), 1, 8192, in) != 8192 || std::fread(window.data(), 1, 8192, in) != 8192)
      return 2;
  } else {
    std::vector<long long> v;
    for (int i = 3; i < argc; ++i) v.push_back(std::atoll(argv[i]));
    if (v.size() != 32 && v.size() != 33) return 2;
    auto next = v.begin();
    for (std::int32_t* p : {&c.kind, &c.dtype, &c.rank, &c.interleave, &c.swizzle, &c.oob})
      *p = static_cast<int>(*next++);
    for (auto& x : c.dims) x = *next++;
    for (auto& x : c.strides) x = *next++;
    for (auto& x : c.box) x = static_cast<int>(*next++);
    for (auto& x : c.es) x = static_cast<int>(*next++);
    for (auto& x : c.at) x = static_cast<int>(*next++);
    c.off = static_cast<std::uint32_t>(*next++);
    c.global_bytes = static_cast<std::uint32_t>(*next++);
    c.op = v.size() == 33 ? static_cast<int>(v[32]) : -1;
    pattern(tensor.data(), c.global_bytes, 1);
    pattern(window.data(), kWindow, 2);
  }
  CHECK(cuInit(0));
  CHECK(cudaFree(nullptr));
  std::uint8_t *global, *shared;
  std::uint32_t *complete, host_complete = 0;
  CHECK(cudaMalloc(&global, 1 << 20));
  CHECK(cudaMalloc(&shared, kWindow));
  CHECK(cudaMalloc(&complete, 4));
  CHECK(cudaMemset(global, 0, 1 << 20));
  CHECK(cudaMemcpy(global, tensor.data(), c.global_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(shared, window.data(), window_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaFuncSetAttribute(load_box, cudaFuncAttributeMaxDynamicSharedMemorySize, kWindow + 1024));
  CHECK(cudaFuncSetAttribute(store_box, cudaFuncAttributeMaxDynamicSharedMemorySize, kWindow + 1024));
  CUtensorMap map;
  c.encode = encode(&map, c, global);
  std::FILE* f = std::fopen(argv[1], "ab");
  std::uint32_t keep = 0;
  const std::uint8_t* bytes = nullptr;
  if (c.encode == 0) {
    if (c.kind == 0)
      load_box<<<1, 128, kWindow + 1024>>>(map, c.rank, c.at[0], c.at[1], c.at[2], c.at[3], c.at[4], c.off,
                                           shared, box_bytes(c), complete);
    else
      store_box<<<1, 128, kWindow + 1024>>>(map, c.rank, c.at[0], c.at[1], c.at[2], c.at[3], c.at[4], c.off,
                                            shared, window_bytes, c.op);
    c.error = cudaDeviceSynchronize();
    if (c.error == 0 && c.kind == 0) {
      CHECK(cudaMemcpy(&host_complete, complete, 4, cudaMemcpyDeviceToHost));
      c.expected = box_bytes(c);
      c.complete = host_complete;
      CHECK(cudaMemcpy(window.data(), shared, kWindow, cudaMemcpyDeviceToHost));
      keep = kWindow;
      while (keep > 128 && window[keep - 1] == 0xCD) --keep;
      bytes = window.data();
    } else if (c.error == 0) {
      CHECK(cudaMemcpy(tensor.data(), global, c.global_bytes, cudaMemcpyDeviceToHost));
      keep = c.global_bytes;
      bytes = tensor.data();
    }
  }
  std::fwrite(&c, sizeof c, 1, f);
  std::fwrite(&keep, sizeof keep, 1, f);
  if (keep != 0) std::fwrite(bytes, 1, keep, f);
  std::fclose(f);
  return 0;
}
