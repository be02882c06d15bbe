// The protocol `rigorous`: candidate and baseline in alternating pairs on new inputs, over a pool of buffer
// sets.
#include "bench/stop_rule.hpp"
#include "bench/timed_session.hpp"

namespace ptxbench {
namespace {

class PairTiming {
 public:
  explicit PairTiming(TimedSession& session)
      : session_(session), job_(session.job()), evidence_(session.evidence()) {}

  Result<void> measure() {
    const StopRules rules{job_.pairs, job_.budget_ns, job_.target_width, job_.stop_if_slower_than};
    evidence_.method = "events around the run's first to last operation, gated, ";
    evidence_.method +=
        job_.l2 == L2State::warm ? "warm L2 (the inputs read)" : "cold L2 (written, then read)";
    evidence_.method += ", new inputs for each of alternating pairs over " +
                        std::to_string(session_.sets().size()) + " buffer sets";
    for (int i = -job_.warmup_pairs; i < 0; ++i) {
      TimedPair pair;
      pair.baseline_first = i % 2 != 0;
      Placed placed;
      PTXBENCH_TRY_ASSIGN(bool good, run_pair(i, pair, placed));
      if (good) {
        PTXBENCH_TRY_ASSIGN(good, check_pair(i, pair, placed, i == -job_.warmup_pairs));
      }
      if (!good) return {};
    }
    const Stopwatch::Clock::time_point start = Stopwatch::Clock::now();
    session_.watch().start();
    std::vector<double> samples;
    const bool are_ratios = session_.has_baseline() || job_.baseline.kind == BaselineKind::fixed_time;
    for (int attempt = 0;; ++attempt) {
      TimedPair pair;
      pair.baseline_first = evidence_.pairs.size() % 2 != 0;
      Placed placed;
      PTXBENCH_TRY_ASSIGN(bool good, run_pair(attempt, pair, placed));
      if (!good) break;
      const bool throttled = session_.watch().throttled(attempt);
      if (throttled) {
        ++evidence_.pairs_discarded;
      } else {
        evidence_.pairs.push_back(pair);
        samples.push_back(sample_of(pair));
      }
      const std::uint64_t elapsed = Stopwatch::nanoseconds(Stopwatch::Clock::now() - start);
      std::optional<std::string_view> rule = stop_rule(rules, samples, are_ratios, elapsed);
      if (!rule && evidence_.pairs_discarded >= job_.pairs) rule = "throttled";
      const bool whole = rule.has_value() || verified_whole(job_.seed, attempt);
      PTXBENCH_TRY_ASSIGN(good, check_pair(attempt, pair, placed, whole));
      if (!good) break;
      evidence_.pairs_verified += whole ? 1 : 0;
      if (rule) {
        evidence_.stop_reason = *rule;
        break;
      }
    }
    return {};
  }

  // The baseline against itself, on two sets, as in a real pair.
  Result<void> measure_noise() {
    const Stopwatch::Clock::time_point start = Stopwatch::Clock::now();
    const StopRules rules{job_.noise_pairs, job_.budget_ns, job_.target_width, std::nullopt};
    std::vector<double> ratios;
    int discarded = 0;
    if (job_.pairs == 0) session_.watch().start();
    for (int i = -1;; ++i) {
      const SetChoice choice = choose_sets(i, session_.sets().size());
      BufferSet &a = session_.sets()[choice.candidate], &b = session_.sets()[choice.baseline];
      PTXBENCH_TRY(session_.place(kNoiseTrials + i, a, b));
      PTXBENCH_TRY(a.buffers.poison_outputs(session_.device(), kTimedPoison));
      PTXBENCH_TRY(b.buffers.poison_outputs(session_.device(), kTimedPoison));
      TimedPair pair;
      pair.baseline_first = evidence_.noise.size() % 2 != 0;
      for (const bool baseline : {pair.baseline_first, !pair.baseline_first}) {
        BufferSet& set = baseline ? b : a;
        PTXBENCH_TRY_ASSIGN(const TimedRun run,
                            session_.clock().run(*set.baseline, set.buffers, session_.l2_preparation()));
        if (run.fault) return session_.baseline_failed(*run.fault);
        (baseline ? pair.baseline_ns : pair.candidate_ns) = run.ns;
      }
      const bool throttled = session_.watch().throttled(i);
      if (i < 0) continue;  // warms up
      if (throttled) {
        if (++discarded >= job_.noise_pairs) return {};
      } else {
        evidence_.noise.push_back(pair);
        ratios.push_back(ratio(pair.baseline_ns, pair.candidate_ns));
      }
      if (stop_rule(rules, ratios, true, Stopwatch::nanoseconds(Stopwatch::Clock::now() - start))) return {};
    }
  }

 private:
  // What a pair ran on.
  struct Placed {
    Inputs inputs;
    SetChoice sets;
  };

  static double ratio(std::uint64_t baseline, std::uint64_t candidate) {
    return candidate == 0 ? 0 : static_cast<double>(baseline) / static_cast<double>(candidate);
  }
  double sample_of(const TimedPair& pair) const {
    if (session_.has_baseline()) return ratio(pair.baseline_ns, pair.candidate_ns);
    if (job_.baseline.kind == BaselineKind::fixed_time)
      return ratio(job_.baseline.fixed_ns, pair.candidate_ns);
    return static_cast<double>(pair.candidate_ns);
  }

  Result<TimedRun> timed_baseline(BufferSet& set) {
    PTXBENCH_TRY_ASSIGN(TimedRun run,
                        session_.clock().run(*set.baseline, set.buffers, session_.l2_preparation()));
    if (run.fault) return session_.baseline_failed(*run.fault);
    return run;
  }

  // Places and runs one pair; false where the candidate failed.
  Result<bool> run_pair(int number, TimedPair& pair, Placed& placed) {
    placed.sets = choose_sets(number, session_.sets().size());
    BufferSet& own = session_.sets()[placed.sets.candidate];
    BufferSet* other = session_.has_baseline() ? &session_.sets()[placed.sets.baseline] : nullptr;
    PTXBENCH_TRY_ASSIGN(placed.inputs,
                        session_.place(kPairTrials + number, own, other != nullptr ? *other : own));
    PTXBENCH_TRY(own.buffers.poison_outputs(session_.device(), kTimedPoison));
    if (other != nullptr && pair.baseline_first) {
      PTXBENCH_TRY_ASSIGN(const TimedRun run, timed_baseline(*other));
      pair.baseline_ns = run.ns;
    }
    // The candidate finds no result to copy: what the baseline wrote is overwritten first.
    if (other != nullptr) PTXBENCH_TRY(other->buffers.poison_outputs(session_.device(), kTimedPoison));
    PTXBENCH_TRY_ASSIGN(TimedRun run,
                        session_.clock().run(*own.candidate, own.buffers, session_.l2_preparation()));
    if (run.fault) {
      session_.candidate_failed(std::move(*run.fault), number);
      return false;
    }
    pair.candidate_ns = run.ns;
    if (other != nullptr && !pair.baseline_first) {
      PTXBENCH_TRY_ASSIGN(const TimedRun later, timed_baseline(*other));
      pair.baseline_ns = later.ns;
    }
    return true;
  }

  // False where the candidate was wrong.
  Result<bool> check_pair(int number, const TimedPair& pair, Placed& placed, bool whole) {
    BufferSet& own = session_.sets()[placed.sets.candidate];
    TimedFailure failure;
    failure.pair = number;
    PTXBENCH_TRY(session_.check().red_zones(*own.candidate, own.buffers, failure));
    if (whole && failure.violations.empty()) {
      const bool compared = session_.has_baseline() && session_.check().uses_baseline();
      BufferSet* other = compared ? &session_.sets()[placed.sets.baseline] : nullptr;
      if (other != nullptr && pair.baseline_first) {
        PTXBENCH_TRY_ASSIGN(const DeviceOutcome outcome, session_.clock().run_untimed(*other->baseline));
        if (outcome) return session_.baseline_failed(*outcome);
      }
      PTXBENCH_TRY(session_.check().whole(placed.inputs, own.buffers,
                                          other != nullptr ? &other->buffers : nullptr, failure));
    }
    if (!TimedCheck::failed(failure)) return true;
    evidence_.failure = std::move(failure);
    return false;
  }

  TimedSession& session_;
  const TimeJob& job_;
  TimeEvidence& evidence_;
};

}  // namespace

Result<void> time_pairs(TimedSession& session, Stopwatch& watch) {
  PairTiming timing(session);
  if (session.job().pairs > 0) PTXBENCH_TRY(timing.measure());
  watch.lap("pairs");
  const TimeEvidence& evidence = session.evidence();
  if (session.job().noise && session.has_baseline() && !evidence.fault && !evidence.failure) {
    PTXBENCH_TRY(timing.measure_noise());
    watch.lap("noise");
  }
  if (!evidence.device_lost) session.watch().finish();
  return {};
}

}  // namespace ptxbench
