// Records with one thing changed, for tables of cases.
#pragma once

#include "core/json.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace ptxbench::test {

inline constexpr std::string_view kRemove = "";

// `base` with the member at `pointer` (object members only; no escapes) set to the JSON `text`, or removed.
inline std::string edit(std::string_view base, std::string_view pointer, std::string_view text) {
  json::Document document = json::parse(base, {"base", true, 200}).value();
  json::Value* at = &document.root;
  std::string_view rest = pointer.substr(1);
  for (;;) {
    const std::size_t slash = rest.find('/');
    const std::string key(rest.substr(0, slash));
    if (slash == std::string_view::npos) {
      auto& members = at->members;
      for (std::size_t i = 0; i < members.size(); ++i) {
        if (members[i].first != key) continue;
        members.erase(members.begin() + static_cast<std::ptrdiff_t>(i));
        break;
      }
      if (!text.empty()) members.emplace_back(key, json::parse(text, {"edit", true, 200}).value().root);
      return json::to_string(document.root);
    }
    rest.remove_prefix(slash + 1);
    json::Value* next = nullptr;
    if (at->kind == json::Kind::array) {
      next = &at->items[static_cast<std::size_t>(std::stoi(key))];
    } else {
      for (auto& [name, value] : at->members)
        if (name == key) next = &value;
    }
    if (next == nullptr) std::abort();
    at = next;
  }
}

inline constexpr std::string_view kDefinition = R"({
  "name": "d", "op_type": "op",
  "axes": {"M": {"type": "var"}, "N": {"type": "const", "value": 4}},
  "inputs": {"A": {"shape": ["M", "N"], "dtype": "float32"}},
  "outputs": {"B": {"shape": ["M", "N"], "dtype": "float32"}},
  "reference": "def run(A):\n    return A\n"})";

inline constexpr std::string_view kSolution = R"({
  "name": "s", "definition": "d", "author": "a",
  "spec": {"language": "python", "target_hardware": ["cuda"], "entry_point": "main.py::run"},
  "sources": [{"path": "main.py", "content": "x=1\n"}]})";

inline constexpr std::string_view kWorkload =
    R"({"axes": {"M": 2}, "inputs": {"A": {"type": "random"}}, "uuid": "w"})";

inline constexpr std::string_view kTrace = R"({
  "definition": "d", "workload": {"axes": {"M": 2}, "inputs": {"A": {"type": "random"}}, "uuid": "w"},
  "solution": "s",
  "evaluation": {"status": "PASSED", "environment": {"hardware": "H200", "libs": {"cuda": "13"}}, "timestamp": "2026-01-01T00:00:00",
    "log": "", "correctness": {"max_relative_error": 0.5, "max_absolute_error": 0.25, "extra": null},
    "performance": {"latency_ms": 1.5, "reference_latency_ms": 3, "speedup_factor": 2}}})";

}  // namespace ptxbench::test
