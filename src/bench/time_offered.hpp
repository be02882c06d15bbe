// The fastest of what a library offers for one operation.
#pragma once

#include <ptxbench/device.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace ptxbench {

inline constexpr int kMostOffered = 8;  // as many of a library's offers are tried

struct Fastest {
  std::optional<std::size_t> index;    // nothing: none could be queued
  std::optional<Error> first_refusal;  // of the first offer that could not be queued
};

// Tries offers 0 to @p count - 1: each runs once uncounted, then a few times; its time is the least of these.
// @p queue queues one run of an offer; one that fails at its first run is left out. A fault, or a failure
// later on, is an Error; @p library is named in it. Nothing may be queued on the device's stream before.
Result<Fastest> time_offered(Device& device, const std::string& library, std::size_t count,
                             const std::function<Result<void>(std::size_t)>& queue);

}  // namespace ptxbench
