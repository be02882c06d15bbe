// PTX text to tokens: spans into the text with line and column. Nothing is copied.
#pragma once

#include "ptx/module.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace ptxbench::ptx {

// Thrown inside the layer only; parse() turns it into an Error.
struct ParseFailure {
  Position where;
  std::string message;
};

[[noreturn]] void fail(Position where, std::string message);

struct Token {
  enum class Kind : std::uint8_t {
    end,
    identifier,   // add, %r1, _, $L__BB0_1
    dotted,       // .shared::cluster: one modifier or directive, its dot included
    number,       // 12, 0x1F, 0f3F800000, 9.0
    string,       // "text" with its quotes
    punctuation,  // one character, or one of << >> <= >= == != && ||
  } kind = Kind::end;
  std::string_view text;
  Position where;

  bool is(std::string_view expected) const noexcept { return kind != Kind::string && text == expected; }
};

// A token as messages show it: in quotes, shortened; "the end of the text".
std::string shown(const Token& token);

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { advance(); }

  const Token& peek() const noexcept { return token_; }
  Token take() {
    Token token = token_;
    advance();
    return token;
  }
  bool at(std::string_view text) const noexcept { return token_.is(text); }
  bool at(Token::Kind kind) const noexcept { return token_.kind == kind; }
  // Takes the next token if it is @p text.
  bool accept(std::string_view text) {
    if (!at(text)) return false;
    advance();
    return true;
  }
  // Takes @p text, or fails: "expected ',' after WHERE, not X".
  Token expect(std::string_view text, std::string_view context);
  Token expect(Token::Kind kind, std::string_view what, std::string_view context);

  // Reads the next token again: `.5` as a number, not as a modifier; `%x` as the operator %, not as a name.
  void split_as_number();
  void split_as_operator();

  // At a `{`: leaves it out with all text up to the `}` that belongs to it. That text need not be PTX.
  void skip_block();

 private:
  void advance();
  bool skip_blanks();  // false at the end
  void lex_number();
  void set(Token::Kind kind, std::size_t begin, std::size_t end);
  Position position(std::size_t offset) const noexcept;

  std::string_view text_;
  std::size_t next_ = 0;        // behind the current token
  std::size_t line_start_ = 0;  // of the line that `next_` is on
  std::uint32_t line_ = 1;
  Token token_;
};

}  // namespace ptxbench::ptx
