#include "verify/host_loops.hpp"

#include "emulator/clones.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <system_error>
#include <thread>
#include <vector>

namespace ptxbench {
namespace {

using judge::i32;
using judge::u32;
using judge::u64;

// --- random numbers ---

// The first words of two counters' Philox, 64 elements at a time: judge::normal_fixed of each.
PTXBENCH_CLONES
void normal_batch(u64 key, u64 first, u32 stream, i32* out, u32* spare) {
  constexpr int kN = static_cast<int>(kDrawBatch);
  i32 sum[kN];
  for (int i = 0; i < kN; ++i) sum[i] = -393210;
  for (u32 block = 0; block < 2; ++block) {
    u32 c0[kN], c1[kN], c2[kN], c3[kN];
    for (int i = 0; i < kN; ++i) {
      const u64 index = first + static_cast<u64>(i);
      c0[i] = static_cast<u32>(index);
      c1[i] = static_cast<u32>(index >> 32);
      c2[i] = stream;
      c3[i] = block;
    }
    u32 k0 = static_cast<u32>(key), k1 = static_cast<u32>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      for (int i = 0; i < kN; ++i) {
        const u64 p0 = static_cast<u64>(0xD2511F53u) * c0[i], p1 = static_cast<u64>(0xCD9E8D57u) * c2[i];
        const u32 n0 = static_cast<u32>(p1 >> 32) ^ c1[i] ^ k0, n2 = static_cast<u32>(p0 >> 32) ^ c3[i] ^ k1;
        c1[i] = static_cast<u32>(p1);
        c3[i] = static_cast<u32>(p0);
        c0[i] = n0;
        c2[i] = n2;
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    const auto halves = [](u32 v) { return static_cast<i32>(v & 0xffff) + static_cast<i32>(v >> 16); };
    if (block == 0) {
      for (int i = 0; i < kN; ++i) sum[i] += halves(c0[i]) + halves(c1[i]) + halves(c2[i]) + halves(c3[i]);
    } else {
      for (int i = 0; i < kN; ++i) {
        sum[i] += halves(c0[i]) + halves(c1[i]);
        spare[i] = c2[i];
      }
    }
  }
  for (int i = 0; i < kN; ++i) out[i] = sum[i];
}

// --- the GEMM ---

constexpr int kColumns = 16;  // of a panel
constexpr int kRows = 4;
constexpr u64 kDepth = 512;   // of k at a time: a panel stays in the cache

// Each input type is exact in fp32. Rows of `count` elements to floats.
void to_floats(DType dtype, const void* from, u64 first, u64 count, float* to) {
  const auto type = static_cast<u32>(dtype);
  if (dtype == DType::bfloat16) {
    const auto* bits = static_cast<const judge::u16*>(from) + first;
    for (u64 i = 0; i < count; ++i) to[i] = judge::float_of_bits(static_cast<u32>(bits[i]) << 16);
  } else if (dtype == DType::float32) {
    const auto* values = static_cast<const float*>(from) + first;
    std::copy(values, values + count, to);
  } else {
    for (u64 i = 0; i < count; ++i) to[i] = static_cast<float>(judge::decode(type, judge::load_element(from, type, first + i)));
  }
}

// acc[r][c] += a[r][k] * panel[k][c] in the order of k. The products of what is multiplied here are exact in T (an fp32
// product in fp64, that of 16-bit floats in fp32), so it is the same whether the compiler fuses or not.
PTXBENCH_CLONES
void multiply_double(const float* a, u64 a_stride, int rows, const double* panel, u64 depth, double* acc) {
  for (int r = 0; r < rows; ++r) {
    double sum[kColumns];
    for (int c = 0; c < kColumns; ++c) sum[c] = acc[r * kColumns + c];
    const float* row = a + static_cast<u64>(r) * a_stride;
    for (u64 k = 0; k < depth; ++k) {
      const double x = static_cast<double>(row[k]);
      const double* y = panel + k * kColumns;
      for (int c = 0; c < kColumns; ++c) sum[c] += x * y[c];
    }
    for (int c = 0; c < kColumns; ++c) acc[r * kColumns + c] = sum[c];
  }
}
PTXBENCH_CLONES
void multiply_float(const float* a, u64 a_stride, int rows, const float* panel, u64 depth, float* acc) {
  for (int r = 0; r < rows; ++r) {
    float sum[kColumns];
    for (int c = 0; c < kColumns; ++c) sum[c] = acc[r * kColumns + c];
    const float* row = a + static_cast<u64>(r) * a_stride;
    for (u64 k = 0; k < depth; ++k) {
      const float x = row[k];
      const float* y = panel + k * kColumns;
      for (int c = 0; c < kColumns; ++c) sum[c] += x * y[c];
    }
    for (int c = 0; c < kColumns; ++c) acc[r * kColumns + c] = sum[c];
  }
}
// Products of fp32 inputs are not exact in fp32: the model fuses.
PTXBENCH_CLONES
void multiply_fused(const float* a, u64 a_stride, int rows, const float* panel, u64 depth, float* acc) {
  for (int r = 0; r < rows; ++r) {
    const float* row = a + static_cast<u64>(r) * a_stride;
    for (u64 k = 0; k < depth; ++k)
      for (int c = 0; c < kColumns; ++c)
        acc[r * kColumns + c] = __builtin_fmaf(row[k], panel[k * kColumns + static_cast<u64>(c)], acc[r * kColumns + c]);
  }
}

template <class T>
using Multiply = void (*)(const float*, u64, int, const T*, u64, T*);

template <class T, class Store>
void gemm(const GemmPattern& pattern, const GemmShape& shape, const void* a, const void* b, Multiply<T> multiply, Store store) {
  const u64 m = shape.m, n = shape.n, depth = shape.k;
  if (m == 0 || n == 0) return;
  std::vector<float> wide_a(m * depth);
  parallel_pieces(m, 1, [&](u64 first, u64 last) {
    to_floats(pattern.input, a, first * depth, (last - first) * depth, wide_a.data() + first * depth);
  });
  const u64 panels = (n + kColumns - 1) / kColumns;
  parallel_pieces(panels, 1, [&](u64 first, u64 last) {
    std::vector<T> panel(kDepth * kColumns), acc(m * kColumns);
    std::vector<float> row(kDepth);
    for (u64 p = first; p < last; ++p) {
      std::fill(acc.begin(), acc.end(), T(0));
      const u64 columns = std::min<u64>(kColumns, n - p * kColumns);
      for (u64 k = 0; k < depth; k += kDepth) {
        const u64 some = std::min(kDepth, depth - k);
        for (u64 c = 0; c < kColumns; ++c) {
          if (c < columns) to_floats(pattern.input, b, (p * kColumns + c) * depth + k, some, row.data());
          for (u64 i = 0; i < some; ++i) panel[i * kColumns + c] = c < columns ? static_cast<T>(row[i]) : T(0);
        }
        for (u64 i = 0; i < m; i += kRows)
          multiply(wide_a.data() + i * depth + k, depth, static_cast<int>(std::min<u64>(kRows, m - i)), panel.data(), some,
                   acc.data() + i * kColumns);
      }
      for (u64 i = 0; i < m; ++i)
        for (u64 c = 0; c < columns; ++c) store(i * n + p * kColumns + c, acc[i * kColumns + c]);
    }
  });
}

}  // namespace

void parallel_pieces(std::uint64_t count, std::uint64_t grain,
                     const std::function<void(std::uint64_t, std::uint64_t)>& f) {
  grain = std::max<std::uint64_t>(grain, 1);
  const std::uint64_t grains = (count + grain - 1) / grain;
  const std::uint64_t threads = std::min<std::uint64_t>({std::max(1u, std::thread::hardware_concurrency()), 32, grains});
  if (threads <= 1) {
    if (count != 0) f(0, count);
    return;
  }
  // Small enough that a thread that is slow does not keep the others waiting.
  const std::uint64_t step = std::max<std::uint64_t>(1, grains / (8 * threads)) * grain;
  std::atomic<std::uint64_t> next{0};
  const auto work = [&] {
    for (;;) {
      const std::uint64_t first = next.fetch_add(step, std::memory_order_relaxed);
      if (first >= count) return;
      f(first, std::min(count, first + step));
    }
  };
  std::vector<std::thread> others;
  others.reserve(threads);
  try {
    for (std::uint64_t i = 1; i < threads; ++i) others.emplace_back(work);
  } catch (const std::system_error&) {
    // No more threads to be had: those that there are do it.
  }
  work();
  for (std::thread& thread : others) thread.join();
}

void draw_fixed_batch(const judge::DrawSpec& spec, std::uint64_t first, std::uint64_t count, judge::i32* out) {
  if (spec.distribution == judge::kIntegers) {
    for (u64 i = 0; i < count; ++i) out[i] = judge::draw_fixed(spec, first + i);
    return;
  }
  i32 values[kDrawBatch];
  u32 spare[kDrawBatch];
  normal_batch(spec.key, first, 0, values, spare);
  for (u64 i = 0; i < count; ++i) {
    out[i] = values[i];
    if (spec.distribution == judge::kSpiky && spare[i] < 4294967u) {
      u32 unused;
      out[i] += 10 * judge::normal_fixed(spec.key, first + i, 1, &unused);
    }
  }
}

void host_gemm_reference(const GemmPattern& pattern, const GemmShape& shape, const void* a, const void* b, double* out) {
  gemm<double>(pattern, shape, a, b, multiply_double, [out](u64 at, double sum) { out[at] = sum; });
}

void host_gemm_model(const GemmPattern& pattern, const GemmShape& shape, const void* a, const void* b, void* out) {
  const auto type = static_cast<u32>(pattern.output);
  gemm<float>(pattern, shape, a, b, pattern.input == DType::float32 ? multiply_fused : multiply_float,
              [out, type](u64 at, float sum) {
                const u64 bits = judge::encode_from_float(type, sum);
                if (judge::type_bits(type) == 16) static_cast<judge::u16*>(out)[at] = static_cast<judge::u16>(bits);
                else static_cast<u32*>(out)[at] = static_cast<u32>(bits);
              });
}

void host_draw(const judge::DrawSpec& spec, void* to) {
  each_drawn(spec, [&](u64 unit, u64 bits) {
    switch (judge::type_bits(spec.type)) {
      case 64:
        static_cast<u64*>(to)[unit] = bits;
        break;
      case 32:
        static_cast<judge::u32*>(to)[unit] = static_cast<judge::u32>(bits);
        break;
      case 16:
        static_cast<judge::u16*>(to)[unit] = static_cast<judge::u16>(bits);
        break;
      default:
        static_cast<judge::u8*>(to)[unit] = static_cast<judge::u8>(bits);
    }
  });
}

}  // namespace ptxbench
