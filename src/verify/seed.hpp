// Where randomness comes from: every key of a judgement follows from (request seed, workload, trial, tensor).
#pragma once

#include "verify/judge/random.h"

#include <ptxbench/core.hpp>

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace ptxbench {

// FNV-1a over length-prefixed words, finished by SplitMix64's mixer.
std::uint64_t derive_seed(std::uint64_t seed, std::initializer_list<std::string_view> words) noexcept;

// The key of one tensor's draw. `trial` is any number; timing uses numbers far from verification's.
std::uint64_t trial_seed(std::uint64_t request_seed, std::string_view workload_uuid,
                         std::int64_t trial) noexcept;
std::uint64_t tensor_key(std::uint64_t trial_seed, std::string_view tensor) noexcept;

// The distribution that trial number `trial` of a verification draws from.
judge::Distribution distribution_of_trial(int trial) noexcept;
std::string_view distribution_name(judge::Distribution distribution) noexcept;

// How a dense tensor is drawn.
judge::DrawSpec draw_spec(std::uint64_t key, DType dtype, const std::vector<std::int64_t>& shape,
                          judge::Distribution distribution) noexcept;

}  // namespace ptxbench
