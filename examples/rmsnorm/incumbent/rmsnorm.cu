// What is in use today: one CTA a row, one element a load. y = x * rsqrt(mean(x^2) + 1e-6) * w.
#include <cuda_bf16.h>
#include <launch_plan.h>

extern "C" __global__ void __launch_bounds__(plan::THREADS) rmsnorm(const __nv_bfloat16* x, const __nv_bfloat16* w,
                                                                    __nv_bfloat16* y, int width) {
  __shared__ float partial[plan::THREADS / 32];
  const __nv_bfloat16* row = x + static_cast<long long>(blockIdx.x) * width;
  float sum = 0;
  for (int c = threadIdx.x; c < width; c += plan::THREADS) {
    const float v = __bfloat162float(row[c]);
    sum += v * v;
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < plan::THREADS / 32; ++i) sum += partial[i];
  const float scale = rsqrtf(sum / width + 1e-6f);
  for (int c = threadIdx.x; c < width; c += plan::THREADS)
    y[static_cast<long long>(blockIdx.x) * width + c] =
        __float2bfloat16(__bfloat162float(row[c]) * scale * __bfloat162float(w[c]));
}
