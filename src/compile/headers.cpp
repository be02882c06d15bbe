#include "compile/headers.hpp"

#include "core/json.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace ptxbench {
namespace {

struct Advice {
  std::string_view pattern;  // a name, or a folder with its slash
  std::string_view text;
};

constexpr std::array kAdvice = {
    Advice{"iostream", "there are no streams on the device: use printf from <stdio.h>"},
    Advice{"fstream", "there are no files on the device"},
    Advice{"sstream", "there are no streams on the device: use printf from <stdio.h>"},
    Advice{"ostream", "there are no streams on the device: use printf from <stdio.h>"},
    Advice{"iomanip", "there are no streams on the device: use printf from <stdio.h>"},
    Advice{"vector",
           "device code has no heap: use a fixed array (<array>) or a workspace of the launch plan"},
    Advice{"string", "device code has no heap: use const char* and <string.h>"},
    Advice{"string_view", "use const char*, or <cuda/std/string_view>"},
    Advice{"map", "device code has no heap: use a workspace of the launch plan"},
    Advice{"unordered_map", "device code has no heap: use a workspace of the launch plan"},
    Advice{"set", "device code has no heap: use a workspace of the launch plan"},
    Advice{"memory", "device code has no heap: use a workspace of the launch plan"},
    Advice{"tuple", "use <cuda/std/tuple>"},
    Advice{"optional", "use <cuda/std/optional>"},
    Advice{"variant", "use <cuda/std/variant>"},
    Advice{"complex", "use <cuda/std/complex>, or cuComplex.h"},
    Advice{"atomic", "use <cuda/std/atomic> or <cuda/atomic>"},
    Advice{"chrono", "use clock64() or %globaltimer"},
    Advice{"iterator", "use <cuda/std/iterator>"},
    Advice{"numeric", "use <cuda/std/numeric>, or write the loop"},
    Advice{"random", "there is no host code: inputs come from the judge"},
    Advice{"thread", "there is no host code in a candidate: the launch plan launches"},
    Advice{"mutex", "there is no host code in a candidate"},
    Advice{"stdexcept", "there are no exceptions on the device: use assert or __trap()"},
    Advice{"exception", "there are no exceptions on the device: use assert or __trap()"},
    Advice{"cuda_bf16.hpp", "include <cuda_bf16.h>"},
    Advice{
        "cutlass/",
        "CUTLASS is not part of a candidate's headers: write the PTX inline, or use <ptx/...> of the pack"},
    Advice{"cute/",
           "CuTe is not part of a candidate's headers: write the PTX inline, or use <ptx/...> of the pack"},
    Advice{"torch/", "there is no host code in a candidate: launch.json describes the launch"},
    Advice{"ATen/", "there is no host code in a candidate: launch.json describes the launch"},
    Advice{"c10/", "there is no host code in a candidate: launch.json describes the launch"},
    Advice{"pybind11/", "there is no host code in a candidate: launch.json describes the launch"},
    Advice{"tvm/", "there is no host code in a candidate: launch.json describes the launch"},
    Advice{"cublas", "there is no host code in a candidate, so no library can be called"},
    Advice{"cudnn", "there is no host code in a candidate, so no library can be called"},
    Advice{"cudaTypedefs.h",
           "tensor maps are made by the launch plan (`tensor_maps`); <cuda.h> has CUtensorMap"},
    Advice{"driver_types.h", "the driver's types belong to the host; <cuda.h> has CUtensorMap"},
    Advice{"unistd.h", "there is no host code in a candidate"},
    Advice{"sys/", "there is no host code in a candidate"},
};

}  // namespace

const VirtualHeader* find_virtual_header(std::string_view name) {
  const std::span<const VirtualHeader> all = virtual_headers();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const VirtualHeader& h) { return h.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::string header_advice(std::string_view name) {
  for (const Advice& advice : kAdvice) {
    const bool folder =
        advice.pattern.ends_with('/') || advice.pattern == "cublas" || advice.pattern == "cudnn";
    if (folder ? name.starts_with(advice.pattern) : name == advice.pattern)
      return "<" + std::string(name) + "> cannot be included in a candidate: " + std::string(advice.text);
  }
  std::vector<std::string_view> known = {
      "cuda_bf16.h",          "cuda_fp16.h",  "cuda_fp8.h", "cooperative_groups.h", "mma.h", "launch_plan.h",
      "cuda/std/type_traits", "cuda/barrier", "cuda/ptx",   "math_constants.h"};
  for (const VirtualHeader& header : virtual_headers()) known.push_back(header.name);
  const std::string_view near = json::nearest(name, known);
  std::string text = "there is no header <" + std::string(name) + ">";
  if (!near.empty()) return text + "; the nearest is <" + std::string(near) + ">";
  return text +
         " among the candidate's files, the pack's headers, the header set of ptxbench (docs/toolkit.md) and "
         "the "
         "CUDA toolkit's";
}

}  // namespace ptxbench
