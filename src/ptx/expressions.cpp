#include "ptx/expressions.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <string>

namespace ptxbench::ptx {
namespace {

constexpr int kMaxDepth = 100;  // of parentheses and unary operators: the parser recurses on them
constexpr int kLowest = 0, kSum = 9, kProduct = 10, kUnary = 11;

struct Operator {
  std::string_view text;
  int precedence;
};
constexpr std::array<Operator, 19> kOperators{{{"?", 0},
                                               {"||", 1},
                                               {"&&", 2},
                                               {"|", 3},
                                               {"^", 4},
                                               {"&", 5},
                                               {"==", 6},
                                               {"!=", 6},
                                               {"<", 7},
                                               {"<=", 7},
                                               {">", 7},
                                               {">=", 7},
                                               {"<<", 8},
                                               {">>", 8},
                                               {"+", 9},
                                               {"-", 9},
                                               {"*", 10},
                                               {"/", 10},
                                               {"%", 10}}};

std::int64_t as_signed(std::uint64_t bits) noexcept { return static_cast<std::int64_t>(bits); }

Constant integer(std::uint64_t bits, bool is_unsigned = false) {
  return {Constant::Kind::integer, bits, is_unsigned};
}
Constant floating(double value) { return {Constant::Kind::f64, std::bit_cast<std::uint64_t>(value), false}; }

Constant literal(const Token& token) {
  std::string_view text = token.text;
  const auto malformed = [&](std::string_view rule) {
    fail(token.where, "the number " + shown(token) + " is malformed: " + std::string(rule));
  };
  const char kind = text.size() > 1 && text[0] == '0' ? static_cast<char>(text[1] | 0x20) : '\0';
  if (kind == 'f' || kind == 'd') {
    const std::size_t digits = kind == 'f' ? 8 : 16;
    std::uint64_t bits = 0;
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
    if (text.size() != digits + 2 || error != std::errc() || end != text.data() + text.size())
      malformed(kind == 'f' ? "0f takes eight hexadecimal digits" : "0d takes sixteen hexadecimal digits");
    return {kind == 'f' ? Constant::Kind::f32 : Constant::Kind::f64, bits, false};
  }
  if (kind != 'x' && kind != 'b' && text.find_first_of(".eE") != std::string_view::npos) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range) malformed("a double has no such value");
    if (error != std::errc() || end != text.data() + text.size()) malformed("it is no decimal number");
    return floating(value);
  }
  bool is_unsigned = false;
  if (text.back() == 'U') {
    is_unsigned = true;
    text.remove_suffix(1);
  }
  int base = 10;
  if (kind == 'x' || kind == 'b') {
    base = kind == 'x' ? 16 : 2;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text[0] == '0') {
    base = 8;
    text.remove_prefix(1);
  }
  std::uint64_t bits = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits, base);
  if (error == std::errc::result_out_of_range) malformed("it does not fit in 64 bits");
  if (error != std::errc() || end != text.data() + text.size())
    malformed(base == 16  ? "0x takes hexadecimal digits"
              : base == 2 ? "0b takes binary digits"
              : base == 8 ? "a number that begins with 0 is octal"
                          : "it is no decimal number");
  // A literal is signed where it fits.
  return integer(bits, is_unsigned || as_signed(bits) < 0);
}

Constant parse(Lexer& lexer, int least, int depth);

void forbid_single(const Token& op, const Constant& value) {
  if (value.kind == Constant::Kind::f32) fail(op.where, "a number 0f... stands alone, not in an expression");
}

Constant cast(Lexer& lexer, int depth) {
  const Token type = lexer.take();
  const bool is_unsigned = type.is(".u64");
  if (!is_unsigned && !type.is(".s64"))
    fail(type.where, "a constant is cast to (.s64) or (.u64), not to " + shown(type));
  lexer.expect(")", "behind the type of a cast");
  Constant value = parse(lexer, kUnary, depth);
  if (value.kind != Constant::Kind::integer) fail(type.where, "a cast takes an integer");
  value.is_unsigned = is_unsigned;
  return value;
}

Constant primary(Lexer& lexer, int depth) {
  if (depth > kMaxDepth)
    fail(lexer.peek().where, "constant expressions nest at most " + std::to_string(kMaxDepth) + " deep");
  const Token& next = lexer.peek();
  if (next.kind == Token::Kind::dotted && next.text[1] >= '0' && next.text[1] <= '9') lexer.split_as_number();
  if (next.kind == Token::Kind::number) return literal(lexer.take());
  if (lexer.accept("WARP_SZ")) return integer(32);
  if (lexer.accept("(")) {
    if (lexer.at(Token::Kind::dotted) && lexer.peek().text.size() == 4 &&
        (lexer.at(".s64") || lexer.at(".u64")))
      return cast(lexer, depth + 1);
    const Constant inner = parse(lexer, kLowest, depth + 1);
    lexer.expect(")", "at the end of a constant expression");
    return inner;
  }
  const Token op = lexer.peek();
  if (op.is("+") || op.is("-") || op.is("~") || op.is("!")) {
    lexer.take();
    Constant value = parse(lexer, kUnary, depth + 1);
    forbid_single(op, value);
    const bool is_integer = value.kind == Constant::Kind::integer;
    if (op.is("-")) {
      if (is_integer)
        value.bits = 0 - value.bits;
      else
        value.bits ^= std::uint64_t{1} << 63;
    } else if (op.is("~")) {
      if (!is_integer) fail(op.where, "the operator ~ takes an integer");
      value.bits = ~value.bits;
    } else if (op.is("!")) {
      value = integer(is_integer ? value.bits == 0 : value.as_double() == 0);
    }
    return value;
  }
  fail(op.where, "expected a constant, not " + shown(op));
}

Constant float_operation(const Token& op, const Constant& a, const Constant& b) {
  const double x = a.as_double(), y = b.as_double();
  if (op.is("+")) return floating(x + y);
  if (op.is("-")) return floating(x - y);
  if (op.is("*")) return floating(x * y);
  if (op.is("/")) return floating(x / y);
  if (op.is("<")) return integer(x < y);
  if (op.is("<=")) return integer(x <= y);
  if (op.is(">")) return integer(x > y);
  if (op.is(">=")) return integer(x >= y);
  if (op.is("==")) return integer(x == y);
  if (op.is("!=")) return integer(x != y);
  if (op.is("&&")) return integer(x != 0 && y != 0);
  if (op.is("||")) return integer(x != 0 || y != 0);
  fail(op.where, "the operator " + std::string(op.text) + " takes integers");
}

Constant integer_operation(const Token& op, const Constant& left, const Constant& right) {
  const std::uint64_t a = left.bits, b = right.bits;
  const bool is_unsigned = left.is_unsigned || right.is_unsigned;
  const std::int64_t x = as_signed(a), y = as_signed(b);
  if (op.is("+")) return integer(a + b, is_unsigned);
  if (op.is("-")) return integer(a - b, is_unsigned);
  if (op.is("*")) return integer(a * b, is_unsigned);
  if (op.is("/") || op.is("%")) {
    const bool divide = op.is("/");
    if (b == 0) fail(op.where, "a constant expression divides by zero");
    if (is_unsigned) return integer(divide ? a / b : a % b, true);
    if (y == -1) return integer(divide ? 0 - a : 0);  // the smallest integer / -1 wraps around
    return integer(static_cast<std::uint64_t>(divide ? x / y : x % y));
  }
  if (op.is("<<")) return integer(b < 64 ? a << b : 0, left.is_unsigned);
  if (op.is(">>")) {
    if (left.is_unsigned) return integer(b < 64 ? a >> b : 0, true);
    return integer(static_cast<std::uint64_t>(x >> (b < 64 ? b : 63)));
  }
  if (op.is("&")) return integer(a & b, is_unsigned);
  if (op.is("|")) return integer(a | b, is_unsigned);
  if (op.is("^")) return integer(a ^ b, is_unsigned);
  if (op.is("&&")) return integer(a != 0 && b != 0);
  if (op.is("||")) return integer(a != 0 || b != 0);
  if (op.is("==")) return integer(a == b);
  if (op.is("!=")) return integer(a != b);
  if (op.is("<")) return integer(is_unsigned ? a < b : x < y);
  if (op.is("<=")) return integer(is_unsigned ? a <= b : x <= y);
  if (op.is(">")) return integer(is_unsigned ? a > b : x > y);
  return integer(is_unsigned ? a >= b : x >= y);
}

Constant choice(Lexer& lexer, const Constant& condition, int depth) {
  const Constant yes = parse(lexer, kLowest, depth + 1);
  lexer.expect(":", "between the two values of ?:");
  const Constant no = parse(lexer, kLowest, depth + 1);
  const bool taken =
      condition.kind == Constant::Kind::integer ? condition.bits != 0 : condition.as_double() != 0;
  return taken ? yes : no;
}

Constant parse(Lexer& lexer, int least, int depth) {
  Constant left = primary(lexer, depth);
  while (true) {
    const Token& next = lexer.peek();
    if (next.kind == Token::Kind::identifier && next.text.size() > 1 && next.text[0] == '%' &&
        least <= kProduct)
      lexer.split_as_operator();
    if (next.kind != Token::Kind::punctuation) return left;
    int precedence = -1;
    for (const Operator& op : kOperators)
      if (op.text == next.text) precedence = op.precedence;
    if (precedence < least) return left;
    const Token op = lexer.take();
    if (op.is("?")) {
      left = choice(lexer, left, depth);
      continue;
    }
    const Constant right = parse(lexer, precedence + 1, depth + 1);
    forbid_single(op, left);
    forbid_single(op, right);
    const bool integers = left.kind == Constant::Kind::integer && right.kind == Constant::Kind::integer;
    left = integers ? integer_operation(op, left, right) : float_operation(op, left, right);
  }
}

}  // namespace

double Constant::as_double() const noexcept {
  if (kind == Kind::f32) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  if (kind == Kind::f64) return std::bit_cast<double>(bits);
  return is_unsigned ? static_cast<double>(bits) : static_cast<double>(as_signed(bits));
}

bool starts_constant(const Lexer& lexer) noexcept {
  const Token& next = lexer.peek();
  switch (next.kind) {
    case Token::Kind::number:
      return true;
    case Token::Kind::dotted:
      return next.text[1] >= '0' && next.text[1] <= '9';
    case Token::Kind::identifier:
      return next.text == "WARP_SZ";
    case Token::Kind::punctuation:
      return next.text == "(" || next.text == "+" || next.text == "-" || next.text == "~" || next.text == "!";
    default:
      return false;
  }
}

Constant parse_constant(Lexer& lexer) { return parse(lexer, kLowest, 0); }
Constant parse_sum(Lexer& lexer) { return parse(lexer, kSum, 0); }

std::uint64_t parse_integer(Lexer& lexer, std::uint64_t least, std::uint64_t most, std::string_view what) {
  const Token token = lexer.expect(Token::Kind::number, "a number", "for " + std::string(what));
  const Constant value = literal(token);
  if (value.kind != Constant::Kind::integer || value.bits < least || value.bits > most)
    fail(token.where, std::string(what) + " is an integer from " + std::to_string(least) + " to " +
                          std::to_string(most) + ", not " + shown(token));
  return value.bits;
}

}  // namespace ptxbench::ptx
