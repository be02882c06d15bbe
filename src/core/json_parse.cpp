// Reading JSON text into the tree of json.hpp.
//
// simdjson's On-Demand front end finds the structure and decodes strings. It validates lazily, so every value
// is walked here; it has no opinion on numbers that are read raw, so their grammar is checked here; and it
// looks only at the text it is asked for, so the end of the document is checked here.
#include "core/json.hpp"

#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <unordered_map>

namespace ptxbench::json {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr int kDeepest = 1000;  // simdjson's own depth limit is 1024

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The number grammar of RFC 8259.
bool is_json_number(std::string_view t) {
  std::size_t i = 0;
  const auto digits = [&] {
    const std::size_t start = i;
    while (i < t.size() && is_digit(t[i])) ++i;
    return i > start;
  };
  if (i < t.size() && t[i] == '-') ++i;
  if (i < t.size() && t[i] == '0') {
    ++i;
  } else if (!digits()) {
    return false;
  }
  if (i < t.size() && t[i] == '.') {
    ++i;
    if (!digits()) return false;
  }
  if (i < t.size() && (t[i] == 'e' || t[i] == 'E')) {
    ++i;
    if (i < t.size() && (t[i] == '+' || t[i] == '-')) ++i;
    if (!digits()) return false;
  }
  return i == t.size();
}

// Length of the valid UTF-8 prefix of `s`.
std::size_t valid_utf8_prefix(std::string_view s) {
  std::size_t i = 0;
  while (i < s.size()) {
    const std::size_t n = utf8_sequence(s.substr(i));
    if (n == 0) return i;
    i += n;
  }
  return i;
}

// A token as it may be shown in a message: short, printable.
std::string shown(std::string_view token) {
  constexpr std::size_t kMost = 24;
  std::string out;
  for (const char c : token.substr(0, kMost)) out += (c >= 0x20 && c < 0x7f) ? c : '?';
  return token.size() > kMost ? out + "..." : out;
}

class Reader {
 public:
  Reader(std::string_view text, const ParseOptions& options) : text_(text), options_(options) {
    options_.max_depth = std::clamp(options_.max_depth, 1, kDeepest);
  }

  Result<Document> read() {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF")
      return error_at(0, "the text starts with a UTF-8 byte order mark; JSON has none: save it without BOM");
    if (std::all_of(text_.begin(), text_.end(), is_space)) return error_at(0, "the document is empty");

    // As the only element of an array the root is a value like any other; simdjson treats a scalar root
    // apart.
    padded_ = simdjson::padded_string(text_.size() + 3);
    char* out = padded_.data();
    out[0] = '[';
    std::memcpy(out + 1, text_.data(), text_.size());
    std::memcpy(out + 1 + text_.size(), "\n]", 2);

    if (auto code = parser_.iterate(padded_).get(json_)) return stage_one_error(code);
    ondemand::array wrapper;
    if (json_.get_array().get(wrapper)) return structure_error("this is not JSON");
    Document document;
    document.file = options_.file;
    repeated_ = &document.repeated_keys;
    bool have_root = false;
    for (auto element : wrapper) {
      ondemand::value value;
      if (element.get(value)) return structure_error("expected the end of the document");
      if (have_root)
        return error_at(offset_of(value.raw_json_token().data()) - 1,
                        "more text after the end of the document");
      PTXBENCH_TRY(read_value(value, document.root, 1));
      have_root = true;
    }
    if (json_.current_location().error() != simdjson::OUT_OF_BOUNDS)
      return structure_error("more text after the end of the document");
    return document;
  }

 private:
  Result<void> read_value(ondemand::value& value, Value& out, int depth) {
    const std::string_view token = trimmed(value.raw_json_token());
    if (token.empty()) return error_at(offset_of(token.data()), "expected a value");
    switch (token.front()) {
      case '{':
        return depth > options_.max_depth ? too_deep(token) : read_object(value, out, depth);
      case '[':
        return depth > options_.max_depth ? too_deep(token) : read_array(value, out, depth);
      case '"': {
        std::string_view decoded;
        if (value.get_string().get(decoded))
          return error_at(offset_of(token.data()), "a string with a bad escape or half a surrogate pair");
        out.kind = Kind::string;
        out.text = decoded;
        return check_surrogates(out.text, token);
      }
      default:
        return read_word(token, out);
    }
  }

  Result<void> read_word(std::string_view token, Value& out) {
    if (token == "null") return {};
    if (token == "true" || token == "false") {
      out.kind = Kind::boolean;
      out.boolean = token == "true";
      return {};
    }
    const bool word = token == "NaN" || token == "Infinity" || token == "-Infinity";
    if (word && !options_.lenient_numbers)
      return error_at(offset_of(token.data()), std::string(token) + " is not a JSON number");
    if (!word && !is_json_number(token)) {
      const bool like_number = is_digit(token.front()) || token.front() == '-' || token.front() == '+';
      return error_at(offset_of(token.data()),
                      (like_number ? "not a JSON number: " : "expected a value, found ") + shown(token));
    }
    out.kind = Kind::number;
    out.text = token;
    return {};
  }

  Result<void> read_array(ondemand::value& value, Value& out, int depth) {
    out.kind = Kind::array;
    ondemand::array array;
    if (value.get_array().get(array)) return structure_error("an array that does not end");
    std::size_t index = 0;
    for (auto element : array) {
      ondemand::value item;
      if (element.get(item)) return structure_error("expected ',' or ']' after an array element");
      path_.push_back(std::to_string(index++));
      out.items.emplace_back();
      PTXBENCH_TRY(read_value(item, out.items.back(), depth + 1));
      path_.pop_back();
    }
    return {};
  }

  Result<void> read_object(ondemand::value& value, Value& out, int depth) {
    constexpr std::size_t kFew = 16;  // up to here a linear search is the faster one
    out.kind = Kind::object;
    ondemand::object object;
    if (value.get_object().get(object)) return structure_error("an object that does not end");
    std::unordered_map<std::string, std::size_t> index;
    for (auto element : object) {
      ondemand::field field;
      if (std::move(element).get(field))
        return structure_error("expected ',' or '}' after a member, and a \"name\": before a value");
      const char* const place = field.key().raw();
      std::string_view decoded;
      if (field.unescaped_key().get(decoded))
        return error_at(offset_of(place), "a member name with a bad escape or half a surrogate pair");
      std::string key(decoded);
      PTXBENCH_TRY(check_surrogates(key, std::string_view(place, 0)));

      std::size_t at = out.members.size();
      if (out.members.size() <= kFew) {
        for (std::size_t i = 0; i < out.members.size(); ++i)
          if (out.members[i].first == key) at = i;
      } else {
        if (index.empty())
          for (std::size_t i = 0; i < out.members.size(); ++i) index.emplace(out.members[i].first, i);
        at = index.emplace(key, at).first->second;
      }
      path_.push_back(pointer_token(key));
      if (at == out.members.size()) {
        out.members.emplace_back(std::move(key), Value{});
      } else {
        out.members[at].second = Value{};
        const std::string pointer = path_text();
        if (std::find(repeated_->begin(), repeated_->end(), pointer) == repeated_->end() &&
            repeated_->size() < kMostRepeated)
          repeated_->push_back(pointer);
      }
      PTXBENCH_TRY(read_value(field.value(), out.members[at].second, depth + 1));
      path_.pop_back();
    }
    return {};
  }

  // simdjson decodes a lone low surrogate to the three bytes that UTF-8 forbids.
  Result<void> check_surrogates(std::string_view decoded, std::string_view token) {
    for (std::size_t i = 0; i + 1 < decoded.size(); ++i)
      if (static_cast<unsigned char>(decoded[i]) == 0xED &&
          static_cast<unsigned char>(decoded[i + 1]) >= 0xA0)
        return error_at(offset_of(token.data()), "a string with half a surrogate pair");
    return {};
  }

  static std::string_view trimmed(std::string_view token) {
    while (!token.empty() && is_space(token.back())) token.remove_suffix(1);
    return token;
  }

  std::size_t offset_of(const char* place) const {
    const char* const first = padded_.data() + 1;
    if (place == nullptr || place < first) return 0;
    return std::min(static_cast<std::size_t>(place - first), text_.size());
  }

  Error error_at(std::size_t offset, std::string message) const {
    Error error{ErrorCode::parse, std::move(message), {options_.file, "", 1, 1}, {}, 0};
    const std::string_view before = text_.substr(0, std::min(offset, text_.size()));
    error.where.line = static_cast<int>(1 + std::count(before.begin(), before.end(), '\n'));
    const std::size_t line_start = before.rfind('\n');
    error.where.column =
        static_cast<int>(1 + before.size() - (line_start == std::string_view::npos ? 0 : line_start + 1));
    return error;
  }

  Error too_deep(std::string_view token) const {
    return error_at(offset_of(token.data()),
                    "nested deeper than " + std::to_string(options_.max_depth) + " levels");
  }

  Error structure_error(std::string message) {
    const char* place = nullptr;
    std::size_t offset = text_.size();
    if (!json_.current_location().get(place)) offset = offset_of(place);
    // simdjson may stand on the white space before the token, or on the end that was added here.
    while (offset < text_.size() && is_space(text_[offset])) ++offset;
    message += offset < text_.size() ? ", found '" + shown(text_.substr(offset, 1)) + "'"
                                     : ", found the end of the text";
    return error_at(offset, std::move(message));
  }

  // Errors of the first pass carry no place; it is looked for here.
  Error stage_one_error(simdjson::error_code code) const {
    if (code == simdjson::MEMALLOC)
      return make_error(ErrorCode::no_memory, "no memory to read JSON", {options_.file, "", 0, 0});
    if (code == simdjson::CAPACITY) return error_at(0, "the document is larger than 4 GiB");
    const std::size_t bad = valid_utf8_prefix(text_);
    if (bad < text_.size()) return error_at(bad, "the text is not valid UTF-8");
    std::size_t open = std::string_view::npos;
    for (std::size_t i = 0; i < text_.size(); ++i) {
      if (text_[i] == '"') {
        open = open == std::string_view::npos ? i : std::string_view::npos;
      } else if (open != std::string_view::npos && text_[i] == '\\') {
        ++i;
      } else if (open != std::string_view::npos && static_cast<unsigned char>(text_[i]) < 0x20) {
        return error_at(i, "a raw control character (0x" + hex_byte(text_[i]) +
                               ") inside a string; write it as an escape");
      }
    }
    if (open != std::string_view::npos) return error_at(open, "a string that does not end");
    return error_at(0, std::string("this is not JSON: ") + simdjson::error_message(code));
  }

  static std::string hex_byte(char c) {
    constexpr char kHex[] = "0123456789abcdef";
    const auto b = static_cast<unsigned char>(c);
    return {kHex[b >> 4], kHex[b & 15]};
  }

  std::string path_text() const {
    std::string text;
    for (const std::string& token : path_) text += "/" + token;
    return text;
  }

  static constexpr std::size_t kMostRepeated = 64;  // enough for a message, and keeps hostile input linear
  std::string_view text_;
  ParseOptions options_;
  simdjson::padded_string padded_;
  ondemand::parser parser_;
  ondemand::document json_;
  std::vector<std::string> path_;
  std::vector<std::string>* repeated_ = nullptr;
};

}  // namespace

Result<Document> parse(std::string_view text, const ParseOptions& options) {
  try {
    return Reader(text, options).read();
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::no_memory, "no memory to read JSON");
  } catch (const std::exception& e) {
    return make_error(ErrorCode::internal, std::string("reading JSON failed: ") + e.what());
  }
}

}  // namespace ptxbench::json
