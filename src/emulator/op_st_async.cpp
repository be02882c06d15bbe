#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void register_st_async(InstructionTable&) {}

}  // namespace ptxbench::emulator
