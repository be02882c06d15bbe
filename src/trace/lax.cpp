#include "trace/lax.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace ptxbench {
namespace {

using json::Cursor;
using json::Kind;

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::string_view stripped(std::string_view s) {
  const auto space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (!s.empty() && space(s.front())) s.remove_prefix(1);
  while (!s.empty() && space(s.back())) s.remove_suffix(1);
  return s;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Python's float().
std::optional<double> double_from_string(std::string_view text) {
  std::string s = lower(stripped(text));
  bool negative = false;
  if (!s.empty() && (s.front() == '-' || s.front() == '+')) {
    negative = s.front() == '-';
    s.erase(0, 1);
  }
  double value = 0;
  if (s == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (s == "inf" || s == "infinity") {
    value = std::numeric_limits<double>::infinity();
  } else {
    std::string plain;
    for (std::size_t i = 0; i < s.size(); ++i) {
      if (s[i] != '_') {
        plain += s[i];
      } else if (i == 0 || i + 1 == s.size() || !is_digit(s[i - 1]) || !is_digit(s[i + 1])) {
        return std::nullopt;
      }
    }
    if (plain.find_first_not_of("0123456789.e+-") != std::string::npos || plain.empty() ||
        !(is_digit(plain.front()) || plain.front() == '.'))
      return std::nullopt;
    const auto number = json::double_from_token(plain);
    if (!number) return std::nullopt;
    value = *number;
  }
  return negative ? -value : value;
}

}  // namespace

Result<double> as_double_lax(const Cursor& at) {
  std::optional<double> value;
  if (at.kind() == Kind::boolean) value = at.value().boolean ? 1 : 0;
  if (at.kind() == Kind::number) value = json::double_from_token(at.value().text);
  if (at.kind() == Kind::string) value = double_from_string(at.value().text);
  if (!value) return at.as_double();  // whose error says what was expected
  return *value;
}

Result<bool> as_bool_lax(const Cursor& at) {
  if (at.kind() == Kind::number) {
    const auto value = json::double_from_token(at.value().text);
    if (value && (*value == 0 || *value == 1)) return *value == 1;
  }
  if (at.kind() == Kind::string) {
    constexpr std::array<std::string_view, 6> kTrue{"1", "on", "t", "true", "y", "yes"};
    constexpr std::array<std::string_view, 6> kFalse{"0", "off", "f", "false", "n", "no"};
    const std::string word = lower(at.value().text);
    if (std::find(kTrue.begin(), kTrue.end(), word) != kTrue.end()) return true;
    if (std::find(kFalse.begin(), kFalse.end(), word) != kFalse.end()) return false;
  }
  return at.as_bool();
}

Result<std::optional<std::string>> optional_string(const Cursor& at, std::string_view key) {
  PTXBENCH_TRY_ASSIGN(const std::optional<Cursor> place, at.get(key));
  if (!place || place->is_null()) return std::optional<std::string>();
  PTXBENCH_TRY_ASSIGN(std::string text, place->as_string());
  return std::optional<std::string>(std::move(text));
}

Result<std::string> required_string(const Cursor& at, std::string_view key) {
  PTXBENCH_TRY_ASSIGN(const Cursor place, at.require(key));
  return place.as_nonempty_string();
}

Result<std::vector<std::string>> string_list(const Cursor& at, std::string_view key) {
  std::vector<std::string> out;
  PTXBENCH_TRY_ASSIGN(const std::optional<Cursor> place, at.get(key));
  if (!place) return out;
  PTXBENCH_TRY_ASSIGN(const std::vector<Cursor> items, place->items());
  for (const Cursor& item : items) {
    PTXBENCH_TRY_ASSIGN(std::string text, item.as_nonempty_string());
    out.push_back(std::move(text));
  }
  return out;
}

UnknownMembers unknown_members(const Cursor& at, std::initializer_list<std::string_view> known) {
  UnknownMembers unknown;
  for (const auto& [name, value] : at.value().members)
    if (std::find(known.begin(), known.end(), std::string_view(name)) == known.end())
      unknown.emplace_back(name, json::to_string(value));
  return unknown;
}

void write_unknown(json::Writer& out, const UnknownMembers& unknown) {
  for (const auto& [name, text] : unknown) {
    const auto document = json::parse(text, {"", true});  // a record made in memory may hold anything
    out.key(name);
    if (document) {
      out.value(document->root);
    } else {
      out.string(text);
    }
  }
}

Result<json::Document> parse_record(std::string_view text, std::string_view file) {
  PTXBENCH_TRY_ASSIGN(json::Document document, json::parse(text, {std::string(file), true}));
  if (document.root.kind != Kind::object) return Cursor(document).error("a record must be a JSON object");
  return document;
}

Error record_error(std::string_view file, std::string pointer, std::string message, std::string rule) {
  return make_error(ErrorCode::parse, std::move(message), {std::string(file), std::move(pointer), 0, 0},
                    std::move(rule));
}

}  // namespace ptxbench
