// Readers of the small things a plan is made of: expressions, names, dtypes, switches.
#pragma once

#include "core/json.hpp"
#include "plan/model.hpp"

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxbench::plan {

// An error of the plan's text at `at`, rule plan_invalid.
Error invalid(const json::Cursor& at, std::string message);

// An error for the first member that is not in `known`, with the nearest that is.
Result<void> only(const json::Cursor& at, std::initializer_list<std::string_view> known);

// A JSON number or a string (an expression); booleans stand for true and false.
Result<Expression> read_expression(const json::Cursor& at);
Result<std::optional<Expression>> read_optional_expression(const json::Cursor& object, std::string_view key);
// An array of `least` to `most` expressions.
Result<std::vector<Expression>> read_expressions(const json::Cursor& at, std::size_t least, std::size_t most);

Result<bool> read_optional_bool(const json::Cursor& object, std::string_view key, bool otherwise);
// A C identifier.
Result<std::string> read_identifier(const json::Cursor& at);
// A name that refers to something: any string that is not empty.
Result<Reference> read_reference(const json::Cursor& at);
// `tensor_map`: whether tf32 is among the types.
Result<DType> read_dtype(const json::Cursor& at, bool tensor_map);
// One of `words`; the index of it.
Result<int> read_word(const json::Cursor& at, std::initializer_list<std::string_view> words);

bool is_identifier(std::string_view text);
// "did you mean ...?" or the list of what there is; empty where `known` is.
std::string suggestion(std::string_view word, const std::vector<std::string_view>& known);

// parse_steps.cpp, parse_tensor_map.cpp
Result<Step> read_step(const json::Cursor& at);
Result<TensorMap> read_tensor_map(const json::Cursor& at);
Result<CompileFields> read_compile_fields(const json::Cursor& at, bool with_per_source);

}  // namespace ptxbench::plan
