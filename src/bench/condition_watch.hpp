// Clocks, throttling and other processes, noted while pairs are timed.
#pragma once

#include <ptxbench/bench.hpp>

namespace ptxbench {

class ConditionWatch {
 public:
  // @p monitor may be null. What cannot be told is in @p conditions, never an Error.
  ConditionWatch(GpuMonitor* monitor, GpuConditions& conditions);
  void start();
  // After pair @p pair; true where the hardware throttled before or after it.
  bool throttled(int pair);
  // Notes the whole state as it is now.
  void sample();
  void finish();

 private:
  void give_up(const Error& error);

  GpuMonitor* monitor_;
  GpuConditions& conditions_;
  bool last_throttled_ = false;
};

}  // namespace ptxbench
