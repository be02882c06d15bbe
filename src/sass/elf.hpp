// Reading ELF64 files, bounds checked: nothing that a file says is believed before it has been compared with
// the file's size. Views point into the file's bytes.
#pragma once

#include <ptxbench/core.hpp>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ptxbench::sass::elf {

using Bytes = std::span<const std::uint8_t>;

inline constexpr std::uint32_t kTypeNoBits = 8;     // sh_type of a section without bytes in the file
inline constexpr std::uint32_t kTypeSymbols = 2;    // sh_type of .symtab
inline constexpr std::uint16_t kMachineCuda = 190;  // e_machine
inline constexpr std::uint8_t kSymbolObject = 1;    // symbol types
inline constexpr std::uint8_t kSymbolFunction = 2;
inline constexpr std::uint8_t kSymbolNone = 0;
inline constexpr std::uint8_t kBindLocal = 0;

// Little-endian reads at byte @p at; the caller has checked that they are inside.
std::uint16_t read16(Bytes bytes, std::uint64_t at);
std::uint32_t read32(Bytes bytes, std::uint64_t at);
std::uint64_t read64(Bytes bytes, std::uint64_t at);

struct Section {
  std::string_view name;
  std::uint32_t type = 0, link = 0, info = 0;
  std::uint64_t flags = 0, address = 0, offset = 0, size = 0;
  Bytes bytes;  // empty for a section without bytes in the file; else `size` bytes, inside the file
};

struct Symbol {
  std::string_view name;
  std::uint8_t type = 0, binding = 0, other = 0;
  std::uint32_t section = 0;  // 0: undefined; else an index of a section, or a reserved index (0xff00 and up)
  std::uint64_t value = 0, size = 0;
};

struct File {
  std::uint8_t os_abi = 0, abi_version = 0;
  std::uint16_t type = 0;
  std::uint32_t flags = 0;
  std::vector<Section> sections;
  std::vector<Symbol> symbols;  // of .symtab, with the null symbol: indices are the file's

  const Section* find(std::string_view name) const;  // the first of that name, or nullptr
};

// A CUDA ELF64 file. Errors: ErrorCode::parse.
Result<File> read(Bytes file);

}  // namespace ptxbench::sass::elf
