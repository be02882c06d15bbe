// The lines that a mutation directly affects: where a finding about it may point. README.md defines them.
#pragma once

#include "mutate.hpp"

#include <set>
#include <string>

namespace ptxbench::testing {

// PTX lines of @p module, the mutated one among them.
std::set<std::uint32_t> affected_lines(const ptx::Module& module, const Mutant& mutant);
// "PTX line N" in a text.
std::set<std::uint32_t> lines_in(const std::string& text);

}  // namespace ptxbench::testing
