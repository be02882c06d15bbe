// The numbers of timed draws, far from verification's.
#pragma once

namespace ptxbench {

inline constexpr int kPairTrials = 1'000'000, kNoiseTrials = 2'000'000;  // a pair's number is added
inline constexpr int kMostWarmupPairs = 1000;                            // their numbers are negative

// Whether trial number @p trial is a timing's: such draws are Gaussian.
constexpr bool is_timed_trial(int trial) noexcept { return trial >= kPairTrials - kMostWarmupPairs; }

}  // namespace ptxbench
