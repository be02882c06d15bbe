#include "emulator/fragments.hpp"

#include "support/catch.hpp"

#include <set>
#include <tuple>
#include <utility>
#include <vector>

using namespace ptxbench::emulator;

namespace {

// Each element of a rows x columns matrix is in exactly `copies` places.
template <class F>
void covers(int rows, int columns, int elements, int lanes, int copies, F&& at) {
  std::vector<int> seen(static_cast<std::size_t>(rows * columns));
  for (int lane = 0; lane < lanes; ++lane)
    for (int e = 0; e < elements; ++e) {
      const MatrixIndex i = at(e, lane);
      REQUIRE(i.row >= 0);
      REQUIRE(i.row < rows);
      REQUIRE(i.column >= 0);
      REQUIRE(i.column < columns);
      ++seen[static_cast<std::size_t>(i.row * columns + i.column)];
    }
  for (const int count : seen) REQUIRE(count == copies);
}

}  // namespace

// The formulas that the PTX ISA prints under its figures, with its names.
TEST_CASE("fragments: mma.sync as the ISA's text has it") {
  for (int lane = 0; lane < 32; ++lane) {
    const int group = lane >> 2, in_group = lane % 4;
    for (int i = 0; i < 4; ++i)  // m16n8k*: c
      CHECK(accumulator_index(i, lane) == MatrixIndex{i < 2 ? group : group + 8, in_group * 2 + (i & 1)});
    for (int i = 0; i < 8; ++i)  // m16n8k16, 16 bits: a
      CHECK(a_index(16, i, lane) == MatrixIndex{(i < 2 || (i >= 4 && i < 6)) ? group : group + 8,
                                                i < 4 ? in_group * 2 + (i & 1) : in_group * 2 + (i & 1) + 8});
    for (int i = 0; i < 4; ++i)
      CHECK(b_index(16, i, lane) ==
            MatrixIndex{i < 2 ? in_group * 2 + (i & 1) : in_group * 2 + (i & 1) + 8, group});
    for (int i = 0; i < 4; ++i)  // m16n8k8, 16 bits
      CHECK(a_index(16, i, lane) == MatrixIndex{i < 2 ? group : group + 8, in_group * 2 + (i & 1)});
    for (int i = 0; i < 4; ++i)  // m16n8k8, tf32
      CHECK(a_index(32, i, lane) ==
            MatrixIndex{i == 0 || i == 2 ? group : group + 8, i < 2 ? in_group : in_group + 4});
    for (int i = 0; i < 2; ++i) {  // tf32: b; m16n8k4: a
      CHECK(b_index(32, i, lane) == MatrixIndex{i == 0 ? in_group : in_group + 4, group});
      CHECK(a_index(32, i, lane) == MatrixIndex{i == 0 ? group : group + 8, in_group});
    }
    for (int i = 0; i < 16; ++i)  // m16n8k32, 8 bits
      CHECK(a_index(8, i, lane) == MatrixIndex{(i < 4 || (i >= 8 && i < 12)) ? group : group + 8,
                                               i < 8 ? in_group * 4 + (i & 3) : in_group * 4 + (i & 3) + 16});
    for (int i = 0; i < 8; ++i)
      CHECK(b_index(8, i, lane) ==
            MatrixIndex{i < 4 ? in_group * 4 + (i & 3) : in_group * 4 + (i & 3) + 16, group});
    for (int i = 0; i < 8; ++i)  // m16n8k16, 8 bits
      CHECK(a_index(8, i, lane) == MatrixIndex{i < 4 ? group : group + 8, in_group * 4 + (i & 3)});
  }
}

TEST_CASE("fragments: every element is somewhere, once") {
  for (const auto& shape : {std::pair{16, 8}, {16, 16}, {32, 4}, {32, 8}, {8, 16}, {8, 32}}) {
    const int bits = shape.first, k = shape.second;  // clang 14 captures no structured bindings
    covers(16, k, 16 * k / 32, 32, 1, [&](int e, int lane) { return a_index(bits, e, lane); });
    covers(k, 8, 8 * k / 32, 32, 1, [&](int e, int lane) { return b_index(bits, e, lane); });
    covers(64, k, 16 * k / 32, 128, 1,
           [&](int e, int thread) { return a_index(bits, e, thread % 32, thread / 32); });
  }
  for (const int n : {8, 24, 256})
    covers(64, n, n / 2, 128, 1,
           [](int e, int thread) { return accumulator_index(e, thread % 32, thread / 32); });
  covers(8, 8, 2, 32, 1, [](int e, int lane) { return matrix_index(e, lane, false); });
  covers(8, 8, 2, 32, 1, [](int e, int lane) { return matrix_index(e, lane, true); });
}

// As knowledge_packs/hopper/include/ptx/wgmma.cuh says it.
TEST_CASE("fragments: wgmma's accumulators") {
  for (int t = 0; t < 128; ++t)
    for (int j = 0; j < 32; ++j) {
      const int upper = 16 * (t / 32) + t % 32 / 4, column = 8 * j + t % 4 * 2;
      CHECK(accumulator_index(4 * j, t % 32, t / 32) == MatrixIndex{upper, column});
      CHECK(accumulator_index(4 * j + 1, t % 32, t / 32) == MatrixIndex{upper, column + 1});
      CHECK(accumulator_index(4 * j + 2, t % 32, t / 32) == MatrixIndex{upper + 8, column});
      CHECK(accumulator_index(4 * j + 3, t % 32, t / 32) == MatrixIndex{upper + 8, column + 1});
    }
}

TEST_CASE("fragments: ldmatrix gives what mma takes") {
  // Four matrices of m8n8.x4 over a 16 x 16 tile (rows 0-7, rows 8-15, then the right half) are A of
  // m16n8k16.
  for (int lane = 0; lane < 32; ++lane)
    for (int e = 0; e < 8; ++e) {
      const int matrix = e / 2;
      MatrixIndex at = matrix_index(e % 2, lane, false);
      at.row += 8 * (matrix % 2);
      at.column += 8 * (matrix / 2);
      CHECK(at == a_index(16, e, lane));
    }
  // Transposed, matrices of rows k are B.
  for (int lane = 0; lane < 32; ++lane)
    for (int e = 0; e < 4; ++e) {
      MatrixIndex at = matrix_index(e % 2, lane, true);
      at.row += 8 * (e / 2);
      CHECK(at == b_index(16, e, lane));
    }
}

TEST_CASE("fragments: wmma") {
  for (const WmmaShape shape : {WmmaShape{16, 16, 16}, {32, 8, 16}, {8, 32, 16}}) {
    CHECK(wmma_registers(shape, WmmaMatrix::accumulator, 32, false) == 8);
    CHECK(wmma_registers(shape, WmmaMatrix::accumulator, 16, false) == 4);
    CHECK(wmma_registers(shape, WmmaMatrix::a, 16, true) == 8);
    CHECK(wmma_registers(shape, WmmaMatrix::a, 16, false) == (shape.m == 16 ? 4 : shape.m == 32 ? 8 : 2));
    CHECK(wmma_registers(shape, WmmaMatrix::b, 8, false) == (shape.n == 16 ? 2 : shape.n == 32 ? 4 : 1));
    for (const int bits : {8, 16}) {
      covers(shape.m, 16, shape.m / 2, 32, 1,
             [&](int e, int lane) { return wmma_index(shape, WmmaMatrix::a, bits, e, lane); });
      covers(16, shape.n, shape.n / 2, 32, 1,
             [&](int e, int lane) { return wmma_index(shape, WmmaMatrix::b, bits, e, lane); });
    }
    covers(shape.m, 16, 16, 32, 16 * 32 / (shape.m * 16),
           [&](int e, int lane) { return wmma_index(shape, WmmaMatrix::a, 16, e, lane); });
    covers(shape.m, shape.n, 8, 32, 1,
           [&](int e, int lane) { return wmma_index(shape, WmmaMatrix::accumulator, 32, e, lane); });
  }
  const WmmaShape tf32{16, 16, 8};
  CHECK(wmma_registers(tf32, WmmaMatrix::a, 32, false) == 4);
  covers(16, 8, 4, 32, 1, [&](int e, int lane) { return wmma_index(tf32, WmmaMatrix::a, 32, e, lane); });
  covers(8, 16, 4, 32, 1, [&](int e, int lane) { return wmma_index(tf32, WmmaMatrix::b, 32, e, lane); });
}
