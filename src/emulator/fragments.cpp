#include "emulator/fragments.hpp"

namespace ptxbench::emulator {

namespace {

// 8 x k elements as eight rows: row lane / 4, k through registers.
MatrixIndex eight_rows(int bits, int e, int lane) {
  const MatrixIndex at = b_index(bits, e, lane);
  return {at.column, at.row};
}

}  // namespace

int wmma_registers(WmmaShape shape, WmmaMatrix matrix, int bits, bool f16_operand) {
  if (matrix == WmmaMatrix::accumulator) return shape.m * shape.n * bits / 1024;
  if (f16_operand) return 8;
  return (matrix == WmmaMatrix::a ? shape.m : shape.n) * shape.k * bits / 1024;
}

MatrixIndex wmma_index(WmmaShape shape, WmmaMatrix matrix, int bits, int e, int lane) {
  if (matrix == WmmaMatrix::accumulator) {
    if (shape.m == 8) return {lane / 4, 8 * (e / 2) + 2 * (lane % 4) + e % 2};
    const int blocks = shape.n / 8;  // of m16n8, columns first
    const int block = e / 4;
    const MatrixIndex at = accumulator_index(e % 4, lane);
    return {at.row + 16 * (block / blocks), at.column + 8 * (block % blocks)};
  }
  const bool is_a = matrix == WmmaMatrix::a;
  const int rows = is_a ? shape.m : shape.n;
  const int elements = rows * shape.k / 32;  // of one lane
  e %= elements;                             // the copy of f16 operands
  MatrixIndex at;
  if (is_a && rows % 16 == 0) {  // blocks of 16 rows
    const int each = 16 * shape.k / 32;
    at = a_index(bits, e % each, lane);
    at.row += 16 * (e / each);
  } else {  // blocks of 8
    const int each = 8 * shape.k / 32;
    at = eight_rows(bits, e % each, lane);
    at.row += 8 * (e / each);
  }
  return is_a ? at : MatrixIndex{at.column, at.row};
}

}  // namespace ptxbench::emulator
