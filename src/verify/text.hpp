// How messages of the judge write numbers and places.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ptxbench {

// Six digits.
std::string number_text(double value);
// The index of element @p flat of a tensor, outermost dimension first, and as "[3, 17]".
std::vector<std::int64_t> index_of(std::uint64_t flat, const std::vector<std::int64_t>& shape);
std::string index_text(const std::vector<std::int64_t>& index);

}  // namespace ptxbench
