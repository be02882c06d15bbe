#include "verify/emulated.hpp"

#include "core/json.hpp"

#include <algorithm>

namespace ptxbench {
namespace {

std::string place_of(const EmulatorFinding& f) {
  std::string text = f.kernel;
  std::string who;
  const auto part = [&](const char* name, std::int64_t number) {
    if (number >= 0) who += (who.empty() ? "" : ", ") + std::string(name) + " " + std::to_string(number);
  };
  part("CTA", f.cta);
  part("warp", f.warp);
  part("lane", f.lane);
  if (!who.empty()) text += (text.empty() ? "" : ", ") + who;
  if (!f.instruction.empty()) text += (text.empty() ? "" : ": ") + f.instruction;
  std::string where;
  if (f.ptx_line > 0) where = "PTX line " + std::to_string(f.ptx_line);
  if (!f.source.empty()) where = f.source + (where.empty() ? "" : ", " + where);
  if (!where.empty()) text += " (" + where + ")";
  return text;
}

// Sums in another order are honest where floating-point numbers are added in memory.
bool adds_floats_in_memory(const EmulatorReport& report) {
  return std::any_of(report.instructions.begin(), report.instructions.end(), [](const EmulatedInstruction& i) {
    const auto has = [&](std::string_view part) { return i.text.find(part) != std::string::npos; };
    const bool reduces = i.text.rfind("atom", 0) == 0 || i.text.rfind("red", 0) == 0 || i.text.rfind("cp.reduce", 0) == 0;
    // A tensor's reduction has no type: its map does.
    return reduces && has(".add") && (has("f32") || has("f16") || has("bf16") || has("f64") || has(".tensor"));
  });
}

}  // namespace

Finding finding_of(const EmulatorFinding& f) {
  Finding finding;
  finding.code = f.code;
  finding.severity = f.grade == EmulatorFinding::Grade::fault    ? Severity::error
                     : f.grade == EmulatorFinding::Grade::hazard ? Severity::warning
                                                                 : Severity::note;
  const std::string place = place_of(f);
  finding.message = place.empty() ? f.message : place + ": " + f.message;
  if (f.times > 1) finding.message += " (" + std::to_string(f.times) + " times)";
  json::Writer w;
  w.begin_object().field("kernel", f.kernel).field("instruction", f.instruction);
  w.field("ptx_line", static_cast<std::int64_t>(f.ptx_line)).field("source", f.source);
  w.field("cta", f.cta).field("warp", static_cast<std::int64_t>(f.warp)).field("lane", static_cast<std::int64_t>(f.lane));
  w.field("times", f.times).field("detail", f.detail).end_object();
  finding.evidence = std::move(w).str();
  return finding;
}

void compose_emulation(const VerifyEvidence& evidence, Verdict& verdict) {
  if (evidence.unsupported) {
    verdict.emulation.state = Availability::unavailable;
    verdict.emulation.reason = evidence.unsupported->to_string();
    return;
  }
  if (!evidence.emulator) return;
  const EmulatorReport& report = *evidence.emulator;
  EmulationBlock& block = verdict.emulation;
  block.state = Availability::measured;
  block.fidelity = fidelity_name(report.fidelity);
  block.inexact = report.inexact;
  block.warp_instructions = report.warp_instructions;
  for (const TrialEvidence& trial : evidence.trials)
    if (std::find(block.schedules.begin(), block.schedules.end(), trial.schedule) == block.schedules.end())
      block.schedules.push_back(trial.schedule);
  for (const EmulatorFinding& finding : report.findings) verdict.findings.push_back(finding_of(finding));
  verdict.output_log += report.printf_output;
  if (!evidence.schedules_skipped.empty()) {
    json::Writer w;
    w.begin_object().key("schedules").begin_array();
    std::string names;
    for (const std::string& name : evidence.schedules_skipped) {
      w.string(name);
      names += (names.empty() ? "" : ", ") + name;
    }
    w.end_array().end_object();
    verdict.findings.push_back({"schedules_skipped", Severity::note,
                                "left out, since one run takes long and schedule_budget_s bounds all further runs: " + names,
                                std::move(w).str()});
  }

  // A fault under one order and not under another says that order matters, whatever the fault is.
  for (const TrialEvidence& trial : evidence.trials) {
    if (!trial.extra) continue;
    bool wrong = !trial.violations.empty() || trial.fault.has_value();
    for (const OutputEvidence& output : trial.outputs) wrong = wrong || !judge_output(output).ok;
    if (!wrong && !trial.differs) continue;
    json::Writer w;
    w.begin_object().field("schedule", trial.schedule).field("trial", static_cast<std::int64_t>(trial.trial));
    w.field("seed", trial.seed).end_object();
    Finding finding;
    finding.evidence = std::move(w).str();
    const bool smaller = trial.schedule.find(" SM") != std::string::npos;
    if (wrong) {
      finding.code = "schedule_dependent";
      finding.severity = Severity::error;
      finding.message = smaller ? "right on the whole GPU, and wrong (" + trial.schedule +
                                      "): with fewer CTAs at a time, loops over tiles and waves wrap around earlier"
                                : "right under the schedule eager, and wrong under " + trial.schedule +
                                      ", which the PTX ISA allows as well: the order in which asynchronous operations complete "
                                      "is not synchronised";
    } else {
      const bool explained = adds_floats_in_memory(report);
      finding.code = "schedule_differs";
      finding.severity = explained ? Severity::note : Severity::warning;
      finding.message = "the outputs differ under " + trial.schedule + " and are within the limits" +
                        (explained ? std::string(": floating-point additions in memory came in another order")
                                   : std::string("; nothing that adds in memory explains it: something is read too early"));
    }
    const bool known = std::any_of(verdict.findings.begin(), verdict.findings.end(),
                                   [&](const Finding& other) { return other.code == finding.code; });
    if (!known || wrong) verdict.findings.push_back(std::move(finding));
  }
}

}  // namespace ptxbench
