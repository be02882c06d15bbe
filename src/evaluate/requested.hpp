// What a candidate's PTX asks for and its machine code does not have.
#pragma once

#include <ptxbench/compile.hpp>
#include <ptxbench/trace.hpp>

#include <vector>

namespace ptxbench {

// A note (`requested_but_absent`) for each kernel whose PTX has setmaxnreg and whose machine code has none.
// `families`: of the module, by symbol. `diagnostics`: what ptxas said of it becomes a part of the note.
// Empty without PTX or without a cubin.
std::vector<Finding> requested_but_absent(const CompiledModule& module,
                                          const std::vector<StaticFamily>& families,
                                          const std::vector<Diagnostic>& diagnostics);

}  // namespace ptxbench
