// The count stage: one run of the plan while a counter looks, verified like a trial.
#include "core/guard.hpp"
#include "count/match.hpp"
#include "plan/tensor_map.hpp"
#include "verify/session.hpp"
#include "verify/trial.hpp"
#include "verify/stopwatch.hpp"

#include <ptxbench/sass.hpp>

#include <algorithm>

namespace ptxbench {
namespace {

using Kind = CountUnavailable::Kind;

// What the request or a callback is to blame for stays an Error; the rest only means that there are no
// counts.
bool only_unavailable(const Error& error) {
  switch (error.code) {
    case ErrorCode::driver:
    case ErrorCode::no_device:
    case ErrorCode::toolkit:
    case ErrorCode::no_memory:
      return true;
    default:
      return false;
  }
}

// What a copy of a tile moves; parts of the box outside of the tensor count, since TMA fills them.
std::optional<std::uint64_t> box_bytes(const ResolvedTensorMap& map) {
  if (map.im2col || map.box.empty()) return std::nullopt;
  std::uint64_t elements = 1;
  for (std::size_t d = 0; d < map.box.size(); ++d) {
    const std::uint64_t step = d < map.element_strides.size() && map.element_strides[d] != 0 ? map.element_strides[d] : 1;
    elements *= (map.box[d] + step - 1) / step;
  }
  return elements * static_cast<std::uint64_t>(plan::tensor_map_type_bits(map.data_type)) / 8;
}

class Counting {
 public:
  Counting(Device& device, const CountJob& job, HostCallbacks& callbacks, SassCounter& counter)
      : device_(device), job_(job), callbacks_(callbacks), counter_(counter) {}

  // Where this ends early, `evidence` says why, or the Error does.
  Result<void> run(CountEvidence& evidence) {
    if (job_.workload.definition == nullptr)
      return make_error(ErrorCode::invalid_argument, "the workload has no definition");
    if (job_.trial < 0)
      return make_error(ErrorCode::invalid_argument, "a trial's number must not be negative");
    Stopwatch watch(evidence.stages);
    evidence.method = counter_.method();
    PTXBENCH_TRY(read_modules());
    evidence.unavailable = counter_.prepare(device_);
    evidence.versions = counter_.versions();
    watch.lap("cupti");
    if (evidence.unavailable) return {};
    PTXBENCH_TRY(load(evidence));
    watch.lap("plan");
    if (evidence.unavailable) return {};
    return run_once(evidence, watch);
  }

 private:
  Result<void> read_modules() {
    for (const CompiledModule& module : job_.candidate.modules) {
      modules_.emplace_back();
      if (module.cubin.empty()) continue;  // the driver assembles it: find_driver_code
      PTXBENCH_TRY_ASSIGN(modules_.back().symbols, symbols_of(module.cubin));
    }
    return {};
  }

  static Result<std::vector<std::string>> symbols_of(const std::vector<std::uint8_t>& code) {
    PTXBENCH_TRY_ASSIGN(const sass::Cubin cubin, sass::read_cubin(code));
    std::vector<std::string> symbols;
    for (const sass::Kernel& kernel : cubin.kernels) symbols.push_back(kernel.symbol);
    return symbols;
  }

  // The code of modules that the driver assembled: of all that was loaded with the plan, in the order of the
  // candidate's modules, the first that has the kernels which the plan launches from such a module.
  void find_driver_code(CountEvidence& evidence) {
    const std::vector<CompiledModule>& modules = job_.candidate.modules;
    const bool wanted = std::any_of(modules.begin(), modules.end(), [](const CompiledModule& m) { return m.cubin.empty(); });
    std::vector<std::vector<std::uint8_t>> loaded = counter_.loaded_code();
    if (!wanted) return;
    for (std::vector<std::uint8_t>& code : loaded) {
      Result<std::vector<std::string>> symbols = symbols_of(code);
      if (!symbols) continue;
      for (std::size_t m = 0; m < modules.size(); ++m) {
        if (!modules[m].cubin.empty() || !modules_[m].symbols.empty()) continue;
        if (std::none_of(symbols->begin(), symbols->end(), [&](const std::string& s) { return entry_of(modules[m], s); })) continue;
        modules_[m].symbols = std::move(*symbols);
        evidence.driver_code.push_back({m, std::move(code)});
        break;
      }
    }
    for (std::size_t m = 0; m < modules.size(); ++m)
      if (modules[m].cubin.empty() && modules_[m].symbols.empty())
        evidence.unavailable = {Kind::no_cubin,
                                modules[m].source +
                                    " was assembled by the driver when it was loaded, and CUPTI did not show its "
                                    "code: with ptxas (nvidia-cuda-nvcc) on this machine it can be counted"};
  }

  // Whether the PTX defines the kernel: its name stands behind ".entry". By the text, since the driver takes PTX that is newer than
  // our parser.
  static bool entry_of(const CompiledModule& module, const std::string& symbol) {
    constexpr std::string_view kEntry = ".entry";
    const std::string_view text = module.ptx;
    for (std::size_t at = text.find(kEntry); at != text.npos; at = text.find(kEntry, at + 1)) {
      const std::size_t name = text.find_first_not_of(" \t\r\n", at + kEntry.size());
      if (name == text.npos || text.substr(name, symbol.size()) != symbol) continue;
      const std::size_t end = name + symbol.size();
      if (end == text.size() || std::string_view(" \t\r\n(").find(text[end]) != std::string_view::npos) return true;
    }
    return false;
  }

  const std::vector<std::uint8_t>& code_of(std::size_t module, const CountEvidence& evidence) const {
    for (const DriverCode& code : evidence.driver_code)
      if (code.module == module) return code.cubin;
    return job_.candidate.modules[module].cubin;
  }

  Result<void> load(CountEvidence& evidence) {
    PTXBENCH_TRY_ASSIGN(layouts_, tensor_layouts(job_.workload));
    const ScalarValues scalars = draw_scalars(job_.workload, job_.seed);
    PlanProblem problem;
    PTXBENCH_TRY_ASSIGN(loaded_, load_plan(device_, job_.candidate, job_.workload, scalars, problem));
    if (!loaded_) {
      evidence.unavailable = {Kind::plan,
                              problem.not_applicable
                                  ? "not applicable: " + *problem.not_applicable
                                  : "the launch plan cannot be run: " + problem.error->to_string()};
      return {};
    }
    find_driver_code(evidence);
    if (evidence.unavailable) return {};
    PTXBENCH_TRY_ASSIGN(judge_, make_judge_ops(device_, job_.judge_cubin));
    PTXBENCH_TRY_ASSIGN(expected_, ExpectedSource::create(device_, job_.workload, layouts_, job_.reference,
                                                          job_.comparator.kind == ComparatorKind::model_error,
                                                          scalars, job_.run_deadline_ns));
    return {};
  }

  Result<void> set_up(TrialEvidence& trial) {
    trial.trial = job_.trial;
    trial.seed = trial_seed(job_.seed, job_.workload.uuid, job_.trial);
    trial.poison = 0xff;  // NaN in every float type
    const judge::Distribution distribution = distribution_of_trial(job_.trial);
    trial.distribution = job_.inputs == InputKind::callback ? "callback" : distribution_name(distribution);
    if (job_.inputs == InputKind::callback) {
      PTXBENCH_TRY_ASSIGN(inputs_,
                          Inputs::callback(job_.workload, layouts_, job_.seed, job_.trial, callbacks_));
    } else {
      PTXBENCH_TRY_ASSIGN(inputs_, Inputs::random(job_.workload, layouts_, trial.seed, distribution));
    }
    PTXBENCH_TRY_ASSIGN(buffers_, TensorBuffers::allocate(device_, layouts_, trial.seed, true));
    PTXBENCH_TRY_ASSIGN(
        runner_, PlanRunner::create(device_, loaded_->plan, loaded_->modules, buffers_.plan_buffers()));
    return arm_trial(parts(), trial.poison);
  }

  Result<void> run_once(CountEvidence& evidence, Stopwatch& watch) {
    TrialEvidence trial;
    PTXBENCH_TRY(set_up(trial));
    watch.lap("inputs");
    // From here to `finish` nothing but the candidate runs.
    evidence.unavailable = counter_.start();
    if (evidence.unavailable) return {};
    PTXBENCH_TRY_ASSIGN(DeviceOutcome outcome, runner_->enqueue());
    if (!outcome) {
      PTXBENCH_TRY_ASSIGN(outcome, device_.synchronize(job_.run_deadline_ns));
    }
    watch.lap("run");
    if (outcome) {
      counter_.abandon();
      const bool hang = outcome->kind == DeviceFault::Kind::timeout;
      evidence.unavailable = {hang ? Kind::hang : Kind::fault,
                              std::string("the counted run, whose code is patched, ") +
                                  (hang ? "did not end before its deadline: " : "ended in a fault: ") +
                                  outcome->name + ": " + outcome->message};
      trial.fault = std::move(*outcome);
      evidence.trial = std::move(trial);
      return {};
    }
    std::vector<SassRecord> records;
    evidence.unavailable = counter_.finish(records);
    if (!evidence.unavailable) sort(records, evidence);
    watch.lap("flush");
    return verify(evidence, std::move(trial), watch);
  }

  void sort(const std::vector<SassRecord>& records, CountEvidence& evidence) {
    for (std::size_t m = 0; m < modules_.size(); ++m)
      modules_[m].cubin_crc = counter_.cubin_crc(code_of(m, evidence));
    std::vector<std::pair<std::size_t, std::string>> launched;
    for (const ResolvedOperation& operation : loaded_->plan.operations)
      if (const auto* launch = std::get_if<ResolvedLaunch>(&operation)) {
        // The plan's modules are those that it uses, in the order of their sources in the job.
        launched.emplace_back(job_module(launch->module, launch->symbol), launch->symbol);
      }
    match_records(records, modules_, launched, evidence);
    for (const ResolvedOperation& operation : loaded_->plan.operations)
      if (const auto* launch = std::get_if<ResolvedLaunch>(&operation)) add_maps(*launch, evidence);
  }

  // The tensor maps in the launch's parameters. Records are sums over a kernel's launches, so those must have equal boxes.
  void add_maps(const ResolvedLaunch& launch, CountEvidence& evidence) const {
    const std::size_t module = job_module(launch.module, launch.symbol);
    for (const Patch& patch : launch.patches) {
      const std::size_t* index = std::get_if<std::size_t>(&patch.what);
      if (index == nullptr || *index >= loaded_->plan.maps.size()) continue;
      CountedMap map{module, launch.symbol, patch.offset, box_bytes(loaded_->plan.maps[*index])};
      const auto known = std::find_if(evidence.maps.begin(), evidence.maps.end(), [&](const CountedMap& m) {
        return m.module == module && m.symbol == launch.symbol && m.offset == patch.offset;
      });
      if (known == evidence.maps.end())
        evidence.maps.push_back(std::move(map));
      else if (known->box_bytes != map.box_bytes)
        known->box_bytes.reset();
    }
  }

  // The plan numbers the modules of the sources that it binds; the job may hold them in another order.
  std::size_t job_module(std::size_t plan_module, const std::string& symbol) const {
    const auto has = [&](std::size_t m) {
      return m < modules_.size() && std::find(modules_[m].symbols.begin(), modules_[m].symbols.end(),
                                              symbol) != modules_[m].symbols.end();
    };
    if (has(plan_module)) return plan_module;
    for (std::size_t m = 0; m < modules_.size(); ++m)
      if (has(m)) return m;
    return plan_module;
  }

  Result<void> verify(CountEvidence& evidence, TrialEvidence trial, Stopwatch& watch) {
    PTXBENCH_TRY_ASSIGN(OutputValues got, take_outputs(parts(), trial, watch));
    // A callback may have given other inputs than it did then.
    if (!job_.verified.empty() && trial.violations.empty() && job_.inputs == InputKind::random) {
      PTXBENCH_TRY_ASSIGN(const std::vector<OutputDigest> digests, digest_outputs(*judge_, got, trial.seed));
      evidence.as_verified = digests == job_.verified;
      watch.lap("compare");
    }
    if (!evidence.as_verified) PTXBENCH_TRY(judge_outputs(parts(), std::move(got), trial, watch));
    evidence.trial = std::move(trial);
    return {};
  }

  TrialParts parts() {
    return {device_, job_.workload, job_.comparator, layouts_, *loaded_, *judge_, *expected_, inputs_, buffers_, *runner_, callbacks_};
  }

  Device& device_;
  const CountJob& job_;
  HostCallbacks& callbacks_;
  SassCounter& counter_;
  std::vector<CountedModule> modules_;  // as in the job
  TensorLayouts layouts_;
  std::unique_ptr<LoadedPlan> loaded_;
  std::unique_ptr<JudgeOps> judge_;
  std::unique_ptr<ExpectedSource> expected_;
  Inputs inputs_;
  TensorBuffers buffers_;
  std::unique_ptr<PlanRunner> runner_;  // after buffers_: it goes first
};

}  // namespace

Result<CountEvidence> run_count_with(Device& device, const CountJob& job, HostCallbacks& callbacks,
                                     SassCounter& counter) {
  CountEvidence evidence;
  if (Result<void> done = Counting(device, job, callbacks, counter).run(evidence); !done) {
    if (!only_unavailable(done.error())) return std::move(done).error();
    // Unverified counts are none.
    evidence.kernels.clear();
    evidence.trial.reset();
    evidence.unavailable = {Kind::driver, "the counted run could not be made: " + done.error().to_string()};
  }
  if (evidence.unavailable) evidence.kernels.clear();
  return evidence;
}

Result<CountEvidence> run_count(Device& device, const CountJob& job, HostCallbacks& callbacks,
                                const std::string& cuda_home) {
  return guarded([&]() -> Result<CountEvidence> {
    const std::unique_ptr<SassCounter> counter = make_cupti_counter(cuda_home);
    return run_count_with(device, job, callbacks, *counter);
  });
}

}  // namespace ptxbench
