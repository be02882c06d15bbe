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
};

// The reason; empty where no rule holds, and the mutant was missed.
std::string equivalent_because(const Survivor& survivor);

}  // namespace ptxbench::testing
