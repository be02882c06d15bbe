#include "sass/elf.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

namespace ptxbench::sass::elf {
namespace {

constexpr std::uint64_t kHeaderBytes = 64, kSectionBytes = 64, kSymbolBytes = 24;
// Mangled names of templates reach tens of thousands of characters; longer ones are not from a compiler, and
// without a limit a small file could make every symbol's name the rest of the file.
constexpr std::size_t kLongestName = 1u << 16;

template <class T>
T read_as(Bytes bytes, std::uint64_t at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value |= static_cast<T>(static_cast<T>(bytes[at + i]) << (8 * i));
  return value;
}

Error bad(std::string message) { return make_error(ErrorCode::parse, "cubin: " + std::move(message)); }

// The bytes [offset, offset + size), if they are inside.
std::optional<Bytes> slice(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return std::nullopt;
  return bytes.subspan(offset, size);
}

// The zero-terminated string at @p offset of a string table.
std::optional<std::string_view> string_at(Bytes table, std::uint32_t offset) {
  if (offset == 0 && table.empty()) return std::string_view();
  if (offset >= table.size()) return std::nullopt;
  const char* begin = reinterpret_cast<const char*>(table.data()) + offset;
  const std::size_t most = std::min<std::size_t>(table.size() - offset, kLongestName);
  const void* end = std::memchr(begin, 0, most);
  if (end == nullptr) return std::nullopt;
  return std::string_view(begin, static_cast<std::size_t>(static_cast<const char*>(end) - begin));
}

Result<void> check_ident(Bytes file) {
  if (file.size() >= 4 && read32(file, 0) == 0xba55ed50)
    return bad("this is a fat binary, not a cubin; extract the cubin for one architecture first");
  static constexpr std::uint8_t kMagic[4] = {0x7f, 'E', 'L', 'F'};
  if (file.size() < 4 || !std::equal(kMagic, kMagic + 4, file.begin()))
    return bad("not an ELF file (it does not begin with 7f 45 4c 46)");
  if (file.size() < kHeaderBytes)
    return bad("the file ends inside the ELF header (" + std::to_string(file.size()) + " of 64 bytes)");
  if (file[4] != 2) return bad("not a 64-bit ELF file");
  if (file[5] != 1) return bad("not a little-endian ELF file");
  if (const std::uint16_t machine = read16(file, 18); machine != kMachineCuda)
    return bad("the ELF file is for machine " + std::to_string(machine) + ", not for CUDA (190)");
  return {};
}

Result<std::vector<Section>> read_sections(Bytes file) {
  const std::uint64_t table_at = read64(file, 40);
  if (read16(file, 58) != kSectionBytes) return bad("section headers are not of 64 bytes");
  if (!slice(file, table_at, kSectionBytes))
    return bad("the section headers (at byte " + std::to_string(table_at) + ") are outside the file of " +
               std::to_string(file.size()) + " bytes");
  // Counts that do not fit in the ELF header are in the first section header.
  std::uint64_t count = read16(file, 60);
  if (count == 0) count = read64(file, table_at + 32);
  std::uint64_t names_index = read16(file, 62);
  if (names_index == 0xffff) names_index = read32(file, table_at + 40);
  if (count > file.size() / kSectionBytes || !slice(file, table_at, count * kSectionBytes))
    return bad(std::to_string(count) + " section headers at byte " + std::to_string(table_at) +
               " reach past the end of the file of " + std::to_string(file.size()) + " bytes");
  if (names_index >= count) return bad("the index of the section names is past the last section");

  std::vector<Section> sections(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t at = table_at + i * kSectionBytes;
    Section& section = sections[i];
    section.type = read32(file, at + 4);
    section.flags = read64(file, at + 8);
    section.address = read64(file, at + 16);
    section.offset = read64(file, at + 24);
    section.size = read64(file, at + 32);
    section.link = read32(file, at + 40);
    section.info = read32(file, at + 44);
    if (section.type == 0 || section.type == kTypeNoBits) continue;
    const std::optional<Bytes> bytes = slice(file, section.offset, section.size);
    if (!bytes)
      return bad("section " + std::to_string(i) + " (" + std::to_string(section.size) + " bytes at " +
                 std::to_string(section.offset) + ") reaches past the end of the file of " +
                 std::to_string(file.size()) + " bytes");
    section.bytes = *bytes;
  }
  const Bytes names = sections[names_index].bytes;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto name = string_at(names, read32(file, table_at + i * kSectionBytes));
    if (!name) return bad("the name of section " + std::to_string(i) + " is outside the table of names");
    sections[i].name = *name;
  }
  return sections;
}

Result<std::vector<Symbol>> read_symbols(const std::vector<Section>& sections) {
  const auto table =
      std::find_if(sections.begin(), sections.end(), [](const Section& s) { return s.type == kTypeSymbols; });
  if (table == sections.end()) return bad("no symbol table");
  if (table->bytes.size() % kSymbolBytes != 0)
    return bad("the symbol table is not a whole number of symbols");
  if (table->link >= sections.size()) return bad("the symbol table's strings are past the last section");
  const Bytes names = sections[table->link].bytes;
  std::vector<Symbol> symbols(table->bytes.size() / kSymbolBytes);
  // Indices of sections that do not fit in 16 bits are in a table of their own.
  constexpr std::uint32_t kTypeLongIndices = 18;
  const auto wide = std::find_if(sections.begin(), sections.end(),
                                 [](const Section& s) { return s.type == kTypeLongIndices; });
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    const std::uint64_t at = i * kSymbolBytes;
    Symbol& symbol = symbols[i];
    const auto name = string_at(names, read32(table->bytes, at));
    if (!name) return bad("the name of symbol " + std::to_string(i) + " is outside the table of names");
    symbol.name = *name;
    const std::uint8_t info = table->bytes[at + 4];
    symbol.type = info & 0xf;
    symbol.binding = info >> 4;
    symbol.other = table->bytes[at + 5];
    symbol.section = read16(table->bytes, at + 6);
    if (symbol.section == 0xffff && wide != sections.end() && wide->bytes.size() / 4 > i)
      symbol.section = read32(wide->bytes, i * 4);
    symbol.value = read64(table->bytes, at + 8);
    symbol.size = read64(table->bytes, at + 16);
  }
  return symbols;
}

}  // namespace

std::uint16_t read16(Bytes bytes, std::uint64_t at) { return read_as<std::uint16_t>(bytes, at); }
std::uint32_t read32(Bytes bytes, std::uint64_t at) { return read_as<std::uint32_t>(bytes, at); }
std::uint64_t read64(Bytes bytes, std::uint64_t at) { return read_as<std::uint64_t>(bytes, at); }

const Section* File::find(std::string_view name) const {
  for (const Section& section : sections)
    if (section.name == name) return &section;
  return nullptr;
}

Result<File> read(Bytes file) {
  PTXBENCH_TRY(check_ident(file));
  File out;
  out.os_abi = file[7];
  out.abi_version = file[8];
  out.type = read16(file, 16);
  out.flags = read32(file, 48);
  PTXBENCH_TRY_ASSIGN(out.sections, read_sections(file));
  PTXBENCH_TRY_ASSIGN(out.symbols, read_symbols(out.sections));
  return out;
}

}  // namespace ptxbench::sass::elf
