// Every way to fool a judge, and honest kernels: verified and timed on a GPU.
#include "evaluate_case.hpp"
#include "support/judging_cases.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;

TEST_CASE("gpu: every cheat is caught and every honest kernel passes") {
  const auto context = gpu_context();
  EvaluateOptions options;
  options.count = false;
  options.pairs = 20;
  for (const JudgingCase& c : judging_cases())
    if (c.on != JudgedOn::emulator) check_judging_case(*context, c, options);
}
