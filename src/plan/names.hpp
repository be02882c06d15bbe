// What a name in an expression means: axes, scalar inputs, constants, numbers of the device, the index `i`.
#pragma once

#include "plan/model.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxbench::plan {

// The constants of a plan with an evaluation's overrides.
Result<std::vector<Constant>> apply_overrides(
    const LaunchPlan::Impl& plan, const Workload& workload,
    const std::vector<std::pair<std::string, PlanNumber>>& overrides);

class Names {
 public:
  using KernelFunction = std::function<Result<Number>(std::string_view function, std::string_view kernel)>;

  // `scalars`: those that are known so far. All references must outlive the object.
  Names(const Workload& workload, const DeviceLimits& limits, const std::vector<Constant>& constants,
        const ScalarValues& scalars)
      : workload_(workload), limits_(limits), constants_(constants), scalars_(scalars) {}

  // For evaluating; `index` is `i` of a repeated step. The environment refers to this object.
  expr::Environment environment(std::optional<std::int64_t> index = {}, KernelFunction kernels = {}) const;
  // Whether every name of `e` means something, without evaluating: so that a slip is told before compiling.
  Result<void> check(const Expression& e, bool index) const;

 private:
  Result<Number> lookup(std::string_view name, std::optional<std::int64_t> index) const;
  std::optional<std::int64_t> device(std::string_view name) const;
  Error unknown(std::string_view name, bool index) const;

  const Workload& workload_;
  const DeviceLimits& limits_;
  const std::vector<Constant>& constants_;
  const ScalarValues& scalars_;
};

// The one kernel step that `name` (its `as` or its kernel's name, white space aside) means. Errors without a
// place: none is (unknown_name), or several are.
Result<std::size_t> find_kernel_step(const LaunchPlan::Impl& plan, std::string_view name);

// "gemm< plan::BM >" -> "gemm<plan::BM>": C++ names that differ in white space alone are the same.
std::string without_spaces(std::string_view text);

}  // namespace ptxbench::plan
