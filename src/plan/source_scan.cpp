#include "plan/source_scan.hpp"

#include <algorithm>
#include <optional>

namespace ptxbench::plan {
namespace {

bool word_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$'; }
bool word_char(char c) { return word_start(c) || (c >= '0' && c <= '9'); }

struct Token {
  enum class Kind { word, string, punctuation, directive } kind = Kind::punctuation;
  std::string_view text;  // of a string: without its quotes; of a directive: the line without comments' ends
};

// One pass over C++ or PTX text: words, strings, single punctuation characters, preprocessor lines.
class Lexer {
 public:
  Lexer(std::string_view text, bool preprocessor) : text_(text), preprocessor_(preprocessor) {}

  std::optional<Token> next() {
    skip();
    if (at_ >= text_.size()) return std::nullopt;
    const char c = text_[at_];
    const std::size_t begin = at_;
    if (preprocessor_ && c == '#' && line_start_) {
      while (at_ < text_.size() && text_[at_] != '\n') {
        if (text_.substr(at_, 2) == "//" || text_.substr(at_, 2) == "/*") break;
        at_ += text_[at_] == '\\' && at_ + 1 < text_.size() ? 2 : 1;
      }
      return token(Token::Kind::directive, begin, at_);
    }
    line_start_ = false;
    if (word_start(c)) {
      while (at_ < text_.size() && word_char(text_[at_])) ++at_;
      const std::string_view word = text_.substr(begin, at_ - begin);
      const bool raw = preprocessor_ && at_ < text_.size() && text_[at_] == '"' && !word.empty() &&
                       (word == "R" || word == "u8R" || word == "uR" || word == "UR" || word == "LR");
      if (raw) return raw_string();
      return token(Token::Kind::word, begin, at_);
    }
    if (c >= '0' && c <= '9') {  // a number, with its suffix and digit separators
      while (at_ < text_.size() && (word_char(text_[at_]) || text_[at_] == '.' || text_[at_] == '\'')) ++at_;
      return token(Token::Kind::punctuation, begin, at_);
    }
    if (c == '"' || (c == '\'' && preprocessor_)) {
      ++at_;
      while (at_ < text_.size() && text_[at_] != c && text_[at_] != '\n')
        at_ += text_[at_] == '\\' && at_ + 1 < text_.size() ? 2 : 1;
      const std::size_t end = std::min(at_, text_.size());
      at_ = std::min(end + 1, text_.size());
      return token(Token::Kind::string, begin + 1, end);
    }
    ++at_;
    return token(Token::Kind::punctuation, begin, at_);
  }

 private:
  Token token(Token::Kind kind, std::size_t begin, std::size_t end) {
    end = std::min(end, text_.size());
    at_ = std::min(at_, text_.size());
    return {kind, text_.substr(begin, end - begin)};
  }

  // R"delimiter( ... )delimiter"
  Token raw_string() {
    const std::size_t open = text_.find('(', at_);
    if (open == std::string_view::npos || open - at_ > 17) {  // no raw string after all
      ++at_;
      return token(Token::Kind::punctuation, at_ - 1, at_);
    }
    const std::string close = ")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"";
    const std::size_t end = text_.find(close, open);
    at_ = end == std::string_view::npos ? text_.size() : end + close.size();
    return token(Token::Kind::string, open + 1, std::min(end, text_.size()));
  }

  void skip() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') line_start_ = true;
      if (c == ' ' || (c >= '\t' && c <= '\r') || c == '\0') {
        ++at_;
      } else if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        const std::size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
      } else if (c == '\\' && at_ + 1 < text_.size() && (text_[at_ + 1] == '\n' || text_[at_ + 1] == '\r')) {
        at_ += 2;
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  bool preprocessor_;
  std::size_t at_ = 0;
  bool line_start_ = true;
};

bool is(const Token& token, std::string_view punctuation) {
  return token.kind == Token::Kind::punctuation && token.text == punctuation;
}

}  // namespace

std::vector<SourceKernel> kernels_of_cuda(std::string_view text) {
  std::vector<Token> tokens;
  Lexer lexer(text, true);
  while (const auto token = lexer.next())
    if (token->kind != Token::Kind::directive) tokens.push_back(*token);

  std::vector<SourceKernel> out;
  std::vector<bool> blocks;  // of each open brace: whether it is an extern "C" block's
  bool declaration = false;  // this declaration says extern "C" itself
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    if (is(token, "{")) {
      const bool opens = i >= 2 && tokens[i - 1].kind == Token::Kind::string && tokens[i - 1].text == "C" &&
                         tokens[i - 2].text == "extern";
      blocks.push_back(opens);
      declaration = false;
    } else if (is(token, "}")) {
      if (!blocks.empty()) blocks.pop_back();
      declaration = false;
    } else if (is(token, ";")) {
      declaration = false;
    } else if (token.kind == Token::Kind::string && token.text == "C" && i >= 1 &&
               tokens[i - 1].text == "extern") {
      declaration = true;
    } else if (token.kind == Token::Kind::word && token.text == "__global__") {
      // The function's name is the first word before a parenthesis that is no attribute's.
      for (std::size_t j = i + 1; j + 1 < tokens.size() && j < i + 64; ++j) {
        if (is(tokens[j], ";") || is(tokens[j], "{")) break;
        if (tokens[j].kind != Token::Kind::word || !is(tokens[j + 1], "(")) continue;
        const std::string_view name = tokens[j].text;
        if (name.substr(0, 2) == "__" || name == "alignas" || name == "decltype") {
          int open = 0;
          for (++j; j < tokens.size(); ++j) {
            open += is(tokens[j], "(") ? 1 : is(tokens[j], ")") ? -1 : 0;
            if (open == 0) break;
          }
          continue;
        }
        const bool extern_c = declaration || std::find(blocks.begin(), blocks.end(), true) != blocks.end();
        const auto same =
            std::find_if(out.begin(), out.end(), [&](const SourceKernel& k) { return k.name == name; });
        if (same == out.end()) {
          out.push_back({std::string(name), extern_c});
        } else {
          same->extern_c = same->extern_c || extern_c;
        }
        break;
      }
    }
  }
  return out;
}

std::vector<std::string> kernels_of_ptx(std::string_view text) {
  std::vector<std::string> out;
  Lexer lexer(text, false);
  bool dot = false, entry = false;
  while (const auto token = lexer.next()) {
    if (entry && token->kind == Token::Kind::word) {
      if (std::find(out.begin(), out.end(), token->text) == out.end()) out.emplace_back(token->text);
    }
    entry = dot && token->kind == Token::Kind::word && token->text == "entry";
    dot = is(*token, ".");
  }
  return out;
}

bool includes_header(std::string_view text, std::string_view name) {
  Lexer lexer(text, true);
  while (const auto token = lexer.next()) {
    if (token->kind != Token::Kind::directive) continue;
    std::string_view line = token->text.substr(1);
    const auto trim = [&] {
      while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    };
    trim();
    if (line.substr(0, 7) != "include") continue;
    line.remove_prefix(7);
    trim();
    if (line.empty() || (line.front() != '<' && line.front() != '"')) continue;
    const char close = line.front() == '<' ? '>' : '"';
    line.remove_prefix(1);
    if (line.substr(0, line.find(close)) == name) return true;
  }
  return false;
}

}  // namespace ptxbench::plan
