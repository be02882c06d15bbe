/// @file
/// Compiling candidates: NVRTC and ptxas, structured diagnostics, the cache.
///
/// These functions read candidate text with NVRTC **in the calling process**. NVRTC can be crashed and held
/// for minutes by its input, so the library itself calls them only inside `ptxbench-worker`; use
/// `worker.hpp` or `evaluate.hpp` unless you ask for in-process compilation by name.
#pragma once

#include <ptxbench/core.hpp>
#include <ptxbench/plan.hpp>
#include <ptxbench/trace.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ptxbench {

/// An architecture that candidates can be compiled for.
struct Architecture {
  std::string name;      ///< "sm_90a"
  int sm = 0;            ///< 90
  std::string virtual_name;  ///< "compute_90a"
};
/// The list, which grows: sm_90a, sm_100a; then sm_90, sm_100, which lack wgmma, setmaxnreg and tcgen05.
const std::vector<Architecture>& architectures();
/// Unknown: ErrorCode::unsupported, with the names there are.
Result<Architecture> find_architecture(std::string_view name);

/// Where compilers and headers are looked for; empty parts are searched (docs/toolkit.md).
struct ToolkitOptions {
  std::string cuda_home;             ///< a toolkit's folder, or the `nvidia` folder of PyPI wheels
  bool only_cuda_home = false;       ///< search nowhere else
};

struct CompileRequest {
  std::vector<SourceFile> files;     ///< all of the candidate's files (.cu .cuh .h .ptx .cubin)
  std::vector<BoundSource> sources;  ///< which to compile, and how
  std::vector<std::pair<std::string, std::string>> defines;
  std::string launch_plan_header;
  std::vector<SourceFile> headers;   ///< further virtual headers, e.g. a pack's <ptx/...>, by include name
  std::string arch = "sm_90a";
  ToolkitOptions toolkit;
  std::string cache_dir;             ///< empty: no cache
  std::uint64_t deadline_ns = 60'000'000'000;  ///< for the whole request, from its start
};

/// A compiled source.
struct CompiledModule {
  std::string source;                                  ///< its path
  std::vector<std::uint8_t> cubin;                     ///< empty if it failed, or where only the driver can assemble
  std::string ptx;                                     ///< empty for .cubin sources
  std::vector<std::pair<std::string, std::string>> lowered;  ///< name expression -> symbol
  std::vector<KernelResources> kernels;                ///< ptxas's resource lines; `kernel` = symbol
  std::string options;                                 ///< the command line, as one string
};

struct Compiled {
  bool ok = false;
  bool cached = false;
  std::string arch;
  std::string compiler;                                ///< "NVRTC 13.0.88"
  std::uint64_t duration_ns = 0;
  std::vector<CompiledModule> modules;                 ///< in the order of CompileRequest::sources
  std::vector<Diagnostic> diagnostics;
  std::vector<Finding> findings;                       ///< with severity error where !ok
  std::string log;                                     ///< the tools' raw output
};

/// Compiles in this process (see above). A bad candidate is a Compiled with ok == false; an Error means that
/// the environment is at fault (no NVRTC, headers incomplete, builtins missing), with the places searched.
Result<Compiled> compile_in_process(const CompileRequest& request);

}  // namespace ptxbench
