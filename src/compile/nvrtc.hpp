// One NVRTC compilation.
#pragma once

#include "core/cuda_libs.hpp"

#include <ptxbench/compile.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace ptxbench {

using SteadyTime = std::chrono::steady_clock::time_point;

struct NvrtcJob {
  std::string name;  // full name, kCandidateRoot + path
  std::string source;
  std::vector<SourceFile> headers;
  std::vector<std::string> options;
  std::vector<std::string> name_expressions;
  SteadyTime deadline;
};
struct NvrtcOutput {
  enum class State { compiled, failed, timed_out, out_of_memory, crashed } state = State::failed;
  std::string log;
  std::string ptx;  // also where ptxas failed
  std::vector<std::uint8_t> cubin;
  std::vector<std::pair<std::string, std::string>> lowered;
};
// The deadline is kept by NVRTC's flow callback, which it calls now and then; where it never does, only
// ending the process helps. Errors: the environment's (options that this NVRTC does not know, builtins that
// do not open).
Result<NvrtcOutput> run_nvrtc(const Nvrtc& nvrtc, const NvrtcJob& job);

// Name expressions that NVRTC could not make sense of, read from its log.
std::vector<std::string> failed_name_expressions(std::string_view log, const std::vector<std::string>& asked);
// The log without what it says about name expressions.
std::string without_name_expressions(std::string_view log);

}  // namespace ptxbench
