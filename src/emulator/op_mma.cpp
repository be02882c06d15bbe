#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void register_mma(InstructionTable&) {}

}  // namespace ptxbench::emulator
