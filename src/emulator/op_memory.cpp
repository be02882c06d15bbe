#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void register_memory(InstructionTable&) {}

}  // namespace ptxbench::emulator
