#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void register_warp(InstructionTable&) {}

}  // namespace ptxbench::emulator
