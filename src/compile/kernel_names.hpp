// The kernels that a source has, as a plan would name them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ptxbench {

// "void ns::gemm<128, true>(float*)" (demangled from `symbol`) -> "ns::gemm<128, true>".
std::string kernel_name_of_symbol(const std::string& symbol);

// Names of the functions that are declared __global__ in a CUDA text, templates with "<...>" behind them.
std::vector<std::string> declared_kernels(std::string_view text);

}  // namespace ptxbench
