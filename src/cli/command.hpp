// What every subcommand shares. Exit codes: 0 all is well; 1 the candidate failed (its verdict says how);
// 2 the call or the environment is at fault (a message on standard error says how).
#pragma once

#include "cli/arguments.hpp"

#include <ptxbench/evaluate.hpp>
#include <ptxbench/pack.hpp>

#include <memory>
#include <string>
#include <vector>

namespace ptxbench::cli {

inline constexpr int kOk = 0, kCandidateFailed = 1, kFailed = 2;

struct Command {
  std::string_view name;
  std::string_view summary;
  std::string_view help;                      // with an example
  std::vector<OptionSpec> options;
  bool takes_inputs = false;                  // kInputHelp and kContextHelp belong to its help
  int (*run)(const Arguments& arguments);
};

extern const Command kCompileCommand, kCountCommand, kDoctorCommand, kEvaluateCommand, kRunCommand;

// Prints the error on standard error; gives kFailed.
int fail(const Error& error);

// --device, --worker, --cuda-home, --cache-dir: options of every command that makes a context.
std::vector<OptionSpec> with_context_options(std::vector<OptionSpec> own);
Result<std::shared_ptr<Context>> make_context(const Arguments& arguments);
inline constexpr std::string_view kContextHelp =
    "  --device DEVICE     auto (default: the first GPU, else the emulator), cuda:N, cuda:GPU-<uuid>,\n"
    "                      emulator[:h200|:h100], none\n"
    "  --cuda-home DIR     a CUDA toolkit, or the folder of NVIDIA's wheels (default: searched)\n"
    "  --cache-dir DIR     where compiled candidates are kept; \"\" = nowhere (default: the user's cache folder)\n"
    "  --worker FILE       the worker program (default: beside this one)\n"
    "  --verbose           log lines on standard error\n";

// What a candidate is judged on: --definition, --workloads (a .jsonl file), --workload UUID-or-AXIS=VALUE.
struct Inputs {
  DefinitionPtr definition;
  std::vector<Workload> workloads;
  Solution solution;
};
std::vector<OptionSpec> with_input_options(std::vector<OptionSpec> own);
Result<Inputs> load_inputs(const Arguments& arguments);
// The same without a candidate.
struct Task {
  DefinitionPtr definition;
  std::vector<Workload> workloads;
};
Result<Task> load_task(const Arguments& arguments);
inline constexpr std::string_view kInputHelp =
    "  --definition FILE   the definition (.json)\n"
    "  --workloads FILE    its workloads (.jsonl)\n"
    "  --workload SELECT   only this one: a uuid, or AXIS=VALUE; may be repeated\n"
    "  --set NAME=VALUE    override a constant of the plan; may be repeated\n"
    "  --pack DIR          a knowledge pack; the candidate may include its headers (<ptx/...>)\n"
    "  --headers DIR       a folder whose files the candidate may include by their paths below it; may be repeated\n";

// --pack, or null.
Result<std::shared_ptr<const KnowledgePack>> pack_of(const Arguments& arguments);
// The pack's headers and the files of every --headers folder, by include name.
Result<std::vector<SourceFile>> headers_of(const Arguments& arguments);
// --options, --no-time, --no-count, --seed, --set, and the headers.
Result<EvaluateOptions> evaluate_options_of(const Arguments& arguments);
// --set NAME=VALUE
Result<std::vector<std::pair<std::string, PlanNumber>>> constants_of(const Arguments& arguments);

}  // namespace ptxbench::cli
