/// @file
/// Multiplying tiles as tensor cores do, to the bit.
///
/// Operands are packed arrays of raw bits: A is [m][k], B is [n][k], an element taking its size in memory
/// (fp8 and int8 one byte, f16 and bf16 two, tf32 four). M and N are multiples of 8, K is that of one
/// instruction. All functions are pure, allocate nothing on the heap, and may run on any number of threads at
/// once; the host's rounding mode and flush-to-zero bits do not matter.
///
/// What the measurements leave open is decided so: a sum that is exactly zero is +0, whatever the signs of
/// its terms; a result that underflows keeps its sign.
#pragma once

#include "emulator/tensor_kernels.hpp"
#include "emulator/tensor_rules.hpp"

#include <cstdint>

namespace ptxbench::emulator {

struct MultiplyOptions {
  bool accumulate = true;  ///< D = A * B + D; false: D = A * B
  bool negate_a = false, negate_b = false;
  bool saturate = false;  ///< .satfinite of integers
  TensorIsa isa = TensorIsa::automatic;
};

inline constexpr int kMaxTensorM = 64;

/// D [m][n], in place: fp32 and s32 four bytes, fp16 two.
void tile_multiply(const TensorRule& rule, const void* a, const void* b, void* d, int m, int n, int k,
                   const MultiplyOptions& options);

/// D as accumulator fragments, in place. Row block i of eight rows (0 to m / 8 - 1) and column block j of
/// eight columns: fp32 and s32: d[(i * (n / 8) + j) * 2 + c] points at 32 lanes, lane l being row 8 i + l /
/// 4, column 8 j + 2 (l % 4) + c. fp16: d[i * (n / 8) + j] points at 32 lanes of two halves, c = 0 the lower.
void fragment_multiply(const TensorRule& rule, const void* a, const void* b, std::uint32_t* const* d, int m,
                       int n, int k, const MultiplyOptions& options);

/// One output by the rule itself: slow, for any operands. @p a and @p b are rows of K elements, c and the
/// result raw bits of the accumulator's type.
std::uint32_t dot_product(const TensorRule& rule, const void* a, const void* b, std::uint32_t c, int k,
                          const MultiplyOptions& options);

}  // namespace ptxbench::emulator
