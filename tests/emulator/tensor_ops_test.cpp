// Matrix instructions as a program uses them: what they move, and what is said when they are used wrongly.
#include "support/catch.hpp"

#include <ptxbench/emulator.hpp>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

using namespace ptxbench;

namespace {

struct KernelOutcome {
  std::vector<std::uint32_t> words;
  EmulatorReport report;
  std::string error;  // of loading
  std::string code() const { return report.findings.empty() ? "" : report.findings[0].code; }
  std::string message() const { return report.findings.empty() ? "" : report.findings[0].message; }
};

// A kernel `k(out)` with the given body; %tid is %t, the output's address of this thread's word %o. out[i] =
// i at first.
KernelOutcome run(const std::string& body, std::uint32_t threads = 32, std::uint32_t dynamic_shared = 0,
                  EmulatorSchedule::Mode mode = EmulatorSchedule::Mode::eager, std::uint32_t count = 1024) {
  const std::string text =
      ".version 8.8\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 dynamic[];\n"
      ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %x<64>;\n.reg .b32 %r<256>;\n.reg .b32 %u<64>;\n.reg "
      ".f32 %f<256>;\n"
      ".reg .pred %p<8>;\n.reg .b32 %t, %s;\n.reg .b64 %o, %base;\n.shared .align 1024 .b8 memory[8192];\n"
      "ld.param.u64 %base, [p];\nmov.u32 %t, %tid.x;\nmad.wide.u32 %o, %t, 4, %base;\nmov.u32 %s, memory;\n" +
      body + "\nret;\n}\n";
  KernelOutcome outcome;
  EmulatorOptions options;
  options.threads = 1;
  auto device = open_emulator_device(options);
  REQUIRE(device);
  (*device)->set_schedule({mode, 1});
  ModuleImage image;
  image.source = "k.ptx";
  image.ptx = text;
  const auto module = (*device)->load(image);
  if (!module) {
    outcome.error = module.error().to_string();
    return outcome;
  }
  if (const auto prepared = (*device)->prepare(*module, "k"); !prepared) {
    outcome.error = prepared.error().to_string();
    return outcome;
  }
  const auto buffer = (*device)->allocate(count * 4);
  REQUIRE(buffer);
  outcome.words.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) outcome.words[i] = i;
  auto* bytes = reinterpret_cast<std::uint8_t*>(outcome.words.data());
  REQUIRE((*device)->write(buffer->address, {bytes, count * 4}));
  DeviceLaunch launch;
  launch.module = *module;
  launch.symbol = "k";
  launch.block = {threads, 1, 1};
  launch.dynamic_shared_bytes = dynamic_shared;
  launch.parameters = {reinterpret_cast<const std::uint8_t*>(&buffer->address), 8};
  const auto launched = (*device)->launch(launch);
  REQUIRE(launched);
  if (!*launched) REQUIRE((*device)->synchronize(10'000'000'000));
  outcome.report = (*device)->report();
  if (!(*device)->loss()) REQUIRE((*device)->read(buffer->address, {bytes, count * 4}));
  return outcome;
}

std::string registers(const char* prefix, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += (i == 0 ? "%" : ", %") + std::string(prefix) + std::to_string(i);
  return text + "}";
}

// Shared memory from `memory` on: halfword i is i. One warp.
const char* const kFill =
    "mov.u32 %r200, 0;\nfill:\nmad.lo.u32 %r201, %r200, 128, %s;\nmad.lo.u32 %r201, %t, 4, %r201;\n"
    "mad.lo.u32 %r202, %r200, 32, %t;\nshl.b32 %r203, %r202, 1;\nadd.u32 %r204, %r203, 1;\nshl.b32 %r204, "
    "%r204, 16;\n"
    "or.b32 %r203, %r203, %r204;\nst.shared.b32 [%r201], %r203;\nadd.u32 %r200, %r200, 1;\n"
    "setp.lt.u32 %p0, %r200, 64;\n@%p0 bra fill;\nbar.warp.sync 0xffffffff;\n";

std::string zeros(const char* prefix, int count, const char* type = "f32", const char* value = "0f00000000") {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += std::string("mov.") + type + " %" + prefix + std::to_string(i) + ", " + value + ";\n";
  return text;
}

// A descriptor of memory + offset, K-major without a swizzle, in %x<number>.
std::string descriptor(int number, std::uint32_t offset, std::uint64_t more = 0) {
  const std::uint64_t rest = std::uint64_t{128 >> 4} << 16 | std::uint64_t{256 >> 4} << 32 | more;
  const std::string x = "%x" + std::to_string(number);
  return "add.u32 %r210, %s, " + std::to_string(offset) + ";\nshr.u32 %r210, %r210, 4;\ncvt.u64.u32 " + x +
         ", %r210;\nadd.u64 " + x + ", " + x + ", " + std::to_string(rest) + ";\n";
}
const std::string kWgmma =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %x0, %x1, 1, 1, 1, 0, 0;\n";
// 128 threads write zeros to the first 4 KiB of `memory`.
const std::string kClear =
    "mad.lo.u32 %r220, %t, 16, %s;\nst.shared.v4.b32 [%r220], {0, 0, 0, 0};\nst.shared.v4.b32 [%r220+2048], "
    "{0, 0, 0, 0};\n"
    "fence.proxy.async.shared::cta;\nbar.sync 0;\n";

}  // namespace

TEST_CASE("ldmatrix: rows from the addresses of eight lanes a matrix") {
  // Row r of matrix j is the 16 bytes at 64 * r + 16 * j.
  const std::string address =
      "and.b32 %r0, %t, 7;\nshr.u32 %r1, %t, 3;\nmad.lo.u32 %r2, %r0, 64, %s;\n"
      "mad.lo.u32 %r2, %r1, 16, %r2;\n";
  const std::string store =
      "st.global.b32 [%o], %r4;\nst.global.b32 [%o+128], %r5;\nst.global.b32 [%o+256], %r6;\n"
      "st.global.b32 [%o+384], %r7;\n";
  for (const bool transposed : {false, true}) {
    const KernelOutcome out =
        run(kFill + address + "ldmatrix.sync.aligned.m8n8.x4" + (transposed ? ".trans" : "") +
            ".shared.b16 {%r4, %r5, %r6, %r7}, [%r2];\n" + store);
    REQUIRE(out.error.empty());
    CHECK(out.report.findings.empty());
    for (std::uint32_t j = 0; j < 4; ++j)
      for (std::uint32_t l = 0; l < 32; ++l)
        for (std::uint32_t e = 0; e < 2; ++e) {
          const std::uint32_t row = transposed ? 2 * (l % 4) + e : l / 4,
                              column = transposed ? l / 4 : 2 * (l % 4) + e;
          REQUIRE((out.words[32 * j + l] >> (16 * e) & 0xffff) == row * 32 + j * 8 + column);
        }
  }
  // Fewer matrices need the addresses of fewer lanes; generic addresses do as well.
  const KernelOutcome two =
      run(kFill + address +
          "setp.lt.u32 %p1, %t, 16;\nselp.b32 %r2, %r2, 0, %p1;\n"
          "ldmatrix.sync.aligned.m8n8.x2.shared::cta.b16 {%r4, %r5}, [%r2];\nst.global.b32 [%o], %r5;\n");
  CHECK(two.report.findings.empty());
  CHECK(two.words[5] == ((1 * 32 + 8 + 2) | (1 * 32 + 8 + 3) << 16));
  const KernelOutcome generic =
      run(kFill + address +
          "cvt.u64.u32 %x0, %r2;\ncvta.shared.u64 %x0, %x0;\n"
          "ldmatrix.sync.aligned.m8n8.x1.b16 {%r4}, [%x0];\nst.global.b32 [%o], %r4;\n");
  CHECK(generic.report.findings.empty());
  CHECK(generic.words[5] == ((1 * 32 + 2) | (1 * 32 + 3) << 16));
}

TEST_CASE("stmatrix and movmatrix") {
  // Each lane's word through stmatrix, read back row by row; movmatrix twice is nothing.
  const std::string words =
      "shl.b32 %r0, %t, 1;\nadd.u32 %r1, %r0, 1;\nshl.b32 %r1, %r1, 16;\nor.b32 %r0, %r0, %r1;\n";
  const std::string address = "and.b32 %r2, %t, 7;\nmad.lo.u32 %r2, %r2, 16, %s;\n";
  const std::string read =
      "bar.warp.sync 0xffffffff;\nmad.lo.u32 %r3, %t, 4, %s;\nld.shared.b32 %r4, [%r3];\n"
      "st.global.b32 [%o], %r4;\n";
  const KernelOutcome plain =
      run(words + address + "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2], {%r0};\n" + read);
  REQUIRE(plain.error.empty());
  CHECK(plain.report.findings.empty());
  for (std::uint32_t l = 0; l < 32; ++l) REQUIRE(plain.words[l] == (2 * l | (2 * l + 1) << 16));
  const KernelOutcome turned =
      run(words + address + "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r2], {%r0};\n" + read);
  const KernelOutcome moved =
      run(words + "movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r0;\nst.global.b32 [%o], %r4;\n");
  REQUIRE(moved.error.empty());
  CHECK(turned.words == moved.words);
  for (std::uint32_t l = 0; l < 32; ++l)  // element (r, c) is 8 r + c
    for (std::uint32_t e = 0; e < 2; ++e)
      REQUIRE((moved.words[l] >> (16 * e) & 0xffff) == (2 * (l % 4) + e) * 8 + l / 4);
}

TEST_CASE("ldmatrix, stmatrix: faults") {
  CHECK(run("mad.lo.u32 %r2, %t, 8, %s;\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, "
            "[%r2];\n")
            .code() == "misaligned");
  CHECK(run("mad.lo.u32 %r2, %t, 4096, %s;\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, "
            "[%r2];\n")
            .code() == "out_of_bounds");
  CHECK(run("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%u2];\n").code() == "undefined_value");
  CHECK(run("ldmatrix.sync.aligned.m8n8.x1.b16 {%r4}, [%base];\n").code() == "out_of_bounds");
  CHECK(run("setp.lt.u32 %p0, %t, 7;\n@%p0 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%s];\n").code() ==
        "partial_collective");
  // What was never written may be read, but not reach an output.
  const std::string load =
      "and.b32 %r2, %t, 7;\nmad.lo.u32 %r2, %r2, 16, %s;\n"
      "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r2];\n";
  CHECK(run(load).report.findings.empty());
  CHECK_FALSE(run("ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r4}, [%s];\n").error.empty());
  CHECK_FALSE(run("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r4}, [%s];\n").error.empty());
  CHECK_FALSE(run("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r4, %r5}, [%s];\n").error.empty());
}

TEST_CASE("mma.sync: what is wrong is said") {
  const std::string mma = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 " + registers("f", 4) + ", " +
                          registers("r", 4) + ", {%r4, %r5}, " + registers("f", 4) + ";\n";
  const std::string values = zeros("f", 4) + zeros("r", 6, "b32", "1065369472");
  CHECK(run(values + mma).report.findings.empty());
  const KernelOutcome partial = run(values + "setp.ne.u32 %p0, %t, 3;\n@%p0 " + mma);
  CHECK(partial.code() == "partial_collective");
  const auto bad = [](const std::string& text) { return run(text + "\n").error; };
  CHECK(bad("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f0, %f1}, {%r0, %r1, %r2, %r3}, {%r4, "
            "%r5}, {%f0, %f1};")
            .find("4 registers for d") != std::string::npos);
  CHECK(bad("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%x0, %x1}, {%x2}, {%x3}, {%x0, %x1};")
            .find("mma.sync.aligned.m8n8k4") != std::string::npos);
  CHECK_FALSE(
      bad("mma.sync.aligned.m16n8k16.row.row.f32.bf16.bf16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, "
          "{%r4, %r5}, {%f0, %f1, %f2, %f3};")
          .empty());
}

TEST_CASE("wgmma: faults") {
  const std::string sums = zeros("f", 4);
  const std::string finish =
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nst.global.f32 [%o], %f0;\n";
  const std::string fence = "wgmma.fence.sync.aligned;\n";
  for (const auto mode :
       {EmulatorSchedule::Mode::eager, EmulatorSchedule::Mode::lazy, EmulatorSchedule::Mode::random}) {
    const auto go = [&](const std::string& text, std::uint32_t threads = 128) {
      return run(text, threads, 0, mode);
    };
    const KernelOutcome right =
        go(kClear + sums + descriptor(0, 0) + descriptor(1, 2048) + fence + kWgmma + finish);
    CHECK(right.error.empty());
    CHECK(right.report.findings.empty());
    CHECK(right.words[7] == 0);
    const KernelOutcome outside =
        go(kClear + sums + descriptor(0, 7168) + descriptor(1, 2048) + fence + kWgmma + finish);
    CHECK(outside.code() == "out_of_bounds");
    CHECK(outside.message().find("operand A") != std::string::npos);
    const KernelOutcome reserved = go(kClear + sums + descriptor(0, 0) +
                                      descriptor(1, 2048, std::uint64_t{1} << 46) + fence + kWgmma + finish);
    CHECK(reserved.code() == "descriptor");
    CHECK(reserved.message().find("bit 46") != std::string::npos);
    CHECK(go(kClear + sums + descriptor(0, 0) + fence + kWgmma + finish).code() == "undefined_value");
    // Lanes, then warps, that do not agree.
    CHECK(go(kClear + sums + descriptor(0, 0) + descriptor(1, 2048) +
             "and.b32 %r0, %t, 1;\ncvt.u64.u32 %x2, %r0;\nadd.u64 %x1, %x1, %x2;\n" + fence + kWgmma + finish)
              .code() == "descriptor");
    CHECK(go(kClear + sums + descriptor(0, 0) + descriptor(1, 2048) +
             "shr.u32 %r0, %t, 6;\ncvt.u64.u32 %x2, %r0;\nadd.u64 %x1, %x1, %x2;\n" + fence + kWgmma + finish)
              .code() == "partial_collective");
    CHECK(go(sums + descriptor(0, 0) + descriptor(1, 2048) + fence + kWgmma + finish, 64).code() ==
          "partial_collective");
    // A warp that never comes.
    const KernelOutcome missing =
        go(kClear + sums + descriptor(0, 0) + descriptor(1, 2048) +
           "setp.ge.u32 %p1, %t, 96;\n@%p1 bra away;\n" + fence + kWgmma + finish + "away:\n");
    CHECK(missing.code() == "deadlock");
    // What was written by ordinary stores needs a fence of proxies.
    const KernelOutcome unfenced =
        go("mad.lo.u32 %r220, %t, 16, %s;\nst.shared.v4.b32 [%r220], {0, 0, 0, 0};\n"
           "st.shared.v4.b32 [%r220+2048], {0, 0, 0, 0};\nbar.sync 0;\n" +
           sums + descriptor(0, 0) + descriptor(1, 2048) + fence + kWgmma + finish);
    CHECK(unfenced.code() == "missing_proxy_fence");
    CHECK(unfenced.words[7] == 0);
    // Operands that nobody wrote make the sums undefined, and those must not be stored.
    CHECK(go(sums + descriptor(0, 0) + descriptor(1, 2048) + fence + kWgmma +
             "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nsetp.eq.f32 %p3, %f0, "
             "%f0;\n@%p3 bra "
             "away;\naway:\n")
              .code() == "undefined_value");
    // Accumulators that nobody wrote are none of the result's where scale-d is false.
    const std::string zero_start =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %x0, %x1, 0, 1, 1, 0, "
        "0;\n";
    const KernelOutcome fresh =
        go(kClear + descriptor(0, 0) + descriptor(1, 2048) + fence + zero_start + finish);
    CHECK(fresh.report.findings.empty());
    CHECK(fresh.words[127] == 0);
  }
}

TEST_CASE("wgmma: an accumulator touched before its wait is waited for, and said") {
  // Two multiplies of ones into the same sums; the first register is read without wait_group.
  const std::string ones =
      "mad.lo.u32 %r220, %t, 16, %s;\nmov.b32 %r1, 1065369472;\nst.shared.v4.b32 [%r220], {%r1, %r1, %r1, "
      "%r1};\n"
      "st.shared.v4.b32 [%r220+2048], {%r1, %r1, %r1, %r1};\nfence.proxy.async.shared::cta;\nbar.sync 0;\n";
  for (const auto mode :
       {EmulatorSchedule::Mode::eager, EmulatorSchedule::Mode::lazy, EmulatorSchedule::Mode::random}) {
    const std::string text = ones + zeros("f", 4) + descriptor(0, 0) + descriptor(1, 2048) +
                             "wgmma.fence.sync.aligned;\n" + kWgmma + kWgmma +
                             "wgmma.commit_group.sync.aligned;\n";
    const KernelOutcome touched = run(text + "st.global.f32 [%o], %f0;\n", 128, 0, mode);
    float value = 0;
    std::memcpy(&value, &touched.words[77], 4);
    CHECK(value == 32.0F);
    for (const EmulatorFinding& f : touched.report.findings) {
      CHECK(f.code == "wgmma_register_touched");
      CHECK(f.grade == EmulatorFinding::Grade::note);
    }
    if (mode == EmulatorSchedule::Mode::lazy) CHECK(touched.report.findings.size() == 1);
    // Groups: waiting for all but one leaves the second under way.
    const KernelOutcome groups =
        run(ones + zeros("f", 8) + descriptor(0, 0) + descriptor(1, 2048) + "wgmma.fence.sync.aligned;\n" +
                kWgmma +
                "wgmma.commit_group.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
                "{%f4, %f5, %f6, %f7}, %x0, %x1, 1, -1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\n"
                "wgmma.wait_group.sync.aligned 1;\nst.global.f32 [%o], %f0;\n"
                "wgmma.wait_group.sync.aligned 0;\nst.global.f32 [%o+512], %f5;\n",
            128, 0, mode);
    CHECK(groups.report.findings.empty());
    std::memcpy(&value, &groups.words[100], 4);
    CHECK(value == 16.0F);
    std::memcpy(&value, &groups.words[128 + 100], 4);
    CHECK(value == -16.0F);
  }
}

TEST_CASE("wgmma: forms that there are not") {
  const auto error = [](const std::string& instruction) { return run(instruction + ";\n", 128).error; };
  const std::string d4 = "{%f0, %f1, %f2, %f3}";
  CHECK(error("wgmma.mma_async.sync.aligned.m64n12k16.f32.bf16.bf16 " + d4 + ", %x0, %x1, 1, 1, 1, 0, 0")
            .find("n = 12") != std::string::npos);
  CHECK_FALSE(error("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.f16 " + d4 + ", %x0, %x1, 1, 1, 1, 0, 0")
                  .empty());
  CHECK_FALSE(
      error("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 " + d4 + ", %x0, %x1, 1, 1, 1").empty());
  CHECK_FALSE(error("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 " + d4 + ", %x0, %x1, 1, 2, 1, 0, 0")
                  .empty());
  CHECK(error("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16 " + d4 +
              ", %x0, %x1, %r0, 0, 1, 1, 1, 0, 0")
            .find("wgmma.mma_async.sp") != std::string::npos);
  CHECK_FALSE(error("wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 {%r0}, %x0, %x1, 1").empty());
  CHECK_FALSE(error("wgmma.wait_group.sync.aligned").empty());
}

TEST_CASE("wmma: fragments load and store, with offsets, strides and both layouts") {
  // out is an 16 x 16 matrix of fp32 (its words are its bits); loaded by columns from 64 bytes on, stored by
  // rows at its end.
  const KernelOutcome out =
      run("wmma.load.c.sync.aligned.col.m16n16k16.global.f32 " + registers("f", 8) +
          ", [%base+64], 20;\nwmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%base+2048], " +
          registers("f", 8) + ";\n");
  REQUIRE(out.error.empty());
  CHECK(out.report.findings.empty());
  for (std::uint32_t row = 0; row < 16; ++row)
    for (std::uint32_t column = 0; column < 16; ++column)
      REQUIRE(out.words[512 + 16 * row + column] == 16 + 20 * column + row);
  CHECK(
      run("wmma.load.c.sync.aligned.row.m16n16k16.global.f32 " + registers("f", 8) + ", [%base+4000], 16;\n")
          .code() == "out_of_bounds");
  CHECK_FALSE(run("wmma.load.a.sync.aligned.row.m8n8k32.global.s4 {%r0}, [%base], 32;\n").error.empty());
}
