// The detector of races in shared memory: a wrong order that a rule forbids is found whatever the schedule
// made of it, and its right twin raises nothing.
#include "emulator/launch_text.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

const std::string kDeclarations = ".shared .align 128 .b8 tile[8192];\n.shared .align 8 .b64 bars[4];";
const TextLaunch kWarp{}, kTwoWarps{{1, 1, 1}, {64, 1, 1}}, kThreeWarps{{1, 1, 1}, {96, 1, 1}};

std::string hazards(const std::string& body, const TextLaunch& how) {
  const TextResult r = launch_text(kDeclarations, body, how);
  return r.fault() == "none" ? r.remarks() : r.fault();
}
std::string wait(const std::string& label, const std::string& place, const std::string& parity,
                 const std::string& order = "") {
  return label + ":\nmbarrier.try_wait.parity" + order + ".shared::cta.b64 %p9, [" + place + "], " + parity +
         ";\n@!%p9 bra " + label + ";\n";
}

// %r3 tile, %r4 the thread's word, %r5 that of the thread 32 on (of 64), %p1 warp 0, %p2 warp 1, %p3 lane 0,
// %r7 bars.
const std::string kBegin =
    "mov.u32 %r3, tile;\nmov.u32 %r7, bars;\nshl.b32 %r4, %r1, 2;\nxor.b32 %r5, %r4, 128;\nadd.u32 %r4, %r4, "
    "%r3;\n"
    "add.u32 %r5, %r5, %r3;\nsetp.lt.u32 %p1, %r1, 32;\nnot.pred %p2, %p1;\nand.b32 %r6, %r1, "
    "31;\nsetp.eq.u32 %p3, %r6, "
    "0;\nsetp.eq.u32 %p4, %r1, 0;\n";
const std::string kStoreOwn = "st.shared.u32 [%r4], %r1;\n", kLoadOther = "ld.shared.u32 %r8, [%r5];\n";
const std::string kRace = "shared_memory_race: ";
const std::string kBarrier = "no barrier, and no release and acquire, between them";
const std::string kLanes = "bar.warp.sync (__syncwarp)";

// Thread 0 initialises the objects at bars and bars + 8 with these counts.
std::string init(const std::string& first, const std::string& second = "1") {
  return "@%p4 mbarrier.init.shared.b64 [%r7], " + first + ";\n@%p4 mbarrier.init.shared.b64 [%r7+8], " +
         second + ";\n";
}

}  // namespace

TEST_CASE("Race: a store that another warp reads needs a barrier in between") {
  CHECK(hazards(kBegin + kStoreOwn + "bar.sync 0;\n" + kLoadOther, kTwoWarps) == "none");
  CHECK_HAS(hazards(kBegin + kStoreOwn + kLoadOther, kTwoWarps),
            Contains(kRace + "reads shared memory at `tile`") && Contains("`st.shared.u32`, PTX line ") &&
                Contains("gemm.cu:112") && Contains("gemm.cu:113") && Contains(kBarrier));
  // Back again: what was read is overwritten.
  const std::string again = "add.u32 %r9, %r1, 1;\nst.shared.u32 [%r4], %r9;\n";
  CHECK(hazards(kBegin + kStoreOwn + "bar.sync 0;\n" + kLoadOther + "bar.sync 0;\n" + again, kTwoWarps) ==
        "none");
  CHECK_HAS(hazards(kBegin + kStoreOwn + "bar.sync 0;\n" + kLoadOther + again, kTwoWarps),
            Contains(kRace + "writes shared memory") && Contains("(`ld.shared.u32`") && Contains("reads"));
  // Two stores.
  CHECK_HAS(hazards(kBegin + "st.shared.u32 [%r3], %r1;\n", kTwoWarps),
            Contains(kRace + "writes shared memory"));
  // The same value again is no matter.
  CHECK(hazards(kBegin + "mov.u32 %r9, 5;\nst.shared.u32 [%r3+64], %r9;\n", kTwoWarps) == "none");
  // Nor to who has read it (warp 0, before it sets a flag that orders nothing).
  const std::string read =
      "@%p4 st.shared.u32 [%r3], 5;\n@%p4 st.shared.u32 [%r3+1024], 0;\nbar.sync 0;\n@%p2 bra "
      "WRITE;\nld.shared.u32 %r8, [%r3];\n@%p4 st.volatile.shared.u32 [%r3+1024], 1;\nbra.uni "
      "END;\nWRITE:\nL:\nld.volatile.shared.u32 %r9, [%r3+1024];\nsetp.eq.u32 %p5, %r9, 0;\n@%p5 bra L;\n";
  CHECK(hazards(kBegin + read + "st.shared.u32 [%r3], 5;\nEND:\n", kTwoWarps) == "none");
  CHECK_HAS(hazards(kBegin + read + "st.shared.u32 [%r3], 6;\nEND:\n", kTwoWarps),
            Contains(kRace + "writes shared memory") && Contains("reads"));
}

TEST_CASE("Race: neighbouring bytes are no conflict") {
  // Warp 0 writes the even halves of words, warp 1 the odd ones; then bytes.
  const std::string halves =
      "mul.lo.u32 %r9, %r6, 4;\nadd.u32 %r9, %r9, %r3;\n@%p2 add.u32 %r9, %r9, 2;\ncvt.u16.u32 %h1, %r1;\n";
  CHECK(hazards(kBegin + halves + "st.shared.u16 [%r9], %h1;\nld.shared.u16 %h2, [%r9];\n", kTwoWarps) ==
        "none");
  CHECK(hazards(kBegin + halves + "st.shared.u8 [%r9], %r1;\nst.shared.u8 [%r9+1], %r1;\n", kTwoWarps) ==
        "none");
  CHECK_HAS(hazards(kBegin + halves +
                        "st.shared.u16 [%r9], %h1;\nand.b32 %r9, %r9, -4;\nld.shared.u32 %r10, [%r9];\n",
                    kTwoWarps),
            Contains(kRace) && Contains(kBarrier));
  // Large accesses first, small ones then.
  const std::string wide =
      "shl.b32 %r9, %r1, 4;\nadd.u32 %r9, %r9, %r3;\nst.shared.v4.u32 [%r9], {%r1, %r1, %r1, %r1};\n";
  CHECK(hazards(kBegin + wide + "ld.shared.u8 %r10, [%r9+7];\n", kTwoWarps) == "none");
  CHECK_HAS(hazards(kBegin + wide + "ld.shared.u8 %r10, [%r5+7];\n", kTwoWarps), Contains(kRace));
}

TEST_CASE("Race: what many warps have read is written behind a barrier only") {
  const std::string all_read = "@%p4 st.shared.u32 [%r3], %r1;\nbar.sync 0;\nld.shared.u32 %r8, [%r3];\n";
  const std::string write = "setp.eq.u32 %p5, %r1, 64;\n@%p5 st.shared.u32 [%r3], %r1;\n";
  CHECK(hazards(kBegin + all_read + "bar.sync 0;\n" + write, kThreeWarps) == "none");
  CHECK_HAS(hazards(kBegin + all_read + write, kThreeWarps),
            Contains(kRace) && Contains("ld.shared.u32") && Contains("st.shared.u32"));
  // One of the warps has not come to the barrier behind which it is written.
  CHECK_HAS(hazards(kBegin + all_read + "@!%p1 bar.sync 1, 64;\n" + write, kThreeWarps),
            Contains(kRace + "writes") && Contains("warp 0 of CTA 0"));
}

TEST_CASE("Race: lanes of a warp need bar.warp.sync") {
  const std::string rotated =
      "add.u32 %r9, %r1, 1;\nand.b32 %r9, %r9, 31;\nshl.b32 %r9, %r9, 2;\nadd.u32 %r9, %r9, %r3;\n";
  const std::string load = "ld.shared.u32 %r8, [%r9];\n";
  CHECK(hazards(kBegin + rotated + kStoreOwn + "bar.warp.sync -1;\n" + load, kWarp) == "none");
  CHECK(hazards(kBegin + rotated + kStoreOwn + "bar.sync 0;\n" + load, kWarp) == "none");
  CHECK_HAS(hazards(kBegin + rotated + kStoreOwn + load, kWarp),
            Contains(kRace + "reads") && Contains(kLanes));
  // A shuffle orders nothing.
  CHECK_HAS(
      hazards(kBegin + rotated + kStoreOwn + "shfl.sync.bfly.b32 %r10, %r1, 1, 31, -1;\n" + load, kWarp),
      Contains(kRace + "reads") && Contains(kLanes));
  // Its own bytes a lane may read.
  CHECK(hazards(kBegin + kStoreOwn + "ld.shared.u32 %r8, [%r4];\n" + kStoreOwn, kWarp) == "none");
  // The mask must hold both.
  const std::string halves =
      "setp.lt.u32 %p5, %r1, 16;\nselp.b32 %r10, 65535, -65536, %p5;\nbar.warp.sync %r10;\n";
  const std::string near = "xor.b32 %r9, %r1, 1;\nshl.b32 %r9, %r9, 2;\nadd.u32 %r9, %r9, %r3;\n" + load;
  const std::string far = "xor.b32 %r9, %r1, 16;\nshl.b32 %r9, %r9, 2;\nadd.u32 %r9, %r9, %r3;\n" + load;
  CHECK(hazards(kBegin + kStoreOwn + halves + near, kWarp) == "none");
  CHECK_HAS(hazards(kBegin + kStoreOwn + halves + far, kWarp), Contains(kRace + "reads") && Contains(kLanes));
}

TEST_CASE("Race: atomics and volatile accesses do not race with each other, ordinary ones with them") {
  CHECK(hazards(kBegin + "@%p4 st.shared.u32 [%r3], 0;\nbar.sync 0;\natom.shared.add.u32 %r8, [%r3], %r1;\n",
                kTwoWarps) == "none");
  CHECK_HAS(
      hazards(kBegin + "@%p4 st.shared.u32 [%r3], 0;\natom.shared.add.u32 %r8, [%r3], %r1;\n", kTwoWarps),
      Contains(kRace + "updates"));
  CHECK_HAS(
      hazards(kBegin +
                  "@%p4 st.shared.u32 [%r3], 0;\nbar.sync 0;\nred.shared.add.u32 [%r3], %r1;\nld.shared.u32 "
                  "%r8, [%r3];\n",
              kTwoWarps),
      Contains(kRace));
  CHECK(hazards(kBegin + "st.volatile.shared.u32 [%r4], %r1;\nld.volatile.shared.u32 %r8, [%r5];\n@%p4 "
                         "st.relaxed.cta.shared.u32 [%r3], 0;\n",
                kTwoWarps) == "none");
}

TEST_CASE("Race: a flag orders by release and acquire, not by itself") {
  // Warp 0 writes and sets the flag at tile + 1024, warp 1 waits for it and reads.
  const auto kernel = [](const std::string& store, const std::string& fence, const std::string& set,
                         const std::string& load, const std::string& behind) {
    return kBegin + "@%p4 st.shared.u32 [%r3+1024], 0;\nbar.sync 0;\n@%p2 bra READ;\n" + store +
           "bar.warp.sync -1;\n" + fence + "@%p4 " + set + " [%r3+1024], 1;\nbra.uni END;\nREAD:\nL:\n" +
           load + " %r9, [%r3+1024];\nsetp.eq.u32 %p5, %r9, 0;\n@%p5 bra L;\n" + behind + kLoadOther +
           "END:\n";
  };
  CHECK(hazards(kernel(kStoreOwn, "", "st.release.cta.shared.u32", "ld.acquire.cta.shared.u32", ""),
                kTwoWarps) == "none");
  CHECK(hazards(kernel(kStoreOwn, "membar.cta;\n", "st.volatile.shared.u32", "ld.volatile.shared.u32",
                       "membar.cta;\n"),
                kTwoWarps) == "none");
  CHECK_HAS(
      hazards(kernel(kStoreOwn, "", "st.volatile.shared.u32", "ld.volatile.shared.u32", "membar.cta;\n"),
              kTwoWarps),
      Contains(kRace + "reads"));
  CHECK_HAS(
      hazards(kernel(kStoreOwn, "membar.cta;\n", "st.volatile.shared.u32", "ld.volatile.shared.u32", ""),
              kTwoWarps),
      Contains(kRace + "reads"));
  CHECK_HAS(
      hazards(kernel(kStoreOwn, "", "st.release.cta.shared.u32", "ld.relaxed.cta.shared.u32", ""), kTwoWarps),
      Contains(kRace + "reads"));
}

TEST_CASE("Race: named barriers order those who arrive before those who wait") {
  const auto kernel = [](const std::string& arrive, const std::string& join) {
    return kBegin + "@%p2 bra READ;\n" + arrive + "bra.uni END;\nREAD:\n" + join + kLoadOther + "END:\n";
  };
  CHECK(hazards(kernel(kStoreOwn + "bar.arrive 1, 64;\n", "bar.sync 1, 64;\n"), kTwoWarps) == "none");
  CHECK_HAS(hazards(kernel("bar.arrive 1, 64;\n" + kStoreOwn, "bar.sync 1, 64;\n"), kTwoWarps),
            Contains(kRace));
  // Who only arrives learns nothing.
  CHECK_HAS(hazards(kBegin + "@%p2 bra OTHER;\n" + kStoreOwn +
                        "bar.sync 1, 64;\nbra.uni END;\nOTHER:\nbar.arrive 1, 64;\n" + kLoadOther + "END:\n",
                    kTwoWarps),
            Contains(kRace));
  // Another barrier is another matter.
  CHECK_HAS(
      hazards(kBegin + kStoreOwn + "@%p1 bar.sync 1, 32;\n@%p2 bar.sync 2, 32;\n" + kLoadOther, kTwoWarps),
      Contains(kRace));
}

TEST_CASE("Race: an mbarrier orders by default, relaxed only with fences") {
  const auto kernel = [](const std::string& before, const std::string& arrive, const std::string& order,
                         const std::string& behind) {
    return kBegin + init("32") + "bar.sync 0;\n@%p2 bra READ;\n" + kStoreOwn + before + "mbarrier.arrive" +
           arrive + ".shared.b64 _, [%r7];\nbra.uni END;\nREAD:\n" + wait("W", "%r7", "0", order) + behind +
           kLoadOther + "END:\n";
  };
  CHECK(hazards(kernel("", "", "", ""), kTwoWarps) == "none");
  CHECK(hazards(kernel("", ".release.cta", ".acquire.cta", ""), kTwoWarps) == "none");
  CHECK(hazards(kernel("fence.acq_rel.cta;\n", ".relaxed.cta", ".relaxed.cta", "fence.acq_rel.cta;\n"),
                kTwoWarps) == "none");
  CHECK(hazards(kernel("fence.release.sync_restrict::shared::cta.cluster;\n", ".relaxed.cluster",
                       ".relaxed.cluster", "fence.acquire.sync_restrict::shared::cluster.cluster;\n"),
                kTwoWarps) == "none");
  CHECK_HAS(hazards(kernel("", ".relaxed.cta", ".acquire.cta", ""), kTwoWarps), Contains(kRace + "reads"));
  CHECK_HAS(hazards(kernel("", ".release.cta", ".relaxed.cta", ""), kTwoWarps), Contains(kRace + "reads"));
  // The wait left out.
  std::string unwaited = kernel("", "", "", "");
  unwaited.erase(unwaited.find("W:\n"), wait("W", "%r7", "0").size());
  CHECK_HAS(hazards(unwaited, kTwoWarps), Contains(kRace));
  // An initialisation that nobody is told of.
  std::string untold = kernel("", "", "", "");
  untold.replace(untold.find("bar.sync 0;"), 11, "bar.warp.sync -1;");
  CHECK_HAS(hazards(untold, kTwoWarps), Contains(kRace + "uses mbarrier `bars`") && Contains("initialises"));
}

TEST_CASE("Race: an elected lane speaks for its warp behind bar.warp.sync only") {
  const auto kernel = [](const std::string& sync) {
    return kBegin + init("1") + "bar.sync 0;\n@%p2 bra READ;\n" + kStoreOwn + sync +
           "@%p3 mbarrier.arrive.shared.b64 _, [%r7];\nbra.uni END;\nREAD:\n" + wait("W", "%r7", "0") +
           kLoadOther + "END:\n";
  };
  CHECK(hazards(kernel("bar.warp.sync -1;\n"), kTwoWarps) == "none");
  CHECK_HAS(hazards(kernel(""), kTwoWarps), Contains(kRace + "reads") && Contains(kLanes));
  // And an elected lane waits for its warp.
  const auto waits = [](const std::string& sync) {
    return kBegin + init("32") + "bar.sync 0;\n@%p2 bra READ;\n" + kStoreOwn +
           "mbarrier.arrive.shared.b64 _, [%r7];\nbra.uni END;\nREAD:\n@!%p3 bra ALL;\n" +
           wait("W", "%r7", "0") + "ALL:\n" + sync + kLoadOther + "END:\n";
  };
  CHECK(hazards(waits("bar.warp.sync -1;\n"), kTwoWarps) == "none");
  CHECK_HAS(hazards(waits("shfl.sync.bfly.b32 %r10, %r1, 1, 31, -1;\n"), kTwoWarps),
            Contains(kRace + "reads") && Contains(kLanes));
}

TEST_CASE(
    "Race: a bulk copy's bytes are there behind the wait, and its buffer is free behind the empty barrier") {
  const std::string copy =
      "@%p4 mbarrier.arrive.expect_tx.shared.b64 _, [%r7], 256;\n@%p4 "
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 256, [%r7];\n";
  const auto kernel = [&](const std::string& first_wait, const std::string& release,
                          const std::string& acquire) {
    // Warp 0 copies twice, warp 1 reads what came first and gives the buffer back.
    return kBegin + init("1", "32") + "bar.sync 0;\n@%p2 bra READ;\n" + copy + acquire + copy +
           "bra.uni END;\nREAD:\n" + first_wait + "ld.shared.u32 %r8, [%r5];\n" + release + "END:\n" +
           wait("Z", "%r7", "1");
  };
  const std::string empty = "mbarrier.arrive.shared.b64 _, [%r7+8];\n";
  CHECK(hazards(kernel(wait("W", "%r7", "0"), empty, wait("V", "%r7+8", "0")), kTwoWarps) == "none");
  CHECK_HAS(hazards(kernel("", empty, wait("V", "%r7+8", "0")), kTwoWarps),
            Contains(kRace) && Contains("no wait for phase 0 of mbarrier `bars`"));
  // Given back before it is read.
  CHECK_HAS(hazards(kernel(wait("W", "%r7", "0") + empty, "", wait("V", "%r7+8", "0")), kTwoWarps),
            Contains(kRace));
}

TEST_CASE("Race: a bulk store reads what its issuer knows of") {
  const auto kernel = [](const std::string& sync, const std::string& bytes) {
    return kBegin + "st.shared.u32 [%r4], 0;\nbar.sync 0;\n" + kStoreOwn + "fence.proxy.async;\n" + sync +
           "@%p4 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3], " + bytes +
           ";\ncp.async.bulk.commit_group;\n"
           "cp.async.bulk.wait_group 0;\n";
  };
  CHECK(hazards(kernel("bar.sync 0;\n", "256"), kTwoWarps) == "none");
  CHECK_HAS(hazards(kernel("bar.warp.sync -1;\n", "256"), kTwoWarps),
            Contains(kRace + "reads") && Contains(kBarrier));
  CHECK_HAS(hazards(kernel("", "128"), kWarp), Contains(kRace + "reads") && Contains(kLanes));
}

TEST_CASE("Race: cp.async is there for its thread behind the wait, for others behind a barrier then") {
  const auto kernel = [](const std::string& wait_group, const std::string& barrier, const std::string& read) {
    return kBegin +
           "cvt.u64.u32 %rd5, %r1;\nand.b64 %rd5, %rd5, 31;\nshl.b64 %rd5, %rd5, 2;\nadd.u64 %rd5, %rd5, "
           "%rd1;\n"
           "cp.async.ca.shared.global [%r4], [%rd5], 4;\ncp.async.commit_group;\n" +
           wait_group + barrier + "ld.shared.u32 %r8, [" + read + "];\ncp.async.wait_all;\n";
  };
  CHECK(hazards(kernel("cp.async.wait_group 0;\n", "bar.sync 0;\n", "%r5"), kTwoWarps) == "none");
  CHECK(hazards(kernel("cp.async.wait_all;\n", "bar.sync 0;\n", "%r5"), kTwoWarps) == "none");
  CHECK(hazards(kernel("cp.async.wait_group 0;\n", "", "%r4"), kTwoWarps) == "none");
  CHECK_HAS(hazards(kernel("cp.async.wait_group 0;\n", "", "%r5"), kTwoWarps),
            Contains(kRace) && Contains("cp.async"));
  CHECK_HAS(hazards(kernel("cp.async.wait_group 1;\n", "bar.sync 0;\n", "%r5"), kTwoWarps),
            Contains(kRace) && Contains("no cp.async.wait_group"));
  CHECK_HAS(hazards(kernel("", "", "%r4"), kTwoWarps), Contains("no cp.async.wait_group"));
  // Two warps that copy the same bytes to one place.
  const auto twice = [](const std::string& before, const std::string& guard) {
    return kBegin + before +
           "shl.b32 %r9, %r6, 2;\ncvt.u64.u32 %rd5, %r9;\nadd.u64 %rd5, %rd5, %rd1;\nadd.u32 %r9, %r9, "
           "%r3;\n" +
           guard +
           "cp.async.ca.shared.global [%r9], [%rd5], 4;\ncp.async.wait_all;\nbar.sync 0;\nld.shared.u32 %r8, "
           "[%r9];\n";
  };
  CHECK(hazards(twice("", ""), kTwoWarps) == "none");
  CHECK_HAS(hazards(twice("add.u32 %r9, %r1, 1;\n@%p1 st.shared.u32 [%r4], %r9;\n", "@%p2 "), kTwoWarps),
            Contains(kRace + "writes") && Contains("st.shared.u32") && Contains("cp.async"));
  // Behind cp.async.mbarrier.arrive it is there for who waits.
  const std::string arrive =
      kBegin + init("64") +
      "bar.sync 0;\ncvt.u64.u32 %rd5, %r1;\nand.b64 %rd5, %rd5, 31;\nshl.b64 "
      "%rd5, %rd5, 2;\nadd.u64 %rd5, %rd5, %rd1;\ncp.async.ca.shared.global [%r4], [%rd5], 4;\n"
      "cp.async.mbarrier.arrive.noinc.shared.b64 [%r7];\n";
  CHECK(hazards(arrive + wait("W", "%r7", "0") + kLoadOther + "cp.async.wait_all;\n", kTwoWarps) == "none");
  CHECK_HAS(hazards(arrive + kLoadOther + "cp.async.wait_all;\n", kTwoWarps), Contains(kRace));
}

TEST_CASE("Race: the cluster's barrier releases, unless it is relaxed") {
  TextLaunch pair;
  pair.grid = pair.cluster = {2, 1, 1};
  const auto kernel = [](const std::string& fence, const std::string& arrive) {
    return kBegin +
           "xor.b32 %r9, %r2, 1;\nmapa.shared::cluster.u32 %r10, %r4, %r9;\nst.shared.u32 [%r4], %r1;\n" +
           fence + arrive +
           "barrier.cluster.wait;\nld.shared::cluster.u32 %r8, [%r10];\nbarrier.cluster.arrive;\n"
           "barrier.cluster.wait;\n";
  };
  CHECK(hazards(kernel("", "barrier.cluster.arrive;\n"), pair) == "none");
  CHECK(hazards(kernel("", "barrier.cluster.arrive.release;\n"), pair) == "none");
  CHECK(hazards(kernel("fence.acq_rel.cluster;\n", "barrier.cluster.arrive.relaxed;\n"), pair) == "none");
  CHECK_HAS(hazards(kernel("", "barrier.cluster.arrive.relaxed;\n"), pair),
            Contains(kRace + "reads") && Contains("`st.shared.u32`"));
}

TEST_CASE("Race: wgmma reads what all of its warps know of") {
  const auto kernel = [](const std::string& barrier) {
    return "mov.u32 %r3, tile;\nshl.b32 %r5, %r1, 4;\nadd.u32 %r5, %r5, %r3;\nmov.u32 %r6, "
           "0;\nst.shared.v4.b32 [%r5], "
           "{%r6, %r6, %r6, %r6};\nst.shared.v4.b32 [%r5+2048], {%r6, %r6, %r6, %r6};\nfence.proxy.async;\n" +
           barrier +
           "mov.f32 %f0, 0f00000000;\nmov.f32 %f1, %f0;\nmov.f32 %f2, %f0;\nmov.f32 %f3, %f0;\n"
           "shr.u32 %r7, %r3, 4;\ncvt.u64.u32 %rd3, %r7;\nadd.u64 %rd3, %rd3, 0x1000080000;\nadd.u64 %rd4, "
           "%rd3, "
           "128;\nwgmma.fence.sync.aligned;\n"
           "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd3, %rd4, 1, 1, 1, "
           "0, "
           "0;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
  };
  const TextLaunch group{{1, 1, 1}, {128, 1, 1}};
  CHECK(hazards(kernel("bar.sync 0;\n"), group) == "none");
  CHECK_HAS(hazards(kernel("bar.warp.sync -1;\n"), group),
            Contains(kRace + "reads") && Contains("wgmma.mma_async"));
}

TEST_CASE("Race: what lanes read before a wgmma is read where it has been waited for") {
  // Warps 0 to 3 read a word each, and one lane in all gives them back; warp 4 writes them again.
  const std::string multiply =
      "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, "
      "%rd3, %rd4, 1, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
  const std::string read = "ld.shared.u32 %r8, [%r4+4096];\n";
  const auto kernel = [&](const std::string& body) {
    return kBegin + init("1") +
           "shl.b32 %r5, %r1, 4;\nadd.u32 %r5, %r5, %r3;\nmov.u32 %r9, 0;\nsetp.ge.u32 %p5, %r1, 128;\n@!%p5 "
           "st.shared.v4.b32 [%r5], {%r9, %r9, %r9, %r9};\n@!%p5 st.shared.v4.b32 [%r5+2048], {%r9, %r9, "
           "%r9, "
           "%r9};\nst.shared.u32 [%r4+4096], %r1;\nfence.proxy.async;\nbar.sync 0;\n@%p5 bra WRITE;\nmov.f32 "
           "%f0, 0f00000000;\nmov.f32 %f1, %f0;\nmov.f32 %f2, %f0;\nmov.f32 %f3, %f0;\nshr.u32 %r10, %r3, "
           "4;\ncvt.u64.u32 %rd3, %r10;\nadd.u64 %rd3, %rd3, 0x1000080000;\nadd.u64 %rd4, %rd3, 128;\n" +
           body + "@%p4 mbarrier.arrive.shared.b64 _, [%r7];\nbra.uni END;\nWRITE:\n" +
           wait("W", "%r7", "0") +
           "shl.b32 %r9, %r6, 2;\nadd.u32 %r9, %r9, %r3;\nst.shared.u32 [%r9+4096], %r1;\nst.shared.u32 "
           "[%r9+4224], %r1;\nEND:\n";
  };
  const TextLaunch five{{1, 1, 1}, {160, 1, 1}};
  CHECK(hazards(kernel(read + multiply), five) == "none");
  CHECK_HAS(hazards(kernel(multiply + read), five), Contains(kRace + "writes") && Contains("reads"));
  // Not what was read before another one, for which nobody waits.
  std::string unwaited = multiply;
  unwaited.erase(unwaited.find("wgmma.wait_group"));
  CHECK_HAS(hazards(kernel(multiply + read + unwaited), five),
            Contains(kRace + "writes") && Contains("reads"));
}

TEST_CASE("Race: ldmatrix and stmatrix are accesses like others") {
  const std::string rows = "shl.b32 %r9, %r6, 4;\nadd.u32 %r9, %r9, %r3;\n";
  const auto kernel = [&](const std::string& sync) {
    return kBegin + rows + "st.shared.v4.u32 [%r9], {%r1, %r1, %r1, %r1};\n" + sync +
           "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r3];\n";
  };
  CHECK(hazards(kernel("bar.warp.sync -1;\n"), kWarp) == "none");
  CHECK_HAS(hazards(kernel(""), kWarp), Contains(kRace + "reads") && Contains("ldmatrix"));
  const std::string store = "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r9], {%r1, %r1, %r1, %r1};\n";
  CHECK_HAS(hazards(kBegin + rows + store + "ld.shared.u32 %r8, [%r5];\n", kTwoWarps), Contains(kRace));
}

// What excuses deleted barriers in the mutation matrix rests on this.
TEST_CASE("Global memory: a byte that is written and accessed again is told, whoever accesses it") {
  const auto reused = [](const std::string& body, TextLaunch how) {
    how.follow_global = true;
    const TextResult r = launch_text(kDeclarations, body, how);
    REQUIRE(r.fault() == "none");
    return r.global_reused;
  };
  // %rd3 the thread's word of the output, %rd4 that of the thread 32 on.
  const std::string begin =
      kBegin +
      "mul.wide.u32 %rd3, %r1, 4;\nadd.u64 %rd3, %rd3, %rd2;\nxor.b32 %r8, %r1, 32;\nmul.wide.u32 %rd4, %r8, "
      "4;\nadd.u64 %rd4, %rd4, %rd2;\n";
  const std::string store = "st.global.u32 [%rd3], %r1;\n", load = "ld.global.u32 %r9, [%rd4];\n";
  CHECK_FALSE(reused(begin + store, kTwoWarps));
  CHECK_FALSE(reused(begin + "@%p1 " + store, kTwoWarps));
  CHECK_FALSE(reused(begin + "@%p3 " + store, kTwoWarps));
  CHECK_FALSE(
      reused(begin + "ld.global.u32 %r9, [%rd1];\nld.global.u32 %r9, [%rd1+4];\n" + store, kTwoWarps));
  CHECK_FALSE(
      reused(begin + "@%p1 st.global.u8 [%rd3], %r1;\n@%p1 st.global.u8 [%rd3+1], %r1;\n", kTwoWarps));
  // Read behind the write, and before it; by lanes together and on their own.
  CHECK(reused(begin + store + "bar.sync 0;\n" + load, kTwoWarps));
  CHECK(reused(begin + store + "bar.sync 0;\n@%p3 " + load, kTwoWarps));
  CHECK(reused(begin + "@%p3 " + store + "bar.sync 0;\n@%p3 " + load, kTwoWarps));
  CHECK(reused(begin + store + "bar.sync 0;\nld.u8 %r9, [%rd4+3];\n", kTwoWarps));
  CHECK(reused(begin + "@%p1 st.global.u32 [%rd4], %r1;\nbar.sync 0;\n@%p1 " + store + "@%p1 " + load,
               kTwoWarps));
  CHECK(
      reused(begin + "mov.u32 %r9, 0;\n" + store + "bar.sync 0;\n@%p1 st.global.v2.u32 [%rd2], {%r9, %r9};\n",
             kTwoWarps));
  // Written twice, by lanes of one instruction, by atomics, by cp.async read.
  CHECK(reused(begin + "st.global.u32 [%rd2], %r1;\n", kWarp));
  CHECK(reused(begin + "@%p3 red.global.add.u32 [%rd2], 1;\n", kTwoWarps));
  CHECK_FALSE(reused(begin + "@%p4 red.global.add.u32 [%rd2], 1;\n", kTwoWarps));
  CHECK(reused(begin + store +
                   "bar.sync 0;\n@%p4 cp.async.ca.shared.global [%r3], [%rd2], 4;\n"
                   "cp.async.wait_all;\n",
               kTwoWarps));
  CHECK(reused(
      begin + store + "bar.sync 0;\n@%p4 prefetch.global.L2 [%rd2];\n@%p4 ld.global.nc.u32 %r9, [%rd4];\n",
      kTwoWarps));
}
