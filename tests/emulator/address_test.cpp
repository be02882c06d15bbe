// Addresses between state spaces and CTAs of a cluster, and fences between proxies.
#include "emulator/support.hpp"

using namespace ptxbench::testing;

namespace {

std::string fault_of(const Run& run) { return run.fault ? std::string(fault_name(run.fault->kind)) : "none"; }

// Each thread has 64 bytes of out at %rd2; %r1 thread, %r2 rank in the cluster.
std::string kernel_of(const std::string& body, const std::string& declarations = {}) {
  return declarations + R"(
.shared .align 16 .b8 tile[256];
.const .align 4 .u32 table[2] = {8, 9};
.visible .entry k(.param .u64 out) {
  .reg .pred %p<16>;
  .reg .b32 %r<32>;
  .reg .b64 %rd<32>;
  .local .align 8 .b8 frame[16];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %cluster_ctarank;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mad.lo.u32 %r3, %r3, %r4, %r1;
  mul.wide.u32 %rd1, %r3, 64;
  ld.param.u64 %rd2, [out];
  add.s64 %rd2, %rd2, %rd1;
)" + body +
         "\n  ret;\n}\n";
}

struct Outcome {
  std::vector<std::uint32_t> words;  // 16 a thread
  Run run;
};
Outcome run_on(const std::string& body, std::uint32_t cluster = 1, std::uint32_t threads = 1) {
  Machine m(kernel_of(body));
  const std::uint64_t out = m.allocate(64 * cluster * threads);
  LaunchShape shape;
  shape.grid = {cluster, 1, 1};
  shape.cluster = {cluster, 1, 1};
  shape.block = {threads, 1, 1};
  Run run = m.launch(shape, out);
  return {m.read<std::uint32_t>(out, std::size_t{16} * cluster * threads), std::move(run)};
}

}  // namespace

TEST_CASE("shared addresses carry the rank, generic ones lie in the window") {
  const Outcome o = run_on(R"(
  mov.u32 %r5, tile;
  st.global.u32 [%rd2], %r5;
  mov.u64 %rd3, tile;
  cvta.shared.u64 %rd4, %rd3;
  st.global.u64 [%rd2+8], %rd4;
  cvta.to.shared.u64 %rd5, %rd4;
  st.global.u64 [%rd2+16], %rd5;
  cvta.shared.u64 %rd6, tile;
  st.global.u64 [%rd2+24], %rd6;
  xor.b32 %r6, %r2, 1;
  mapa.shared::cluster.u32 %r7, %r5, %r6;
  st.global.u32 [%rd2+32], %r7;
  mapa.u64 %rd7, %rd4, %r6;
  st.global.u64 [%rd2+40], %rd7;
  getctarank.shared::cluster.u32 %r8, %r7;
  getctarank.u64 %r9, %rd7;
  st.global.v2.u32 [%rd2+48], {%r8, %r9};
  mapa.shared::cluster.u32 %r10, tile, %r6;
  st.global.u32 [%rd2+56], %r10;
)",
                           2);
  REQUIRE_CLEAN(o.run);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const std::uint32_t* w = o.words.data() + 16 * rank;
    const std::uint32_t own = rank << 24 | 0x400, peer = (rank ^ 1) << 24 | 0x400;
    CHECK(w[0] == own);
    CHECK(w[2] == own);
    CHECK(w[3] == kSharedWindow >> 32);
    CHECK(w[4] == own);
    CHECK(w[5] == 0);
    CHECK(w[6] == own);
    CHECK(w[8] == peer);
    CHECK(w[10] == peer);
    CHECK(w[11] == kSharedWindow >> 32);
    CHECK(w[12] == (rank ^ 1));
    CHECK(w[13] == (rank ^ 1));
    CHECK(w[14] == peer);
  }
}

TEST_CASE("global, constant, local and parameter addresses as generic ones and back") {
  const Outcome o = run_on(R"(
  cvta.global.u64 %rd3, %rd2;
  cvta.to.global.u64 %rd4, %rd3;
  st.u32 [%rd3], 1;
  st.global.u32 [%rd4+4], 2;
  mov.u64 %rd5, table;
  cvta.const.u64 %rd6, %rd5;
  ld.u32 %r5, [%rd6+4];
  cvta.to.const.u64 %rd7, %rd6;
  ld.const.u32 %r6, [%rd7];
  st.global.v2.u32 [%rd2+8], {%r5, %r6};
  mov.u64 %rd8, frame;
  cvta.local.u64 %rd9, %rd8;
  st.u32 [%rd9+4], 77;
  cvta.to.local.u64 %rd10, %rd9;
  ld.local.u32 %r7, [%rd10+4];
  st.global.u32 [%rd2+16], %r7;
  mov.b64 %rd11, out;
  cvta.param.u64 %rd12, %rd11;
  ld.u64 %rd13, [%rd12];
  cvta.to.param.u64 %rd14, %rd12;
  ld.param.u64 %rd15, [%rd14];
  sub.s64 %rd13, %rd13, %rd15;
  st.global.u64 [%rd2+24], %rd13;
)");
  REQUIRE_CLEAN(o.run);
  CHECK(o.words[0] == 1);
  CHECK(o.words[1] == 2);
  CHECK(o.words[2] == 9);
  CHECK(o.words[3] == 8);
  CHECK(o.words[4] == 77);
  CHECK(o.words[6] == 0);
}

TEST_CASE("isspacep") {
  // Rows: global, const, local, param, shared of its own, shared of the peer. Bits: the tests in the order
  // below.
  std::string body = R"(
  mov.u64 %rd3, table;
  mov.u64 %rd4, frame;
  cvta.local.u64 %rd4, %rd4;
  mov.b64 %rd5, out;
  cvta.param.u64 %rd5, %rd5;
  cvta.shared.u64 %rd6, tile;
  xor.b32 %r6, %r2, 1;
  mapa.u64 %rd7, %rd6, %r6;
)";
  const char* tests[] = {"global", "const",       "local",           "param",
                         "shared", "shared::cta", "shared::cluster", "param::entry"};
  for (int row = 0; row < 6; ++row) {
    body += "mov.u32 %r10, 0;\n";
    for (int t = 0; t < 8; ++t) {
      body += std::string("isspacep.") + tests[t] + " %p1, %rd" + std::to_string(row + 2) +
              ";\n selp.u32 %r11, " + std::to_string(1 << t) + ", 0, %p1;\n or.b32 %r10, %r10, %r11;\n";
    }
    body += "st.global.u32 [%rd2+" + std::to_string(4 * row) + "], %r10;\n";
  }
  const Outcome o = run_on(body, 2);
  REQUIRE_CLEAN(o.run);
  for (int rank = 0; rank < 2; ++rank) {
    const std::uint32_t* w = o.words.data() + 16 * rank;
    CHECK(w[0] == 0b0000'0001);
    CHECK(w[1] == 0b0000'0010);
    CHECK(w[2] == 0b0000'0100);
    CHECK(w[3] == 0b1000'1001);  // the parameters' window lies in global memory
    CHECK(w[4] == 0b0111'0000);
    CHECK(w[5] == 0b0100'0000);
  }
}

TEST_CASE("another CTA's shared memory: loads, stores, atomics, generic or not") {
  const Outcome o = run_on(R"(
  mov.u32 %r5, tile;
  xor.b32 %r6, %r2, 1;
  mapa.shared::cluster.u32 %r7, %r5, %r6;
  shl.b32 %r8, %r1, 2;
  add.u32 %r7, %r7, %r8;
  add.u32 %r9, %r1, 100;
  st.shared.u32 [tile+252], 0;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  mad.lo.u32 %r9, %r2, 1000, %r9;
  st.shared::cluster.u32 [%r7], %r9;
  mapa.shared::cluster.u32 %r10, %r5, %r6;
  red.shared::cluster.add.u32 [%r10+252], 1;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  add.u32 %r11, %r5, %r8;
  ld.shared.u32 %r12, [%r11];
  ld.shared::cluster.u32 %r13, [%r7];
  cvta.shared.u64 %rd3, %rd3;
  cvt.u64.u32 %rd4, %r7;
  cvta.shared::cluster.u64 %rd5, %rd4;
  ld.u32 %r14, [%rd5];
  ld.shared.u32 %r15, [tile+252];
  st.global.v4.u32 [%rd2], {%r12, %r13, %r14, %r15};
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
)",
                           2, 32);
  REQUIRE_CLEAN(o.run);
  for (std::uint32_t i = 0; i < 64; ++i) {
    const std::uint32_t* w = o.words.data() + 16 * i;
    const std::uint32_t rank = i / 32, lane = i % 32;
    CHECK(w[0] == (rank ^ 1) * 1000 + lane + 100);  // what the peer stored
    CHECK(w[1] == rank * 1000 + lane + 100);        // what this one stored there
    CHECK(w[2] == rank * 1000 + lane + 100);
    CHECK(w[3] == 32);
  }
}

TEST_CASE("wrong addresses of shared memory in a cluster") {
  const std::string peer =
      "xor.b32 %r6, %r2, 1; mov.u32 %r5, tile; mapa.shared::cluster.u32 %r7, %r5, %r6;\n";
  Outcome o = run_on(peer + "ld.shared.u32 %r8, [%r7];", 2);
  CHECK(fault_of(o.run) == "out_of_bounds");
  CHECK(o.run.fault->message.find(".shared::cta reaches only its own CTA") != std::string::npos);
  o = run_on("mov.u32 %r5, tile; mapa.shared::cluster.u32 %r7, %r5, 2; ld.shared::cluster.u32 %r8, [%r7];",
             2);
  CHECK(fault_of(o.run) == "out_of_bounds");
  // CTA 0 leaves at once; its peer comes late.
  o = run_on(peer + R"(
  setp.eq.u32 %p1, %r2, 0;
  @%p1 bra DONE;
  mov.u32 %r9, 0;
LOOP:
  add.u32 %r9, %r9, 1;
  setp.lt.u32 %p2, %r9, 5000;
  @%p2 bra LOOP;
  st.shared::cluster.u32 [%r7], %r9;
DONE:
)",
             2);
  CHECK(fault_of(o.run) == "exit_with_work");
  // A generic address in a .shared instruction.
  o = run_on("cvta.shared.u64 %rd3, tile; st.shared.u32 [%rd3], %r1;");
  CHECK(fault_of(o.run) == "out_of_bounds");
}

TEST_CASE("fences of every kind order nothing and refuse what is no fence") {
  const Outcome o = run_on(R"(
  membar.cta; membar.gl; membar.sys;
  fence.cta; fence.sc.gpu; fence.acq_rel.sys; fence.acq_rel.cluster; fence.acquire.gpu; fence.release.cta;
  fence.acquire.sync_restrict::shared::cluster.cluster;
  fence.release.sync_restrict::shared::cta.cluster;
  fence.mbarrier_init.release.cluster;
  fence.proxy.alias; membar.proxy.alias;
  fence.proxy.async; fence.proxy.async.global; fence.proxy.async.shared::cta; fence.proxy.async.shared::cluster;
  fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;
  fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;
  fence.proxy.tensormap::generic.release.gpu;
  st.global.u32 [%rd2], 5;
)");
  REQUIRE_CLEAN(o.run);
  CHECK(o.words[0] == 5);
  const auto error = [](const std::string& body) {
    Machine m(kernel_of(body));
    const auto kernel = m.decode();
    return kernel ? std::string() : kernel.error().to_string();
  };
  CHECK(error("fence.proxy.frob;").find("frob") != std::string::npos);
  CHECK(error("fence.acq_rel.frob;").find("frob") != std::string::npos);
  CHECK(!error("fence.proxy.tensormap::generic.acquire.gpu [%rd2], 64;").empty());
  CHECK(!error("mapa.u32 %r5, %r6, %r7;").empty());
  CHECK(!error("istypep.texref %p1, %rd2;").empty());
  CHECK(fault_of(run_on("mov.b64 %rd3, 0; fence.proxy.tensormap::generic.acquire.gpu [%rd3], 128;").run) ==
        "out_of_bounds");
}

TEST_CASE("a plain store over a live mbarrier object") {
  const std::string init = "mbarrier.init.shared::cta.b64 [tile+16], 1;\n";
  CHECK(fault_of(run_on(init + "st.shared.u32 [tile+20], 1;").run) == "barrier_misuse");
  CHECK(fault_of(run_on(init + "red.shared.add.u32 [tile+16], 1;").run) == "barrier_misuse");
  CHECK(fault_of(run_on(init + "st.shared.v2.b64 [tile+16], {%rd1, %rd2};").run) == "barrier_misuse");
  CHECK(fault_of(run_on(init + "cvta.shared.u64 %rd3, tile; st.u8 [%rd3+23], 1;").run) == "barrier_misuse");
  CHECK(fault_of(run_on(init + "st.shared.u32 [tile+24], 1; st.shared.u32 [tile+12], 1;").run) == "none");
  CHECK(fault_of(run_on(init + "ld.shared.b64 %rd3, [tile+16];").run) == "none");
  CHECK(
      fault_of(run_on(init + "mbarrier.inval.shared::cta.b64 [tile+16]; st.shared.u32 [tile+20], 1;").run) ==
      "none");
  // A whole warp side by side.
  CHECK(fault_of(run_on(init + "bar.sync 0; mov.u32 %r5, tile; shl.b32 %r6, %r1, 2; add.u32 %r5, %r5, %r6;"
                               "st.shared.u32 [%r5], 1;",
                        1, 32)
                     .run) != "none");
}
