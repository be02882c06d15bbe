// The one place that starts a worker process, whatever its kind. A library that starts processes is a guest
// in somebody's process, so:
//  - posix_spawn, never fork; signal dispositions default, mask empty, own process group, stdin /dev/null,
//    no descriptor of the host's but a socket at 3 and the captured output at 1 and 2;
//  - a socket pair and never a pipe, because only a socket can be written without risking SIGPIPE;
//  - the end of the process is seen by its pidfd (or by EOF), never by a handler nor by waitpid(-1). Where
//  the
//    host ignores SIGCHLD, or waits for children of its own with waitpid(-1), the exit status may be lost;
//    ExitStatus then says that it is unknown, and nothing else changes;
//  - no call waits for a process without a bound.
//
// After fork(2) without exec in the host: the child's copies own nothing. Their destructors close descriptors
// and leave the processes, which are the parent's, alone.
//
// One thread at a time.
#pragma once

#include "core/unique_fd.hpp"

#include <ptxbench/core.hpp>

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ptxbench {

using SteadyClock = std::chrono::steady_clock;

// Descriptor at which a worker finds its end of the socket.
inline constexpr int kWorkerSocketFd = 3;

struct SpawnOptions {
  std::string path;                    // absolute; no search
  std::vector<std::string> arguments;  // without argv[0]
  // The child's environment is the host's, less what `unset_environment` names ("NAME", or "PREFIX*"), plus
  // `set_environment`. The host's is read while spawning: as with every reader of it, not while another
  // thread changes it.
  std::vector<std::pair<std::string, std::string>> set_environment;
  std::vector<std::string> unset_environment;
  // A temporary folder of its own (TMPDIR), removed with all that is in it once the process has ended: what
  // is killed does not tidy up.
  bool private_temp = false;
};

// How a process ended, as far as the kernel tells.
struct ExitStatus {
  enum class Kind : std::uint8_t { unknown, exited, signalled } kind = Kind::unknown;
  int value = 0;  // exit status, or signal number
  // "exit status 3", "killed by signal 11 (SIGSEGV)", "ended; its exit status is not known ..."
  std::string to_string() const;
};

class Subprocess {
 public:
  // Errors: ErrorCode::worker, naming the path and what the system said.
  static Result<Subprocess> start(const SpawnOptions& options);

  Subprocess(Subprocess&& other) noexcept;
  Subprocess& operator=(Subprocess&& other) noexcept;
  ~Subprocess();  // kills the group and waits for it, 2 s at most

  pid_t pid() const noexcept { return pid_; }
  // Whether the calling process started it; false in a forked copy of that.
  bool owned() const noexcept;
  // Readable once the process has ended; -1 on kernels without pidfds (then EOF on the socket is the sign).
  int exit_fd() const noexcept { return pidfd_.get(); }
  // The host's end of the socket, which the caller then owns. Once.
  UniqueFd take_socket() noexcept { return std::move(socket_); }

  // Waits until the process has ended, at most until `until`. Once it has, kills what is left of its group
  // (a compiler that the worker started), reaps, and remembers the status.
  std::optional<ExitStatus> wait(SteadyClock::time_point until) noexcept;
  std::optional<ExitStatus> poll() noexcept { return wait(SteadyClock::time_point::min()); }
  // SIGKILL to the process and its whole group. Does not wait.
  void kill() noexcept;

  // What the process and its children wrote to stdout and stderr since the last clear: the last `max_bytes`,
  // as valid UTF-8 without control characters, with a note of what was cut.
  std::string output_tail(std::size_t max_bytes) const;
  std::uint64_t output_bytes() const noexcept;
  void clear_output() noexcept;

 private:
  Subprocess() = default;
  bool ended(SteadyClock::time_point until) noexcept;
  void settle() noexcept;
  void signal_group(int signal) noexcept;
  void end() noexcept;
  void remove_temp() noexcept;

  pid_t pid_ = -1;
  pid_t owner_ = -1;  // the process that started it
  bool reaped_ = false;
  UniqueFd pidfd_;
  UniqueFd socket_;
  UniqueFd output_;
  std::string temp_;
  std::optional<ExitStatus> status_;
};

// Where killed processes are left that may take a while to go (a GPU context can need a second), so that
// their replacement need not wait. Thread-safe. Its destructor waits for them, 2 s at most.
class Graveyard {
 public:
  Graveyard() = default;
  ~Graveyard();
  void bury(Subprocess process) noexcept;  // kills it, collects those that have gone
  void collect() noexcept;
  std::size_t size() const noexcept;

 private:
  mutable std::mutex mutex_;
  std::vector<Subprocess> dying_;
};

// `bytes` as valid UTF-8: bytes that are not, and control characters but newline and tab, become U+FFFD.
std::string printable_text(std::string_view bytes);

}  // namespace ptxbench
