// Faults of mbarriers, and the report of a deadlock: a test a row of docs/emulator.md.
#include "emulator/launch_text.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

const std::string kDeclarations = ".shared .align 128 .b8 tile[512];\n.shared .align 8 .b64 bars[2];";
const std::string kPlaces = "mov.u32 %r3, tile;\nmov.u32 %r4, bars;\n";  // lines 101, 102
const TextLaunch kOneThread{{1, 1, 1}, {1, 1, 1}};

std::string one(const std::string& body) { return fault_of(kPlaces + body, kOneThread, kDeclarations); }
TextLaunch warps(std::uint32_t n) { return {{1, 1, 1}, {32 * n, 1, 1}}; }
std::string wait(const std::string& label, const std::string& place, const std::string& parity) {
  return label + ":\nmbarrier.try_wait.parity.shared::cta.b64 %p9, [" + place + "], " + parity +
         ";\n@!%p9 bra " + label + ";\n";
}

}  // namespace

TEST_CASE("Fault: misuse of an mbarrier, with its name, both lines and the values") {
  const std::string init = "mbarrier.init.shared.b64 [%r4+8], 2;\n",
                    arrive = "mbarrier.arrive.shared.b64 _, [%r4+8];\n";
  CHECK(one(init + arrive) == "none");
  CHECK_HAS(one(arrive), Contains("barrier_misuse: mbarrier `bars`+8") && Contains("never initialised") &&
                             Contains("gemm.cu:103") && Contains("lane 0"));
  CHECK_HAS(one(init + init), Contains("initialised again") && Contains("(gemm.cu:103)") &&
                                  Contains("gemm.cu:104") && Contains("phase 0, 2 of 2 arrivals"));
  CHECK_HAS(one(init + "mbarrier.inval.shared.b64 [%r4+8];\n" + arrive),
            Contains("mbarrier.inval made invalid at PTX line") && Contains("(gemm.cu:104)"));
  CHECK_HAS(one(init + arrive + "mbarrier.arrive.shared.b64 _, [%r4+8], 2;\n"),
            Contains("2 more arrivals than the phase expects") && Contains("CTA 0 warp 0 lane 0"));
  CHECK_HAS(one(init + "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r4+8], "
                       "1048575;\nmbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r4+8], 16;\n"),
            Contains("takes the transaction count from 1048575 to 1048591"));
  CHECK_HAS(one("mbarrier.init.shared.b64 [%r4], 0;\n"), Contains("a count of 0"));
  CHECK_HAS(one(init + "st.shared.u32 [%r4+12], %r1;\n"), Contains("barrier_misuse: stores 4 bytes") &&
                                                              Contains("over the live mbarrier `bars`+8") &&
                                                              Contains("gemm.cu:104"));
  CHECK_HAS(
      one(init +
          "mbarrier.init.shared.b64 [%r4], 1;\nmbarrier.arrive.expect_tx.shared.b64 _, [%r4], "
          "16;\nfence.proxy.async;\n"
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd1], 16, [%r4];\n"),
      Contains("barrier_misuse") && Contains("asynchronous copy, over the live mbarrier"));
  CHECK_HAS(one("bar.sync 16;\n"), Contains("barrier_misuse: barrier 16"));
  CHECK_HAS(one("bar.sync 1, 48;\n"), Contains("multiples of 32"));
  CHECK_HAS(one("barrier.cluster.wait;\n"), Contains("without a barrier.cluster.arrive"));
  CHECK_HAS(one("barrier.cluster.arrive;\nbarrier.cluster.arrive;\n"), Contains("twice"));
}

TEST_CASE("Deadlock: an arrival is missing, a parity is wrong") {
  // Warp 0 waits for two arrivals, of which warp 1 makes one.
  const std::string setup = kPlaces +
                            "setp.eq.u32 %p1, %r1, 0;\nsetp.eq.u32 %p2, %r1, 32;\nsetp.lt.u32 %p3, %r1, 32;\n"
                            "@%p1 mbarrier.init.shared.b64 [%r4+8], 2;\nbar.sync 0;\n@%p2 "
                            "mbarrier.arrive.shared.b64 _, [%r4+8];\n@!%p3 bra END;\n";
  const std::string missing = fault_of(setup + wait("W", "%r4+8", "0") + "END:\n", warps(2), kDeclarations);
  CHECK_HAS(
      missing,
      Contains("deadlock: no warp can run any more: 1 warp waits") && Contains("CTA 0 warp 0 at PTX line") &&
          Contains(
              "(gemm.cu:111), `mbarrier.try_wait.parity.shared::cta.b64`: waits for mbarrier `bars`+8 (0x") &&
          Contains("of CTA 0: phase 0, 1 of 2 arrivals and 0 bytes pending (parity 0)") &&
          Contains("arrived in this phase: warp 1 at PTX line") && Contains("(gemm.cu:108)") &&
          Contains("CTA 0 warp 1: exited"));
  // The phase that is waited for is the one after.
  const std::string parity = fault_of(setup + "@%p1 mbarrier.arrive.shared.b64 _, [%r4+8];\n" +
                                          wait("W", "%r4+8", "0") + wait("X", "%r4+8", "1") + "END:\n",
                                      warps(2), kDeclarations);
  CHECK_HAS(parity, Contains("deadlock") &&
                        Contains("phase 1, 2 of 2 arrivals and 0 bytes pending (parity 1)") &&
                        Contains("nobody has arrived in this phase"));
}

TEST_CASE("Deadlock: more bytes expected than come, and fewer") {
  const auto copy = [](const std::string& expected) {
    return kPlaces +
           "mbarrier.init.shared.b64 [%r4], 1;\nfence.proxy.async;\nmbarrier.arrive.expect_tx.shared.b64 _, "
           "[%r4], " +
           expected +
           ";\ncp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 256, "
           "[%r4];\n" +
           wait("W", "%r4", "0");
  };
  for (const auto mode : {EmulatorSchedule::Mode::eager, EmulatorSchedule::Mode::lazy}) {
    TextLaunch how = kOneThread;
    how.schedule.mode = mode;
    CHECK(fault_of(copy("256"), how, kDeclarations) == "none");
    CHECK_HAS(fault_of(copy("512"), how, kDeclarations),
              Contains("deadlock") && Contains("phase 0, 0 of 1 arrivals and 256 bytes pending") &&
                  Contains("gemm.cu:108"));
    CHECK_HAS(fault_of(copy("128"), how, kDeclarations),
              Contains("deadlock") && Contains("128 bytes more than expected"));
  }
}

TEST_CASE("Deadlock: a ring whose consumer gives nothing back") {
  // Warp 0 fills two slots four times, waiting for `empty`; warp 1 takes them and forgets to arrive there.
  const std::string text = ".shared .align 8 .b64 full[2];\n.shared .align 8 .b64 empty[2];";
  const auto ring = [](const std::string& release) {
    return "setp.eq.u32 %p1, %r1, 0;\nmov.u32 %r5, full;\nmov.u32 %r6, empty;\n@%p1 mbarrier.init.shared.b64 "
           "[%r5], 1;\n@%p1 mbarrier.init.shared.b64 [%r5+8], 1;\n"
           "@%p1 mbarrier.init.shared.b64 [%r6], 1;\n@%p1 mbarrier.init.shared.b64 [%r6+8], 1;\nbar.sync "
           "0;\nmov.u32 %r7, 0;\nand.b32 %r20, %r1, 31;\nsetp.eq.u32 %p4, %r20, 0;\n"
           "setp.lt.u32 %p2, %r1, 32;\n@!%p2 bra CONSUMER;\nPRODUCER:\nshr.u32 %r8, %r7, 1;\nand.b32 %r8, "
           "%r8, 1;\nxor.b32 %r8, %r8, 1;\nand.b32 %r9, %r7, 1;\n"
           "shl.b32 %r9, %r9, 3;\nadd.u32 %r10, %r6, %r9;\nadd.u32 %r11, %r5, %r9;\n" +
           wait("E", "%r10", "%r8") +
           "@%p4 mbarrier.arrive.shared.b64 _, [%r11];\nadd.u32 %r7, %r7, 1;\nsetp.lt.u32 %p3, %r7, 8;\n@%p3 "
           "bra PRODUCER;\nbra.uni END;\n"
           "CONSUMER:\nshr.u32 %r8, %r7, 1;\nand.b32 %r8, %r8, 1;\nand.b32 %r9, %r7, 1;\nshl.b32 %r9, %r9, "
           "3;\nadd.u32 %r10, %r6, %r9;\nadd.u32 %r11, %r5, %r9;\n" +
           wait("F", "%r11", "%r8") + release +
           "add.u32 %r7, %r7, 1;\nsetp.lt.u32 %p3, %r7, 8;\n@%p3 bra CONSUMER;\nEND:\n";
  };
  CHECK(fault_of(ring("@%p4 mbarrier.arrive.shared.b64 _, [%r10];\n"), warps(2), text) == "none");
  CHECK_HAS(fault_of(ring("nanosleep.u32 1;\n"), warps(2), text),
            Contains("deadlock: no warp can run any more: 2 warps wait") &&
                Contains("CTA 0 warp 0 at PTX line") && Contains("waits for mbarrier `empty` (0x") &&
                Contains("phase 0, 1 of 1 arrivals") && Contains("CTA 0 warp 1 at PTX line") &&
                Contains("waits for mbarrier `full` (0x"));
}

TEST_CASE(
    "Deadlock: a named barrier without all of its warps, registers that nobody gives back, the cluster's "
    "barrier") {
  CHECK_HAS(fault_of("setp.ge.u32 %p1, %r1, 96;\n@%p1 bra END;\nbar.sync 3, 128;\nEND:\n", warps(4)),
            Contains("deadlock") && Contains("CTA 0 warps 0-2 at PTX line") &&
                Contains("(gemm.cu:103), `bar.sync`") &&
                Contains("waits for barrier 3: 96 of 128 threads have arrived; exited: warp 3"));
  CHECK(fault_of("setp.ge.u32 %p1, %r1, 96;\n@%p1 bra END;\nbar.sync 3;\nEND:\n", warps(4)) ==
        "none");  // all that have not exited
  CHECK_HAS(
      fault_of("setmaxnreg.inc.sync.aligned.u32 240;\nsetmaxnreg.inc.sync.aligned.u32 256;\n",
               {{1, 1, 1}, {256, 1, 1}}),
      Contains("deadlock") && Contains("waits for registers: it has") && Contains("are free in the CTA"));
  TextLaunch pair;
  pair.grid = pair.cluster = {2, 1, 1};
  const std::string one_waits =
      "setp.eq.u32 %p1, %r2, 1;\n@%p1 bra OTHER;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nbra.uni "
      "END;\nOTHER:\n";
  CHECK(fault_of(one_waits + "END:\n", pair) == "none");  // a CTA that has exited is not waited for
  CHECK_HAS(fault_of(kPlaces + "mbarrier.init.shared.b64 [%r4], 1;\n" + one_waits + wait("W", "%r4", "0") +
                         "END:\n",
                     {{2, 1, 1}, {1, 1, 1}, {2, 1, 1}}, kDeclarations),
            Contains("deadlock") && Contains("CTA 0 warp 0 at PTX line") &&
                Contains("waits for the cluster's barrier; not arrived: CTA 1 warp 0") &&
                Contains("of CTA 1: phase 0, 1 of 1 arrivals"));
}

TEST_CASE("Deadlock: a CTA waits for one that cannot become resident") {
  TextLaunch how;
  how.grid = {4, 1, 1};
  how.block = {1, 1, 1};
  how.dynamic_shared = 200'000;
  const std::string counts =
      "atom.global.add.u32 %r3, [%rd2], 1;\nW:\nld.volatile.global.u32 %r4, [%rd2];\nsetp.lt.u32 %p1, %r4, "
      "4;\n@%p1 bra W;\n";
  how.device = "emulator:h200?sm_count=4&threads=1";
  CHECK(fault_of(counts, how) == "none");
  how.device = "emulator:h200?sm_count=2&threads=1";
  CHECK_HAS(
      fault_of(counts, how),
      Contains("deadlock: CTAs wait for CTAs that cannot become resident: 2 fill the machine (2 SMs of 1)") &&
          Contains("CTAs 0, 1 warp 0 at PTX line") && Contains("2 CTAs have not begun") &&
          Contains("gemm.cu:10"));
}
