#include "core/base64.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace ptxbench {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::int8_t, 256> make_values() {
  std::array<std::int8_t, 256> values{};
  for (auto& v : values) v = -1;
  for (std::size_t i = 0; i < kAlphabet.size(); ++i)
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::int8_t>(i);
  return values;
}
constexpr auto kValues = make_values();

Error bad(std::string what, std::size_t offset) {
  return make_error(ErrorCode::parse,
                    "not base64: " + std::move(what) + " at offset " + std::to_string(offset), {}, "base64");
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j)
      group = group << 8 | (j < n ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j) out += j <= n ? kAlphabet[group >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

Result<std::string> base64_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t group = 0;
  int digits = 0, padding = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') continue;
    if (c == '=') {
      if (digits + ++padding > 4 || digits < 2) return bad("padding in the wrong place", i);
      continue;
    }
    const int value = kValues[static_cast<unsigned char>(c)];
    if (value < 0) return bad("a character outside the alphabet", i);
    if (padding > 0) return bad("more text after the padding", i);
    group = group << 6 | static_cast<std::uint32_t>(value);
    if (++digits == 4) {
      for (const int shift : {16, 8, 0}) out += static_cast<char>(group >> shift & 255);
      group = 0;
      digits = 0;
    }
  }
  if (digits == 0 && padding == 0) return out;
  if (digits + padding != 4) return bad("the last group of four is cut off", text.size());
  const int bits = 6 * digits, bytes = bits / 8;
  if ((group & ((1u << (bits - 8 * bytes)) - 1)) != 0) return bad("bits left over", text.size());
  group >>= bits - 8 * bytes;
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(group >> (8 * i) & 255);
  return out;
}

}  // namespace ptxbench
