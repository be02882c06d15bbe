#include "capi/handles.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

using namespace ptxbench;
using namespace ptxbench::capi;

namespace {

Result<EvaluateOptions> options_of(const char* json, std::size_t length) {
  if (json == nullptr) return EvaluateOptions{};
  PTXBENCH_TRY_ASSIGN(const std::string_view input, text(json, length, "options_json"));
  return parse_evaluate_options(input);
}

ptxbench_verdict_status status_of(const std::optional<Status>& status) {
  return status ? static_cast<ptxbench_verdict_status>(*status) : PTXBENCH_NOT_JUDGED;
}

}  // namespace

namespace ptxbench::capi {

CancelToken token_of(const ptxbench_cancel* cancel) {
  return cancel != nullptr ? unwrap<CancelImpl>(cancel)->token : CancelToken{};
}

Result<EvaluateRequest> request_of(const ptxbench_solution* solution, const ptxbench_workload* const* workloads,
                                   std::size_t workload_count, const ptxbench_judging* judging, const char* options_json,
                                   std::size_t options_len) {
  EvaluateRequest request;
  PTXBENCH_TRY(required(solution, "solution"));
  PTXBENCH_TRY(required(workloads, "workloads"));
  for (std::size_t i = 0; i < workload_count; ++i) {
    PTXBENCH_TRY(required(workloads[i], "workloads[" + std::to_string(i) + "]"));
    request.workloads.push_back(unwrap<WorkloadImpl>(workloads[i])->workload);
  }
  PTXBENCH_TRY_ASSIGN(request.options, options_of(options_json, options_len));
  request.solution = unwrap<SolutionImpl>(solution)->solution;
  if (judging != nullptr) {
    const JudgingImpl& own = *unwrap<JudgingImpl>(judging);
    request.judging = own.judging;
    request.options.before_timing = own.before_timing;
    request.options.after_timing = own.after_timing;
  }
  return request;
}

EvaluationImpl* make_evaluation(Evaluation evaluation) {
  std::string json = to_json(evaluation);
  return new EvaluationImpl{std::move(evaluation), std::move(json)};
}

}  // namespace ptxbench::capi

extern "C" {

ptxbench_status ptxbench_compile(ptxbench_compiled** out, ptxbench_context* ctx, const ptxbench_solution* solution,
                                 const ptxbench_workload* workload, const char* options_json, size_t options_len,
                                 ptxbench_cancel* cancel, ptxbench_error** err) {
  return guard(err, [&]() -> Result<void> {
    PTXBENCH_TRY(required(out, "out"));
    *out = nullptr;
    PTXBENCH_TRY(required(ctx, "ctx"));
    PTXBENCH_TRY(required(solution, "solution"));
    PTXBENCH_TRY(required(workload, "workload"));
    PTXBENCH_TRY_ASSIGN(const EvaluateOptions options, options_of(options_json, options_len));
    // Shares of what the handles hold: any of them may be freed while this runs.
    const std::shared_ptr<Context> context = unwrap<ContextImpl>(ctx)->context;
    const std::shared_ptr<const Solution> candidate_solution = unwrap<SolutionImpl>(solution)->solution;
    const Workload for_workload = unwrap<WorkloadImpl>(workload)->workload;
    PTXBENCH_TRY_ASSIGN(CompiledCandidate candidate,
                        compile_candidate(*context, *candidate_solution, for_workload, options, token_of(cancel)));
    std::string json = to_json(candidate.verdict);
    *out = reinterpret_cast<ptxbench_compiled*>(new CompiledImpl{std::move(candidate), std::move(json)});
    return {};
  });
}

int32_t ptxbench_compiled_ok(const ptxbench_compiled* compiled) {
  if (compiled == nullptr) return 0;
  const CompiledCandidate& candidate = unwrap<CompiledImpl>(compiled)->candidate;
  return candidate.compiled.ok && !candidate.verdict.status ? 1 : 0;
}

const char* ptxbench_compiled_json(const ptxbench_compiled* compiled, size_t* len) {
  static const std::string kEmpty = "{}";
  return borrow(compiled != nullptr ? unwrap<CompiledImpl>(compiled)->json : kEmpty, len);
}

size_t ptxbench_compiled_module_count(const ptxbench_compiled* compiled) {
  return compiled != nullptr ? unwrap<CompiledImpl>(compiled)->candidate.compiled.modules.size() : 0;
}

const void* ptxbench_compiled_cubin(const ptxbench_compiled* compiled, size_t module, size_t* len) {
  if (len != nullptr) *len = 0;
  if (module >= ptxbench_compiled_module_count(compiled)) return nullptr;
  const auto& cubin = unwrap<CompiledImpl>(compiled)->candidate.compiled.modules[module].cubin;
  if (cubin.empty()) return nullptr;
  if (len != nullptr) *len = cubin.size();
  return cubin.data();
}

void ptxbench_compiled_free(ptxbench_compiled* compiled) { delete unwrap<CompiledImpl>(compiled); }

ptxbench_status ptxbench_evaluate(ptxbench_evaluation** out, ptxbench_context* ctx, const ptxbench_solution* solution,
                                  const ptxbench_workload* const* workloads, size_t workload_count,
                                  const ptxbench_judging* judging, const char* options_json, size_t options_len,
                                  ptxbench_cancel* cancel, ptxbench_error** err) {
  return guard(err, [&]() -> Result<void> {
    PTXBENCH_TRY(required(out, "out"));
    *out = nullptr;
    PTXBENCH_TRY(required(ctx, "ctx"));
    PTXBENCH_TRY_ASSIGN(const EvaluateRequest request,
                        request_of(solution, workloads, workload_count, judging, options_json, options_len));
    const std::shared_ptr<Context> context = unwrap<ContextImpl>(ctx)->context;
    PTXBENCH_TRY_ASSIGN(Evaluation evaluation, evaluate(*context, *request.solution, request.workloads, request.judging,
                                                        request.options, token_of(cancel)));
    *out = reinterpret_cast<ptxbench_evaluation*>(make_evaluation(std::move(evaluation)));
    return {};
  });
}

ptxbench_verdict_status ptxbench_evaluation_status(const ptxbench_evaluation* evaluation) {
  if (evaluation == nullptr) return PTXBENCH_NOT_JUDGED;
  return status_of(unwrap<EvaluationImpl>(evaluation)->evaluation.status());
}

size_t ptxbench_evaluation_count(const ptxbench_evaluation* evaluation) {
  return evaluation != nullptr ? unwrap<EvaluationImpl>(evaluation)->evaluation.verdicts.size() : 0;
}

ptxbench_verdict_status ptxbench_verdict_status_at(const ptxbench_evaluation* evaluation, size_t index) {
  if (index >= ptxbench_evaluation_count(evaluation)) return PTXBENCH_NOT_JUDGED;
  return status_of(unwrap<EvaluationImpl>(evaluation)->evaluation.verdicts[index].status);
}

ptxbench_status ptxbench_verdict_timing_at(const ptxbench_evaluation* evaluation, size_t index, ptxbench_timing* out) {
  if (evaluation == nullptr || out == nullptr || out->struct_size < sizeof(std::size_t)) return PTXBENCH_E_INVALID_ARGUMENT;
  if (index >= ptxbench_evaluation_count(evaluation)) return PTXBENCH_E_NOT_FOUND;
  const TimingBlock& block = unwrap<EvaluationImpl>(evaluation)->evaluation.verdicts[index].timing;
  ptxbench_timing timing{};
  timing.struct_size = out->struct_size;
  timing.median_ns = block.median_ns;
  timing.baseline_median_ns = block.baseline_median_ns;
  timing.speedup = block.speedup.value_or(std::numeric_limits<double>::quiet_NaN());
  timing.speedup_low = block.speedup_low;
  timing.speedup_high = block.speedup_high;
  timing.pairs = static_cast<std::uint32_t>(block.pairs);
  timing.flags = (block.state == Availability::measured ? 1u : 0u) | (block.tie ? 2u : 0u);
  std::memcpy(out, &timing, std::min(out->struct_size, sizeof timing));
  return PTXBENCH_OK;
}

const char* ptxbench_evaluation_json(const ptxbench_evaluation* evaluation, size_t* len) {
  static const std::string kEmpty = "{}";
  return borrow(evaluation != nullptr ? unwrap<EvaluationImpl>(evaluation)->json : kEmpty, len);
}

void ptxbench_evaluation_free(ptxbench_evaluation* evaluation) { delete unwrap<EvaluationImpl>(evaluation); }

}  // extern "C"
