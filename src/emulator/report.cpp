#include "emulator/report.hpp"

#include <algorithm>
#include <tuple>

namespace ptxbench::emulator {
namespace {

constexpr std::size_t kMostRemarks = 64;

EmulatorFidelity fidelity_of(Fidelity fidelity) {
  switch (fidelity) {
    case Fidelity::exact: return EmulatorFidelity::exact;
    case Fidelity::ptxas: return EmulatorFidelity::ptxas;
    case Fidelity::unmeasured: return EmulatorFidelity::unmeasured;
    case Fidelity::bounded: return EmulatorFidelity::bounded;
  }
  return EmulatorFidelity::bounded;
}

std::string_view why_inexact(EmulatorFidelity fidelity) {
  switch (fidelity) {
    case EmulatorFidelity::ptxas: return "the assembler may fuse or fold it to other bits";
    case EmulatorFidelity::unmeasured: return "by the rule that was measured on its kin";
    case EmulatorFidelity::bounded: return "within a stated error";
    case EmulatorFidelity::exact: break;
  }
  return "exact";
}

const OpInfo* info_at(const Kernel& kernel, const Site& site) {
  if (site.op >= kernel.ops.size()) return nullptr;
  const std::uint32_t info = kernel.ops[site.op].info;
  return info < kernel.info.size() ? &kernel.info[info] : nullptr;
}

std::string source_of(const Kernel& kernel, const OpInfo& info) {
  return info.location < 0 || kernel.module == nullptr ? std::string() : kernel.module->source_line(info.location);
}

EmulatorFinding finding_at(const Kernel& kernel, const Site& site, std::string code, std::string message) {
  EmulatorFinding finding;
  finding.code = std::move(code);
  finding.message = std::move(message);
  finding.kernel = kernel.name;
  finding.cta = site.cta;
  finding.warp = site.warp;
  finding.lane = site.lane;
  if (const OpInfo* info = info_at(kernel, site)) {
    finding.instruction = info->text;
    finding.ptx_line = info->where.line;
    finding.source = source_of(kernel, *info);
  }
  return finding;
}

DeviceFault::Kind kind_of(FaultKind kind) {
  using Kind = DeviceFault::Kind;
  switch (kind) {
    case FaultKind::out_of_bounds: return Kind::illegal_address;
    case FaultKind::misaligned: return Kind::misaligned;
    case FaultKind::trap:
    case FaultKind::assertion: return Kind::trap;
    case FaultKind::illegal_instruction: return Kind::illegal_instruction;
    case FaultKind::deadlock:
    case FaultKind::step_limit:
    case FaultKind::time_limit: return Kind::timeout;
    case FaultKind::memory_limit: return Kind::out_of_memory;
    case FaultKind::undefined_value:
    case FaultKind::barrier_misuse:
    case FaultKind::partial_collective:
    case FaultKind::tensor_map:
    case FaultKind::descriptor:
    case FaultKind::shared_limit:
    case FaultKind::exit_with_work:
    case FaultKind::unsupported: return Kind::launch_failed;
  }
  return Kind::other;
}

}  // namespace

std::string place_text(const Kernel& kernel, const Site& site) {
  std::string text = kernel.name;
  std::string who;
  const auto part = [&](const char* name, std::int64_t number) {
    if (number >= 0) who += (who.empty() ? "" : ", ") + std::string(name) + " " + std::to_string(number);
  };
  part("CTA", site.cta);
  part("warp", site.warp);
  part("lane", site.lane);
  if (!who.empty()) text += " at " + who;
  if (const OpInfo* info = info_at(kernel, site)) {
    text += ": " + info->text;
    std::string where;
    if (info->where.line > 0) where = "PTX line " + std::to_string(info->where.line);
    if (const std::string source = source_of(kernel, *info); !source.empty()) where += (where.empty() ? "" : ", ") + source;
    if (!where.empty()) text += " (" + where + ")";
  }
  return text;
}

DeviceFault device_fault(const Kernel& kernel, const Fault& fault) {
  DeviceFault out;
  out.kind = kind_of(fault.kind);
  out.name = fault_name(fault.kind);
  out.message = place_text(kernel, fault.site) + ": " + fault.message;
  if (!fault.detail.empty()) out.message += "\n" + fault.detail;
  return out;
}

void Report::add(const std::shared_ptr<const Kernel>& kernel, const Run& run) {
  auto at = std::find_if(kernels_.begin(), kernels_.end(), [&](const Executed& e) { return e.kernel == kernel; });
  if (at == kernels_.end()) at = kernels_.insert(kernels_.end(), {kernel, std::vector<OpCount>(kernel->info.size())});
  for (std::size_t i = 0; i < at->counts.size() && i < run.counts.size(); ++i) {
    at->counts[i].warps += run.counts[i].warps;
    at->counts[i].threads += run.counts[i].threads;
  }
  if (run.fault) {
    EmulatorFinding finding =
        finding_at(*kernel, run.fault->site, std::string(fault_name(run.fault->kind)), run.fault->message);
    finding.grade = EmulatorFinding::Grade::fault;
    finding.detail = run.fault->detail;
    faults_.push_back(std::move(finding));
  }
  for (const Remark& remark : run.remarks) {
    EmulatorFinding finding = finding_at(*kernel, remark.site, remark.code, remark.message);
    finding.grade = remark.hazard ? EmulatorFinding::Grade::hazard : EmulatorFinding::Grade::note;
    finding.times = remark.times;
    const auto known = std::find_if(remarks_.begin(), remarks_.end(), [&](const EmulatorFinding& other) {
      return other.code == finding.code && other.grade == finding.grade && other.kernel == finding.kernel && other.ptx_line == finding.ptx_line &&
             other.instruction == finding.instruction;
    });
    if (known != remarks_.end()) known->times += finding.times;
    else if (remarks_.size() < kMostRemarks) remarks_.push_back(std::move(finding));
  }
  tma_load_bytes_ += run.tma_load_bytes;
  tma_store_bytes_ += run.tma_store_bytes;
  bulk_bytes_ += run.bulk_bytes;
  steps_ += run.steps;
  asynchronous_ = asynchronous_ || kernel->any_async;
  synchronised_ = synchronised_ || kernel->shares;
  const std::size_t room = Run::kOutputLimit - std::min(output_.size(), Run::kOutputLimit);
  output_.append(run.output, 0, room);
  output_cut_ = output_cut_ || run.output_cut || run.output.size() > room;
}

EmulatorReport Report::build() const {
  EmulatorReport report;
  for (const Executed& executed : kernels_) {
    const Kernel& kernel = *executed.kernel;
    // A function that was inlined twice has its instructions' infos twice.
    using Key = std::tuple<std::uint32_t, std::uint32_t, std::string_view>;
    std::map<Key, EmulatedInstruction> lines;
    for (std::size_t i = 0; i < executed.counts.size(); ++i) {
      if (executed.counts[i].warps == 0) continue;
      const OpInfo& info = kernel.info[i];
      EmulatedInstruction& to = lines[Key(info.where.line, info.where.column, info.text)];
      if (to.kernel.empty()) {
        to.kernel = kernel.name;
        to.text = info.text;
        to.ptx_line = info.where.line;
        to.source = source_of(kernel, info);
      }
      // An auxiliary operation (a special register that is read before) belongs to its instruction and is none itself.
      if (!info.family.empty()) {
        to.family = info.family;
        to.warps += executed.counts[i].warps;
        to.threads += executed.counts[i].threads;
      }
      to.timing_dependent = to.timing_dependent || info.in_spin_loop;
      to.fidelity = std::max(to.fidelity, fidelity_of(info.fidelity));
    }
    for (auto& [key, instruction] : lines) {
      if (instruction.warps == 0) continue;
      report.fidelity = std::max(report.fidelity, instruction.fidelity);
      report.instructions.push_back(std::move(instruction));
    }
  }
  // Each form once, with the first place.
  for (const EmulatedInstruction& instruction : report.instructions) {
    if (instruction.fidelity == EmulatorFidelity::exact) continue;
    const std::string start = instruction.text + ": ";
    const bool known = std::any_of(report.inexact.begin(), report.inexact.end(),
                                   [&](const std::string& line) { return line.compare(0, start.size(), start) == 0; });
    if (known) continue;
    report.inexact.push_back(start + std::string(why_inexact(instruction.fidelity)) + " (" + instruction.kernel + ", PTX line " +
                             std::to_string(instruction.ptx_line) +
                             (instruction.source.empty() ? "" : ", " + instruction.source) + ")");
  }
  if (!faults_.empty()) report.findings.push_back(faults_.front());
  // Hazards before notes.
  for (const auto grade : {EmulatorFinding::Grade::hazard, EmulatorFinding::Grade::note})
    for (const EmulatorFinding& remark : remarks_)
      if (remark.grade == grade) report.findings.push_back(remark);
  report.tma_load_bytes = tma_load_bytes_;
  report.tma_store_bytes = tma_store_bytes_;
  report.bulk_copy_bytes = bulk_bytes_;
  report.warp_instructions = steps_;
  report.printf_output = output_;
  if (output_cut_) report.printf_output += "\n(more was printed; only the first 64 KiB are kept)\n";
  report.asynchronous = asynchronous_;
  report.synchronised = synchronised_;
  return report;
}

}  // namespace ptxbench::emulator

namespace ptxbench {

std::string schedule_name(const EmulatorSchedule& schedule) {
  switch (schedule.mode) {
    case EmulatorSchedule::Mode::eager: return "eager";
    case EmulatorSchedule::Mode::lazy: return "lazy";
    case EmulatorSchedule::Mode::random: break;
  }
  return "random:" + std::to_string(schedule.seed);
}

std::string_view fidelity_name(EmulatorFidelity fidelity) noexcept {
  switch (fidelity) {
    case EmulatorFidelity::exact: return "exact";
    case EmulatorFidelity::ptxas: return "ptxas";
    case EmulatorFidelity::unmeasured: return "unmeasured";
    case EmulatorFidelity::bounded: return "bounded";
  }
  return "unknown";
}

}  // namespace ptxbench
