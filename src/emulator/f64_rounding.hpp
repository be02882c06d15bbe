// f64 arithmetic in integers, for the rounding modes that the host does not run in: operands are finite and,
// for quotients and roots, not zero.
#pragma once

#include "emulator/formats.hpp"

#include <cstdint>

namespace ptxbench::emulator {

std::uint64_t exact_product(std::uint64_t a, std::uint64_t b, Rounding rounding);
std::uint64_t exact_product_sum(std::uint64_t a, std::uint64_t b, std::uint64_t c, Rounding rounding);
std::uint64_t exact_quotient(std::uint64_t a, std::uint64_t b, Rounding rounding);
std::uint64_t exact_root(std::uint64_t a, Rounding rounding);  // of a positive number

}  // namespace ptxbench::emulator
