// Judges a kernel of the collection on an emulator in this process.
#pragma once

#include "support/kernel_cases.hpp"

#include <ptxbench/emulator.hpp>
#include <ptxbench/verify.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ptxbench::testing {

// A context that compiles and runs nothing.
inline std::shared_ptr<Context> compile_only_context() {
  ContextOptions options;
  options.device = "none";
  options.worker_path = PTXBENCH_BINARY_DIR "/bin/ptxbench-worker";
  auto context = Context::create(options);
  if (!context) FAIL(context.error().to_string());
  return *context;
}

inline Candidate compiled_case(Context& context, const KernelCase& c) {
  EvaluateOptions options;
  options.arch = "sm_90a";
  auto pack = KnowledgePack::load(PTXBENCH_SOURCE_DIR "/knowledge_packs/hopper");
  if (!pack) FAIL(pack.error().to_string());
  options.headers = (*pack)->headers();
  auto compiled = compile_candidate(context, c.solution, c.workload, options);
  if (!compiled) FAIL(c.name << ": " << compiled.error().to_string());
  if (compiled->verdict.status) FAIL(c.name << ": " << to_json(compiled->verdict));
  return {c.solution, {}, compiled->compiled.modules};
}

struct Emulation {
  Verdict verdict;
  EmulatorReport report;
  VerifyEvidence evidence;
};

inline Emulation emulate(EmulatedDevice& device, const KernelCase& c, const Candidate& candidate,
                         const EmulatorSchedule& schedule, Comparator* comparator = nullptr,
                         std::uint64_t seed = 1, std::uint64_t deadline_ns = 60'000'000'000) {
  VerifyJob job;
  job.workload = c.workload;
  job.candidate = candidate;
  job.seed = seed;
  job.trials = 1;
  job.run_deadline_ns = deadline_ns;
  job.comparator = c.judging.comparator;
  CaseReference reference;
  LocalCallbacks callbacks(nullptr, &reference, comparator);
  if (comparator != nullptr) job.comparator.kind = ComparatorKind::callback;
  if (!std::holds_alternative<NativeReference>(c.judging.reference))
    job.reference.kind = ReferenceKind::callback;
  device.set_schedule(schedule);
  device.begin_report();
  auto evidence = run_verify(device, job, callbacks);
  if (!evidence) FAIL(c.name << ": " << evidence.error().to_string());
  Emulation out;
  out.evidence = *evidence;
  compose_correctness(*evidence, out.verdict);
  out.report = device.report();
  return out;
}

inline std::string words(const EmulatorReport& report) {
  std::string text;
  for (const EmulatorFinding& f : report.findings)
    text += (f.grade == EmulatorFinding::Grade::fault    ? "fault "
             : f.grade == EmulatorFinding::Grade::hazard ? "hazard "
                                                         : "note ") +
            f.code + ": " + f.message + " [" + f.instruction + ", PTX line " + std::to_string(f.ptx_line) +
            ", " + f.source + ", CTA " + std::to_string(f.cta) + ", warp " + std::to_string(f.warp) +
            ", lane " + std::to_string(f.lane) + ", " + std::to_string(f.times) + " times]\n" + f.detail;
  return text;
}

}  // namespace ptxbench::testing
