// One-site mutants of a right kernel: of its PTX text, and of its launch plan.
#pragma once

#include "ptx/module.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ptxbench::testing {

// A change of one place in a text: [offset, offset + length) becomes `text`, which has as many line breaks,
// so that the lines of everything else stay what they are.
struct Edit {
  std::size_t offset = 0, length = 0;
  std::string text;
};
std::string edited(std::string_view text, const Edit& edit);

struct Mutant {
  std::string kind;                       // "delete_fence", "flip_parity", ...
  std::string what;                       // in words: "bar.sync: deleted"
  std::string instruction;                // the mutated one; empty for a plan's
  std::uint32_t line = 0;                 // of the PTX; 0 for a plan's
  std::uint32_t function = 0, index = 0;  // the instruction's place in the module
  Edit edit;                              // of the PTX text; of launch.json where `plan` is set
  bool plan = false;
  // Of a deleted initialisation of a register: texts that put other values there.
  std::vector<std::string> other_values;
};

// All mutants of the instructions whose PTX line is in @p executed. @p text is what @p module was parsed
// from.
std::vector<Mutant> mutants_of(const ptx::Module& module, std::string_view text,
                               const std::set<std::uint32_t>& executed);
// Of tensor maps in a launch.json: another swizzle, half as many rows in a box.
std::vector<Mutant> plan_mutants(std::string_view launch);

// Whether a kind has so many sites that a sample of them will do.
bool is_plentiful(std::string_view kind);

}  // namespace ptxbench::testing
