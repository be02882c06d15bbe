// What is wrong with a wrong output: where, how much, and the mistake that would make it. Each hypothesis says what would
// stand at a place if it were so, and is compared with what stands there. Pure, on host memory.
#pragma once

#include <ptxbench/core.hpp>
#include <ptxbench/trace.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace ptxbench {

// An output as a stack of matrices: its last two dimensions, and all in front of them together.
struct MatrixStack {
  std::uint64_t matrices = 1, rows = 1, columns = 1;
  std::uint64_t elements() const { return matrices * rows * columns; }
};
MatrixStack matrix_stack(const std::vector<std::int64_t>& shape);

// What is allowed, as judge::element_wrong has it: a negative rtol stands for "atol or rtol"; `largest` is the largest finite
// value of the output's type.
struct Allowed {
  double atol = 0, rtol = 0;
  double largest = 1.7e308;
};

// For a GEMM: the sum over k in [from, to) of A[row, ka + k] * B[column, kb + k], where `ka` and `kb` move the operands.
using PartialProduct =
    std::function<double(std::uint64_t row, std::uint64_t column, std::uint64_t from_a, std::uint64_t from_b, std::uint64_t count)>;

// What would stand there, had a certain mistake been made, of elements from `first` on. Values that are no numbers say nothing.
struct Alternative {
  std::string pattern, message;
  std::uint64_t first = 0;
  std::span<const float> values;
};

struct DiagnosisInput {
  std::string output;
  MatrixStack shape;                      // of what is here: whole matrices, or the first rows of one
  std::uint64_t first_matrix = 0, first_row = 0;  // where they lie in the output
  std::span<const double> got, expected;  // shape.elements() each
  Allowed allowed;
  double rounding = 0x1p-8;               // of the output's type, relative
  std::uint64_t k = 0;                    // of a GEMM, with
  PartialProduct partial;                 // rows and columns of this part
  std::vector<Alternative> alternatives;  // of operations whose mistakes must be computed, the simplest first
};

// Notes for a verdict, at most one of each code: "wrong_pattern" (the mistake that explains most, with how much it explains).
// Nothing where no hypothesis explains nine tenths of the wrong elements.
std::vector<Finding> recognise(const DiagnosisInput& input);

// The map of wrong tiles, "wrong_tiles": which tiles of the whole output hold wrong elements. @p wrong counts them by tile, row-major;
// the rows of all matrices count on.
struct TileGrid {
  std::uint64_t rows = 1, columns = 1;            // of the output, all matrices below one another
  std::uint64_t tile_rows = 1, tile_columns = 1;  // of a tile
  std::uint64_t grid_rows() const { return (rows + tile_rows - 1) / tile_rows; }
  std::uint64_t grid_columns() const { return (columns + tile_columns - 1) / tile_columns; }
};
// At most 64 by 64 tiles, of a power of two of at least 16 elements a side.
TileGrid tile_grid(const MatrixStack& shape);
Finding describe_tiles(const std::string& output, const TileGrid& grid, std::span<const std::uint32_t> wrong);

// The elements that are furthest off, "worst_elements": of what is here, at most @p most.
Finding describe_worst(const DiagnosisInput& input, const std::vector<std::int64_t>& shape, std::size_t most = 8);

}  // namespace ptxbench
