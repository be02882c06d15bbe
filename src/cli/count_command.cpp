// Which instructions a candidate executes: as a table with bars for people, as the Evaluation for machines.
#include "cli/command.hpp"
#include "cli/print.hpp"

#include <algorithm>
#include <cstdio>
#include <map>

namespace ptxbench::cli {
namespace {

constexpr int kBarWidth = 24;
constexpr std::size_t kMostLines = 20;  // source lines of a kernel; --json has all

// A share of 0 to 1 as a bar, its eighths included.
std::string bar(double share) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(std::clamp(share, 0.0, 1.0) * kBarWidth * 8 + 0.5);
  std::string out;
  for (int i = 0; i < eighths / 8; ++i) out += "█";
  out += kEighths[eighths % 8];
  return out;
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%6.2f%%", 100 * share);
  return text;
}

// A kernel's rows of @p counts with the part that each is of the kernel's executions by warps.
template <class Count, class Name>
std::string counted_table(const std::vector<Count>& counts, const std::string& kernel, const char* head,
                          Name name, std::size_t most) {
  std::uint64_t all = 0;
  std::vector<const Count*> of_kernel;
  for (const Count& c : counts)
    if (c.kernel == kernel) {
      all += c.warp_instructions;
      of_kernel.push_back(&c);
    }
  std::stable_sort(of_kernel.begin(), of_kernel.end(), [](const Count* a, const Count* b) {
    return a->warp_instructions > b->warp_instructions;
  });
  std::vector<std::vector<std::string>> rows{{head, "by warps", "by threads", "of warps'", ""}};
  for (std::size_t i = 0; i < std::min(most, of_kernel.size()); ++i) {
    const Count& c = *of_kernel[i];
    const double share =
        all == 0 ? 0 : static_cast<double>(c.warp_instructions) / static_cast<double>(all);
    rows.push_back({name(c), std::to_string(c.warp_instructions), std::to_string(c.thread_instructions),
                    percent(share), bar(share)});
  }
  std::string out = table(rows);
  if (of_kernel.size() > most) out += "... and " + std::to_string(of_kernel.size() - most) + " more\n";
  return out;
}

// Of @p kernel, all families of a line together.
std::vector<LineCount> summed_lines(const CountsBlock& block, const std::string& kernel) {
  std::map<std::string, LineCount> by_source;
  for (const LineCount& l : block.lines) {
    if (l.kernel != kernel) continue;
    LineCount& sum = by_source[l.source];
    sum.kernel = kernel;
    sum.source = l.source;
    sum.warp_instructions += l.warp_instructions;
    sum.thread_instructions += l.thread_instructions;
  }
  std::vector<LineCount> out;
  for (auto& [source, sum] : by_source) out.push_back(std::move(sum));
  return out;
}

std::string share_line(const char* what, const std::optional<double>& share, const std::string& reason,
                       const char* formula) {
  std::string out = std::string("  ") + what + "  ";
  if (!share) return out + "unknown: " + reason + "\n";
  return out + percent(*share) + "  " + bar(*share) + "  " + formula + "\n";
}

std::string describe_counted(const Verdict& verdict, bool opcodes, bool lines) {
  const CountsBlock& block = verdict.counts;
  std::string out = "workload " + axes_text(verdict) + ": ";
  out += verdict.status ? std::string(status_name(*verdict.status))
                        : std::string(outcome_name(verdict.outcome)) + ": " + verdict.outcome_reason;
  if (block.state != Availability::measured) {
    out += "; counts " + std::string(availability_name(block.state)) + "\n";
    if (!block.reason.empty()) out += "  " + block.reason + "\n";
    for (const auto& [kernel, text] : static_census(verdict.compile))
      out += "  in the code of " + kernel + ", executed or not: " + text + "\n";
    return out;
  }
  const bool emulated = block.method == "emulator";
  out += emulated ? "; PTX instructions executed on " + verdict.provenance.device + "\n"
                  : "; SASS instructions executed on " + verdict.provenance.device_name + "\n";
  std::vector<std::string> kernels;
  for (const FamilyCount& f : block.families)
    if (std::find(kernels.begin(), kernels.end(), f.kernel) == kernels.end()) kernels.push_back(f.kernel);
  for (const std::string& kernel : kernels) {
    out += "\n" + kernel + "\n";
    out += indent(counted_table(block.families, kernel, "family", [](const FamilyCount& f) { return f.family + (f.label == "counted" || f.label == "exact" ? "" : " (" + f.label + ")"); },
                                SIZE_MAX),
                  "  ");
    if (opcodes)
      out += "\n" + indent(counted_table(block.opcodes, kernel, emulated ? "PTX" : "opcode",
                                         [](const OpcodeCount& o) { return o.opcode; }, SIZE_MAX),
                           "  ");
    const std::vector<LineCount> by_line = lines ? summed_lines(block, kernel) : std::vector<LineCount>();
    if (!by_line.empty())
      out += "\n" + indent(counted_table(by_line, kernel, "source line",
                                         [](const LineCount& l) { return l.source; }, kMostLines),
                           "  ");
  }
  const FlopCount& total = block.flops.total;
  out += "\nwhat the counts say\n";
  out += share_line("FLOPs on the architecture's mma", total.arch_flops_share, block.flops.arch_flops_share_reason,
                    "of all FLOPs executed");
  out += share_line("mma FLOPs over the task's      ", block.flops.mma_work_ratio, block.flops.mma_work_ratio_reason,
                    "above 100% where tiles are ragged, masked or computed twice");
  out += describe_flops(block);
  return out;
}

int run(const Arguments& arguments) {
  const Result<Inputs> inputs = load_inputs(arguments);
  if (!inputs) return fail(inputs.error());
  Result<EvaluateOptions> options = evaluate_options_of(arguments);
  if (!options) return fail(options.error());
  options->verify = options->count = true;
  options->time = false;
  options->trials = 1;
  options->count_workloads = CountScope::all;
  const Result<std::shared_ptr<Context>> context = make_context(arguments);
  if (!context) return fail(context.error());
  const Result<Evaluation> evaluation = evaluate(**context, inputs->solution, inputs->workloads, {}, *options);
  if (!evaluation) return fail(evaluation.error());
  if (arguments.has("--json")) {
    std::printf("%s\n", to_json(*evaluation).c_str());
  } else {
    for (const Verdict& verdict : evaluation->verdicts) {
      if (&verdict != &evaluation->verdicts.front()) std::fputs("\n", stdout);
      std::fputs(describe_counted(verdict, arguments.has("--opcodes"), arguments.has("--lines")).c_str(), stdout);
    }
  }
  const std::optional<Status> status = evaluation->status();
  if (status && *status != Status::passed) return kCandidateFailed;
  for (const Verdict& verdict : evaluation->verdicts)
    if (verdict.outcome != Outcome::not_applicable && verdict.counts.state != Availability::measured) return kFailed;
  return kOk;
}

}  // namespace

const Command kCountCommand{
    "count", "show which instructions a candidate executes, and what they say: shares, FLOPs, source lines",
    "usage: ptxbench count CANDIDATE --definition FILE --workloads FILE [options]\n"
    "\n"
    "Compiles the candidate, verifies one run of it and counts the instructions of another whose outputs are verified\n"
    "too: SASS instructions by the GPU's counters, or PTX instructions on the emulator. Families: docs/sass.md.\n"
    "\n"
    "  --opcodes           also by operation\n"
    "  --lines             also by source line, the twenty most executed of each kernel\n"
    "  --options FILE      options as JSON (docs/evaluate.md)\n"
    "  --seed N            repeat the draws of a verdict\n"
    "  --json              the Evaluation as JSON, its counts included (docs/verdict.md#counts)\n"
    "exit code: 0 counted; 1 the candidate failed; 2 the call is at fault, or nothing could be counted (it says why)\n"
    "\n"
    "example:\n"
    "  ptxbench count examples/data/candidates/4_fast --workload M=8192 \\\n"
    "    --pack knowledge_packs/hopper \\\n"
    "    --definition examples/data/definitions/gemm/gemm_n7168_k5120.json \\\n"
    "    --workloads examples/data/workloads/gemm/gemm_n7168_k5120.jsonl\n",
    with_context_options(with_input_options({{"--opcodes"}, {"--lines"}, {"--options", true}, {"--seed", true}, {"--json"}})),
    true, run};

}  // namespace ptxbench::cli
