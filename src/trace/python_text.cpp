#include "trace/python_text.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace ptxbench {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_newline(char c) { return c == '\n' || c == '\r'; }

enum class TokenKind { name, number, string, op, newline, end, bad };
struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;
  std::size_t offset = 0;
  std::string problem;  // of a bad one
};

// A rough tokenizer: names, numbers, strings with their prefixes, operators, ends of logical lines.
class Tokens {
 public:
  explicit Tokens(std::string_view source) : source_(source) {}

  Token next() {
    skip_blanks();
    const std::size_t start = at_;
    if (at_ >= source_.size())
      return {depth_.empty() ? TokenKind::end : TokenKind::bad, {}, start, unclosed()};
    const char c = source_[at_];
    if (c == '\0') return bad(start, "a NUL byte");
    if (is_newline(c)) {
      while (at_ < source_.size() && is_newline(source_[at_])) ++at_;
      return {TokenKind::newline, source_.substr(start, at_ - start), start, {}};
    }
    if (is_letter(c)) {
      while (at_ < source_.size() && (is_letter(source_[at_]) || is_digit(source_[at_]))) ++at_;
      const bool prefix =
          at_ - start <= 2 && at_ < source_.size() && (source_[at_] == '"' || source_[at_] == '\'');
      if (prefix &&
          source_.substr(start, at_ - start).find_first_not_of("rRbBuUfF") == std::string_view::npos)
        return string(start);
      return {TokenKind::name, source_.substr(start, at_ - start), start, {}};
    }
    if (is_digit(c) || (c == '.' && at_ + 1 < source_.size() && is_digit(source_[at_ + 1])))
      return number(start);
    if (c == '"' || c == '\'') return string(start);
    return op(start);
  }

  std::size_t depth() const { return depth_.size(); }

 private:
  void skip_blanks() {
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (c == ' ' || c == '\t' || c == '\f' || (!depth_.empty() && is_newline(c))) {
        ++at_;
      } else if (c == '\\' && at_ + 1 < source_.size() && is_newline(source_[at_ + 1])) {
        at_ += source_.substr(at_ + 1, 2) == "\r\n" ? 3 : 2;
      } else if (c == '#') {
        while (at_ < source_.size() && !is_newline(source_[at_]) && source_[at_] != '\0') ++at_;
      } else {
        return;
      }
    }
  }

  Token bad(std::size_t start, std::string problem) const {
    return {TokenKind::bad, source_.substr(start, 1), start, std::move(problem)};
  }

  std::string unclosed() const {
    return depth_.empty() ? "" : std::string("'") + depth_.back() + "' is never closed";
  }

  Token number(std::size_t start) {
    while (at_ < source_.size()) {
      const char c = source_[at_];
      const char before = source_[at_ - (at_ > start ? 1 : 0)];
      const bool sign =
          (c == '+' || c == '-') && (before == 'e' || before == 'E') && source_.substr(start, 2) != "0x";
      if (!is_digit(c) && !is_letter(c) && c != '.' && !sign) break;
      ++at_;
    }
    return {TokenKind::number, source_.substr(start, at_ - start), start, {}};
  }

  Token string(std::size_t start) {
    const char quote = source_[at_];
    const bool triple = source_.substr(at_, 3) == std::string(3, quote);
    at_ += triple ? 3 : 1;
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (c == '\0') return bad(at_, "a NUL byte");
      if (c == '\\') {
        at_ += source_.substr(at_ + 1, 2) == "\r\n" ? 3 : 2;
      } else if (c == quote && (!triple || source_.substr(at_, 3) == std::string(3, quote))) {
        at_ += triple ? 3 : 1;
        return {TokenKind::string, source_.substr(start, at_ - start), start, {}};
      } else if (is_newline(c) && !triple) {
        break;
      } else {
        ++at_;
      }
    }
    return bad(start, "a string that does not end");
  }

  Token op(std::size_t start) {
    constexpr std::array<std::string_view, 24> kLong{"**=", "//=", ">>=", "<<=", "...", "**", "//", ">>",
                                                     "<<",  "<=",  ">=",  "==",  "!=",  "->", ":=", "+=",
                                                     "-=",  "*=",  "/=",  "%=",  "&=",  "|=", "^=", "@="};
    for (const std::string_view candidate : kLong) {
      if (source_.substr(at_, candidate.size()) != candidate) continue;
      at_ += candidate.size();
      return {TokenKind::op, candidate, start, {}};
    }
    const char c = source_[at_];
    ++at_;
    constexpr std::string_view kOpen = "([{", kClose = ")]}";
    if (kOpen.find(c) != std::string_view::npos) {
      depth_.push_back(c);
    } else if (const std::size_t i = kClose.find(c); i != std::string_view::npos) {
      if (depth_.empty() || depth_.back() != kOpen[i])
        return bad(start, std::string("'") + c + "' closes nothing");
      depth_.pop_back();
    }
    return {TokenKind::op, source_.substr(start, 1), start, {}};
  }

  std::string_view source_;
  std::size_t at_ = 0;
  std::vector<char> depth_;
};

bool is_any(std::string_view word, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// Operands and operators in turn, for an expression outside the constructs that are let through.
class ExpressionCheck {
 public:
  // The problem that `token` is in its place, or nothing.
  std::optional<std::string> take(const Token& token) {
    if (token.kind == TokenKind::string && last_was_string_) return {};  // adjacent strings are one
    last_was_string_ = token.kind == TokenKind::string;
    if (after_dot_ && token.kind != TokenKind::name) return "'.' without a name behind it";
    const bool after_not = after_not_;
    after_not_ = false;
    if (token.kind == TokenKind::name) return name(token.text, after_not);
    if (token.kind == TokenKind::number && !is_number(token.text))
      return "'" + std::string(token.text) + "' is no number";
    if (token.kind == TokenKind::number || token.kind == TokenKind::string || token.text == "...")
      return operand(token.text);
    return op(token.text);
  }

  std::optional<std::string> finish() const {
    if (want_ && !may_end_) return "it ends where a value is expected";
    return {};
  }

 private:
  enum class Bracket { call, other };

  std::optional<std::string> operand(std::string_view text) {
    if (!want_) return "'" + std::string(text) + "' follows a value without an operator";
    want_ = may_end_ = false;
    return {};
  }
  std::optional<std::string> binary(std::string_view text) {
    if (want_) return "'" + std::string(text) + "' stands where a value is expected";
    want_ = true;
    may_end_ = false;
    return {};
  }

  // Hexadecimal, octal and binary forms are let through.
  static bool is_number(std::string_view text) {
    const bool based = text.size() > 2 && text[0] == '0' &&
                       std::string_view("xXoObB").find(text[1]) != std::string_view::npos;
    return based || text.find_first_not_of("0123456789._eE+-jJ") == std::string_view::npos;
  }

  std::optional<std::string> name(std::string_view text, bool after_not) {
    if (after_dot_) {
      after_dot_ = false;
      return operand(text);
    }
    if (text == "not") {
      if (want_) {
        may_end_ = false;
        return {};
      }
      after_not_ = true;  // only `in` may follow
      return binary(text);
    }
    if (text == "in" && after_not) return {};
    if (after_not) return "'not' follows a value without an operator";
    if (is_any(text, {"and", "or", "in", "is", "if", "else"})) return binary(text);
    if (is_any(text, {"def", "class", "return", "import", "from", "while", "with", "try", "pass", "assert",
                      "del", "global", "raise"}))
      return "'" + std::string(text) + "' begins a statement";
    return operand(text);
  }

  std::optional<std::string> op(std::string_view text) {
    if (text == "(" || text == "[" || text == "{") {
      if (!want_ && text == "{") return "'{' follows a value without an operator";
      brackets_.push_back(text == "(" && !want_ ? Bracket::call : Bracket::other);
      want_ = may_end_ = true;
      return {};
    }
    if (text == ")" || text == "]" || text == "}") {
      if (want_ && !may_end_) return "'" + std::string(text) + "' stands where a value is expected";
      brackets_.pop_back();
      want_ = may_end_ = false;
      return {};
    }
    if (want_ && is_any(text, {"+", "-", "~"})) {
      may_end_ = false;
      return {};
    }
    if (want_ && may_end_ && is_any(text, {"*", "**"}) && !brackets_.empty()) {  // f(*args)
      may_end_ = false;
      return {};
    }
    if (text == ":" && !brackets_.empty()) {  // slices, dictionaries
      want_ = may_end_ = true;
      return {};
    }
    if (text == ",") {
      if (want_) return "',' stands where a value is expected";
      want_ = may_end_ = true;
      return {};
    }
    if (text == ".") {
      after_dot_ = true;
      return binary(text);
    }
    if (text == "=" && !brackets_.empty() && brackets_.back() == Bracket::call) return binary(text);
    if (text == ":=" && !brackets_.empty()) return binary(text);
    if (is_any(text, {"+", "-", "*", "/", "//", "%", "@", "**", "<<", ">>", "&", "|", "^", "<", ">",
                      "<=", ">=", "==", "!="}))
      return binary(text);
    return "'" + std::string(text) + "' belongs to a statement, not to an expression";
  }

  bool want_ = true;      // an operand is expected
  bool may_end_ = false;  // ... but a closing bracket or the end is fine as well
  bool after_dot_ = false;
  bool after_not_ = false;  // `not` was taken as the first half of `not in`
  bool last_was_string_ = false;
  std::vector<Bracket> brackets_;
};

}  // namespace

std::optional<std::string> reference_problem(std::string_view source) {
  if (source.find('\0') != std::string_view::npos) return "it holds a NUL byte";
  Tokens tokens(source);
  bool line_start = true, found = false;
  int header = 0;      // of a candidate: 1 after "def", 2 after "run", 3 inside the parameters
  bool colon = false;  // the last token of its header was ':'
  bool wants_body = false;
  for (;;) {
    const Token token = tokens.next();
    if (token.kind == TokenKind::bad) return token.problem;
    const bool ends = token.kind == TokenKind::end;
    if (ends || token.kind == TokenKind::newline) {
      if (header == 3) wants_body = wants_body || colon;
      header = 0;
      line_start = true;
      if (ends) break;
      continue;
    }
    if (wants_body && line_start) {  // the first line after the header
      const bool indented = token.offset > 0 && !is_newline(source[token.offset - 1]);
      if (!indented) return "its function run has no body";
      wants_body = false;
      found = true;
    }
    if (header == 1) {
      header = token.text == "run" ? 2 : 0;
    } else if (header == 2) {
      header = token.text == "(" || token.text == "[" ? 3 : 0;
    } else if (header == 3) {
      if (colon && tokens.depth() == 0) found = true;  // def run(x): return x
      colon = token.text == ":" && tokens.depth() == 0;
    } else if (line_start && token.text == "def" &&
               (token.offset == 0 || is_newline(source[token.offset - 1]))) {
      header = 1;
      colon = false;
    }
    line_start = false;
  }
  if (wants_body) return "its function run has no body";
  if (!found) return "it has no function run at the top level";
  return std::nullopt;
}

std::optional<std::string> constraint_problem(std::string_view text) {
  if (!text.empty() && (text.front() == ' ' || text.front() == '\t')) return "it starts with white space";
  Tokens tokens(text);
  ExpressionCheck check;
  bool any = false, ended = false, let_through = false;
  for (;;) {
    const Token token = tokens.next();
    if (token.kind == TokenKind::bad) return token.problem;
    if (token.kind == TokenKind::end) break;
    if (token.kind == TokenKind::newline) {
      ended = any;
      continue;
    }
    if (ended) return "it has more than one line";
    any = true;
    if (token.kind == TokenKind::name && is_any(token.text, {"lambda", "for", "await", "yield"}))
      let_through = true;
    if (let_through) continue;
    if (auto problem = check.take(token)) return problem;
  }
  if (!any) return "it is empty";
  if (!let_through) return check.finish();
  return std::nullopt;
}

}  // namespace ptxbench
