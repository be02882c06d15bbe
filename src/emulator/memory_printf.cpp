#include "emulator/printf_format.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdio>

namespace ptxbench::emulator {

namespace {
constexpr int kWidest = 512;  // of a field; beyond, a kernel could ask for gigabytes

// Text of one conversion; the host's snprintf does the digits, with a specification that was checked.
template <class T>
std::string one(const std::string& spec, int width, int precision, T value) {
  char text[1536];
  const int n = precision >= 0 ? std::snprintf(text, sizeof text, (spec).c_str(), width, precision, value)
                               : std::snprintf(text, sizeof text, (spec).c_str(), width, value);
  return std::string(text, static_cast<std::size_t>(std::clamp<int>(n, 0, sizeof text - 1)));
}
}  // namespace

bool format_printf(std::string_view format, const PrintfSource& source, std::size_t most, std::string& out,
                   int& arguments) {
  std::uint64_t offset = 0;
  arguments = 0;
  const auto next = [&](unsigned bytes, std::uint64_t& value) {
    offset = (offset + bytes - 1) / bytes * bytes;
    if (!source.argument(offset, bytes, value)) return false;
    offset += bytes;
    ++arguments;
    return true;
  };
  const std::size_t limit = out.size() + most;
  for (std::size_t i = 0; i < format.size() && out.size() < limit;) {
    const std::size_t percent = std::min(format.find('%', i), format.size());
    out += format.substr(i, percent - i);
    i = percent;
    if (i == format.size()) break;
    const std::size_t begin = i++;
    std::string flags;
    while (i < format.size() && std::string_view("-+ #0").find(format[i]) != std::string_view::npos) {
      if (flags.find(format[i]) == std::string::npos) flags += format[i];
      ++i;
    }
    int width = 0, precision = -1;
    const auto number = [&](int& n) {
      if (i < format.size() && format[i] == '*') {
        ++i;
        std::uint64_t v = 0;
        if (!next(4, v)) return false;
        n = static_cast<std::int32_t>(v);
        return true;
      }
      n = 0;
      while (i < format.size() && std::isdigit(static_cast<unsigned char>(format[i]))) {
        n = std::min(n * 10 + (format[i++] - '0'), kWidest);
      }
      return true;
    };
    if (!number(width)) return false;
    if (width < 0) flags += '-', width = -std::max(width, -kWidest);
    width = std::min(width, kWidest);
    if (i < format.size() && format[i] == '.') {
      ++i;
      if (!number(precision)) return false;
      precision = std::clamp(precision, -1, kWidest);
    }
    // Sizes as on the device: int 4, long, long long, size_t, pointers 8. hh and h come as int.
    bool wide = false, narrow = false, narrowest = false;
    for (; i < format.size() && std::string_view("hlLjztq").find(format[i]) != std::string_view::npos; ++i) {
      if (format[i] == 'h') {
        narrowest = narrow, narrow = true;
      } else {
        wide = true;
      }
    }
    if (i == format.size()) {
      out += format.substr(begin);
      break;
    }
    const char kind = format[i++];
    const std::string head = "%" + flags + (precision >= 0 ? "*.*" : "*");
    std::uint64_t v = 0;
    switch (kind) {
      case '%':
        out += '%';
        break;
      case 'd':
      case 'i': {
        if (!next(wide ? 8 : 4, v)) return false;
        long long n = wide ? static_cast<std::int64_t>(v) : static_cast<std::int32_t>(v);
        if (narrow && !wide) n = narrowest ? static_cast<std::int8_t>(n) : static_cast<std::int16_t>(n);
        out += one(head + "ll" + kind, width, precision, n);
        break;
      }
      case 'u':
      case 'o':
      case 'x':
      case 'X': {
        if (!next(wide ? 8 : 4, v)) return false;
        unsigned long long n = wide ? v : static_cast<std::uint32_t>(v);
        if (narrow && !wide) n &= narrowest ? 0xff : 0xffff;
        out += one(head + "ll" + kind, width, precision, n);
        break;
      }
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        if (!next(8, v)) return false;
        out += one(head + kind, width, precision, std::bit_cast<double>(v));
        break;
      case 'c':
        if (!next(4, v)) return false;
        out += one("%" + flags + "*c", width, -1, static_cast<int>(v & 0xff));
        break;
      case 'p':
        if (!next(8, v)) return false;
        out += one("%" + flags + "*p", width, -1, std::bit_cast<void*>(v));
        break;
      case 's': {
        if (!next(8, v)) return false;
        std::string text;
        if (v == 0) {
          text = "(null)";
        } else if (!source.string(v, text)) {
          return false;
        }
        if (precision >= 0 && text.size() > static_cast<std::size_t>(precision)) {
          text.resize(static_cast<std::size_t>(precision));
        }
        const std::size_t pad = text.size() < static_cast<std::size_t>(width) ? width - text.size() : 0;
        const bool left = flags.find('-') != std::string::npos;
        out += left ? text + std::string(pad, ' ') : std::string(pad, ' ') + text;
        break;
      }
      default:
        out += format.substr(begin, i - begin);  // as the device does: what it does not know stays as it is
    }
  }
  if (out.size() > limit) out.resize(limit);
  return true;
}

}  // namespace ptxbench::emulator
