// JSON: a small immutable document tree read through simdjson, a cursor that knows its JSON pointer, and a
// writer. Numbers stay the text that was written, so that 2^70 and (in interchange records) NaN and Infinity
// survive.
#pragma once

#include <ptxbench/core.hpp>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ptxbench::json {

enum class Kind : std::uint8_t { null, boolean, number, string, array, object };

// One node. Members keep the order of the text; for a repeated key the last value wins, in the first's place,
// and the document remembers the repetition.
struct Value {
  Kind kind = Kind::null;
  bool boolean = false;
  std::string text;  // string: decoded UTF-8; number: the token as written, e.g. "1e3", "NaN"
  std::vector<Value> items;                              // array
  std::vector<std::pair<std::string, Value>> members;    // object
  const Value* find(std::string_view key) const noexcept;

  // Out of line: a type that holds pairs of itself is complete only after its end (clang insists).
  Value();
  ~Value();
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
};

struct ParseOptions {
  std::string file;             // for messages
  bool lenient_numbers = false; // accept NaN, Infinity, -Infinity (interchange records only)
  int max_depth = 200;
};

struct Document {
  Value root;
  std::string file;
  std::vector<std::string> repeated_keys;  // JSON pointers of members that occurred more than once
};

// Parses one whole document: every value is validated, also those that nobody will read; anything but white
// space after it is an error. Errors: ErrorCode::parse with file, line and column. A UTF-8 BOM is an error
// that says so.
Result<Document> parse(std::string_view text, const ParseOptions& options = {});

// A value with its place. Cheap to copy; the Document must outlive it.
class Cursor {
 public:
  explicit Cursor(const Document& document);
  Cursor(const Value& value, std::shared_ptr<const std::string> file, std::string pointer);

  const Value& value() const { return *value_; }
  Kind kind() const { return value_->kind; }
  bool is_null() const { return value_->kind == Kind::null; }
  const std::string& pointer() const { return pointer_; }
  Location location() const;
  // An ErrorCode::parse error at this place.
  Error error(std::string message, std::string rule = {}) const;

  // Typed readers; each error names the pointer, what was expected and what is there.
  Result<bool> as_bool() const;
  Result<std::int64_t> as_int() const;        // an integer token within int64 ("1e3" and "4.0" are refused)
  Result<std::int64_t> as_int_lax() const;    // also integral floats, numeric strings ("4", " 4 ", "4.0", "1_000"), true/false
  Result<double> as_double() const;           // any number token within double; NaN/Infinity where the document allowed them
  Result<std::string> as_string() const;
  Result<std::string> as_nonempty_string() const;
  Result<std::vector<Cursor>> items() const;                               // array elements
  Result<std::vector<std::pair<std::string, Cursor>>> members() const;     // object members in order

  // Member of an object: error if this is no object; nothing if absent.
  Result<std::optional<Cursor>> get(std::string_view key) const;
  // The same, absent is an error that names the key.
  Result<Cursor> require(std::string_view key) const;
  // Strict records: an error for the first member that is not in `known`, naming the nearest known key.
  Result<void> only(std::initializer_list<std::string_view> known) const;

 private:
  const Value* value_;
  std::shared_ptr<const std::string> file_;
  std::string pointer_;
};

// The member of `known` that is nearest to `word` by edit distance, or empty where none is close.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known);

// Escapes one reference token of a JSON pointer ("a/b" -> "a~1b").
std::string pointer_token(std::string_view token);

// Builds JSON text. Calls must nest rightly (asserted in debug builds). Doubles print as the shortest text
// that reads back the same; NaN and infinities print as null unless `nonfinite_strings` (then "NaN",
// "Infinity", "-Infinity").
class Writer {
 public:
  struct Options { int indent = 0; bool nonfinite_strings = false; };
  Writer() = default;
  explicit Writer(Options options) : options_(options) {}
  Writer& begin_object();
  Writer& end_object();
  Writer& begin_array();
  Writer& end_array();
  Writer& key(std::string_view name);
  Writer& null();
  Writer& boolean(bool v);
  Writer& integer(std::int64_t v);
  Writer& unsigned_integer(std::uint64_t v);
  Writer& number(double v);
  Writer& string(std::string_view v);
  Writer& raw(std::string_view json);       // text that already is a JSON value
  Writer& value(const Value& v);            // a parsed value, number tokens unchanged
  // key + value in one call
  Writer& field(std::string_view name, std::string_view v) { return key(name).string(v); }
  Writer& field(std::string_view name, const std::string& v) { return key(name).string(v); }
  Writer& field(std::string_view name, const char* v) { return key(name).string(v); }
  Writer& field(std::string_view name, bool v) { return key(name).boolean(v); }
  Writer& field(std::string_view name, int v) { return key(name).integer(v); }
  Writer& field(std::string_view name, std::int64_t v) { return key(name).integer(v); }
  Writer& field(std::string_view name, std::uint64_t v) { return key(name).unsigned_integer(v); }
  Writer& field(std::string_view name, unsigned v) { return key(name).unsigned_integer(v); }
  Writer& field(std::string_view name, double v) { return key(name).number(v); }
  const std::string& str() const& { return out_; }
  std::string str() && { return std::move(out_); }

 private:
  void separate();
  void newline();
  Options options_;
  std::string out_;
  std::vector<char> stack_;   // '{' or '['
  bool first_ = true;
  bool after_key_ = false;
};

// `value` as compact JSON text.
std::string to_string(const Value& value);
// Length in bytes of the UTF-8 sequence that `s` starts with; 0 where it is invalid or cut off, or `s` is empty.
std::size_t utf8_sequence(std::string_view s) noexcept;
// The double nearest to a number token, infinite where it is too large; NaN, Infinity, -Infinity are tokens too.
// Nothing where `token` is not a number.
std::optional<double> double_from_token(std::string_view token) noexcept;
// `v` as the shortest decimal that reads back the same ("0.1", "1e+30"); NaN, Infinity, -Infinity as words.
std::string format_double(double v);

}  // namespace ptxbench::json
