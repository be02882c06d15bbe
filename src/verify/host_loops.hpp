// The judge's loops on the CPU, made fast: over host threads and vectors, with the same bits as one element at a time.
#pragma once

#include "verify/judge/judge.h"
#include "verify/judge/random.h"
#include "verify/native.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>

namespace ptxbench {

// Calls `f(first, last)` for pieces of [0, count), on as many threads as the machine has where it is worth it. `f` must not
// throw. Pieces are multiples of `grain`, but for the last.
void parallel_pieces(std::uint64_t count, std::uint64_t grain, const std::function<void(std::uint64_t, std::uint64_t)>& f);

// Fixed-point values of elements [first, first + count) of a draw, count <= kDrawBatch: judge::draw_fixed of each.
inline constexpr std::uint64_t kDrawBatch = 64;
void draw_fixed_batch(const judge::DrawSpec& spec, std::uint64_t first, std::uint64_t count, judge::i32* out);

// Calls `f(unit, bits)` for every unit of a draw, from several threads.
template <class F>
void each_drawn(const judge::DrawSpec& spec, F&& f) {
  const std::uint64_t units = judge::draw_units(spec);
  if (judge::type_bits(spec.type) == 4) {  // two elements a unit
    parallel_pieces(units, 4096, [&](std::uint64_t first, std::uint64_t last) {
      for (std::uint64_t i = first; i < last; ++i) f(i, judge::draw_unit(spec, i));
    });
    return;
  }
  parallel_pieces(units, kDrawBatch * 64, [&](std::uint64_t first, std::uint64_t last) {
    judge::i32 values[kDrawBatch];
    for (std::uint64_t i = first; i < last; i += kDrawBatch) {
      const std::uint64_t some = std::min<std::uint64_t>(kDrawBatch, last - i);
      draw_fixed_batch(spec, i, some, values);
      for (std::uint64_t j = 0; j < some; ++j)
        f(i + j, judge::encode_fixed(spec.type, values[j], spec.distribution == judge::kIntegers));
    }
  });
}
// Draws into host memory.
void host_draw(const judge::DrawSpec& spec, void* to);

// C[i, j] = sum over k of A[i, k] * B[j, k], in the order of k: fp64 results, or the model's (fp32 sums, rounded to
// `pattern.output`).
void host_gemm_reference(const GemmPattern& pattern, const GemmShape& shape, const void* a, const void* b, double* out);
void host_gemm_model(const GemmPattern& pattern, const GemmShape& shape, const void* a, const void* b, void* out);

}  // namespace ptxbench
