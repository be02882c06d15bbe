// Warps, fragments and host threads.
#include "emulator/support.hpp"

using namespace ptxbench::testing;

namespace {

const char* const kDivergence = R"(
.visible .entry k(.param .u64 out) {
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, 0;
  mov.u32 %r3, 0;
LOOP:
  add.s32 %r2, %r2, 3;
  add.s32 %r3, %r3, 1;
  setp.le.u32 %p1, %r3, %r1;
  @%p1 bra LOOP;
  and.b32 %r4, %r1, 1;
  setp.eq.u32 %p2, %r4, 0;
  @%p2 bra EVEN;
  add.s32 %r2, %r2, 1000;
  bra JOIN;
EVEN:
  sub.s32 %r2, %r2, 1;
JOIN:
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r2;
  ret;
}
)";

// Every lane takes the lock, adds, and gives it back: who holds it is not among those who spin.
const char* const kSpinLock = R"(
.visible .entry k(.param .u64 out) {
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
SPIN:
  atom.global.cas.b32 %r1, [%rd1], 0, 1;
  setp.ne.s32 %p1, %r1, 0;
  @%p1 bra SPIN;
  ld.volatile.global.u32 %r2, [%rd1+4];
  add.s32 %r2, %r2, 1;
  st.volatile.global.u32 [%rd1+4], %r2;
  atom.global.exch.b32 %r3, [%rd1], 0;
  ret;
}
)";

// CTA i adds i to a number that depends on its place, and CTA 5 leaves its buffer.
const char* const kManyClusters = R"(
.visible .entry k(.param .u64 out, .param .u32 bad) {
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r5, [bad];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  mov.u32 %r6, 0;
LOOP:
  add.s32 %r6, %r6, 1;
  setp.lt.u32 %p2, %r6, %r1;
  @%p2 bra LOOP;
  mad.lo.s32 %r3, %r1, 32, %r2;
  setp.ge.u32 %p1, %r1, %r5;
  @%p1 add.s32 %r3, %r3, 1000000;
  mul.wide.u32 %rd2, %r3, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r6;
  ret;
}
)";

const char* const kEndless = R"(
.visible .entry k() {
  .reg .b32 %r<2>;
  mov.u32 %r1, 0;
LOOP:
  add.s32 %r1, %r1, 1;
  bra LOOP;
}
)";

}  // namespace

TEST_CASE("lanes with different trip counts and branches meet again") {
  Machine m(kDivergence);
  const std::uint64_t out = m.allocate(48 * 4);
  LaunchShape shape;
  shape.block = {48, 1, 1};
  const Run run = m.launch(shape, out);
  REQUIRE_CLEAN(run);
  const auto got = m.read<std::uint32_t>(out, 48);
  for (std::uint32_t t = 0; t < 48; ++t) CHECK(got[t] == 3 * (t + 1) + (t % 2 != 0 ? 1000 : -1u));
  // Two warps: each executes the store once, all of its lanes together.
  CHECK(m.count(run, "st.global.u32").warps == 2);
  CHECK(m.count(run, "st.global.u32").threads == 48);
  CHECK(m.count(run, "setp.le.u32").warps == 32 + 48);
}

TEST_CASE("a lane that holds a lock runs while the others of its warp spin") {
  for (const auto mode : {Schedule::Mode::eager, Schedule::Mode::lazy, Schedule::Mode::random}) {
    for (const std::uint32_t ctas : {1u, 3u}) {
      Machine m(kSpinLock);
      const std::uint64_t out = m.allocate(8);
      LaunchShape shape;
      shape.block = {64, 1, 1};
      shape.grid = {ctas, 1, 1};
      shape.schedule = {mode, 7};
      const Run run = m.launch(shape, out);
      REQUIRE_CLEAN(run);
      CHECK(m.read<std::uint32_t>(out, 2) == std::vector<std::uint32_t>{0, 64 * ctas});
      CHECK(m.kernel()->communicates);
    }
  }
}

TEST_CASE("lanes of one warp wait for each other through plain memory") {
  // Lane 0 waits for a flag that lane 1 sets after a long loop, at a later place of the code.
  Machine m(R"(
.visible .entry k(.param .u64 out) {
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra SETTER;
WAIT:
  ld.volatile.global.u32 %r2, [%rd1];
  setp.eq.u32 %p2, %r2, 0;
  @%p2 bra WAIT;
  st.global.u32 [%rd1+4], %r2;
  ret;
SETTER:
  setp.ne.u32 %p1, %r1, 1;
  @%p1 ret;
  mov.u32 %r3, 0;
LOOP:
  add.s32 %r3, %r3, 1;
  setp.lt.u32 %p3, %r3, 5000;
  @%p3 bra LOOP;
  st.volatile.global.u32 [%rd1], %r3;
  ret;
}
)");
  const std::uint64_t out = m.allocate(8);
  const Run run = m.launch({}, out);
  REQUIRE_CLEAN(run);
  CHECK(m.read<std::uint32_t>(out, 2) == std::vector<std::uint32_t>{5000, 5000});
  std::size_t spins = 0;
  for (const OpInfo& i : m.last->info) spins += i.in_spin_loop;
  CHECK(spins == 3);
}

TEST_CASE("the number of host threads changes nothing") {
  std::vector<std::uint32_t> expected;
  std::vector<std::uint64_t> counts;
  for (const std::uint32_t threads : {1u, 4u}) {
    Machine m(kManyClusters);
    const std::uint64_t out = m.allocate(64 * 32 * 4);
    LaunchShape shape;
    shape.grid = {64, 1, 1};
    shape.limits.threads = threads;
    const Run run = m.launch(shape, out, 64u);
    REQUIRE_CLEAN(run);
    CHECK_FALSE(m.last->communicates);
    const auto got = m.read<std::uint32_t>(out, 64 * 32);
    std::vector<std::uint64_t> c;
    for (const OpCount& n : run.counts) c.push_back(n.warps), c.push_back(n.threads);
    if (threads == 1) expected = got, counts = c;
    CHECK(got == expected);
    CHECK(c == counts);
    for (std::uint32_t i = 0; i < 64; ++i) CHECK(got[i * 32 + 5] == std::max(i, 1u));
  }
}

TEST_CASE("the fault of the lowest cluster is the one that is told") {
  for (const std::uint32_t threads : {1u, 4u}) {
    Machine m(kManyClusters);
    const std::uint64_t out = m.allocate(64 * 32 * 4);
    LaunchShape shape;
    shape.grid = {64, 1, 1};
    shape.limits.threads = threads;
    const Run run = m.launch(shape, out, 5u);
    REQUIRE(run.fault.has_value());
    CHECK(run.fault->kind == FaultKind::out_of_bounds);
    CHECK(run.fault->site.cta == 5);
    CHECK(run.fault->site.warp == 0);
    CHECK(run.fault->site.lane == 0);
    CHECK(m.line_of(run.fault->site) == 23);
  }
}

TEST_CASE("limits end an endless kernel, and say where it was") {
  Machine m(kEndless);
  LaunchShape shape;
  shape.block = {96, 1, 1};
  shape.limits = {100'000, 0, 1};
  const Run run = m.launch(shape);
  REQUIRE(run.fault.has_value());
  CHECK(run.fault->kind == FaultKind::step_limit);
  CHECK(run.fault->message == "the launch has executed more than 100000 warp instructions, the limit");
  CHECK(run.fault->detail.find("CTA 0 warps 0-2 at PTX line ") == 0);
  shape.limits = {0, 1, 1};  // a deadline in the past
  const Run late = m.launch(shape);
  REQUIRE(late.fault.has_value());
  CHECK(late.fault->kind == FaultKind::time_limit);
}

TEST_CASE("a limit says where all CTAs that are resident were") {
  Machine m(R"(
.visible .entry k(.param .u64 out) {
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
LOOP:
  atom.global.add.u32 %r1, [%rd1], 1;
  bra LOOP;
}
)");
  LaunchShape shape;
  shape.grid = {5, 1, 1};
  shape.sm_count = 3;
  shape.limits.steps = 100'000;
  const Run run = m.launch(shape, m.allocate(4));
  REQUIRE(run.fault.has_value());
  CHECK(run.fault->kind == FaultKind::step_limit);
  INFO(run.fault->detail);
  CHECK(run.fault->detail.find("CTAs 0-2 warp 0 at PTX line ") == 0);
}

TEST_CASE("a predicate that was never written guards nothing") {
  Machine m(R"(
.visible .entry k(.param .u64 out) {
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  setp.gt.u32 %p1, %r1, 3;
  @%p1 setp.gt.u32 %p2, %r1, 7;
  @%p2 st.global.u32 [%rd1], %r1;
  ret;
}
)");
  const Run run = m.launch({}, m.allocate(4));
  REQUIRE(run.fault.has_value());
  CHECK(run.fault->kind == FaultKind::undefined_value);
  CHECK(run.fault->site.lane == 0);
  CHECK(m.line_of(run.fault->site) == 13);
}

TEST_CASE("a value that was never written may be copied, but not branched on") {
  Machine m(R"(
.visible .entry k(.param .u64 out) {
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  mov.u32 %r1, %tid.x;
  setp.eq.u32 %p1, %r1, 9;
  @!%p1 mov.u32 %r2, 1;
  add.u32 %r3, %r2, 1;
  setp.eq.u32 %p2, %r3, 2;
  @%p2 bra DONE;
DONE:
  ret;
}
)");
  const Run run = m.launch({}, m.allocate(4));
  REQUIRE(run.fault.has_value());
  CHECK(run.fault->kind == FaultKind::undefined_value);
  CHECK(run.fault->site.lane == 9);
  CHECK(m.line_of(run.fault->site) == 14);
}

TEST_CASE("CTAs that speak through global memory are interleaved") {
  // All wait for the last.
  const char* const text = R"(
.visible .entry k(.param .u64 flags) {
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [flags];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %nctaid.x;
  sub.u32 %r3, %r2, 1;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  mul.wide.u32 %rd4, %r3, 4;
  add.s64 %rd5, %rd1, %rd4;
  mov.u32 %r4, 1;
  st.release.gpu.global.u32 [%rd3], %r4;
WAIT:
  ld.acquire.gpu.global.u32 %r5, [%rd5];
  setp.eq.u32 %p1, %r5, 0;
  @%p1 bra WAIT;
  ret;
}
)";
  Machine m(text);
  LaunchShape shape;
  shape.grid = {4, 1, 1};
  shape.sm_count = 4;
  const std::uint64_t flags = m.allocate(32);
  const Run run = m.launch(shape, flags);
  REQUIRE_CLEAN(run);
  // With room for three of the four the last is never there.
  Machine small(text);
  shape.sm_count = 3;
  const Run stuck = small.launch(shape, small.allocate(32));
  REQUIRE(stuck.fault.has_value());
  CHECK(stuck.fault->kind == FaultKind::deadlock);
  CHECK(stuck.fault->message == "CTAs wait for CTAs that cannot become resident: 3 fill the machine (3 SMs of 1), 1 more "
                                "come only when some have ended");
}

TEST_CASE("a loop that takes tickets is work, not waiting") {
  Machine m(R"(
.visible .entry k(.param .u64 out) {
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out];
NEXT:
  atom.global.add.u32 %r1, [%rd1], 1;
  setp.lt.u32 %p1, %r1, 1000;
  @%p1 bra NEXT;
  ret;
}
)");
  const std::uint64_t out = m.allocate(4);
  LaunchShape shape;
  shape.grid = {3, 1, 1};
  const Run run = m.launch(shape, out);
  REQUIRE_CLEAN(run);
  CHECK(m.read<std::uint32_t>(out, 1)[0] == 1000 + 96);
  for (const OpInfo& i : m.last->info) CHECK_FALSE(i.in_spin_loop);
}

TEST_CASE("schedules of one seed are the same run") {
  std::vector<std::uint64_t> first;
  for (int i = 0; i < 2; ++i) {
    Machine m(kSpinLock);
    LaunchShape shape;
    shape.grid = {2, 1, 1};
    shape.schedule = {Schedule::Mode::random, 42};
    const Run run = m.launch(shape, m.allocate(8));
    REQUIRE_CLEAN(run);
    std::vector<std::uint64_t> counts;
    for (const OpCount& n : run.counts) counts.push_back(n.warps);
    if (i == 0) first = counts;
    CHECK(counts == first);
  }
}
