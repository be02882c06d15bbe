#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void register_tensormap(InstructionTable&) {}

}  // namespace ptxbench::emulator
