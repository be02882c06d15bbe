// Mutants that are known to be missed, each with the reason: known_misses.txt. A list that can fail both
// ways: a miss that is not in it, and an entry of which nothing is missed any more.
#pragma once

#include "mutate.hpp"

#include <string>
#include <vector>

namespace ptxbench::testing {

struct KnownMiss {
  std::string subject, kind, what;  // of the mutants that it is about
  std::uint32_t line = 0;           // of the PTX; 0: any (where the PTX depends on the compiler's version)
  std::string reason;
  bool is(const std::string& name, const Mutant& mutant) const {
    return name == subject && mutant.kind == kind && mutant.what == what &&
           (line == 0 || mutant.line == line);
  }
};

// One line each: `subject | kind | what | line or * | reason`; `#` begins a comment. Throws where a line is
// none.
std::vector<KnownMiss> known_misses();
// Of this mutant; null where it must be found.
const KnownMiss* find_known(const std::vector<KnownMiss>& all, const std::string& name, const Mutant& mutant);

}  // namespace ptxbench::testing
