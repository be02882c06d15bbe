#include "bench/condition_watch.hpp"

#include <algorithm>

namespace ptxbench {
namespace {

constexpr int kWholeEvery = 8;  // pairs between samples of the whole state; the reasons alone cost less

struct Reason {
  std::uint64_t bit;
  const char* name;
};
// nvmlClocksEventReason*.
constexpr Reason kReasons[] = {{0x1, "idle"},
                               {0x2, "applications_clocks"},
                               {0x4, "sw_power_cap"},
                               {0x8, "hw_slowdown"},
                               {0x10, "sync_boost"},
                               {0x20, "sw_thermal_slowdown"},
                               {0x40, "hw_thermal_slowdown"},
                               {0x80, "hw_power_brake"},
                               {0x100, "display_clocks"}};
constexpr std::uint64_t kThrottled = 0x8 | 0x20 | 0x40 | 0x80;

}  // namespace

std::vector<std::string> clock_reason_names(std::uint64_t reasons) {
  std::vector<std::string> names;
  for (const Reason& reason : kReasons) {
    if ((reasons & reason.bit) != 0) names.emplace_back(reason.name);
    reasons &= ~reason.bit;
  }
  if (reasons != 0) names.emplace_back("other");
  return names;
}

bool is_throttled(std::uint64_t reasons) noexcept { return (reasons & kThrottled) != 0; }

void GpuConditions::add(const GpuState& state) noexcept {
  if (samples++ == 0) low = state;
  const auto range = [](std::uint32_t value, std::uint32_t& least, std::uint32_t& most) {
    least = std::min(least, value);
    most = std::max(most, value);
  };
  range(state.sm_mhz, low.sm_mhz, high.sm_mhz);
  range(state.memory_mhz, low.memory_mhz, high.memory_mhz);
  range(state.temperature_c, low.temperature_c, high.temperature_c);
  range(state.power_mw, low.power_mw, high.power_mw);
  high.reasons |= state.reasons;
}

ConditionWatch::ConditionWatch(GpuMonitor* monitor, GpuConditions& conditions)
    : monitor_(monitor), conditions_(conditions) {
  if (monitor_ == nullptr) {
    if (conditions_.missing.empty()) conditions_.missing = "nothing looked at the GPU's clocks";
    return;
  }
  conditions_.source = monitor_->description();
  conditions_.max_sm_mhz = monitor_->max_sm_mhz();
}

void ConditionWatch::give_up(const Error& error) {
  conditions_.missing = error.message;
  monitor_ = nullptr;
}

void ConditionWatch::sample() {
  if (monitor_ == nullptr) return;
  const Result<GpuState> state = monitor_->state();
  if (!state) return give_up(state.error());
  conditions_.add(*state);
  last_throttled_ = is_throttled(state->reasons);
}

void ConditionWatch::start() {
  if (monitor_ == nullptr) return;
  monitor_->watch_others();
  sample();
}

bool ConditionWatch::throttled(int pair) {
  if (monitor_ == nullptr) return false;
  const bool before = last_throttled_;
  if (pair % kWholeEvery == 0) {
    sample();
  } else {
    const Result<std::uint64_t> reasons = monitor_->reasons();
    if (!reasons) {
      give_up(reasons.error());
      return false;
    }
    conditions_.high.reasons |= *reasons;
    last_throttled_ = is_throttled(*reasons);
  }
  return before || last_throttled_;
}

void ConditionWatch::finish() {
  if (monitor_ == nullptr) return;
  sample();
  if (monitor_ == nullptr) return;
  Result<std::vector<OtherProcess>> others = monitor_->others();
  if (others)
    conditions_.others = std::move(*others);
  else
    conditions_.missing = others.error().message;
}

}  // namespace ptxbench
