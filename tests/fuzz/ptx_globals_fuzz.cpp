#include "device/ptx_globals.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const std::string& name : ptxbench::ptx_globals({reinterpret_cast<const char*>(data), size}))
    if (name.empty() || name.size() > size) __builtin_trap();
  ptxbench::ptx_blocks_are_clusters({reinterpret_cast<const char*>(data), size}, "k");
  return 0;
}
