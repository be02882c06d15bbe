// ptxas as a child process: how .ptx sources are assembled.
#pragma once

#include <ptxbench/core.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxbench {

struct PtxasOutput {
  enum class State { assembled, failed, timed_out, crashed } state = State::failed;
  std::string log;  // ptxas's words; the input is called "ptx input"
  std::vector<std::uint8_t> cubin;
};
// Runs `path` on `ptx` with `options` (e.g. "-arch=sm_90a"), in a temporary folder that is gone afterwards,
// and kills it at the deadline. The child stays in the caller's process group, so that whoever ends a
// worker's group ends it too. Errors: ErrorCode::toolkit where it cannot be started, ErrorCode::io where the
// folder cannot be written.
Result<PtxasOutput> run_ptxas(const std::string& path, std::string_view ptx,
                              const std::vector<std::string>& options,
                              std::chrono::steady_clock::time_point deadline);

// "13.0.88" of a ptxas; the error says why it does not tell.
Result<std::string> ptxas_version(const std::string& path);

}  // namespace ptxbench
