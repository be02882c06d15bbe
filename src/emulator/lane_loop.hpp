// Before a loop over lanes whose output may be one of its inputs: lane i touches index i alone.
#pragma once

#include <cstdint>

#if defined(__clang__)
#define PTXBENCH_LANE_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define PTXBENCH_LANE_LOOP _Pragma("GCC ivdep")
#endif

// What the loops call must become part of them, or they stay scalar.
#define PTXBENCH_INLINE inline __attribute__((always_inline))

namespace ptxbench::emulator {

// condition ? yes : no, of bits. Chains of the operator become jumps, and loops with jumps stay scalar.
PTXBENCH_INLINE std::uint32_t select(bool condition, std::uint32_t yes, std::uint32_t no) {
  const std::uint32_t mask = 0u - static_cast<std::uint32_t>(condition);
  return (yes & mask) | (no & ~mask);
}
PTXBENCH_INLINE std::uint64_t select(bool condition, std::uint64_t yes, std::uint64_t no) {
  const std::uint64_t mask = std::uint64_t{0} - static_cast<std::uint64_t>(condition);
  return (yes & mask) | (no & ~mask);
}

}  // namespace ptxbench::emulator
