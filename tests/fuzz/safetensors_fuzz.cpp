// Headers of safetensors files.
#include "trace/safetensors.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ptxbench;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto tensors = parse_safetensors_header(text, 8 + size, 1 << 20, "fuzz"))
    for (const StoredTensor& tensor : *tensors)
      if (tensor.offset < 8 + size || tensor.offset - 8 - size + tensor.bytes > 1 << 20) std::abort();
  return 0;
}
