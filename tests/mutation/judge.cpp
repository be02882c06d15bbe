#include "judge.hpp"

#include "emulator/device.hpp"

#include <algorithm>
#include <chrono>
#include <map>

namespace ptxbench::testing {
namespace {

constexpr std::uint64_t kSeed = 1;

// Inputs and what is expected of them are the same for every mutant: computed once.
class KeptReference final : public Reference {
 public:
  Result<void> compute(const Workload& workload, std::span<const HostTensor> in,
                       std::span<HostTensor> out) override {
    if (kept_.empty()) {
      expected_of(workload, in, out);
      for (const HostTensor& t : out)
        kept_.emplace_back(static_cast<std::uint8_t*>(t.data), static_cast<std::uint8_t*>(t.data) + t.bytes);
    } else {
      for (std::size_t i = 0; i < out.size(); ++i) std::memcpy(out[i].data, kept_[i].data(), kept_[i].size());
    }
    return {};
  }

 private:
  std::vector<std::vector<std::uint8_t>> kept_;
};

std::string place_key(const EmulatorFinding& f) { return f.code + "@" + std::to_string(f.ptx_line); }

std::string first_lines(const std::string& text, std::size_t most) {
  return text.size() <= most ? text : text.substr(0, most) + " ...";
}

KernelCase example(const std::string& name, const std::string& candidate, std::vector<std::int64_t> axes) {
  KernelCase c = kernel_case("gemm_naive");
  auto solution =
      load_solution(PTXBENCH_SOURCE_DIR "/examples/data/candidates/" + candidate, *c.workload.definition);
  if (!solution) FAIL(name << ": " << solution.error().to_string());
  c.name = name;
  c.solution = *solution;
  Workload w;
  w.definition = c.workload.definition;
  w.uuid = name;
  for (std::size_t i = 0; i < axes.size(); ++i) w.axes.push_back({w.definition->axes[i].name, axes[i]});
  auto workload = make_workload(std::move(w));
  if (!workload) FAIL(workload.error().to_string());
  c.workload = *workload;
  return c;
}

}  // namespace

std::string_view outcome_name(HowFound outcome) noexcept {
  switch (outcome) {
    case HowFound::wrong_result:
      return "wrong result";
    case HowFound::fault:
      return "fault";
    case HowFound::hazard:
      return "hazard";
    case HowFound::deadlock:
      return "deadlock";
    case HowFound::refused:
      return "refused";
    case HowFound::survived:
      break;
  }
  return "survived";
}

std::vector<std::string> subject_names() {
  std::vector<std::string> names = kernel_case_names();
  names.insert(names.end(), {"example_fast_narrow", "example_fast_clusters", "example_slow"});
  return names;
}

KernelCase subject_case(const std::string& name) {
  if (name == "example_fast_narrow") return example(name, "4_fast", {70, 512, 1088});
  if (name == "example_fast_clusters") return example(name, "4_fast", {300, 512, 640});
  if (name == "example_slow") return example(name, "3_slow", {70, 256, 320});
  return kernel_case(name);
}

Subject::Subject(Context& context, KernelCase c) : case_(std::move(c)) {
  candidate_ = compiled_case(context, case_);
  reference_ = std::make_shared<KeptReference>();
  const auto open = [](std::uint64_t steps) {
    EmulatorOptions options;
    options.threads = 1;
    options.step_limit = steps;
    auto device = open_emulator_device(options);
    if (!device) FAIL(device.error().to_string());
    return std::move(*device);
  };
  device_ = open(0);
  const auto start = std::chrono::steady_clock::now();
  const VerifyEvidence evidence = verify(*device_, case_, candidate_, 120);
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  Verdict verdict;
  compose_correctness(evidence, verdict);
  if (verdict.status != Status::passed || !evidence.emulator) {
    problem_ = "not right: " + first_lines(to_json(verdict), 3000);
    return;
  }
  const EmulatorReport& report = *evidence.emulator;
  asynchronous_ = report.asynchronous;
  for (const EmulatorFinding& f : report.findings) {
    if (f.grade != EmulatorFinding::Grade::note) problem_ += words(report);
    known_notes_.insert(place_key(f));
  }
  std::set<std::uint32_t> executed;
  std::set<std::string>& kernels = kernels_;
  for (const EmulatedInstruction& i : report.instructions) {
    if (i.threads != 0) executed.insert(i.ptx_line);
    kernels.insert(i.kernel);
  }
  device_ = open(20 * report.warp_instructions + 1'000'000);
  find_used_maps();
  // The module that holds the kernels; plans of this collection have one.
  for (std::size_t m = 0; m < candidate_.modules.size(); ++m) {
    if (candidate_.modules[m].ptx.empty()) continue;
    auto module = ptx::parse(candidate_.modules[m].ptx, candidate_.modules[m].source);
    if (!module) continue;
    const bool here = std::any_of(module->functions.begin(), module->functions.end(),
                                  [&](const ptx::Function& f) { return kernels.count(f.name) != 0; });
    if (!here) continue;
    module_ = std::move(*module);
    module_index_ = m;
    break;
  }
  mutants_ = mutants_of(module_, candidate_.modules[module_index_].ptx, executed);
  const std::vector<Mutant> plan = plan_mutants(case_.solution.find_source("launch.json")->content);
  mutants_.insert(mutants_.end(), plan.begin(), plan.end());
}

void Subject::find_used_maps() {
  const std::string& launch = case_.solution.find_source("launch.json")->content;
  static constexpr std::string_view kKernel = "\"kernel\": \"", kMap = "{\"map\": \"";
  for (std::size_t at = launch.find(kKernel); at != std::string::npos;) {
    const std::size_t begin = at + kKernel.size(), next = launch.find(kKernel, begin);
    std::string symbol = launch.substr(begin, launch.find('"', begin) - begin);
    for (const CompiledModule& module : candidate_.modules)
      for (const auto& [expression, lowered] : module.lowered)
        if (expression == symbol) symbol = lowered;
    for (std::size_t m = launch.find(kMap, begin); m < next && m != std::string::npos;
         m = launch.find(kMap, m + 1))
      if (kernels_.count(symbol) != 0)
        used_maps_.push_back(
            launch.substr(m + kMap.size(), launch.find('"', m + kMap.size()) - m - kMap.size()));
    at = next;
  }
}

VerifyEvidence Subject::verify(EmulatedDevice& device, const KernelCase& c, const Candidate& candidate,
                               double seconds) {
  VerifyJob job;
  job.workload = c.workload;
  job.candidate = candidate;
  job.seed = kSeed;
  job.trials = 1;
  job.run_deadline_ns = static_cast<std::uint64_t>(seconds * 1e9);
  job.comparator = c.judging.comparator;
  // As a verdict has them: eager, lazy, two at random, and two SMs where the plan depends on their number.
  job.schedules = {{EmulatorSchedule::Mode::lazy, 0},
                   {EmulatorSchedule::Mode::random, kSeed + 1},
                   {EmulatorSchedule::Mode::random, kSeed + 2}};
  job.small_sm_count = 2;
  LocalCallbacks callbacks(nullptr, reference_.get(), nullptr);
  if (!std::holds_alternative<NativeReference>(c.judging.reference))
    job.reference.kind = ReferenceKind::callback;
  device.set_schedule({});
  device.set_sm_count(0);
  device.begin_report();
  auto evidence = run_verify(device, job, callbacks);
  if (evidence) return std::move(*evidence);
  VerifyEvidence failed;
  failed.plan_error = evidence.error();
  return failed;
}

Judgement Subject::judge(const Mutant& mutant) {
  auto& device = static_cast<emulator::Emulator&>(*device_);
  device.follow_global(mutant.kind == "delete_barrier");
  Judgement j = run(mutant);
  const bool reused = mutant.kind != "delete_barrier" || device.global_reused();
  device.follow_global(false);
  if (j.outcome != HowFound::survived) return j;
  j.equivalent = equivalent_because({module_, mutant, case_.solution.find_source("launch.json")->content,
                                     j.note, kernels_, used_maps_, reused});
  if (j.equivalent.empty() && mutant.kind == "drop_initialisation" && !mutant.other_values.empty() &&
      any_value_will_do(mutant))
    j.equivalent =
        "any other value in its place (two were tried) gives the same: nothing that is used depends on it";
  return j;
}

bool Subject::any_value_will_do(const Mutant& mutant) {
  for (const std::string& text : mutant.other_values) {
    Mutant other = mutant;
    other.edit.text = text;
    if (run(other).outcome != HowFound::survived) return false;
  }
  return true;
}

Judgement Subject::run(const Mutant& mutant) {
  KernelCase c = case_;
  Candidate candidate = candidate_;
  if (mutant.plan) {
    Solution s = c.solution;
    for (SourceFile& file : s.sources)
      if (file.path == "launch.json") file.content = edited(file.content, mutant.edit);
    auto made = make_solution(std::move(s));
    if (!made) {
      Judgement j;
      j.outcome = HowFound::refused;
      j.finding = made.error().to_string();
      return j;
    }
    c.solution = *made;
    candidate.solution = c.solution;
  } else {
    std::string& text = candidate.modules[module_index_].ptx;
    text = edited(text, mutant.edit);
  }
  const auto start = std::chrono::steady_clock::now();
  const VerifyEvidence evidence = verify(*device_, c, candidate, std::max(5.0, 8 * seconds_));
  Judgement j;
  j.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (evidence.plan_error || evidence.not_applicable || evidence.unsupported) {
    j.outcome = HowFound::refused;
    j.finding = evidence.plan_error    ? evidence.plan_error->to_string()
                : evidence.unsupported ? evidence.unsupported->to_string()
                                       : *evidence.not_applicable;
    return j;
  }
  Verdict verdict;
  compose_correctness(evidence, verdict);
  const EmulatorFinding* worst = nullptr;
  if (evidence.emulator) {
    for (const EmulatorFinding& f : evidence.emulator->findings) {
      if (f.grade == EmulatorFinding::Grade::note) {
        if (known_notes_.insert(place_key(f)).second) {
          known_notes_.erase(place_key(f));
          j.note += f.code + ": " + first_lines(f.message, 160);
        }
        continue;
      }
      if (worst == nullptr) worst = &f;
    }
  }
  bool faulted = false;
  for (const TrialEvidence& t : evidence.trials) faulted = faulted || t.fault.has_value();
  if (worst != nullptr) {
    const bool late = worst->code == "deadlock" || worst->code == "step_limit" ||
                      worst->code == "time_limit" || worst->code == "partial_collective";
    j.outcome = worst->grade == EmulatorFinding::Grade::hazard ? HowFound::hazard
                : late                                         ? HowFound::deadlock
                                                               : HowFound::fault;
    j.code = worst->code;
    EmulatorReport one;
    one.findings = {*worst};
    j.finding = first_lines(words(one), 1500);
    j.has_line = true;
    // Of all findings: each names its line, and those of its detail.
    const std::set<std::uint32_t> affected = affected_lines(module_, mutant);
    std::set<std::string> sources;
    const auto source_of = [&](std::uint32_t line) {
      for (const ptx::Function& f : module_.functions)
        for (const ptx::Instruction& i : f.body)
          if (i.where.line == line) return module_.source_line(i.location);
      return std::string();
    };
    const std::string mutated = mutant.plan ? "" : source_of(mutant.line);
    for (const EmulatorFinding& f : evidence.emulator->findings) {
      if (f.grade == EmulatorFinding::Grade::note) continue;
      std::set<std::uint32_t> lines = lines_in(f.detail + "\n" + f.message);
      if (f.ptx_line != 0) lines.insert(f.ptx_line);
      for (const std::uint32_t line : lines)
        j.right_line =
            j.right_line || affected.count(line) != 0 || (!mutated.empty() && source_of(line) == mutated);
    }
    return j;
  }
  if (faulted) {
    j.outcome = HowFound::fault;
    for (const TrialEvidence& t : evidence.trials)
      if (t.fault) j.code = t.fault->name, j.finding = first_lines(t.fault->message, 600);
    return j;
  }
  if (verdict.status != Status::passed) {
    j.outcome = HowFound::wrong_result;
    for (const TrialEvidence& t : evidence.trials) j.code = t.schedule;
    for (const Finding& f : verdict.findings)
      if (f.severity == Severity::error) j.finding = first_lines(f.code + ": " + f.message, 300);
    return j;
  }
  for (const Finding& f : verdict.findings)
    if (f.code == "schedule_differs" && f.severity == Severity::warning) {
      j.outcome = HowFound::wrong_result;
      j.code = f.code;
      j.finding = f.message;
    }
  return j;
}

}  // namespace ptxbench::testing
