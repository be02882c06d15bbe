#include "cli/command.hpp"
#include "cli/print.hpp"

#include <cstdio>

namespace ptxbench::cli {
namespace {

int run(const Arguments& arguments) {
  Result<Inputs> inputs = load_inputs(arguments);
  if (!inputs) return fail(inputs.error());
  EvaluateOptions options;
  options.verify = options.time = options.count = false;
  options.arch = arguments.get("--arch").value_or("");
  if (auto constants = constants_of(arguments)) options.constants = std::move(*constants);
  else return fail(constants.error());
  if (auto headers = headers_of(arguments)) options.headers = std::move(*headers);
  else return fail(headers.error());
  const auto pack = pack_of(arguments);
  if (!pack) return fail(pack.error());
  if (*pack) options.contracts = (*pack)->contracts();
  Result<std::shared_ptr<Context>> context = make_context(arguments);
  if (!context) return fail(context.error());
  const Result<Evaluation> evaluation = evaluate(**context, inputs->solution, inputs->workloads, {}, options);
  if (!evaluation) return fail(evaluation.error());
  if (arguments.has("--json")) {
    std::printf("%s\n", to_json(*evaluation).c_str());
  } else {
    for (const Verdict& verdict : evaluation->verdicts) std::fputs(describe(verdict).c_str(), stdout);
  }
  for (const Verdict& verdict : evaluation->verdicts)
    if (verdict.status == Status::compile_error) return kCandidateFailed;
  return kOk;
}

}  // namespace

const Command kCompileCommand{
    "compile", "compile a candidate for its workloads; show diagnostics, resources, static instruction families",
    "usage: ptxbench compile CANDIDATE --definition FILE --workloads FILE [options]\n"
    "\n"
    "Binds the candidate's launch plan to each workload and compiles it in a worker process. Nothing is executed and\n"
    "no GPU is needed. CANDIDATE is a folder with launch.json and its sources, or a FlashInfer-Trace solution .json.\n"
    "\n"
    "  --arch ARCH         sm_90a or sm_100a (default: the device's, else sm_90a)\n"
    "  --json              the Evaluation as JSON (docs/verdict.md)\n"
    "exit code: 0 compiled; 1 a COMPILE_ERROR; 2 the call or the environment is at fault\n"
    "\n"
    "example:\n"
    "  ptxbench compile examples/data/candidates/4_fast --workload M=8192 \\\n"
    "    --pack knowledge_packs/hopper \\\n"
    "    --definition examples/data/definitions/gemm/gemm_n7168_k5120.json \\\n"
    "    --workloads examples/data/workloads/gemm/gemm_n7168_k5120.jsonl\n",
    with_context_options(with_input_options({{"--arch", true}, {"--json"}})), true, run};

}  // namespace ptxbench::cli
