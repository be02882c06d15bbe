#include <ptxbench/evaluate.hpp>

#include <exception>

namespace ptxbench {
namespace {

void not_run(Verdict& verdict, std::string reason) {
  verdict.outcome = Outcome::not_run;
  verdict.outcome_reason = std::move(reason);
}

Result<Verdict> judge(Context& context, const Solution& solution, const Workload& workload,
                      const EvaluateOptions& options, const CancelToken& cancel) {
  PTXBENCH_TRY_ASSIGN(CompiledCandidate candidate, compile_candidate(context, solution, workload, options, cancel));
  Verdict& verdict = candidate.verdict;
  if (verdict.status || verdict.outcome == Outcome::not_applicable) return std::move(verdict);
  if (!options.verify) {
    not_run(verdict, "verification was not requested");
    return std::move(verdict);
  }
  const Result<DeviceInfo> device = context.device();
  if (!device) {
    not_run(verdict, "no device: " + device.error().to_string());
    for (auto* block : {&verdict.correctness.reason, &verdict.timing.reason, &verdict.counts.reason}) *block = verdict.outcome_reason;
    verdict.correctness.state = Availability::unavailable;
    if (options.time) verdict.timing.state = Availability::unavailable;
    if (options.count) verdict.counts.state = Availability::unavailable;
    return std::move(verdict);
  }
  return make_error(ErrorCode::unsupported, "running on a device is not built yet");
}

Result<Evaluation> run(Context& context, const Solution& solution, std::span<const Workload> workloads,
                       const EvaluateOptions& options, const CancelToken& cancel) {
  if (workloads.empty()) return make_error(ErrorCode::invalid_argument, "no workload to judge on");
  Evaluation evaluation;
  evaluation.solution = solution.name;
  evaluation.definition = workloads[0].definition->name;
  for (const Workload& workload : workloads) {
    if (cancel.triggered()) return make_error(ErrorCode::cancelled, "cancelled");
    PTXBENCH_TRY_ASSIGN(Verdict verdict, judge(context, solution, workload, options, cancel));
    evaluation.verdicts.push_back(std::move(verdict));
  }
  return evaluation;
}

}  // namespace

Result<Evaluation> evaluate(Context& context, const Solution& solution, std::span<const Workload> workloads,
                            const EvaluateOptions& options, const CancelToken& cancel) {
  try {
    return run(context, solution, workloads, options, cancel);
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::no_memory, "out of memory");
  } catch (const std::exception& e) {
    return make_error(ErrorCode::internal, e.what());
  }
}

}  // namespace ptxbench
