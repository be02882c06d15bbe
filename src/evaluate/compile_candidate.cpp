// The first stages of a judgement, which need no device: parse the plan, bind it, compile, and check against the
// compiled code whatever can be known before a launch.
#include "evaluate/context.hpp"
#include "evaluate/limits.hpp"
#include "evaluate/module_info.hpp"
#include "evaluate/requested.hpp"
#include "plan/occupancy.hpp"
#include "core/guard.hpp"

#include <ptxbench/evaluate.hpp>

#include <algorithm>
#include <chrono>
#include <string>

namespace ptxbench {
namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t since(Clock::time_point start) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

// Errors of these codes are the environment's; any other that plan functions give is the candidate's.
bool environment_fault(const Error& error) {
  switch (error.code) {
    case ErrorCode::parse:
    case ErrorCode::invalid_argument:
    case ErrorCode::not_found:
    case ErrorCode::unsupported: return false;
    default: return true;
  }
}

void refuse(Verdict& verdict, Finding finding) {
  verdict.outcome = Outcome::judged;
  verdict.status = Status::compile_error;
  verdict.findings.push_back(std::move(finding));
}

void refuse(Verdict& verdict, const Error& error, std::string_view fallback_rule) {
  Finding finding;
  finding.code = error.rule.empty() ? std::string(fallback_rule) : error.rule;
  finding.severity = Severity::error;
  finding.message = error.to_string();
  refuse(verdict, std::move(finding));
}

Result<const SourceFile*> plan_text(const Solution& solution) {
  const std::string& entry = solution.spec.entry_point;
  const std::string path = entry.substr(0, entry.find("::"));
  if (solution.spec.language != "cuda" || path != "launch.json")
    return make_error(ErrorCode::unsupported,
                      "this library judges solutions of language \"cuda\" whose entry point is \"launch.json::run\"; "
                      "this one has language \"" + solution.spec.language + "\" and entry point \"" + entry + "\"",
                      {}, "plan_invalid");
  const SourceFile* file = solution.find_source("launch.json");
  if (file == nullptr)
    return make_error(ErrorCode::not_found, "the solution has no source \"launch.json\"", {}, "plan_invalid");
  return file;
}

Result<DeviceLimits> limits_of(Context& context, const std::string& arch, const CancelToken& cancel) {
  if (context.options().device != "none") {
    Result<DeviceInfo> device = ContextImpl::of(context).device(cancel);
    if (device && device->arch == arch) return device->limits;
  }
  return profile_for_arch(arch);
}

// What to compile for: what was asked for, else what the device is, else sm_90a (no device, or one that nothing can be compiled
// for: the verdict then says that it was not run, and why).
Result<std::string> arch_of(Context& context, const EvaluateOptions& options, const CancelToken& cancel) {
  if (!options.arch.empty()) return options.arch;
  if (context.options().device != "none") {
    const Result<DeviceInfo> device = ContextImpl::of(context).device(cancel);
    if (device && find_architecture(device->arch)) return device->arch;
    if (!device && !no_gpu(device.error())) return device.error();
  }
  return std::string("sm_90a");
}

// The plan's name of a kernel symbol: `as`, else the name expression; the symbol where no step launches it.
void name_kernels(const ResolvedPlan& resolved, CompileBlock& block) {
  for (KernelResources& kernel : block.kernels)
    for (const ResolvedOperation& operation : resolved.operations)
      if (const auto* launch = std::get_if<ResolvedLaunch>(&operation); launch && launch->symbol == kernel.symbol) {
        kernel.kernel = launch->name;
        kernel.dynamic_shared_bytes = std::max(kernel.dynamic_shared_bytes, launch->dynamic_shared_bytes);
      }
}

void fill_occupancy(const ResolvedPlan& resolved, const DeviceQueries& queries, CompileBlock& block) {
  for (const ResolvedOperation& operation : resolved.operations) {
    const auto* launch = std::get_if<ResolvedLaunch>(&operation);
    if (launch == nullptr) continue;
    for (KernelResources& kernel : block.kernels) {
      if (kernel.symbol != launch->symbol || kernel.occupancy_ctas_per_sm) continue;
      const Result<std::int64_t> ctas = queries.occupancy(
          {launch->module, launch->symbol, launch->block, launch->cluster, launch->dynamic_shared_bytes});
      if (ctas) kernel.occupancy_ctas_per_sm = static_cast<int>(*ctas);
    }
  }
}

// Random scalars are drawn by the judge; for a check without a run any value of the right kind will do.
ScalarValues scalars_or_ones(const Workload& workload) {
  ScalarValues scalars = scalars_of(workload);
  for (const TensorSpec& input : workload.definition->inputs) {
    if (!input.is_scalar()) continue;
    const bool known = std::any_of(scalars.begin(), scalars.end(), [&](const auto& s) { return s.first == input.name; });
    if (known) continue;
    const bool integer = input.dtype == DType::int64 || input.dtype == DType::int32 || input.dtype == DType::int16 ||
                         input.dtype == DType::int8;
    if (integer) scalars.emplace_back(input.name, std::int64_t{1});
    else if (input.dtype == DType::boolean) scalars.emplace_back(input.name, true);
    else scalars.emplace_back(input.name, 1.0);
  }
  return scalars;
}

Result<CompiledCandidate> compile(Context& context, const Solution& solution, const Workload& workload,
                                  const EvaluateOptions& options, const CancelToken& cancel) {
  CompiledCandidate out;
  Verdict& verdict = out.verdict;
  verdict.workload_uuid = workload.uuid;
  verdict.axes = workload.axes;
  verdict.provenance.ptxbench_version = version_string();
  verdict.provenance.protocol = options.protocol;
  const Clock::time_point bind_start = Clock::now();

  PTXBENCH_TRY_ASSIGN(const std::string arch, arch_of(context, options, cancel));
  PTXBENCH_TRY(find_architecture(arch));
  verdict.compile.arch = arch;
  PTXBENCH_TRY_ASSIGN(BindOptions bind, [&]() -> Result<BindOptions> {
    PTXBENCH_TRY_ASSIGN(DeviceLimits limits, limits_of(context, arch, cancel));
    if (options.memory_budget_bytes) limits.memory_bytes = std::min(limits.memory_bytes, *options.memory_budget_bytes);
    return BindOptions{std::move(limits), options.constants};
  }());

  const auto refused = [&](const Error& error, std::string_view rule) -> Result<CompiledCandidate> {
    if (environment_fault(error)) return error;
    if (verdict.compile.state != Availability::measured) {
      verdict.compile.state = Availability::unavailable;
      verdict.compile.reason = "the launch plan was refused before compiling";
    }
    refuse(verdict, error, rule);
    return std::move(out);
  };
  const auto exceeded = [&](Finding finding) -> Result<CompiledCandidate> {
    if (verdict.compile.state != Availability::measured) {
      verdict.compile.state = Availability::unavailable;
      verdict.compile.reason = "the candidate was refused before compiling";
    }
    refuse(verdict, std::move(finding));
    return std::move(out);
  };
  if (std::optional<Finding> finding = check_sources(solution, options.limits)) return exceeded(std::move(*finding));
  const Result<const SourceFile*> text = plan_text(solution);
  if (!text) return refused(text.error(), "plan_invalid");
  const Result<LaunchPlan> plan = LaunchPlan::parse((*text)->content, "launch.json");
  if (!plan) return refused(plan.error(), "plan_invalid");
  Result<BoundPlan> bound = bind_plan(*plan, solution, workload, bind);
  if (!bound) return refused(bound.error(), "plan_invalid");
  out.bound = std::move(*bound);
  verdict.findings.insert(verdict.findings.end(), out.bound->findings.begin(), out.bound->findings.end());
  verdict.provenance.stages.push_back({"bind", since(bind_start)});
  if (!out.bound->applicable) {
    verdict.outcome = Outcome::not_applicable;
    verdict.outcome_reason = out.bound->not_applicable_reason;
    verdict.compile.reason = "the plan does not apply to this workload";
    return out;
  }

  CompileRequest request;
  for (const SourceFile& file : solution.sources)
    if (file.path != "launch.json") request.files.push_back(file);
  request.sources = out.bound->sources;
  request.defines = out.bound->defines;
  request.launch_plan_header = out.bound->launch_plan_header;
  request.headers = options.headers;
  request.arch = arch;
  request.toolkit.cuda_home = context.options().cuda_home;
  request.cache_dir = context.options().cache_dir.value_or("");
  request.deadline_ns = options.compile_deadline_ns;
  const Clock::time_point compile_start = Clock::now();
  PTXBENCH_TRY_ASSIGN(out.compiled, context.workers().compile(request, cancel));
  verdict.provenance.stages.push_back({"compile", since(compile_start)});

  CompileBlock& block = verdict.compile;
  block.state = Availability::measured;
  block.ok = out.compiled.ok;
  block.cached = out.compiled.cached;
  block.compiler = out.compiled.compiler;
  block.duration_ns = out.compiled.duration_ns;
  block.diagnostics = out.compiled.diagnostics;
  verdict.findings.insert(verdict.findings.end(), out.compiled.findings.begin(), out.compiled.findings.end());
  if (!out.compiled.compiler.empty()) verdict.provenance.versions.emplace_back("compiler", out.compiled.compiler);
  for (const CompiledModule& module : out.compiled.modules) {
    for (KernelResources kernel : module.kernels) {
      if (kernel.kernel.empty()) kernel.kernel = kernel.symbol;
      block.kernels.push_back(std::move(kernel));
    }
  }
  if (!out.compiled.ok) {
    verdict.outcome = Outcome::judged;
    verdict.status = Status::compile_error;
    return out;
  }

  bool every_module_read = true;
  for (const CompiledModule& module : out.compiled.modules) {
    Result<ModuleInfo> info = module_info(module);
    if (!info) {
      block.ok = false;
      return refused(info.error(), "cubin_invalid");
    }
    every_module_read = every_module_read && !module.cubin.empty();
    out.modules.push_back(std::move(*info));
    PTXBENCH_TRY_ASSIGN(std::vector<StaticFamily> families, static_families(module));
    for (Finding& finding : requested_but_absent(module, families, block.diagnostics)) verdict.findings.push_back(std::move(finding));
    block.static_families.insert(block.static_families.end(), families.begin(), families.end());
  }
  if (std::optional<Finding> finding = check_globals(out.modules, options.limits)) return exceeded(std::move(*finding));
  if (!every_module_read) return out;  // only the driver can assemble it: the device worker does the rest

  const DeviceQueries queries = static_queries(bind.limits, out.modules);
  const Result<ResolvedPlan> resolved = resolve_plan(*out.bound, out.modules, scalars_or_ones(workload), queries);
  if (!resolved) return refused(resolved.error(), "launch_rule");
  out.workspace_bytes = workspace_bytes(*resolved);
  if (std::optional<Finding> finding = check_plan(*resolved, options.limits)) return exceeded(std::move(*finding));
  verdict.findings.insert(verdict.findings.end(), resolved->findings.begin(), resolved->findings.end());
  verdict.resolved_plan = resolved->evidence;
  name_kernels(*resolved, block);
  fill_occupancy(*resolved, queries, block);
  for (StaticFamily& family : block.static_families)
    for (const KernelResources& kernel : block.kernels)
      if (kernel.symbol == family.kernel) family.kernel = kernel.kernel;
  return out;
}

}  // namespace

Result<CompiledCandidate> compile_candidate(Context& context, const Solution& solution, const Workload& workload,
                                            const EvaluateOptions& options, const CancelToken& cancel) {
  return guarded([&] { return compile(context, solution, workload, options, cancel); });
}

}  // namespace ptxbench
