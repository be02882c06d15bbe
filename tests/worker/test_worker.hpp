// A pool of the test's own worker (programs/test_worker_main.cpp), and what its deaths must look like.
#pragma once

#include "worker/worker_pool.hpp"

#include <chrono>
#include <string>

namespace testing {

using namespace ptxbench;  // NOLINT: a test's header
using namespace std::chrono_literals;

inline WorkerLaunch test_launch() {
  WorkerLaunch launch;
  launch.path = PTXBENCH_TEST_WORKER;
  launch.arguments = {"test", std::uint64_t{256} << 20, std::uint64_t{4} << 20};
  return launch;
}

inline Message job(std::string type, std::string json = "{}") {
  return {std::move(type), std::move(json), {}};
}

inline std::unique_ptr<WorkerPool> test_pool(int most, LogFn log = {}) {
  return std::make_unique<WorkerPool>(
      test_launch(), [] { return Result<std::string>(PTXBENCH_TEST_WORKER); }, most, std::move(log));
}

struct DeathCase {
  const char* stage;
  WorkerDeath::Kind kind;
  int signal;
  int exit_status;
};

inline constexpr DeathCase kDeaths[] = {
    {"segfault", WorkerDeath::Kind::crashed, 11, -1},
    {"overflow", WorkerDeath::Kind::crashed, 11, -1},
    {"abort", WorkerDeath::Kind::crashed, 6, -1},
    {"exit_3", WorkerDeath::Kind::crashed, 0, 3},
    {"throw", WorkerDeath::Kind::crashed, 6, -1},
    {"hang", WorkerDeath::Kind::deadline, 0, -1},
    {"spin", WorkerDeath::Kind::deadline, 0, -1},
    {"child_and_hang", WorkerDeath::Kind::deadline, 0, -1},
    {"child_and_crash", WorkerDeath::Kind::crashed, 6, -1},
    {"allocate_new", WorkerDeath::Kind::memory, 0, 86},
    {"allocate_unchecked", WorkerDeath::Kind::memory, 11, -1},
    {"allocate_abort", WorkerDeath::Kind::memory, 6, -1},
    {"garbage", WorkerDeath::Kind::closed, 0, -1},
};

inline std::chrono::nanoseconds time_for(const DeathCase& death) {
  return death.kind == WorkerDeath::Kind::deadline ? std::chrono::nanoseconds(40ms)
                                                   : std::chrono::nanoseconds(60s);
}

}  // namespace testing
