// The expression language of launch plans (LAUNCH_PLAN.md, "Expressions"): one parser, one evaluator.
#pragma once

#include <ptxbench/core.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ptxbench::expr {

// An integer (64 bits, checked for overflow), a float, or a boolean.
using Number = std::variant<std::int64_t, double, bool>;

// As text for messages and evidence: "8192", "0.5", "true".
std::string to_string(const Number& value);
bool truthy(const Number& value);  // non-zero

// How names and the functions of a kernel are answered while evaluating. Either may return an error, which
// gets the expression's place.
struct Environment {
  std::function<Result<Number>(std::string_view name)> lookup;
  // occupancy(kernel), max_active_clusters(kernel); empty: they are an error ("known only after compiling").
  std::function<Result<Number>(std::string_view function, std::string_view kernel)> kernel_function;
};

// A parsed expression; immutable, shareable.
class Expression {
 public:
  // Operators + - * / % ( ), comparisons, && || !, ?:, unary -; functions min max ceil_div round_up
  // round_down sqrt rsqrt exp exp2 ln log2, occupancy(kernel), max_active_clusters(kernel). Errors carry
  // `where` with the column of the offending character.
  static Result<Expression> parse(std::string_view text, const Location& where);
  static Expression constant(Number value);

  // Division by zero, overflow, an unknown name, a wrong kind: an error at `where` with the values involved.
  Result<Number> evaluate(const Environment& environment) const;
  Result<std::int64_t> evaluate_int(const Environment& environment) const;   // a float or bool is an error
  Result<bool> evaluate_bool(const Environment& environment) const;
  Result<double> evaluate_double(const Environment& environment) const;      // integers widen

  const std::string& text() const { return text_; }
  const Location& where() const { return where_; }
  // Names used, and kernels used in occupancy()/max_active_clusters(), in order of first use.
  std::vector<std::string> names() const;
  std::vector<std::string> kernels() const;

 private:
  struct Node;
  std::string text_;
  Location where_;
  std::shared_ptr<const Node> root_;
};

}  // namespace ptxbench::expr
