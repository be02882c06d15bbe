// Which registers and predicates an instruction reads and writes, from the places that operands have in a
// word.
#pragma once

#include "sass/opcode_table.hpp"

#include <ptxbench/sass.hpp>

#include <bitset>
#include <cstdint>
#include <optional>

namespace ptxbench::sass {

// Registers, uniform registers, predicates and uniform predicates have one numbering. RZ, URZ, PT and UPT are
// in no set.
inline constexpr std::uint32_t kUniform = 256, kPredicate = 512, kUniformPredicate = 520, kSlots = 528;
inline constexpr std::uint32_t kRegisterZero = 255, kPredicateTrue = 7;
using Slots = std::bitset<kSlots>;

struct Operands {
  std::optional<std::uint32_t> guard;  // a predicate other than "always"
  bool never = false;                  // the guard is "never"
  Slots reads;                         // without the guard
  Slots writes;                        // all that it may write
  Slots certain;                       // of these, what it writes whenever its guard holds
  Slots stored;                        // of what a store reads, the data
  bool known = true;                   // false: the table lacks the operation, and the sets are a guess
};
Operands operands_of(int sm, Word word, const OpcodeRow* row);

// Bits `first` to `first + count - 1` (of 128) of a word; `count` at most 64.
constexpr std::uint64_t field(Word word, int first, int count) {
  const std::uint64_t mask = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
  if (first >= 64) return word.high >> (first - 64) & mask;
  if (first + count <= 64) return word.low >> first & mask;
  return (word.low >> first | word.high << (64 - first)) & mask;
}

// The uniform register in the field that begins at bit `first`; nothing for URZ.
std::optional<std::uint32_t> uniform_register(int sm, Word word, int first);

}  // namespace ptxbench::sass
