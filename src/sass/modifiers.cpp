#include "sass/modifiers.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>

namespace ptxbench::sass {
namespace {

// Made from modifiers.csv's rows by tools/sass_modifiers.py; sorted by the first architecture, the operation,
// the mnemonic.
constexpr ModifierField kFields[] = {
#include "sass/modifiers.inc"
};

constexpr bool is_sorted() {
  for (std::size_t i = 1; i < std::size(kFields); ++i) {
    const ModifierField &a = kFields[i - 1], &b = kFields[i];
    if (a.first_sm != b.first_sm ? a.first_sm > b.first_sm : a.operation > b.operation) return false;
  }
  return true;
}
static_assert(is_sorted(), "tools/sass_modifiers.py sorts the rows; the search relies on it");

// A decimal number at the front of @p text, which loses it; nothing where there is none.
std::optional<std::uint32_t> take_number(std::string_view& text) {
  std::uint32_t value = 0;
  std::size_t digits = 0;
  while (digits < text.size() && digits < 4 && text[digits] >= '0' && text[digits] <= '9')
    value = value * 10 + static_cast<std::uint32_t>(text[digits++] - '0');
  if (digits == 0) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

// Calls @p use with each text between dots that the fields give @p word.
template <class Use>
void for_each_text(std::span<const ModifierField> fields, Word word, Use use) {
  for (const ModifierField& field : fields) {
    std::string_view text = field_text(field, field_value(field, word));
    while (!text.empty()) {
      const std::size_t dot = text.find('.');
      use(text.substr(0, dot));
      text.remove_prefix(dot == std::string_view::npos ? text.size() : dot + 1);
    }
  }
}

}  // namespace

std::span<const ModifierField> modifier_fields() { return kFields; }

std::span<const ModifierField> modifier_fields(int sm, const OpcodeRow& row) {
  const auto before = [&](const ModifierField& field, std::uint16_t operation) {
    return field.first_sm != row.first_sm ? field.first_sm < row.first_sm : field.operation < operation;
  };
  const auto* end = std::end(kFields);
  const auto* first = std::lower_bound(std::begin(kFields), end, row.operation, before);
  const auto other = [&](const ModifierField& field) {
    return field.first_sm != row.first_sm || field.operation != row.operation || sm < field.first_sm ||
           sm > field.last_sm || field.mnemonic != row.mnemonic;
  };
  // One operation's mnemonics are neighbours too.
  while (first != end && first->operation == row.operation && other(*first)) ++first;
  const auto* last = first;
  while (last != end && !other(*last)) ++last;
  return {first, last};
}

std::uint32_t field_value(const ModifierField& field, Word word) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < field.bit_count; ++i) {
    const unsigned bit = field.bits[i];
    const std::uint64_t half = bit < 64 ? word.low : word.high;
    value |= static_cast<std::uint32_t>(half >> (bit % 64) & 1) << i;
  }
  return value;
}

std::string_view field_text(const ModifierField& field, std::uint32_t value) {
  std::string_view texts = field.texts;
  for (; value != 0; --value) {
    const std::size_t bar = texts.find('|');
    if (bar == std::string_view::npos) return "?";
    texts.remove_prefix(bar + 1);
  }
  return texts.substr(0, texts.find('|'));
}

std::uint32_t width_bytes(std::string_view text) {
  for (const std::string_view prefix : {"BF", "U", "S", "F", "B"})
    if (text.substr(0, prefix.size()) == prefix) {
      text.remove_prefix(prefix.size());
      break;
    }
  const auto bits = take_number(text);
  if (!bits || (*bits != 8 && *bits != 16 && *bits != 32 && *bits != 64 && *bits != 128 && *bits != 256))
    return 0;
  std::uint32_t count = 1;
  if (text.substr(0, 1) == "x" || text.substr(0, 2) == "_V") {
    text.remove_prefix(text[0] == 'x' ? 1 : 2);
    const auto number = take_number(text);
    if (!number || *number == 0) return 0;
    count = *number;
  }
  return text.empty() ? *bits / 8 * count : 0;
}

std::string operation_name(int sm, Word word) {
  const OpcodeRow* row = find_row(sm, word);
  if (row == nullptr) return unknown_mnemonic(operation_of(word));
  std::string name(row->mnemonic);
  for (const ModifierField& field : modifier_fields(sm, *row)) {
    if (!field.whole) break;
    const std::uint32_t value = field_value(field, word);
    const std::string_view text = field_text(field, value);
    if (text.empty()) continue;
    name += '.';
    if (text != "?") {
      name += text;
      continue;
    }
    char number[16];
    std::snprintf(number, sizeof number, "0x%x", static_cast<unsigned>(value));
    name += number;
  }
  return name;
}

std::uint32_t access_bytes(int sm, Word word) {
  const OpcodeRow* row = find_row(sm, word);
  if (row == nullptr) return 0;
  const auto fields = modifier_fields(sm, *row);
  if (fields.empty()) return 0;
  const bool matrices = row->family == "ldmatrix" || row->family == "stmatrix";
  if (fields[0].whole && !matrices && row->mnemonic != "LDGSTS" && row->mnemonic != "STAS" &&
      row->mnemonic != "REDAS")
    return 0;
  std::uint32_t bytes = 4;  // of one matrix, or the width that nvdisasm leaves out
  bool unknown = false;
  for_each_text(fields, word, [&](std::string_view text) {
    if (text == "?") unknown = true;
    if (matrices && (text == "2" || text == "4")) bytes *= text == "2" ? 2 : 4;
    if (matrices && text == "MT1616") bytes *= 2;  // the only one of 256 bytes: of bytes, transposed
    if (const std::uint32_t width = width_bytes(text); width != 0 && !matrices) bytes = width;
  });
  return unknown ? 0 : bytes;
}

}  // namespace ptxbench::sass
