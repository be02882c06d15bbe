// Hazards and notes: a test a row of docs/emulator.md, and the right orders beside it, which raise nothing.
#include "emulator/launch_text.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

const EmulatorSchedule kSchedules[] = {{EmulatorSchedule::Mode::eager, 0},
                                       {EmulatorSchedule::Mode::lazy, 0},
                                       {EmulatorSchedule::Mode::random, 1},
                                       {EmulatorSchedule::Mode::random, 2}};
const std::string kDeclarations = ".shared .align 128 .b8 tile[8192];\n.shared .align 8 .b64 bars[2];";

std::string hazards(const std::string& body, TextLaunch how, const EmulatorSchedule& schedule = {}) {
  how.schedule = schedule;
  const TextResult r = launch_text(kDeclarations, body, how);
  return r.fault() == "none" ? r.remarks() : r.fault();
}
std::string notes(const std::string& body, const TextLaunch& how) {
  const TextResult r = launch_text(kDeclarations, body, how);
  return r.fault() == "none" ? r.remarks(EmulatorFinding::Grade::note) : r.fault();
}

std::string wait(const std::string& label, const std::string& place, const std::string& parity) {
  return label + ":\nmbarrier.try_wait.parity.shared::cta.b64 %p9, [" + place + "], " + parity +
         ";\n@!%p9 bra " + label + ";\n";
}

// Shared memory is written by all, thread 32 k copies it out.
std::string store_kernel(const std::string& before_barrier, const std::string& behind) {
  return "mov.u32 %r3, tile;\nshl.b32 %r4, %r1, 2;\nadd.u32 %r4, %r4, %r3;\nst.shared.u32 [%r4], %r1;\n" +
         before_barrier + "bar.sync 0;\n" + "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra END;\n" + behind +
         "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3], "
         "256;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nEND:\n";
}

// 128 threads fill two operands with zeros and make one multiply of them after the other; what comes between
// and behind.
const std::string kOperands =
    "mov.u32 %r3, tile;\nmov.u32 %r4, bars;\nshl.b32 %r5, %r1, 4;\nadd.u32 %r5, %r5, %r3;\nmov.u32 %r6, "
    "0;\nst.shared.v4.b32 [%r5], {%r6, %r6, %r6, %r6};\n"
    "st.shared.v4.b32 [%r5+2048], {%r6, %r6, %r6, %r6};\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 "
    "mbarrier.init.shared.b64 [%r4], 1;\n@%p1 mbarrier.init.shared.b64 [%r4+8], 4;\n"
    "fence.proxy.async;\nbar.sync 0;\nsetp.ge.u32 %p2, %r1, 128;\n@%p2 bra PRODUCER;\nmov.f32 %f0, "
    "0f00000000;\nmov.f32 %f1, %f0;\nmov.f32 %f2, %f0;\nmov.f32 %f3, %f0;\n"
    "shr.u32 %r7, %r3, 4;\ncvt.u64.u32 %rd3, %r7;\nadd.u64 %rd3, %rd3, 0x1000080000;\nadd.u64 %rd4, %rd3, "
    "128;\n";
const std::string kMultiply =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd3, %rd4, 1, 1, 1, 0, "
    "0;\nwgmma.commit_group.sync.aligned;\n";
const std::string kRelease =
    "and.b32 %r8, %r1, 31;\nsetp.eq.u32 %p3, %r8, 0;\n@%p3 mbarrier.arrive.shared.b64 _, [%r4+8];\n";
// Warp 4 copies 256 bytes over A once the four warps have arrived at the second barrier.
const std::string kProducer =
    "bra.uni END;\nPRODUCER:\nsetp.ne.u32 %p4, %r1, 128;\n@%p4 bra END;\n" + wait("W", "%r4+8", "0") +
    "mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 256;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 256, [%r4];\n" +
    wait("X", "%r4", "0") + "END:\n";
const TextLaunch kFiveWarps{{1, 1, 1}, {160, 1, 1}};

}  // namespace

TEST_CASE("Hazard: ordinary stores that the async proxy reads without fence.proxy.async") {
  const TextLaunch how{{1, 1, 1}, {64, 1, 1}};
  for (const EmulatorSchedule& schedule : kSchedules) {
    // The two orders that the ISA and CUDA's guide show.
    CHECK(hazards(store_kernel("fence.proxy.async.shared::cta;\n", ""), how, schedule) == "none");
    CHECK(hazards(store_kernel("", "fence.proxy.async.shared::cta;\n"), how, schedule) == "none");
    CHECK_HAS(hazards(store_kernel("", ""), how, schedule),
              Contains("missing_proxy_fence: the async proxy reads shared memory") &&
                  Contains("in `tile` + 0") && Contains("warp 0 wrote") && Contains("gemm.cu:108"));
  }
  // wgmma's operands.
  std::string unfenced = kOperands + "wgmma.fence.sync.aligned;\n" + kMultiply +
                         "wgmma.wait_group.sync.aligned 0;\n" + kRelease + kProducer;
  const std::size_t fence = unfenced.find("fence.proxy.async;");
  unfenced.replace(fence, 18, "bar.warp.sync -1;");
  CHECK_HAS(hazards(unfenced, kFiveWarps), Contains("missing_proxy_fence") && Contains("wgmma.mma_async"));
}

TEST_CASE("Hazard: a buffer goes back to its producer before the wgmma that reads it is done") {
  const std::string fence = "wgmma.fence.sync.aligned;\n", all = "wgmma.wait_group.sync.aligned 0;\n";
  for (const EmulatorSchedule& schedule : kSchedules) {
    INFO(schedule_name(schedule));
    CHECK(hazards(kOperands + fence + kMultiply + all + kRelease + kProducer, kFiveWarps, schedule) ==
          "none");
  }
  // Whatever the schedule makes of it.
  const std::string expected = "wgmma_operand_overwritten: writes shared memory at `tile` (0x";
  const std::string early = hazards(kOperands + fence + kMultiply + kRelease + all + kProducer, kFiveWarps);
  CHECK_HAS(early, Contains(expected) && Contains("of warpgroup 0, issued by warp") &&
                       Contains("gemm.cu:12") && Contains("cp.async.bulk.shared::cluster.global") &&
                       Contains("`wgmma.mma_async"));
  // A wait that leaves one group pending, where it is this one; the next multiply reads another buffer.
  CHECK_HAS(hazards(kOperands + fence + kMultiply + "wgmma.wait_group.sync.aligned 1;\n" + kRelease + all +
                        kProducer,
                    kFiveWarps),
            Contains(expected));
  // Without a commit nothing is waited for.
  std::string uncommitted = kOperands + fence + kMultiply + all + kRelease + kProducer;
  const std::size_t commit = uncommitted.find("wgmma.commit_group.sync.aligned;\n");
  uncommitted.replace(commit, 33, "bar.warp.sync -1;\n");
  CHECK_HAS(hazards(uncommitted, kFiveWarps), Contains(expected));
  // An ordinary store of another warp, ordered by a named barrier.
  const std::string writer =
      "bar.arrive 1, 160;\n" + all +
      "bra.uni END;\nPRODUCER:\nbar.sync 1, 160;\nmov.u32 %r9, 7;\nst.shared.u32 [%r3], %r9;\nEND:\n";
  CHECK_HAS(hazards(kOperands + fence + kMultiply + writer, kFiveWarps),
            Contains(expected) && Contains("st.shared.u32"));
  CHECK(hazards(kOperands + fence + kMultiply + all + writer, kFiveWarps) == "none");
}

TEST_CASE("Hazard: the source of a bulk store is written again before its wait") {
  const TextLaunch how{{1, 1, 1}, {64, 1, 1}};
  // Thread 0 stores; then, behind a barrier, warp 1 writes.
  const auto kernel = [](const std::string& wait) {
    return "mov.u32 %r3, tile;\nshl.b32 %r4, %r1, 2;\nadd.u32 %r4, %r4, %r3;\nst.shared.u32 [%r4], "
           "%r1;\nfence.proxy.async;\nbar.sync 0;\nsetp.ne.u32 %p1, %r1, 0;\n"
           "@%p1 bra NEXT;\ncp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3], "
           "256;\ncp.async.bulk.commit_group;\n" +
           wait +
           "NEXT:\nbar.sync 0;\nsetp.lt.u32 %p2, %r1, 32;\n@%p2 bra END;\nst.shared.u32 [%r4], "
           "%r1;\nEND:\n@!%p1 cp.async.bulk.wait_group 0;\n";
  };
  for (const char* right : {"cp.async.bulk.wait_group.read 0;\n", "cp.async.bulk.wait_group 0;\n"})
    for (const EmulatorSchedule& schedule : kSchedules)
      CHECK(hazards(kernel(right), how, schedule) == "none");
  CHECK_HAS(hazards(kernel(""), how),
            Contains("store_source_overwritten: writes shared memory at `tile`+128") &&
                Contains("while a bulk store may still read it: that of warp 0 of CTA 0") &&
                Contains("gemm.cu:109") && Contains("st.shared.u32"));
  CHECK_HAS(hazards(kernel("cp.async.bulk.wait_group.read 1;\n"), how), Contains("store_source_overwritten"));
}

TEST_CASE("Hazard: an mbarrier that another CTA uses with nothing that makes its initialisation visible") {
  TextLaunch pair;
  pair.grid = pair.cluster = {2, 1, 1};
  pair.block = {1, 1, 1};
  const auto kernel = [](const std::string& fence, const std::string& arrive) {
    return "mov.u32 %r3, bars;\nmbarrier.init.shared.b64 [%r3], 1;\n" + fence + arrive +
           "barrier.cluster.wait;\nxor.b32 %r4, %r2, 1;\nmapa.shared::cluster.u32 %r5, %r3, %r4;\n"
           "mbarrier.arrive.shared::cluster.b64 _, [%r5];\n" +
           wait("W", "%r3", "0") + "barrier.cluster.arrive;\nbarrier.cluster.wait;\n";
  };
  CHECK(hazards(kernel("fence.mbarrier_init.release.cluster;\n", "barrier.cluster.arrive.relaxed;\n"),
                pair) == "none");
  CHECK(hazards(kernel("", "barrier.cluster.arrive;\n"), pair) == "none");  // releases by default
  CHECK(hazards(kernel("fence.acq_rel.cluster;\n", "barrier.cluster.arrive.relaxed;\n"), pair) == "none");
  CHECK_HAS(hazards(kernel("", "barrier.cluster.arrive.relaxed;\n"), pair),
            Contains("mbarrier_init_unfenced") && Contains("`bars`") && Contains("(gemm.cu:102)") &&
                Contains("gemm.cu:107"));
  // In one CTA compilers leave it out: a note.
  const TextLaunch one{{1, 1, 1}, {1, 1, 1}};
  const std::string copy =
      "mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 256;\nmov.u32 %r4, tile;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd1], 256, [%r3];\n" +
      wait("W", "%r3", "0");
  const std::string init = "mov.u32 %r3, bars;\nmbarrier.init.shared.b64 [%r3], 1;\n";
  CHECK(hazards(init + copy, one) == "none");
  CHECK_HAS(notes(init + copy, one), Contains("mbarrier_init_unfenced") && Contains("gemm.cu:105"));
  CHECK(notes(init + "fence.proxy.async;\n" + copy, one) == "none");
  CHECK(notes(init + "fence.mbarrier_init.release.cluster;\n" + copy, one) == "none");
}

TEST_CASE("Notes: what ptxas repairs around wgmma, and a read that a copy overtakes, which is none") {
  const std::string fence = "wgmma.fence.sync.aligned;\n", all = "wgmma.wait_group.sync.aligned 0;\n";
  const TextLaunch how{{1, 1, 1}, {128, 1, 1}};
  const std::string end = "PRODUCER:\n";
  CHECK(notes(kOperands + fence + kMultiply + kMultiply + all + "st.global.f32 [%rd2], %f0;\n" + end, how) ==
        "none");
  CHECK_HAS(notes(kOperands + kMultiply + all + end, how),
            Contains("wgmma_fence_missing") && Contains("gemm.cu:123"));
  CHECK_HAS(
      notes(kOperands + fence + kMultiply + all + "add.f32 %f1, %f1, %f1;\n" + kMultiply + all + end, how),
      Contains("wgmma_fence_missing") && Contains("gemm.cu:128"));
  CHECK(
      notes(kOperands + fence + kMultiply + all + "add.f32 %f1, %f1, %f1;\n" + fence + kMultiply + all + end,
            how) == "none");
  CHECK_HAS(notes(kOperands + fence + kMultiply + "add.f32 %f1, %f1, %f1;\n" + all + end, how),
            Contains("wgmma_register_touched") && Contains("gemm.cu:126"));
  // Read by ordinary loads, then a copy over it behind a barrier.
  const std::string read =
      "mov.u32 %r3, tile;\nmov.u32 %r4, bars;\nmbarrier.init.shared.b64 [%r4], "
      "1;\nfence.proxy.async;\nld.shared.u32 %r5, [%r3];\n"
      "mbarrier.arrive.expect_tx.shared.b64 _, [%r4], "
      "256;\ncp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 256, [%r4];\n" +
      wait("W", "%r4", "0");
  CHECK(hazards(read, {{1, 1, 1}, {1, 1, 1}}) == "none");
  CHECK(notes(read, {{1, 1, 1}, {1, 1, 1}}) == "none");
}

TEST_CASE("Hazard: a dependent launch reads what the one before has written without griddepcontrol.wait") {
  // Both kernels add 1 to each of 64 words of A; the second may be launched early.
  const auto run = [](const std::string& before_load, const std::string& behind_load, bool pdl) {
    auto opened = open_emulator_device(*parse_emulator_name("emulator:h200?threads=1"));
    REQUIRE(opened);
    EmulatedDevice& device = **opened;
    const std::string text = kernel_text(
        "", before_load +
                "mul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd3, %rd3, %rd1;\nld.global.u32 %r3, [%rd3];\n" +
                behind_load + "add.u32 %r3, %r3, 1;\nst.global.u32 [%rd3], %r3;\n");
    ModuleImage image;
    image.source = "gemm.ptx";
    image.ptx = text;
    const auto module = device.load(image);
    REQUIRE(module);
    const auto a = device.allocate(512), other = device.allocate(512);
    const std::uint64_t parameters[] = {a->address, other->address};
    DeviceLaunch launch;
    launch.module = *module;
    launch.symbol = "k";
    launch.block = {64, 1, 1};
    launch.parameters = {reinterpret_cast<const std::uint8_t*>(parameters), sizeof parameters};
    REQUIRE(device.launch(launch));
    launch.pdl = pdl;
    REQUIRE(device.launch(launch));
    const std::uint64_t apart[] = {other->address, a->address};  // reads what nobody wrote
    launch.parameters = {reinterpret_cast<const std::uint8_t*>(apart), sizeof apart};
    REQUIRE(device.launch(launch));
    const auto ended = device.synchronize(10'000'000'000);
    REQUIRE(ended);
    CHECK(!*ended);
    std::string words;
    for (const EmulatorFinding& f : device.report().findings) words += TextResult::words(f);
    return words.empty() ? std::string("none") : words;
  };
  CHECK(run("griddepcontrol.wait;\n", "", true) == "none");
  CHECK(run("setp.lt.u32 %p1, %r1, 32;\n@%p1 griddepcontrol.wait;\nbar.sync 0;\n", "", true) == "none");
  CHECK(run("", "", false) == "none");
  CHECK_HAS(run("", "griddepcontrol.wait;\n", true), Contains("pdl_unordered_read: reads") &&
                                                         Contains("which the launch before has written") &&
                                                         Contains("gemm.cu:103"));
  CHECK_HAS(run("setp.lt.u32 %p1, %r1, 32;\n@%p1 griddepcontrol.wait;\n", "", true),
            Contains("pdl_unordered_read") && Contains("warp 1"));
}

TEST_CASE("Hazard: an mbarrier that expects fewer arrivals than there are threads that arrive") {
  // Two of 64 threads pass a ring of one buffer on three times: thread 0 waits for both, then all go on.
  const auto ring = [](const std::string& count, const std::string& arrivals) {
    return "mov.u32 %r4, bars;\nmov.u32 %r7, 0;\nsetp.ne.u32 %p1, %r1, 0;\n@!%p1 mbarrier.init.shared.b64 "
           "[%r4], " +
           count + ";\nbar.sync 0;\nLOOP:\nand.b32 %r8, %r1, 15;\nsetp.eq.u32 %p2, %r8, 0;\n" + arrivals +
           "bar.sync 0;\nadd.u32 %r7, %r7, 1;\nsetp.lt.u32 %p3, %r7, 4;\n@%p3 bra LOOP;\n";
  };
  const std::string all = "@%p2 mbarrier.arrive.shared.b64 _, [%r4];\n";
  const TextLaunch how{{1, 1, 1}, {64, 1, 1}};
  for (const EmulatorSchedule& schedule : kSchedules) {
    CHECK(hazards(ring("4", all), how, schedule) == "none");
    CHECK_HAS(hazards(ring("3", all), how, schedule),
              Contains("mbarrier_count_too_small") && Contains("expects 3 arrivals a phase") &&
                  Contains("4 threads have arrived at it, 4 times each (the last, PTX line ") &&
                  Contains(" (gemm.cu:109))"));
    // Half of the threads by turns, and threads that do not come equally often, are another matter.
    CHECK(hazards(ring("2", all), how, schedule) == "none");
    CHECK(hazards(ring("3", all + "setp.eq.u32 %p4, %r1, 16;\n@%p4 mbarrier.arrive.shared.b64 _, [%r4];\n"),
                  how, schedule) == "none");
  }
}
