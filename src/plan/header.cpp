#include "plan/header.hpp"

#include "plan/numbers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ptxbench::plan {

std::string launch_plan_header(const std::vector<Constant>& constants) {
  std::string out =
      "// Made by ptxbench from the `constants` of launch.json.\n"
      "#ifndef PTXBENCH_LAUNCH_PLAN_H\n#define PTXBENCH_LAUNCH_PLAN_H\nnamespace plan {\n";
  for (const Constant& constant : constants) {
    std::string type, value = expr::to_string(constant.value);
    if (const auto* integer = std::get_if<std::int64_t>(&constant.value)) {
      const bool small = *integer >= std::numeric_limits<std::int32_t>::min() &&
                         *integer <= std::numeric_limits<std::int32_t>::max();
      type = small ? "int" : "long long";
      // The most negative numbers have no literal: -2147483648 is minus a number that does not fit.
      if (*integer == std::numeric_limits<std::int32_t>::min())
        value = "-2147483647 - 1";
      else if (*integer == std::numeric_limits<std::int64_t>::min())
        value = "-9223372036854775807LL - 1";
      else if (!small)
        value += "LL";
    } else if (const auto* number = std::get_if<double>(&constant.value)) {
      type = "float";
      value = float_literal(*number);
    } else {
      type = "bool";
    }
    out += "constexpr " + type + " " + constant.name + " = " + value + ";\n";
  }
  return out + "}  // namespace plan\n#endif\n";
}

Result<std::vector<std::pair<std::string, std::string>>> macro_texts(const LaunchPlan::Impl& plan,
                                                                     const expr::Environment& environment) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const Define& define : plan.defines) {
    if (!define.value) {
      out.emplace_back(define.name, define.token);
      continue;
    }
    PTXBENCH_TRY_ASSIGN(const Number value, define.value->evaluate(environment));
    const auto* number = std::get_if<double>(&value);
    if (number != nullptr && !std::isfinite(static_cast<float>(*number)))
      return plan.error(define.pointer, expr::to_string(value) + " does not fit a float literal",
                        kExpression);
    out.emplace_back(define.name, number != nullptr ? float_literal(*number) : expr::to_string(value));
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace ptxbench::plan
