// Reading records from files.
#include "core/base64.hpp"
#include "core/guard.hpp"
#include "trace/lax.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace ptxbench {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostFileBytes = std::uint64_t{256} << 20;
constexpr std::size_t kMostSources = 4096;

Error io_error(const std::string& file, std::string why, ErrorCode code = ErrorCode::io) {
  return make_error(code, std::move(why), {file, "", 0, 0});
}

Result<std::string> read_file(const fs::path& path, const std::string& shown) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return io_error(shown, "there is no such file", ErrorCode::not_found);
  if (!fs::is_regular_file(status)) return io_error(shown, "this is no regular file");
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) return io_error(shown, "cannot be read: " + error.message());
  if (size > kMostFileBytes) return io_error(shown, "is larger than 256 MiB");
  std::ifstream in(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(size), '\0');
  in.read(text.data(), static_cast<std::streamsize>(size));
  if (!in && size > 0) return io_error(shown, std::string("cannot be read: ") + std::strerror(errno));
  return text;
}

// Offset of the first byte that is no UTF-8, or nothing.
std::optional<std::size_t> invalid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t n = json::utf8_sequence(text.substr(i));
    if (n == 0) return i;
    i += n;
  }
  return std::nullopt;
}

bool is_source(const fs::path& path) {
  constexpr std::array<std::string_view, 5> kExtensions{".cu", ".cuh", ".h", ".ptx", ".cubin"};
  return std::find(kExtensions.begin(), kExtensions.end(), path.extension().string()) != kExtensions.end();
}

// Paths of the sources below `folder`, relative to it, sorted: the same folder gives the same Solution
// everywhere. Hidden folders and symbolic links to folders are not entered.
Result<std::vector<std::string>> list_sources(const fs::path& folder, const std::string& shown) {
  std::vector<std::string> paths;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error), end;
  for (; !error && it != end; it.increment(error)) {
    const fs::path& path = it->path();
    std::error_code ignored;
    if (it->is_directory(ignored)) {
      if (path.filename().string().rfind('.', 0) == 0) it.disable_recursion_pending();
      continue;
    }
    if (!is_source(path) || !it->is_regular_file(ignored)) continue;
    if (paths.size() == kMostSources) return io_error(shown, "holds more than 4096 source files");
    paths.push_back(path.lexically_relative(folder).generic_string());
  }
  if (error) return io_error(shown, "cannot be listed: " + error.message());
  std::sort(paths.begin(), paths.end());
  return paths;
}

Result<Solution> load_folder(const fs::path& folder, const std::string& shown, const Definition& definition) {
  constexpr std::string_view kPlan = "launch.json";
  Solution s;
  std::error_code error;
  const fs::path full = fs::canonical(folder, error);
  s.name = (error ? folder : full).filename().string();
  if (s.name.empty()) s.name = "candidate";
  s.definition = definition.name;
  s.author = "local";
  s.spec.language = "cuda";
  s.spec.target_hardware = {"cuda"};
  s.spec.entry_point = std::string(kPlan) + "::run";
  if (!fs::exists(folder / kPlan, error))
    return io_error((folder / kPlan).string(), "a candidate's folder needs a launch.json beside its sources",
                    ErrorCode::not_found);
  PTXBENCH_TRY_ASSIGN(std::vector<std::string> paths, list_sources(folder, shown));
  paths.insert(paths.begin(), std::string(kPlan));
  for (const std::string& path : paths) {
    const std::string place = (folder / path).string();
    PTXBENCH_TRY_ASSIGN(std::string content, read_file(folder / path, place));
    if (content.empty()) return io_error(place, "the file is empty", ErrorCode::parse);
    if (fs::path(path).extension() == ".cubin") {
      content = base64_encode(content);
    } else if (const auto offset = invalid_utf8(content)) {
      return io_error(place, "is not UTF-8 at byte " + std::to_string(*offset), ErrorCode::parse);
    }
    s.sources.push_back({path, std::move(content)});
  }
  PTXBENCH_TRY(check_solution(s, shown));
  return s;
}

}  // namespace

Result<DefinitionPtr> load_definition(const std::string& file) {
  return guarded([&]() -> Result<DefinitionPtr> {
    PTXBENCH_TRY_ASSIGN(const std::string text, read_file(file, file));
    return parse_definition(text, file);
  });
}

Result<std::vector<Workload>> load_workloads(DefinitionPtr definition, const std::string& file) {
  return guarded([&]() -> Result<std::vector<Workload>> {
    if (definition == nullptr)
      return make_error(ErrorCode::invalid_argument, "load_workloads needs a definition");
    PTXBENCH_TRY_ASSIGN(const std::string text, read_file(file, file));
    std::vector<Workload> workloads;
    std::optional<Error> first;
    std::string more;  // further bad lines
    std::string_view rest = text;
    for (int line = 1; !rest.empty(); ++line) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      std::string_view record = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (record.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      Result<Trace> trace = parse_trace(definition, record, file);
      if (trace && trace->solution)
        trace = make_error(ErrorCode::parse, "a line with a solution is a result, not a workload",
                           {file, "/solution", 0, 0});
      if (trace) {
        workloads.push_back(std::move(trace->workload));
      } else if (!first) {
        first = std::move(trace).error();
        first->where.line = line;
      } else if (more.size() < 60) {
        more += (more.empty() ? "" : ", ") + std::to_string(line);
      }
    }
    if (!first) return workloads;
    if (!more.empty()) first->message += " (more bad lines: " + more + (more.size() < 60 ? ")" : ", ...)");
    return *std::move(first);
  });
}

Result<Solution> load_solution(const std::string& path, const Definition& definition) {
  return guarded([&]() -> Result<Solution> {
    std::error_code error;
    if (fs::is_directory(path, error)) return load_folder(path, path, definition);
    PTXBENCH_TRY_ASSIGN(const std::string text, read_file(path, path));
    if (fs::path(path).filename() == "launch.json")
      return io_error(path, "this is a launch plan; give its folder", ErrorCode::invalid_argument);
    PTXBENCH_TRY_ASSIGN(Solution solution, parse_solution(text, path));
    if (solution.definition != definition.name)
      return record_error(
          path, "/definition",
          "this solution is for \"" + solution.definition + "\", not for \"" + definition.name + "\"");
    return solution;
  });
}

}  // namespace ptxbench
