#include "compile/kernel_names.hpp"

#include "compile/diagnostics.hpp"

#include <algorithm>
#include <cctype>

namespace ptxbench {
namespace {

bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Without comments and literals, so that words can be looked for.
std::string plain_text(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.substr(i, 2) == "/*") {
      const std::size_t close = text.find("*/", i + 2);
      i = close == std::string_view::npos ? text.size() : close + 2;
      out += ' ';
    } else if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        if (text[i] == '\\') ++i;
      i = std::min(i + 1, text.size());
      out += ' ';
    } else {
      out += text[i++];
    }
  }
  return out;
}

// Whether `template <...>` stands before `at`, with nothing but words between.
bool is_template(std::string_view text, std::size_t at) {
  while (at > 0 && (std::isspace(static_cast<unsigned char>(text[at - 1])) != 0 || word_char(text[at - 1])))
    --at;
  if (at == 0 || text[at - 1] != '>') return false;
  int depth = 0;
  std::size_t i = at;
  while (i > 0) {
    --i;
    if (text[i] == '>') ++depth;
    if (text[i] == '<' && --depth == 0) break;
    if (text[i] == ';' || text[i] == '}') return false;
  }
  while (i > 0 && std::isspace(static_cast<unsigned char>(text[i - 1])) != 0) --i;
  return text.substr(0, i).ends_with("template");
}

}  // namespace

std::string kernel_name_of_symbol(const std::string& symbol) {
  std::string name = demangle(symbol);
  // Cut the parameters: the last "(" outside of angle brackets that closes at the end.
  int depth = 0;
  std::size_t cut = name.size();
  for (std::size_t i = name.size(); i-- > 0;) {
    if (name[i] == ')') ++depth;
    if (name[i] == '(' && --depth == 0) {
      cut = i;
      break;
    }
  }
  if (cut == 0 || cut == name.size()) return name;
  name.resize(cut);
  // Cut the return type, which templates have.
  depth = 0;
  for (std::size_t i = name.size(); i-- > 0;) {
    if (name[i] == '>') ++depth;
    if (name[i] == '<') --depth;
    if (name[i] == ' ' && depth == 0) return name.substr(i + 1);
  }
  return name;
}

std::vector<std::string> declared_kernels(std::string_view source) {
  constexpr std::string_view kGlobal = "__global__";
  const std::string text = plain_text(source);
  std::vector<std::string> names;
  for (std::size_t at = text.find(kGlobal); at != std::string::npos; at = text.find(kGlobal, at + 1)) {
    if ((at > 0 && word_char(text[at - 1])) ||
        (at + kGlobal.size() < text.size() && word_char(text[at + kGlobal.size()])))
      continue;
    // The name is the word before the first "(" that does not belong to an attribute.
    std::string word;
    for (std::size_t i = at + kGlobal.size(); i < text.size() && text[i] != ';' && text[i] != '{';) {
      if (word_char(text[i])) {
        word.clear();
        while (i < text.size() && word_char(text[i])) word += text[i++];
      } else if (text[i] == '(') {
        if (!word.starts_with("__")) break;
        int depth = 0;
        do {
          if (text[i] == '(') ++depth;
          if (text[i] == ')') --depth;
          ++i;
        } while (i < text.size() && depth > 0);
        word.clear();
      } else {
        ++i;
      }
    }
    if (word.empty() || word == "void") continue;
    if (is_template(text, at)) word += "<...>";
    if (std::find(names.begin(), names.end(), word) == names.end()) names.push_back(word);
  }
  return names;
}

}  // namespace ptxbench
