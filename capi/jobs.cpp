#include "capi/handles.hpp"

#include <algorithm>
#include <string>
#include <vector>

using namespace ptxbench;
using namespace ptxbench::capi;

extern "C" {

ptxbench_status ptxbench_evaluate_many(ptxbench_evaluation** out, ptxbench_error** errors,
                                       ptxbench_context* ctx, const ptxbench_request* const* requests,
                                       size_t count, ptxbench_cancel* cancel, ptxbench_error** err) {
  const auto none = [&] {
    for (std::size_t i = 0; i < count; ++i) {
      if (out != nullptr) {
        ptxbench_evaluation_free(out[i]);
        out[i] = nullptr;
      }
      if (errors != nullptr) {
        ptxbench_error_free(errors[i]);
        errors[i] = nullptr;
      }
    }
  };
  if (out != nullptr) std::fill_n(out, count, nullptr);
  if (errors != nullptr) std::fill_n(errors, count, nullptr);
  const ptxbench_status status = guard(err, [&]() -> Result<void> {
    if (count == 0) return {};
    PTXBENCH_TRY(required(out, "out"));
    PTXBENCH_TRY(required(ctx, "ctx"));
    PTXBENCH_TRY(required(requests, "requests"));
    // A request that does not hold together fails alone: its place stays without a solution.
    std::vector<EvaluateRequest> list(count);
    std::vector<std::optional<Error>> own(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::string what = "requests[" + std::to_string(i) + "]";
      PTXBENCH_TRY_ASSIGN(const ptxbench_request r, known_struct(requests[i], what, sizeof(std::size_t)));
      Result<EvaluateRequest> made =
          request_of(r.solution, r.workloads, r.workload_count, r.judging, r.options_json, r.options_len);
      if (made)
        list[i] = std::move(*made);
      else
        own[i] = std::move(made).error();
    }
    const std::shared_ptr<Context> context = unwrap<ContextImpl>(ctx)->context;
    PTXBENCH_TRY_ASSIGN(std::vector<Result<Evaluation>> results,
                        evaluate_many(*context, list, token_of(cancel)));
    for (std::size_t i = 0; i < count; ++i) {
      if (results[i])
        out[i] = reinterpret_cast<ptxbench_evaluation*>(make_evaluation(std::move(*results[i])));
      else if (errors != nullptr)
        report(own[i] ? *own[i] : results[i].error(), &errors[i]);
    }
    return {};
  });
  if (status != PTXBENCH_OK) none();
  return status;
}

ptxbench_status ptxbench_job_start(ptxbench_job** out, ptxbench_context* ctx,
                                   const ptxbench_solution* solution,
                                   const ptxbench_workload* const* workloads, size_t workload_count,
                                   const ptxbench_judging* judging, const char* options_json,
                                   size_t options_len, ptxbench_error** err) {
  return guard(err, [&]() -> Result<void> {
    PTXBENCH_TRY(required(out, "out"));
    *out = nullptr;
    PTXBENCH_TRY(required(ctx, "ctx"));
    PTXBENCH_TRY_ASSIGN(EvaluateRequest request,
                        request_of(solution, workloads, workload_count, judging, options_json, options_len));
    auto impl = std::make_unique<JobImpl>();
    PTXBENCH_TRY_ASSIGN(impl->job, submit(unwrap<ContextImpl>(ctx)->context, std::move(request)));
    *out = reinterpret_cast<ptxbench_job*>(impl.release());
    return {};
  });
}

int ptxbench_job_fd(const ptxbench_job* job) {
  return job != nullptr ? unwrap<JobImpl>(job)->job->descriptor() : -1;
}

ptxbench_job_state ptxbench_job_poll(const ptxbench_job* job) {
  return job != nullptr ? static_cast<ptxbench_job_state>(unwrap<JobImpl>(job)->job->state())
                        : PTXBENCH_JOB_TAKEN;
}

ptxbench_status ptxbench_job_wait(const ptxbench_job* job, uint64_t timeout_ns) {
  if (job == nullptr) return PTXBENCH_E_INVALID_ARGUMENT;
  const Result<bool> finished = unwrap<JobImpl>(job)->job->wait(
      timeout_ns == UINT64_MAX ? std::nullopt : std::optional<std::uint64_t>(timeout_ns));
  if (!finished) return static_cast<ptxbench_status>(finished.error().code);
  return *finished ? PTXBENCH_OK : PTXBENCH_E_BUSY;
}

ptxbench_status ptxbench_job_take(ptxbench_evaluation** out, ptxbench_job* job, ptxbench_error** err) {
  return guard(err, [&]() -> Result<void> {
    PTXBENCH_TRY(required(out, "out"));
    *out = nullptr;
    PTXBENCH_TRY(required(job, "job"));
    PTXBENCH_TRY_ASSIGN(Evaluation evaluation, unwrap<JobImpl>(job)->job->take());
    *out = reinterpret_cast<ptxbench_evaluation*>(make_evaluation(std::move(evaluation)));
    return {};
  });
}

void ptxbench_job_cancel(ptxbench_job* job) {
  if (job != nullptr) unwrap<JobImpl>(job)->job->cancel();
}

void ptxbench_job_free(ptxbench_job* job) { delete unwrap<JobImpl>(job); }

}  // extern "C"
