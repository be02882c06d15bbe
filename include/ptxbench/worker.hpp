/// @file
/// Worker processes: everything that reads candidate text with a compiler or runs candidate code happens in a
/// `ptxbench-worker`, so that a crash, a hang or a sticky GPU error ends the worker and not the host.
#pragma once

#include <ptxbench/bench.hpp>
#include <ptxbench/compile.hpp>
#include <ptxbench/core.hpp>
#include <ptxbench/count.hpp>
#include <ptxbench/device.hpp>
#include <ptxbench/verify.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace ptxbench {

struct WorkerOptions {
  std::string worker_path;          ///< empty: beside the library or executable, else the installed path
  int compile_workers = 0;          ///< most at a time; 0: by the number of cores
  std::uint64_t memory_limit_bytes = std::uint64_t{4} << 30;  ///< address space of a compile worker, beyond its start
  /// Where processes take turns in timing on a GPU: a file for each GPU. Empty: they do not.
  std::string lock_dir;
  LogFn log;
};

/// Pools of workers. Thread-safe: calls may overlap. Destroying it ends its workers.
class Workers {
 public:
  static Result<std::shared_ptr<Workers>> create(const WorkerOptions& options);
  virtual ~Workers() = default;

  /// Runs a compile job in a compile worker. The worker's death or deadline is a Compiled with ok == false
  /// and the finding compiler_crashed, compiler_timeout or compiler_memory; the next job finds a fresh one.
  virtual Result<Compiled> compile(const CompileRequest& request, const CancelToken& cancel) = 0;

  /// Starts the device worker for @p device ("auto": the first GPU; "cuda:0", "cuda:GPU-<uuid>", "emulator:h200" and the
  /// other names that parse_emulator_name reads) if there is none, and asks it what it runs on. Errors: no_device,
  /// toolkit, worker; invalid_argument, not_found, unsupported for an emulator's name.
  virtual Result<DeviceInfo> open_device(const std::string& device, const std::string& cuda_home,
                                         const CancelToken& cancel = {}) = 0;

  /// Runs a verify job on an opened device (its DeviceInfo::id). Jobs on one device run one at a time, but that a verification and a
  /// count may run side by side; what has been verified is timed and counted before the next job is verified. A worker
  /// that dies or hangs while the candidate runs is evidence (a fault), and is replaced; one that dies before or
  /// after is ErrorCode::worker. After a fault the replacement tests the device before anything else runs on it: where it
  /// fails, that is ErrorCode::driver (rule device_sick), and so is the job whose fault may have been the device's.
  /// @p callbacks are called on this thread.
  virtual Result<VerifyEvidence> verify(const std::string& device_id, const VerifyJob& job,
                                        HostCallbacks& callbacks, const CancelToken& cancel) = 0;
  /// The same for a time job, while no other process times on this GPU. @p hooks run on this thread before the first and after the last timed run.
  struct TimeHooks {
    std::function<void()> before, after;
  };
  virtual Result<TimeEvidence> time(const std::string& device_id, const TimeJob& job, HostCallbacks& callbacks,
                                    const TimeHooks& hooks, const CancelToken& cancel) = 0;

  /// Runs a count job on an opened device, in a count worker of its own: a fresh process, for which a spare one
  /// stands by that has its context and is idle. Runs beside a verification, unless one of the two asks to be alone, and never
  /// beside a timing. A worker that dies or hangs
  /// makes the counts unavailable, and is no Error. @p callbacks are called on this thread. On an emulator it is
  /// ErrorCode::unsupported: VerifyEvidence::emulator has the counts. So is `time`.
  virtual Result<CountEvidence> count(const std::string& device_id, const CountJob& job, HostCallbacks& callbacks,
                                      const CancelToken& cancel) = 0;
  /// Starts the spare count worker for an opened device if there is none, and does not wait for it. It opens its libraries and
  /// the device by itself; a timing waits for that.
  virtual void prepare_count(const std::string& device_id) = 0;

  /// Where the worker is, and whether its protocol and build match. Starts one.
  struct Check {
    std::string path;
    bool found = false, matches = false;
    std::string version, message;
    std::uint64_t start_ns = 0;     ///< from spawn to its first message
  };
  virtual Check check() = 0;
};

}  // namespace ptxbench
