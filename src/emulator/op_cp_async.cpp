#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void register_cp_async(InstructionTable&) {}

}  // namespace ptxbench::emulator
