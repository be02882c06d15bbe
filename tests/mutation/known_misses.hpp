// Mutants that are known to be missed, with the reason: known_misses.txt. A list that can fail both ways:
// more misses than it says, and an entry of which fewer are missed now.
#pragma once

#include "mutate.hpp"

#include <string>
#include <vector>

namespace ptxbench::testing {

struct KnownMiss {
  std::string subject, kind, what;  // of the mutants that it is about, at whatever lines
  std::size_t misses = 0;           // how many of them are missed; at least one
  std::string reason;
  bool is(const std::string& name, const Mutant& mutant) const {
    return name == subject && mutant.kind == kind && mutant.what == what;
  }
};

// One line each: `subject | kind | what | misses | reason`; `#` begins a comment. Throws where a line is
// none.
std::vector<KnownMiss> known_misses();
// Of this mutant; null where it must be found.
const KnownMiss* find_known(const std::vector<KnownMiss>& all, const std::string& name, const Mutant& mutant);

}  // namespace ptxbench::testing
