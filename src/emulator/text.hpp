// Words of messages.
#pragma once

#include <cstdint>
#include <string>

namespace ptxbench::emulator {

std::string hex(std::uint64_t value);         // "0x1f"
std::string bytes_text(std::uint64_t bytes);  // "1 byte", "16 bytes"

}  // namespace ptxbench::emulator
