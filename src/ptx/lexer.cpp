#include "ptx/lexer.hpp"

#include <algorithm>
#include <utility>

namespace ptxbench::ptx {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool starts_name(char c) noexcept { return is_letter(c) || c == '_' || c == '$' || c == '%'; }
bool follows_in_name(char c) noexcept { return is_letter(c) || is_digit(c) || c == '_' || c == '$'; }

}  // namespace

void fail(Position where, std::string message) {
  // Names may be as long as the text; a message that quotes one is not.
  constexpr std::size_t kLongest = 200, kKept = 100;
  std::string shortened;
  for (std::size_t at = 0; at < message.size();) {
    std::size_t end = at;
    while (end < message.size() && message[end] != ' ') ++end;
    if (end - at > kLongest)
      shortened.append(message, at, kKept).append("...");
    else
      shortened.append(message, at, end - at);
    for (at = end; at < message.size() && message[at] == ' '; ++at) shortened += ' ';
  }
  throw ParseFailure{where, std::move(shortened)};
}

std::string shown(const Token& token) {
  if (token.kind == Token::Kind::end) return "the end of the text";
  constexpr std::size_t kMost = 60;
  if (token.kind == Token::Kind::string) {
    return token.text.size() <= kMost ? std::string(token.text)
                                      : std::string(token.text.substr(0, kMost)) + "...\"";
  }
  return "'" + std::string(token.text.substr(0, kMost)) + (token.text.size() > kMost ? "..." : "") + "'";
}

Position Lexer::position(std::size_t offset) const noexcept {
  return {line_, static_cast<std::uint32_t>(offset - line_start_ + 1)};
}

void Lexer::set(Token::Kind kind, std::size_t begin, std::size_t end) {
  token_ = {kind, text_.substr(begin, end - begin), position(begin)};
  next_ = end;
}

bool Lexer::skip_blanks() {
  while (next_ < text_.size()) {
    const char c = text_[next_];
    if (c == '\n') {
      line_start_ = ++next_;
      ++line_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++next_;
    } else if (c == '/' && next_ + 1 < text_.size() && text_[next_ + 1] == '/') {
      next_ = std::min(text_.find('\n', next_), text_.size());
    } else if (c == '/' && next_ + 1 < text_.size() && text_[next_ + 1] == '*') {
      const Position opened = position(next_);
      const std::size_t close = text_.find("*/", next_ + 2);
      if (close == std::string_view::npos) fail(opened, "this comment is not closed");
      for (; next_ < close; ++next_) {
        if (text_[next_] == '\n') {
          line_start_ = next_ + 1;
          ++line_;
        }
      }
      next_ = close + 2;
    } else {
      return true;
    }
  }
  return false;
}

void Lexer::advance() {
  if (!skip_blanks()) {
    set(Token::Kind::end, text_.size(), text_.size());
    return;
  }
  const std::size_t begin = next_;
  const char c = text_[begin];
  const char behind = begin + 1 < text_.size() ? text_[begin + 1] : '\0';
  if (starts_name(c) && (c != '%' || follows_in_name(behind))) {
    std::size_t end = begin + 1;
    while (end < text_.size() && follows_in_name(text_[end])) ++end;
    return set(Token::Kind::identifier, begin, end);
  }
  if (c == '.' && follows_in_name(behind)) {
    std::size_t end = begin + 1;
    while (end < text_.size()) {
      if (follows_in_name(text_[end])) {
        ++end;
      } else if (text_[end] == ':' && end + 2 < text_.size() && text_[end + 1] == ':' &&
                 follows_in_name(text_[end + 2])) {
        end += 2;
      } else {
        break;
      }
    }
    return set(Token::Kind::dotted, begin, end);
  }
  if (is_digit(c)) return lex_number();
  if (c == '"') {
    std::size_t end = begin + 1;
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') ++end;
    if (end >= text_.size() || text_[end] != '"')
      fail(position(begin), "this string is not closed on its line");
    return set(Token::Kind::string, begin, end + 1);
  }
  constexpr std::string_view kPairs = "<<>><=>===!=&&||";
  for (std::size_t i = 0; i < kPairs.size(); i += 2)
    if (kPairs[i] == c && kPairs[i + 1] == behind) return set(Token::Kind::punctuation, begin, begin + 2);
  constexpr std::string_view kSingle = "{}()[],;:@!~+-*/%<>=&|^?";
  if (kSingle.find(c) != std::string_view::npos) return set(Token::Kind::punctuation, begin, begin + 1);
  if (c > ' ' && c < '\x7f')
    fail(position(begin), std::string("no PTX statement has the character '") + c + "' here");
  constexpr char kHex[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  fail(position(begin), std::string("the byte 0x") + kHex[byte >> 4] + kHex[byte & 15] + " is no PTX text");
}

// The span only; what it means, and whether it is well formed, is for expressions.cpp to say.
void Lexer::lex_number() {
  const std::size_t begin = next_;
  const char kind =
      begin + 1 < text_.size() && text_[begin] == '0' ? static_cast<char>(text_[begin + 1] | 0x20) : '\0';
  std::size_t end = begin;
  const auto word = [&] {
    while (end < text_.size() && follows_in_name(text_[end])) ++end;
  };
  if (kind == 'x' || kind == 'f' || kind == 'd' || kind == 'b') {
    word();
    return set(Token::Kind::number, begin, end);
  }
  const auto digits = [&] {
    while (end < text_.size() && is_digit(text_[end])) ++end;
  };
  digits();
  if (end < text_.size() && text_[end] == '.') {
    ++end;
    digits();
  }
  if (end < text_.size() && (text_[end] | 0x20) == 'e') {
    std::size_t exponent = end + 1;
    if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
    if (exponent < text_.size() && is_digit(text_[exponent])) {
      end = exponent;
      digits();
    }
  }
  word();  // a suffix U; or letters that make it malformed
  set(Token::Kind::number, begin, end);
}

void Lexer::split_as_number() {
  const auto begin = static_cast<std::size_t>(token_.text.data() - text_.data());
  next_ = begin;
  lex_number();
}

void Lexer::split_as_operator() {
  const auto begin = static_cast<std::size_t>(token_.text.data() - text_.data());
  set(Token::Kind::punctuation, begin, begin + 1);
}

Token Lexer::expect(std::string_view text, std::string_view context) {
  if (!at(text))
    fail(token_.where,
         "expected '" + std::string(text) + "' " + std::string(context) + ", not " + shown(token_));
  return take();
}

Token Lexer::expect(Token::Kind kind, std::string_view what, std::string_view context) {
  if (!at(kind))
    fail(token_.where,
         "expected " + std::string(what) + " " + std::string(context) + ", not " + shown(token_));
  return take();
}

void Lexer::skip_block() {
  const Token opening = token_;
  int depth = 1;
  while (skip_blanks()) {
    const char c = text_[next_];
    if (c == '"') {
      const std::size_t close = text_.find_first_of("\"\n", next_ + 1);
      if (close == std::string_view::npos) break;
      next_ = text_[close] == '"' ? close + 1 : close;
      continue;
    }
    ++next_;
    if (c == '{') ++depth;
    if (c == '}' && --depth == 0) {
      advance();
      return;
    }
  }
  fail(opening.where, "this '{' is not closed");
}

}  // namespace ptxbench::ptx
