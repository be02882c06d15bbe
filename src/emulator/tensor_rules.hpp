/// @file
/// Which arithmetic a tensor-core instruction does: the table keyed by architecture and instruction.
///
/// The rule of all floating-point forms is the truncated fused dot-add. One operation computes
/// D = C + sum over its K of a * b at once: exact products whose significands are not normalised, every term
/// cut towards zero to F fraction bits at the scale of the largest exponent of a term that is not zero, an
/// exact sum, one conversion. What differs between instructions is K, F, and the conversion.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ptxbench::emulator {

enum class TensorInstruction : std::uint8_t { mma_sync, wmma, wgmma };
enum class OperandType : std::uint8_t { f16, bf16, tf32, e4m3, e5m2, s8, u8 };
enum class AccumulatorType : std::uint8_t { f16, f32, s32 };

/// What is known about an entry of the table.
enum class RuleFidelity : std::uint8_t {
  exact,      ///< held against the card, or exact by the ISA (integers)
  unmeasured  ///< by analogy with the measured forms
};

/// How the exact sum becomes the output.
enum class SumRounding : std::uint8_t {
  toward_zero,          ///< fp32; subnormals kept, overflow gives an infinity
  toward_zero_13_bits,  ///< fp32 with 13 bits of mantissa
  nearest_even,         ///< fp16
  integer               ///< s32: wraps, or saturates with .satfinite
};

/// How the instruction is made of operations.
enum class Composition : std::uint8_t {
  chained,  ///< operations over successive parts of K, each adding to the one before
  /// fp8 mma.sync on sm_90: operands become f16; from zero over k mod 4 in {0, 1}, then over {2, 3}, then C
  /// is added by an fp32 addition to nearest even
  split_then_add
};

struct TensorRule {
  TensorInstruction instruction;
  OperandType a, b;
  AccumulatorType accumulator;
  int operation_k;    ///< terms of one operation
  int fraction_bits;  ///< F
  SumRounding rounding;
  Composition composition;
  RuleFidelity fidelity;
};

/// The rule of an instruction with @p k elements in its K dimension; none where the architecture (90 for
/// sm_90 and sm_90a) has no such instruction or the emulator no rule for it.
std::optional<TensorRule> find_tensor_rule(int sm, TensorInstruction instruction, OperandType a,
                                           OperandType b, AccumulatorType accumulator, int k);
/// The same as a small number that an instruction can keep; -1 where there is none.
int tensor_rule_number(int sm, TensorInstruction instruction, OperandType a, OperandType b,
                       AccumulatorType accumulator, int k);
const TensorRule& tensor_rule(int number);

/// Bits of an element as it lies in memory: tf32 takes 32.
constexpr int operand_bits(OperandType type) {
  switch (type) {
    case OperandType::f16:
    case OperandType::bf16:
      return 16;
    case OperandType::tf32:
      return 32;
    default:
      return 8;
  }
}
constexpr int accumulator_bytes(AccumulatorType type) { return type == AccumulatorType::f16 ? 2 : 4; }
std::optional<OperandType> operand_type_named(std::string_view name);
const char* to_string(OperandType type);
const char* to_string(AccumulatorType type);
const char* to_string(TensorInstruction instruction);
std::string to_string(const TensorRule& rule);

}  // namespace ptxbench::emulator
