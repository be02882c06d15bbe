// The right kernels of tests/fixtures/kernels are right on a card too.
#include "evaluate_case.hpp"
#include "support/kernel_cases.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;

TEST_CASE("every kernel of the collection passes on the GPU") {
  if (!gpu_or_skip()) return;
  auto context = gpu_context();
  EvaluateOptions options;
  options.time = options.count = false;
  options.headers = KnowledgePack::load(PTXBENCH_SOURCE_DIR "/knowledge_packs/hopper").value()->headers();
  for (const std::string& name : kernel_case_names()) {
    INFO(name);
    const KernelCase c = kernel_case(name);
    const Verdict verdict = judge(*context, c.solution, c.workload, c.judging, options);
    INFO(to_json(verdict));
    CHECK(verdict.status == Status::passed);
  }
}
