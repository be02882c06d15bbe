#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void register_mbarrier(InstructionTable&) {}

}  // namespace ptxbench::emulator
