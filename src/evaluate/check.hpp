// What a request must keep to, wherever it comes from: JSON, C++ or C.
#pragma once

#include <ptxbench/evaluate.hpp>

#include <span>

namespace ptxbench {

// Errors: invalid_argument, naming the option and its range.
Result<void> check_options(const EvaluateOptions& options);

// That workloads, solution and what is brought belong together. Errors: invalid_argument; unsupported (rule
// no_reference) for an operation that nothing can compute.
Result<void> check_request(const Solution& solution, std::span<const Workload> workloads, const Judging& judging,
                           const EvaluateOptions& options);

}  // namespace ptxbench
