// Reading the tree: the cursor that knows its JSON pointer, and the conversions of scalars.
#include "core/json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace ptxbench::json {
namespace {

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "a boolean";
    case Kind::number:
      return "a number";
    case Kind::string:
      return "a string";
    case Kind::array:
      return "an array";
    case Kind::object:
      return "an object";
  }
  return "?";
}

// What is there, for messages: short scalars in full.
std::string shown(const Value& value) {
  constexpr std::size_t kMost = 48;
  if (value.kind == Kind::array || value.kind == Kind::object) return std::string(kind_name(value.kind));
  std::string text = to_string(value);
  if (text.size() > kMost) {
    std::size_t cut = kMost;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80)
      --cut;  // not inside a character
    text.resize(cut);
    text += "...";
  }
  return text;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<std::int64_t> int_from(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

bool is_integer_token(std::string_view token) {
  if (!token.empty() && token.front() == '-') token.remove_prefix(1);
  return !token.empty() && std::all_of(token.begin(), token.end(), is_digit);
}

enum class IntText { good, not_integral, too_large };

// "4", " 4 ", "+4", "4.0", "1_000": what the schema's own reader takes for an integer in a string.
IntText int_from_string(std::string_view s, std::int64_t& out) {
  const auto space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (!s.empty() && space(s.front())) s.remove_prefix(1);
  while (!s.empty() && space(s.back())) s.remove_suffix(1);
  std::string digits;
  if (!s.empty() && (s.front() == '-' || s.front() == '+')) {
    if (s.front() == '-') digits = "-";
    s.remove_prefix(1);
  }
  if (const std::size_t dot = s.find('.'); dot != std::string_view::npos) {
    if (s.find_first_not_of('0', dot + 1) != std::string_view::npos) return IntText::not_integral;
    s = s.substr(0, dot);
  }
  if (s.empty() || !is_digit(s.front()) || !is_digit(s.back())) return IntText::not_integral;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (is_digit(s[i])) {
      digits += s[i];
    } else if (s[i] != '_' || s[i + 1] == '_') {  // the last is a digit, so i + 1 exists
      return IntText::not_integral;
    }
  }
  const auto value = int_from(digits);
  if (!value) return IntText::too_large;
  out = *value;
  return IntText::good;
}

// An integer from a number token of any form.
IntText int_from_number(std::string_view token, std::int64_t& out) {
  if (is_integer_token(token)) {
    const auto value = int_from(token);
    if (!value) return IntText::too_large;
    out = *value;
    return IntText::good;
  }
  const std::optional<double> value = double_from_token(token);
  if (!value || std::isinf(*value)) return IntText::too_large;
  if (std::isnan(*value) || std::trunc(*value) != *value) return IntText::not_integral;
  if (std::abs(*value) >= 9223372036854775808.0) return IntText::too_large;
  out = static_cast<std::int64_t>(*value);
  return IntText::good;
}

}  // namespace

std::optional<double> double_from_token(std::string_view token) noexcept {
  if (token == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (token == "Infinity") return std::numeric_limits<double>::infinity();
  if (token == "-Infinity") return -std::numeric_limits<double>::infinity();
  double value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (end != token.data() + token.size()) return std::nullopt;
  if (error == std::errc{}) return value;
  if (error != std::errc::result_out_of_range) return std::nullopt;
  // Too large or too small: from_chars does not say which. The position of the first digit that counts does.
  const bool negative = token.front() == '-';
  std::int64_t scale = 0;  // of the first digit that is not zero
  std::size_t i = negative ? 1 : 0;
  const std::size_t mantissa_end = std::min(token.find_first_of("eE"), token.size());
  const std::size_t point = std::min(token.find('.'), mantissa_end);
  const std::size_t first = token.find_first_of("123456789", i);
  if (first < point) {
    scale = static_cast<std::int64_t>(point - first);
  } else {
    scale = -static_cast<std::int64_t>(first - point) + 1;
  }
  if (mantissa_end < token.size()) {
    std::string_view exponent = token.substr(mantissa_end + 1);
    if (exponent.front() == '+') exponent.remove_prefix(1);
    constexpr std::int64_t kHuge = std::int64_t{1} << 40;
    scale += int_from(exponent).value_or(exponent.front() == '-' ? -kHuge : kHuge);
  }
  const double magnitude = scale > 0 ? std::numeric_limits<double>::infinity() : 0.0;
  return negative ? -magnitude : magnitude;
}

Value::Value() = default;
Value::~Value() = default;
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;

const Value* Value::find(std::string_view key) const noexcept {
  for (const auto& [name, value] : members)
    if (name == key) return &value;
  return nullptr;
}

Cursor::Cursor(const Document& document)
    : value_(&document.root), file_(std::make_shared<const std::string>(document.file)) {}

Cursor::Cursor(const Value& value, std::shared_ptr<const std::string> file, std::string pointer)
    : value_(&value), file_(std::move(file)), pointer_(std::move(pointer)) {}

Location Cursor::location() const { return {file_ ? *file_ : std::string(), pointer_, 0, 0}; }

Error Cursor::error(std::string message, std::string rule) const {
  return make_error(ErrorCode::parse, std::move(message), location(), std::move(rule));
}

Result<bool> Cursor::as_bool() const {
  if (kind() != Kind::boolean) return error("expected true or false, found " + shown(*value_));
  return value_->boolean;
}

Result<std::int64_t> Cursor::as_int() const {
  if (kind() != Kind::number || !is_integer_token(value_->text))
    return error("expected an integer, found " + shown(*value_));
  if (const auto value = int_from(value_->text)) return *value;
  return error("the integer " + shown(*value_) + " does not fit in 64 bits");
}

Result<std::int64_t> Cursor::as_int_lax() const {
  if (kind() == Kind::boolean) return std::int64_t{value_->boolean ? 1 : 0};
  std::int64_t value = 0;
  IntText text = IntText::not_integral;
  if (kind() == Kind::number) text = int_from_number(value_->text, value);
  if (kind() == Kind::string) text = int_from_string(value_->text, value);
  if (text == IntText::good) return value;
  if (text == IntText::too_large) return error("the integer " + shown(*value_) + " does not fit in 64 bits");
  return error("expected an integer, found " + shown(*value_));
}

Result<double> Cursor::as_double() const {
  if (kind() != Kind::number) return error("expected a number, found " + shown(*value_));
  const std::optional<double> value = double_from_token(value_->text);
  const bool word = value_->text.back() == 'y';  // Infinity, as it is written
  if (!value || (std::isinf(*value) && !word)) return error("the number " + shown(*value_) + " is too large");
  return *value;
}

Result<std::string> Cursor::as_string() const {
  if (kind() != Kind::string) return error("expected a string, found " + shown(*value_));
  return value_->text;
}

Result<std::string> Cursor::as_nonempty_string() const {
  if (kind() != Kind::string || value_->text.empty())
    return error("expected a string that is not empty, found " + shown(*value_));
  return value_->text;
}

Result<std::vector<Cursor>> Cursor::items() const {
  if (kind() != Kind::array) return error("expected an array, found " + shown(*value_));
  std::vector<Cursor> out;
  out.reserve(value_->items.size());
  for (std::size_t i = 0; i < value_->items.size(); ++i)
    out.emplace_back(value_->items[i], file_, pointer_ + "/" + std::to_string(i));
  return out;
}

Result<std::vector<std::pair<std::string, Cursor>>> Cursor::members() const {
  if (kind() != Kind::object) return error("expected an object, found " + shown(*value_));
  std::vector<std::pair<std::string, Cursor>> out;
  out.reserve(value_->members.size());
  for (const auto& [name, value] : value_->members)
    out.emplace_back(name, Cursor(value, file_, pointer_ + "/" + pointer_token(name)));
  return out;
}

Result<std::optional<Cursor>> Cursor::get(std::string_view key) const {
  if (kind() != Kind::object) return error("expected an object, found " + shown(*value_));
  const Value* const found = value_->find(key);
  if (found == nullptr) return std::optional<Cursor>();
  return std::optional<Cursor>(Cursor(*found, file_, pointer_ + "/" + pointer_token(key)));
}

Result<Cursor> Cursor::require(std::string_view key) const {
  PTXBENCH_TRY_ASSIGN(std::optional<Cursor> found, get(key));
  if (!found) return error("the member \"" + std::string(key) + "\" is missing");
  return *std::move(found);
}

Result<void> Cursor::only(std::initializer_list<std::string_view> known) const {
  if (kind() != Kind::object) return error("expected an object, found " + shown(*value_));
  for (const auto& [name, value] : value_->members) {
    if (std::find(known.begin(), known.end(), std::string_view(name)) != known.end()) continue;
    const Cursor place(value, file_, pointer_ + "/" + pointer_token(name));
    const std::string_view near = nearest(name, std::vector<std::string_view>(known));
    std::string message = "unknown member \"" + name + "\"";
    message += near.empty() ? std::string() : "; did you mean \"" + std::string(near) + "\"?";
    return place.error(std::move(message), "unknown_member");
  }
  return {};
}

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known) {
  constexpr std::size_t kLongest = 64;  // longer words are no typing mistakes
  if (word.size() > kLongest) return {};
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::vector<std::size_t> before_previous, previous, current;
  for (const std::string_view candidate : known) {
    if (candidate.size() > kLongest) continue;
    previous.resize(candidate.size() + 1);
    std::iota(previous.begin(), previous.end(), std::size_t{0});
    for (std::size_t i = 1; i <= word.size(); ++i) {
      current.assign(candidate.size() + 1, i);
      for (std::size_t j = 1; j <= candidate.size(); ++j) {
        const std::size_t change = word[i - 1] == candidate[j - 1] ? 0 : 1;
        current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + change});
        if (i > 1 && j > 1 && word[i - 1] == candidate[j - 2] && word[i - 2] == candidate[j - 1])
          current[j] = std::min(current[j], before_previous[j - 2] + 1);  // two letters swapped
      }
      before_previous.swap(previous);
      previous.swap(current);
    }
    if (previous.back() < best_distance) {
      best_distance = previous.back();
      best = candidate;
    }
  }
  return best;
}

std::string pointer_token(std::string_view token) {
  std::string out;
  for (const char c : token) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace ptxbench::json
