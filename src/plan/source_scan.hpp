// What can be told of a source by its text alone, comments and strings left out. No preprocessor runs: a
// kernel that hides behind a macro is not seen, which is why nothing but convenience rests on this.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ptxbench::plan {

struct SourceKernel {
  std::string name;
  bool extern_c = false;
};

// The `__global__` functions of CUDA C++, in order, each once.
std::vector<SourceKernel> kernels_of_cuda(std::string_view text);
// The `.entry` names of PTX, in order.
std::vector<std::string> kernels_of_ptx(std::string_view text);
// Whether there is an `#include` of <name> or "name".
bool includes_header(std::string_view text, std::string_view name);

}  // namespace ptxbench::plan
