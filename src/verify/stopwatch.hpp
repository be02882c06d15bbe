// Adds up what each part of a stage takes, wall clock.
#pragma once

#include <ptxbench/trace/verdict.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxbench {

class Stopwatch {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Stopwatch(std::vector<StageTime>& stages) : stages_(stages), last_(Clock::now()) {}
  // The time since the last lap belongs to `stage`.
  void lap(std::string_view stage) {
    const Clock::time_point now = Clock::now();
    const std::uint64_t ns = nanoseconds(now - last_);
    last_ = now;
    for (StageTime& known : stages_)
      if (known.stage == stage) {
        known.duration_ns += ns;
        return;
      }
    stages_.push_back({std::string(stage), ns});
  }
  static std::uint64_t nanoseconds(Clock::duration duration) {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count());
  }

 private:
  std::vector<StageTime>& stages_;
  Clock::time_point last_;
};

}  // namespace ptxbench
