/// @file
/// Number formats of tensor-core operands: raw bits to exact fp32 values, and the units that the inner loops
/// read.
#pragma once

#include "emulator/tensor_kernels.hpp"
#include "emulator/tensor_rules.hpp"

#include <cstdint>

namespace ptxbench::emulator {

/// The smallest exponent of a format: that of its subnormals too.
constexpr int min_exponent(OperandType type) {
  switch (type) {
    case OperandType::e4m3:
      return -6;
    case OperandType::f16:
    case OperandType::e5m2:
      return -14;
    default:
      return -126;
  }
}

/// @p count elements as fp32, exactly. Infinities and NaN stay such.
void operand_values(OperandType type, const void* raw, int count, bool negate, float* values);
/// One element.
float operand_value(OperandType type, const void* raw, int index);
/// Exponents of values: of a zero kZeroExponent, of infinities and NaN kSpecialExponent.
void operand_exponents(const float* values, int count, int min_exponent, std::int16_t* exponents);

/// Rows of A ([m][k] values) as units of eight rows; columns of B ([n][k] values) as two units for eight
/// columns: the even columns and the odd ones.
void fill_row_units(const float* values, const std::int16_t* exponents, int m, int k, RowUnit* units);
void fill_column_units(const float* values, const std::int16_t* exponents, int k, ColumnUnit* units);

float half_to_float(std::uint16_t bits) noexcept;
/// To nearest even; NaN becomes 0x7fff.
std::uint16_t float_to_half(float value) noexcept;
/// 32 lanes at once: the low or high halves of words.
void halves_to_floats(const std::uint32_t* words, int shift, float* values);
void floats_to_halves(const float* values, std::uint16_t* halves);

}  // namespace ptxbench::emulator
