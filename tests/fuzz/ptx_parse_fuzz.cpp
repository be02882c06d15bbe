#include "ptx/module.hpp"

#include <cstddef>
#include <cstdint>

namespace {

using ptxbench::ptx::Function;
using ptxbench::ptx::Module;
using ptxbench::ptx::Operand;

// Each index leads somewhere: whoever executes the module relies on that.
void check(const Module& module, const Function& function, const Operand& operand) {
  bool inside = true;
  switch (operand.kind) {
    case Operand::Kind::reg:
      inside = operand.index < function.registers.size();
      break;
    case Operand::Kind::variable:
      inside = operand.index < (operand.module_scope ? module.variables.size() : function.variables.size());
      break;
    case Operand::Kind::function:
      inside = operand.index < module.functions.size();
      break;
    case Operand::Kind::label:
      inside = operand.index <= function.body.size();
      break;
    case Operand::Kind::address:
      inside = operand.parts.size() == 1;
      break;
    case Operand::Kind::pair:
      inside = operand.parts.size() == 2;
      break;
    case Operand::Kind::tensor:
      inside = operand.parts.size() >= 2;
      break;
    default:
      break;
  }
  if (!inside) __builtin_trap();
  for (const Operand& part : operand.parts) check(module, function, part);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto module = ptxbench::ptx::parse({reinterpret_cast<const char*>(data), size}, "fuzz.ptx");
  if (!module) {
    if (module.error().message.empty() || module.error().where.line <= 0 || module.error().where.column <= 0)
      __builtin_trap();
    return 0;
  }
  for (const auto& variable : module->variables)
    if (variable.init.size() > variable.bytes) __builtin_trap();
  for (const Function& function : module->functions) {
    if (function.parameter_count + function.return_count > function.variables.size()) __builtin_trap();
    for (const auto& instruction : function.body) {
      if (instruction.guard && instruction.guard->reg >= function.registers.size()) __builtin_trap();
      module->source_line(instruction.location);
      for (const Operand& operand : instruction.operands) check(*module, function, operand);
    }
  }
  return 0;
}
