/// @file
/// The inner loops of the tensor-core arithmetic, for each instruction set of the host.
///
/// Outputs are worked on 32 at a time, in the shape of an accumulator register: lane l holds row l / 4 of
/// eight rows and column 2 (l % 4) of eight columns (or the column after it). Operands are brought into that
/// shape once.
#pragma once

#include <cstdint>

namespace ptxbench::emulator {

/// Which inner loop; all give the same bits.
enum class TensorIsa : std::uint8_t { automatic, portable, avx2, avx512 };
bool tensor_isa_available(TensorIsa isa);
/// What `automatic` is on this machine.
TensorIsa best_tensor_isa();

inline constexpr int kMaxTensorK = 32;
/// Exponents that stand for a zero and for an infinity or NaN: sums of two keep clear of real exponents.
inline constexpr std::int16_t kZeroExponent = -6000;
inline constexpr std::int16_t kSpecialExponent = 12000;

/// Eight rows of A: lane l has row l / 4. Values are exact in fp32, exponents those of the operand's format
/// (a subnormal has its format's smallest).
struct alignas(64) RowUnit {
  float value[kMaxTensorK][32];
  std::int16_t exponent[kMaxTensorK][32];
};
/// Four columns of B, every second of eight.
struct alignas(16) ColumnUnit {
  float value[kMaxTensorK][4];
  std::int16_t exponent[kMaxTensorK][4];
};

/// One operation's parameters.
struct DotParameters {
  int k;
  int fraction_bits;
  int accumulator_min_exponent;  ///< of C's format: -126 or -14
  int mantissa_bits;             ///< of the result: 23, or fewer
  bool round_to_odd;             ///< instead of towards zero: keeps a later rounding right
  bool accumulate;               ///< false: C is zero
};

/// For each of @p units: d[unit][lane] = C + A * B for 32 lanes of fp32, in place. Lanes whose exponents
/// leave the range of the fast arithmetic (and all with infinities or NaN) stay untouched, and have their bit
/// set in bad[unit].
void dot_units(TensorIsa isa, const RowUnit* rows, int units, const ColumnUnit& columns,
               const DotParameters& p, float* const* d, std::uint32_t* bad);

/// The same for 8-bit integers, whose operands are whole numbers in fp32: the exact sums over K.
void integer_dot_units(TensorIsa isa, const RowUnit* rows, int units, const ColumnUnit& columns, int k,
                       std::int32_t (*sums)[32]);

}  // namespace ptxbench::emulator
