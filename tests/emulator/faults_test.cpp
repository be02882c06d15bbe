// Faults of memory, of values and of instructions: a test a row of the table in docs/emulator.md.
#include "emulator/launch_text.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {
const TextLaunch kOneThread{{1, 1, 1}, {1, 1, 1}};
}  // namespace

TEST_CASE("Fault: out of bounds in global memory names the tensor, the index and both lines") {
  CHECK(fault_of("ld.global.f32 %f1, [%rd1+508];\n") == "none");
  CHECK_HAS(fault_of("add.u32 %r3, %r1, 1;\nmul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd3, %rd3, %rd1;\n"
                     "ld.global.f32 %f1, [%rd3+388];\n"),
            Contains("out_of_bounds: reads 4 bytes") && Contains("0 bytes behind the end of A[8, 16]") &&
                Contains("gemm.cu:104") && Contains("lane 31") && Contains("CTA 0") && Contains("warp 0") &&
                Contains("ld.global.f32"));
  CHECK_HAS(fault_of("ld.global.f32 %f1, [%rd1+-4];\n"),
            Contains("4 bytes before the beginning of A[8, 16]"));
  CHECK_HAS(
      fault_of("mov.u32 %r3, 1;\nst.global.u32 [%rd2+256], %r3;\n"),
      Contains("writes 4 bytes") && Contains("0 bytes behind the end of C[64]") && Contains("gemm.cu:102"));
  CHECK_HAS(
      fault_of(
          "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd2+240];\nld.global.v2.f32 {%f1, %f2}, [%rd2+256];\n"),
      Contains("C[64]") && Contains("gemm.cu:102"));
  CHECK_HAS(fault_of("mov.u64 %rd3, 0;\nld.global.u32 %r3, [%rd3];\n"), Contains("the null pointer"));
  CHECK_HAS(fault_of("mov.u64 %rd3, 0x123456789000;\nld.global.u32 %r3, [%rd3];\n"),
            Contains("nothing is allocated"));
  CHECK_HAS(fault_of("atom.global.add.u32 %r3, [%rd2+256], 1;\n"), Contains("out_of_bounds: updates"));
  CHECK_HAS(fault_of("mov.u32 %r3, 5;\nmov.u64 %rd3, table;\nst.global.u32 [%rd3], %r3;\n", {},
                     ".const .align 4 .u32 table = 7;"),
            Contains("may only read"));
}

TEST_CASE("Fault: out of bounds in shared, local and parameter memory") {
  const std::string tile = ".shared .align 16 .b8 tile[256];\n.extern .shared .align 16 .b8 more[];";
  // The window is the CTA's: its static and dynamic parts together.
  CHECK(fault_of("mov.u32 %r3, tile;\nst.shared.u32 [%r3+508], %r1;\n",
                 {{1, 1, 1}, {32, 1, 1}, {1, 1, 1}, 256}, tile) == "none");
  CHECK_HAS(fault_of("mov.u32 %r3, tile;\nst.shared.u32 [%r3+508], %r1;\n", {}, tile),
            Contains("out_of_bounds: writes 4 bytes") &&
                Contains("252 bytes behind the end of the CTA's shared memory (256 bytes") &&
                Contains("gemm.cu:102"));
  CHECK_HAS(fault_of("mov.u32 %r3, tile;\nst.shared.u32 [%r3+512], %r1;\n",
                     {{1, 1, 1}, {32, 1, 1}, {1, 1, 1}, 256}, tile),
            Contains("out_of_bounds"));
  CHECK_HAS(fault_of("mov.u32 %r3, tile;\nst.shared.u32 [%r3+-8], %r1;\n", {}, tile),
            Contains("belong to the system"));
  CHECK_HAS(fault_of("ld.shared.u32 %r3, [%rd1];\n"), Contains("more than 32 bits"));
  const std::string frame = ".local .align 8 .b8 depot[64];\nmov.u64 %rd3, depot;\n";
  CHECK(fault_of(frame + "st.local.u32 [%rd3+60], %r1;\n") == "none");
  CHECK_HAS(fault_of(frame + "st.local.u32 [%rd3+64], %r1;\n"),
            Contains("out_of_bounds: writes 4 bytes at local address") && Contains("64 bytes"));
  CHECK_HAS(fault_of("ld.param.u32 %r3, [out+8];\n"), Contains("out_of_bounds"));
}

TEST_CASE("Fault: misaligned in each space") {
  const std::string tile = ".shared .align 16 .b8 tile[256];";
  CHECK_HAS(fault_of("ld.global.v2.f32 {%f1, %f2}, [%rd1+4];\n"),
            Contains("misaligned: reads 8 bytes") && Contains("no multiple of 8") && Contains("A[0, 1]") &&
                Contains("gemm.cu:101"));
  CHECK_HAS(fault_of("st.global.u32 [%rd2+2], %r1;\n"), Contains("misaligned"));
  CHECK_HAS(fault_of("mov.u32 %r3, tile;\nst.shared.u32 [%r3+6], %r1;\n", {}, tile),
            Contains("misaligned") && Contains("`tile` + 6"));
  CHECK_HAS(fault_of(".local .align 8 .b8 depot[64];\nmov.u64 %rd3, depot;\nst.local.u32 [%rd3+1], %r1;\n"),
            Contains("misaligned"));
  CHECK_HAS(fault_of("mov.u64 %rd3, table;\nld.const.u32 %r3, [%rd3+2];\n", {},
                     ".const .align 4 .u32 table[2] = {7, 8};"),
            Contains("misaligned"));
  CHECK_HAS(fault_of("ld.param.u32 %r3, [out+2];\n"), Contains("misaligned"));
}

TEST_CASE(
    "Fault: a value never written reaches a branch, an address, a barrier or an output; not where it is "
    "copied") {
  const std::string tile = ".shared .align 16 .b8 tile[256];\n.shared .align 8 .b64 bar;";
  CHECK_HAS(fault_of("setp.eq.u32 %p1, %r40, 0;\n@%p1 bra END;\nEND:\n"),
            Contains("undefined_value") && Contains("gemm.cu:102") && Contains("never written"));
  CHECK_HAS(fault_of("setp.eq.u32 %p1, %r40, 0;\n@%p1 mov.u32 %r3, 1;\n"), Contains("undefined_value"));
  CHECK_HAS(fault_of("cvt.u64.u32 %rd3, %r40;\nadd.s64 %rd3, %rd3, %rd1;\nld.global.u32 %r3, [%rd3];\n"),
            Contains("the address depends on a value that was never written") && Contains("gemm.cu:103"));
  CHECK_HAS(fault_of("bar.sync %r40;\n"), Contains("undefined_value") && Contains("barrier's number"));
  CHECK_HAS(fault_of("mov.u32 %r3, bar;\nmbarrier.init.shared.b64 [%r3], %r40;\n", kOneThread, tile),
            Contains("undefined_value"));
  CHECK_HAS(fault_of("st.global.u32 [%rd2], %r40;\n"),
            Contains("undefined_value: stores a value that was never written to the output C[0]") &&
                Contains("gemm.cu:101"));
  // Through shared memory that nobody filled.
  CHECK_HAS(fault_of("mov.u32 %r3, tile;\nld.shared.f32 %f1, [%r3];\nadd.f32 %f1, %f1, %f1;\nst.global.f32 "
                     "[%rd2], %f1;\n",
                     {}, tile),
            Contains("undefined_value") && Contains("gemm.cu:104"));
  // Padding that is copied, arithmetic that nobody uses, a selection that does not take it.
  CHECK(fault_of("mov.u32 %r3, tile;\nld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3];\nst.shared.v4.u32 "
                 "[%r3+64], {%r4, %r5, %r6, "
                 "%r7};\nadd.u32 %r8, %r4, %r40;\nmov.u32 %r9, 3;\nsetp.eq.u32 %p1, %r9, 3;\nselp.u32 %r10, "
                 "%r9, %r4, %p1;\n"
                 "st.global.u32 [%rd2], %r9;\n",
                 {}, tile) == "none");
  CHECK(fault_of("st.global.u32 [%rd1], %r40;\n") == "none");  // no output: it may be scratch
}

TEST_CASE("Fault: collectives with a part of their lanes") {
  const std::string half = "setp.lt.u32 %p1, %r1, 16;\n";
  const std::string away = half + "@!%p1 bra END;\n";
  for (const char* collective :
       {"shfl.sync.idx.b32 %r3, %r1, 0, 31, -1;\n", "vote.sync.ballot.b32 %r3, %p1, -1;\n",
        "bar.warp.sync -1;\n", "elect.sync _|%p2, -1;\n", "redux.sync.add.u32 %r3, %r1, -1;\n",
        "match.any.sync.b32 %r3, %r1, -1;\n", "bar.sync 0;\n", "barrier.cluster.arrive.aligned;\n"}) {
    INFO(collective);
    // The others wait for them elsewhere.
    CHECK_HAS(fault_of(away + collective +
                       "bra.uni OUT;\nEND:\nactivemask.b32 %r31;\nredux.sync.or.b32 %r30, %r31, -1;\nOUT:\n"),
              Contains("partial_collective") && Contains("gemm.cu:10"));
    // Those that have exited are not waited for, but by masks that name them.
    CHECK(fault_of(away + std::string(collective) + "END:\n") == "none");
  }
  CHECK_HAS(fault_of(half + "@%p1 bar.sync 0;\n"), Contains("partial_collective: bar.sync") &&
                                                       Contains("16 of the 32 lanes") && Contains("lane 16"));
  CHECK_HAS(fault_of("setp.eq.u32 %p1, %r1, 5;\n@%p1 shfl.sync.idx.b32 %r3, %r1, 0, 31, 1;\n"),
            Contains("partial_collective") && Contains("lane 5"));
  CHECK_HAS(fault_of("mov.f32 %f0, 0f00000000;\nmov.f32 %f1, %f0;\nmov.f32 %f2, %f0;\nmov.f32 %f3, "
                     "%f0;\nmov.u64 %rd3, 64;\n"
                     "setp.lt.u32 %p1, %r1, 64;\n@!%p1 bra END;\nwgmma.fence.sync.aligned;\n"
                     "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd3, %rd3, "
                     "1, 1, 1, 0, 0;\n"
                     "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nEND:\n",
                     {{1, 1, 1}, {128, 1, 1}}, ".shared .align 128 .b8 tile[8192];"),
            Contains("deadlock") && Contains("not issued yet by warps 2 3") && Contains("gemm.cu:109"));
}

TEST_CASE("Fault: exit of a CTA with work under way, and a peer's memory that is gone") {
  const std::string declarations = ".shared .align 128 .b8 tile[256];\n.shared .align 8 .b64 bar;";
  TextLaunch lazy = kOneThread;
  lazy.schedule.mode = EmulatorSchedule::Mode::lazy;
  CHECK_HAS(
      fault_of(
          "mov.u32 %r3, tile;\nmov.u32 %r4, bar;\nmbarrier.init.shared.b64 [%r4], 1;\nfence.proxy.async;\n"
          "mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 256;\n"
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 256, [%r4];\n",
          lazy, declarations),
      Contains("exit_with_work: CTA 0 has exited") && Contains("bulk copy of 256 bytes") &&
          Contains("gemm.cu:106"));
  TextLaunch pair;
  pair.grid = {2, 1, 1};
  pair.block = {1, 1, 1};
  pair.cluster = {2, 1, 1};
  // CTA 1 is gone before CTA 0 looks; with a barrier of the cluster at the end it is not.
  const std::string peer =
      "setp.eq.u32 %p1, %r2, 1;\nmov.u32 %r3, tile;\nst.shared.u32 [%r3], %r2;\nbarrier.cluster.arrive;\n"
      "barrier.cluster.wait;\n@%p1 bra END;\nmov.u32 %r5, 0;\nLOOP:\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p2, "
      "%r5, 500;\n"
      "@%p2 bra LOOP;\nmapa.shared::cluster.u32 %r4, %r3, 1;\nld.shared::cluster.u32 %r6, [%r4];\nEND:\n";
  CHECK_HAS(fault_of(peer, pair, declarations), Contains("exit_with_work") &&
                                                    Contains("CTA 1 of the cluster, which has exited") &&
                                                    Contains("gemm.cu:113"));
  CHECK(fault_of(peer + "barrier.cluster.arrive;\nbarrier.cluster.wait;\n", pair, declarations) == "none");
}

TEST_CASE("Fault: trap, assertions, what the card refuses, and printf") {
  CHECK_HAS(fault_of("setp.eq.u32 %p1, %r1, 7;\n@%p1 trap;\n"),
            Contains("trap: the kernel executed trap") && Contains("lane 7") && Contains("gemm.cu:102"));
  const std::string table = "T: .branchtargets L0, L1;\n";
  CHECK_HAS(fault_of(table + "mov.u32 %r3, 5;\nbrx.idx %r3, T;\nL0:\nL1:\n"),
            Contains("illegal_instruction: index 5 of a table of 2"));
  const std::string strings =
      ".global .align 1 .b8 fmt[8] = {37, 100, 33, 10, 0};\n.global .align 1 .b8 what[6] = {105, 32, 60, 32, "
      "110, 0};\n"
      ".global .align 1 .b8 file[8] = {103, 101, 109, 109, 46, 99, 117, 0};\n.global .align 1 .b8 fun[2] = "
      "{107, 0};\n"
      ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 v);\n"
      ".extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 "
      "s);";
  const TextResult failed = launch_text(strings,
                                        "mov.u64 %rd3, what;\ncvta.global.u64 %rd3, %rd3;\nmov.u64 %rd4, "
                                        "file;\ncvta.global.u64 %rd4, %rd4;\nmov.u64 %rd5, fun;\n"
                                        "cvta.global.u64 %rd5, %rd5;\nmov.u64 %rd6, 1;\nmov.u32 %r3, 42;\n"
                                        "{ .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; "
                                        ".param .b64 s; st.param.b64 [m], %rd3; st.param.b64 [f], %rd4; "
                                        "st.param.b32 [l], %r3; st.param.b64 [n], %rd5; st.param.b64 [s], "
                                        "%rd6; call.uni __assertfail, (m, f, l, n, s); }\n",
                                        kOneThread);
  CHECK_HAS(failed.fault(),
            Contains("assertion: gemm.cu:42: k: assertion `i < n` failed") && Contains("gemm.cu:109"));
  const TextResult printed =
      launch_text(strings,
                  ".local .align 8 .b8 depot[8];\nmov.u64 %rd3, depot;\ncvta.local.u64 %rd3, %rd3;\nst.u32 "
                  "[%rd3], 17;\nmov.u64 %rd4, fmt;\ncvta.global.u64 %rd4, %rd4;\n"
                  "{ .param .b32 r; .param .b64 f; .param .b64 v; st.param.b64 [f], %rd4; st.param.b64 [v], "
                  "%rd3; call.uni (r), vprintf, (f, v); }\n",
                  kOneThread);
  CHECK(printed.fault() == "none");
  CHECK(printed.report.printf_output == "17!\n");
}

TEST_CASE(
    "Fault: more than there is refuses the launch, and what is not known is named, before anything runs") {
  const TextResult large =
      launch_text(".extern .shared .align 16 .b8 more[];", "mov.u32 %r3, more;\nst.global.u32 [%rd2], %r1;\n",
                  {{1, 1, 1}, {32, 1, 1}, {1, 1, 1}, 300'000});
  CHECK_HAS(large.fault(), Contains("launch_refused") && Contains("300000 bytes of dynamic"));
  CHECK(large.out[0] == 0);
  CHECK_HAS(fault_of(".local .align 8 .b8 depot[600000];\nmov.u64 %rd3, depot;\n"),
            Contains("error: ") && Contains("600000 bytes of local memory"));
  const TextResult unknown =
      launch_text("",
                  "st.global.u32 [%rd2], %r1;\nmultimem.ld_reduce.global.add.u32 %r3, [%rd1];\n"
                  "tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f0}];\n");
  CHECK_HAS(unknown.error,
            Contains("multimem") && Contains("tex.1d") && Contains("gemm.cu:102") && Contains("gemm.cu:103"));
}
