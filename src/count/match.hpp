// Which of a counter's records are the candidate's, and of which kernel.
#pragma once

#include "count/sass_counter.hpp"

#include <string>
#include <vector>

namespace ptxbench {

// A module of the candidate: the kernels that its cubin has, and the number that its records carry.
struct CountedModule {
  std::vector<std::string> symbols;
  std::optional<std::uint32_t> cubin_crc;
};

// Sorts `records` into `evidence`: kernels, other functions; `unavailable` where records cannot be told apart
// or a kernel of `launched` (pairs of module and symbol) has none.
void match_records(const std::vector<SassRecord>& records, const std::vector<CountedModule>& modules,
                   const std::vector<std::pair<std::size_t, std::string>>& launched, CountEvidence& evidence);

}  // namespace ptxbench
