// Where CUDA's libraries, headers and ptxas are looked for: one order for all of them (docs/toolkit.md).
#pragma once

#include <ptxbench/core.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace ptxbench {

// What may be searched, in this order. Everything is searched by default; tests and people who want one
// toolkit and no other switch parts off.
struct ToolkitSearch {
  std::string file;  // this very library (or ptxas) and nothing else, where not empty
  std::string
      cuda_home;  // a toolkit, a folder of NVIDIA's wheels (the one that holds `nvidia`), or `nvidia` itself
  std::string near;          // a file of the toolkit already in use: its toolkit comes next
  bool environment = true;   // PTXBENCH_CUDA_HOME, CUDA_HOME, CUDA_PATH
  bool usual_places = true;  // the toolkit that this was built with, /usr/local/cuda, /usr/local/cuda-*, /opt/cuda
  bool wheels = true;        // site-packages/nvidia of virtual environments and Pythons
  bool loader = true;        // the dynamic loader for libraries, PATH for ptxas

  // `home` and nothing else.
  static ToolkitSearch only(std::string home) {
    ToolkitSearch search;
    search.cuda_home = std::move(home);
    search.environment = search.usual_places = search.wheels = search.loader = false;
    return search;
  }
};

// A folder that may hold a toolkit, and how we came to it ("option cuda_home", "CUDA_HOME", ...).
struct ToolkitPlace {
  std::string root;
  std::string origin;
};
// In the order of search, each folder once; also such as do not exist, because messages name them.
std::vector<ToolkitPlace> toolkit_places(const ToolkitSearch& search);

enum class ToolkitPart { libraries, headers, programs };
// The folders below `root` that exist and may hold that part, in a toolkit's layout (lib64, include, bin), in
// the wheels' of CUDA 13 (cu13/lib, ...) and of CUDA 12 (cuda_nvrtc/lib, ...).
std::vector<std::string> toolkit_directories(const std::string& root, ToolkitPart part);

// One line for messages: every place, those that do not exist marked so.
std::string describe_places(const ToolkitSearch& search, ToolkitPart part);

// The program called `name` in the first of `folders` (separated by ':', as in PATH) that has one; empty where none has.
std::string find_program(std::string_view name, const std::string& folders);

// ptxas. Errors: ErrorCode::toolkit with all places.
Result<std::string> find_ptxas(const ToolkitSearch& search);

// Include folders for NVRTC.
struct CudaHeaders {
  std::string root;
  std::vector<std::string> directories;  // <root>/include, <root>/include/cccl, ...
  int cuda_version = 0;                  // CUDA_VERSION of cuda.h, e.g. 13000
};
// The first toolkit whose headers are whole. A set that lacks one of those that every other header needs
// (cuda.h, cuda_fp16.h, cuda_bf16.h, vector_types.h, nv/target, ...) is passed over; where no set is whole
// the error (ErrorCode::toolkit) names what each lacked.
Result<CudaHeaders> find_cuda_headers(const ToolkitSearch& search);

}  // namespace ptxbench
