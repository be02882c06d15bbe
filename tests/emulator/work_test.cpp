// What the emulator's counts say of whole kernels: a GEMM's FLOPs are exactly its tiles'.
#include "support/kernel_emulation.hpp"

#include <ptxbench/bench.hpp>
#include <ptxbench/count.hpp>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

CountsBlock counted(Context& context, EmulatedDevice& device, const std::string& name) {
  const KernelCase c = kernel_case(name);
  const Emulation run = emulate(device, c, compiled_case(context, c), {});
  INFO(name << "\n" << words(run.report));
  REQUIRE(run.verdict.status == Status::passed);
  const std::optional<TaskWork> work = task_work(c.workload);
  REQUIRE(work);
  Verdict verdict;
  compose_emulated_counts(run.report, {}, verdict, work->flops);
  return verdict.counts;
}

}  // namespace

TEST_CASE("a GEMM's mma work is what its tiles make of it") {
  const auto context = compile_only_context();
  auto device = open_emulator_device({});
  if (!device) FAIL(device.error().to_string());

  // M=70 N=72 K=256 in tiles of 64x64x32: 2x2 tiles of 8 steps.
  const CountsBlock warps = counted(*context, **device, "gemm_mma_cp_async");
  CHECK(warps.flops.total.mma_sync == 2u * 128 * 128 * 256);
  CHECK(warps.flops.total.arch_mma == 0u);
  CHECK(warps.flops.task_flops == 2u * 70 * 72 * 256);
  CHECK(warps.flops.mma_work_ratio == (128.0 * 128 * 256) / (70.0 * 72 * 256));
  CHECK(warps.flops.total.arch_flops_share == 0.0);
  CHECK(warps.architecture.published == false);
  CHECK(warps.architecture.strict == false);

  // M=70 N=136 K=296 in tiles of 64x64x32: 2x3 tiles of 10 steps.
  const CountsBlock own = counted(*context, **device, "gemm_wgmma_64b");
  CHECK(own.flops.total.arch_mma == 2u * 128 * 192 * 320);
  CHECK(own.flops.total.mma_sync == 0u);
  CHECK(own.flops.mma_work_ratio == (128.0 * 192 * 320) / (70.0 * 136 * 296));
  CHECK(own.flops.total.arch_flops_share == 1.0);
  CHECK(own.architecture.published == true);
  CHECK(own.architecture.strict == true);

  // No matrix instructions at all: every product is a fused multiply-add.
  const CountsBlock naive = counted(*context, **device, "gemm_naive");
  CHECK(naive.flops.mma_work_ratio == 0.0);
  CHECK(naive.flops.total.fp32 >= naive.flops.task_flops.value());
  CHECK(naive.architecture.strict == false);
}
