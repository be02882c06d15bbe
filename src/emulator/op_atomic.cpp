#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void register_atomic(InstructionTable&) {}

}  // namespace ptxbench::emulator
