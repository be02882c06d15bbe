// FLOPs, shares and the architecture verdict: from records of machine code, and from PTX.
#include "count/flops.hpp"

#include "support/catch.hpp"
#include "support/count_case.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;
using sass::FlopPipe;

namespace {

std::vector<CompiledModule> modules_of(const std::string& fixture) {
  CompiledModule module;
  module.source = fixture + ".cubin";
  module.cubin = cubin_fixture(fixture);
  return {module};
}

// Kernel @p symbol of a fixture, each of its instructions executed by @p warps whole warps, in a run that was
// right.
CountsBlock counted(const std::string& fixture, const std::string& symbol, std::uint64_t warps,
                    std::optional<double> task_flops = std::nullopt, std::uint64_t threads_of_a_warp = 32) {
  const std::vector<CompiledModule> modules = modules_of(fixture);
  const sass::Kernel kernel = kernel_of(sass::read_cubin(modules[0].cubin).value(), symbol);
  CountEvidence evidence;
  evidence.method = "cupti_sass";
  evidence.as_verified = true;
  evidence.trial.emplace();
  std::vector<CountRecord> records;
  for (std::uint32_t pc = 0; pc < kernel.code_bytes; pc += 16)
    records.push_back({pc, warps, threads_of_a_warp * warps});
  evidence.kernels = {{0, symbol, 7, std::move(records)}};
  Verdict verdict;
  compose_counts(evidence, modules, {{symbol, "named"}}, verdict, task_flops);
  INFO(verdict.counts.reason);
  REQUIRE(verdict.counts.state == Availability::measured);
  return verdict.counts;
}

void check_ptx(const char* form, const char* family, FlopPipe pipe, std::optional<std::uint32_t> per_thread) {
  INFO(form);
  const sass::Flops got = flops_of_ptx(form, family);
  CHECK(got.pipe == pipe);
  CHECK(got.per_thread == per_thread);
}

CountsBlock tallied(const FlopTally& tally, std::vector<OpcodeCount> opcodes, int sm,
                    std::optional<double> task_flops) {
  CountsBlock block;
  block.opcodes = std::move(opcodes);
  tally.fill(task_flops, block);
  judge_architecture(sm, block);
  return block;
}

constexpr sass::Flops own(std::uint32_t per_thread) { return {FlopPipe::arch_mma, per_thread}; }
constexpr sass::Flops warp(std::uint32_t per_thread) { return {FlopPipe::mma_sync, per_thread}; }

}  // namespace

TEST_CASE("flops: a warpgroup instruction counts once, though four warps execute it") {
  // k_bf16_ss has one wgmma.m64n8k16: 2*64*8*16 = 16384. Three warpgroups: twelve warps.
  const CountsBlock block = counted("wgmma.sm_90a", "k_bf16_ss", 12, 3 * 16384.0);
  REQUIRE(block.flops.kernels.size() == 1);
  CHECK(block.flops.kernels[0].kernel == "named");
  CHECK(block.flops.kernels[0].arch_mma == 3u * 16384);
  CHECK(block.flops.kernels[0].mma_sync == 0u);
  CHECK(block.flops.total.kernel.empty());
  CHECK(block.flops.total.arch_mma == 3u * 16384);
  CHECK(block.flops.total.arch_flops_share == 1.0);
  CHECK(block.flops.arch_flops_share_reason.empty());
  CHECK(block.flops.task_flops == 3u * 16384);
  CHECK(block.flops.mma_work_ratio == 1.0);
  CHECK(block.flops.mma_work_ratio_reason.empty());
  CHECK(block.architecture.published == true);
  CHECK(block.architecture.strict == true);
  CHECK(contains(block.architecture.reason, "HGMMA.64x8x16.F32.BF16 was executed"));
  CHECK(contains(block.architecture.reason, "arch_flops_share 1.000"));
}

TEST_CASE("flops: threads whose predicate is off compute nothing") {
  const CountsBlock block = counted("wgmma.sm_90a", "k_bf16_ss", 12, 16384.0, 0);
  CHECK(block.flops.total.arch_mma == 0u);
  CHECK(!block.flops.total.arch_flops_share);
  CHECK(contains(block.flops.arch_flops_share_reason, "no floating-point operation"));
  CHECK(block.flops.mma_work_ratio == 0.0);
  CHECK(block.architecture.published == true);  // executed, says the published definition
  CHECK(block.architecture.strict == false);
}

TEST_CASE("flops: of a task that nobody knows there is a share and no ratio") {
  const CountsBlock block = counted("wgmma.sm_90a", "k_bf16_ss", 4);
  CHECK(block.flops.total.arch_flops_share == 1.0);
  CHECK(!block.flops.task_flops);
  CHECK(!block.flops.mma_work_ratio);
  CHECK(contains(block.flops.mma_work_ratio_reason, "this task takes is not known"));
  CHECK(block.architecture.published == true);
  CHECK(!block.architecture.strict);
}

TEST_CASE("flops: tcgen05.mma's are unknown, never guessed") {
  const auto modules = modules_of("tcgen05.sm_100a");
  const sass::Cubin cubin = sass::read_cubin(modules[0].cubin).value();
  int with_mma = 0;
  for (const sass::Kernel& kernel : cubin.kernels) {
    const CountsBlock block = counted("tcgen05.sm_100a", kernel.symbol, 4, 1e6);
    const bool mma = std::any_of(block.families.begin(), block.families.end(),
                                 [](const FamilyCount& f) { return f.family == "tcgen05_mma"; });
    INFO(kernel.symbol);
    CHECK(block.flops.total.arch_mma.has_value() != mma);
    CHECK(block.flops.mma_work_ratio.has_value() != mma);
    if (!mma) continue;
    ++with_mma;
    CHECK(!block.flops.total.arch_flops_share);
    CHECK(contains(block.flops.arch_flops_share_reason, "UTC"));
    CHECK(contains(block.flops.arch_flops_share_reason, "descriptor"));
    CHECK(contains(block.flops.mma_work_ratio_reason, "descriptor"));
    CHECK(block.flops.task_flops == 1'000'000u);
    CHECK(block.architecture.published == true);
    CHECK(!block.architecture.strict);
  }
  CHECK(with_mma > 3);
}

TEST_CASE("architecture: TMA alone is published, and not strict") {
  const auto modules = modules_of("async.sm_90a");
  const sass::Cubin cubin = sass::read_cubin(modules[0].cubin).value();
  int published = 0;
  for (const sass::Kernel& kernel : cubin.kernels) {
    const CountsBlock block = counted("async.sm_90a", kernel.symbol, 4, 1e6);
    const bool tma = std::any_of(block.families.begin(), block.families.end(), [](const FamilyCount& f) {
      return f.family.rfind("tma_", 0) == 0 && f.family != "tma_control";
    });
    INFO(kernel.symbol << ": " << block.architecture.reason);
    CHECK(block.architecture.published == tma);
    CHECK(block.architecture.strict == false);  // no matrix work at all
    CHECK(block.flops.mma_work_ratio == 0.0);
    published += tma;
  }
  CHECK(published > 3);
  CHECK(published < static_cast<int>(cubin.kernels.size()));
}

TEST_CASE("architecture: both shares are wanted, and one that is known to be low decides") {
  const std::vector<OpcodeCount> wgmma{{"k", "HGMMA", "wgmma", 4, 128}};
  FlopTally nine_tenths;
  nine_tenths.add("k", "HGMMA", own(9), 100);
  nine_tenths.add("k", "FFMA", {FlopPipe::fp32, 1}, 100);
  CHECK(tallied(nine_tenths, wgmma, 90, 1000.0).flops.total.arch_flops_share == 0.9);
  CHECK(tallied(nine_tenths, wgmma, 90, 1000.0).architecture.strict == true);
  CHECK(tallied(nine_tenths, wgmma, 90, 1001.0).architecture.strict == false);  // a ratio of 0.899
  CHECK(tallied(nine_tenths, wgmma, 90, std::nullopt).architecture.strict == std::nullopt);
  // Above one: ragged tiles.
  CHECK(tallied(nine_tenths, wgmma, 90, 450.0).flops.mma_work_ratio == 2.0);
  CHECK(tallied(nine_tenths, wgmma, 90, 450.0).architecture.strict == true);

  FlopTally mostly_warps;
  mostly_warps.add("k", "HGMMA", own(1), 10);
  mostly_warps.add("other", "HMMA", warp(9), 10);
  const CountsBlock block = tallied(mostly_warps, wgmma, 90, std::nullopt);
  CHECK(block.flops.total.arch_flops_share == 0.1);
  REQUIRE(block.flops.kernels.size() == 2);
  CHECK(block.flops.kernels[0].arch_flops_share == 1.0);
  CHECK(block.flops.kernels[1].arch_flops_share == 0.0);
  CHECK(block.architecture.published == true);
  CHECK(block.architecture.strict == false);  // whatever the ratio
  CHECK(tallied(mostly_warps, wgmma, 90, 100.0).flops.mma_work_ratio == 1.0);
}

TEST_CASE("architecture: an operation that the table lacks leaves unknown what it could change") {
  FlopTally tally;
  tally.add("k", "HGMMA", own(8), 128);
  tally.add("k", "unknown:0x1ff", {FlopPipe::none, std::nullopt}, 128);
  const CountsBlock known =
      tallied(tally, {{"k", "HGMMA", "wgmma", 4, 128}, {"k", "unknown:0x1ff", "other", 4, 128}}, 90, 1024.0);
  CHECK(known.flops.total.arch_mma == 1024u);
  CHECK(!known.flops.total.arch_flops_share);
  CHECK(!known.flops.mma_work_ratio);
  CHECK(contains(known.flops.mma_work_ratio_reason, "unknown:0x1ff"));
  CHECK(known.architecture.published == true);
  CHECK(!known.architecture.strict);
  const CountsBlock alone = tallied(tally, {{"k", "unknown:0x1ff", "other", 4, 128}}, 90, 1024.0);
  CHECK(!alone.architecture.published);
  // Executed by nobody, it changes nothing.
  CHECK(tallied({}, {{"k", "unknown:0x1ff", "other", 0, 0}}, 90, 1024.0).architecture.published == false);
}

TEST_CASE("architecture: each has its own definition") {
  const auto published = [](int sm, const char* opcode, const char* family) {
    return tallied({}, {{"k", opcode, family, 4, 128}}, sm, std::nullopt).architecture.published;
  };
  CHECK(published(90, "QGMMA", "wgmma") == true);
  CHECK(published(90, "UTMAREDG", "tma_reduce") == true);
  CHECK(published(90, "UTMACMDFLUSH", "tma_control") == false);
  CHECK(published(90, "UBLKCP", "bulk_copy") == false);
  CHECK(published(90, "HMMA", "mma_sync") == false);
  CHECK(published(100, "UTMALDG", "tma_load") == false);
  CHECK(published(100, "LDTM", "tcgen05_ld") == true);
  CHECK(published(100, "STTM", "tcgen05_st") == true);
  CHECK(published(103, "UTCATOMSWS", "tcgen05_alloc") == true);
  CHECK(published(100, "FENCE", "tcgen05_commit") == false);
  CHECK(published(120, "UTMALDG", "tma_load") == std::nullopt);
  CHECK(published(80, "HMMA", "mma_sync") == std::nullopt);
}

TEST_CASE("flops: from the names of PTX instructions") {
  check_ptx("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", "wgmma", FlopPipe::arch_mma, 4096);
  check_ptx("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16", "wgmma", FlopPipe::arch_mma, 128);
  check_ptx("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "mma_sync", FlopPipe::mma_sync, 128);
  check_ptx("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32", "mma_sync",
            FlopPipe::mma_sync, 128);
  check_ptx("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "mma_sync", FlopPipe::mma_sync, 16);
  // Four products of m8n8k4, one for each quarter of the warp.
  check_ptx("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", "mma_sync", FlopPipe::mma_sync, 64);
  check_ptx("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", "mma_sync", FlopPipe::mma_sync, 256);
  check_ptx("tcgen05.mma.cta_group::1.kind::f16", "tcgen05_mma", FlopPipe::arch_mma, std::nullopt);
  check_ptx("mma.sync.aligned.something.row.col", "mma_sync", FlopPipe::mma_sync, std::nullopt);
  check_ptx("mma.sync.aligned.m16n8k99999999999.row.col", "mma_sync", FlopPipe::mma_sync, std::nullopt);
  check_ptx("mma.sync.aligned.m0n8k16.row.col", "mma_sync", FlopPipe::mma_sync, std::nullopt);
  check_ptx("add.f32", "fp32", FlopPipe::fp32, 1);
  check_ptx("sub.rn.ftz.f32", "fp32", FlopPipe::fp32, 1);
  check_ptx("fma.rn.f32", "fp32", FlopPipe::fp32, 2);
  check_ptx("mad.rn.f64", "fp64", FlopPipe::fp64, 2);
  check_ptx("fma.rn.f32x2", "fp32", FlopPipe::fp32, 4);
  check_ptx("mul.f16", "half", FlopPipe::half, 1);
  check_ptx("fma.rn.relu.bf16x2", "half", FlopPipe::half, 4);
  for (const char* form :
       {"add.s32", "mad.lo.s32", "mul.wide.u32", "max.f32", "setp.lt.f32", "neg.f32", "cvt.rn.f32.s32",
        "ex2.approx.f32", "atom.global.add.f32", "wgmma.fence.sync.aligned", "", "."})
    check_ptx(form, "any", FlopPipe::none, 0);
}

TEST_CASE("flops: of the emulator's report") {
  EmulatorReport report;
  const auto executed = [&](const char* text, const char* family, std::uint64_t warps) {
    EmulatedInstruction i;
    i.kernel = "_Z4gemm";
    i.text = text;
    i.family = family;
    i.warps = warps;
    i.threads = 32 * warps;
    report.instructions.push_back(i);
  };
  executed("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16", "wgmma",
           8);  // two warpgroup instructions
  executed("fma.rn.f32", "fp32", 2);
  Verdict verdict;
  compose_emulated_counts(report, {{"_Z4gemm", "gemm"}}, verdict, 2.0 * 128 * 128 * 16);
  const FlopsBlock& flops = verdict.counts.flops;
  CHECK(flops.total.arch_mma == 2u * 2 * 64 * 128 * 16);
  CHECK(flops.total.fp32 == 128u);
  REQUIRE(flops.kernels.size() == 1);
  CHECK(flops.kernels[0].kernel == "gemm");
  CHECK(flops.mma_work_ratio == 1.0);
  CHECK(verdict.counts.architecture.published == true);
  CHECK(verdict.counts.architecture.strict == true);
  // An instruction whose name has no shape.
  executed("mma.sync.aligned.new", "mma_sync", 1);
  compose_emulated_counts(report, {}, verdict, 1.0);
  CHECK(verdict.counts.flops.total.arch_mma.has_value());
  CHECK(!verdict.counts.flops.total.mma_sync);
  CHECK(!verdict.counts.flops.mma_work_ratio);
  CHECK(contains(verdict.counts.flops.mma_work_ratio_reason, "mma.sync.aligned.new"));
}
