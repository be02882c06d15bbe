// Limits of a run: a TIMEOUT says where each warp was.
#include "emulator/launch_text.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {
// Warp 1 waits at a barrier for warp 0, which never ends.
const char* const kEndless =
    "mov.u32 %r3, 0;\nsetp.ge.u32 %p1, %r1, 32;\n@%p1 bra WAIT;\nLOOP:\nadd.u32 %r3, %r3, 1;\nsetp.ne.u32 "
    "%p2, %r3, 0x7fffffff;\n@%p2 bra LOOP;\nWAIT:\nbar.sync 0;\n";
}  // namespace

TEST_CASE("Limit: steps and wall clock end a launch and say where each warp was") {
  TextLaunch how{{1, 1, 1}, {64, 1, 1}};
  how.device = "emulator:h200?threads=1&step_limit=100000";
  const TextResult steps = launch_text("", kEndless, how);
  CHECK_HAS(
      steps.fault(),
      Contains("step_limit: the launch has executed more than 100000 warp instructions") &&
          Contains("CTA 0 warp 1 at PTX line") &&
          Contains(
              "(gemm.cu:109), `bar.sync`: waits for barrier 0: 32 of 64 threads have arrived; not warp 0") &&
          Contains("CTA 0 warp 0 at PTX line") && Contains("runs") &&
          Contains("CTA 0, warp 0, lane 0]"));
  REQUIRE(steps.outcome);
  CHECK(steps.outcome->kind == DeviceFault::Kind::timeout);
  how.device = "emulator:h200?threads=1";
  how.deadline_ns = 50'000'000;
  const TextResult clock = launch_text("", kEndless, how);
  CHECK_HAS(clock.fault(), Contains("time_limit: the launch has not ended within its time") &&
                               Contains("CTA 0 warp 1 at PTX line"));
  REQUIRE(clock.outcome);
  CHECK(clock.outcome->kind == DeviceFault::Kind::timeout);
}

TEST_CASE("Limit: device memory") {
  auto device = open_emulator_device(*parse_emulator_name("emulator:h200?memory_mib=1"));
  REQUIRE(device);
  CHECK((*device)->allocate(1 << 19));
  const auto more = (*device)->allocate(1 << 20);
  REQUIRE(!more);
  CHECK(more.error().code == ErrorCode::no_memory);
  CHECK_HAS(more.error().to_string(), Contains("used up") && Contains("1048576"));
}
