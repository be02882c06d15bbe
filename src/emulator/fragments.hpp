/// @file
/// Which element of a matrix lies in which lane and register: the figures of the PTX ISA's chapters on mma,
/// wgmma, ldmatrix and wmma as functions.
///
/// An element index counts through a thread's fragment, low bits of the first register first: with elements
/// of b bits element e lies in register e / (32 / b).
#pragma once

#include "emulator/tensor_rules.hpp"

#include <cstdint>

namespace ptxbench::emulator {

struct MatrixIndex {
  int row = 0, column = 0;
  bool operator==(const MatrixIndex&) const = default;
};

/// Accumulators of mma.sync m16n8k* (warp 0) and wgmma m64nNk*: element @p e of @p lane in warp @p warp of
/// its group.
constexpr MatrixIndex accumulator_index(int e, int lane, int warp = 0) {
  return {16 * warp + lane / 4 + 8 * (e / 2 % 2), 8 * (e / 4) + 2 * (lane % 4) + e % 2};
}
/// A (m x k) from registers, elements of @p bits: mma.sync m16n8k*, wgmma.
constexpr MatrixIndex a_index(int bits, int e, int lane, int warp = 0) {
  const int packed = 32 / bits, reg = e / packed;
  return {16 * warp + lane / 4 + 8 * (reg % 2), packed * (lane % 4) + e % packed + 4 * packed * (reg / 2)};
}
/// B (k x n) of mma.sync m16n8k*: row is k, column n.
constexpr MatrixIndex b_index(int bits, int e, int lane) {
  const int packed = 32 / bits, reg = e / packed;
  return {packed * (lane % 4) + e % packed + 4 * packed * reg, lane / 4};
}

/// ldmatrix and stmatrix m8n8 of 16-bit elements: half @p e (0, 1) of register j of @p lane is this element
/// of matrix j, whose row r lies at the address that lane 8 j + r gives.
constexpr MatrixIndex matrix_index(int e, int lane, bool transposed) {
  return transposed ? MatrixIndex{2 * (lane % 4) + e, lane / 4} : MatrixIndex{lane / 4, 2 * (lane % 4) + e};
}

/// The shape of a wmma instruction.
struct WmmaShape {
  int m, n, k;
};
enum class WmmaMatrix : std::uint8_t { a, b, accumulator };

/// Registers of 32 bits in a fragment (f16 operands take eight, whatever the shape); 0 where there is no such
/// fragment.
int wmma_registers(WmmaShape shape, WmmaMatrix matrix, int bits, bool f16_operand);
/// The ISA leaves the layout of wmma fragments open; this one is that of the mma.sync instructions which
/// ptxas makes of them. For a: row, k. For b: k, column. For accumulators: row, column. f16 operands lie in
/// the first half of their registers, and again in the second.
MatrixIndex wmma_index(WmmaShape shape, WmmaMatrix matrix, int bits, int e, int lane);

}  // namespace ptxbench::emulator
