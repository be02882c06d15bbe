// The first half of binding: everything that needs no compiled code.
#include "core/json.hpp"
#include "plan/header.hpp"
#include "plan/launch_rules.hpp"
#include "plan/names.hpp"
#include "plan/references.hpp"
#include "plan/source_choice.hpp"

#include <algorithm>
#include <limits>
#include <new>

namespace ptxbench {
namespace plan {
namespace {

using Impl = LaunchPlan::Impl;

// "STAGES = 8, smem_optin_bytes = 232448"
std::string values_text(const Expression& e, const expr::Environment& environment) {
  std::string out;
  for (const std::string& name : e.names())
    if (const auto value = environment.lookup(name))
      out += (out.empty() ? "" : ", ") + name + " = " + expr::to_string(*value);
  return out;
}

Result<std::optional<std::string>> false_requirement(const Impl& plan, const expr::Environment& environment) {
  for (const Expression& condition : plan.require) {
    PTXBENCH_TRY_ASSIGN(const bool holds, condition.evaluate_bool(environment));
    if (holds) continue;
    const std::string values = values_text(condition, environment);
    return std::optional<std::string>(condition.where().pointer + ": `" + condition.text() + "` is false" +
                                      (values.empty() ? "" : " with " + values));
  }
  return std::optional<std::string>();
}

// One to three positive numbers of a launch.
Result<std::optional<Extent>> extent(const Impl& plan, const std::vector<Expression>& list,
                                     const expr::Environment& environment) {
  if (list.empty()) return std::optional<Extent>();
  constexpr std::int64_t kMost = 1 << 20;  // far beyond any limit; what a device takes is a launch rule
  Extent out{1, 1, 1};
  for (std::size_t d = 0; d < list.size(); ++d) {
    PTXBENCH_TRY_ASSIGN(const std::int64_t v, list[d].evaluate_int(environment));
    if (v < 1 || v > kMost)
      return plan.error(list[d].where().pointer,
                        "`" + list[d].text() + "` = " + std::to_string(v) + "; it must be at least 1" +
                            (v > kMost ? " and at most " + std::to_string(kMost) : ""),
                        kLaunchRule);
    out[d] = static_cast<std::uint32_t>(v);
  }
  return std::optional<Extent>(out);
}

Result<BoundStep> bind_step(const Impl& plan, const Step& step, const KernelStep& kernel,
                            const SourceChoice& choice, const expr::Environment& environment,
                            const DeviceLimits& limits) {
  BoundStep out;
  out.name_expression = choice.name_expression;
  if (kernel.block.empty() && choice.is_cuda)
    return plan.error(step.pointer, "`block` is missing; only .ptx and .cubin code may state it in its place",
                      kPlanInvalid);
  PTXBENCH_TRY_ASSIGN(out.block, extent(plan, kernel.block, environment));
  PTXBENCH_TRY_ASSIGN(out.cluster, extent(plan, kernel.cluster, environment));
  PTXBENCH_TRY_ASSIGN(out.preferred_cluster, extent(plan, kernel.preferred_cluster, environment));
  if (kernel.shared_bytes) {
    PTXBENCH_TRY_ASSIGN(const std::int64_t bytes, kernel.shared_bytes->evaluate_int(environment));
    if (bytes < 0)
      return plan.error(kernel.shared_bytes->where().pointer,
                        "`" + kernel.shared_bytes->text() + "` = " + std::to_string(bytes) + " is negative",
                        kLaunchRule);
    out.shared_bytes = static_cast<std::uint64_t>(bytes);
  }
  if (kernel.carveout) {
    PTXBENCH_TRY_ASSIGN(const std::int64_t percent, kernel.carveout->evaluate_int(environment));
    if (percent < 0 || percent > 100)
      return plan.error(kernel.carveout->where().pointer,
                        "a carveout is 0 to 100 percent, not " + std::to_string(percent), kLaunchRule);
    out.carveout = static_cast<int>(percent);
  }
  LaunchShape shape{kernel.name(), step.pointer,          &kernel,         out.block,
                    out.cluster,   out.preferred_cluster, out.shared_bytes};
  PTXBENCH_TRY(check_shape(plan, shape, limits));
  return out;
}

SourceCompileOptions compile_options(const Impl& plan, const std::string& path) {
  SourceCompileOptions out;
  const auto apply = [&](const CompileFields& fields) {
    if (fields.std) out.std = *fields.std;
    if (fields.fast_math) out.fast_math = *fields.fast_math;
    if (fields.fmad) out.fmad = fields.fmad;
    if (fields.ftz) out.ftz = fields.ftz;
    if (fields.maxrregcount) out.maxrregcount = fields.maxrregcount;
    if (fields.ptx_version) out.ptx_version = fields.ptx_version;
    if (fields.ptxas_options) out.ptxas_options = *fields.ptxas_options;
  };
  apply(plan.compile);
  for (const auto& [source, fields] : plan.per_source)
    if (source.name == path) apply(fields);
  return out;
}

// An overridden constant that no source can see changes less than its author may think.
void find_unused_overrides(const Impl& plan, const Solution& solution,
                           const std::vector<std::pair<std::string, PlanNumber>>& overrides,
                           std::vector<Finding>& findings) {
  if (overrides.empty() || sees_launch_plan_header(solution)) return;
  for (const auto& [name, value] : overrides) {
    const bool in_macro =
        std::any_of(plan.defines.begin(), plan.defines.end(), [&n = name](const Define& define) {
          if (!define.value) return false;
          const std::vector<std::string> names = define.value->names();
          return std::find(names.begin(), names.end(), n) != names.end();
        });
    if (in_macro) continue;
    json::Writer evidence;
    evidence.begin_object().field("constant", name).field("value", expr::to_string(value)).end_object();
    findings.push_back(
        {"override_unused", Severity::warning,
         "constant `" + name + "` was overridden with " + expr::to_string(value) +
             ", but no source includes <launch_plan.h> and no macro uses it: only the plan sees it",
         std::move(evidence).str()});
  }
}

Result<BoundPlan> bind(const LaunchPlan& launch_plan, const Solution& solution, const Workload& workload,
                       const BindOptions& options) {
  const Impl& plan = launch_plan.impl();
  if (!workload.definition)
    return make_error(ErrorCode::invalid_argument,
                      "the workload has no definition: use parse_workload or make_workload");
  if (solution.spec.entry_point != "launch.json::run")
    return make_error(
        ErrorCode::invalid_argument,
        "the entry point of a candidate is \"launch.json::run\", not \"" + solution.spec.entry_point + "\"",
        {solution.name, "/spec/entry_point", 0, 0}, kPlanInvalid);
  auto impl = std::make_shared<BoundPlan::Impl>();
  impl->plan = plan.shared_from_this();
  impl->workload = workload;
  impl->limits = options.limits;
  PTXBENCH_TRY_ASSIGN(impl->constants, apply_overrides(plan, workload, options.constants));
  const ScalarValues scalars = scalars_of(workload);
  const Names names(workload, options.limits, impl->constants, scalars);
  const expr::Environment environment = names.environment();
  PTXBENCH_TRY(check_references(plan, *workload.definition, names));

  BoundPlan out;
  find_unused_overrides(plan, solution, options.constants, out.findings);
  PTXBENCH_TRY_ASSIGN(const std::optional<std::string> reason, false_requirement(plan, environment));
  if (reason) {
    out.applicable = false;
    out.not_applicable_reason = *reason;
    out.impl = std::move(impl);
    return out;
  }
  PTXBENCH_TRY_ASSIGN(const Sources sources, Sources::of(plan, solution));
  std::vector<SourceChoice> choices;
  for (const Step& step : plan.steps) {
    const auto* kernel = std::get_if<KernelStep>(&step.what);
    if (kernel == nullptr) {
      impl->steps.emplace_back();
      continue;
    }
    PTXBENCH_TRY_ASSIGN(SourceChoice choice, sources.of_kernel(step, *kernel));
    PTXBENCH_TRY_ASSIGN(BoundStep bound, bind_step(plan, step, *kernel, choice, environment, options.limits));
    impl->steps.emplace_back(std::move(bound));
    choices.push_back(std::move(choice));
  }
  for (const Global& global : plan.globals) {
    PTXBENCH_TRY_ASSIGN(SourceChoice choice, sources.of_global(global));
    impl->globals.push_back({0, choice.name_expression});
    choices.push_back(std::move(choice));
  }

  // The sources that are used, in the Solution's order, each with the names it must export.
  std::size_t next = 0;
  std::vector<std::size_t*> place;  // of each choice: where its source's index goes
  for (std::optional<BoundStep>& step : impl->steps)
    if (step) place.push_back(&step->source);
  for (BoundGlobal& global : impl->globals) place.push_back(&global.source);
  for (const SourceFile& file : solution.sources) {
    const bool used = std::any_of(choices.begin(), choices.end(),
                                  [&](const SourceChoice& c) { return c.path == file.path; });
    if (!used) continue;
    BoundSource source{file.path, compile_options(plan, file.path), {}};
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (choices[i].path != file.path) continue;
      *place[i] = next;
      const std::string& name = choices[i].name_expression;
      auto& list = source.name_expressions;
      if (!name.empty() && std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
    }
    out.sources.push_back(std::move(source));
    ++next;
  }
  PTXBENCH_TRY_ASSIGN(out.defines, macro_texts(plan, environment));
  out.launch_plan_header = launch_plan_header(impl->constants);
  out.impl = std::move(impl);
  return out;
}

}  // namespace
}  // namespace plan

Result<BoundPlan> bind_plan(const LaunchPlan& plan, const Solution& solution, const Workload& workload,
                            const BindOptions& options) {
  try {
    return plan::bind(plan, solution, workload, options);
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::no_memory, "out of memory while binding a launch plan");
  }
}

ScalarValues scalars_of(const Workload& workload) {
  ScalarValues out;
  if (!workload.definition) return out;
  for (const TensorSpec& input : workload.definition->inputs) {
    if (!input.is_scalar()) continue;
    if (const auto* scalar = std::get_if<ScalarInput>(&workload.input_spec(input.name)))
      out.emplace_back(input.name, std::visit([](auto v) { return PlanNumber(v); }, scalar->value));
  }
  return out;
}

}  // namespace ptxbench
