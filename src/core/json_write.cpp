// Writing JSON text.
#include "core/json.hpp"

#include <array>
#include <cassert>
#include <charconv>
#include <cmath>

namespace ptxbench::json {
namespace {

void append_escaped(std::string& out, std::string_view s) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (std::size_t i = 0; i < s.size();) {
    const auto c = static_cast<unsigned char>(s[i]);
    if (c >= 0x80) {
      const std::size_t n = utf8_sequence(s.substr(i));
      // What compilers and kernels print may be any bytes; JSON text may not.
      out += n == 0 ? std::string_view("\xEF\xBF\xBD") : s.substr(i, n);
      i += n == 0 ? 1 : n;
      continue;
    }
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (c < 0x20) {
          out += "\\u00";
          out += kHex[c >> 4];
          out += kHex[c & 15];
        } else {
          out += static_cast<char>(c);
        }
    }
    ++i;
  }
  out += '"';
}

}  // namespace

std::size_t utf8_sequence(std::string_view s) noexcept {
  if (s.empty()) return 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t n = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || s.size() < n) return 0;
  for (std::size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const unsigned second = byte(1);
  if (lead == 0xE0 && second < 0xA0) return 0;  // overlong
  if (lead == 0xED && second > 0x9F) return 0;  // surrogates
  if (lead == 0xF0 && second < 0x90) return 0;  // overlong
  if (lead == 0xF4 && second > 0x8F) return 0;  // above U+10FFFF
  return n;
}

void Writer::newline() {
  if (options_.indent <= 0) return;
  out_ += '\n';
  out_.append(stack_.size() * static_cast<std::size_t>(options_.indent), ' ');
}

void Writer::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  assert((stack_.empty() || stack_.back() == '[') && "a member needs a key");
  if (stack_.empty()) return;
  if (!first_) out_ += ',';
  newline();
  first_ = false;
}

Writer& Writer::begin_object() {
  separate();
  out_ += '{';
  stack_.push_back('{');
  first_ = true;
  return *this;
}

Writer& Writer::end_object() {
  assert(!stack_.empty() && stack_.back() == '{' && !after_key_);
  stack_.pop_back();
  if (!first_) newline();
  out_ += '}';
  first_ = false;
  return *this;
}

Writer& Writer::begin_array() {
  separate();
  out_ += '[';
  stack_.push_back('[');
  first_ = true;
  return *this;
}

Writer& Writer::end_array() {
  assert(!stack_.empty() && stack_.back() == '[');
  stack_.pop_back();
  if (!first_) newline();
  out_ += ']';
  first_ = false;
  return *this;
}

Writer& Writer::key(std::string_view name) {
  assert(!stack_.empty() && stack_.back() == '{' && !after_key_);
  if (!first_) out_ += ',';
  newline();
  first_ = false;
  append_escaped(out_, name);
  out_ += options_.indent > 0 ? ": " : ":";
  after_key_ = true;
  return *this;
}

Writer& Writer::null() { return raw("null"); }
Writer& Writer::boolean(bool v) { return raw(v ? "true" : "false"); }
Writer& Writer::integer(std::int64_t v) { return raw(std::to_string(v)); }
Writer& Writer::unsigned_integer(std::uint64_t v) { return raw(std::to_string(v)); }

Writer& Writer::number(double v) {
  if (std::isfinite(v)) return raw(format_double(v));
  return options_.nonfinite_strings ? string(format_double(v)) : null();
}

Writer& Writer::string(std::string_view v) {
  separate();
  append_escaped(out_, v);
  return *this;
}

Writer& Writer::raw(std::string_view json) {
  separate();
  out_ += json;
  return *this;
}

Writer& Writer::value(const Value& v) {
  switch (v.kind) {
    case Kind::null:
      return null();
    case Kind::boolean:
      return boolean(v.boolean);
    case Kind::number:
      return raw(v.text);
    case Kind::string:
      return string(v.text);
    case Kind::array:
      begin_array();
      for (const Value& item : v.items) value(item);
      return end_array();
    case Kind::object:
      begin_object();
      for (const auto& [name, member] : v.members) key(name).value(member);
      return end_object();
  }
  return *this;
}

std::string to_string(const Value& value) {
  Writer writer;
  writer.value(value);
  return std::move(writer).str();
}

std::string format_double(double v) {
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v < 0 ? "-Infinity" : "Infinity";
  std::array<char, 32> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), v);
  return {buffer.data(), result.ptr};
}

}  // namespace ptxbench::json
