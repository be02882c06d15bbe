#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void register_half(InstructionTable&) {}

}  // namespace ptxbench::emulator
