// Solution: parsing, checks, writing. Stricter than the schema's own reader about paths and the entry point,
// because a candidate's files are looked up and written by these names.
#include "core/guard.hpp"
#include "trace/lax.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace ptxbench {
namespace {

using json::Cursor;

constexpr std::array<std::string_view, 5> kLanguages{"python", "triton", "cpp", "cuda", "tilelang"};

std::string list_of(const auto& words) {
  std::string text;
  for (const std::string_view word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

Result<BuildSpec> read_spec(const Cursor& at) {
  BuildSpec spec;
  PTXBENCH_TRY_ASSIGN(spec.language, required_string(at, "language"));
  PTXBENCH_TRY_ASSIGN(const Cursor hardware, at.require("target_hardware"));
  PTXBENCH_TRY_ASSIGN(const std::vector<Cursor> items, hardware.items());
  for (const Cursor& item : items) {
    PTXBENCH_TRY_ASSIGN(std::string text, item.as_string());
    spec.target_hardware.push_back(std::move(text));
  }
  PTXBENCH_TRY_ASSIGN(spec.entry_point, required_string(at, "entry_point"));
  PTXBENCH_TRY_ASSIGN(spec.dependencies, string_list(at, "dependencies"));
  PTXBENCH_TRY_ASSIGN(const std::optional<Cursor> style, at.get("destination_passing_style"));
  if (style) {
    PTXBENCH_TRY_ASSIGN(spec.destination_passing_style, as_bool_lax(*style));
  }
  PTXBENCH_TRY_ASSIGN(spec.binding, optional_string(at, "binding"));
  return spec;
}

Result<Solution> read_solution(const Cursor& root) {
  Solution s;
  PTXBENCH_TRY_ASSIGN(s.name, required_string(root, "name"));
  PTXBENCH_TRY_ASSIGN(s.definition, required_string(root, "definition"));
  PTXBENCH_TRY_ASSIGN(s.author, required_string(root, "author"));
  PTXBENCH_TRY_ASSIGN(s.description, optional_string(root, "description"));
  PTXBENCH_TRY_ASSIGN(const Cursor spec, root.require("spec"));
  PTXBENCH_TRY_ASSIGN(s.spec, read_spec(spec));
  PTXBENCH_TRY_ASSIGN(const Cursor sources, root.require("sources"));
  PTXBENCH_TRY_ASSIGN(const std::vector<Cursor> items, sources.items());
  for (const Cursor& item : items) {
    SourceFile file;
    PTXBENCH_TRY_ASSIGN(file.path, required_string(item, "path"));
    PTXBENCH_TRY_ASSIGN(file.content, required_string(item, "content"));
    s.sources.push_back(std::move(file));
  }
  s.unknown = unknown_members(root, {"name", "definition", "author", "description", "spec", "sources"});
  return s;
}

// `path` without "." and empty components; what is wrong with it goes to `problem`.
std::string normalised(const std::string& path, std::string& problem) {
  if (path.empty()) problem = "is empty";
  if (path.find('\\') != std::string::npos) problem = "has a backslash; folders are separated by \"/\"";
  if (std::any_of(path.begin(), path.end(),
                  [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }))
    problem = "has a control character";
  if (!path.empty() && path.front() == '/') problem = "is absolute";
  if (path.size() > 1 && path[1] == ':') problem = "starts with a drive";
  std::string out;
  std::size_t start = 0;
  while (start <= path.size()) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    const std::string part = path.substr(start, end - start);
    if (part == "..") problem = "leaves the candidate's folder (\"..\")";
    if (!part.empty() && part != ".") out += (out.empty() ? "" : "/") + part;
    start = end + 1;
  }
  if (out.empty() && problem.empty()) problem = "names no file";
  return out;
}

bool is_identifier(std::string_view text) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
  };
  return !text.empty() && letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

const SourceFile* Solution::find_source(std::string_view path) const noexcept {
  for (const SourceFile& source : sources)
    if (source.path == path) return &source;
  return nullptr;
}

Result<void> check_solution(const Solution& s, std::string_view file) {
  if (s.name.empty()) return record_error(file, "/name", "the name cannot be empty");
  if (s.definition.empty()) return record_error(file, "/definition", "the definition's name cannot be empty");
  if (s.author.empty()) return record_error(file, "/author", "the author cannot be empty");

  const BuildSpec& spec = s.spec;
  if (std::find(kLanguages.begin(), kLanguages.end(), spec.language) == kLanguages.end())
    return record_error(
        file, "/spec/language",
        "\"" + spec.language + "\" is no language of a solution; they are " + list_of(kLanguages),
        "language");
  if (spec.target_hardware.empty())
    return record_error(file, "/spec/target_hardware",
                        "target_hardware must name at least one target, e.g. \"cuda\"");
  if (spec.binding && *spec.binding != "tvm-ffi" && *spec.binding != "torch")
    return record_error(file, "/spec/binding",
                        "binding must be \"tvm-ffi\", \"torch\" or null, not \"" + *spec.binding + "\"");
  for (std::size_t i = 0; i < spec.dependencies.size(); ++i)
    if (spec.dependencies[i].empty())
      return record_error(file, "/spec/dependencies/" + std::to_string(i),
                          "a dependency's name cannot be empty");

  if (s.sources.empty()) return record_error(file, "/sources", "a solution needs at least one source");
  std::map<std::string, std::size_t> paths;
  for (std::size_t i = 0; i < s.sources.size(); ++i) {
    const std::string place = "/sources/" + std::to_string(i);
    std::string problem;
    const std::string path = normalised(s.sources[i].path, problem);
    if (!problem.empty())
      return record_error(file, place + "/path", "the path \"" + s.sources[i].path + "\" " + problem,
                          "source_path");
    const auto [other, is_new] = paths.emplace(path, i);
    if (!is_new)
      return record_error(file, place + "/path",
                          "the sources " + std::to_string(other->second) + " and " + std::to_string(i) +
                              " are the same file, \"" + path + "\"",
                          "source_path");
    if (s.sources[i].content.empty())
      return record_error(file, place + "/content", "the source \"" + s.sources[i].path + "\" is empty",
                          "source_content");
  }

  const std::string& entry = spec.entry_point;
  const std::size_t colons = entry.find("::");
  if (colons == std::string::npos || entry.find("::", colons + 2) != std::string::npos)
    return record_error(file, "/spec/entry_point",
                        "the entry point must be \"FILE::SYMBOL\", not \"" + entry + "\"", "entry_point");
  if (s.find_source(std::string_view(entry).substr(0, colons)) == nullptr)
    return record_error(file, "/spec/entry_point",
                        "the entry point's file \"" + entry.substr(0, colons) + "\" is none of the sources",
                        "entry_point");
  if (!is_identifier(std::string_view(entry).substr(colons + 2)))
    return record_error(file, "/spec/entry_point",
                        "the entry point's symbol \"" + entry.substr(colons + 2) + "\" is no identifier",
                        "entry_point");
  return {};
}

Result<Solution> parse_solution(std::string_view text, std::string_view file) {
  return guarded([&]() -> Result<Solution> {
    PTXBENCH_TRY_ASSIGN(const json::Document document, parse_record(text, file));
    PTXBENCH_TRY_ASSIGN(Solution solution, read_solution(Cursor(document)));
    PTXBENCH_TRY(check_solution(solution, file));
    return solution;
  });
}

Result<Solution> make_solution(Solution solution) {
  return guarded([&]() -> Result<Solution> {
    PTXBENCH_TRY(check_solution(solution, {}));
    return std::move(solution);
  });
}

std::string to_json(const Solution& s) {
  json::Writer out(json::Writer::Options{2, true});
  out.begin_object().field("name", s.name).field("definition", s.definition).field("author", s.author);
  if (s.description) out.field("description", *s.description);
  const auto strings = [&out](std::string_view key, const std::vector<std::string>& list) {
    out.key(key).begin_array();
    for (const std::string& text : list) out.string(text);
    out.end_array();
  };
  out.key("spec").begin_object().field("language", s.spec.language);
  strings("target_hardware", s.spec.target_hardware);
  out.field("entry_point", s.spec.entry_point);
  if (!s.spec.dependencies.empty()) strings("dependencies", s.spec.dependencies);
  out.field("destination_passing_style", s.spec.destination_passing_style);
  if (s.spec.binding) out.field("binding", *s.spec.binding);
  out.end_object().key("sources").begin_array();
  for (const SourceFile& source : s.sources)
    out.begin_object().field("path", source.path).field("content", source.content).end_object();
  out.end_array();
  write_unknown(out, s.unknown);
  out.end_object();
  return std::move(out).str() + "\n";
}

}  // namespace ptxbench
