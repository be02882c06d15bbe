#include "sass/param_reads.hpp"

#include "sass/opcode_table.hpp"

#include <algorithm>
#include <optional>

namespace ptxbench::sass {
namespace {

constexpr std::uint32_t kLdc = 0x182, kUldc = 0x0b9, kUldcIndexed = 0x0bb, kLdcu = 0x1ac;
constexpr std::uint32_t kBar = 0x11d;  // the one operation whose form 5 has no operand in a constant bank

constexpr std::uint32_t bits(std::uint64_t word, int first, int count) {
  return static_cast<std::uint32_t>(word >> first & ((std::uint64_t{1} << count) - 1));
}

// An access to a constant bank.
struct Access {
  std::uint32_t bank = 0, offset = 0, bytes = 0;
  bool indexed = false;
};

// The access of a word to a constant bank, if it has one.
std::optional<Access> access_of(int sm, Word word) {
  constexpr std::uint32_t kNoRegister = 0xff;
  constexpr std::uint32_t kWidest = 16;  // taken for a width that is unknown
  const std::uint32_t operation = operation_of(word);
  Access access;
  access.bank = bits(word.low, 54, 5);
  access.offset = bits(word.low, 38, 16);
  const auto width = [&] {
    const std::uint32_t bytes = access_bytes(sm, word);
    return bytes != 0 ? bytes : kWidest;
  };
  switch (operation) {
    case kLdc:  // bits 78 and 79: the bank may come from the index too
      access.indexed = bits(word.low, 24, 8) != kNoRegister || bits(word.high, 14, 2) != 0;
      access.bytes = width();
      return access;
    case kUldc:
      if (sm >= 100) break;
      access.bytes = width();
      return access;
    case kUldcIndexed:
      if (sm >= 100) break;
      access.indexed = true;
      access.bytes = width();
      return access;
    case kLdcu:
      if (sm < 100) break;
      access.indexed = bits(word.low, 24, 8) != kNoRegister;
      access.offset = bits(word.low, 37, 17);
      access.bytes = width();
      return access;
    default:
      break;
  }
  // Up to 9.0 arithmetic has operands in constant banks (forms 3 and 5). How wide they are depends on the
  // operation; we take the widest, since a parameter that is wrongly held for read does no harm.
  const std::uint32_t form = bits(word.low, 9, 3);
  if (sm >= 100 || (form != 3 && form != 5) || operation == kBar) return std::nullopt;
  access.bytes = 8;
  return access;
}

}  // namespace

std::optional<std::uint32_t> address_of_parameters(int sm) {
  if (sm >= 90 && sm < 100) return 0x198;
  if (sm >= 100 && sm < 110) return 0x348;
  return std::nullopt;
}

void mark_parameter_reads(int sm, elf::Bytes code, Kernel& kernel) {
  const auto address = address_of_parameters(sm);
  if (!address || kernel.parameters.empty()) return;
  bool certain = true;
  const std::uint64_t base = kernel.parameter_base;
  for (std::uint64_t at = 0; at + 16 <= code.size(); at += 16) {
    const Word word{elf::read64(code, at), elf::read64(code, at + 8)};
    const std::optional<Access> access = access_of(sm, word);
    if (!access) continue;
    if (access->indexed) certain = false;
    if (access->indexed || access->bank != 0) continue;
    const std::uint64_t first = access->offset, end = first + access->bytes;
    if (first < *address + 8 && end > *address) certain = false;
    if (end <= base) continue;
    // By offset they are in order: find the first parameter that ends behind the access's start.
    auto parameter =
        std::partition_point(kernel.parameters.begin(), kernel.parameters.end(),
                             [&](const Parameter& p) { return base + p.offset + p.size <= first; });
    for (; parameter != kernel.parameters.end() && base + parameter->offset < end; ++parameter)
      parameter->read = true;
  }
  if (!certain) return;
  for (Parameter& parameter : kernel.parameters)
    if (!parameter.read) parameter.read = false;
}

bool addresses_shared(int sm, elf::Bytes code) {
  constexpr std::string_view kFamilies[] = {"shared",    "ldmatrix",      "stmatrix",  "cp_async",
                                            "tma_load",  "tma_multicast", "tma_store", "tma_reduce",
                                            "bulk_copy", "mbarrier"};
  for (std::uint64_t at = 0; at + 16 <= code.size(); at += 16) {
    const OpcodeRow* row = find_row(sm, Word{elf::read64(code, at), elf::read64(code, at + 8)});
    if (row == nullptr) continue;
    if (row->mnemonic == "ATOMS" ||
        std::find(std::begin(kFamilies), std::end(kFamilies), row->family) != std::end(kFamilies))
      return true;
  }
  return false;
}

}  // namespace ptxbench::sass
