// Evaluations as text for people.
#pragma once

#include <ptxbench/trace.hpp>

#include <map>
#include <string>
#include <vector>

namespace ptxbench::cli {

// Columns padded to their widest cell; the first row is the head.
std::string table(const std::vector<std::vector<std::string>>& rows);

// Each line behind @p by.
std::string indent(const std::string& text, const std::string& by);

// By kernel: "wgmma 4, tma_load 2", instructions in the code.
std::map<std::string, std::string> static_census(const CompileBlock& block);
// FLOPs, bytes and the architecture's verdict, a line each.
std::string describe_flops(const CountsBlock& block);

// "M=8192"
std::string axes_text(const Verdict& verdict);
// Status, compile diagnostics, kernels' resources, static families, correctness, timing, counts, findings.
std::string describe(const Verdict& verdict);

}  // namespace ptxbench::cli
