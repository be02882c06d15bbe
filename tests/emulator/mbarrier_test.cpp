// mbarrier objects, through PTX.
#include "emulator/mbarrier.hpp"

#include "emulator/contains.hpp"
#include "emulator/support.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

// A kernel of one CTA: `bar` in shared memory at %r1 (and %rd1 generic), %r2 the thread, results to [%rd2 + 4
// i].
std::string kernel(const std::string& body) {
  return R"(
.shared .align 8 .b64 bar;
.visible .entry k(.param .u64 out) {
  .reg .pred %p<8>;
  .reg .b32 %r<32>;
  .reg .b64 %rd<16>;
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, bar;
  mov.u32 %r2, %tid.x;
)" + body +
         "\n  ret;\n}\n";
}

Run run(const std::string& body, LaunchShape shape = {}, std::vector<std::uint32_t>* out = nullptr) {
  Machine m(kernel(body));
  const std::uint64_t results = m.allocate(4 * 64);
  Run r = m.launch(shape, results);
  if (out) *out = m.read<std::uint32_t>(results, 64);
  return r;
}

LaunchShape one_thread() {
  LaunchShape shape;
  shape.block = {1, 1, 1};
  return shape;
}

std::string fault(const std::string& body, LaunchShape shape = one_thread()) {
  const Run r = run(body, shape);
  return r.fault ? std::string(fault_name(r.fault->kind)) + ": " + r.fault->message : "none";
}

}  // namespace

TEST_CASE("states count what was pending, as on a card") {
  std::string body = "mbarrier.init.shared.b64 [%r1], 5;\n";
  for (int i = 0; i < 5; ++i)
    body +=
        "mbarrier.arrive.shared.b64 %rd3, [%r1];\nmbarrier.pending_count.b64 %r3, %rd3;\nst.global.u32 "
        "[%rd2+" +
        std::to_string(4 * i) + "], %r3;\n";
  // The last state: its phase is over; that of the first as well. A new one is not.
  body += R"(
  mbarrier.test_wait.shared.b64 %p1, [%r1], %rd3;
  selp.u32 %r3, 1, 0, %p1;
  st.global.u32 [%rd2+20], %r3;
  mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %rd4, [%r1], 2;
  mbarrier.test_wait.shared.b64 %p1, [%r1], %rd4;
  selp.u32 %r3, 1, 0, %p1;
  st.global.u32 [%rd2+24], %r3;
  mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 0;
  mbarrier.test_wait.parity.shared.b64 %p2, [%r1], 1;
  selp.u32 %r3, 1, 0, %p1;
  selp.u32 %r4, 1, 0, %p2;
  st.global.u32 [%rd2+28], %r3;
  st.global.u32 [%rd2+32], %r4;
)";
  std::vector<std::uint32_t> out;
  REQUIRE_CLEAN(run(body, one_thread(), &out));
  CHECK(std::vector<std::uint32_t>(out.begin(), out.begin() + 9) ==
        std::vector<std::uint32_t>{5, 4, 3, 2, 1, 1, 0, 1, 0});
}

TEST_CASE("drops, early transactions and expect_tx alone complete phases as on a card") {
  std::vector<std::uint32_t> out;
  REQUIRE_CLEAN(run(R"(
  mbarrier.init.shared.b64 [%r1], 3;
  mbarrier.arrive_drop.shared.b64 %rd3, [%r1];
  mbarrier.arrive.shared.b64 %rd3, [%r1];
  mbarrier.arrive.shared.b64 %rd3, [%r1];
  mbarrier.pending_count.b64 %r3, %rd3;
  st.global.u32 [%rd2], %r3;
  mbarrier.arrive.shared.b64 %rd3, [%r1];
  mbarrier.pending_count.b64 %r3, %rd3;
  st.global.u32 [%rd2+4], %r3;
  mbarrier.inval.shared.b64 [%r1];
  mbarrier.init.shared.b64 [%r1], 1;
  mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 32;
  mbarrier.arrive.shared.b64 _, [%r1];
  mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 0;
  selp.u32 %r3, 1, 0, %p1;
  st.global.u32 [%rd2+8], %r3;
  mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 32;
  mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 0;
  selp.u32 %r3, 1, 0, %p1;
  st.global.u32 [%rd2+12], %r3;
)",
                    one_thread(), &out));
  CHECK(out[0] == 1);
  CHECK(out[1] == 2);
  CHECK(out[2] == 0);
  CHECK(out[3] == 1);
}

TEST_CASE("misuse of mbarrier objects is a fault") {
  const std::string init = "mbarrier.init.shared.b64 [%r1], 2;\n",
                    arrive = "mbarrier.arrive.shared.b64 _, [%r1];\n";
  CHECK(fault(init + arrive) == "none");
  CHECK_HAS(fault(arrive), Contains("barrier_misuse") && Contains("never initialised") && Contains("`bar`"));
  CHECK_HAS(fault(init + init), Contains("barrier_misuse") && Contains("initialised again"));
  CHECK(fault(init + "mbarrier.inval.shared.b64 [%r1];\n" + init + arrive) == "none");
  CHECK_HAS(fault(init + "mbarrier.inval.shared.b64 [%r1];\n" + arrive),
            Contains("mbarrier.inval made invalid"));
  CHECK_HAS(fault("mbarrier.inval.shared.b64 [%r1];\n"), Contains("never initialised"));
  CHECK_HAS(fault(init + "mbarrier.arrive.shared::cta.b64 _, [%r1], 3;\n"),
            Contains("more arrivals than the phase"));
  CHECK_HAS(fault(init + "mbarrier.arrive.shared::cta.b64 _, [%r1], 0;\n"), Contains("count 0"));
  CHECK_HAS(fault("mbarrier.init.shared.b64 [%r1], 0;\n"), Contains("a count of 0"));
  CHECK_HAS(fault("mbarrier.init.shared.b64 [%r1], 1048576;\n"), Contains("2^20 - 1"));
  CHECK(fault("mbarrier.init.shared.b64 [%r1], 1048575;\n") == "none");
  CHECK(fault(init + "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 1048575;\n") == "none");
  CHECK_HAS(fault(init + "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 1048576;\n"),
            Contains("transaction count"));
  CHECK_HAS(fault(init + arrive + "mbarrier.arrive.noComplete.shared.b64 %rd3, [%r1], 1;\n"),
            Contains(".noComplete"));
  CHECK_HAS(fault("add.u32 %r1, %r1, 4;\n" + init), Contains("misaligned"));
  CHECK_HAS(fault(init + "mov.u32 %r5, 0;\nst.shared.u32 [%r1], %r5;\n" + arrive), Contains("barrier_misuse") && Contains("`bar`"));
  CHECK_HAS(fault(init + "mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 2;\n"), Contains("parity 2"));
  CHECK_HAS(fault(init + "mov.u64 %rd3, 77777777;\nmbarrier.test_wait.shared.b64 %p1, [%r1], %rd3;\n"),
            Contains("neither the current one"));
  CHECK_HAS(fault(init + "mbarrier.arrive.expect_tx.shared.b64 _, [%r1], %r20;\n"),
            Contains("undefined_value"));
  CHECK_HAS(fault("mov.u64 %rd3, 4096;\nmbarrier.init.b64 [%rd3], 1;\n"), Contains("not in shared memory"));
  CHECK(fault("cvt.u64.u32 %rd3, %r1;\ncvta.shared.u64 %rd4, %rd3;\nmbarrier.init.b64 [%rd4], 1;\n") ==
        "none");
}

TEST_CASE("a phase that nobody completes is a deadlock that names the barrier") {
  const Run r = run(R"(
  setp.eq.u32 %p1, %r2, 0;
  @%p1 mbarrier.init.shared.b64 [%r1], 33;
  bar.sync 0;
  mbarrier.arrive.shared.b64 _, [%r1];
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r1], 0;
  @!%p2 bra WAIT;
)");
  REQUIRE(r.fault);
  CHECK(r.fault->kind == FaultKind::deadlock);
  CHECK_HAS(r.fault->detail, Contains("`bar`") && Contains("phase 0, 1 of 33 arrivals"));
}

TEST_CASE("a ring of phases between warps ends under every schedule") {
  // Warp 0 produces eight times into one slot, warp 1 sums; full and empty barriers.
  const std::string text = R"(
.shared .align 8 .b64 bars[2];
.shared .align 4 .b32 slot;
.visible .entry k(.param .u64 out) {
  .reg .pred %p<8>;
  .reg .b32 %r<32>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, bars;
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, slot;
  setp.eq.u32 %p1, %r2, 0;
  @%p1 mbarrier.init.shared.b64 [%r1], 1;
  @%p1 mbarrier.init.shared.b64 [%r1+8], 32;
  bar.sync 0;
  mov.u32 %r4, 0;
  mov.u32 %r6, 0;
  setp.ge.u32 %p2, %r2, 32;
  @%p2 bra CONSUMER;
  setp.ne.u32 %p3, %r2, 0;
  @%p3 bra DONE;
PRODUCER:
  and.b32 %r5, %r4, 1;
  xor.b32 %r5, %r5, 1;
EMPTY:
  mbarrier.try_wait.parity.shared.b64 %p4, [%r1+8], %r5;
  @!%p4 bra EMPTY;
  add.u32 %r7, %r4, 1;
  st.shared.u32 [%r3], %r7;
  mbarrier.arrive.shared.b64 _, [%r1];
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p5, %r4, 8;
  @%p5 bra PRODUCER;
  bra DONE;
CONSUMER:
  and.b32 %r5, %r4, 1;
FULL:
  mbarrier.try_wait.parity.shared.b64 %p4, [%r1], %r5;
  @!%p4 bra FULL;
  ld.shared.u32 %r7, [%r3];
  add.u32 %r6, %r6, %r7;
  mbarrier.arrive.shared.b64 _, [%r1+8];
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p5, %r4, 8;
  @%p5 bra CONSUMER;
  sub.u32 %r8, %r2, 32;
  mul.wide.u32 %rd3, %r8, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r6;
DONE:
  ret;
}
)";
  Machine m(text);
  const std::uint64_t out = m.allocate(4 * 32);
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    LaunchShape shape;
    shape.block = {64, 1, 1};
    shape.schedule = {seed == 0   ? Schedule::Mode::eager
                      : seed == 1 ? Schedule::Mode::lazy
                                  : Schedule::Mode::random,
                      seed};
    const Run r = m.launch(shape, out);
    REQUIRE_CLEAN(r);
    CHECK(m.read<std::uint32_t>(out, 32) == std::vector<std::uint32_t>(32, 36));
  }
}

TEST_CASE("arrivals reach the barrier of another CTA of the cluster") {
  const std::string text = R"(
.shared .align 8 .b64 bar;
.visible .entry k(.param .u64 out) {
  .reg .pred %p<8>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, bar;
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %cluster_ctarank;
  setp.eq.u32 %p1, %r2, 0;
  @%p1 mbarrier.init.shared::cta.b64 [%r1], 2;
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  mapa.shared::cluster.u32 %r4, %r1, 0;
  @%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];
  setp.ne.u32 %p2, %r3, 0;
  @%p2 bra DONE;
WAIT:
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r1], 0, 1000;
  @!%p3 bra WAIT;
  @%p1 st.global.u32 [%rd2], 1;
DONE:
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  ret;
}
)";
  Machine m(text);
  const std::uint64_t out = m.allocate(4);
  LaunchShape shape;
  shape.grid = {2, 1, 1};
  shape.cluster = {2, 1, 1};
  REQUIRE_CLEAN(m.launch(shape, out));
  CHECK(m.read<std::uint32_t>(out, 1)[0] == 1);
}
