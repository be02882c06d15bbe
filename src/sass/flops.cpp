// What a machine instruction computes: shapes of matrix instructions, and floating-point operations by
// thread.
#include "sass/mma_shapes.hpp"
#include "sass/opcode_table.hpp"

#include <algorithm>

namespace ptxbench::sass {
namespace {

constexpr MmaShapeRow kRows[] = {
#include "sass/mma_shapes.inc"
};

constexpr std::uint32_t kWarp = 32, kWarpgroup = 128;
constexpr std::uint64_t kZeroRegister = 255;  // RZ

struct Vector {
  std::string_view mnemonic;
  FlopPipe pipe;
  std::uint32_t per_thread;
  enum class Second : std::uint8_t {
    none,
    low,
    high
  } second;  // where the second operand's register is, of an addition
};
constexpr Vector kVectors[] = {
    {"FADD", FlopPipe::fp32, 1, Vector::Second::low},   {"FMUL", FlopPipe::fp32, 1, Vector::Second::none},
    {"FFMA", FlopPipe::fp32, 2, Vector::Second::none},  {"FSWZADD", FlopPipe::fp32, 1, Vector::Second::none},
    {"FADD2", FlopPipe::fp32, 2, Vector::Second::low},  {"FMUL2", FlopPipe::fp32, 2, Vector::Second::none},
    {"FFMA2", FlopPipe::fp32, 4, Vector::Second::none}, {"DADD", FlopPipe::fp64, 1, Vector::Second::high},
    {"DMUL", FlopPipe::fp64, 1, Vector::Second::none},  {"DFMA", FlopPipe::fp64, 2, Vector::Second::none},
    {"HADD2", FlopPipe::half, 2, Vector::Second::low},  {"HMUL2", FlopPipe::half, 2, Vector::Second::none},
    {"HFMA2", FlopPipe::half, 4, Vector::Second::none}, {"FHADD", FlopPipe::fp32, 1, Vector::Second::low},
    {"FHFMA", FlopPipe::fp32, 2, Vector::Second::none}, {"QADD4", FlopPipe::half, 4, Vector::Second::high},
    {"QMUL4", FlopPipe::half, 4, Vector::Second::none}, {"QFMA4", FlopPipe::half, 8, Vector::Second::none},
};

std::uint64_t bits(std::uint64_t half, int first) { return half >> first & 0xff; }

// Compilers move, negate and convert with arithmetic on RZ: HFMA2 R5, -RZ, RZ, 1.875, 0 makes a constant,
// HADD2.F32 R9, -RZ, R18.H0_H0 converts, FADD R2, -R2, -RZ negates.
bool is_move(const Vector& vector, Word word) {
  if (bits(word.low, 24) == kZeroRegister) return true;
  const bool registers =
      (word.low >> 9 & 7) == 1;  // else the second operand is an immediate or in a constant bank
  if (!registers || vector.second == Vector::Second::none) return false;
  return (vector.second == Vector::Second::low ? bits(word.low, 32) : bits(word.high, 0)) == kZeroRegister;
}

}  // namespace

std::span<const MmaShapeRow> mma_shape_rows() { return kRows; }

std::optional<MmaShape> mma_shape(int sm, Word word) {
  const std::uint32_t operation = operation_of(word);
  for (const MmaShapeRow& row : kRows)
    if (row.operation == operation && sm >= row.first_sm && sm <= row.last_sm &&
        (word.low & row.mask_low) == row.value_low && (word.high & row.mask_high) == row.value_high)
      return MmaShape{row.m, row.n, row.k, row.sparse};
  return std::nullopt;
}

Flops flops_of(int sm, Word word) {
  const OpcodeRow* row = find_row(sm, word);
  if (row == nullptr) return {FlopPipe::none, std::nullopt};
  if (row->family == "tcgen05_mma") return {FlopPipe::arch_mma, std::nullopt};
  if (row->family == "wgmma" || row->family == "mma_sync") {
    const bool own = row->family == "wgmma";
    Flops flops{own ? FlopPipe::arch_mma : FlopPipe::mma_sync, std::nullopt};
    if (const auto shape = mma_shape(sm, word)) {
      const std::uint32_t products = std::uint32_t{shape->m} * shape->n * shape->k;
      flops.per_thread = (shape->sparse ? products : 2 * products) / (own ? kWarpgroup : kWarp);
    }
    return flops;
  }
  for (const Vector& vector : kVectors)
    if (vector.mnemonic == row->mnemonic) return {vector.pipe, is_move(vector, word) ? 0 : vector.per_thread};
  return {};
}

}  // namespace ptxbench::sass
