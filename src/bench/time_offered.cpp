#include "bench/time_offered.hpp"

#include "bench/owned_event.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace ptxbench {
namespace {

constexpr int kRunsEach = 3;
constexpr std::uint64_t kDeadline = 60'000'000'000;

Result<void> wait(Device& device, const std::string& library) {
  PTXBENCH_TRY_ASSIGN(const DeviceOutcome outcome, device.synchronize(kDeadline));
  if (outcome)
    return make_error(ErrorCode::driver, library + " failed: " + outcome->name + ": " + outcome->message);
  return {};
}

}  // namespace

Result<Fastest> time_offered(Device& device, const std::string& library, std::size_t count,
                             const std::function<Result<void>(std::size_t)>& queue) {
  PTXBENCH_TRY_ASSIGN(const OwnedEvent start, OwnedEvent::create(device));
  PTXBENCH_TRY_ASSIGN(const OwnedEvent end, OwnedEvent::create(device));
  Fastest fastest;
  std::uint64_t best = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t i = 0; i < count; ++i) {
    if (Result<void> queued = queue(i); !queued) {
      if (!fastest.first_refusal) fastest.first_refusal = std::move(queued).error();
      continue;
    }
    PTXBENCH_TRY(wait(device, library));
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (int run = 0; run < kRunsEach; ++run) {
      PTXBENCH_TRY(device.record(start.get()));
      PTXBENCH_TRY(queue(i));
      PTXBENCH_TRY(device.record(end.get()));
      PTXBENCH_TRY(wait(device, library));
      PTXBENCH_TRY_ASSIGN(const std::uint64_t ns, device.elapsed_ns(start.get(), end.get()));
      least = std::min(least, ns);
    }
    if (least >= best) continue;
    best = least;
    fastest.index = i;
  }
  return fastest;
}

}  // namespace ptxbench
