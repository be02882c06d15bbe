// Every family of instructions, by the file that decodes and executes it.
#include "emulator/decode.hpp"

namespace ptxbench::emulator {

void register_control(InstructionTable& table);
void register_special(InstructionTable& table);
void register_move(InstructionTable& table);
void register_integer(InstructionTable& table);
void register_float(InstructionTable& table);
void register_half(InstructionTable& table);
void register_convert(InstructionTable& table);
void register_compare(InstructionTable& table);
void register_warp(InstructionTable& table);
void register_memory(InstructionTable& table);
void register_atomic(InstructionTable& table);
void register_address(InstructionTable& table);
void register_fence(InstructionTable& table);
void register_external(InstructionTable& table);
void register_mbarrier(InstructionTable& table);
void register_cp_async(InstructionTable& table);
void register_bulk(InstructionTable& table);
void register_tma(InstructionTable& table);
void register_st_async(InstructionTable& table);
void register_tensormap(InstructionTable& table);
void register_mma(InstructionTable& table);
void register_wgmma(InstructionTable& table);

const InstructionTable& instruction_table() {
  static const InstructionTable table = [] {
    InstructionTable t;
    register_control(t);
    register_special(t);
    register_move(t);
    register_integer(t);
    register_float(t);
    register_half(t);
    register_convert(t);
    register_compare(t);
    register_warp(t);
    register_memory(t);
    register_atomic(t);
    register_address(t);
    register_fence(t);
    register_external(t);
    register_mbarrier(t);
    register_cp_async(t);
    register_bulk(t);
    register_tma(t);
    register_st_async(t);
    register_tensormap(t);
    register_mma(t);
    register_wgmma(t);
    return t;
  }();
  return table;
}

}  // namespace ptxbench::emulator
