// What the handlers of matrix instructions share: the check that a whole warp takes part, registers to rows
// of operands, and which outputs depend on values that were never written.
#pragma once

#include "emulator/decode.hpp"
#include "emulator/machine.hpp"
#include "emulator/tensor_math.hpp"

#include <cstdint>
#include <cstring>

namespace ptxbench::emulator {

// Whether all lanes that are alive execute the instruction; else a fault is raised.
bool whole_warp(const Exec& x);

// Bit g: one of lanes 4 g to 4 g + 3.
constexpr std::uint32_t lanes_to_rows(Mask lanes) {
  lanes |= lanes >> 1;
  lanes |= lanes >> 2;
  lanes &= 0x11111111;
  std::uint32_t rows = 0;
  for (int g = 0; g < 8; ++g) rows |= (lanes >> (4 * g) & 1) << g;
  return rows;
}

// A from registers (fragments.hpp: a_index): rows of `registers / 2` * 16 bytes. `lanes(r)` gives the 32
// words of register r.
template <class F>
void gather_a(int registers, F&& lanes, std::uint8_t* packed) {
  const int row_bytes = 8 * registers;
  for (int r = 0; r < registers; ++r) {
    const std::uint32_t* words = lanes(r);
    for (int g = 0; g < 8; ++g)
      std::memcpy(packed + (g + 8 * (r % 2)) * row_bytes + 16 * (r / 2), words + 4 * g, 16);
  }
}
// Eight rows of 16 * `registers` bytes (b_index, columns as rows).
template <class F>
void gather_b(int registers, F&& lanes, std::uint8_t* packed) {
  for (int r = 0; r < registers; ++r) {
    const std::uint32_t* words = lanes(r);
    for (int g = 0; g < 8; ++g) std::memcpy(packed + g * 16 * registers + 16 * r, words + 4 * g, 16);
  }
}

// Lanes of accumulator register @p r of an m16n8 block whose row or column has its bit set: `rows` of 16,
// `columns` of 8. With `halves` a register holds both columns.
Mask lanes_of(std::uint32_t rows, std::uint32_t columns, int r, bool halves);

// Modifiers "m16n8k16" whatever their place.
struct TensorShape {
  int m = 0, n = 0, k = 0;
};
std::optional<TensorShape> take_shape(Modifiers& m);
std::optional<AccumulatorType> accumulator_named(std::string_view name);
Fidelity fidelity_of(const TensorRule& rule);

void register_matrix_moves(InstructionTable& table);  // op_matrix.cpp: ldmatrix, stmatrix, movmatrix
void register_wmma(InstructionTable& table);          // op_wmma.cpp

}  // namespace ptxbench::emulator
