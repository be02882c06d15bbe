// Which operation an instruction word is: the table behind decode() and census().
#pragma once

#include <ptxbench/sass.hpp>

#include <cstdint>
#include <span>
#include <string_view>

namespace ptxbench::sass {

// Bits 0 to 8 of a word: the operation. Bits 9 to 11 say where its operands come from.
inline constexpr std::uint32_t kOperations = 512;
inline std::uint32_t operation_of(Word word) {
  return static_cast<std::uint32_t>(word.low & (kOperations - 1));
}

// A word is this row's where its operation is `operation` and its bits under the masks are the values.
struct OpcodeRow {
  std::uint16_t operation;
  std::uint16_t first_sm, last_sm;  // of the architectures that the row is for
  std::uint64_t mask_low, value_low, mask_high, value_high;
  std::string_view mnemonic, family;
};

// All rows: src/sass/opcodes.csv, in its order.
std::span<const OpcodeRow> opcode_rows();

// The row of @p word on compute capability @p sm, or nullptr. Constant time.
const OpcodeRow* find_row(int sm, Word word);

// How an unknown operation is called: "unknown:0x1f0".
std::string unknown_mnemonic(std::uint32_t operation);

}  // namespace ptxbench::sass
