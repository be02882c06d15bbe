#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void register_external(InstructionTable&) {}

}  // namespace ptxbench::emulator
