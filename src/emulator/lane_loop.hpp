// Loops over the 32 lanes, as plain functions that are compiled for several instruction sets.
#pragma once

#include "emulator/clones.hpp"

#include <cstdint>

// Before a loop over lanes whose output may be one of its inputs: lane i touches index i alone.
#if defined(__clang__)
#define PTXBENCH_LANE_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define PTXBENCH_LANE_LOOP _Pragma("GCC ivdep")
#endif

// What the loops call must become part of them, or they stay scalar.
#define PTXBENCH_INLINE inline __attribute__((always_inline))

// A function each, because only plain functions are cloned: d[i] = expression of v = a[i], or of a and b.
#define PTXBENCH_UNARY_LANES(name, word, expression)  \
  PTXBENCH_CLONES void name(word* d, const word* a) { \
    PTXBENCH_LANE_LOOP                                \
    for (int i = 0; i < kLaneCount; ++i) {            \
      const word v = a[i];                            \
      d[i] = expression;                              \
    }                                                 \
  }
#define PTXBENCH_BINARY_LANES(name, expression)                                                 \
  PTXBENCH_CLONES void name(std::uint32_t* d, const std::uint32_t* x, const std::uint32_t* y) { \
    PTXBENCH_LANE_LOOP                                                                          \
    for (int i = 0; i < kLaneCount; ++i) {                                                      \
      const std::uint32_t a = x[i], b = y[i];                                                   \
      d[i] = expression;                                                                        \
    }                                                                                           \
  }

namespace ptxbench::emulator {

inline constexpr int kLaneCount = 32;

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
