// Constants, as operands of mov.
#include "ptx_support.hpp"

#include <bit>

using namespace ptxbench;
using namespace ptxbench::testing;
using Kind = ptx::Operand::Kind;

namespace {

ptx::Operand constant(const std::string& text) {
  return parse_body("mov.b64 %d0, " + text + ";").body.at(0).operands.at(1);
}
std::int64_t integer(const std::string& text) {
  const ptx::Operand operand = constant(text);
  CHECK(operand.kind == Kind::integer);
  return static_cast<std::int64_t>(operand.bits);
}
double f64(const std::string& text) {
  const ptx::Operand operand = constant(text);
  CHECK(operand.kind == Kind::f64);
  return std::bit_cast<double>(operand.bits);
}

}  // namespace

TEST_CASE("integer literals of every base") {
  CHECK(integer("0") == 0);
  CHECK(integer("42") == 42);
  CHECK(integer("42U") == 42);
  CHECK(integer("017") == 15);
  CHECK(integer("00") == 0);
  CHECK(integer("0x1F") == 31);
  CHECK(integer("0XffU") == 255);
  CHECK(integer("0b101") == 5);
  CHECK(integer("0B11U") == 3);
  CHECK(integer("-1") == -1);
  CHECK(integer("18446744073709551615") == -1);
  CHECK(integer("0xFFFFFFFFFFFFFFFF") == -1);
  CHECK(integer("-9223372036854775808") == INT64_MIN);
}

TEST_CASE("floating-point literals") {
  const ptx::Operand single = constant("0f3F800000");
  CHECK(single.kind == Kind::f32);
  CHECK(single.bits == 0x3F800000);
  CHECK(constant("(0F3f800000)").kind == Kind::f32);
  CHECK(f64("0d3FF0000000000000") == 1.0);
  CHECK(f64("0D3ff8000000000000") == 1.5);
  CHECK(f64("-0d3FF0000000000000") == -1.0);
  CHECK(f64("1.5") == 1.5);
  CHECK(f64("-1.5") == -1.5);
  CHECK(f64(".5") == 0.5);
  CHECK(f64("1.") == 1.0);
  CHECK(f64("1e3") == 1000.0);
  CHECK(f64("2.5e-1") == 0.25);
  CHECK(f64("1.5+2.25*2.0") == 6.0);
  CHECK(f64("1.0/4.0-.25") == 0.0);
  CHECK(integer("1.5 < 2.0") == 1);
}

TEST_CASE("constant expressions have C's precedence") {
  CHECK(integer("(4+2)*3") == 18);
  CHECK(integer("4+2*3") == 10);
  CHECK(integer("20-4-2") == 14);
  CHECK(integer("7/2") == 3);
  CHECK(integer("7 % 4") == 3);
  CHECK(integer("7%4") == 3);
  CHECK(integer("-7/2") == -3);
  CHECK(integer("-7 % 2") == -1);
  CHECK(integer("1<<4|1") == 17);
  CHECK(integer("6 & 3 ^ 1") == 3);
  CHECK(integer("~0") == -1);
  CHECK(integer("!0") == 1);
  CHECK(integer("!7") == 0);
  CHECK(integer("1 ? 2 : 3") == 2);
  CHECK(integer("0 ? 2 : 1 ? 4 : 5") == 4);
  CHECK(integer("1 == 1 && 2 != 2 || 3 >= 3") == 1);
  CHECK(integer("WARP_SZ*2") == 64);
  CHECK(integer("WARP_SZ-1") == 31);
  CHECK(integer("(WARP_SZ)") == 32);
  CHECK(integer("(.s64)0x8000000000000000 / -1") == INT64_MIN);
  CHECK(integer("-8 >> 1") == -4);
  CHECK(integer("1 << 64") == 0);
  CHECK(integer("-1 >> 70") == -1);
}

TEST_CASE("signed and unsigned") {
  CHECK(integer("-1 < 0") == 1);
  CHECK(integer("-1 < 0U") == 0);
  CHECK(integer("(.u64)-1 > 1") == 1);
  CHECK(integer("(.s64)0xFFFFFFFFFFFFFFFF < 1") == 1);
  CHECK(integer("0xFFFFFFFFFFFFFFFF >> 60") == 15);
  CHECK(integer("0xFFFFFFFFFFFFFFFF / 3") == 0x5555555555555555);
}

TEST_CASE("constants that are none") {
  const auto error = [](const std::string& text) { return body_error("mov.b64 %d0, " + text + ";"); };
  CHECK(error("12abc") == "6:14: the number '12abc' is malformed: it is no decimal number");
  CHECK(error("089") == "6:14: the number '089' is malformed: a number that begins with 0 is octal");
  CHECK(error("0xG") == "6:14: the number '0xG' is malformed: 0x takes hexadecimal digits");
  CHECK(error("0b12") == "6:14: the number '0b12' is malformed: 0b takes binary digits");
  CHECK(error("0f3F80") == "6:14: the number '0f3F80' is malformed: 0f takes eight hexadecimal digits");
  CHECK(error("0d3F80") == "6:14: the number '0d3F80' is malformed: 0d takes sixteen hexadecimal digits");
  CHECK(error("18446744073709551616") ==
        "6:14: the number '18446744073709551616' is malformed: it does not fit in 64 bits");
  CHECK(error("1e999") == "6:14: the number '1e999' is malformed: a double has no such value");
  CHECK(error("4/0") == "6:15: a constant expression divides by zero");
  CHECK(error("4 % 0") == "6:16: a constant expression divides by zero");
  CHECK(error("-0f3F800000") == "6:14: a number 0f... stands alone, not in an expression");
  CHECK(error("0f3F800000+1.0") == "6:24: a number 0f... stands alone, not in an expression");
  CHECK(error("~1.5") == "6:14: the operator ~ takes an integer");
  CHECK(error("1.5|2") == "6:17: the operator | takes integers");
  CHECK(error("(4") == "6:16: expected ')' at the end of a constant expression, not ';'");
  CHECK(error("1 ? 2") == "6:19: expected ':' between the two values of ?:, not ';'");
  CHECK(error("(.b32)4") == "6:15: expected a constant, not '.b32'");
  CHECK(error("(.s64)1.5") == "6:15: a cast takes an integer");
  CHECK(error("4+") == "6:16: expected a constant, not ';'");
  CHECK(error(std::string(101, '(') + "1" + std::string(101, ')')) ==
        "6:115: constant expressions nest at most 100 deep");
  CHECK(error(std::string(100000, '-') + "1") == "6:115: constant expressions nest at most 100 deep");
  CHECK(error(std::string(100000, '~')) == "6:115: constant expressions nest at most 100 deep");
}
