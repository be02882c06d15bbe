// What is said when nobody can run, word for word.
#include "emulator/support.hpp"

using namespace ptxbench::testing;

namespace {

Run stuck(const std::string& body, LaunchShape shape = {}, const std::string& before = "") {
  Machine m(before + R"(
.visible .entry k(.param .u64 out) {
  .reg .pred %p<8>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<8>;
)" + body + "\n  ret;\n}\n");
  Run run = m.launch(shape, m.allocate(1024));
  INFO(fault_text(run));
  REQUIRE(run.fault.has_value());
  return run;
}

}  // namespace

TEST_CASE("deadlock at a named barrier: who has come, who has not, who has exited") {
  LaunchShape shape;
  shape.block = {256, 1, 1};
  const Run run = stuck(R"(
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 64;
  @%p1 bra FEW;
  setp.lt.u32 %p1, %r1, 128;
  @%p1 exit;
  bar.sync 2;
  bra DONE;
FEW:
  bar.sync 1, 96;
DONE:)",
                        shape);
  CHECK(run.fault->kind == FaultKind::deadlock);
  CHECK(run.fault->message == "no warp can run any more: 6 warps wait for what nobody can bring about");
  CHECK(run.fault->detail ==
        "CTA 0 warps 0, 1 at PTX line 18, `bar.sync`: waits for barrier 1: 64 of 96 threads have arrived; not warps 4-7; "
        "exited: warps 2, 3\n"
        "CTA 0 warps 4-7 at PTX line 15, `bar.sync`: waits for barrier 2: 128 of 256 threads have arrived; not warps 0, 1; "
        "exited: warps 2, 3\n"
        "CTA 0 warps 2, 3: exited\n");
}

TEST_CASE("deadlock at an mbarrier: phase, arrivals and bytes") {
  LaunchShape shape;
  shape.block = {128, 1, 1};
  for (const auto mode : {Schedule::Mode::eager, Schedule::Mode::lazy, Schedule::Mode::random}) {
    shape.schedule = {mode, 5};
    const Run run = stuck(R"(
  .shared .align 8 .b64 full[2];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, full;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra WAIT;
  mbarrier.init.shared::cta.b64 [%r2+8], 2;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2+8], 4096;
WAIT:
  bar.sync 0;
  setp.lt.u32 %p2, %r1, 32;
  @%p2 exit;
LOOP:
  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2+8], 0;
  @!%p3 bra LOOP;)",
                          shape);
    CHECK(run.fault->kind == FaultKind::deadlock);
    CHECK(run.fault->message == "no warp can run any more: 3 warps wait for what nobody can bring about");
    CHECK(run.fault->detail ==
          "CTA 0 warps 1-3 at PTX line 22, `mbarrier.try_wait.parity.shared::cta.b64`: waits for mbarrier `full`+8 (0x408) "
          "of CTA 0: phase 0, 1 of 2 arrivals and 4096 bytes pending (parity 0); arrived in this phase: warp 0 at PTX line "
          "16, `mbarrier.arrive.expect_tx.shared::cta.b64`\n"
          "CTA 0 warp 0: exited\n");
  }
}

TEST_CASE("deadlock in a loop over test_wait, which never parks") {
  const Run run = stuck(R"(
  .shared .align 8 .b64 full;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, full;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
  bar.warp.sync 0xffffffff;
LOOP:
  mbarrier.test_wait.parity.shared::cta.b64 %p3, [%r2], 0;
  @%p3 bra DONE;
  nanosleep.u32 20;
  bra LOOP;
DONE:)");
  CHECK(run.fault->kind == FaultKind::deadlock);
  CHECK(run.fault->detail ==
        "CTA 0 warp 0 at PTX line 17, `mbarrier.test_wait.parity.shared::cta.b64`: waits for mbarrier `full` (0x400) of CTA "
        "0: phase 0, 1 of 1 arrivals and 0 bytes pending (parity 0); nobody has arrived in this phase\n");
}

TEST_CASE("deadlock at the cluster's barrier") {
  LaunchShape shape;
  shape.grid = {4, 1, 1};
  shape.cluster = {2, 1, 1};
  shape.block = {64, 1, 1};
  const Run run = stuck(R"(
  mov.u32 %r1, %cluster_ctarank;
  setp.eq.u32 %p1, %r1, 1;
  @%p1 bra OTHER;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  bra DONE;
OTHER:
  mov.u32 %r2, %tid.x;
  setp.lt.u32 %p2, %r2, 32;
  @%p2 bra DONE;
  bar.sync 1, 64;
DONE:)",
                        shape);
  CHECK(run.fault->kind == FaultKind::deadlock);
  CHECK(run.fault->detail ==
        "CTA 0 warps 0, 1 at PTX line 14, `barrier.cluster.wait`: waits for the cluster's barrier; not arrived: CTA 1 warp 1\n"
        "CTA 1 warp 1 at PTX line 20, `bar.sync`: waits for barrier 1: 32 of 64 threads have arrived; exited: warp 0\n"
        "CTA 1 warp 0: exited\n");
}

TEST_CASE("lanes that wait for lanes of their warp, which wait for others") {
  LaunchShape shape;
  shape.block = {64, 1, 1};
  const Run run = stuck(R"(
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 4;
  @%p1 bra FEW;
  shfl.sync.idx.b32 %r2, %r1, 0, 31, 0xffffffff;
  bra DONE;
FEW:
  barrier.sync 1, 64;
DONE:)",
                        shape);
  CHECK(run.fault->kind == FaultKind::deadlock);
  CHECK(run.fault->detail.find("CTA 0 warp 0 lanes 0xfffffff0 at PTX line 13, `shfl.sync.idx.b32`: waits for the other lanes "
                               "of its warp: lanes 0xf are at PTX line 16, `barrier.sync`\n") != std::string::npos);
  const Run part = stuck(R"(
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 4;
  @%p1 bra FEW;
  shfl.sync.idx.b32 %r2, %r1, 0, 31, 0xffffffff;
  bra DONE;
FEW:
  bar.warp.sync 0xffffffff;
DONE:)");
  CHECK(part.fault->kind == FaultKind::partial_collective);
  CHECK(part.fault->detail == "lanes 0xfffffff0 at PTX line 13, `shfl.sync.idx.b32`\nlanes 0xf at PTX line 16, "
                              "`bar.warp.sync`\n");
}

TEST_CASE("lines of many CTAs and warps are said once") {
  LaunchShape shape;
  shape.grid = {6, 1, 1};
  shape.block = {64, 1, 1};
  shape.sm_count = 6;
  const Run run = stuck(R"(
  ld.param.u64 %rd1, [out];
LOOP:
  ld.relaxed.gpu.global.u32 %r1, [%rd1];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra LOOP;)",
                        shape);
  CHECK(run.fault->kind == FaultKind::deadlock);
  CHECK(run.fault->message == "no warp can run any more: 12 warps wait for what nobody can bring about");
  CHECK(run.fault->detail == "CTAs 0-5 warps 0, 1 at PTX line 12, `ld.relaxed.gpu.global.u32`: polls, and never sees what it "
                             "waits for\n");
}

TEST_CASE("waits that may give up, and end, are no deadlock") {
  // Ten failing waits, then on: the loop ends by itself.
  Machine m(R"(
.visible .entry k(.param .u64 out) {
  .reg .pred %p<8>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<8>;
  .shared .align 8 .b64 full;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, full;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
  bar.sync 0;
  mov.u32 %r3, 0;
LOOP:
  add.u32 %r3, %r3, 1;
  setp.gt.u32 %p2, %r3, 10;
  @%p2 bra DONE;
  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2], 0;
  @!%p3 bra LOOP;
DONE:
  st.global.u32 [%rd1], %r3;
  ret;
}
)");
  const std::uint64_t out = m.allocate(4);
  const Run run = m.launch({}, out);
  REQUIRE_CLEAN(run);
  CHECK(m.read<std::uint32_t>(out, 1)[0] == 11);
}
