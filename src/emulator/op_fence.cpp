#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void register_fence(InstructionTable&) {}

}  // namespace ptxbench::emulator
