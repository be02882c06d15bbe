// One judgement: compile, verify, time, count; each stage's evidence is turned into the verdict by that stage's pure code.
#include "evaluate/judge.hpp"
#include "evaluate/python_reference.hpp"
#include "evaluate/stored.hpp"

#include "evaluate/check.hpp"
#include "evaluate/memory.hpp"
#include "core/guard.hpp"

#include "core/hash.hpp"

#include <sys/random.h>

#include <chrono>

namespace ptxbench {
namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t since(Clock::time_point start) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

Result<std::uint64_t> random_seed() {
  std::uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, 0) != static_cast<ssize_t>(sizeof seed))
    return make_error(ErrorCode::io, "the system gives no random numbers");
  return seed >> 1;  // a positive int64, so that JSON readers keep it
}

std::string content_hash(const Solution& solution) {
  Hasher hasher;
  hasher.field(solution.definition).field(solution.spec.language).field(solution.spec.entry_point);
  for (const SourceFile& file : solution.sources) hasher.field(file.path).field(file.content);
  return std::move(hasher).hex();
}

void add_constants(Hasher& hasher, const std::vector<std::pair<std::string, PlanNumber>>& constants) {
  for (const auto& [name, value] : constants)
    hasher.field(name).field(std::visit([](auto v) { return std::to_string(v); }, value));
}

void not_run(Verdict& verdict, const EvaluateOptions& options, std::string reason) {
  verdict.outcome = Outcome::not_run;
  verdict.outcome_reason = std::move(reason);
  if (!options.verify) return;
  verdict.correctness.state = Availability::unavailable;
  verdict.correctness.reason = verdict.outcome_reason;
  if (options.time) {
    verdict.timing.state = Availability::unavailable;
    verdict.timing.reason = verdict.outcome_reason;
  }
  if (options.count) {
    verdict.counts.state = Availability::unavailable;
    verdict.counts.reason = verdict.outcome_reason;
  }
}

constexpr const char* kNotTimed = "the emulator does not measure time: it says whether a kernel is right, not how fast it is";
constexpr const char* kNotCounted =
    "only the first workload of a request is counted; the option count_workloads \"all\" counts every one";

// The host's own, which are left alone once the request has been cancelled.
class RequestCallbacks final : public HostCallbacks {
 public:
  explicit RequestCallbacks(const Stages& stages) : local_(stages.callbacks()), cancel_(stages.cancel) {}
  Result<void> fill(const Workload& workload, std::uint64_t seed, int trial, std::span<HostTensor> inputs) override {
    if (cancel_.triggered()) return cancelled();
    return local_.fill(workload, seed, trial, inputs);
  }
  Result<void> compute(const Workload& workload, std::span<const HostTensor> inputs, std::span<HostTensor> outputs) override {
    if (cancel_.triggered()) return cancelled();
    return local_.compute(workload, inputs, outputs);
  }
  Result<std::vector<OutputCorrectness>> compare(const Workload& workload, std::span<const HostTensor> expected,
                                                 std::span<const HostTensor> got) override {
    if (cancel_.triggered()) return cancelled();
    return local_.compare(workload, expected, got);
  }

 private:
  static Error cancelled() { return make_error(ErrorCode::cancelled, "cancelled"); }
  LocalCallbacks local_;
  const CancelToken& cancel_;
};

KernelNames kernel_names(const Verdict& verdict) {
  KernelNames names;
  for (const KernelResources& kernel : verdict.compile.kernels) names.emplace_back(kernel.symbol, kernel.kernel);
  return names;
}

std::optional<double> task_flops(const Workload& workload) {
  const std::optional<TaskWork> work = task_work(workload);
  return work ? std::optional(work->flops) : std::nullopt;
}

// The same for the same request, so that a verdict can be repeated.
std::vector<EmulatorSchedule> schedules_of(std::uint64_t seed, int count) {
  std::vector<EmulatorSchedule> schedules;
  for (int i = 0; i < count; ++i) {
    if (i == 0) schedules.push_back({EmulatorSchedule::Mode::lazy, 0});
    else schedules.push_back({EmulatorSchedule::Mode::random, (seed + static_cast<std::uint64_t>(i)) & 0xffffffff});
  }
  return schedules;
}

// What was asked for and cannot be had for this candidate says so, and why.
void close_blocks(const Stages& stages, Verdict& verdict, const std::string& why) {
  const auto close = [&](auto& block, bool asked) {
    if (!asked || block.state != Availability::not_requested) return;
    block.state = Availability::unavailable;
    block.reason = why;
  };
  close(verdict.correctness, stages.options.verify);
  close(verdict.timing, stages.options.time);
  close(verdict.counts, stages.count);
  if (stages.options.count && !stages.count) verdict.counts.reason = kNotCounted;
}

// A sick device is the environment's fault: no verdict.
Result<void> not_sick(const DeviceFault& fault) {
  if (fault.kind != DeviceFault::Kind::hardware) return {};
  return make_error(ErrorCode::driver, "the device is sick: " + fault.name + ": " + fault.message);
}

// A worker's evidence is not trusted to be whole.
Result<void> check_evidence(const VerifyEvidence& evidence, const Workload& workload, int trials) {
  if (evidence.plan_error || evidence.not_applicable || evidence.unsupported) return {};
  const auto broken = [](const std::string& what) {
    return make_error(ErrorCode::worker, "the device worker's evidence is not whole: " + what);
  };
  bool faulted = false;
  std::size_t whole = 0;
  for (const TrialEvidence& trial : evidence.trials) {
    whole += trial.extra ? 0 : 1;
    if (trial.fault) PTXBENCH_TRY(not_sick(*trial.fault));
    faulted = faulted || trial.fault.has_value();
    if (!trial.fault && trial.outputs.size() != workload.definition->outputs.size())
      return broken(std::to_string(trial.outputs.size()) + " outputs in trial " + std::to_string(trial.trial));
  }
  if (!faulted && whole != static_cast<std::size_t>(trials))
    return broken(std::to_string(whole) + " of " + std::to_string(trials) + " trials");
  return {};
}

// Whether stages of other workloads may run beside those of this one: what both need fits well.
bool wants_whole_gpu(const MemoryNeed& need, std::uint64_t workspaces, const DeviceInfo& device) {
  return need.tensors + need.reference + workspaces > device.limits.memory_bytes / 5;  // a verification, three counts, the rest
}

VerifyJob verify_job(const Stages& stages, const Prepared& prepared) {
  const DeviceInfo& device = prepared.device;
  VerifyJob job;
  job.workload = stages.workload;
  job.candidate = prepared.candidate;
  job.seed = stages.seed;
  job.trials = stages.trials(device);
  job.run_deadline_ns = stages.run_deadline_ns(device);
  job.inputs = stages.inputs();
  job.reference = prepared.reference;
  job.comparator = protocol_comparator(stages.options.protocol, stages.judging.comparator);
  job.judge_cubin = prepared.judge_cubin;
  job.alone = prepared.alone;
  return job;
}

// The last of several trials is run after the timing: so many launches may have changed something.
bool last_after_timing(const Stages& stages, const DeviceInfo& device) {
  return stages.options.time && !device.emulated && stages.trials(device) > 1;
}

Result<void> verify(const Stages& stages, Prepared& prepared, Verdict& verdict) {
  const DeviceInfo& device = prepared.device;
  VerifyJob job = verify_job(stages, prepared);
  if (last_after_timing(stages, device)) --job.trials;
  if (device.emulated) {
    job.schedules = schedules_of(stages.seed, stages.options.schedules);
    job.small_sm_count = stages.options.small_sm_count;
    job.schedule_budget_ns = stages.options.schedule_budget_ns;
  }
  job.digest = stages.count && !device.emulated && job.inputs == InputKind::random;
  RequestCallbacks callbacks(stages);
  const Clock::time_point start = Clock::now();
  PTXBENCH_TRY_ASSIGN(const VerifyEvidence evidence,
                      stages.context.workers().verify(device.id, job, callbacks, stages.cancel));
  PTXBENCH_TRY(check_evidence(evidence, stages.workload, job.trials));
  compose_correctness(evidence, verdict);
  verdict.output_log.insert(0, evidence.output);
  if (job.digest && verdict.status == Status::passed)
    for (const OutputEvidence& output : evidence.trials[0].outputs)
      if (output.digest) prepared.verified.push_back(*output.digest);
  if (stages.count && evidence.emulator && verdict.status == Status::passed)
    compose_emulated_counts(*evidence.emulator, kernel_names(verdict), verdict, task_flops(stages.workload),
                            task_bytes(stages.workload));
  verdict.provenance.stages.push_back({"verify", since(start)});
  return {};
}

// What a noise floor belongs to.
std::string noise_key(const DeviceInfo& device, const Workload& workload, const TimeJob& job) {
  Hasher hasher;
  hasher.field(device.id).field(to_json(*workload.definition)).field(to_json(workload)).field(job.protocol).field(l2_state_name(job.l2));
  hasher.field(baseline_kind_name(job.baseline.kind));
  if (job.baseline.solution) {
    hasher.field(content_hash(job.baseline.solution->solution));
    add_constants(hasher, job.baseline.solution->constants);
  }
  return std::move(hasher).hex();
}

Result<void> time(const Stages& stages, const Prepared& prepared, Verdict& verdict) {
  const DeviceInfo& device = prepared.device;
  TimeJob job;
  job.workload = stages.workload;
  job.candidate = prepared.candidate;
  if (prepared.baseline) {
    job.baseline = *prepared.baseline;
  } else {
    PTXBENCH_TRY_ASSIGN(job.baseline, stages.baseline());
  }
  job.seed = stages.seed;
  job.pairs = stages.options.pairs;
  job.budget_ns = stages.options.time_budget_ns;
  job.stop_if_slower_than = stages.options.stop_if_slower_than;
  job.target_width = stages.options.target_width;
  job.l2 = stages.options.l2;
  job.protocol = stages.options.protocol;
  job.run_deadline_ns = stages.run_deadline_ns(device);
  job.inputs = stages.inputs();
  job.reference = prepared.reference;
  job.comparator = protocol_comparator(stages.options.protocol, stages.judging.comparator);
  job.judge_cubin = prepared.judge_cubin;
  const std::string key = noise_key(device, stages.workload, job);
  const std::optional<double> kept = stages.context.noise_floor(key);
  job.noise = !kept && job.protocol == kRigorous && job.baseline.kind != BaselineKind::none && job.baseline.kind != BaselineKind::fixed_time;
  RequestCallbacks callbacks(stages);
  const Clock::time_point start = Clock::now();
  PTXBENCH_TRY_ASSIGN(const TimeEvidence evidence,
                      stages.context.workers().time(device.id, job, callbacks,
                                                    {stages.options.before_timing, stages.options.after_timing}, stages.cancel));
  if (evidence.fault) PTXBENCH_TRY(not_sick(*evidence.fault));
  // One of a few pairs serves this timing only: another one measures it again.
  if (noise_interval(evidence.noise)) stages.context.keep_noise_floor(key, *noise_floor(evidence.noise));
  compose_timing(evidence, verdict, kept, roofline(stages.workload, device, job.l2, evidence.gpu.max_sm_mhz));
  verdict.provenance.stages.push_back({"time", since(start)});
  return {};
}

Result<void> verify_last(const Stages& stages, const Prepared& prepared, Verdict& verdict) {
  VerifyJob job = verify_job(stages, prepared);
  job.first_trial = job.trials - 1;
  job.trials = 1;
  job.alone = true;  // and so before what has not begun
  RequestCallbacks callbacks(stages);
  const Clock::time_point start = Clock::now();
  PTXBENCH_TRY_ASSIGN(const VerifyEvidence evidence,
                      stages.context.workers().verify(prepared.device.id, job, callbacks, stages.cancel));
  PTXBENCH_TRY(check_evidence(evidence, stages.workload, job.trials));
  if (evidence.trials.empty())
    return make_error(ErrorCode::worker, "the device worker's evidence is not whole: no trial after the timing");
  add_trial(evidence.trials[0], "in the trial after timing", verdict);
  verdict.output_log.insert(0, evidence.output);
  verdict.provenance.stages.push_back({"verify_last", since(start)});
  return {};
}

Result<void> count(const Stages& stages, const Prepared& prepared, Verdict& verdict) {
  const DeviceInfo& device = prepared.device;
  CountJob job;
  job.workload = stages.workload;
  job.candidate = prepared.candidate;
  job.seed = stages.seed;
  job.run_deadline_ns = stages.run_deadline_ns(device);
  job.inputs = stages.inputs();
  job.reference = prepared.reference;
  job.comparator = protocol_comparator(stages.options.protocol, stages.judging.comparator);
  job.judge_cubin = prepared.judge_cubin;
  job.verified = prepared.verified;
  job.alone = prepared.alone;
  RequestCallbacks callbacks(stages);
  const Clock::time_point start = Clock::now();
  PTXBENCH_TRY_ASSIGN(const CountEvidence evidence,
                      stages.context.workers().count(device.id, job, callbacks, stages.cancel));
  compose_counts(evidence, prepared.candidate.modules, kernel_names(verdict), verdict, task_flops(stages.workload),
                 task_bytes(stages.workload));
  verdict.provenance.stages.push_back({"count", since(start)});
  return {};
}

}  // namespace

int Stages::trials(const DeviceInfo& device) const { return options.trials.value_or(device.emulated ? 1 : 3); }

std::uint64_t Stages::run_deadline_ns(const DeviceInfo& device) const {
  return options.run_deadline_ns.value_or(device.emulated ? 300'000'000'000 : 10'000'000'000);
}

InputKind Stages::inputs() const { return judging.inputs ? InputKind::callback : InputKind::random; }

Result<Candidate> Stages::other(const SolutionChoice& choice, std::string_view part) const {
  EvaluateOptions own = options;
  own.constants = choice.constants;
  own.limits = {};  // they are the candidate's
  // Every candidate of a list is held against the same one: it is compiled once.
  Hasher hasher;
  hasher.field(content_hash(*choice.solution)).field(to_json(*workload.definition)).field(to_json(workload)).field(options.arch);
  add_constants(hasher, choice.constants);
  for (const SourceFile& header : options.headers) hasher.field(header.path).field(header.content);
  const std::string key = std::move(hasher).hex();
  if (const auto kept = context.kept_modules(key)) return Candidate{*choice.solution, choice.constants, *kept};
  PTXBENCH_TRY_ASSIGN(CompiledCandidate compiled,
                      compile_candidate(context, *choice.solution, workload, own, cancel));
  if (compiled.verdict.status || compiled.verdict.outcome == Outcome::not_applicable) {
    std::string why = compiled.verdict.outcome_reason;
    for (const Finding& finding : compiled.verdict.findings)
      if (finding.severity == Severity::error) why += (why.empty() ? "" : "; ") + finding.message;
    for (const Diagnostic& d : compiled.verdict.compile.diagnostics)
      if (d.severity == Severity::error) why += (why.empty() ? "" : "; ") + d.message;
    return make_error(ErrorCode::invalid_argument,
                      "the " + std::string(part) + " solution " + choice.solution->name + " cannot be used: " + why);
  }
  context.keep_modules(key, std::make_shared<const std::vector<CompiledModule>>(compiled.compiled.modules));
  return Candidate{*choice.solution, choice.constants, std::move(compiled.compiled.modules)};
}

Result<ReferenceSpec> Stages::reference() const {
  ReferenceSpec spec;
  if (const auto* choice = std::get_if<SolutionChoice>(&judging.reference)) {
    spec.kind = ReferenceKind::solution;
    PTXBENCH_TRY_ASSIGN(spec.solution, other(*choice, "reference"));
  } else if (std::holds_alternative<std::shared_ptr<Reference>>(judging.reference)) {
    spec.kind = ReferenceKind::callback;
  }
  return spec;
}

Result<BaselineSpec> Stages::baseline() const {
  BaselineSpec spec;
  if (const auto* choice = std::get_if<SolutionChoice>(&judging.baseline)) {
    spec.kind = BaselineKind::solution;
    PTXBENCH_TRY_ASSIGN(spec.solution, other(*choice, "baseline"));
  } else if (const auto* fixed = std::get_if<FixedTime>(&judging.baseline)) {
    spec.kind = BaselineKind::fixed_time;
    spec.fixed_ns = fixed->ns;
  } else if (std::holds_alternative<NoBaseline>(judging.baseline)) {
    spec.kind = BaselineKind::none;
  }
  return spec;
}

LocalCallbacks Stages::callbacks() const {
  const auto* own = std::get_if<std::shared_ptr<Reference>>(&judging.reference);
  return {judging.inputs.get(), own != nullptr ? own->get() : nullptr, judging.own_comparator.get()};
}

bool Stages::calls_back() const {
  return judging.inputs != nullptr || judging.own_comparator != nullptr ||
         std::holds_alternative<std::shared_ptr<Reference>>(judging.reference) || options.before_timing ||
         options.after_timing;
}

namespace {

// The last thing about a verdict: rules are over all of it.
void hold_to_contracts(const Stages& stages, Verdict& verdict) {
  verdict.contracts = check_contracts(stages.options.contracts, stages.workload.definition->op_type, verdict);
}

Result<Prepared> prepare_candidate(const Stages& stages, const Solution& solution, bool ahead) {
  const EvaluateOptions& options = stages.options;
  MemoryNeed need;
  if (options.verify) {
    // What the workload itself needs comes first: it is no candidate's fault.
    const Result<DeviceInfo> fits_on = stages.context.device(stages.cancel);
    if (fits_on) {
      PTXBENCH_TRY_ASSIGN(need, memory_need(stages.workload, stages.judging));
      PTXBENCH_TRY(check_memory(need, *fits_on, options));
    }
  }
  PTXBENCH_TRY_ASSIGN(CompiledCandidate compiled,
                      compile_candidate(stages.context, solution, stages.workload, options, stages.cancel));
  Prepared out;
  out.closed = true;
  out.verdict = std::move(compiled.verdict);
  Verdict& verdict = out.verdict;
  verdict.provenance.seed = stages.seed;
  if (verdict.status || verdict.outcome == Outcome::not_applicable) {
    close_blocks(stages, verdict, verdict.status ? "the candidate does not compile" : "the plan does not apply to this workload");
    return out;
  }
  if (!options.verify) {
    not_run(verdict, options, "verification was not requested");
    return out;
  }
  const Result<DeviceInfo> device = stages.context.device(stages.cancel);
  if (!device) {
    // Only the absence of a device is a fact about the machine that a verdict can state; anything else is an Error.
    if (!no_gpu(device.error())) return device.error();
    not_run(verdict, options, "no device: " + device.error().to_string());
    return out;
  }
  if (device->arch != verdict.compile.arch) {
    not_run(verdict, options, "it was compiled for " + verdict.compile.arch + ", and " + device->id + " (" + device->name +
                                  ") is " + device->arch);
    return out;
  }
  if (std::optional<Finding> finding = check_workspaces(need, compiled.workspace_bytes, *device)) {
    verdict.outcome = Outcome::judged;
    verdict.status = Status::compile_error;
    verdict.findings.push_back(std::move(*finding));
    close_blocks(stages, verdict, "the candidate's workspaces do not fit");
    return out;
  }
  out.closed = false;
  out.alone = wants_whole_gpu(need, compiled.workspace_bytes, *device);
  out.device = *device;
  verdict.provenance.device = device->id;
  verdict.provenance.device_name = device->name;
  for (const auto& version : device->versions) verdict.provenance.versions.push_back(version);
  if (!device->emulated) {
    PTXBENCH_TRY_ASSIGN(out.judge_cubin, stages.context.judge_cubin(device->arch, stages.cancel));
  }
  PTXBENCH_TRY_ASSIGN(out.reference, stages.reference());
  if (ahead && options.time && !device->emulated) {
    PTXBENCH_TRY_ASSIGN(out.baseline, stages.baseline());
  }
  out.candidate = Candidate{solution, options.constants, std::move(compiled.compiled.modules)};
  return out;
}

Result<Verdict> run_stages(const Stages& stages, Prepared prepared) {
  Verdict verdict = std::move(prepared.verdict);
  // Started meanwhile, and ready before anything is timed.
  if (stages.count && !prepared.device.emulated) stages.context.workers().prepare_count(prepared.device.id);
  PTXBENCH_TRY(verify(stages, prepared, verdict));
  if (prepared.device.emulated) {
    // Verification has counted; nothing here measures time.
    if (verdict.outcome == Outcome::not_run) close_blocks(stages, verdict, verdict.outcome_reason);
    if (stages.options.time && verdict.timing.state == Availability::not_requested) {
      verdict.timing.state = Availability::unavailable;
      verdict.timing.reason = kNotTimed;
    }
    close_blocks(stages, verdict, "the candidate did not pass verification");
    return verdict;
  }
  if (verdict.status == Status::passed && stages.options.time) {
    PTXBENCH_TRY(time(stages, prepared, verdict));
    if (verdict.status == Status::passed && last_after_timing(stages, prepared.device)) PTXBENCH_TRY(verify_last(stages, prepared, verdict));
  }
  if (verdict.status == Status::passed && stages.count) PTXBENCH_TRY(count(stages, prepared, verdict));
  close_blocks(stages, verdict, verdict.timing.state == Availability::not_requested ? "the candidate did not pass verification"
                                                                                     : "the candidate failed in a timed run");
  return verdict;
}

}  // namespace

Result<Prepared> prepare(const Stages& stages, const Solution& solution, bool ahead) {
  PTXBENCH_TRY_ASSIGN(Prepared out, prepare_candidate(stages, solution, ahead));
  if (out.closed) hold_to_contracts(stages, out.verdict);
  return out;
}

Result<Verdict> measure(const Stages& stages, Prepared prepared) {
  if (prepared.closed) return std::move(prepared.verdict);
  PTXBENCH_TRY_ASSIGN(Verdict verdict, run_stages(stages, std::move(prepared)));
  hold_to_contracts(stages, verdict);
  return verdict;
}

bool counts(const EvaluateOptions& options, std::size_t index) noexcept {
  return options.count && (options.count_workloads == CountScope::all || index == 0);
}

namespace {

// Stored tensors and Python references are callbacks like a host's own.
Judging serve(const Judging& judging, std::span<const Workload> workloads, const CancelToken& cancel) {
  Judging served = judging;
  if (served.inputs == nullptr && std::any_of(workloads.begin(), workloads.end(), has_stored_inputs))
    served.inputs = make_stored_inputs(judging.data_root);
  const bool golden = std::holds_alternative<GoldenReference>(judging.reference) ||
                      (std::holds_alternative<NativeReference>(judging.reference) &&
                       !has_native_reference(*workloads[0].definition) &&
                       std::all_of(workloads.begin(), workloads.end(), has_golden_outputs));
  if (golden) served.reference = make_golden_reference(judging.data_root);
  if (const auto* python = std::get_if<PythonReference>(&judging.reference)) served.reference = make_python_reference(*python, cancel);
  return served;
}

}  // namespace

Result<Begun> begin_evaluation(const Solution& solution, std::span<const Workload> workloads, const Judging& judging,
                               const EvaluateOptions& options, const CancelToken& cancel) {
  PTXBENCH_TRY(check_options(options));
  PTXBENCH_TRY(check_request(solution, workloads, judging, options));
  Begun begun;
  begun.judging = serve(judging, workloads, cancel);
  begun.evaluation.solution = solution.name;
  begun.evaluation.solution_hash = content_hash(solution);
  begun.evaluation.definition = workloads[0].definition->name;
  if (options.seed) {
    begun.seed = *options.seed;
  } else {
    PTXBENCH_TRY_ASSIGN(begun.seed, random_seed());
  }
  return begun;
}

namespace {

Result<Evaluation> run(Context& context, const Solution& solution, std::span<const Workload> workloads,
                       const Judging& judging, const EvaluateOptions& options, const CancelToken& cancel) {
  PTXBENCH_TRY_ASSIGN(Begun begun, begin_evaluation(solution, workloads, judging, options, cancel));
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    if (cancel.triggered()) return make_error(ErrorCode::cancelled, "cancelled");
    const Stages stages{ContextImpl::of(context), workloads[i], begun.judging, options, cancel, begun.seed, counts(options, i)};
    PTXBENCH_TRY_ASSIGN(Prepared prepared, prepare(stages, solution, false));
    PTXBENCH_TRY_ASSIGN(Verdict verdict, measure(stages, std::move(prepared)));
    begun.evaluation.verdicts.push_back(std::move(verdict));
  }
  return std::move(begun.evaluation);
}

}  // namespace

Result<Evaluation> evaluate(Context& context, const Solution& solution, std::span<const Workload> workloads,
                            const Judging& judging, const EvaluateOptions& options, const CancelToken& cancel) {
  return guarded([&] { return run(context, solution, workloads, judging, options, cancel); });
}

}  // namespace ptxbench
