// Why a mutant that survives is no bug: by rule, never by hand. README.md has the rules.
#pragma once

#include "mutate.hpp"

#include <string>

namespace ptxbench::testing {

// What the rules look at beside the mutant.
struct Survivor {
  const ptx::Module& module;
  const Mutant& mutant;
  std::string launch;                  // launch.json, unchanged
  std::string note;                    // that the mutant raises and the right kernel does not
  std::set<std::string> kernels;       // that ran, by symbol
  std::vector<std::string> used_maps;  // tensor maps that the launches which ran are given
  // A launch of the mutant, under some schedule, wrote a byte of global memory that it accessed again.
  bool global_reused = true;
};

// The reason that rests on the detector of races alone.
inline constexpr const char* kOrdersNothing =
    "it alone orders nothing: no race in shared memory (each access is followed), and no byte of global "
    "memory "
    "that is written is accessed again in the launch";

// The reason; empty where no rule holds, and the mutant was missed.
std::string equivalent_because(const Survivor& survivor);

}  // namespace ptxbench::testing
