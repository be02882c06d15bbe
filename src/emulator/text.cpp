#include "emulator/text.hpp"

#include <cinttypes>
#include <cstdio>

namespace ptxbench::emulator {

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%" PRIx64, value);
  return text;
}

std::string bytes_text(std::uint64_t bytes) {
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

}  // namespace ptxbench::emulator
