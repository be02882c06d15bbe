// Compiling one source: CUDA C++ by NVRTC, PTX by ptxas, a cubin as it is.
#pragma once

#include "compile/include_closure.hpp"
#include "compile/nvrtc.hpp"
#include "core/cuda_libs.hpp"

#include <ptxbench/compile.hpp>

#include <memory>
#include <string>
#include <vector>

namespace ptxbench {

// What a request compiles with. A part that no source needs is empty.
struct CompileTools {
  std::shared_ptr<const Nvrtc> nvrtc;
  CudaHeaders headers;
  std::string ptxas;
  Architecture arch;
  SteadyTime start, deadline;
};

struct SourceResult {
  bool ok = false;
  bool cacheable = true;  // not where a clock or the machine decided
  CompiledModule module;
  std::vector<Diagnostic> diagnostics;
  std::vector<Finding> findings;
  std::string log;
  std::string compiler;  // "NVRTC 13.0.88", "ptxas"; empty for a cubin
};

// `closure` is that of the source. Errors are the environment's.
Result<SourceResult> compile_cuda(const CompileTools& tools, const CompileRequest& request,
                                  const BoundSource& source, const IncludeClosure& closure);
Result<SourceResult> compile_ptx(const CompileTools& tools, const BoundSource& source, std::string_view text);
SourceResult take_cubin(const CompileTools& tools, const BoundSource& source, std::string_view content);

// Options for ptxas that a plan may give ("-O2", "--def-load-cache=cg", ...).
bool ptxas_option_allowed(std::string_view option);
std::string allowed_ptxas_options();

// Adds an error finding; where it is about a place, a diagnostic as well.
void fail(SourceResult& result, std::string code, std::string message, std::string evidence = {});
void refuse_ptxas_options(SourceResult& result, const BoundSource& source);
// unknown_kernel for `name`, with the kernels that there are.
void fail_unknown_kernel(SourceResult& result, const std::string& source, const std::string& name,
                         const std::vector<std::string>& kernels);
void fail_device_heap(SourceResult& result, const std::string& source, const std::string& functions);
void fail_timeout(SourceResult& result, const CompileTools& tools, const std::string& tool,
                  const std::string& source);

}  // namespace ptxbench
