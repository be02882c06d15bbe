// What a host and its worker say to each other before the first job, and how a worker is told its limits.
//
// A conversation: the worker sends `hello`; the host checks it and sends a `job`; the worker sends
// `accepted`, may send `progress` and `ask` (the host sends an `answer` or an `error`), and ends the job with
// a `reply` or an `error`; then the next job. A worker that ends before `accepted` has not begun the job, so
// it can be given to another. The worker ends when the host hangs up or ends.
#pragma once

#include "core/message.hpp"

#include <ptxbench/core.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxbench {

// Goes up with every change of frames, hello or arguments.
inline constexpr int kWorkerProtocol = 1;

// Exit statuses of a worker that say something.
inline constexpr int kWorkerExitByHand = 2;     // started without a host
inline constexpr int kWorkerExitProtocol = 85;  // the host's messages make no sense
inline constexpr int kWorkerExitMemory = 86;    // an allocation failed

// What a worker writes to its output where it dies close to its memory limit.
inline constexpr std::string_view kWorkerMemoryNote = "ptxbench-worker: at the memory limit";

// Identifies the sources that this library or program was built from (16 hex digits).
std::string_view build_id() noexcept;

struct Hello {
  int protocol = kWorkerProtocol;
  std::string version;
  std::string build;
  std::vector<std::string> stages;  // kinds of job that it takes
};
Hello own_hello(std::vector<std::string> stages);
Message to_message(const Hello& hello);
// Lenient, so that the hello of another version can be read.
Result<Hello> hello_from(const Message& message);
// Why a worker that says `hello` does not fit this library; empty if it does.
std::string mismatch(const Hello& hello);

// What a count worker opens before it says hello. What goes wrong there is found again by the job.
struct WarmStart {
  std::string cuda_home;  // where CUDA's toolkit is; empty: found by itself
  std::string device;
};

// The worker's command line: --worker KIND [--memory-limit BYTES] [--file-limit BYTES] [--warm CUDA_HOME --warm-device ID]
struct WorkerArguments {
  std::string kind;                      // "compile", "device", "count": for messages and process listings
  std::uint64_t memory_limit_bytes = 0;  // writable private memory beyond what it starts with; 0: none
  std::uint64_t file_limit_bytes = 0;    // size of any file that it writes, captured output included; 0: none
  std::optional<WarmStart> warm;
};
std::vector<std::string> command_line(const WorkerArguments& arguments);
// Nothing where these are not the arguments that a host passes.
bool parse_command_line(int argc, char** argv, WorkerArguments& arguments);

}  // namespace ptxbench
