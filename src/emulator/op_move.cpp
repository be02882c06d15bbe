#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void register_move(InstructionTable&) {}

}  // namespace ptxbench::emulator
