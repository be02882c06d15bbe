#include "device/ptx_globals.hpp"

#include <algorithm>

namespace ptxbench {

std::vector<std::string> ptx_globals(std::string_view ptx) {
  std::vector<std::string> names;
  int depth = 0;
  std::string statement;
  const auto finish = [&] {
    const bool global = statement.find(".global") != std::string::npos,
               constant = statement.find(".const") != std::string::npos;
    if ((global || constant) && statement.find(".extern") == std::string::npos) {
      // The name stands before the first '[' or '=', or at the end.
      std::string head = statement.substr(0, statement.find_first_of("[="));
      while (!head.empty() &&
             (head.back() == ' ' || head.back() == '\n' || head.back() == '\t' || head.back() == '\r'))
        head.pop_back();
      const std::size_t at = head.find_last_of(" \t\n\r");
      if (at != std::string::npos && at + 1 < head.size() && head[at + 1] != '.')
        names.push_back(head.substr(at + 1));
    }
    statement.clear();
  };
  for (std::size_t i = 0; i < ptx.size(); ++i) {
    const char c = ptx[i];
    if (c == '/' && i + 1 < ptx.size() && ptx[i + 1] == '/') {
      i = std::min(ptx.find('\n', i), ptx.size());
    } else if (c == '/' && i + 1 < ptx.size() && ptx[i + 1] == '*') {
      const std::size_t end = ptx.find("*/", i + 2);
      if (end == std::string_view::npos) break;
      i = end + 1;
    } else if (c == '"') {  // of .file and .section directives
      i = std::min(ptx.find('"', i + 1), ptx.size());
    } else if (c == '{') {
      ++depth;
    } else if (c == '}') {
      // Of a function's body, or of an initialiser `= {...};`, whose statement goes on.
      if (--depth == 0 && statement.find('=') == std::string::npos) statement.clear();
    } else if (depth == 0) {
      if (c == ';') {
        finish();
      } else {
        statement += c;
        // Directives without a semicolon end with their line.
        if (c == '\n' && statement.find(".global") == std::string::npos &&
            statement.find(".const") == std::string::npos)
          statement.clear();
      }
    }
  }
  return names;
}

bool ptx_blocks_are_clusters(std::string_view ptx, std::string_view kernel) {
  const auto is_name = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
  };
  if (kernel.empty()) return false;
  for (std::size_t at = ptx.find(".entry"); at != std::string_view::npos; at = ptx.find(".entry", at + 1)) {
    std::size_t name = at + 6;
    while (name < ptx.size() && (ptx[name] == ' ' || ptx[name] == '\t' || ptx[name] == '\n')) ++name;
    if (ptx.substr(name, kernel.size()) != kernel) continue;
    if (name + kernel.size() < ptx.size() && is_name(ptx[name + kernel.size()])) continue;
    const std::string_view head = ptx.substr(name, ptx.find('{', name) - name);
    return head.find(".blocksareclusters") != std::string_view::npos;
  }
  return false;
}

}  // namespace ptxbench
