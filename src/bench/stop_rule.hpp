// When pairs are enough, and which of them are verified whole: pure.
#pragma once

#include <ptxbench/bench.hpp>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace ptxbench {

struct StopRules {
  int pairs = 40;
  std::uint64_t budget_ns = 0;
  double target_width = 0;  // of the interval of what is sampled, relative to its median; 0: never
  std::optional<double> slower_than;
};

// An interval narrow by chance is likelier the fewer pairs there are.
inline constexpr std::size_t kTargetPairs = 10;

// The rule by which measuring ends after these samples, or nothing: "slower", "target_width", "pairs",
// "budget".
// @p samples: ratios baseline / candidate; without a baseline the candidate's times (@p are_ratios false).
std::optional<std::string_view> stop_rule(const StopRules& rules, const std::vector<double>& samples,
                                          bool are_ratios, std::uint64_t elapsed_ns);

// The runs of candidate and baseline that a timing plans.
int planned_runs(const TimeJob& job) noexcept;

// Whether pair @p pair (from 0) is verified whole: the first, and in every four pairs one at random. The last
// one is too, which only its end tells.
bool verified_whole(std::uint64_t seed, int pair) noexcept;

// The buffer sets of pair @p pair out of @p sets: candidate and baseline walk over all of them, never on the
// same, and not in step with the order within pairs.
struct SetChoice {
  std::size_t candidate = 0, baseline = 0;
};
SetChoice choose_sets(int pair, std::size_t sets) noexcept;

}  // namespace ptxbench
