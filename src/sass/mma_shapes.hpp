// Which m, n and k a matrix instruction's word has: the table behind mma_shape().
#pragma once

#include <cstdint>
#include <span>

namespace ptxbench::sass {

// A word has this row's shape where its operation is `operation` and its bits under the masks are the values.
struct MmaShapeRow {
  std::uint16_t operation;
  std::uint16_t first_sm, last_sm;
  std::uint64_t mask_low, value_low, mask_high, value_high;
  std::uint16_t m, n, k;
  bool sparse;
};

// All rows: src/sass/mma_shapes.csv, in its order.
std::span<const MmaShapeRow> mma_shape_rows();

}  // namespace ptxbench::sass
