// An evaluation as a model reads it: short, concrete, nothing that the evaluation does not say.
#include "core/json.hpp"
#include "trace/launched.hpp"

#include <ptxbench/agent.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace ptxbench {
namespace {

constexpr std::size_t kMostDiagnostics = 12;
constexpr std::size_t kMostMessageBytes = 1500, kMostDetailBytes = 3000;

std::string number(double value, const char* format = "%.4g") {
  if (std::isnan(value)) return "NaN";
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string milliseconds(std::uint64_t ns) { return number(static_cast<double>(ns) / 1e6, "%.4f") + " ms"; }

std::string axes(const Verdict& v) {
  std::string out;
  for (const auto& [axis, value] : v.axes)
    out += (out.empty() ? "" : ", ") + axis + "=" + std::to_string(value);
  return out.empty() ? v.workload_uuid : out;
}

std::string cut(const std::string& text, std::size_t most = kMostMessageBytes) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not within a character
  return text.substr(0, end) + " [...]";
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// The line a diagnostic is about; for an asm statement, which is reported at its last line, the whole
// statement.
std::string excerpt(const Solution* solution, const std::string& file, int line) {
  constexpr std::size_t kMostLines = 8;
  const SourceFile* source = solution == nullptr ? nullptr : solution->find_source(file);
  if (source == nullptr || line <= 0) return {};
  const std::vector<std::string_view> lines = lines_of(source->content);
  const std::size_t last = static_cast<std::size_t>(line) - 1;
  if (last >= lines.size()) return {};
  std::size_t first = last;
  for (std::size_t back = 0; back < kMostLines && back <= last; ++back) {
    const std::string_view text = lines[last - back];
    if (text.find("asm") != text.npos) first = last - back;
    // Another statement ends here.
    if (first != last || (back > 0 && text.find_last_not_of(" \t\r") != text.npos &&
                          text[text.find_last_not_of(" \t\r")] == ';'))
      break;
  }
  std::string out;
  for (std::size_t i = first; i <= last; ++i) {
    std::string_view text = lines[i];
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.find_first_not_of(" \t") == text.npos) continue;
    out += "  " + std::to_string(i + 1) + " | " + cut(std::string(text), 200) + "\n";
  }
  return out;
}

bool same(const Diagnostic& a, const Diagnostic& b) {
  return a.severity == b.severity && a.message == b.message && a.file == b.file && a.line == b.line &&
         a.column == b.column && a.code == b.code;
}

void diagnostics(const CompileBlock& block, const Solution* solution, std::string& out) {
  std::size_t shown = 0, left = 0;
  std::vector<std::pair<std::string, int>> places;  // already shown
  for (const Severity severity : {Severity::error, Severity::warning})
    for (std::size_t i = 0; i < block.diagnostics.size(); ++i) {
      const Diagnostic& d = block.diagnostics[i];
      if (d.severity != severity) continue;
      if (std::any_of(block.diagnostics.begin(), block.diagnostics.begin() + static_cast<std::ptrdiff_t>(i),
                      [&](const Diagnostic& other) { return same(d, other); }))
        continue;
      if (shown == kMostDiagnostics) {
        ++left;
        continue;
      }
      ++shown;
      out += "- " +
             make_error(ErrorCode::parse,
                        std::string(severity_name(d.severity)) + (d.code.empty() ? "" : " " + d.code) + ": " +
                            cut(d.message),
                        {d.file, {}, d.line, d.column})
                 .to_string() +
             "\n";
      if (std::find(places.begin(), places.end(), std::pair(d.file, d.line)) != places.end()) continue;
      places.emplace_back(d.file, d.line);
      out += excerpt(solution, d.file, d.line);
    }
  if (left > 0) out += "- and " + std::to_string(left) + " more\n";
}

void resources(const CompileBlock& block, std::string& out) {
  for (const KernelResources& k : block.kernels) {
    if (!launched(block, k.kernel)) continue;
    out += "- " + k.kernel + ": " + std::to_string(k.registers) + " registers, " +
           std::to_string(k.static_shared_bytes) + " + " + std::to_string(k.dynamic_shared_bytes) +
           " bytes of shared memory (static + dynamic)";
    if (k.spill_store_bytes + k.spill_load_bytes > 0)
      out += ", spills " + std::to_string(k.spill_store_bytes) + " bytes of stores, " +
             std::to_string(k.spill_load_bytes) + " of loads";
    if (k.stack_bytes > 0) out += ", stack " + std::to_string(k.stack_bytes) + " bytes";
    if (k.occupancy_ctas_per_sm)
      out += ", " + std::to_string(*k.occupancy_ctas_per_sm) +
             (*k.occupancy_ctas_per_sm == 1 ? " CTA an SM" : " CTAs an SM");
    out += "\n";
  }
}

// What a plain kernel has too says little.
bool telling(std::string_view family) {
  for (const std::string_view plain :
       {"int", "control", "other", "uniform", "constant", "conversion", "fp32", "vote", "sfu"})
    if (family == plain) return false;
  return true;
}

void static_families(const CompileBlock& block, std::string& out) {
  std::vector<std::string> kernels;
  for (const StaticFamily& f : block.static_families)
    if (launched(block, f.kernel) && std::find(kernels.begin(), kernels.end(), f.kernel) == kernels.end())
      kernels.push_back(f.kernel);
  for (const std::string& kernel : kernels) {
    std::string list;
    for (const StaticFamily& f : block.static_families)
      if (f.kernel == kernel && telling(f.family))
        list += (list.empty() ? "" : ", ") + f.family + " " + std::to_string(f.instructions);
    out += "- " + kernel + ": " + (list.empty() ? "none of the families that matter here" : list) + "\n";
  }
}

// What the counts say; nothing where it is not known.
void shares(const FlopsBlock& block, std::string& out) {
  if (block.total.arch_flops_share)
    out += "Of all floating-point operations executed, " + number(100 * *block.total.arch_flops_share, "%.1f") +
           "% ran on the architecture's own matrix instructions.\n";
  if (block.mma_work_ratio)
    out += "Matrix instructions did " + number(*block.mma_work_ratio, "%.3f") + " times the work that the task needs.\n";
}

void counts(const CountsBlock& block, std::string& out) {
  if (block.state == Availability::not_requested) return;
  if (block.state != Availability::measured) {
    out += "Executed instructions: " + std::string(availability_name(block.state)) + ". " +
           cut(block.reason, 400) + "\n";
    return;
  }
  std::string list;
  for (const FamilyCount& f : block.families)
    if (telling(f.family))
      list += "- " + f.kernel + ": " + f.family + " " + std::to_string(f.warp_instructions) +
              (f.label == "timing_dependent" ? " (some in loops that wait: depends on timing)" : "") + "\n";
  if (block.tma_load_bytes && block.tma_store_bytes && *block.tma_load_bytes + *block.tma_store_bytes > 0)
    list += "- moved by TMA: " + std::to_string(*block.tma_load_bytes) + " bytes in, " +
            std::to_string(*block.tma_store_bytes) + " bytes out\n";
  out += list.empty() ? "Executed instructions: none of the families that matter here.\n"
                      : "Executed instructions by family (executions by warps):\n" + list;
  shares(block.flops, out);
}

void emulation(const EmulationBlock& block, std::string& out) {
  if (block.state != Availability::measured || block.schedules.empty()) return;
  constexpr std::size_t kMost = 3;
  std::string orders;
  for (const std::string& schedule : block.schedules) orders += (orders.empty() ? "" : ", ") + schedule;
  out += "Run on an emulator" + (orders == "eager" ? "" : ", with asynchronous operations completing " + orders) + ". ";
  if (block.fidelity == "exact") {
    out += "Every executed instruction gives the hardware's bits.\n";
    return;
  }
  out += "Not known to give the hardware's bits:\n";
  for (std::size_t i = 0; i < std::min(kMost, block.inexact.size()); ++i) out += "- " + cut(block.inexact[i], 200) + "\n";
  if (block.inexact.size() > kMost) out += "- and " + std::to_string(block.inexact.size() - kMost) + " more\n";
}

void correctness(const CorrectnessBlock& block, std::string& out) {
  if (block.trials > 0)
    out +=
        "Trials: " + std::to_string(block.trials) + ", wrong: " + std::to_string(block.trials_failed) + ".\n";
  for (const OutputCorrectness& o : block.outputs) {
    out += "- output " + o.output + ": " + (o.ok ? "right" : "wrong") + "; " +
           std::to_string(o.elements_wrong) + " of " + std::to_string(o.elements) + " elements wrong";
    if (o.elements_unwritten > 0) out += ", " + std::to_string(o.elements_unwritten) + " never written";
    if (o.elements_checked != o.elements) out += ", " + std::to_string(o.elements_checked) + " checked";
    out += "\n";
    if (o.first_wrong_index) {
      std::string index;
      for (const std::int64_t i : *o.first_wrong_index)
        index += (index.empty() ? "" : ", ") + std::to_string(i);
      out += "  first wrong: " + o.output + "[" + index + "], expected " +
             number(o.first_wrong_expected, "%.6g") + ", got " + number(o.first_wrong_got, "%.6g") + "\n";
    }
    out += "  RMS error " + number(o.rms_error) + " (limit " + number(o.rms_limit) + "), largest error " +
           number(o.max_absolute_error) + " (limit " + number(o.max_limit) + ")";
    if (!o.ok && std::abs(o.scale - 1) > 1e-3)
      out += ", output is " + number(o.scale) + " times the reference by slope";
    out += "\n";
  }
}

void timing(const TimingBlock& block, std::string& out) {
  if (block.state == Availability::not_requested) return;
  if (block.state != Availability::measured) {
    out += "Timing: " + std::string(availability_name(block.state)) +
           (block.reason.empty() ? "" : ". " + cut(block.reason, 400)) + "\n";
    if (block.median_ns == 0) return;
  }
  out += "Time: " + milliseconds(block.median_ns);
  if (block.baseline_median_ns > 0)
    out += "; " + (block.baseline.empty() ? std::string("baseline") : block.baseline) + ": " +
           milliseconds(block.baseline_median_ns);
  out += ".";
  if (block.speedup) {
    out += " Speedup " + number(*block.speedup, "%.3f") + "x";
    if (!std::isnan(block.speedup_low))
      out +=
          " (95%: " + number(block.speedup_low, "%.3f") + " to " + number(block.speedup_high, "%.3f") + ")";
    if (block.tie) out += ", within the noise: a tie";
    out += ".";
  }
  out += "\n";
}

// What an emulator's finding has beside its message: the line of the candidate, and who waits for what.
void evidence(const Finding& f, const Solution* solution, std::string& out) {
  if (f.evidence.empty()) return;
  const auto parsed = json::parse(f.evidence);
  if (!parsed) return;
  const auto text_of = [&](const char* member) {
    const json::Value* value = parsed->root.find(member);
    return value != nullptr && value->kind == json::Kind::string ? std::string(value->text) : std::string();
  };
  // "gemm.cu:120", perhaps with the places it was inlined at.
  const std::string source = text_of("source");
  const std::size_t colon = source.find(':');
  if (colon != source.npos && solution != nullptr) {
    // The compiler may have named it with a folder in front.
    const std::string file = source.substr(0, colon);
    for (const SourceFile& candidate : solution->sources)
      if (file == candidate.path || file.ends_with("/" + candidate.path))
        out += excerpt(solution, candidate.path, std::atoi(source.c_str() + colon + 1));
  }
  const std::string detail = cut(text_of("detail"), kMostDetailBytes);
  for (const std::string_view line : lines_of(detail))
    out += "    " + std::string(line) + "\n";
}

void findings(const Verdict& v, const Solution* solution, std::string& out) {
  for (const Severity severity : {Severity::error, Severity::warning, Severity::note})
    for (const Finding& f : v.findings) {
      if (f.severity != severity) continue;
      // The diagnostics say the same with the line.
      if (f.code == "compile_error" && !v.compile.diagnostics.empty()) continue;
      out += "- " + std::string(severity_name(f.severity)) + " " + f.code + ": " + cut(f.message) + "\n";
      evidence(f, solution, out);
    }
}

// What of the verdict is about the compiled code; equal for workloads that compile to the same.
std::string compile_text(const Verdict& v, const Solution* solution) {
  std::string out;
  const CompileBlock& block = v.compile;
  if (block.state != Availability::measured) {
    if (!block.reason.empty()) out += "Not compiled: " + cut(block.reason) + "\n";
    return out;
  }
  std::string list;
  diagnostics(block, solution, list);
  if (!list.empty()) out += std::string(block.ok ? "Compiler's messages:\n" : "Does not compile:\n") + list;
  list.clear();
  resources(block, list);
  if (!list.empty()) out += "Resources:\n" + list;
  list.clear();
  if (v.counts.state != Availability::measured) static_families(block, list);
  if (!list.empty()) out += "Instructions in the code, by family (static, not executions):\n" + list;
  return out;
}

// Where was looked for a driver helps a person, not a model.
std::string not_run_text(const Verdict& v) {
  return "Nothing was executed: " + cut(v.outcome_reason.substr(0, v.outcome_reason.find("; searched"))) +
         ".\n";
}

std::string run_text(const Verdict& v, const Solution* solution, bool with_reason) {
  std::string out;
  if (v.outcome == Outcome::not_applicable)
    out += "A `require` of the plan is false for this workload: " + cut(v.outcome_reason) +
           "\nEvery workload must be served, so this counts as failed.\n";
  if (v.outcome == Outcome::not_run && with_reason) out += not_run_text(v);
  std::string list;
  findings(v, solution, list);
  out += list;
  if (v.outcome != Outcome::judged) return out;
  if (v.integrity == Integrity::violated) out += "Memory that is not the candidate's to write was changed.\n";
  correctness(v.correctness, out);
  emulation(v.emulation, out);
  timing(v.timing, out);
  if (v.timing.state == Availability::measured || v.counts.state == Availability::measured)
    counts(v.counts, out);
  if (!v.output_log.empty())
    out += "Printed by the candidate:\n```\n" + cut(v.output_log) +
           (v.output_log.ends_with('\n') ? "" : "\n") + "```\n";
  return out;
}

// Only what is not met: a rule that was not checked is no fault of the candidate's.
std::string contracts_text(const Verdict& v) {
  std::string out;
  for (const ContractResult& c : v.contracts)
    if (c.state == ContractState::not_met)
      out += "- `" + c.rule + "`, and it is " + c.value + (c.kernel.empty() ? "" : " in " + c.kernel) + ": " +
             c.sentence + "\n";
  return out.empty() ? out : "Rules that are not met:\n" + out;
}

std::string verdict_word(const Verdict& v) {
  if (v.status) return std::string(status_name(*v.status));
  if (v.outcome == Outcome::not_applicable) return "not applicable (counts as failed)";
  return "not judged";
}

std::string turn_words(const FeedbackOptions& options) {
  std::string out = "Turn " + std::to_string(options.turn);
  if (options.max_turns > 0) out += " of " + std::to_string(options.max_turns);
  return out + ": ";
}

std::string finish(std::string text, const FeedbackOptions& options) {
  if (text.size() > options.most_bytes) text = cut(text, options.most_bytes) + "\n(cut here)\n";
  if (options.max_turns == 0 || options.turn < options.max_turns)
    text += "\nReply with a whole candidate: launch.json and every source.\n";
  return text;
}

}  // namespace

std::string feedback_text(const Evaluation& evaluation, const Solution* solution,
                          const FeedbackOptions& options) {
  const std::optional<Status> status = evaluation.status(true);
  std::string out = turn_words(options);
  if (status)
    out += status_name(*status);
  else
    out += "not judged, nothing was executed";
  if (const auto speedup = evaluation.speedup())
    out += ", speedup " + number(*speedup, "%.3f") + "x over all workloads";
  out += ".\n";
  if (evaluation.verdicts.size() > 1)
    for (const Verdict& v : evaluation.verdicts) {
      out += "- " + axes(v) + ": " + verdict_word(v);
      if (v.timing.state == Availability::measured && v.timing.speedup)
        out += ", " + number(*v.timing.speedup, "%.3f") + "x";
      out += "\n";
    }

  const bool all_not_run =
      !evaluation.verdicts.empty() &&
      std::all_of(evaluation.verdicts.begin(), evaluation.verdicts.end(), [&](const Verdict& v) {
        return v.outcome == Outcome::not_run && v.outcome_reason == evaluation.verdicts[0].outcome_reason;
      });
  if (all_not_run) out += not_run_text(evaluation.verdicts[0]);

  // Said once where it is the same for several workloads.
  std::vector<std::pair<std::string, std::string>> sections;  // text, workloads
  for (const Verdict& v : evaluation.verdicts) {
    const std::string text = compile_text(v, solution) + run_text(v, solution, !all_not_run) + contracts_text(v);
    const auto known = std::find_if(sections.begin(), sections.end(),
                                    [&](const auto& section) { return section.first == text; });
    if (known == sections.end())
      sections.emplace_back(text, axes(v));
    else
      known->second += "; " + axes(v);
  }
  for (const auto& [text, workloads] : sections)
    if (!text.empty()) out += "\n## " + workloads + "\n" + text;
  return finish(std::move(out), options);
}

std::string feedback_text(const ParsedReply& reply, const FeedbackOptions& options) {
  std::string out = turn_words(options) + "no candidate was found in the reply, so nothing was judged.\n";
  for (const std::string& note : reply.notes) out += "- " + cut(note) + "\n";
  out += "\n" + std::string(reply_format_text());
  return finish(std::move(out), options);
}

}  // namespace ptxbench
