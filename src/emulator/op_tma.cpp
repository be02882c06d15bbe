#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void register_tma(InstructionTable&) {}

}  // namespace ptxbench::emulator
