#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void register_special(InstructionTable&) {}

}  // namespace ptxbench::emulator
