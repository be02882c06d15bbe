// What the opaque handles of the C ABI are inside, and the guard that no exception passes.
#pragma once

#include <ptxbench/evaluate.hpp>
#include <ptxbench/ptxbench.h>

#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>

// The handles' tags are never completed; these are what they point to.
namespace ptxbench::capi {

struct ErrorImpl {
  Error error;
  std::string json;
};
struct ContextImpl {
  std::shared_ptr<Context> context;
};
struct DefinitionImpl {
  DefinitionPtr definition;
  std::string json;
};
struct WorkloadImpl {
  Workload workload;
};
struct SolutionImpl {
  std::shared_ptr<const Solution> solution;
};
struct CompiledImpl {
  CompiledCandidate candidate;
  std::string json;
};
struct JudgingImpl {
  Judging judging;
  std::function<void()> before_timing, after_timing;
};
struct JobImpl {
  std::unique_ptr<Job> job;
};
struct EvaluationImpl {
  Evaluation evaluation;
  std::string json;
};
struct CancelImpl {
  CancelToken token;
};

template <class Impl, class Handle>
Impl* unwrap(Handle* handle) {
  return reinterpret_cast<Impl*>(handle);
}
template <class Impl, class Handle>
const Impl* unwrap(const Handle* handle) {
  return reinterpret_cast<const Impl*>(handle);
}

// Gives the error to the caller if it wants it, and its status in any case.
ptxbench_status report(const Error& error, ptxbench_error** err) noexcept;

// Runs `body`, which gives a Result<void>; whatever leaves it becomes a status and an error.
template <class Body>
ptxbench_status guard(ptxbench_error** err, Body&& body) noexcept {
  if (err != nullptr) *err = nullptr;
  try {
    Result<void> result = body();
    if (result) return PTXBENCH_OK;
    return report(result.error(), err);
  } catch (const std::bad_alloc&) {
    return report(Error{ErrorCode::no_memory, {}, {}, {}, 0}, err);
  } catch (const std::exception& e) {
    return report(make_error(ErrorCode::internal, e.what()), err);
  } catch (...) {
    return report(make_error(ErrorCode::internal, "an unknown exception"), err);
  }
}

// What ptxbench_evaluate and its like are given, with shares of what the handles hold: any of them may be freed meanwhile.
Result<EvaluateRequest> request_of(const ptxbench_solution* solution, const ptxbench_workload* const* workloads,
                                   std::size_t workload_count, const ptxbench_judging* judging, const char* options_json,
                                   std::size_t options_len);
EvaluationImpl* make_evaluation(Evaluation evaluation);
CancelToken token_of(const ptxbench_cancel* cancel);

// Text given as pointer and length.
Result<std::string_view> text(const char* data, std::size_t length, std::string_view what);

inline Result<void> required(const void* pointer, std::string_view what) {
  if (pointer != nullptr) return {};
  return make_error(ErrorCode::invalid_argument, std::string(what) + " must not be NULL");
}

// The string, with its length where it is wanted.
const char* borrow(const std::string& text, std::size_t* length) noexcept;

}  // namespace ptxbench::capi
