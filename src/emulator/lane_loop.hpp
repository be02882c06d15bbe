// Before a loop over lanes whose output may be one of its inputs: lane i touches index i alone.
#pragma once

#if defined(__clang__)
#define PTXBENCH_LANE_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define PTXBENCH_LANE_LOOP _Pragma("GCC ivdep")
#endif

// What the loops call must become part of them, or they stay scalar.
#define PTXBENCH_INLINE inline __attribute__((always_inline))
