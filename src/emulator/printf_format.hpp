// printf as kernels know it: a format, and the arguments as vprintf gets them, packed in a buffer with each
// at its natural alignment.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace ptxbench::emulator {

struct PrintfSource {
  // @p bytes (4 or 8) of the buffer from @p offset on; false where they cannot be read.
  std::function<bool(std::uint64_t offset, unsigned bytes, std::uint64_t& value)> argument;
  // The string at a generic address, for %s; false where it cannot be read.
  std::function<bool(std::uint64_t address, std::string& text)> string;
};

// Appends to @p out, at most @p most bytes. Sets @p arguments to how many were used. False where a source
// said so.
bool format_printf(std::string_view format, const PrintfSource& source, std::size_t most, std::string& out,
                   int& arguments);

}  // namespace ptxbench::emulator
