#include "cli/command.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace ptxbench::cli {
namespace {

void log_line(LogLevel level, std::string_view text) {
  static constexpr const char* kNames[] = {"debug", "info", "warning", "error"};
  std::fprintf(stderr, "[%s] %.*s\n", kNames[static_cast<int>(level) & 3], static_cast<int>(text.size()), text.data());
}

std::vector<OptionSpec> joined(std::vector<OptionSpec> a, std::initializer_list<OptionSpec> b) {
  a.insert(a.end(), b);
  return a;
}

// "M=8192" selects workloads by an axis, anything else by uuid.
Result<std::vector<Workload>> select(std::vector<Workload> all, const std::vector<std::string>& wanted) {
  if (wanted.empty()) return all;
  std::vector<Workload> chosen;
  for (const std::string& word : wanted) {
    bool found = false;
    const std::size_t equals = word.find('=');
    for (const Workload& workload : all) {
      bool match = workload.uuid == word;
      if (!match && equals != std::string::npos)
        for (const auto& [axis, value] : workload.axes)
          match = match || (axis == word.substr(0, equals) && std::to_string(value) == word.substr(equals + 1));
      if (!match) continue;
      chosen.push_back(workload);
      found = true;
    }
    if (found) continue;
    std::string there;
    for (const Workload& workload : all) {
      there += there.empty() ? "" : ", ";
      there += workload.uuid;
      for (const auto& [axis, value] : workload.axes) there += " " + axis + "=" + std::to_string(value);
    }
    return make_error(ErrorCode::not_found, "no workload " + word + "; there are: " + there);
  }
  return chosen;
}

}  // namespace

int fail(const Error& error) {
  std::fprintf(stderr, "ptxbench: %s\n", error.to_string().c_str());
  return kFailed;
}

std::vector<OptionSpec> with_context_options(std::vector<OptionSpec> own) {
  return joined(std::move(own), {{"--device", true}, {"--worker", true}, {"--cuda-home", true}, {"--cache-dir", true},
                                 {"--verbose"}});
}

Result<std::shared_ptr<Context>> make_context(const Arguments& arguments) {
  ContextOptions options;
  options.device = arguments.get("--device").value_or("auto");
  options.worker_path = arguments.get("--worker").value_or("");
  options.cuda_home = arguments.get("--cuda-home").value_or("");
  options.cache_dir = arguments.get("--cache-dir");
  if (arguments.has("--verbose")) options.log = log_line;
  return Context::create(options);
}

std::vector<OptionSpec> with_input_options(std::vector<OptionSpec> own) {
  return joined(std::move(own),
                {{"--definition", true}, {"--workloads", true}, {"--workload", true, true}, {"--set", true, true},
                 {"--headers", true, true}, {"--pack", true}});
}

Result<Task> load_task(const Arguments& arguments) {
  const std::optional<std::string> definition = arguments.get("--definition"), workloads = arguments.get("--workloads");
  if (!definition || !workloads)
    return make_error(ErrorCode::invalid_argument, "--definition FILE and --workloads FILE are wanted");
  Task task;
  PTXBENCH_TRY_ASSIGN(task.definition, load_definition(*definition));
  PTXBENCH_TRY_ASSIGN(std::vector<Workload> all, load_workloads(task.definition, *workloads));
  PTXBENCH_TRY_ASSIGN(task.workloads, select(std::move(all), arguments.all("--workload")));
  return task;
}

Result<Inputs> load_inputs(const Arguments& arguments) {
  if (arguments.positional.size() != 1)
    return make_error(ErrorCode::invalid_argument, "one candidate is wanted: a folder with launch.json, or a solution .json");
  PTXBENCH_TRY_ASSIGN(Task task, load_task(arguments));
  Inputs inputs;
  inputs.definition = std::move(task.definition);
  inputs.workloads = std::move(task.workloads);
  PTXBENCH_TRY_ASSIGN(inputs.solution, load_solution(arguments.positional[0], *inputs.definition));
  return inputs;
}

Result<std::shared_ptr<const KnowledgePack>> pack_of(const Arguments& arguments) {
  const std::optional<std::string> folder = arguments.get("--pack");
  if (!folder) return std::shared_ptr<const KnowledgePack>();
  return KnowledgePack::load(*folder);
}

Result<std::vector<SourceFile>> headers_of(const Arguments& arguments) {
  namespace fs = std::filesystem;
  std::vector<SourceFile> headers;
  PTXBENCH_TRY_ASSIGN(const auto pack, pack_of(arguments));
  if (pack) headers = pack->headers();
  for (const std::string& folder : arguments.all("--headers")) {
    std::error_code error;
    for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      if (!it->is_regular_file(error)) continue;
      std::ifstream in(it->path(), std::ios::binary);
      std::ostringstream text;
      text << in.rdbuf();
      if (!in) return make_error(ErrorCode::io, "cannot read", {it->path().string(), {}, 0, 0});
      headers.push_back({it->path().lexically_relative(folder).generic_string(), text.str()});
    }
    if (error) return make_error(ErrorCode::io, "--headers: " + error.message(), {folder, {}, 0, 0});
  }
  std::sort(headers.begin(), headers.end(), [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return headers;
}

Result<std::vector<std::pair<std::string, PlanNumber>>> constants_of(const Arguments& arguments) {
  std::vector<std::pair<std::string, PlanNumber>> constants;
  for (const std::string& word : arguments.all("--set")) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      return make_error(ErrorCode::invalid_argument, "--set wants NAME=VALUE, not " + word);
    const std::string name = word.substr(0, equals), text = word.substr(equals + 1);
    const char *first = text.data(), *last = first + text.size();
    std::int64_t integer = 0;
    double real = 0;
    if (text == "true" || text == "false") {
      constants.emplace_back(name, text == "true");
    } else if (const auto r = std::from_chars(first, last, integer); r.ec == std::errc() && r.ptr == last) {
      constants.emplace_back(name, integer);
    } else if (const auto f = std::from_chars(first, last, real); f.ec == std::errc() && f.ptr == last) {
      constants.emplace_back(name, real);
    } else {
      return make_error(ErrorCode::invalid_argument, "--set " + name + ": \"" + text + "\" is no number, true or false");
    }
  }
  return constants;
}

Result<EvaluateOptions> evaluate_options_of(const Arguments& arguments) {
  EvaluateOptions options;
  if (const std::optional<std::string> file = arguments.get("--options")) {
    std::ifstream in(*file, std::ios::binary);
    if (!in) return make_error(ErrorCode::io, "cannot read", {*file, {}, 0, 0});
    std::ostringstream text;
    text << in.rdbuf();
    PTXBENCH_TRY_ASSIGN(options, parse_evaluate_options(text.str()));
  }
  if (arguments.has("--no-time")) options.time = false;
  if (arguments.has("--no-count")) options.count = false;
  if (const std::optional<std::string> seed = arguments.get("--seed")) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(seed->data(), seed->data() + seed->size(), value);
    if (error != std::errc() || end != seed->data() + seed->size())
      return make_error(ErrorCode::invalid_argument, "--seed wants a number, not " + *seed);
    options.seed = value;
  }
  PTXBENCH_TRY_ASSIGN(options.headers, headers_of(arguments));
  PTXBENCH_TRY_ASSIGN(const auto pack, pack_of(arguments));
  if (pack) options.contracts.insert(options.contracts.end(), pack->contracts().begin(), pack->contracts().end());
  PTXBENCH_TRY_ASSIGN(auto constants, constants_of(arguments));
  options.constants.insert(options.constants.end(), constants.begin(), constants.end());
  return options;
}

}  // namespace ptxbench::cli
