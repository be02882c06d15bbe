// Readers of FlashInfer-Trace's records that accept what the schema's own reader coerces. Integers are in
// json::Cursor::as_int_lax.
#pragma once

#include "core/json.hpp"

#include <ptxbench/trace.hpp>

#include <initializer_list>

namespace ptxbench {

// A number; true and false; a numeric string ("1e-3", " 2.5 ", "1_000", "nan", "inf", "-Infinity", in any
// case). A number too large for double is an infinity.
Result<double> as_double_lax(const json::Cursor& at);
// true and false; 1 and 0 in any form; "true" "t" "yes" "y" "on" "1" and their opposites in any case.
Result<bool> as_bool_lax(const json::Cursor& at);

// Optional member that may be null.
Result<std::optional<std::string>> optional_string(const json::Cursor& at, std::string_view key);
// Member that must be there and not empty.
Result<std::string> required_string(const json::Cursor& at, std::string_view key);
// Optional array of strings that are not empty; null is refused.
Result<std::vector<std::string>> string_list(const json::Cursor& at, std::string_view key);
// The members of an object that are not among `known`, as compact JSON.
UnknownMembers unknown_members(const json::Cursor& at, std::initializer_list<std::string_view> known);
void write_unknown(json::Writer& out, const UnknownMembers& unknown);

// Parses a record of the interchange format: an object, numbers lenient.
Result<json::Document> parse_record(std::string_view text, std::string_view file);

// An Error about a record, made in memory or read: the place is a JSON pointer in `file`.
Error record_error(std::string_view file, std::string pointer, std::string message, std::string rule = {});

// Checks that parsing and making share; `file` is for messages.
Result<void> check_definition(const Definition& definition, std::string_view file);
Result<void> check_solution(const Solution& solution, std::string_view file);
// Against workload.definition, which must not be null. Drops const axes that are listed with their own value.
Result<void> check_workload(Workload& workload, std::string_view file, const std::string& pointer);

// The object of a workload; `definition` may be null, and then nothing is checked against it.
Result<Workload> read_workload(const DefinitionPtr& definition, const json::Cursor& at);
void write_workload(json::Writer& out, const Workload& workload);
Result<Trace> read_trace(const DefinitionPtr& definition, const json::Cursor& at);

}  // namespace ptxbench
