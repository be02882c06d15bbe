// Bulk copies, reductions and their groups; st.async and red.async.
#include "emulator/contains.hpp"
#include "emulator/support.hpp"

#include <numeric>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

const Schedule kSchedules[] = {{Schedule::Mode::eager, 0},
                               {Schedule::Mode::lazy, 0},
                               {Schedule::Mode::random, 3},
                               {Schedule::Mode::random, 4}};

// One thread of one CTA: 256 words of `buf` in shared memory, filled with 1000 + i; %rd1 in, %rd2 out.
std::string kernel(const std::string& body) {
  return R"(
.shared .align 16 .b64 bar;
.shared .align 128 .b8 buf[2048];
.visible .entry k(.param .u64 in, .param .u64 out) {
  .reg .pred %p<8>;
  .reg .b32 %r<32>;
  .reg .b64 %rd<16>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, buf;
  mov.u32 %r2, bar;
  mbarrier.init.shared.b64 [%r2], 1;
  mov.u32 %r3, 0;
FILL:
  add.u32 %r4, %r3, 1000;
  shl.b32 %r5, %r3, 2;
  add.u32 %r5, %r5, %r1;
  st.shared.u32 [%r5], %r4;
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p1, %r3, 256;
  @%p1 bra FILL;
  fence.proxy.async;
)" + body +
         "\n  ret;\n}\n";
}

struct Ran {
  Run run;
  std::vector<std::uint32_t> out;
};
Ran go(const std::string& body, Schedule schedule = {}) {
  Machine m(kernel(body));
  std::vector<std::uint32_t> in(256);
  std::iota(in.begin(), in.end(), 0u);
  const std::uint64_t a = m.upload(in), b = m.upload(std::vector<std::uint32_t>(256, 7));
  LaunchShape shape;
  shape.block = {1, 1, 1};
  shape.schedule = schedule;
  Run r = m.launch(shape, a, b);
  return {std::move(r), m.read<std::uint32_t>(b, 256)};
}
std::string fault(const std::string& body, Schedule schedule = {}) {
  const Ran o = go(body, schedule);
  return o.run.fault ? std::string(fault_name(o.run.fault->kind)) + ": " + o.run.fault->message : "none";
}

const char* const kWait = R"(
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;
  @!%p2 bra WAIT;
)";

}  // namespace

TEST_CASE("bulk copies into shared memory and out again, under every schedule") {
  for (const Schedule& schedule : kSchedules) {
    const Ran o = go(std::string(R"(
  mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 512;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1+256], 256, [%r2];
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1+256], [%rd1], 256, [%r2];
)") + kWait + R"(
  cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], 512;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
)",
                     schedule);
    REQUIRE_CLEAN(o.run);
    for (unsigned i = 0; i < 128; ++i) REQUIRE(o.out[i] == (i < 64 ? i + 64 : i - 64));
    CHECK(o.out[128] == 7);
    CHECK(o.run.bulk_bytes == 1024);
    CHECK(o.run.remarks.empty());
  }
}

TEST_CASE("a source may be written again only after wait_group.read") {
  const std::string store = R"(
  cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], 16;
  cp.async.bulk.commit_group;
)";
  const std::string overwrite = R"(
  mov.u32 %r9, 5;
  st.shared.u32 [%r1], %r9;
  cp.async.bulk.wait_group 0;
)";
  for (const Schedule& schedule : kSchedules)
    CHECK(go(store + "cp.async.bulk.wait_group.read 0;\n" + overwrite, schedule).out[0] == 1000);
  // Without the wait some legal schedule shows it.
  CHECK(go(store + overwrite, kSchedules[0]).out[0] == 1000);
  CHECK(go(store + overwrite, kSchedules[1]).out[0] == 5);
  // A wait for all but the newest group does not wait for it.
  CHECK(go(store + "cp.async.bulk.wait_group.read 1;\n" + overwrite, kSchedules[1]).out[0] == 5);
}

TEST_CASE("bulk reductions") {
  const std::string end = "\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n";
  CHECK(go("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd2], [%r1], 16;" + end).out[1] ==
        1008);
  CHECK(go("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s32 [%rd2], [%r1], 16;" + end).out[1] ==
        7);
  CHECK(go("cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.u32 [%rd2], [%r1], 16;" + end).out[1] ==
        8);
  CHECK(go("cp.reduce.async.bulk.global.shared::cta.bulk_group.xor.b32 [%rd2], [%r1], 16;" + end).out[1] ==
        (1001 ^ 7));
  // Into shared memory, with an mbarrier.
  const Ran o = go(std::string(R"(
  mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 32;
  cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%r1+64], [%r1], 32, [%r2];
)") + kWait + "ld.shared.u32 %r9, [%r1+64];\nst.global.u32 [%rd2], %r9;\n");
  REQUIRE_CLEAN(o.run);
  CHECK(o.out[0] == 1016 + 1000);
  Machine bad(kernel("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f32 [%rd2], [%r1], 16;"));
  CHECK(!bad.decode());
}

TEST_CASE("bulk copies with broken rules are faults") {
  CHECK_HAS(fault("cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], 24;\n"),
            Contains("misaligned"));
  CHECK_HAS(fault("cp.async.bulk.global.shared::cta.bulk_group [%rd2+8], [%r1], 16;\n"),
            Contains("misaligned"));
  CHECK_HAS(fault("cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1+4], 16;\n"),
            Contains("misaligned"));
  CHECK_HAS(fault("cp.async.bulk.global.shared::cta.bulk_group [%rd2+1008], [%r1], 32;\n"),
            Contains("out_of_bounds"));
  CHECK_HAS(fault("cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], 4096;\n"),
            Contains("out_of_bounds"));
  CHECK_HAS(
      fault("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r1+512];\n"),
      Contains("never initialised"));
  CHECK_HAS(
      fault("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r20, [%r2];\n"),
      Contains("undefined_value"));
  // A copy over the barrier itself.
  CHECK_HAS(fault("sub.u32 %r9, %r2, 0;\ncp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
                  "[%r9], [%rd1], "
                  "16, [%r2];\n"),
            Contains("barrier_misuse"));
}

TEST_CASE("missing fences before bulk stores are hazards") {
  const Ran o = go(R"(
  mov.u32 %r9, 5;
  st.shared.u32 [%r1], %r9;
  cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
)");
  REQUIRE(o.run.remarks.size() == 1);
  CHECK(o.run.remarks[0].code == "missing_proxy_fence");
}

TEST_CASE("multicast copies and asynchronous stores reach the CTAs of a cluster") {
  const std::string text = R"(
.shared .align 128 .b8 buf[256];
.shared .align 8 .b64 bar;
.visible .entry k(.param .u64 in, .param .u64 out) {
  .reg .pred %p<8>;
  .reg .b32 %r<32>;
  .reg .b16 %rs<4>;
  .reg .b64 %rd<16>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, buf;
  mov.u32 %r2, bar;
  mov.u32 %r3, %cluster_ctarank;
  mov.u32 %r4, %tid.x;
  setp.eq.u32 %p1, %r4, 0;
  setp.eq.u32 %p2, %r3, 0;
  and.pred %p3, %p1, %p2;
  @%p1 mbarrier.init.shared.b64 [%r2], 1;
  @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 80;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  mov.u16 %rs1, 3;
  @%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1], 64, [%r2], %rs1;
  xor.b32 %r5, %r3, 1;
  mapa.shared::cluster.u32 %r6, %r1, %r5;
  mapa.shared::cluster.u32 %r7, %r2, %r5;
  add.u32 %r8, %r3, 50;
  @%p1 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r6+64], {%r8, %r3}, [%r7];
  @%p1 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r6+72], %r8, [%r7];
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p4, [%r2], 0;
  @!%p4 bra WAIT;
  shl.b32 %r9, %r4, 2;
  add.u32 %r10, %r1, %r9;
  setp.lt.u32 %p5, %r4, 19;
  mov.u32 %r11, 0;
  @%p5 ld.shared.u32 %r11, [%r10];
  shl.b32 %r12, %r3, 7;
  add.u32 %r12, %r12, %r9;
  cvt.u64.u32 %rd3, %r12;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r11;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  ret;
}
)";
  std::string with_red = text;
  // The fourth word: a reduction.
  const std::string marker = "WAIT:";
  with_red.insert(
      with_red.find(marker),
      R"(  @%p1 red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r6+72], %r8, [%r7];
)");
  Machine m(with_red);
  std::vector<std::uint32_t> in(16);
  std::iota(in.begin(), in.end(), 100u);
  const std::uint64_t a = m.upload(in), b = m.allocate(256);
  LaunchShape shape;
  shape.grid = {2, 1, 1};
  shape.cluster = {2, 1, 1};
  const Run eager = m.launch(shape, a, b);
  REQUIRE_CLEAN(eager);
  const auto out = m.read<std::uint32_t>(b, 64);
  for (unsigned rank = 0; rank < 2; ++rank) {
    for (unsigned i = 0; i < 16; ++i) CHECK(out[32 * rank + i] == 100 + i);
    CHECK(out[32 * rank + 16] == 50 + (rank ^ 1));
    CHECK(out[32 * rank + 17] == (rank ^ 1));
    CHECK(out[32 * rank + 18] == 2 * (50 + (rank ^ 1)));
  }
}

TEST_CASE("what was never written may be copied, but not into an output") {
  // `buf` holds 1024 written bytes; the 1024 behind them nobody has written.
  const std::string copy =
      "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1+512], 528;\n"
      "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n";
  for (const auto role : {MemoryLabel::Role::output, MemoryLabel::Role::workspace}) {
    Machine m(kernel(copy));
    const std::uint64_t in = m.allocate(1024), out = m.allocate(1024);
    MemoryLabel label;
    label.role = role;
    label.name = "C";
    m.memory.name(out, 1024, label);
    LaunchShape shape;
    shape.block = {1, 1, 1};
    const Run run = m.launch(shape, in, out);
    if (role == MemoryLabel::Role::output) {
      REQUIRE(run.fault);
      CHECK(run.fault->kind == FaultKind::undefined_value);
      CHECK_HAS(run.fault->message, Contains("C"));
    } else {
      REQUIRE_CLEAN(run);
      CHECK(m.memory.global_undefined(out + 512, 16));
      CHECK(!m.memory.global_undefined(out, 512));
    }
  }
}

TEST_CASE("a CTA that ends before its bulk store has read is a fault under some schedule") {
  const std::string store =
      "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], 1024;\n"
      "cp.async.bulk.commit_group;\n";
  CHECK(fault(store) == "none");
  CHECK_HAS(fault(store, kSchedules[1]), Contains("exit_with_work") && Contains("1024 bytes"));
  CHECK(fault(store + "cp.async.bulk.wait_group.read 0;\n", kSchedules[1]) == "none");
}
