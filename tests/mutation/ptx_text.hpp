// Places in PTX text: lines, and the extent of a statement with its operands.
#pragma once

#include "ptx/module.hpp"

#include <string_view>
#include <utility>
#include <vector>

namespace ptxbench::testing {

class LineTable {
 public:
  explicit LineTable(std::string_view text) : starts_{0} {
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n') starts_.push_back(i + 1);
  }
  std::size_t offset(ptx::Position where) const { return starts_[where.line - 1] + where.column - 1; }

 private:
  std::vector<std::size_t> starts_;
};

struct Statement {
  std::size_t begin = 0, opcode = 0, end = 0;                 // guard included; behind the semicolon
  std::vector<std::pair<std::size_t, std::size_t>> operands;  // offset, size
};

// The statement whose opcode stands at @p opcode.
inline Statement statement_at(std::string_view text, std::size_t opcode, bool guarded) {
  Statement s;
  s.begin = s.opcode = opcode;
  if (guarded) s.begin = text.rfind('@', opcode);
  const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  std::size_t at = opcode;
  while (at < text.size() && !space(text[at]) && text[at] != ';') ++at;
  int depth = 0;
  std::size_t begin = at;
  const auto finish = [&](std::size_t end) {
    while (begin < end && space(text[begin])) ++begin;
    while (end > begin && space(text[end - 1])) --end;
    if (end > begin) s.operands.emplace_back(begin, end - begin);
  };
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '[' || c == '{' || c == '(') ++depth;
    if (c == ']' || c == '}' || c == ')') --depth;
    if (c == ';' || (c == ',' && depth == 0)) {
      finish(at);
      begin = at + 1;
      if (c == ';') break;
    }
  }
  s.end = at + 1;
  return s;
}

}  // namespace ptxbench::testing
