// The time stage: which protocol, and what every protocol asks of its job.
#include "bench/timed_session.hpp"
#include "core/guard.hpp"

#include <cmath>

namespace ptxbench {
namespace {

Result<void> check_job(const TimeJob& job) {
  const auto wrong = [](std::string message) {
    return make_error(ErrorCode::invalid_argument, std::move(message));
  };
  if (job.workload.definition == nullptr) return wrong("the workload has no definition");
  PTXBENCH_TRY(check_protocol(job.protocol));
  if (job.pairs < 0 || (job.pairs == 0 && !job.noise) || job.pairs > 100000 || job.warmup_pairs < 0 || job.warmup_pairs > kMostWarmupPairs ||
      job.noise_pairs < 1 || job.noise_pairs > 100000)
    return wrong("pairs must be from 1 (0 where noise alone is wanted) to 100000, warm-up pairs from 0 to 1000");
  if (!(job.target_width >= 0 && job.target_width < 1)) return wrong("a target width must lie in 0 to 1");
  if (job.protocol == kPublished && job.l2 == L2State::warm)
    return wrong("the protocol " + std::string(kPublished) + " is for a cold L2");
  if (job.baseline.kind == BaselineKind::solution && !job.baseline.solution)
    return wrong("a baseline by solution was asked for, but the job has none");
  if (job.baseline.kind == BaselineKind::fixed_time && job.baseline.fixed_ns == 0)
    return wrong("a fixed baseline time must be above zero");
  return {};
}

Result<TimeEvidence> run(Device& device, const TimeJob& job, LibraryBaseline* library,
                         HostCallbacks* callbacks, GpuMonitor* monitor, BaselineCalibration* calibration) {
  PTXBENCH_TRY(check_job(job));
  TimedSession session(device, job, library, callbacks, monitor, calibration);
  Stopwatch watch(session.evidence().stages);
  PTXBENCH_TRY_ASSIGN(const bool ready, session.prepare());
  watch.lap("prepare");
  if (ready) {
    if (job.protocol == kPublished)
      PTXBENCH_TRY(time_published(session, watch));
    else
      PTXBENCH_TRY(time_pairs(session, watch));
  }
  return std::move(session).finish();
}

}  // namespace

Result<void> check_protocol(std::string_view protocol) {
  if (protocol == kRigorous || protocol == kPublished) return {};
  return make_error(ErrorCode::invalid_argument, "unknown protocol \"" + std::string(protocol) +
                                                     "\"; there are: " + std::string(kRigorous) + ", " +
                                                     std::string(kPublished));
}

ComparatorSpec protocol_comparator(std::string_view protocol, const ComparatorSpec& requested) {
  if (protocol != kPublished) return requested;
  return {ComparatorKind::tolerance, {1e-2, 1e-2, true}, {}};
}

std::string_view l2_state_name(L2State state) noexcept { return state == L2State::warm ? "warm" : "cold"; }

Result<TimeEvidence> run_time(Device& device, const TimeJob& job, LibraryBaseline* library,
                              HostCallbacks* callbacks, GpuMonitor* monitor,
                              BaselineCalibration* calibration) {
  return guarded([&] { return run(device, job, library, callbacks, monitor, calibration); });
}

}  // namespace ptxbench
