#include "emulator/contraction.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
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

bool has(const ptx::Instruction& i, std::string_view modifier) {
  return std::find(i.modifiers.begin(), i.modifiers.end(), modifier) != i.modifiers.end();
}

// How often each register is written: counts every one in the place of destinations.
void count_written(const ptx::Operand& o, std::vector<std::uint8_t>& times) {
  using Kind = ptx::Operand::Kind;
  if (o.kind == Kind::reg && o.index < times.size() && times[o.index] < 2) ++times[o.index];
  if (o.kind == Kind::vector || o.kind == Kind::pair || o.kind == Kind::list)
    for (const ptx::Operand& part : o.parts) count_written(part, times);
}

// Registers that only a mov of a constant, or of another such register, writes.
std::vector<bool> known_registers(const ptx::Function& function) {
  using Kind = ptx::Operand::Kind;
  std::vector<std::uint8_t> times(function.registers.size());
  for (const ptx::Instruction& i : function.body)
    if (!i.operands.empty()) count_written(i.operands[0], times);
  std::vector<bool> known(times.size());
  for (const ptx::Instruction& i : function.body) {
    if (i.opcode != "mov" || i.operands.size() != 2 || i.operands[0].kind != Kind::reg) continue;
    const std::uint32_t to = i.operands[0].index;
    const ptx::Operand& from = i.operands[1];
    if (to < known.size() && times[to] == 1)
      known[to] = from.kind == Kind::integer || from.kind == Kind::f32 || from.kind == Kind::f64 ||
                  (from.kind == Kind::reg && from.index < known.size() && known[from.index]);
  }
  return known;
}

// The operand of an approximate function, or divisor of an approximate division, that ptxas folds where it
// knows it; 0: another instruction. It never folds tanh and functions of halves.
std::size_t folded_operand(const ptx::Instruction& i) {
  if (!has(i, "f32") && !has(i, "f64")) return 0;
  if (i.opcode == "div") return has(i, "approx") || has(i, "full") ? 2 : 0;
  if (!has(i, "approx")) return 0;
  constexpr std::string_view kFolded[] = {"ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos"};
  return std::find(std::begin(kFolded), std::end(kFolded), i.opcode) == std::end(kFolded) ? 0 : 1;
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
  const std::vector<bool> known = known_registers(function);
  for (std::size_t n = 0; n < function.body.size(); ++n) {
    const ptx::Instruction& i = function.body[n];
    if (const std::size_t k = folded_operand(i); k != 0 && k < i.operands.size()) {
      const ptx::Operand& o = i.operands[k];
      result[n] = o.kind == Kind::reg && o.index < known.size() && known[o.index];
      continue;
    }
    if (i.opcode != "mul" || i.operands.empty() || i.operands[0].kind != Kind::reg) continue;
    const std::string_view type = unrounded_type(i);
    result[n] = !type.empty() && i.operands[0].index < added.size() && added[i.operands[0].index] == type;
  }
  return result;
}

}  // namespace ptxbench::emulator
