#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void register_compare(InstructionTable&) {}

}  // namespace ptxbench::emulator
