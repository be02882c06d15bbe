// Names that constants and macros of a plan cannot have.
#pragma once

#include <string_view>

namespace ptxbench::plan {

// Words with a meaning in expressions: functions, true, false, names of the device, the index `i`.
bool is_expression_word(std::string_view name);
// Keywords and alternative tokens of C++20, and names that the language reserves (`__x`, `_X`).
bool is_language_name(std::string_view name);
// Names that occur in CUDA's headers or in those that we put in their place: a macro of that name would
// change what the header says.
bool is_header_name(std::string_view name);

}  // namespace ptxbench::plan
