#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void register_wgmma(InstructionTable&) {}

}  // namespace ptxbench::emulator
