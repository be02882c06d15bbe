// Handlers of control flow and of auxiliary ops that the decoder emits itself.
#pragma once

#include "emulator/machine.hpp"

namespace ptxbench::emulator {

// bra: the guard decides; Op::imm is the op it goes to.
Flow op_branch(Exec& x);
// brx.idx: source 0 the index, Op::imm the table in Kernel::branch_tables.
Flow op_branch_table(Exec& x);
Flow op_exit(Exec& x);
Flow op_trap(Exec& x);
Flow op_nop(Exec& x);

// Destination 0: special register number Op::imm (special.hpp), in Op::a bits.
Flow op_read_special(Exec& x);
Flow op_read_special_pred(Exec& x);     // Op::imm; operand 0 the predicate
// Destination 0, 32 or 64 bits (Op::a): Op::imm with the CTA's rank in bits 24 and up; Op::b: as a generic address.
Flow op_shared_address(Exec& x);
// Destination 0, 64 bits: the generic address of a kernel parameter at offset Op::imm.
Flow op_parameter_address(Exec& x);
// Operand 0 the predicate it writes, operand 1 the one it negates.
Flow op_negate_pred(Exec& x);
// A register argument of a call into the local variable at Op::imm, Op::a bits; and back.
Flow op_store_argument(Exec& x);
Flow op_load_result(Exec& x);

// Lanes of @p mask leave the kernel: who waits for them looks again. False where a fault was raised.
bool exit_lanes(Exec& x, Mask mask);
// Takes the lanes of the fragment that go to @p target apart from those that go on; the fragment may be split.
Flow go(Exec& x, Mask taken, std::uint32_t target);

}  // namespace ptxbench::emulator
