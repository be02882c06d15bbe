#include "pack/manifest.hpp"

#include <cstdlib>

using namespace ptxbench;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto manifest = parse_pack_manifest({reinterpret_cast<const char*>(data), size}, "pack.json");
  if (!manifest) return 0;
  // What was accepted stays inside the folder by its text.
  for (const auto& document : manifest->documents)
    if (document.file.path.front() == '/' || document.file.path.rfind("../", 0) == 0) std::abort();
  return 0;
}
