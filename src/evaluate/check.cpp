#include "evaluate/check.hpp"

#include "evaluate/stored.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace ptxbench {
namespace {

constexpr int kMostSchedules = 1000;
constexpr std::uint64_t kLongestNs = 86'400'000'000'000;  // a day

Error wrong(std::string message) { return make_error(ErrorCode::invalid_argument, std::move(message)); }

Result<void> check_time(std::string_view name, std::uint64_t ns) {
  if (ns >= 1'000'000 && ns <= kLongestNs) return {};
  return wrong(std::string(name) + " is " + std::to_string(ns) + " ns; it must lie in a millisecond to a day");
}

Result<void> check_tolerance(const Tolerance& t, std::string_view what) {
  if (t.atol >= 0 && t.rtol >= 0 && std::isfinite(t.atol) && std::isfinite(t.rtol)) return {};
  return wrong("the tolerance of " + std::string(what) + " must be of finite numbers that are not negative");
}

Result<void> same_definition(const Solution& solution, const Definition& definition, std::string_view part) {
  if (solution.definition == definition.name) return {};
  return wrong("the " + std::string(part) + " solution \"" + solution.name + "\" is for \"" + solution.definition +
               "\", the workloads are of \"" + definition.name + "\"");
}

Result<void> check_choice(const SolutionChoice* choice, const Definition& definition, std::string_view part) {
  if (choice == nullptr) return {};
  if (choice->solution == nullptr) return wrong("the " + std::string(part) + " solution is null");
  return same_definition(*choice->solution, definition, part);
}

Result<void> check_comparator(const Judging& judging, const Definition& definition, const EvaluateOptions& options) {
  if (options.protocol == kPublished && (judging.comparator.kind != ComparatorKind::model_error || !judging.comparator.by_output.empty()))
    return wrong("the protocol " + std::string(kPublished) + " has a comparator of its own; leave the request's at its default");
  if (judging.comparator.kind == ComparatorKind::callback && judging.own_comparator == nullptr)
    return wrong("comparison by callback was asked for, and there is none");
  PTXBENCH_TRY(check_tolerance(judging.comparator.tolerance, "all outputs"));
  for (const auto& [output, tolerance] : judging.comparator.by_output) {
    PTXBENCH_TRY(check_tolerance(tolerance, output));
    const bool known = std::any_of(definition.outputs.begin(), definition.outputs.end(),
                                   [&name = output](const TensorSpec& spec) { return spec.name == name; });
    if (known) continue;
    std::string names;
    for (const TensorSpec& spec : definition.outputs) names += (names.empty() ? "" : ", ") + spec.name;
    return wrong("a tolerance is given for \"" + output + "\", which is no output; there are: " + names);
  }
  return {};
}

}  // namespace

Result<void> check_options(const EvaluateOptions& options) {
  if (options.time && !options.verify) return wrong("time needs verify: an unverified time says nothing");
  if (options.count && !options.verify) return wrong("count needs verify: a counted run gets a verified trial's inputs");
  if (options.trials && (*options.trials < 1 || *options.trials > 1000)) return wrong("trials must lie in 1 to 1000");
  if (options.limits.steps > kMaxOperations)
    return wrong("limits.steps must lie in 0 to " + std::to_string(kMaxOperations));
  if (options.pairs < 6 || options.pairs > 10000) return wrong("pairs must lie in 6 (fewer give no interval) to 10000");
  PTXBENCH_TRY(check_protocol(options.protocol));
  if (options.protocol == kPublished && options.l2 == L2State::warm)
    return wrong("the protocol " + std::string(kPublished) + " is for a cold L2");
  if (!(options.target_width >= 0 && options.target_width < 1)) return wrong("target_width must lie in 0 to 1");
  if (options.stop_if_slower_than && !(*options.stop_if_slower_than > 0 && std::isfinite(*options.stop_if_slower_than)))
    return wrong("stop_if_slower_than is a speedup: a finite number above 0");
  if (options.seed && *options.seed >> 63) return wrong("a seed must be below 2^63");
  PTXBENCH_TRY(check_time("compile_deadline", options.compile_deadline_ns));
  if (options.run_deadline_ns) PTXBENCH_TRY(check_time("run_deadline", *options.run_deadline_ns));
  if (options.schedules < 0 || options.schedules > kMostSchedules)
    return wrong("schedules must lie in 0 to " + std::to_string(kMostSchedules));
  if (options.small_sm_count < 0 || options.small_sm_count > 1024) return wrong("small_sm_count must lie in 0 to 1024");
  PTXBENCH_TRY(check_time("time_budget", options.time_budget_ns));
  PTXBENCH_TRY(check_time("schedule_budget", options.schedule_budget_ns));
  if (!options.arch.empty()) PTXBENCH_TRY(find_architecture(options.arch));
  return {};
}

Result<void> check_request(const Solution& solution, std::span<const Workload> workloads, const Judging& judging,
                           const EvaluateOptions& options) {
  if (workloads.empty()) return wrong("no workload to judge on");
  for (const Workload& workload : workloads) {
    if (workload.definition == nullptr) return wrong("a workload without its definition");
    if (workload.definition->name != workloads[0].definition->name)
      return wrong("the workloads are of two definitions, \"" + workloads[0].definition->name + "\" and \"" +
                   workload.definition->name + "\"");
  }
  const Definition& definition = *workloads[0].definition;
  PTXBENCH_TRY(same_definition(solution, definition, "candidate"));
  PTXBENCH_TRY(check_choice(std::get_if<SolutionChoice>(&judging.reference), definition, "reference"));
  PTXBENCH_TRY(check_choice(std::get_if<SolutionChoice>(&judging.baseline), definition, "baseline"));
  PTXBENCH_TRY(check_comparator(judging, definition, options));
  if (const auto* fixed = std::get_if<FixedTime>(&judging.baseline); fixed != nullptr && fixed->ns == 0)
    return wrong("a fixed baseline time must be above 0 ns");
  if (const auto* own = std::get_if<std::shared_ptr<Reference>>(&judging.reference); own != nullptr && *own == nullptr)
    return wrong("the reference callback is null");
  const bool all_stored = std::all_of(workloads.begin(), workloads.end(), has_golden_outputs);
  if (std::holds_alternative<GoldenReference>(judging.reference) && !all_stored)
    return make_error(ErrorCode::invalid_argument, "stored outputs were asked for as reference, but not every workload stores every output",
                      {}, "golden_outputs");
  if (const auto* python = std::get_if<PythonReference>(&judging.reference);
      python != nullptr && (definition.reference.empty() || python->python.empty() || python->deadline_ns == 0))
    return wrong("a Python reference needs a definition with `reference`, an interpreter, and a deadline above zero");
  if (options.verify && std::holds_alternative<NativeReference>(judging.reference) && !has_native_reference(definition) && !all_stored)
    return make_error(ErrorCode::unsupported,
                      "nothing here computes what \"" + definition.name + "\" (op_type \"" + definition.op_type +
                          "\") expects: the library's own references know GEMMs (A[M,K], B[N,K] -> C[M,N]) and attention "
                          "(Q K V -> O LSE, Q K V O dO L -> dQ dK dV, with the tag mask:none or mask:causal). Ways to bring one: "
                          "another Solution, outputs stored with the workloads (golden), the definition's own Python `reference`, "
                          "or a callback",
                      {}, "no_reference");
  return {};
}

}  // namespace ptxbench
