#include "sass/kernel_code.hpp"
#include "sass/opcode_table.hpp"

#include <ptxbench/sass.hpp>

#include <algorithm>
#include <array>
#include <new>
#include <tuple>
#include <utility>

namespace ptxbench::sass {
namespace {

// Rows of one architecture may share a mnemonic and a family: one entry for all of them.
std::vector<CensusEntry> entries_of(const std::vector<std::uint64_t>& by_row,
                                    const std::array<std::uint64_t, kOperations>& unknown) {
  std::vector<CensusEntry> entries;
  const std::span<const OpcodeRow> rows = opcode_rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (by_row[i] == 0) continue;
    const auto same = std::find_if(entries.begin(), entries.end(), [&](const CensusEntry& entry) {
      return entry.opcode == rows[i].mnemonic && entry.family == rows[i].family;
    });
    if (same != entries.end())
      same->instructions += by_row[i];
    else
      entries.push_back({std::string(rows[i].mnemonic), std::string(rows[i].family), by_row[i]});
  }
  for (std::uint32_t operation = 0; operation < kOperations; ++operation)
    if (unknown[operation] != 0)
      entries.push_back({unknown_mnemonic(operation), "other", unknown[operation]});
  std::sort(entries.begin(), entries.end(), [](const CensusEntry& a, const CensusEntry& b) {
    return std::tie(b.instructions, a.opcode, a.family) < std::tie(a.instructions, b.opcode, b.family);
  });
  return entries;
}

}  // namespace

Result<std::vector<CensusEntry>> census(std::span<const std::uint8_t> file, const Cubin& cubin,
                                        const Kernel& kernel) {
  try {
    PTXBENCH_TRY_ASSIGN(const elf::Bytes code, code_of(file, kernel));
    std::vector<std::uint64_t> by_row(opcode_rows().size());
    std::array<std::uint64_t, kOperations> unknown{};
    const OpcodeRow* first = opcode_rows().data();
    for (std::uint64_t at = 0; at < code.size(); at += 16) {
      const Word word{elf::read64(code, at), elf::read64(code, at + 8)};
      if (const OpcodeRow* row = find_row(cubin.sm, word))
        ++by_row[static_cast<std::size_t>(row - first)];
      else
        ++unknown[operation_of(word)];
    }
    return entries_of(by_row, unknown);
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::no_memory, "census: out of memory");
  }
}

}  // namespace ptxbench::sass
