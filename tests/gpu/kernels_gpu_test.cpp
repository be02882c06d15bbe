// The right kernels of tests/fixtures/kernels are right on a card too.
#include "evaluate_case.hpp"
#include "support/kernel_cases.hpp"
#include "support/kernel_outputs.hpp"

#include <cstdlib>

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

// PTXBENCH_RECORD_DIR=DIR test_gpu "[.record]": the output bytes that tests/fixtures/kernel_outputs keeps.
TEST_CASE("record the kernels' output bytes", "[.record]") {
  if (!gpu_or_skip()) return;
  const char* folder = std::getenv("PTXBENCH_RECORD_DIR");
  REQUIRE(folder != nullptr);
  auto context = gpu_context();
  EvaluateOptions options;
  options.time = options.count = false;
  options.trials = 1;
  options.seed = 1;
  options.headers = KnowledgePack::load(PTXBENCH_SOURCE_DIR "/knowledge_packs/hopper").value()->headers();
  std::ofstream file(std::string(folder) + "/h200.bin", std::ios::binary);
  for (const std::string& name : recorded_kernels()) {
    INFO(name);
    KernelCase c = kernel_case(name);
    const auto capture = std::make_shared<Capture>();
    c.judging.own_comparator = capture;
    c.judging.comparator.kind = ComparatorKind::callback;
    const Verdict verdict = judge(*context, c.solution, c.workload, c.judging, options);
    INFO(to_json(verdict));
    REQUIRE(verdict.status == Status::passed);
    file << name << ' ' << capture->bytes.size() << '\n';
    file.write(reinterpret_cast<const char*>(capture->bytes.data()),
               static_cast<std::streamsize>(capture->bytes.size()));
  }
}
