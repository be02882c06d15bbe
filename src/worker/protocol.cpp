#include "worker/protocol.hpp"

#include "core/json.hpp"

#include <charconv>
#include <cstring>

namespace ptxbench {

Hello own_hello(std::vector<std::string> stages) {
  return {kWorkerProtocol, std::string(version_string()), std::string(build_id()), std::move(stages)};
}

Message to_message(const Hello& hello) {
  json::Writer w;
  w.begin_object()
      .field("protocol", hello.protocol)
      .field("version", hello.version)
      .field("build", hello.build);
  w.key("stages").begin_array();
  for (const std::string& stage : hello.stages) w.string(stage);
  w.end_array().end_object();
  return {"hello", std::move(w).str(), {}};
}

Result<Hello> hello_from(const Message& message) {
  if (message.type != "hello")
    return make_error(ErrorCode::worker, "the first message is \"" + message.type + "\", not \"hello\"");
  PTXBENCH_TRY_ASSIGN(const json::Document document, json::parse(message.json, {.file = "hello"}));
  const json::Cursor root(document);
  Hello hello;
  PTXBENCH_TRY_ASSIGN(const json::Cursor protocol, root.require("protocol"));
  PTXBENCH_TRY_ASSIGN(const std::int64_t number, protocol.as_int());
  hello.protocol = static_cast<int>(number);
  PTXBENCH_TRY_ASSIGN(const json::Cursor version, root.require("version"));
  PTXBENCH_TRY_ASSIGN(hello.version, version.as_string());
  PTXBENCH_TRY_ASSIGN(const json::Cursor build, root.require("build"));
  PTXBENCH_TRY_ASSIGN(hello.build, build.as_string());
  PTXBENCH_TRY_ASSIGN(const auto stages, root.get("stages"));
  if (stages) {
    PTXBENCH_TRY_ASSIGN(const auto items, stages->items());
    for (const json::Cursor& item : items) {
      PTXBENCH_TRY_ASSIGN(std::string stage, item.as_string());
      hello.stages.push_back(std::move(stage));
    }
  }
  return hello;
}

std::string mismatch(const Hello& hello) {
  const Hello own = own_hello({});
  if (hello.protocol == own.protocol && hello.version == own.version && hello.build == own.build) return {};
  const auto describe = [](const Hello& h) {
    return h.version + " (protocol " + std::to_string(h.protocol) + ", build " + h.build + ")";
  };
  return "the worker is " + describe(hello) + " and this library is " + describe(own) +
         "; install both from the same build, or set worker_path to the matching one";
}

std::vector<std::string> command_line(const WorkerArguments& arguments) {
  std::vector<std::string> words{"--worker", arguments.kind};
  if (arguments.memory_limit_bytes != 0) {
    words.emplace_back("--memory-limit");
    words.push_back(std::to_string(arguments.memory_limit_bytes));
  }
  if (arguments.file_limit_bytes != 0) {
    words.emplace_back("--file-limit");
    words.push_back(std::to_string(arguments.file_limit_bytes));
  }
  if (arguments.warm)
    for (const std::string& word : {std::string("--warm"), arguments.warm->cuda_home, std::string("--warm-device"), arguments.warm->device})
      words.push_back(word);
  return words;
}

bool parse_command_line(int argc, char** argv, WorkerArguments& arguments) {
  if (argc < 3 || argc % 2 == 0 || std::string_view(argv[1]) != "--worker") return false;
  arguments.kind = argv[2];
  for (int i = 3; i < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--warm" || name == "--warm-device") {
      if (!arguments.warm) arguments.warm.emplace();
      (name == "--warm" ? arguments.warm->cuda_home : arguments.warm->device) = argv[i + 1];
      continue;
    }
    std::uint64_t& value =
        name == "--memory-limit" ? arguments.memory_limit_bytes : arguments.file_limit_bytes;
    if (name != "--memory-limit" && name != "--file-limit") return false;
    const char* end = argv[i + 1] + std::strlen(argv[i + 1]);
    if (const auto read = std::from_chars(argv[i + 1], end, value); read.ec != std::errc() || read.ptr != end)
      return false;
  }
  return true;
}

}  // namespace ptxbench
