#include "cli/command.hpp"
#include "cli/print.hpp"

#include <cstdio>
#include <filesystem>

namespace ptxbench::cli {
namespace {

// A solution in the part of reference or baseline.
Result<SolutionChoice> choice_of(const std::string& path, const Definition& definition) {
  PTXBENCH_TRY_ASSIGN(Solution solution, load_solution(path, definition));
  return SolutionChoice{std::make_shared<const Solution>(std::move(solution)), {}};
}

// The root of the trace set that a file of workloads lies in: the folder above "workloads", else the file's own.
std::string root_of(const std::string& workloads) {
  const std::filesystem::path file(workloads);
  for (std::filesystem::path at = file.parent_path(); !at.empty() && at != at.root_path(); at = at.parent_path())
    if (at.filename() == "workloads") return at.parent_path().empty() ? "." : at.parent_path().string();
  return file.parent_path().empty() ? "." : file.parent_path().string();
}

int run(const Arguments& arguments) {
  const Result<Inputs> inputs = load_inputs(arguments);
  if (!inputs) return fail(inputs.error());
  const Result<EvaluateOptions> options = evaluate_options_of(arguments);
  if (!options) return fail(options.error());
  Judging judging;
  if (const auto path = arguments.get("--reference")) {
    if (*path == "golden") {
      judging.reference = GoldenReference{};
    } else if (*path == "python") {
      PythonReference python;
      if (const auto program = arguments.get("--python")) python.python = *program;
      judging.reference = python;
    } else {
      Result<SolutionChoice> choice = choice_of(*path, *inputs->definition);
      if (!choice) return fail(choice.error());
      judging.reference = std::move(*choice);
    }
  }
  judging.data_root = arguments.get("--data-root").value_or(root_of(arguments.get("--workloads").value_or("")));
  if (const auto path = arguments.get("--baseline")) {
    Result<SolutionChoice> choice = choice_of(*path, *inputs->definition);
    if (!choice) return fail(choice.error());
    judging.baseline = std::move(*choice);
  }
  const Result<std::shared_ptr<Context>> context = make_context(arguments);
  if (!context) return fail(context.error());
  const Result<Evaluation> evaluation =
      evaluate(**context, inputs->solution, inputs->workloads, judging, *options);
  if (!evaluation) return fail(evaluation.error());
  if (arguments.has("--json")) {
    std::printf("%s\n", to_json(*evaluation).c_str());
  } else {
    for (const Verdict& verdict : evaluation->verdicts) std::fputs(describe(verdict).c_str(), stdout);
    if (const auto speedup = evaluation->speedup()) std::printf("speedup over all workloads: %.4f\n", *speedup);
  }
  const std::optional<Status> status = evaluation->status();
  return !status || *status == Status::passed ? kOk : kCandidateFailed;
}

}  // namespace

const Command kEvaluateCommand{
    "evaluate", "judge a candidate: is it right, how fast is it, which instructions does it execute",
    "usage: ptxbench evaluate CANDIDATE --definition FILE --workloads FILE [options]\n"
    "\n"
    "Compiles the candidate, verifies it on several draws of inputs, times it against the best library kernel, counts the\n"
    "instructions that it executes. Without a GPU the emulator runs it: right or wrong, why, and counts; no times.\n"
    "\n"
    "  --reference WHAT    what is expected: the path of a solution; golden: the outputs that the workloads store; python:\n"
    "                      the definition's own `reference`, run by python3 with torch (default: the library's own)\n"
    "  --python PROGRAM    the interpreter for it (default: python3)\n"
    "  --data-root DIR     what the paths of stored tensors are relative to (default: the folder above \"workloads\")\n"
    "  --baseline PATH     a solution to compare the speed with (default: the vendor library's kernel)\n"
    "  --options FILE      options as JSON (docs/evaluate.md)\n"
    "  --seed N            repeat the draws of a verdict\n"
    "  --no-time --no-count\n"
    "  --json              the Evaluation as JSON (docs/verdict.md)\n"
    "exit code: 0 PASSED, or nothing failed and something could not be run; 1 the candidate failed; 2 the call or the\n"
    "environment is at fault\n"
    "\n"
    "example:\n"
    "  ptxbench evaluate examples/data/candidates/4_fast --workload M=8192 \\\n"
    "    --pack knowledge_packs/hopper \\\n"
    "    --definition examples/data/definitions/gemm/gemm_n7168_k5120.json \\\n"
    "    --workloads examples/data/workloads/gemm/gemm_n7168_k5120.jsonl\n",
    with_context_options(with_input_options({{"--reference", true}, {"--python", true}, {"--data-root", true}, {"--baseline", true}, {"--options", true}, {"--seed", true},
                                             {"--no-time"}, {"--no-count"}, {"--json"}})),
    true, run};

}  // namespace ptxbench::cli
