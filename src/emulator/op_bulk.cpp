#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void register_bulk(InstructionTable&) {}

}  // namespace ptxbench::emulator
