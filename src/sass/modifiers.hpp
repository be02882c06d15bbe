// The modifiers in an operation's name: the table behind operation_name() and access_bytes().
#pragma once

#include "sass/opcode_table.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace ptxbench::sass {

inline constexpr std::size_t kMostFieldBits = 11;

// Some bits of an operation's words, and what nvdisasm prints for each value of them.
struct ModifierField {
  std::uint16_t operation, first_sm, last_sm;
  std::string_view mnemonic;
  // Whether the operation's fields give all modifiers of its name; else they give the width of its access
  // only.
  bool whole;
  std::uint8_t bit_count;  // 0: always the same text, or none
  std::array<std::uint8_t, kMostFieldBits>
      bits;  // bit 64 is the lowest of the high half; the first is the value's lowest
  // For each value, with '|' between: the text with its inner dots, nothing where nothing is printed, or '?'
  // where nvdisasm knows no modifier.
  std::string_view texts;
};

// All fields: src/sass/modifiers.csv, in its order. Fields of one operation and mnemonic are in printing
// order.
std::span<const ModifierField> modifier_fields();

// Those of @p row's operation and mnemonic on compute capability @p sm.
std::span<const ModifierField> modifier_fields(int sm, const OpcodeRow& row);

std::uint32_t field_value(const ModifierField& field, Word word);
std::string_view field_text(const ModifierField& field, std::uint32_t value);

// Bytes of a width as nvdisasm spells it: "U8", "64", "F16x2". 0 for what is no width.
std::uint32_t width_bytes(std::string_view text);

}  // namespace ptxbench::sass
