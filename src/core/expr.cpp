#include "core/expr.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace ptxbench::expr {
namespace {

// Both bounds keep parser and evaluator from running out of stack on hostile text.
constexpr std::size_t kMaxText = 4096;
constexpr int kMaxDepth = 128;

enum class Op : std::uint8_t {
  literal,
  name,
  negate,
  logical_not,
  add,
  subtract,
  multiply,
  divide,
  modulo,
  less,
  less_equal,
  greater,
  greater_equal,
  equal,
  not_equal,
  logical_and,
  logical_or,
  conditional,
  function,
  kernel_function
};

enum class Function : std::uint8_t {
  min,
  max,
  ceil_div,
  round_up,
  round_down,
  sqrt,
  rsqrt,
  exp,
  exp2,
  ln,
  log2
};

struct FunctionRow {
  std::string_view name;
  Function function;
  std::size_t least, most;  // number of arguments
};
constexpr std::array<FunctionRow, 11> kFunctions{{{"min", Function::min, 2, 64},
                                                  {"max", Function::max, 2, 64},
                                                  {"ceil_div", Function::ceil_div, 2, 2},
                                                  {"round_up", Function::round_up, 2, 2},
                                                  {"round_down", Function::round_down, 2, 2},
                                                  {"sqrt", Function::sqrt, 1, 1},
                                                  {"rsqrt", Function::rsqrt, 1, 1},
                                                  {"exp", Function::exp, 1, 1},
                                                  {"exp2", Function::exp2, 1, 1},
                                                  {"ln", Function::ln, 1, 1},
                                                  {"log2", Function::log2, 1, 1}}};

bool is_kernel_function(std::string_view name) {
  return name == "occupancy" || name == "max_active_clusters";
}

struct BinaryRow {
  std::string_view text;
  Op op;
  int precedence;  // higher binds tighter
};
// Longer spellings first, so that "<=" is not read as "<".
constexpr std::array<BinaryRow, 13> kBinary{{{"||", Op::logical_or, 1},
                                             {"&&", Op::logical_and, 2},
                                             {"==", Op::equal, 3},
                                             {"!=", Op::not_equal, 3},
                                             {"<=", Op::less_equal, 4},
                                             {">=", Op::greater_equal, 4},
                                             {"<", Op::less, 4},
                                             {">", Op::greater, 4},
                                             {"+", Op::add, 5},
                                             {"-", Op::subtract, 5},
                                             {"*", Op::multiply, 6},
                                             {"/", Op::divide, 6},
                                             {"%", Op::modulo, 6}}};

std::string_view op_text(Op op) {
  for (const BinaryRow& row : kBinary)
    if (row.op == op) return row.text;
  return op == Op::negate ? "-" : "!";
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name(char c) { return is_name_start(c) || is_digit(c); }

std::string quoted(char c) {
  if (c >= 0x20 && c < 0x7f) return std::string("'") + c + "'";
  static constexpr char kHex[] = "0123456789abcdef";
  const auto u = static_cast<unsigned char>(c);
  return std::string("byte 0x") + kHex[u >> 4] + kHex[u & 15];
}

std::string_view kind_name(const Number& v) {
  return v.index() == 0 ? "an integer" : v.index() == 1 ? "a float" : "a boolean";
}

Error bad(std::string message) {
  return make_error(ErrorCode::invalid_argument, std::move(message), {}, "expression");
}

double as_double(const Number& v) {
  return v.index() == 0 ? static_cast<double>(std::get<0>(v)) : std::get<1>(v);
}

Result<Number> finite(double v, const std::string& what) {
  if (!std::isfinite(v)) return bad(what + " is not a finite number");
  return Number(v);
}

Error overflow(const std::string& what) { return bad("integer overflow: " + what + " does not fit 64 bits"); }

Result<Number> arithmetic(Op op, const Number& a, const Number& b) {
  const std::string what =
      to_string(a) + " " + std::string(op_text(op)) + " " + to_string(b);  // also for messages
  for (const Number* v : {&a, &b})
    if (v->index() == 2)
      return bad("`" + std::string(op_text(op)) + "` takes numbers, not the boolean " + to_string(*v) +
                 " (write `condition ? 1 : 0`)");
  if (a.index() == 0 && b.index() == 0) {
    const std::int64_t x = std::get<0>(a), y = std::get<0>(b);
    std::int64_t out = 0;
    switch (op) {
      case Op::add:
        if (__builtin_add_overflow(x, y, &out)) return overflow(what);
        return Number(out);
      case Op::subtract:
        if (__builtin_sub_overflow(x, y, &out)) return overflow(what);
        return Number(out);
      case Op::multiply:
        if (__builtin_mul_overflow(x, y, &out)) return overflow(what);
        return Number(out);
      default:
        if (y == 0) return bad("division by zero: " + what);
        if (x == std::numeric_limits<std::int64_t>::min() && y == -1) return overflow(what);
        return Number(op == Op::divide ? x / y : x % y);
    }
  }
  const double x = as_double(a), y = as_double(b);
  switch (op) {
    case Op::add:
      return finite(x + y, what);
    case Op::subtract:
      return finite(x - y, what);
    case Op::multiply:
      return finite(x * y, what);
    case Op::divide:
      if (y == 0) return bad("division by zero: " + what);
      return finite(x / y, what);
    default:
      return bad("`%` takes integers: " + what);
  }
}

// Exact also for integers that a double cannot hold: long double has at least 64 bits of significand on the
// platforms we build for.
long double as_wide(const Number& v) {
  return v.index() == 0 ? static_cast<long double>(std::get<0>(v)) : static_cast<long double>(std::get<1>(v));
}
bool less(const Number& a, const Number& b) {
  if (a.index() == 0 && b.index() == 0) return std::get<0>(a) < std::get<0>(b);
  return as_wide(a) < as_wide(b);
}

Result<Number> compare(Op op, const Number& a, const Number& b) {
  const bool booleans = a.index() == 2 && b.index() == 2;
  if (booleans && (op == Op::equal || op == Op::not_equal))
    return Number((std::get<2>(a) == std::get<2>(b)) == (op == Op::equal));
  if (a.index() == 2 || b.index() == 2)
    return bad("`" + std::string(op_text(op)) + "` cannot compare " + to_string(a) + " with " + to_string(b) +
               ": one is a boolean" +
               (booleans ? "" : " (comparisons do not chain: write `a < b && b < c`)"));
  switch (op) {
    case Op::less:
      return Number(less(a, b));
    case Op::less_equal:
      return Number(!less(b, a));
    case Op::greater:
      return Number(less(b, a));
    case Op::greater_equal:
      return Number(!less(a, b));
    case Op::equal:
      return Number(!less(a, b) && !less(b, a));
    default:
      return Number(less(a, b) || less(b, a));
  }
}

Result<Number> integer_function(const FunctionRow& row, const std::vector<Number>& args) {
  const std::string what = std::string(row.name) + "(" + to_string(args[0]) + ", " + to_string(args[1]) + ")";
  if (args[0].index() != 0 || args[1].index() != 0) return bad(what + ": both arguments must be integers");
  const std::int64_t x = std::get<0>(args[0]), y = std::get<0>(args[1]);
  if (y == 0) return bad("division by zero: " + what);
  if (y < 0) return bad(what + ": the second argument must be positive");
  const std::int64_t floor = x / y - (x % y < 0 ? 1 : 0);
  const std::int64_t ceil = x / y + (x % y > 0 ? 1 : 0);
  std::int64_t out = 0;
  switch (row.function) {
    case Function::ceil_div:
      return Number(ceil);
    case Function::round_up:
      if (__builtin_mul_overflow(ceil, y, &out)) return overflow(what);
      return Number(out);
    default:
      if (__builtin_mul_overflow(floor, y, &out)) return overflow(what);
      return Number(out);
  }
}

Result<Number> call(const FunctionRow& row, const std::vector<Number>& args) {
  for (const Number& v : args)
    if (v.index() == 2)
      return bad(std::string(row.name) + "() takes numbers, not the boolean " + to_string(v));
  switch (row.function) {
    case Function::min:
    case Function::max: {
      const bool any_float =
          std::any_of(args.begin(), args.end(), [](const Number& v) { return v.index() == 1; });
      Number best = args[0];
      for (const Number& v : args)
        if (row.function == Function::min ? less(v, best) : less(best, v)) best = v;
      return any_float ? Number(as_double(best)) : best;
    }
    case Function::ceil_div:
    case Function::round_up:
    case Function::round_down:
      return integer_function(row, args);
    default:
      break;
  }
  const double x = as_double(args[0]);
  const std::string what = std::string(row.name) + "(" + to_string(args[0]) + ")";
  switch (row.function) {
    case Function::sqrt:
      if (x < 0) return bad(what + ": the argument is negative");
      return finite(std::sqrt(x), what);
    case Function::rsqrt:
      if (x < 0) return bad(what + ": the argument is negative");
      if (x == 0) return bad("division by zero: " + what);
      return finite(1.0 / std::sqrt(x), what);
    case Function::exp:
      return finite(std::exp(x), what);
    case Function::exp2:
      return finite(std::exp2(x), what);
    default:
      if (x <= 0) return bad(what + ": the argument is not positive");
      return finite(row.function == Function::ln ? std::log(x) : std::log2(x), what);
  }
}

}  // namespace

std::string to_string(const Number& value) {
  if (value.index() == 0) return std::to_string(std::get<0>(value));
  if (value.index() == 2) return std::get<2>(value) ? "true" : "false";
  const double v = std::get<1>(value);
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v < 0 ? "-Infinity" : "Infinity";
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, v).ptr;
  std::string out(text, end);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";  // it stays a float when read again
  return out;
}

bool truthy(const Number& value) {
  if (value.index() == 0) return std::get<0>(value) != 0;
  if (value.index() == 1) return std::get<1>(value) != 0;
  return std::get<2>(value);
}

struct Expression::Node {
  struct Parser;
  using Ptr = std::shared_ptr<const Node>;

  Op op = Op::literal;
  Number value = std::int64_t{0};
  std::string name;    // name; function; kernel function
  std::string kernel;  // argument of a kernel function
  const FunctionRow* function = nullptr;
  std::vector<Ptr> children;
  int depth = 1;
  int column = 0;

  Result<Number> evaluate(const Environment& environment) const;
  void collect(std::vector<std::string>& names, bool kernels) const;
};

// Precedence climbing: one C++ frame pair for each nesting level of the text.
struct Expression::Node::Parser {
  std::string_view text;
  const Location& where;
  std::size_t at = 0;
  int nesting = 0;

  Error error(std::size_t offset, std::string message) const {
    Location place = where;
    place.column = static_cast<int>(offset) + 1;
    return make_error(
        ErrorCode::parse,
        std::move(message) + " (in `" + std::string(text) + "`, column " + std::to_string(offset + 1) + ")",
        std::move(place), "expression");
  }
  void skip() {
    while (at < text.size() && is_space(text[at])) ++at;
  }
  bool take(char c) {
    skip();
    if (at >= text.size() || text[at] != c) return false;
    ++at;
    return true;
  }
  Error expected(const std::string& what) {
    skip();
    if (at >= text.size()) return error(at, "expected " + what + ", but the expression ends");
    return error(at, "expected " + what + ", not " + quoted(text[at]));
  }

  Result<Ptr> make(Node node, std::size_t offset) {
    node.column = static_cast<int>(offset) + 1;
    for (const Ptr& child : node.children) node.depth = std::max(node.depth, child->depth + 1);
    if (node.depth > kMaxDepth)
      return error(offset,
                   "the expression is nested deeper than " + std::to_string(kMaxDepth) + " operators");
    return Ptr(std::make_shared<const Node>(std::move(node)));
  }

  Result<Ptr> conditional() {
    if (++nesting > kMaxDepth)
      return error(at, "the expression is nested deeper than " + std::to_string(kMaxDepth) + " levels");
    PTXBENCH_TRY_ASSIGN(Ptr condition, binary(1));
    const std::size_t mark = (skip(), at);
    if (take('?')) {
      PTXBENCH_TRY_ASSIGN(Ptr yes, conditional());
      if (!take(':')) return expected("`:` of `?:`");
      PTXBENCH_TRY_ASSIGN(Ptr no, conditional());
      Node node;
      node.op = Op::conditional;
      node.children = {std::move(condition), std::move(yes), std::move(no)};
      PTXBENCH_TRY_ASSIGN(condition, make(std::move(node), mark));
    }
    --nesting;
    return condition;
  }

  const BinaryRow* peek_binary() {
    skip();
    for (const BinaryRow& row : kBinary)
      if (text.substr(at, row.text.size()) == row.text) return &row;
    return nullptr;
  }

  Result<Ptr> binary(int least) {
    PTXBENCH_TRY_ASSIGN(Ptr left, unary());
    for (const BinaryRow* row = peek_binary(); row != nullptr && row->precedence >= least;
         row = peek_binary()) {
      const std::size_t mark = at;
      at += row->text.size();
      PTXBENCH_TRY_ASSIGN(Ptr right, binary(row->precedence + 1));
      Node node;
      node.op = row->op;
      node.children = {std::move(left), std::move(right)};
      PTXBENCH_TRY_ASSIGN(left, make(std::move(node), mark));
    }
    return left;
  }

  Result<Ptr> unary() {
    skip();
    const std::size_t mark = at;
    if (at < text.size() && (text[at] == '-' || text[at] == '!')) {
      const bool negative = text[at] == '-';
      ++at;
      skip();
      // The sign belongs to a literal, so that -9223372036854775808 can be written.
      if (negative && at < text.size() && starts_number()) return number(true);
      if (++nesting > kMaxDepth)
        return error(mark, "the expression is nested deeper than " + std::to_string(kMaxDepth) + " levels");
      PTXBENCH_TRY_ASSIGN(Ptr operand, unary());
      --nesting;
      Node node;
      node.op = negative ? Op::negate : Op::logical_not;
      node.children = {std::move(operand)};
      return make(std::move(node), mark);
    }
    return primary();
  }

  bool starts_number() const {
    return is_digit(text[at]) || (text[at] == '.' && at + 1 < text.size() && is_digit(text[at + 1]));
  }

  Result<Ptr> number(bool negative) {
    const std::size_t mark = at;
    bool is_float = false;
    while (at < text.size() && is_digit(text[at])) ++at;
    if (at < text.size() && text[at] == '.') {
      is_float = true;
      ++at;
      while (at < text.size() && is_digit(text[at])) ++at;
    }
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
      is_float = true;
      ++at;
      if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
      if (at >= text.size() || !is_digit(text[at])) return expected("a digit of the exponent");
      while (at < text.size() && is_digit(text[at])) ++at;
    }
    const std::string token = (negative ? "-" : "") + std::string(text.substr(mark, at - mark));
    if (at < text.size() && (is_name(text[at]) || text[at] == '.'))
      return error(at, "`" + token + text[at] + "` is no number: only decimal digits, `.` and `e` are");
    Node node;
    if (is_float) {
      double v = 0;
      const auto parsed = std::from_chars(token.data(), token.data() + token.size(), v);
      if (parsed.ec == std::errc::result_out_of_range) {
        // from_chars does not tell too large from too small; a tiny number is zero.
        v = std::strtod(token.c_str(), nullptr);
        if (!std::isfinite(v)) return error(mark, "`" + token + "` is too large for a float");
      } else if (parsed.ec != std::errc() || parsed.ptr != token.data() + token.size()) {
        return error(mark, "`" + token + "` is no number");
      }
      node.value = v;
    } else {
      std::int64_t v = 0;
      const auto parsed = std::from_chars(token.data(), token.data() + token.size(), v);
      if (parsed.ec != std::errc()) return error(mark, "`" + token + "` does not fit 64 bits");
      node.value = v;
    }
    return make(std::move(node), mark);
  }

  Result<Ptr> primary() {
    skip();
    const std::size_t mark = at;
    if (at >= text.size()) return expected("a value");
    if (take('(')) {
      PTXBENCH_TRY_ASSIGN(Ptr inner, conditional());
      if (!take(')')) return expected("`)`");
      return inner;
    }
    if (starts_number()) return number(false);
    if (!is_name_start(text[at])) return expected("a value");
    while (at < text.size() && is_name(text[at])) ++at;
    const std::string_view name = text.substr(mark, at - mark);
    Node node;
    if (name == "true" || name == "false") {
      node.value = name == "true";
      return make(std::move(node), mark);
    }
    node.name = std::string(name);
    if (!take('(')) {
      node.op = Op::name;
      return make(std::move(node), mark);
    }
    if (is_kernel_function(name)) return kernel_call(std::move(node), mark);
    const auto* row = std::find_if(kFunctions.begin(), kFunctions.end(),
                                   [&](const FunctionRow& r) { return r.name == name; });
    if (row == kFunctions.end())
      return error(mark, "`" + std::string(name) +
                             "` is no function; there are min, max, ceil_div, round_up, round_down, sqrt, "
                             "rsqrt, exp, exp2, ln, log2, occupancy and max_active_clusters");
    node.op = Op::function;
    node.function = row;
    if (!take(')')) {
      do {
        PTXBENCH_TRY_ASSIGN(Ptr argument, conditional());
        node.children.push_back(std::move(argument));
      } while (take(','));
      if (!take(')')) return expected("`,` or `)`");
    }
    if (node.children.size() < row->least || node.children.size() > row->most)
      return error(mark, std::string(name) + "() takes " + std::to_string(row->least) +
                             (row->most > row->least ? " or more arguments"
                              : row->least == 1      ? " argument"
                                                     : " arguments") +
                             ", not " + std::to_string(node.children.size()));
    return make(std::move(node), mark);
  }

  // The argument is a kernel's name as the plan writes it, which may be `gemm<plan::BM, plan::BN>`: it is
  // taken as text up to the parenthesis that closes the call.
  Result<Ptr> kernel_call(Node node, std::size_t mark) {
    skip();
    const std::size_t begin = at;
    int open = 1;
    while (at < text.size()) {
      if (text[at] == '(') ++open;
      if (text[at] == ')' && --open == 0) break;
      ++at;
    }
    if (at >= text.size()) return expected("`)`");
    std::size_t end = at++;
    while (end > begin && is_space(text[end - 1])) --end;
    if (end == begin) return error(begin, node.name + "() takes the name of a kernel step");
    node.op = Op::kernel_function;
    node.kernel = std::string(text.substr(begin, end - begin));
    return make(std::move(node), mark);
  }
};

Result<Number> Expression::Node::evaluate(const Environment& environment) const {
  switch (op) {
    case Op::literal:
      return value;
    case Op::name:
      if (!environment.lookup)
        return make_error(ErrorCode::invalid_argument, "unknown name `" + name + "`", {}, "unknown_name");
      return environment.lookup(name);
    case Op::kernel_function:
      if (!environment.kernel_function)
        return bad(name + "(" + kernel +
                   ") is known only after compiling: constants, require, defines, block, cluster and "
                   "shared_bytes cannot use it");
      return environment.kernel_function(name, kernel);
    case Op::conditional: {
      PTXBENCH_TRY_ASSIGN(const Number condition, children[0]->evaluate(environment));
      return children[truthy(condition) ? 1 : 2]->evaluate(environment);
    }
    case Op::logical_and:
    case Op::logical_or: {
      PTXBENCH_TRY_ASSIGN(const Number left, children[0]->evaluate(environment));
      if (truthy(left) == (op == Op::logical_or)) return Number(truthy(left));
      PTXBENCH_TRY_ASSIGN(const Number right, children[1]->evaluate(environment));
      return Number(truthy(right));
    }
    case Op::logical_not: {
      PTXBENCH_TRY_ASSIGN(const Number operand, children[0]->evaluate(environment));
      return Number(!truthy(operand));
    }
    case Op::negate: {
      PTXBENCH_TRY_ASSIGN(const Number operand, children[0]->evaluate(environment));
      if (operand.index() == 1) return Number(-std::get<1>(operand));
      return arithmetic(Op::subtract, Number(std::int64_t{0}), operand);
    }
    case Op::function: {
      std::vector<Number> arguments;
      for (const Ptr& child : children) {
        PTXBENCH_TRY_ASSIGN(const Number argument, child->evaluate(environment));
        arguments.push_back(argument);
      }
      return call(*function, arguments);
    }
    default: {
      PTXBENCH_TRY_ASSIGN(const Number left, children[0]->evaluate(environment));
      PTXBENCH_TRY_ASSIGN(const Number right, children[1]->evaluate(environment));
      const bool comparison = op >= Op::less && op <= Op::not_equal;
      return comparison ? compare(op, left, right) : arithmetic(op, left, right);
    }
  }
}

void Expression::Node::collect(std::vector<std::string>& names, bool kernels) const {
  const std::string& word = kernels ? kernel : name;
  if (op == (kernels ? Op::kernel_function : Op::name) &&
      std::find(names.begin(), names.end(), word) == names.end())
    names.push_back(word);
  for (const Ptr& child : children) child->collect(names, kernels);
}

Result<Expression> Expression::parse(std::string_view text, const Location& where) {
  if (text.size() > kMaxText)
    return make_error(ErrorCode::parse,
                      "the expression has " + std::to_string(text.size()) + " characters; at most " +
                          std::to_string(kMaxText) + " are allowed",
                      where, "expression");
  Node::Parser parser{text, where};
  auto root = parser.conditional();
  if (!root) return std::move(root).error();
  parser.skip();
  if (parser.at < text.size()) return parser.expected("an operator or the end");
  Expression out;
  out.text_ = std::string(text);
  out.where_ = where;
  out.root_ = std::move(*root);
  return out;
}

Expression Expression::constant(Number value) {
  Expression out;
  out.text_ = to_string(value);
  Node node;
  node.value = value;
  out.root_ = std::make_shared<const Node>(std::move(node));
  return out;
}

Result<Number> Expression::evaluate(const Environment& environment) const {
  auto value = root_->evaluate(environment);
  if (value) return value;
  Error error = std::move(value).error();
  if (error.where.file.empty() && error.where.pointer.empty() && error.where.line == 0) error.where = where_;
  if (error.rule.empty()) error.rule = "expression";
  std::string values;
  for (const std::string& name : names()) {
    if (!environment.lookup) break;
    if (const auto v = environment.lookup(name))
      values += (values.empty() ? "" : ", ") + name + " = " + to_string(*v);
  }
  error.message += " (in `" + text_ + "`" + (values.empty() ? "" : ", where " + values) + ")";
  return error;
}

namespace {
Error wrong_kind(const Expression& expression, std::string_view wanted, const Number& got) {
  return make_error(ErrorCode::invalid_argument,
                    "`" + expression.text() + "` must be " + std::string(wanted) + ", but is " +
                        std::string(kind_name(got)) + ": " + to_string(got),
                    expression.where(), "expression");
}
}  // namespace

Result<std::int64_t> Expression::evaluate_int(const Environment& environment) const {
  PTXBENCH_TRY_ASSIGN(const Number v, evaluate(environment));
  if (v.index() != 0) return wrong_kind(*this, "an integer", v);
  return std::get<0>(v);
}

Result<bool> Expression::evaluate_bool(const Environment& environment) const {
  PTXBENCH_TRY_ASSIGN(const Number v, evaluate(environment));
  return truthy(v);
}

Result<double> Expression::evaluate_double(const Environment& environment) const {
  PTXBENCH_TRY_ASSIGN(const Number v, evaluate(environment));
  if (v.index() == 2) return wrong_kind(*this, "a number", v);
  return as_double(v);
}

std::vector<std::string> Expression::names() const {
  std::vector<std::string> out;
  root_->collect(out, false);
  return out;
}

std::vector<std::string> Expression::kernels() const {
  std::vector<std::string> out;
  root_->collect(out, true);
  return out;
}

}  // namespace ptxbench::expr
