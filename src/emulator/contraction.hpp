// What the assembler may fuse or fold.
#pragma once

#include "ptx/module.hpp"

#include <vector>

namespace ptxbench::emulator {

/// By index of Function::body: a mul without a rounding modifier whose result an add or sub of the same type
/// without one reads. ptxas may make both one fma, which rounds once (PTX ISA 9.0, 9.7.3, mul and add: "may
/// be optimized aggressively"); the bits that the emulator gives are those of two roundings. And an
/// approximate function or division of a register (of a division the divisor) that a mov of a constant alone
/// has written: ptxas computes it itself, to other bits (where the operand is an immediate its decoder says
/// so).
std::vector<bool> contractible(const ptx::Function& function);

}  // namespace ptxbench::emulator
