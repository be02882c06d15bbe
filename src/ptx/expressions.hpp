// Constants and constant expressions (PTX ISA 4.5): evaluated while they are read.
#pragma once

#include "ptx/lexer.hpp"

#include <cstdint>

namespace ptxbench::ptx {

struct Constant {
  enum class Kind : std::uint8_t { integer, f32, f64 } kind = Kind::integer;
  std::uint64_t bits = 0;    // two's complement; or the pattern of the float
  bool is_unsigned = false;  // of an integer: .u64, else .s64

  double as_double() const noexcept;
};

// Whether a constant expression can begin with the next token (a name cannot, WARP_SZ excepted).
bool starts_constant(const Lexer& lexer) noexcept;
// Reads an expression, ?: and all; fails where there is none.
Constant parse_constant(Lexer& lexer);
// Sums and products only: what stands behind the + of an address.
Constant parse_sum(Lexer& lexer);
// One integer literal between @p least and @p most; @p what names it in messages.
std::uint64_t parse_integer(Lexer& lexer, std::uint64_t least, std::uint64_t most, std::string_view what);

}  // namespace ptxbench::ptx
