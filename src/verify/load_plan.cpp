// Binding, loading and resolving a Solution on a device, and whose fault it is where that fails.
#include "verify/session.hpp"

#include <algorithm>

namespace ptxbench {
namespace {

// Errors of the environment keep their way; the rest is what the Solution asked for.
bool candidates_fault(const Error& error) {
  switch (error.code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::parse:
    case ErrorCode::not_found:
    case ErrorCode::unsupported:
      return true;
    default:
      return false;
  }
}

}  // namespace

LoadedPlan::~LoadedPlan() {
  globals.reset();
  for (const DeviceModule module : modules) device.unload(module);
}

Result<std::unique_ptr<LoadedPlan>> load_plan(Device& device, const Candidate& candidate,
                                              const Workload& workload, const ScalarValues& scalars,
                                              PlanProblem& problem) {
  using Loaded = std::unique_ptr<LoadedPlan>;
  EmulatedDevice* const emulator = device.emulator();
  const auto at_fault = [&](Error error, std::string_view rule) -> Result<Loaded> {
    if (!candidates_fault(error)) return error;
    // What the driver says of a GPU is a fact about the code; what the emulator does not know, one about the emulator.
    if (emulator != nullptr && error.code == ErrorCode::unsupported && rule == "module_load") {
      problem.unsupported = std::move(error);
      return Loaded{};
    }
    if (error.rule.empty()) error.rule = rule;
    problem.error = std::move(error);
    return Loaded{};
  };

  const SourceFile* file = candidate.solution.find_source("launch.json");
  if (file == nullptr)
    return at_fault(make_error(ErrorCode::not_found, "the solution \"" + candidate.solution.name +
                                                         "\" has no launch.json among its sources"),
                    "plan_invalid");
  Result<LaunchPlan> plan = LaunchPlan::parse(file->content, file->path);
  if (!plan) return at_fault(std::move(plan).error(), "plan_invalid");
  Result<BoundPlan> bound =
      bind_plan(*plan, candidate.solution, workload, {device.info().limits, candidate.constants});
  if (!bound) return at_fault(std::move(bound).error(), "plan_invalid");
  if (!bound->applicable) {
    problem.not_applicable = bound->not_applicable_reason;
    return Loaded{};
  }

  auto loaded = std::make_unique<LoadedPlan>(device);
  std::vector<ModuleInfo> infos;
  for (const BoundSource& source : bound->sources) {
    const auto found = std::find_if(candidate.modules.begin(), candidate.modules.end(),
                                    [&](const CompiledModule& m) { return m.source == source.path; });
    if (found == candidate.modules.end())
      return make_error(ErrorCode::invalid_argument,
                        "the job has no compiled module for " + source.path + ", which the plan uses");
    Result<DeviceModule> module = device.load({found->source, found->cubin, found->ptx, found->lowered});
    if (!module) return at_fault(std::move(module).error(), "module_load");
    loaded->modules.push_back(*module);
    PTXBENCH_TRY_ASSIGN(ModuleInfo info, device.describe(*module));
    info.source = source.path;
    info.lowered = found->lowered;
    infos.push_back(std::move(info));
  }
  Result<ResolvedPlan> resolved = resolve_plan(*bound, infos, scalars, device.queries(loaded->modules));
  if (!resolved) return at_fault(std::move(resolved).error(), "plan_invalid");
  // Before anything runs: each kernel that will be launched is one that the emulator knows all of.
  if (emulator != nullptr)
    for (const ResolvedOperation& operation : resolved->operations)
      if (const auto* launch = std::get_if<ResolvedLaunch>(&operation))
        if (Result<void> ready = emulator->prepare(loaded->modules[launch->module], launch->symbol); !ready)
          return at_fault(std::move(ready).error(), "module_load");
  loaded->plan = std::move(*resolved);
  loaded->findings = std::move(bound->findings);
  for (Finding& finding : loaded->plan.findings) loaded->findings.push_back(std::move(finding));
  PTXBENCH_TRY_ASSIGN(loaded->globals, GlobalsImage::capture(device, loaded->modules));
  return loaded;
}

Result<std::unique_ptr<LoadedPlan>> load_trusted_plan(Device& device, const Candidate& candidate,
                                                      const Workload& workload, const ScalarValues& scalars,
                                                      std::string_view role) {
  PlanProblem problem;
  PTXBENCH_TRY_ASSIGN(auto loaded, load_plan(device, candidate, workload, scalars, problem));
  const std::string who = "the " + std::string(role) + " solution \"" + candidate.solution.name + "\" ";
  if (problem.error) {
    Error error = std::move(*problem.error);
    error.message = who + "cannot be used: " + error.message;
    return error;
  }
  if (problem.unsupported) {
    Error error = std::move(*problem.unsupported);
    error.message = who + "cannot be used on " + device.info().id + ": " + error.message;
    return error;
  }
  if (problem.not_applicable)
    return make_error(ErrorCode::invalid_argument,
                      who + "is not applicable to this workload: " + *problem.not_applicable);
  return loaded;
}

ScalarValues draw_scalars(const Workload& workload, std::uint64_t request_seed) {
  ScalarValues scalars = scalars_of(workload);
  const std::uint64_t seed = trial_seed(request_seed, workload.uuid, -1);
  for (const TensorSpec& input : workload.definition->inputs) {
    if (!input.is_scalar()) continue;
    if (std::any_of(scalars.begin(), scalars.end(), [&](const auto& s) { return s.first == input.name; }))
      continue;
    const std::uint64_t r = tensor_key(seed, input.name);
    if (input.dtype == DType::boolean) {
      scalars.emplace_back(input.name, PlanNumber((r & 1) != 0));
    } else if (judge::type_is_float(static_cast<judge::u32>(input.dtype))) {
      scalars.emplace_back(input.name,
                           PlanNumber(0.5 + static_cast<double>(r % 257) / 256));  // in [0.5, 1.5]
    } else {
      scalars.emplace_back(input.name, PlanNumber(static_cast<std::int64_t>(1 + r % 8)));
    }
  }
  return scalars;
}

}  // namespace ptxbench
