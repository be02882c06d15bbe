// The protocol `ptxbench-published`: trials of many runs on the same tensors, the baseline in a block of its
// own.
#include "bench/timed_session.hpp"

namespace ptxbench {
namespace {

class PublishedTiming {
 public:
  explicit PublishedTiming(TimedSession& session)
      : session_(session), job_(session.job()), evidence_(session.evidence()) {}

  Result<void> measure() {
    evidence_.trials_wanted = kPublishedTrials;
    evidence_.method =
        "events around the run's first to last operation (published: CUPTI timestamps), gated, " +
        std::to_string(kPublishedTrials) + " trials of " + std::to_string(kPublishedWarmups) +
        " warm-up and " + std::to_string(kPublishedRuns) +
        " timed runs on the same tensors, L2 cleared before each by zeroing twice its size, median over "
        "a trial, mean over trials, the baseline in a block of its own";
    const Stopwatch::Clock::time_point start = Stopwatch::Clock::now();
    session_.watch().start();
    evidence_.stop_reason = "trials";
    for (int i = 0; i < kPublishedTrials; ++i) {
      if (i > 0 && Stopwatch::nanoseconds(Stopwatch::Clock::now() - start) > job_.budget_ns) {
        evidence_.stop_reason = "budget";
        break;
      }
      PTXBENCH_TRY_ASSIGN(const bool good, run_trial(i));
      if (!good) break;
      session_.watch().sample();  // noted; a block that was cut short would be another protocol
    }
    if (!evidence_.device_lost) session_.watch().finish();
    return {};
  }

 private:
  // False where the candidate failed.
  Result<bool> run_trial(int number) {
    BufferSet& own = session_.sets().front();
    BufferSet& other = session_.has_baseline() ? session_.sets()[1] : own;
    PTXBENCH_TRY_ASSIGN(Inputs inputs, session_.place(kPairTrials + number, own, other));
    PTXBENCH_TRY(own.buffers.poison_outputs(session_.device(), kTimedPoison));
    if (&other != &own) PTXBENCH_TRY(other.buffers.poison_outputs(session_.device(), kTimedPoison));
    TimedTrial trial;
    for (int i = -kPublishedWarmups; i < kPublishedRuns; ++i) {
      PTXBENCH_TRY_ASSIGN(TimedRun run,
                          session_.clock().run(*own.candidate, own.buffers, L2Preparation::zero));
      if (run.fault) {
        session_.candidate_failed(std::move(*run.fault), number);
        return false;
      }
      if (i >= 0) trial.candidate_ns.push_back(run.ns);
    }
    for (int i = -kPublishedWarmups; &other != &own && i < kPublishedRuns; ++i) {
      PTXBENCH_TRY_ASSIGN(const TimedRun run,
                          session_.clock().run(*other.baseline, other.buffers, L2Preparation::zero));
      if (run.fault) return session_.baseline_failed(*run.fault);
      if (i >= 0) trial.baseline_ns.push_back(run.ns);
    }
    TimedFailure failure;
    failure.pair = number;
    PTXBENCH_TRY(session_.check().red_zones(*own.candidate, own.buffers, failure));
    if (failure.violations.empty())
      PTXBENCH_TRY(
          session_.check().whole(inputs, own.buffers, &other != &own ? &other.buffers : nullptr, failure));
    if (TimedCheck::failed(failure)) {
      evidence_.failure = std::move(failure);
      return false;
    }
    ++evidence_.pairs_verified;
    evidence_.trials.push_back(std::move(trial));
    return true;
  }

  TimedSession& session_;
  const TimeJob& job_;
  TimeEvidence& evidence_;
};

}  // namespace

Result<void> time_published(TimedSession& session, Stopwatch& watch) {
  PTXBENCH_TRY(PublishedTiming(session).measure());
  watch.lap("trials");
  return {};
}

}  // namespace ptxbench
