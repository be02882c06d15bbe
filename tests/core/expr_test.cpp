#include "core/expr.hpp"

#include "support/catch.hpp"

#include <cmath>
#include <map>

using namespace ptxbench;
using expr::Expression;
using expr::Number;

namespace {

expr::Environment environment() {
  static const std::map<std::string, Number, std::less<>> values{{"M", std::int64_t{8192}},
                                                                 {"N", std::int64_t{7168}},
                                                                 {"zero", std::int64_t{0}},
                                                                 {"BIG", std::int64_t{9223372036854775807}},
                                                                 {"scale", 0.5},
                                                                 {"flag", true}};
  expr::Environment out;
  out.lookup = [](std::string_view name) -> Result<Number> {
    const auto at = values.find(name);
    if (at == values.end())
      return make_error(ErrorCode::invalid_argument, "unknown name `" + std::string(name) + "`", {},
                        "unknown_name");
    return at->second;
  };
  out.kernel_function = [](std::string_view function, std::string_view kernel) -> Result<Number> {
    if (kernel == "gemm" && function == "occupancy") return Number(std::int64_t{2});
    if (kernel == "gemm<plan::BM, (1 > 2)>") return Number(std::int64_t{66});
    return make_error(ErrorCode::invalid_argument, "no step is named " + std::string(kernel));
  };
  return out;
}

Expression parsed(const std::string& text) {
  auto e = Expression::parse(text, {"launch.json", "/steps/0/grid", 0, 0});
  INFO(text);
  if (!e) FAIL(e.error().to_string());
  return *e;
}

std::string value_of(const std::string& text) {
  const auto v = parsed(text).evaluate(environment());
  return v ? expr::to_string(*v) : "error: " + v.error().message;
}

}  // namespace

TEST_CASE("expressions have C's precedence and 64-bit integers") {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"1", "1"},
      {"-1", "-1"},
      {"1+2*3", "7"},
      {"(1+2)*3", "9"},
      {"10-3-4", "3"},
      {"100/7/2", "7"},
      {"7/2", "3"},
      {"-7/2", "-3"},
      {"-7%3", "-1"},
      {"7%3*2", "2"},
      {"1e3", "1000.0"},
      {"2.5", "2.5"},
      {"5 / 2.0", "2.5"},
      {".5", "0.5"},
      {"2.", "2.0"},
      {"1 < 2", "true"},
      {"2 <= 1", "false"},
      {"1 == 1.0", "true"},
      {"1 != 1", "false"},
      {"1 < 2 == true", "true"},
      {"1 || 0 && 0", "true"},
      {"!0", "true"},
      {"!flag", "false"},
      {"!!5", "true"},
      {"1 ? 2 : 3", "2"},
      {"0 ? 2 : 1 ? 4 : 5", "4"},
      {"flag ? M : N", "8192"},
      {"- -3", "3"},
      {"-(3)", "-3"},
      {"2--3", "5"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"9223372036854775807", "9223372036854775807"},
      {"9223372036854775807 < 9223372036854775808.0", "true"},
      {"9007199254740993 == 9007199254740992.0", "false"},
      {"min(3, 1, 2)", "1"},
      {"max(3, 1.5)", "3.0"},
      {"min(1,2)", "1"},
      {"ceil_div(M, 128)", "64"},
      {"ceil_div(70, 128)", "1"},
      {"ceil_div(0, 128)", "0"},
      {"ceil_div(-3, 2)", "-1"},
      {"round_up(70, 64)", "128"},
      {"round_up(-70, 64)", "-64"},
      {"round_down(70, 64)", "64"},
      {"round_down(-70, 64)", "-128"},
      {"sqrt(16)", "4.0"},
      {"rsqrt(4)", "0.5"},
      {"exp(0)", "1.0"},
      {"exp2(10)", "1024.0"},
      {"ln(1)", "0.0"},
      {"log2(8)", "3.0"},
      {"scale * 2", "1.0"},
      {"occupancy(gemm)", "2"},
      {"2 * max_active_clusters( gemm<plan::BM, (1 > 2)> ) + 1", "133"},
      {" \t\nM\r ", "8192"},
      {"true", "true"},
      {"false == flag", "false"},
      {"-scale", "-0.5"},
      {"1E2", "100.0"},
      {"1e-400", "0.0"}};
  for (const auto& [text, expected] : rows) {
    INFO(text);
    CHECK(value_of(text) == expected);
  }
}

TEST_CASE("what is not needed is not evaluated") {
  CHECK(value_of("zero != 0 && M / zero > 1") == "false");
  CHECK(value_of("zero == 0 || M / zero > 1") == "true");
  CHECK(value_of("zero == 0 ? 1 : M / zero") == "1");
  CHECK(value_of("true || nobody") == "true");
}

TEST_CASE("bad text is an error with its column") {
  const std::vector<std::tuple<std::string, int, std::string>> rows{
      {"", 1, "expression ends"},
      {"  ", 3, "expression ends"},
      {"M +", 4, "expression ends"},
      {"M +* 2", 4, "expected a value"},
      {"(M", 3, "`)`"},
      {"M)", 2, "an operator or the end"},
      {"M N", 3, "an operator or the end"},
      {"1 ? 2", 6, "`:`"},
      {"0x10", 2, "is no number"},
      {"1.5f", 4, "is no number"},
      {"1.2.3", 4, "is no number"},
      {"2e", 3, "exponent"},
      {"9223372036854775808", 1, "does not fit 64 bits"},
      {"1e999", 1, "too large"},
      {"foo(1)", 1, "is no function"},
      {"min(1)", 1, "takes 2 or more arguments, not 1"},
      {"sqrt(1, 2)", 1, "takes 1 argument, not 2"},
      {"ceil_div()", 1, "not 0"},
      {"min(1,)", 7, "expected a value"},
      {"min(1 2)", 7, "`,` or `)`"},
      {"occupancy()", 11, "name of a kernel step"},
      {"occupancy(gemm", 15, "`)`"},
      {"M = 2", 3, "an operator or the end"},
      {"M & 2", 3, "an operator or the end"},
      {"+1", 1, "expected a value"},
      {"\xc3\xa9", 1, "byte 0xc3"},
      {"M # N", 3, "'#'"},
      {"a.b", 2, "an operator"}};
  for (const auto& [text, column, message] : rows) {
    INFO(text);
    const auto e = Expression::parse(text, {"launch.json", "/require/0", 0, 0});
    REQUIRE_FALSE(e);
    CHECK(e.error().code == ErrorCode::parse);
    CHECK(e.error().rule == "expression");
    CHECK(e.error().where.file == "launch.json");
    CHECK(e.error().where.pointer == "/require/0");
    CHECK(e.error().where.column == column);
    CHECK(e.error().message.find(message) != std::string::npos);
    INFO(e.error().message);
  }
}

TEST_CASE("evaluation errors name the values") {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"M / zero", "division by zero: 8192 / 0 (in `M / zero`, where M = 8192, zero = 0)"},
      {"M % zero", "division by zero"},
      {"M / 0.0", "division by zero"},
      {"ceil_div(M, zero)", "division by zero: ceil_div(8192, 0)"},
      {"rsqrt(0)", "division by zero"},
      {"BIG + 1", "integer overflow: 9223372036854775807 + 1"},
      {"BIG * 2", "integer overflow"},
      {"-BIG - 2", "integer overflow"},
      {"-9223372036854775808 / -1", "integer overflow"},
      {"-9223372036854775808 % -1", "integer overflow"},
      {"-(-BIG - 1)", "integer overflow"},
      {"round_up(BIG, 2)", "integer overflow"},
      {"round_down(-BIG - 1, 3)", "integer overflow"},
      {"1e308 * 10", "not a finite number"},
      {"exp(1000)", "not a finite number"},
      {"sqrt(-1)", "negative"},
      {"ln(0)", "not positive"},
      {"log2(-1)", "not positive"},
      {"flag + 1", "takes numbers, not the boolean true"},
      {"-flag", "takes numbers"},
      {"1 < 2 < 3", "do not chain"},
      {"flag < true", "one is a boolean"},
      {"1.5 % 2", "takes integers"},
      {"ceil_div(1.5, 2)", "must be integers"},
      {"ceil_div(1, -2)", "must be positive"},
      {"min(flag, 1)", "not the boolean"},
      {"nobody + M", "unknown name `nobody`"},
      {"occupancy(other)", "no step is named other"}};
  for (const auto& [text, message] : rows) {
    INFO(text);
    const auto v = parsed(text).evaluate(environment());
    REQUIRE_FALSE(v);
    INFO(v.error().message);
    CHECK(v.error().code == ErrorCode::invalid_argument);
    CHECK(v.error().where.pointer == "/steps/0/grid");
    CHECK_FALSE(v.error().rule.empty());
    CHECK(v.error().message.find(message) != std::string::npos);
  }
  CHECK(parsed("nobody").evaluate(environment()).error().rule == "unknown_name");
  CHECK(parsed("nobody").evaluate({}).error().rule == "unknown_name");
}

TEST_CASE("kernel functions are an error where nothing is compiled yet") {
  expr::Environment before = environment();
  before.kernel_function = nullptr;
  const auto v = parsed("2 * occupancy(gemm)").evaluate(before);
  REQUIRE_FALSE(v);
  CHECK(v.error().message.find("known only after compiling") != std::string::npos);
}

TEST_CASE("typed evaluation keeps kinds apart") {
  CHECK(*parsed("M").evaluate_int(environment()) == 8192);
  CHECK(parsed("1e3").evaluate_int(environment()).error().message.find("must be an integer") !=
        std::string::npos);
  CHECK_FALSE(parsed("flag").evaluate_int(environment()));
  CHECK(*parsed("M").evaluate_double(environment()) == 8192.0);
  CHECK_FALSE(parsed("flag").evaluate_double(environment()));
  CHECK(*parsed("M > 1").evaluate_bool(environment()));
  CHECK_FALSE(*parsed("0.0").evaluate_bool(environment()));
}

TEST_CASE("depth and length are bounded") {
  CHECK_FALSE(Expression::parse(std::string(1000, '(') + "1" + std::string(1000, ')'), {}));
  CHECK_FALSE(Expression::parse(std::string(1000, '-') + "1", {}));
  CHECK_FALSE(Expression::parse(std::string(1000, '!') + "1", {}));
  std::string chain = "1", choice;
  for (int i = 0; i < 1000; ++i) chain += "+1";
  for (int i = 0; i < 500; ++i) choice += "1?1:";
  CHECK_FALSE(Expression::parse(chain, {}));
  CHECK_FALSE(Expression::parse(choice + "1", {}));
  CHECK_FALSE(Expression::parse(std::string(5000, ' ') + "1", {}));
  CHECK(value_of(std::string(100, '(') + "1" + std::string(100, ')')) == "1");
}

TEST_CASE("names and kernels in order of first use") {
  const Expression e = parsed("N*min(M, N) + occupancy(b) + max_active_clusters(a<1, 2>) + occupancy(b)");
  CHECK(e.names() == std::vector<std::string>{"N", "M"});
  CHECK(e.kernels() == std::vector<std::string>{"b", "a<1, 2>"});
}

TEST_CASE("numbers print so that they read back as the same kind") {
  CHECK(expr::to_string(0.1) == "0.1");
  CHECK(expr::to_string(2.0) == "2.0");
  CHECK(expr::to_string(1e30) == "1e+30");
  CHECK(expr::to_string(Number(std::int64_t{-5})) == "-5");
  CHECK(expr::to_string(Number(true)) == "true");
  CHECK(*Expression::constant(0.25).evaluate_double({}) == 0.25);
  CHECK(Expression::constant(std::int64_t{7}).text() == "7");
}
