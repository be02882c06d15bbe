// cp.async, its groups, and arrivals behind it.
#include "emulator/contains.hpp"
#include "emulator/support.hpp"

#include <numeric>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

// A warp; each lane copies to buf + 16 lane. %rd1: in + 16 lane, %rd2: out + 16 lane, %r1: buf + 16 lane.
std::string kernel(const std::string& body) {
  return R"(
.shared .align 16 .b8 buf[1024];
.shared .align 8 .b64 bar;
.visible .entry k(.param .u64 in, .param .u64 out) {
  .reg .pred %p<8>;
  .reg .b32 %r<32>;
  .reg .b64 %rd<16>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r2, bar;
  mov.u32 %r3, %tid.x;
  shl.b32 %r4, %r3, 4;
  cvt.u64.u32 %rd3, %r4;
  add.s64 %rd1, %rd1, %rd3;
  add.s64 %rd2, %rd2, %rd3;
  mov.u32 %r1, buf;
  add.u32 %r1, %r1, %r4;
  mov.u32 %r5, 9;
  mov.u32 %r6, 0;
  st.shared.v4.u32 [%r1], {%r5, %r5, %r5, %r5};
)" + body +
         R"(
  ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r1];
  st.global.v4.u32 [%rd2], {%r10, %r11, %r12, %r13};
  ret;
}
)";
}

struct Ran {
  Run run;
  std::vector<std::uint32_t> out;
};
Ran go(const std::string& body, Schedule schedule = {}) {
  Machine m(kernel(body));
  std::vector<std::uint32_t> in(128);
  std::iota(in.begin(), in.end(), 100u);
  const std::uint64_t a = m.upload(in), b = m.allocate(512);
  LaunchShape shape;
  shape.schedule = schedule;
  Run r = m.launch(shape, a, b);
  return {std::move(r), m.read<std::uint32_t>(b, 128)};
}

constexpr Schedule kLazy{Schedule::Mode::lazy, 0};

}  // namespace

TEST_CASE("cp.async copies, zero-fills and ignores its source") {
  for (const Schedule& schedule : {Schedule{}, kLazy, Schedule{Schedule::Mode::random, 5}}) {
    Ran o =
        go("cp.async.cg.shared.global.L2::128B [%r1], [%rd1], "
           "16;\ncp.async.commit_group;\ncp.async.wait_group 0;\n",
           schedule);
    REQUIRE_CLEAN(o.run);
    for (unsigned i = 0; i < 128; ++i) REQUIRE(o.out[i] == 100 + i);
    o = go("cp.async.ca.shared.global [%r1+8], [%rd1+8], 8;\ncp.async.wait_all;\n", schedule);
    REQUIRE_CLEAN(o.run);
    CHECK(o.out[4] == 9);
    CHECK(o.out[6] == 106);
  }
}

TEST_CASE("cp.async fills with zeros what it does not read") {
  const std::string end = "\ncp.async.wait_all;\n";
  Ran o = go("cp.async.cg.shared.global [%r1], [%rd1], 16, 8;" + end);
  REQUIRE_CLEAN(o.run);
  CHECK(std::vector<std::uint32_t>(o.out.begin() + 4, o.out.begin() + 8) ==
        std::vector<std::uint32_t>{104, 105, 0, 0});
  // A size of zero touches nothing: the source may be anything.
  o = go("mov.u64 %rd5, 0;\ncp.async.ca.shared.global [%r1], [%rd5], 16, %r6;" + end);
  REQUIRE_CLEAN(o.run);
  CHECK(o.out == std::vector<std::uint32_t>(128, 0));
  o = go("setp.lt.u32 %p1, %r3, 4;\ncp.async.ca.shared.global [%r1], [%rd1], 16, %p1;" + end);
  REQUIRE_CLEAN(o.run);
  CHECK(o.out[15] == 0);
  CHECK(o.out[16] == 116);
  CHECK_HAS(fault_text(go("mov.u32 %r7, 17;\ncp.async.ca.shared.global [%r1], [%rd1], 16, %r7;" + end).run),
            Contains("source size of 17"));
  CHECK_HAS(fault_text(go("cp.async.ca.shared.global [%r1+4], [%rd1], 16;" + end).run),
            Contains("misaligned"));
  CHECK_HAS(fault_text(go("cp.async.ca.shared.global [%r1], [%rd1+16384], 16;" + end).run),
            Contains("out_of_bounds"));
  Machine bad(kernel("cp.async.cg.shared.global [%r1], [%rd1], 8;"));
  CHECK(!bad.decode());
}

TEST_CASE("waits for groups of cp.async are for all but the newest") {
  const std::string copy = "cp.async.ca.shared.global [%r1], [%rd1], 4;\ncp.async.commit_group;\n",
                    other = "cp.async.ca.shared.global [%r1+4], [%rd1+4], 4;\ncp.async.commit_group;\n";
  // Nothing waits for the copy: it may come after the read.
  CHECK(go(copy, kLazy).out[0] == 9);
  CHECK(go(copy + "cp.async.wait_group 1;\n", kLazy).out[0] == 9);
  CHECK(go(copy + other + "cp.async.wait_group 1;\n", kLazy).out[0] == 100);
  CHECK(go(copy + other + "cp.async.wait_group 1;\n", kLazy).out[1] == 9);
  CHECK(go(copy + "cp.async.commit_group;\ncp.async.wait_group 1;\n", kLazy).out[0] == 100);
  // Not committed: only wait_all waits for it.
  const std::string open = "cp.async.ca.shared.global [%r1], [%rd1], 4;\n";
  CHECK(go(open + "cp.async.wait_group 0;\n", kLazy).out[0] == 9);
  CHECK(go(open + "cp.async.wait_all;\n", kLazy).out[0] == 100);
}

TEST_CASE("an arrival behind cp.async completes when the copies have") {
  const std::string wait = R"(
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;
  @!%p2 bra WAIT;
)";
  const std::string start = R"(
  setp.eq.u32 %p1, %r3, 0;
  @%p1 mbarrier.init.shared.b64 [%r2], 32;
  bar.sync 0;
  cp.async.ca.shared.global [%r1], [%rd1], 4;
)";
  for (const Schedule& schedule : {Schedule{}, kLazy, Schedule{Schedule::Mode::random, 9}}) {
    Ran o = go(start + "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r2];\n" + wait, schedule);
    REQUIRE_CLEAN(o.run);
    CHECK(o.out[4] == 104);
    // With the increment it counts for nothing by itself: the threads arrive too.
    o = go(
        start + "cp.async.mbarrier.arrive.shared.b64 [%r2];\nmbarrier.arrive.shared.b64 _, [%r2];\n" + wait,
        schedule);
    REQUIRE_CLEAN(o.run);
    CHECK(o.out[4] == 104);
  }
  CHECK_HAS(fault_text(go(start + "cp.async.mbarrier.arrive.shared.b64 [%r2];\n" + wait).run),
            Contains("deadlock"));
}
