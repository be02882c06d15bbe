// CUDA text to cubin and PTX for tests, straight through NVRTC.
#pragma once

#include "core/cuda_libs.hpp"

#include <ptxbench/core.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace ptxbench::testing {

struct CompiledText {
  std::vector<std::uint8_t> cubin;
  std::string ptx;
};

inline Result<CompiledText> nvrtc_compile(const std::string& source, const std::string& arch) {
  PTXBENCH_TRY_ASSIGN(const auto nvrtc, Nvrtc::open());
  nvrtcProgram program = nullptr;
  if (nvrtc->nvrtcCreateProgram(&program, source.c_str(), "test.cu", 0, nullptr, nullptr) != NVRTC_SUCCESS)
    return make_error(ErrorCode::toolkit, "nvrtcCreateProgram");
  const std::string target = "--gpu-architecture=" + arch;
  const char* options[] = {target.c_str(), "--std=c++17", "-lineinfo"};
  const nvrtcResult result = nvrtc->nvrtcCompileProgram(program, 3, options);
  CompiledText compiled;
  std::size_t size = 0;
  if (result == NVRTC_SUCCESS) {
    nvrtc->nvrtcGetCUBINSize(program, &size);
    compiled.cubin.resize(size);
    nvrtc->nvrtcGetCUBIN(program, reinterpret_cast<char*>(compiled.cubin.data()));
    nvrtc->nvrtcGetPTXSize(program, &size);
    compiled.ptx.resize(size);
    nvrtc->nvrtcGetPTX(program, compiled.ptx.data());
    while (!compiled.ptx.empty() && compiled.ptx.back() == '\0') compiled.ptx.pop_back();
    nvrtc->nvrtcDestroyProgram(&program);
    return compiled;
  }
  nvrtc->nvrtcGetProgramLogSize(program, &size);
  std::string log(size, '\0');
  nvrtc->nvrtcGetProgramLog(program, log.data());
  nvrtc->nvrtcDestroyProgram(&program);
  return make_error(ErrorCode::internal, "the test's CUDA text does not compile:\n" + log);
}

}  // namespace ptxbench::testing
