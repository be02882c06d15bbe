// Evaluations as text for people.
#pragma once

#include <ptxbench/trace.hpp>

#include <string>
#include <vector>

namespace ptxbench::cli {

// Columns padded to their widest cell; the first row is the head.
std::string table(const std::vector<std::vector<std::string>>& rows);

// "M=8192"
std::string axes_text(const Verdict& verdict);
// Status, compile diagnostics, kernels' resources, static families, correctness, timing, counts, findings.
std::string describe(const Verdict& verdict);

}  // namespace ptxbench::cli
