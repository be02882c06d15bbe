// Branches, calls, exits, barriers and special registers.
#include "emulator/support.hpp"

using namespace ptxbench::testing;

namespace {

// A kernel whose body writes %r1 of each thread to out[thread] of its CTA.
std::string storing(const std::string& body, const std::string& before = "") {
  return before + R"(
.visible .entry k(.param .u64 out) {
  .reg .pred %p<16>;
  .reg .b32 %r<32>;
  .reg .b64 %rd<16>;
  .reg .b64 %out, %off;
  .reg .b32 %t, %n, %c;
)" + body + R"(
  ld.param.u64 %out, [out];
  mov.u32 %t, %tid.x;
  mov.u32 %n, %ntid.x;
  mov.u32 %c, %ctaid.x;
  mad.lo.s32 %t, %c, %n, %t;
  mul.wide.u32 %off, %t, 4;
  add.s64 %out, %out, %off;
  st.global.u32 [%out], %r1;
  ret;
}
)";
}

std::vector<std::uint32_t> results(const std::string& text, LaunchShape shape = {}) {
  Machine m(text);
  const std::size_t n = std::size_t{shape.block[0]} * shape.grid[0];
  const std::uint64_t out = m.allocate(n * 4);
  const Run run = m.launch(shape, out);
  REQUIRE_CLEAN(run);
  return m.read<std::uint32_t>(out, n);
}

Run failing(const std::string& text, LaunchShape shape = {}) {
  Machine m(text);
  const Run run = m.launch(shape, m.allocate(std::size_t{shape.block[0]} * shape.grid[0] * 4));
  REQUIRE(run.fault.has_value());
  return run;
}

}  // namespace

TEST_CASE("brx.idx goes where the table says, lane by lane") {
  const auto got = results(storing(R"(
  mov.u32 %r2, %tid.x;
  and.b32 %r2, %r2, 3;
  setp.eq.u32 %p1, %r2, 3;
  mov.u32 %r1, 99;
T: .branchtargets A, B, C;
  @%p1 bra JOIN;
  brx.idx %r2, T;
A: mov.u32 %r1, 10; bra JOIN;
B: mov.u32 %r1, 11; bra JOIN;
C: mov.u32 %r1, 12;
JOIN:
)"));
  for (std::uint32_t t = 0; t < 32; ++t) CHECK(got[t] == (t % 4 == 3 ? 99 : 10 + t % 4));
  const Run bad = failing(storing(R"(
  mov.u32 %r2, %tid.x;
  mov.u32 %r1, 0;
T: .branchtargets A, B;
  brx.idx %r2, T;
A: B:
)"));
  CHECK(bad.fault->kind == FaultKind::illegal_instruction);
  CHECK(bad.fault->site.lane == 2);
  CHECK(bad.fault->message == "index 2 of a table of 2 targets");
}

TEST_CASE("calls are inlined: parameters by value, results, early returns") {
  const auto got = results(storing(R"(
  mov.u32 %r2, %tid.x;
  mov.u32 %r1, 0;
  mov.u32 %r5, 0;
AGAIN:
  { .param .b32 a; .param .align 8 .b8 s[8]; .param .b32 res;
    st.param.b32 [a], %r2;
    st.param.b32 [s], %r5;
    st.param.b32 [s+4], 5;
    call.uni (res), f, (a, s);
    ld.param.b32 %r3, [res];
  }
  add.s32 %r1, %r1, %r3;
  add.s32 %r5, %r5, 1;
  setp.lt.u32 %p1, %r5, 3;
  @%p1 bra AGAIN;
)",
                               R"(
.func (.param .b32 res) g(.param .b32 x) {
  .reg .b32 %r<4>;
  .local .align 4 .b8 depot[8];
  .reg .b64 %l;
  mov.u64 %l, depot;
  ld.param.b32 %r1, [x];
  st.local.u32 [%l+4], %r1;
  mul.lo.s32 %r1, %r1, 100;
  ld.local.u32 %r2, [%l+4];
  add.s32 %r1, %r1, %r2;
  st.param.b32 [res], %r1;
  ret;
}
.func (.param .b32 res) f(.param .b32 a, .param .align 8 .b8 s[8]) {
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  ld.param.b32 %r1, [a];
  ld.param.b32 %r2, [s];
  ld.param.b32 %r3, [s+4];
  setp.lt.u32 %p1, %r1, 4;
  @%p1 bra SMALL;
  add.s32 %r4, %r1, %r2;
  { .param .b32 q; .param .b32 back;
    st.param.b32 [q], %r4;
    call.uni (back), g, (q);
    ld.param.b32 %r5, [back];
  }
  add.s32 %r5, %r5, %r3;
  st.param.b32 [res], %r5;
  ret;
SMALL:
  st.param.b32 [res], 7;
  ret;
}
)"));
  for (std::uint32_t t = 0; t < 32; ++t) {
    std::uint32_t want = 0;
    for (std::uint32_t i = 0; i < 3; ++i) want += t < 4 ? 7 : 101 * (t + i) + 5;
    CHECK(got[t] == want);
  }
}

TEST_CASE("a call under a guard is executed by the lanes whose guard is on") {
  const auto got = results(storing(R"(
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p1, %r2, 20;
  mov.u32 %r1, 1;
  @%p1 call (%r1), f, (%r2);
)",
                                   R"(
.func (.param .b32 res) f(.param .b32 x) {
  .reg .b32 %r<4>;
  ld.param.b32 %r1, [x];
  add.s32 %r1, %r1, 1000;
  st.param.b32 [res], %r1;
  ret;
}
)"));
  for (std::uint32_t t = 0; t < 32; ++t) CHECK(got[t] == (t >= 20 ? 1000 + t : 1));
}

TEST_CASE("bar.sync lets all warps see what was stored before") {
  LaunchShape shape;
  shape.block = {128, 1, 1};
  for (const auto mode : {Schedule::Mode::eager, Schedule::Mode::random}) {
    shape.schedule = {mode, 3};
    const auto got = results(storing(R"(
  .shared .align 4 .b32 s[128];
  mov.u32 %r2, %tid.x;
  mov.u32 %r10, s;
  shl.b32 %r3, %r2, 2;
  add.u32 %r3, %r3, %r10;
  st.shared.u32 [%r3], %r2;
  bar.sync 0;
  xor.b32 %r4, %r2, 127;
  shl.b32 %r4, %r4, 2;
  add.u32 %r4, %r4, %r10;
  ld.shared.u32 %r1, [%r4];
)"),
                             shape);
    for (std::uint32_t t = 0; t < 128; ++t) CHECK(got[t] == (t ^ 127));
  }
}

TEST_CASE("bar.sync waits only for threads that have not exited") {
  LaunchShape shape;
  shape.block = {96, 1, 1};
  const auto got = results(storing(R"(
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p1, %r2, 64;
  @%p1 exit;
  setp.eq.u32 %p2, %r2, 5;
  @%p2 exit;
  bar.sync 0;
  barrier.sync 0;
  mov.u32 %r1, 8;
)"),
                           shape);
  CHECK(got[0] == 8);
  CHECK(got[5] == 0);
  CHECK(got[63] == 8);
  CHECK(got[64] == 0);
}

TEST_CASE("bar.arrive and bar.sync with a thread count; reductions") {
  LaunchShape shape;
  shape.block = {128, 1, 1};
  const auto got = results(storing(R"(
  mov.u32 %r2, %tid.x;
  mov.u32 %r7, 3;
  setp.ge.u32 %p1, %r2, 96;
  @%p1 bra CONSUMER;
  setp.lt.u32 %p2, %r2, 32;
  @%p2 bra.uni OTHER;
  bar.arrive %r7, 96;
  bra REDUCE;
OTHER:
  bra REDUCE;
CONSUMER:
  bar.sync 3, 96;
REDUCE:
  setp.lt.u32 %p3, %r2, 40;
  bar.red.popc.u32 %r1, 1, %p3;
  bar.red.and.pred %p4, 2, 128, %p3;
  bar.red.or.pred %p5, 4, !%p3;
  selp.u32 %r3, 1000, 0, %p4;
  selp.u32 %r4, 500, 0, %p5;
  add.s32 %r1, %r1, %r3;
  add.s32 %r1, %r1, %r4;
)"),
                           shape);
  for (const std::uint32_t v : got) CHECK(v == 540);
}

TEST_CASE("misuse of named barriers") {
  LaunchShape shape;
  shape.block = {64, 1, 1};
  CHECK(failing(storing("mov.u32 %r1, 17; bar.sync %r1;"), shape).fault->message ==
        "barrier 17: a CTA has barriers 0 to 15");
  CHECK(failing(storing("mov.u32 %r1, 1; bar.sync 0, 48;"), shape).fault->message ==
        "barrier 0 with 48 threads: it takes multiples of 32 up to the 64 of the CTA");
  const Run two = failing(storing(R"(
  mov.u32 %r1, %tid.x;
  and.b32 %r1, %r1, 32;
  add.u32 %r1, %r1, 32;
  bar.sync 1, %r1;
)"),
                          shape);
  CHECK(two.fault->kind == FaultKind::deadlock);  // warp 0 goes on, warp 1 waits for 64
}

TEST_CASE("an aligned barrier wants the whole warp") {
  const Run guarded = failing(storing(R"(
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 3;
  @%p1 bar.sync 0;
)"));
  CHECK(guarded.fault->kind == FaultKind::partial_collective);
  CHECK(guarded.fault->site.lane == 3);
  CHECK(guarded.fault->message == "bar.sync is executed by 3 of the 32 lanes of its warp: its guard is false in the others, "
                                  "and an .aligned instruction needs all");
  const Run apart = failing(storing(R"(
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 3;
  @%p1 bra FEW;
  bar.sync 0;
  bra JOIN;
FEW:
  bar.sync 0;
JOIN:
)"));
  CHECK(apart.fault->kind == FaultKind::partial_collective);
  CHECK(apart.fault->message.find("for lanes of its warp that cannot come") != std::string::npos);
  // Without .aligned the lanes may come to it at different places.
  const auto got = results(storing(R"(
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 3;
  @%p1 bra FEW;
  barrier.sync 0;
  bra JOIN;
FEW:
  barrier.sync 0;
JOIN:
)"));
  CHECK(got[31] == 31);
}

TEST_CASE("bar.warp.sync meets at different instructions, and by groups") {
  const auto got = results(storing(R"(
  .shared .align 4 .b32 s[32];
  mov.u32 %r1, %tid.x;
  mov.u32 %r9, s;
  setp.lt.u32 %p1, %r1, 16;
  @%p1 bra PRODUCE;
  bar.warp.sync 0xffffffff;
  sub.u32 %r2, %r1, 16;
  shl.b32 %r2, %r2, 2;
  add.u32 %r2, %r2, %r9;
  ld.shared.u32 %r1, [%r2];
  bra JOIN;
PRODUCE:
  shl.b32 %r2, %r1, 2;
  add.u32 %r2, %r2, %r9;
  mul.lo.s32 %r3, %r1, 10;
  st.shared.u32 [%r2], %r3;
  bar.warp.sync 0xffffffff;
JOIN:
  mov.u32 %r4, %laneid;
  and.b32 %r5, %r4, 24;
  mov.u32 %r6, 255;
  shl.b32 %r6, %r6, %r5;
  bar.warp.sync %r6;
)"));
  for (std::uint32_t t = 0; t < 32; ++t) CHECK(got[t] == (t < 16 ? t : (t - 16) * 10));
  const Run bad = failing(storing("mov.u32 %r1, 0; bar.warp.sync 0x7fffffff;"));
  CHECK(bad.fault->kind == FaultKind::partial_collective);
  CHECK(bad.fault->site.lane == 31);
}

TEST_CASE("the cluster's barrier, and threads that exit before it") {
  LaunchShape shape;
  shape.grid = {8, 1, 1};
  shape.cluster = {4, 1, 1};
  shape.block = {64, 1, 1};
  const auto got = results(storing(R"(
  .shared .align 4 .b32 s;
  mov.u32 %r2, %cluster_ctarank;
  mov.u32 %r9, s;
  add.u32 %r3, %r2, 100;
  st.shared.u32 [%r9], %r3;
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  add.u32 %r4, %r2, 1;
  and.b32 %r4, %r4, 3;
  mapa.shared::cluster.u32 %r5, %r9, %r4;
  ld.shared::cluster.u32 %r1, [%r5];
  barrier.cluster.arrive;
  barrier.cluster.wait;
)"),
                           shape);
  for (std::uint32_t t = 0; t < 8 * 64; ++t) CHECK(got[t] == 100 + (t / 64 + 1) % 4);
  const auto exits = results(storing(R"(
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p1, %r2, 32;
  @%p1 exit;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  mov.u32 %r1, 3;
)"),
                             shape);
  CHECK(exits[0] == 3);
  const Run twice = failing(storing("mov.u32 %r1, 0; barrier.cluster.arrive; barrier.cluster.arrive;"), shape);
  CHECK(twice.fault->kind == FaultKind::barrier_misuse);
  CHECK(twice.fault->message == "barrier.cluster.arrive twice without a barrier.cluster.wait in between");
  CHECK(failing(storing("mov.u32 %r1, 0; barrier.cluster.wait;"), shape).fault->kind == FaultKind::barrier_misuse);
}

TEST_CASE("elect.sync chooses one lane of the members, also after some have exited") {
  const auto got = results(storing(R"(
  mov.u32 %r2, %tid.x;
  setp.lt.u32 %p2, %r2, 4;
  @%p2 exit;
  elect.sync %r3|%p1, 0xffffffff;
  selp.u32 %r1, 1, 0, %p1;
  mad.lo.s32 %r1, %r3, 2, %r1;
)"));
  for (std::uint32_t t = 4; t < 32; ++t) CHECK(got[t] == (t == 4 ? 9 : 8));
}

TEST_CASE("setmaxnreg.inc waits for registers that another warpgroup gives back") {
  LaunchShape shape;
  shape.block = {384, 1, 1};
  const auto got = results(storing(R"(
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 128;
  @%p1 bra PRODUCER;
  setmaxnreg.inc.sync.aligned.u32 232;
  bra JOIN;
PRODUCER:
  setmaxnreg.dec.sync.aligned.u32 40;
JOIN:
)"),
                           shape);
  CHECK(got[383] == 383);
  const Run stuck = failing(storing("mov.u32 %r1, 0; setmaxnreg.inc.sync.aligned.u32 232;"), shape);
  CHECK(stuck.fault->kind == FaultKind::deadlock);
  CHECK(stuck.fault->detail.find("waits for registers: it has 168 a thread, and 0 are free in the CTA") !=
        std::string::npos);
}

TEST_CASE("special registers") {
  LaunchShape shape;
  shape.block = {40, 1, 1};
  shape.grid = {4, 1, 1};
  shape.cluster = {2, 1, 1};
  const auto lane = results(storing(R"(
  mov.u32 %r1, %laneid;
  mov.u32 %r2, %warpid;
  mad.lo.s32 %r1, %r2, 100, %r1;
  mov.u32 %r3, %clusterid.x;
  mad.lo.s32 %r1, %r3, 1000, %r1;
  mov.u32 %r4, %cluster_ctarank;
  mad.lo.s32 %r1, %r4, 10000, %r1;
  mov.u32 %r5, %nclusterid.x;
  mad.lo.s32 %r1, %r5, 100000, %r1;
  mov.pred %p1, %is_explicit_cluster;
  @%p1 add.u32 %r1, %r1, 1000000;
  mov.u32 %r6, WARP_SZ;
  mad.lo.s32 %r1, %r6, 10000000, %r1;
)"),
                            shape);
  for (std::uint32_t t = 0; t < 160; ++t) {
    const std::uint32_t cta = t / 40, thread = t % 40;
    CHECK(lane[t] == 320000000 + 1000000 + 200000 + cta % 2 * 10000 + cta / 2 * 1000 + thread / 32 * 100 + thread % 32);
  }
  const auto masks = results(storing(R"(
  mov.u32 %r1, %lanemask_lt;
  mov.u32 %r2, %lanemask_ge;
  not.b32 %r2, %r2;
  xor.b32 %r1, %r1, %r2;
  mov.u32 %r3, %lanemask_eq;
  or.b32 %r1, %r1, %r3;
  mov.u32 %r4, %lanemask_le;
  mov.u32 %r5, %lanemask_gt;
  and.b32 %r4, %r4, %r5;
  or.b32 %r1, %r1, %r4;
)"));
  for (std::uint32_t t = 0; t < 32; ++t) CHECK(masks[t] == 1u << t);
  const auto clock = results(storing(R"(
  mov.u64 %rd1, %clock64;
  mov.u32 %r2, %clock;
  mov.u64 %rd2, %clock64;
  sub.s64 %rd3, %rd2, %rd1;
  cvt.u32.u64 %r1, %rd3;
)"));
  CHECK(clock[0] > 0);
  CHECK(clock[0] < 100);
}

TEST_CASE("trap, exit of single lanes, nanosleep and griddepcontrol") {
  const Run trapped = failing(storing(R"(
  mov.u32 %r1, %tid.x;
  setp.eq.u32 %p1, %r1, 13;
  @%p1 trap;
)"));
  CHECK(trapped.fault->kind == FaultKind::trap);
  CHECK(trapped.fault->site.lane == 13);
  const auto got = results(storing(R"(
  griddepcontrol.wait;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, 0;
LOOP:
  nanosleep.u32 100;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p2, %r2, 50;
  @%p2 bra LOOP;
  setp.gt.u32 %p1, %r1, 13;
  @%p1 exit;
  griddepcontrol.launch_dependents;
)"));
  CHECK(got[13] == 13);
  CHECK(got[14] == 0);
}
