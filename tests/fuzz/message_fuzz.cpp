// Frames and base64.
#include "core/base64.hpp"
#include "core/message.hpp"

#include <cstdlib>

using namespace ptxbench;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto message = decode(text)) {
    const auto frame = encode(*message);
    if (std::string_view(reinterpret_cast<const char*>(frame.data()), frame.size()) != text) std::abort();
  }
  if (const auto bytes = base64_decode(text)) {
    if (base64_decode(base64_encode(*bytes)).value() != *bytes) std::abort();
  }
  return 0;
}
