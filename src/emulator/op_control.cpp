#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void register_control(InstructionTable&) {}

}  // namespace ptxbench::emulator
