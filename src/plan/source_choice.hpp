// Which source a kernel or a global is in.
#pragma once

#include "plan/model.hpp"
#include "plan/source_scan.hpp"

#include <string>
#include <vector>

namespace ptxbench::plan {

struct SourceChoice {
  std::string path;
  std::string name_expression;  // what NVRTC is asked for; empty: the name is the symbol
  bool is_cuda = false;
};

// The sources of a Solution that are modules, with what their text says of kernels.
class Sources {
 public:
  // Also checks `compile.per_source`.
  static Result<Sources> of(const LaunchPlan::Impl& plan, const Solution& solution);

  Result<SourceChoice> of_kernel(const Step& step, const KernelStep& kernel) const;
  Result<SourceChoice> of_global(const Global& global) const;

 private:
  enum class Kind : std::uint8_t { cuda, ptx, cubin };
  struct Module {
    std::string path;
    Kind kind = Kind::cuda;
    std::vector<SourceKernel> kernels;  // a cubin's are unknown
  };
  const LaunchPlan::Impl* plan_ = nullptr;
  std::vector<Module> modules_;

  Result<const Module*> named(const Reference& source) const;
  const Module* only(Kind kind) const;
  SourceChoice choose(const Module& module, const KernelStep& kernel) const;
  std::string paths() const;
};

// Whether any CUDA C++ file of `solution` includes <launch_plan.h>.
bool sees_launch_plan_header(const Solution& solution);

}  // namespace ptxbench::plan
