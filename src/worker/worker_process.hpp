// One worker as its host sees it: started, greeted, given jobs one after another, killed and replaced. The
// unit of which pools (compile) and single workers (device, count) are made.
#pragma once

#include "core/channel.hpp"
#include "core/subprocess.hpp"
#include "worker/protocol.hpp"
#include "worker/stage.hpp"

#include <ptxbench/core.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ptxbench {

struct WorkerLaunch {
  std::string path;                                              // absolute; find_worker
  WorkerArguments arguments;                                     // kind and limits
  std::vector<std::pair<std::string, std::string>> environment;  // set in the worker, beside the host's own
  std::chrono::milliseconds hello_timeout{30'000};
  bool private_temp = false;             // a temporary folder of its own (SpawnOptions)
  std::size_t output_bytes = 16 * 1024;  // of a dead worker's output, how much is kept
  std::shared_ptr<Graveyard>
      graveyard;  // where killed workers go; may be null (then killing waits for the end)
};

// How a worker ended during a job.
struct WorkerDeath {
  enum class Kind : std::uint8_t {
    deadline,  // the job's time was up; the host killed it
    memory,    // it ran into its memory limit
    crashed,   // by a signal or with an exit status that it does not choose itself
    closed     // it is gone, or what it sent makes no sense; no more is known
  };
  Kind kind = Kind::closed;
  bool begun = false;       // whether it had begun the job; else the job can be given to another worker
  int signal = 0;           // where a signal ended it (but not the host's own SIGKILL)
  int exit_status = -1;     // where it exited
  std::string description;  // "killed by signal 11 (SIGSEGV)"
  std::string output;       // the tail of what it printed during this job
};
std::string_view death_name(WorkerDeath::Kind kind) noexcept;  // "deadline", ...

struct CallOutcome {
  bool died = false;
  Parcel reply;       // unless it died
  WorkerDeath death;  // if it died
};

// Answers a stage's progress and ask messages during a call, on the calling thread. What it returns for `ask`
// is the answer (an Error ends the job); for `progress` only an Error counts: it ends the call, and the
// worker.
using CallHandler = std::function<Result<Parcel>(FrameKind kind, Parcel message)>;

struct CallLimits {
  // From the call's start; time spent in the handler is not counted. Nothing: no limit.
  std::optional<std::chrono::nanoseconds> time;
  const CancelToken* cancel = nullptr;
};

// One thread at a time.
class WorkerProcess {
 public:
  // Starts a worker without waiting for it. Errors: ErrorCode::worker.
  static Result<WorkerProcess> launch(const WorkerLaunch& launch);
  WorkerProcess(WorkerProcess&&) noexcept = default;
  WorkerProcess& operator=(WorkerProcess&& other) noexcept;
  ~WorkerProcess();

  // Waits for the hello and checks it, once; `call` does so by itself. Errors: ErrorCode::worker where it
  // does not start or does not match; cancelled.
  Result<void> greet(const CancelToken* cancel = nullptr);
  // One job: request in, result out. Errors: cancelled (the worker is then killed), worker (as greet), what
  // the stage returned as its Error, or the handler. A death is no error. After a death or a cancellation
  // this object is `dead` and can be restarted.
  Result<CallOutcome> call(const Message& job, std::span<const int> files, const CallLimits& limits,
                           const CallHandler& handler = {});

  // Alive, and not in the middle of anything.
  bool ready() noexcept;
  void kill() noexcept;
  // Kills what is there and launches a new one.
  Result<void> restart();

  pid_t pid() const noexcept { return process_ ? process_->pid() : -1; }
  int jobs_done() const noexcept { return jobs_done_; }
  const Hello& hello() const noexcept { return hello_; }
  std::string output_tail() const;
  // From spawn to hello; 0 before greet. Where the host came late to read it, this includes that.
  std::chrono::nanoseconds start_time() const noexcept { return start_time_; }
  // From the kill of its predecessor to hello; 0 for one that has none.
  std::chrono::nanoseconds kill_to_ready() const noexcept { return kill_to_ready_; }

 private:
  WorkerProcess() = default;
  Result<void> spawn();
  Error not_started(std::string_view why);
  WorkerDeath bury(ChannelStatus status);
  void discard() noexcept;

  WorkerLaunch launch_;
  std::optional<Subprocess> process_;
  Channel channel_;
  Hello hello_;
  bool greeted_ = false;
  int jobs_done_ = 0;
  SteadyClock::time_point spawned_at_{};
  std::optional<SteadyClock::time_point> predecessor_killed_at_;
  std::chrono::nanoseconds start_time_{0};
  std::chrono::nanoseconds kill_to_ready_{0};
};

}  // namespace ptxbench
