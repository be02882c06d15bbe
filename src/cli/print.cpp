#include "cli/print.hpp"

#include "core/json.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ptxbench::cli {
namespace {

std::string number(double value, const char* format = "%.6g") {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string milliseconds(std::uint64_t ns) { return number(static_cast<double>(ns) / 1e6, "%.4f") + " ms"; }

void describe_compile(const CompileBlock& block, std::string& out) {
  if (block.state != Availability::measured) {
    out += "  compile: " + std::string(availability_name(block.state)) +
           (block.reason.empty() ? "" : " (" + block.reason + ")") + "\n";
    return;
  }
  out += "  compile: " + std::string(block.ok ? "ok" : "failed") + ", " + block.arch + ", " + block.compiler + ", " +
         milliseconds(block.duration_ns) + (block.cached ? " (cached)" : "") + "\n";
  for (const Diagnostic& d : block.diagnostics) {
    Location where{d.file, "", d.line, d.column};
    out += "    " + make_error(ErrorCode::parse, std::string(severity_name(d.severity)) +
                                                    (d.code.empty() ? "" : " " + d.code) + ": " + d.message, where).to_string();
    if (d.ptx_line > 0) out += " [PTX line " + std::to_string(d.ptx_line) + "]";
    out += "\n";
  }
  if (!block.kernels.empty()) {
    std::vector<std::vector<std::string>> rows{{"kernel", "registers", "static smem", "dynamic smem", "stack", "spill st/ld", "CTAs/SM"}};
    for (const KernelResources& k : block.kernels)
      rows.push_back({k.kernel, std::to_string(k.registers), std::to_string(k.static_shared_bytes),
                      std::to_string(k.dynamic_shared_bytes), std::to_string(k.stack_bytes),
                      std::to_string(k.spill_store_bytes) + "/" + std::to_string(k.spill_load_bytes),
                      k.occupancy_ctas_per_sm ? std::to_string(*k.occupancy_ctas_per_sm) : "?"});
    out += indent(table(rows), "    ");
  }
  for (const auto& [kernel, text] : static_census(block)) out += "    static instructions of " + kernel + ": " + text + "\n";
}

void describe_correctness(const CorrectnessBlock& block, std::string& out) {
  if (block.state == Availability::not_requested) return;
  out += "  correctness: " + std::string(availability_name(block.state));
  if (!block.reason.empty()) out += " (" + block.reason + ")";
  if (block.trials > 0) out += ", " + std::to_string(block.trials - block.trials_failed) + " of " + std::to_string(block.trials) + " trials right";
  out += "\n";
  for (const OutputCorrectness& o : block.outputs) {
    out += "    " + o.output + ": " + (o.ok ? "right" : "wrong") + ", " + std::to_string(o.elements_checked) + " of " +
           std::to_string(o.elements) + " elements checked, " + std::to_string(o.elements_wrong) + " wrong; RMS error " +
           number(o.rms_error) + " (limit " + number(o.rms_limit) + "), maximum " + number(o.max_absolute_error) + " (limit " +
           number(o.max_limit) + "), scale " + number(o.scale, "%.8g") + "\n";
    if (!o.first_wrong_index) continue;
    std::string index;
    for (const std::int64_t i : *o.first_wrong_index) index += (index.empty() ? "" : ", ") + std::to_string(i);
    out += "      first wrong at [" + index + "]: expected " + number(o.first_wrong_expected) + ", got " + number(o.first_wrong_got) + "\n";
  }
}

void describe_timing(const TimingBlock& block, std::string& out) {
  if (block.state == Availability::not_requested) return;
  out += "  timing: " + std::string(availability_name(block.state));
  if (!block.reason.empty()) out += " (" + block.reason + ")";
  if (block.state == Availability::measured) {
    out += ", " + milliseconds(block.median_ns);
    if (block.speedup)
      out += ", speedup " + number(*block.speedup, "%.4f") + " [" + number(block.speedup_low, "%.4f") + ", " +
             number(block.speedup_high, "%.4f") + "] over " + block.baseline + " (" + milliseconds(block.baseline_median_ns) + ")" +
             (block.tie ? ", a tie" : "");
    out += ", " + std::to_string(block.pairs) + " pairs";
    if (block.noise_floor) out += ", noise floor " + number(100 * *block.noise_floor, "%.2f") + "%";
  }
  out += "\n";
}

std::string share_or_reason(const std::optional<double>& share, const std::string& reason) {
  return share ? number(*share, "%.4f") : "unknown (" + reason + ")";
}

void describe_counts(const CountsBlock& block, std::string& out) {
  if (block.state == Availability::not_requested) return;
  out += "  counts: " + std::string(availability_name(block.state)) + (block.reason.empty() ? "" : " (" + block.reason + ")") + "\n";
  if (block.families.empty()) return;
  std::vector<std::vector<std::string>> rows{{"kernel", "family", "warp instructions", "thread instructions", "counted as"}};
  for (const FamilyCount& f : block.families)
    rows.push_back({f.kernel, f.family, std::to_string(f.warp_instructions), std::to_string(f.thread_instructions), f.label});
  out += indent(table(rows), "    ");
  out += "    share of the architecture's mma: " + share_or_reason(block.flops.total.arch_flops_share, block.flops.arch_flops_share_reason) +
         "; mma work over the task's: " + share_or_reason(block.flops.mma_work_ratio, block.flops.mma_work_ratio_reason) + "\n";
  out += indent(describe_flops(block), "  ");
}

void describe_emulation(const EmulationBlock& block, std::string& out) {
  if (block.state == Availability::not_requested) return;
  out += "  emulation: " + std::string(availability_name(block.state)) + (block.reason.empty() ? "" : " (" + block.reason + ")");
  if (block.state == Availability::measured) {
    out += ", fidelity " + (block.fidelity.empty() ? "unknown" : block.fidelity) + ", " + std::to_string(block.warp_instructions) +
           " warp instructions, schedules:";
    for (const std::string& schedule : block.schedules) out += " " + schedule + (&schedule == &block.schedules.back() ? "" : ",");
  }
  out += "\n";
  for (const std::string& line : block.inexact) out += "    not exact: " + line + "\n";
}

void describe_contracts(const std::vector<ContractResult>& contracts, std::string& out) {
  for (const ContractResult& c : contracts) {
    out += "  contract " + c.rule + ": ";
    if (c.state == ContractState::not_checked) {
      out += "not checked (" + c.reason + ")\n";
      continue;
    }
    out += (c.state == ContractState::met ? "met (" : "NOT met (") + c.value +
           (c.kernel.empty() ? "" : " in " + c.kernel) + ")\n";
    if (c.state == ContractState::not_met) out += "    " + c.sentence + "\n";
  }
}

// What a finding has to say in several lines: in a deadlock, who waits for what.
std::string detail_of(const Finding& finding) {
  const auto evidence = json::parse(finding.evidence);
  const json::Value* detail = evidence ? evidence->root.find("detail") : nullptr;
  return detail != nullptr && detail->kind == json::Kind::string ? std::string(detail->text) : std::string();
}

}  // namespace

std::string indent(const std::string& text, const std::string& by) {
  std::string out;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    out += by + text.substr(start, end - start) + "\n";
    start = end + 1;
  }
  return out;
}

std::map<std::string, std::string> static_census(const CompileBlock& block) {
  std::map<std::string, std::string> families;
  for (const StaticFamily& f : block.static_families) {
    std::string& text = families[f.kernel];
    text += (text.empty() ? "" : ", ") + f.family + " " + std::to_string(f.instructions);
  }
  return families;
}

std::string describe_flops(const CountsBlock& block) {
  const auto word = [](const std::optional<bool>& b) { return b ? *b ? "yes" : "no" : "unknown"; };
  const auto amount = [](const std::optional<std::uint64_t>& flops) { return flops ? std::to_string(*flops) : "unknown"; };
  const FlopCount& total = block.flops.total;
  std::string out = "  FLOPs: architecture's mma " + amount(total.arch_mma) + ", warp mma " + amount(total.mma_sync) + ", fp32 " +
                    std::to_string(total.fp32) + ", fp64 " + std::to_string(total.fp64) + ", half " + std::to_string(total.half) + "\n";
  const auto bytes = [](const std::optional<std::uint64_t>& count, const std::string& reason) {
    return count ? std::to_string(*count) + " bytes" : "unknown (" + reason + ")";
  };
  const std::string& tma_reason = block.bytes.tma_reason;
  out += "  moved by TMA: in " + bytes(block.tma_load_bytes, tma_reason) + ", out " + bytes(block.tma_store_bytes, tma_reason);
  if (block.bytes.tma_ratio) out += ", " + number(*block.bytes.tma_ratio, "%.4g") + " times what the task needs";
  out += "; by bulk copies: " + bytes(block.bulk_copy_bytes, block.bytes.bulk_copy_reason) + "\n";
  out += "  spill traffic: " + bytes(block.bytes.spill, block.bytes.spill_reason);
  if (block.waits_per_mma) out += "; waits for wgmma over wgmma: " + number(*block.waits_per_mma, "%.4g");
  out += "\n";
  out += std::string("  architecture: published ") + word(block.architecture.published) + ", strict " +
         word(block.architecture.strict) + " (" + block.architecture.reason + ")\n";
  return out;
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 2, ' ');
    }
    out += line + "\n";
  }
  return out;
}

std::string axes_text(const Verdict& verdict) {
  std::string out;
  for (const auto& [axis, value] : verdict.axes) out += (out.empty() ? "" : " ") + axis + "=" + std::to_string(value);
  return out;
}

std::string describe(const Verdict& verdict) {
  std::string out = "workload " + axes_text(verdict) + " (" + verdict.workload_uuid + "): ";
  if (verdict.status) out += std::string(status_name(*verdict.status));
  else out += std::string(outcome_name(verdict.outcome)) + ": " + verdict.outcome_reason;
  out += "\n";
  describe_compile(verdict.compile, out);
  describe_correctness(verdict.correctness, out);
  describe_timing(verdict.timing, out);
  describe_counts(verdict.counts, out);
  describe_emulation(verdict.emulation, out);
  for (const Finding& f : verdict.findings) {
    out += "  " + std::string(severity_name(f.severity)) + " " + f.code + ": " + f.message + "\n";
    out += indent(detail_of(f), "    ");
  }
  describe_contracts(verdict.contracts, out);
  return out;
}

}  // namespace ptxbench::cli
