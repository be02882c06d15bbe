#include "plan/read.hpp"

#include <algorithm>

namespace ptxbench::plan {

Error invalid(const json::Cursor& at, std::string message) {
  return at.error(std::move(message), kPlanInvalid);
}

bool is_identifier(std::string_view text) {
  const auto start = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && start(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return start(c) || (c >= '0' && c <= '9'); });
}

std::string suggestion(std::string_view word, const std::vector<std::string_view>& known) {
  if (const std::string_view near = json::nearest(word, known); !near.empty())
    return "; did you mean `" + std::string(near) + "`?";
  // A word that begins like another one ("shared" for "shared_bytes") is farther off than a slip of a finger.
  for (const std::string_view candidate : known) {
    const std::size_t shorter = std::min(word.size(), candidate.size());
    if (shorter >= 3 && word.substr(0, shorter) == candidate.substr(0, shorter))
      return "; did you mean `" + std::string(candidate) + "`?";
  }
  if (known.empty()) return {};
  constexpr std::size_t kMost = 24;
  std::string out = "; there is ";
  for (std::size_t i = 0; i < known.size() && i < kMost; ++i)
    out += (i == 0 ? "`" : ", `") + std::string(known[i]) + "`";
  if (known.size() > kMost) out += " and " + std::to_string(known.size() - kMost) + " more";
  return out;
}

Result<void> only(const json::Cursor& at, std::initializer_list<std::string_view> known) {
  PTXBENCH_TRY_ASSIGN(const auto members, at.members());
  for (const auto& [name, value] : members)
    if (std::find(known.begin(), known.end(), std::string_view(name)) == known.end())
      return invalid(value, "unknown member \"" + name + "\"" + suggestion(name, known));
  return {};
}

Result<Expression> read_expression(const json::Cursor& at) {
  switch (at.kind()) {
    case json::Kind::number:
    case json::Kind::string:
      return Expression::parse(at.value().text, at.location());
    case json::Kind::boolean:
      return Expression::parse(at.value().boolean ? "true" : "false", at.location());
    default:
      return invalid(at, "expected a number or a string that holds an expression");
  }
}

Result<std::optional<Expression>> read_optional_expression(const json::Cursor& object, std::string_view key) {
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> found, object.get(key));
  if (!found) return std::optional<Expression>();
  PTXBENCH_TRY_ASSIGN(Expression value, read_expression(*found));
  return std::optional<Expression>(std::move(value));
}

Result<std::vector<Expression>> read_expressions(const json::Cursor& at, std::size_t least,
                                                 std::size_t most) {
  PTXBENCH_TRY_ASSIGN(const std::vector<json::Cursor> items, at.items());
  if (items.size() < least || items.size() > most)
    return invalid(at, "expected " + std::to_string(least) + " to " + std::to_string(most) +
                           " expressions, found " + std::to_string(items.size()));
  std::vector<Expression> out;
  for (const json::Cursor& item : items) {
    PTXBENCH_TRY_ASSIGN(Expression value, read_expression(item));
    out.push_back(std::move(value));
  }
  return out;
}

Result<bool> read_optional_bool(const json::Cursor& object, std::string_view key, bool otherwise) {
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> found, object.get(key));
  if (!found) return otherwise;
  return found->as_bool();
}

Result<std::string> read_identifier(const json::Cursor& at) {
  PTXBENCH_TRY_ASSIGN(std::string name, at.as_nonempty_string());
  if (!is_identifier(name)) return invalid(at, "\"" + name + "\" is no identifier (letters, digits and _)");
  return name;
}

Result<Reference> read_reference(const json::Cursor& at) {
  PTXBENCH_TRY_ASSIGN(std::string name, at.as_nonempty_string());
  return Reference{std::move(name), at.pointer()};
}

Result<DType> read_dtype(const json::Cursor& at, bool tensor_map) {
  PTXBENCH_TRY_ASSIGN(const std::string name, at.as_nonempty_string());
  const std::optional<DType> dtype = dtype_from_name(name);
  if (dtype && (tensor_map || *dtype != DType::tfloat32)) return *dtype;
  if (dtype) return invalid(at, "tf32 is a type of tensor maps only; in memory it is float32");
  std::vector<std::string_view> known;
  for (int i = 0; i <= static_cast<int>(DType::tfloat32); ++i)
    if (tensor_map || static_cast<DType>(i) != DType::tfloat32)
      known.push_back(dtype_name(static_cast<DType>(i)));
  return invalid(at, "unknown dtype \"" + name + "\"" + suggestion(name, known));
}

Result<int> read_word(const json::Cursor& at, std::initializer_list<std::string_view> words) {
  PTXBENCH_TRY_ASSIGN(const std::string word, at.as_string());
  const auto found = std::find(words.begin(), words.end(), std::string_view(word));
  if (found != words.end()) return static_cast<int>(found - words.begin());
  return invalid(at, "unknown word \"" + word + "\"" + suggestion(word, words));
}

}  // namespace ptxbench::plan
