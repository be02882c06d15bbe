// Finding the decoder of an instruction: the longest entry that its opcode and modifiers begin with.
#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void InstructionTable::add(std::string_view opcode, DecodeFunction decode) {
  entries_.insert_or_assign(std::string(opcode), decode);
}

DecodeFunction InstructionTable::find(std::string_view name) const {
  const auto at = entries_.find(name);
  return at == entries_.end() ? nullptr : at->second;
}

DecodeFunction InstructionTable::find(const ptx::Instruction& instruction) const {
  std::string name = instruction.opcode;
  std::vector<std::size_t> ends{name.size()};
  for (const std::string& m : instruction.modifiers) {
    name += '.';
    name += m;
    ends.push_back(name.size());
  }
  for (auto end = ends.rbegin(); end != ends.rend(); ++end)
    if (const DecodeFunction found = find(std::string_view(name).substr(0, *end))) return found;
  return nullptr;
}

}  // namespace ptxbench::emulator
