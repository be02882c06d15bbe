// Opcodes that integers, floats and halves share: the type modifier says whose decoder takes them.
#include "emulator/op_lanes.hpp"

#include <algorithm>

namespace ptxbench::emulator {
namespace {

bool has(const ptx::Instruction& i, std::initializer_list<std::string_view> names) {
  return std::any_of(i.modifiers.begin(), i.modifiers.end(), [&](const std::string& m) {
    return std::find(names.begin(), names.end(), std::string_view(m)) != names.end();
  });
}

Result<void> by_type(Decoder& d, DecodeFunction integer, DecodeFunction real, DecodeFunction half) {
  const ptx::Instruction& i = d.instruction();
  const bool is_half = has(i, {"f16", "f16x2", "bf16", "bf16x2"});
  const bool is_float = has(i, {"f32", "f64", "f32x2"});
  if (is_half && is_float) return d.unsupported("arithmetic of mixed precision (it needs sm_100)");
  const DecodeFunction decode = is_half ? half : is_float ? real : integer;
  if (decode == nullptr) return d.bad("the instruction has no such type");
  return decode(d);
}

Result<void> decode_add(Decoder& d) {
  if (has(d.instruction(), {"cc"})) return decode_carry(d);
  return by_type(d, decode_add_integer, decode_add_float, decode_add_half);
}
Result<void> decode_sub(Decoder& d) {
  if (has(d.instruction(), {"cc"})) return decode_carry(d);
  return by_type(d, decode_sub_integer, decode_sub_float, decode_sub_half);
}
Result<void> decode_mad(Decoder& d) {
  if (has(d.instruction(), {"cc"})) return decode_carry(d);
  return by_type(d, decode_mad_integer, decode_fma_float,
                 nullptr);  // mad.f32 is fma on every target since sm_20
}
Result<void> decode_mul(Decoder& d) {
  return by_type(d, decode_mul_integer, decode_mul_float, decode_mul_half);
}
Result<void> decode_fma(Decoder& d) { return by_type(d, nullptr, decode_fma_float, decode_fma_half); }
Result<void> decode_div(Decoder& d) { return by_type(d, decode_div_integer, decode_div_float, nullptr); }
Result<void> decode_abs(Decoder& d) {
  return by_type(d, decode_abs_integer, decode_abs_float, decode_abs_half);
}
Result<void> decode_neg(Decoder& d) {
  return by_type(d, decode_neg_integer, decode_neg_float, decode_neg_half);
}
Result<void> decode_min(Decoder& d) {
  return by_type(d, decode_min_integer, decode_min_float, decode_min_half);
}
Result<void> decode_max(Decoder& d) {
  return by_type(d, decode_max_integer, decode_max_float, decode_max_half);
}
Result<void> decode_ex2(Decoder& d) { return by_type(d, nullptr, decode_ex2_float, decode_ex2_half); }
Result<void> decode_tanh(Decoder& d) { return by_type(d, nullptr, decode_tanh_float, decode_tanh_half); }

}  // namespace

void register_arithmetic(InstructionTable& table) {
  table.add("add", decode_add);
  table.add("sub", decode_sub);
  table.add("mad", decode_mad);
  table.add("addc", decode_carry);
  table.add("subc", decode_carry);
  table.add("madc", decode_carry);
  table.add("mul", decode_mul);
  table.add("fma", decode_fma);
  table.add("div", decode_div);
  table.add("abs", decode_abs);
  table.add("neg", decode_neg);
  table.add("min", decode_min);
  table.add("max", decode_max);
  table.add("ex2", decode_ex2);
  table.add("tanh", decode_tanh);
}

}  // namespace ptxbench::emulator
