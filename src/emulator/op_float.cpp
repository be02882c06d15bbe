#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void register_float(InstructionTable&) {}

}  // namespace ptxbench::emulator
