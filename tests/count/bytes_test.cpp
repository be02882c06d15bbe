// From records to bytes, waits, labels and tcgen05's FLOPs, over the probes' code.
#include "count/bytes.hpp"

#include "support/catch.hpp"
#include "support/count_case.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

struct Run {
  CompiledModule module;
  sass::Cubin cubin;
  sass::Kernel kernel;
  CountEvidence evidence;
  Verdict verdict;

  // Every instruction executed by `warps` warps with `threads` threads in all.
  Run(const std::string& fixture, const std::string& symbol, std::uint64_t warps, std::uint64_t threads) {
    module.source = fixture + ".cubin";
    module.cubin = cubin_fixture(fixture);
    cubin = sass::read_cubin(module.cubin).value();
    kernel = kernel_of(cubin, symbol);
    evidence.method = "cupti_sass";
    evidence.as_verified = true;
    evidence.trial.emplace();
    evidence.kernels = {{0, symbol, 7, {}}};
    for (std::uint32_t pc = 0; pc < kernel.code_bytes; pc += 16)
      evidence.kernels[0].records.push_back({pc, warps, threads});
  }
  void map(std::uint32_t parameter, std::optional<std::uint64_t> box) {
    evidence.maps.push_back({0, kernel.symbol, kernel.parameters.at(parameter).offset, box});
  }
  const CountsBlock& compose(std::optional<std::uint64_t> task_bytes = std::nullopt) {
    compose_counts(evidence, {module}, {}, verdict, std::nullopt, task_bytes);
    REQUIRE(verdict.counts.state == Availability::measured);
    return verdict.counts;
  }
  std::uint64_t copies(sass::BulkAccess::Direction direction, std::uint32_t parameter) const {
    std::uint64_t n = 0;
    const auto accesses = sass::bulk_accesses(module.cubin, cubin, kernel);
    for (const sass::BulkAccess& access : *accesses)
      n += access.direction == direction && access.parameter == parameter;
    return n;
  }
};

std::string label_of(const CountsBlock& block, const std::string& family) {
  for (const FamilyCount& f : block.families)
    if (f.family == family) return f.label;
  return "";
}

using Direction = sass::BulkAccess::Direction;

}  // namespace

TEST_CASE("bytes: of TMA are executions times the box of the plan's map") {
  Run run("pipeline.sm_90a", "k_pipeline", 10, 10);
  run.map(0, 8192);
  run.map(1, 1024);
  run.map(2, 2048);
  const CountsBlock& block = run.compose(100'000);
  const std::uint64_t loads =
      10 * (8192 * run.copies(Direction::load, 0) + 1024 * run.copies(Direction::load, 1));
  REQUIRE(loads > 0);
  CHECK(block.tma_load_bytes == loads);
  CHECK(block.tma_store_bytes == 10u * 2048 * run.copies(Direction::store, 2));
  CHECK(block.bulk_copy_bytes == 0u);
  CHECK(block.bytes.tma_reason.empty());
  CHECK(block.bytes.task == 100'000u);
  REQUIRE(block.bytes.tma_ratio);
  CHECK(*block.bytes.tma_ratio ==
        Approx(static_cast<double>(*block.tma_load_bytes + *block.tma_store_bytes) / 100'000));
  CHECK(block.bytes.tma_ratio_reason.empty());
}

TEST_CASE("bytes: a map that the plan or the code does not show is unknown, with the reason") {
  Run none("pipeline.sm_90a", "k_pipeline", 10, 10);
  none.map(0, 8192);
  none.map(1, std::nullopt);  // im2col, or launches with different boxes
  none.map(2, 2048);
  const CountsBlock& block = none.compose(100'000);
  CHECK(!block.tma_load_bytes);
  CHECK(block.tma_store_bytes.has_value());
  CHECK(contains(block.bytes.tma_reason, "UTMALDG at 0x"));
  CHECK(contains(block.bytes.tma_reason, "no single tensor map"));
  CHECK(!block.bytes.tma_ratio);
  CHECK(block.bytes.tma_ratio_reason == block.bytes.tma_reason);

  Run chosen("pipeline.sm_90a", "k_chosen", 1, 1);
  chosen.map(0, 8192);
  chosen.map(1, 8192);
  CHECK(!chosen.compose().tma_load_bytes);
  CHECK(contains(chosen.verdict.counts.bytes.tma_reason, "not to be seen in the code"));
  CHECK(chosen.verdict.counts.tma_store_bytes == 0u);

  Run im2col("async.sm_90a", "k_tma_load_im2col", 1, 1);
  im2col.map(0, 8192);
  CHECK(!im2col.compose().tma_load_bytes);
  CHECK(contains(im2col.verdict.counts.bytes.tma_reason, "im2col"));

  // What was not executed needs no map.
  Run idle("pipeline.sm_90a", "k_chosen", 0, 0);
  CHECK(idle.compose().tma_load_bytes == 0u);
  CHECK(contains(idle.verdict.counts.bytes.tma_ratio_reason, "this task needs is not known"));
}

TEST_CASE("bytes: of bulk copies, where their sizes are constants") {
  Run run("pipeline.sm_90a", "k_bulk", 3, 96);
  CHECK(!run.compose().bulk_copy_bytes);
  CHECK(contains(run.verdict.counts.bytes.bulk_copy_reason, "not a constant"));
  Run first("pipeline.sm_90a", "k_bulk", 3, 96);
  auto& records = first.evidence.kernels[0].records;
  const auto accesses = sass::bulk_accesses(first.module.cubin, first.cubin, first.kernel);
  std::erase_if(records, [&](const CountRecord& r) { return r.pc_offset == accesses->at(1).pc_offset; });
  CHECK(first.compose().bulk_copy_bytes == 3u * 2048);
}

TEST_CASE("bytes: executions under a guard are its threads, where one thread is active") {
  CHECK(uniform_executions({0, 8, 256}, false) == 8u);
  CHECK(uniform_executions({0, 8, 8}, true) == 8u);
  CHECK(uniform_executions({0, 8, 3}, true) == 3u);
  CHECK(uniform_executions({0, 8, 0}, true) == 0u);
  CHECK(!uniform_executions({0, 8, 256}, true));
}

TEST_CASE("bytes: local memory is spills only where ptxas reports them") {
  const std::string fixture = "module.sm_90a";
  const auto file = cubin_fixture(fixture);
  const sass::Cubin cubin = sass::read_cubin(file).value();
  bool seen = false;
  for (const sass::Kernel& kernel : cubin.kernels) {
    Run run(fixture, kernel.symbol, 2, 64);
    std::uint64_t bytes = 0;
    for (const CountRecord& record : run.evidence.kernels[0].records) {
      sass::Word word;
      std::memcpy(&word.low, file.data() + kernel.code_offset + record.pc_offset, 8);
      std::memcpy(&word.high, file.data() + kernel.code_offset + record.pc_offset + 8, 8);
      const std::string name = sass::decode(cubin.sm, word).mnemonic;
      constexpr std::uint64_t kBytes[8] = {1, 1, 2, 2, 4, 8, 16, 16};
      if (name == "LDL" || name == "STL") bytes += 64 * kBytes[word.high >> 9 & 7];
    }
    INFO(kernel.symbol);
    KernelResources resources;
    resources.symbol = kernel.symbol;
    run.verdict.compile.kernels = {resources};
    CHECK(run.compose().bytes.spill == 0u);
    run.verdict.compile.kernels[0].spill_load_bytes = 4;
    CHECK(run.compose().bytes.spill == bytes);
    run.verdict.compile.kernels.clear();
    CHECK(run.compose().bytes.spill.has_value() == (bytes == 0));
    if (bytes == 0) continue;
    seen = true;
    CHECK(contains(run.verdict.counts.bytes.spill_reason, "whether it spills is not known"));
  }
  CHECK(seen);
}

TEST_CASE("counts: what waits is timing dependent, and what it waits for is not") {
  Run run("pipeline.sm_90a", "k_pipeline", 4, 128);
  const CountsBlock& block = run.compose();
  CHECK(label_of(block, "mbarrier") == "timing_dependent");
  CHECK(label_of(block, "control") == "timing_dependent");
  CHECK(label_of(block, "wgmma") == "counted");
  CHECK(label_of(block, "tma_load") == "counted");
  CHECK(label_of(block, "tma_store") == "counted");
  // A wait that did not happen to be executed more than once leaves exact what was.
  Run exact("pipeline.sm_90a", "k_pipeline", 4, 128);
  const auto varying = sass::varying_instructions(exact.module.cubin, exact.cubin, exact.kernel);
  std::erase_if(exact.evidence.kernels[0].records, [&](const CountRecord& r) {
    return std::find(varying->begin(), varying->end(), r.pc_offset) != varying->end();
  });
  for (const FamilyCount& f : exact.compose().families) CHECK(f.label == "counted");
}

TEST_CASE("counts: waits per mma") {
  // k_bf16_ss: one wgmma, one wait for it.
  Run one("wgmma.sm_90a", "k_bf16_ss", 12, 12 * 32);
  REQUIRE(one.compose().waits_per_mma);
  CHECK(*one.verdict.counts.waits_per_mma == 1.0);
  Run none("async.sm_90a", "k_elect", 4, 128);
  CHECK(!none.compose().waits_per_mma);
}

TEST_CASE("flops: tcgen05.mma with a constant descriptor counts whole products once for its warp") {
  struct Wanted {
    const char* kernel;
    std::uint64_t flops;  // of one
  };
  for (const Wanted& w :
       {Wanted{"k_f16_128x256", 2ull * 128 * 256 * 16}, Wanted{"k_f16_pair_256x128", 2ull * 256 * 128 * 16},
        Wanted{"k_f8_128x64", 2ull * 128 * 64 * 32}, Wanted{"k_sparse_128x128", 1ull * 128 * 128 * 32},
        Wanted{"k_everyone_128x16", 2ull * 128 * 16 * 16}}) {
    INFO(w.kernel);
    for (const std::uint64_t threads : {7u, 7u * 32}) {
      Run run("descriptors.sm_100a", w.kernel, 7, threads);
      const auto mmas = sass::tcgen05_mmas(run.module.cubin, run.cubin, run.kernel);
      const CountsBlock& block = run.compose();
      CHECK(block.flops.total.arch_mma == 7 * w.flops * mmas->size());
      CHECK(block.flops.arch_flops_share_reason.empty());
    }
  }
  for (const char* kernel : {"k_parameter", "k_either", "k_changing", "k_invalid"}) {
    INFO(kernel);
    Run run("descriptors.sm_100a", kernel, 7, 7);
    CHECK(!run.compose().flops.total.arch_mma);
    CHECK(contains(run.verdict.counts.flops.arch_flops_share_reason, "descriptor"));
  }
}

TEST_CASE("bytes: of the emulator's report") {
  EmulatorReport report;
  report.tma_load_bytes = 3000;
  report.tma_store_bytes = 1000;
  EmulatedInstruction mma, wait;
  mma.kernel = wait.kernel = "k";
  mma.text = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16";
  mma.family = "wgmma";
  mma.warps = 16;
  mma.threads = 512;
  wait.text = "wgmma.wait_group.sync.aligned";
  wait.family = "wgmma_sync";
  wait.warps = 4;
  wait.threads = 128;
  report.instructions = {mma, wait};
  Verdict verdict;
  compose_emulated_counts(report, {}, verdict, std::nullopt, 2000);
  CHECK(verdict.counts.bytes.task == 2000u);
  CHECK(verdict.counts.bytes.tma_ratio == 2.0);
  CHECK(!verdict.counts.bytes.spill);
  CHECK(!verdict.counts.bytes.spill_reason.empty());
  CHECK(verdict.counts.waits_per_mma == 0.25);
}
