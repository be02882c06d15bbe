#include "bench/stop_rule.hpp"

#include "verify/seed.hpp"

#include <string>

namespace ptxbench {

std::optional<std::string_view> stop_rule(const StopRules& rules, const std::vector<double>& samples,
                                          bool are_ratios, std::uint64_t elapsed_ns) {
  if (const auto interval = median_interval(samples)) {
    if (are_ratios && rules.slower_than && interval->second < *rules.slower_than) return "slower";
    // After whole turns of the order within pairs only, so that neither order weighs more.
    const double middle = (interval->first + interval->second) / 2;
    if (rules.target_width > 0 && samples.size() >= kTargetPairs && samples.size() % 2 == 0 && middle > 0 &&
        interval->second - interval->first <= rules.target_width * middle)
      return "target_width";
  }
  if (samples.size() >= static_cast<std::size_t>(rules.pairs)) return "pairs";
  if (elapsed_ns > rules.budget_ns) return "budget";
  return std::nullopt;
}

int planned_runs(const TimeJob& job) noexcept {
  if (job.protocol == kPublished) return 2 * kPublishedTrials * (kPublishedWarmups + kPublishedRuns);
  return 2 * (job.pairs + job.warmup_pairs + (job.noise ? job.noise_pairs : 0));
}

bool verified_whole(std::uint64_t seed, int pair) noexcept {
  constexpr int kEvery = 4;
  if (pair <= 0) return true;
  const auto block = static_cast<std::uint64_t>(pair / kEvery);
  // A seed a block: no pair's draw tells of the next block's.
  return derive_seed(seed + block * 0x9e3779b97f4a7c15ull, {"verified pairs"}) % kEvery ==
         static_cast<std::uint64_t>(pair % kEvery);
}

SetChoice choose_sets(int pair, std::size_t sets) noexcept {
  if (sets < 2) return {};
  const auto p = static_cast<std::size_t>(pair < 0 ? -pair : pair);
  const std::size_t lap = p / sets, candidate = (p + lap) % sets;
  return {candidate, (candidate + 1 + lap % (sets - 1)) % sets};
}

}  // namespace ptxbench
