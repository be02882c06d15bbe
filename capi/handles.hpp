// What the opaque handles of the C ABI are inside, and the guard that no exception passes.
#pragma once

#include <ptxbench/evaluate.hpp>
#include <ptxbench/ptxbench.h>

#include <algorithm>
#include <cstring>
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

// A caller's struct, which begins with its own size, as this library knows it: one shorter than today's is filled up with zeros,
// one longer may hold only zeros beyond. One of fewer than `least` bytes is an error.
template <class Struct>
Result<Struct> known_struct(const Struct* given, std::string_view what, std::size_t least) {
  PTXBENCH_TRY(required(given, what));
  const std::size_t size = given->struct_size;
  if (size < least)
    return make_error(ErrorCode::invalid_argument, std::string(what) + ": struct_size must be the struct's sizeof");
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof(Struct); i < size; ++i)
    if (bytes[i] != 0)
      return make_error(ErrorCode::unsupported, std::string(what) + ": a field that is newer than this library is set: the "
                                                                    "header is newer than the library");
  Struct known{};
  std::memcpy(&known, given, std::min(size, sizeof known));
  return known;
}

// The string, with its length where it is wanted.
const char* borrow(const std::string& text, std::size_t* length) noexcept;

}  // namespace ptxbench::capi
