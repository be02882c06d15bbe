// The command `ptxbench`.
#include "cli/command.hpp"
#include "core/json.hpp"

#include <cstdio>
#include <cstring>

using namespace ptxbench;
using namespace ptxbench::cli;

namespace {

const Command* const kCommands[] = {&kRunCommand, &kEvaluateCommand, &kCountCommand, &kCompileCommand, &kDoctorCommand};

void usage(std::FILE* to) {
  std::fputs("usage: ptxbench COMMAND [options]      (ptxbench COMMAND --help for its options and an example)\n\n", to);
  for (const Command* command : kCommands)
    std::fprintf(to, "  %-10s %s\n", std::string(command->name).c_str(), std::string(command->summary).c_str());
  std::fputs("\n  --version  the library's version\n", to);
}

// The options that commands share stand before the exit codes and the example.
void print_help(const Command& command) {
  const std::string help(command.help);
  const std::size_t at = command.takes_inputs ? help.find("exit code:") : help.size();
  std::fputs(help.substr(0, at).c_str(), stdout);
  if (!command.takes_inputs) return;
  std::fputs(std::string(kInputHelp).c_str(), stdout);
  std::fputs(std::string(kContextHelp).c_str(), stdout);
  std::fputs(("\n" + help.substr(at)).c_str(), stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    usage(stderr);
    return kFailed;
  }
  const std::string_view name = argv[1];
  if (name == "--help" || name == "-h" || name == "help") {
    usage(stdout);
    return kOk;
  }
  if (name == "--version") {
    std::printf("ptxbench %s\n", std::string(version_string()).c_str());
    return kOk;
  }
  for (const Command* command : kCommands) {
    if (command->name != name) continue;
    std::vector<std::string> words(argv + 2, argv + argc);
    for (const std::string& word : words)
      if (word == "--help" || word == "-h") {
        print_help(*command);
        return kOk;
      }
    const Result<Arguments> arguments = parse_arguments(words, command->options);
    if (!arguments) return fail(arguments.error());
    return command->run(*arguments);
  }
  std::vector<std::string_view> names;
  for (const Command* command : kCommands) names.push_back(command->name);
  const std::string_view near = json::nearest(name, names);
  std::fprintf(stderr, "ptxbench: unknown command %s%s\n", argv[1],
               near.empty() ? "" : ("; did you mean " + std::string(near) + "?").c_str());
  usage(stderr);
  return kFailed;
}
