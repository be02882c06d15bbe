#include "sass/opcode_table.hpp"

#include <array>
#include <cstdio>
#include <set>

namespace ptxbench::sass {
namespace {

// Made from opcodes.csv by tools/opcode_table.py; sorted by the first architecture, then by the operation.
constexpr OpcodeRow kRows[] = {
#include "sass/opcodes.inc"
};
constexpr std::size_t kRowCount = sizeof(kRows) / sizeof(kRows[0]);

// Architectures of one range share an index of rows by operation.
struct Range {
  std::uint16_t first_sm = 0, last_sm = 0;
  std::array<std::uint16_t, kOperations> first{}, count{};
};

constexpr std::size_t count_ranges() {
  std::size_t n = 0;
  for (std::size_t i = 0; i < kRowCount; ++i)
    if (i == 0 || kRows[i].first_sm != kRows[i - 1].first_sm) ++n;
  return n;
}

constexpr auto make_index() {
  std::array<Range, count_ranges()> ranges{};
  std::size_t at = 0;
  for (std::size_t i = 0; i < kRowCount; ++i) {
    const OpcodeRow& row = kRows[i];
    if (i != 0 && row.first_sm != kRows[i - 1].first_sm) ++at;
    Range& range = ranges[at];
    range.first_sm = row.first_sm;
    range.last_sm = row.last_sm;
    if (range.count[row.operation]++ == 0) range.first[row.operation] = static_cast<std::uint16_t>(i);
  }
  return ranges;
}

constexpr auto kIndex = make_index();

constexpr bool is_sorted() {
  for (std::size_t i = 1; i < kRowCount; ++i) {
    const OpcodeRow &a = kRows[i - 1], &b = kRows[i];
    if (a.first_sm > b.first_sm || (a.first_sm == b.first_sm && a.operation > b.operation)) return false;
    if (a.first_sm == b.first_sm && a.last_sm != b.last_sm) return false;
  }
  return true;
}
static_assert(is_sorted(), "tools/opcode_table.py sorts the rows; the index relies on it");

}  // namespace

std::span<const OpcodeRow> opcode_rows() { return kRows; }

const OpcodeRow* find_row(int sm, Word word) {
  for (const Range& range : kIndex) {
    if (sm < range.first_sm || sm > range.last_sm) continue;
    const std::uint32_t operation = operation_of(word);
    const OpcodeRow* row = kRows + range.first[operation];
    for (const OpcodeRow* end = row + range.count[operation]; row != end; ++row)
      if ((word.low & row->mask_low) == row->value_low && (word.high & row->mask_high) == row->value_high)
        return row;
    return nullptr;
  }
  return nullptr;
}

std::string unknown_mnemonic(std::uint32_t operation) {
  char text[24];
  std::snprintf(text, sizeof text, "unknown:0x%03x", static_cast<unsigned>(operation));
  return text;
}

Opcode decode(int sm, Word word) {
  const OpcodeRow* row = find_row(sm, word);
  if (row == nullptr) return Opcode{unknown_mnemonic(operation_of(word)), "other", false};
  return Opcode{std::string(row->mnemonic), std::string(row->family), true};
}

std::vector<std::string> family_mnemonics(int sm, std::string_view family) {
  std::set<std::string> names;
  for (const OpcodeRow& row : kRows)
    if (row.family == family && sm >= row.first_sm && sm <= row.last_sm) names.emplace(row.mnemonic);
  return {names.begin(), names.end()};
}

}  // namespace ptxbench::sass
