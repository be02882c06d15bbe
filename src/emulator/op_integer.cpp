#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void register_integer(InstructionTable&) {}

}  // namespace ptxbench::emulator
