#include "emulator/tensor_rules.hpp"

#include <vector>

namespace ptxbench::emulator {

namespace {

// Pairs of operand types that share a row.
enum class Pair : std::uint8_t { bf16, f16, tf32, e4m3, e5m2, fp8_mixed, int8 };

struct Row {
  TensorInstruction instruction;
  Pair operands;
  AccumulatorType accumulator;
  int k;  // of the instruction
  int operation_k;
  int fraction_bits;
  SumRounding rounding;
  Composition composition;
  RuleFidelity fidelity;
};

constexpr auto kMma = TensorInstruction::mma_sync;
constexpr auto kWmma = TensorInstruction::wmma;
constexpr auto kWgmma = TensorInstruction::wgmma;
constexpr auto kF16 = AccumulatorType::f16;
constexpr auto kF32 = AccumulatorType::f32;
constexpr auto kS32 = AccumulatorType::s32;
constexpr auto kZero = SumRounding::toward_zero;
constexpr auto kZero13 = SumRounding::toward_zero_13_bits;
constexpr auto kEven = SumRounding::nearest_even;
constexpr auto kInteger = SumRounding::integer;
constexpr auto kChained = Composition::chained;
constexpr auto kSplit = Composition::split_then_add;
constexpr auto kExact = RuleFidelity::exact;
constexpr auto kUnmeasured = RuleFidelity::unmeasured;

// sm_90. Rows marked exact were compared with an H200 without a difference: the forms of
// tests/support/tensor_forms.hpp, up to 102,400 outputs each (tests/fixtures/tensor), several of them earlier
// on a million (wgmma) or a quarter million (mma.sync). A sum that vanishes is +0. Integers are exact by
// definition.
constexpr Row kSm90[] = {
    {kWgmma, Pair::bf16, kF32, 16, 16, 25, kZero, kChained, kExact},
    {kWgmma, Pair::f16, kF32, 16, 16, 25, kZero, kChained, kExact},
    {kWgmma, Pair::f16, kF16, 16, 16, 25, kEven, kChained, kExact},
    {kWgmma, Pair::tf32, kF32, 8, 8, 25, kZero, kChained, kExact},
    {kWgmma, Pair::e4m3, kF32, 32, 32, 13, kZero13, kChained, kExact},
    {kWgmma, Pair::e5m2, kF32, 32, 32, 13, kZero13, kChained, kExact},
    {kWgmma, Pair::fp8_mixed, kF32, 32, 32, 13, kZero13, kChained, kExact},
    {kWgmma, Pair::e4m3, kF16, 32, 32, 13, kEven, kChained, kExact},
    {kWgmma, Pair::e5m2, kF16, 32, 32, 13, kEven, kChained, kExact},
    {kWgmma, Pair::fp8_mixed, kF16, 32, 32, 13, kEven, kChained, kExact},
    {kWgmma, Pair::int8, kS32, 32, 32, 0, kInteger, kChained, kExact},

    {kMma, Pair::bf16, kF32, 16, 16, 25, kZero, kChained, kExact},
    {kMma, Pair::f16, kF32, 16, 16, 25, kZero, kChained, kExact},
    {kMma, Pair::f16, kF16, 16, 16, 25, kEven, kChained, kExact},
    {kMma, Pair::bf16, kF32, 8, 8, 25, kZero, kChained, kExact},
    {kMma, Pair::f16, kF32, 8, 8, 25, kZero, kChained, kExact},
    {kMma, Pair::f16, kF16, 8, 8, 25, kEven, kChained, kExact},
    {kMma, Pair::tf32, kF32, 8, 8, 25, kZero, kChained, kExact},
    {kMma, Pair::tf32, kF32, 4, 4, 25, kZero, kChained, kExact},
    {kMma, Pair::e4m3, kF32, 32, 16, 25, kZero, kSplit, kExact},
    {kMma, Pair::e5m2, kF32, 32, 16, 25, kZero, kSplit, kExact},
    {kMma, Pair::fp8_mixed, kF32, 32, 16, 25, kZero, kSplit, kExact},
    {kMma, Pair::e4m3, kF32, 16, 8, 25, kZero, kSplit, kExact},
    {kMma, Pair::e5m2, kF32, 16, 8, 25, kZero, kSplit, kExact},
    {kMma, Pair::fp8_mixed, kF32, 16, 8, 25, kZero, kSplit, kExact},
    {kMma, Pair::e4m3, kF16, 32, 16, 25, kEven, kSplit, kExact},
    {kMma, Pair::e5m2, kF16, 32, 16, 25, kEven, kSplit, kExact},
    {kMma, Pair::fp8_mixed, kF16, 32, 16, 25, kEven, kSplit, kExact},
    {kMma, Pair::e4m3, kF16, 16, 8, 25, kEven, kSplit, kExact},
    {kMma, Pair::e5m2, kF16, 16, 8, 25, kEven, kSplit, kExact},
    {kMma, Pair::fp8_mixed, kF16, 16, 8, 25, kEven, kSplit, kUnmeasured},
    {kMma, Pair::int8, kS32, 32, 32, 0, kInteger, kChained, kExact},
    {kMma, Pair::int8, kS32, 16, 16, 0, kInteger, kChained, kExact},

    // ptxas makes the machine instructions of mma.sync m16n8k16 of wmma, and for tf32 two of m16n8k4 each.
    {kWmma, Pair::bf16, kF32, 16, 16, 25, kZero, kChained, kExact},
    {kWmma, Pair::f16, kF32, 16, 16, 25, kZero, kChained, kExact},
    {kWmma, Pair::f16, kF16, 16, 16, 25, kEven, kChained, kExact},
    {kWmma, Pair::tf32, kF32, 8, 4, 25, kZero, kChained, kExact},
    {kWmma, Pair::int8, kS32, 16, 16, 0, kInteger, kChained, kExact},
};

constexpr bool is_fp8(OperandType type) { return type == OperandType::e4m3 || type == OperandType::e5m2; }
constexpr bool is_int8(OperandType type) { return type == OperandType::s8 || type == OperandType::u8; }

constexpr bool in_pair(Pair pair, OperandType a, OperandType b) {
  switch (pair) {
    case Pair::int8:
      return is_int8(a) && is_int8(b);
    case Pair::fp8_mixed:
      return is_fp8(a) && is_fp8(b) && a != b;
    case Pair::f16:
      return a == OperandType::f16 && a == b;
    case Pair::bf16:
      return a == OperandType::bf16 && a == b;
    case Pair::tf32:
      return a == OperandType::tf32 && a == b;
    case Pair::e4m3:
      return a == OperandType::e4m3 && a == b;
    case Pair::e5m2:
      return a == OperandType::e5m2 && a == b;
  }
  return false;
}

constexpr OperandType kTypes[] = {OperandType::f16,  OperandType::bf16, OperandType::tf32, OperandType::e4m3,
                                  OperandType::e5m2, OperandType::s8,   OperandType::u8};

struct Entry {
  TensorRule rule;
  int k;  // of the instruction
};
// Every row for every pair of types it stands for.
const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = [] {
    std::vector<Entry> list;
    for (const Row& row : kSm90)
      for (const OperandType a : kTypes)
        for (const OperandType b : kTypes)
          if (in_pair(row.operands, a, b))
            list.push_back({{row.instruction, a, b, row.accumulator, row.operation_k, row.fraction_bits,
                             row.rounding, row.composition, row.fidelity},
                            row.k});
    return list;
  }();
  return all;
}

}  // namespace

int tensor_rule_number(int sm, TensorInstruction instruction, OperandType a, OperandType b,
                       AccumulatorType accumulator, int k) {
  const auto& all = entries();
  for (std::size_t i = 0; sm == 90 && i < all.size(); ++i) {
    const TensorRule& rule = all[i].rule;
    if (rule.instruction == instruction && rule.a == a && rule.b == b && rule.accumulator == accumulator &&
        all[i].k == k)
      return static_cast<int>(i);
  }
  return -1;
}
const TensorRule& tensor_rule(int number) { return entries()[static_cast<std::size_t>(number)].rule; }

std::optional<TensorRule> find_tensor_rule(int sm, TensorInstruction instruction, OperandType a,
                                           OperandType b, AccumulatorType accumulator, int k) {
  const int number = tensor_rule_number(sm, instruction, a, b, accumulator, k);
  if (number < 0) return std::nullopt;
  return tensor_rule(number);
}

std::optional<OperandType> operand_type_named(std::string_view name) {
  for (const OperandType type : kTypes)
    if (name == to_string(type)) return type;
  return std::nullopt;
}

const char* to_string(OperandType type) {
  switch (type) {
    case OperandType::f16:
      return "f16";
    case OperandType::bf16:
      return "bf16";
    case OperandType::tf32:
      return "tf32";
    case OperandType::e4m3:
      return "e4m3";
    case OperandType::e5m2:
      return "e5m2";
    case OperandType::s8:
      return "s8";
    case OperandType::u8:
      return "u8";
  }
  return "?";
}
const char* to_string(AccumulatorType type) {
  return type == AccumulatorType::f16 ? "f16" : type == AccumulatorType::f32 ? "f32" : "s32";
}
const char* to_string(TensorInstruction instruction) {
  return instruction == kMma ? "mma.sync" : instruction == kWmma ? "wmma" : "wgmma";
}
std::string to_string(const TensorRule& rule) {
  return std::string(to_string(rule.instruction)) + "." + to_string(rule.accumulator) + "." +
         to_string(rule.a) + "." + to_string(rule.b);
}

}  // namespace ptxbench::emulator
