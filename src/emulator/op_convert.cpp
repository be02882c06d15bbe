#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void register_convert(InstructionTable&) {}

}  // namespace ptxbench::emulator
