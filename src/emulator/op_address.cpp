#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void register_address(InstructionTable&) {}

}  // namespace ptxbench::emulator
