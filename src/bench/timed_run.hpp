// One timed run: what can be run, and how it is run cold (or warm), behind a gate, between two events.
#pragma once

#include "bench/owned_event.hpp"
#include "verify/judge_ops.hpp"
#include "verify/session.hpp"

#include <ptxbench/bench.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ptxbench {

inline constexpr std::uint8_t kTimedPoison = 0xff;  // NaN in every float type

// Something that can be run on buffers of its own: a plan's, or a library's kernel.
class Runnable {
 public:
  virtual ~Runnable() = default;
  // Everything that must not lie in the timed interval; may block.
  virtual Result<void> before() = 0;
  virtual Result<DeviceOutcome> enqueue() = 0;
  // Red zones of its workspaces.
  virtual Result<void> check(Device& device, std::vector<IntegrityViolation>& found) = 0;
};
Result<std::unique_ptr<Runnable>> make_plan_runnable(LoadedPlan& loaded, const TensorBuffers& buffers);
std::unique_ptr<Runnable> make_library_runnable(LibraryBaseline& library, const TensorBuffers& buffers);

struct TimedRun {
  std::uint64_t ns = 0;
  DeviceOutcome fault;
};

// How the L2 is emptied (or filled) before a run.
enum class L2Preparation : std::uint8_t {
  flush,  // more than twice its size written, then read
  read,   // the run's inputs read, so that it holds what fits of them
  zero    // twice its size zeroed, as in the published protocol
};

// Times runs on a device, one at a time. Belongs to the device's thread.
class RunClock {
 public:
  // Errors: unsupported (the device has no clock that would mean anything).
  static Result<std::unique_ptr<RunClock>> create(Device& device, JudgeOps& judge,
                                                  std::uint64_t run_deadline_ns);

  // Prepares, waits, and runs @p what once. @p buffers: what it runs on.
  Result<TimedRun> run(Runnable& what, const TensorBuffers& buffers, L2Preparation l2);
  // Runs it once without taking its time.
  Result<DeviceOutcome> run_untimed(Runnable& what);
  // What the events tell of an empty interval, and of a kernel that does nothing: medians of a few.
  Result<void> measure_overhead(std::uint64_t& empty_ns, std::uint64_t& empty_kernel_ns);
  bool gated() const { return !ungated_; }

 private:
  RunClock(Device& device, JudgeOps& judge, std::uint64_t deadline)
      : device_(device), judge_(judge), run_deadline_ns_(deadline) {}
  Result<void> prepare_l2(const TensorBuffers& buffers, L2Preparation l2);
  Result<std::uint64_t> interval(bool with_kernel);

  Device& device_;
  JudgeOps& judge_;
  std::uint64_t run_deadline_ns_;
  bool ungated_ = false;  // the device has no gate, or the plan does not fit behind it
  OwnedBuffer zeroed_;
  OwnedEvent start_, end_;
};

}  // namespace ptxbench
