// What can be said about Python text without a Python.
#pragma once

#include <ptxbench/core.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace ptxbench {

// Why `source` cannot be a reference, or nothing. Checked: no NUL; strings, triple-quoted strings and
// brackets are closed and matched; there is a `def run` (not async) at the top level, with a parameter list
// and a body. NOT checked: any other syntax, indentation, names, the parameters of run.
std::optional<std::string> reference_problem(std::string_view source);

// Why `text` cannot be a constraint, which must be one Python expression, or nothing. Checked: tokens, closed
// and matched brackets, operands and operators in turn, no assignment, one logical line without leading
// white space. NOT checked: the inside of an expression with `lambda`, `for`, `await` or `yield`, and whether
// names exist.
std::optional<std::string> constraint_problem(std::string_view text);

}  // namespace ptxbench
