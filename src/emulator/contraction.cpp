#include "emulator/contraction.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace ptxbench::emulator {
namespace {

// The type of an f32, f64 or half instruction without a rounding modifier; empty: another one.
std::string_view unrounded_type(const ptx::Instruction& i) {
  std::string_view type;
  for (const std::string& m : i.modifiers) {
    if (m == "rn" || m == "rz" || m == "rm" || m == "rp") return {};
    if (m == "f32" || m == "f32x2" || m == "f64" || m == "f16" || m == "f16x2" || m == "bf16" ||
        m == "bf16x2")
      type = m;
  }
  return type;
}

}  // namespace

std::vector<bool> contractible(const ptx::Function& function) {
  using Kind = ptx::Operand::Kind;
  // Types of the additions that read each register, as it occurs: a register has one type of float nearly
  // always.
  std::vector<std::string_view> added(function.registers.size());
  for (const ptx::Instruction& i : function.body) {
    if (i.opcode != "add" && i.opcode != "sub") continue;
    const std::string_view type = unrounded_type(i);
    if (type.empty()) continue;
    for (std::size_t k = 1; k < i.operands.size(); ++k) {
      if (i.operands[k].kind == Kind::reg && i.operands[k].index < added.size())
        added[i.operands[k].index] = type;
    }
  }
  std::vector<bool> result(function.body.size());
  for (std::size_t n = 0; n < function.body.size(); ++n) {
    const ptx::Instruction& i = function.body[n];
    if (i.opcode != "mul" || i.operands.empty() || i.operands[0].kind != Kind::reg) continue;
    const std::string_view type = unrounded_type(i);
    result[n] = !type.empty() && i.operands[0].index < added.size() && added[i.operands[0].index] == type;
  }
  return result;
}

}  // namespace ptxbench::emulator
