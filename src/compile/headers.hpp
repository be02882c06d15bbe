// The virtual headers of a candidate: what people include by habit and NVRTC does not have
// (src/compile/headers/).
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ptxbench {

struct VirtualHeader {
  std::string_view name;  // as it is included: "cstdint", "cuda.h"
  std::string_view text;
};

// All of them, sorted by name. Embedded when the library is built.
std::span<const VirtualHeader> virtual_headers();
const VirtualHeader* find_virtual_header(std::string_view name);

// What to do instead of including a header that cannot work in device code ("vector", "iostream",
// "torch/..."), or, for any other name, what there is. Never empty.
std::string header_advice(std::string_view name);

}  // namespace ptxbench
