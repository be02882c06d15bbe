// Every way to fool a judge, and honest kernels, on the emulator through the whole product. tests/gpu has the same on a GPU.
#include "emulator_context.hpp"
#include "support/judging_cases.hpp"

#include <cstdlib>

using namespace ptxbench;
using namespace ptxbench::testing;

TEST_CASE("judging cases: every cheat is caught and every honest kernel passes, on the emulator") {
  const auto context = emulator_context();
  EvaluateOptions options;
  options.time = options.count = false;
  options.trials = 3;
  options.seed = 20261202;
  const char* only = std::getenv("PTXBENCH_CASE");
  for (const JudgingCase& c : judging_cases())
    if (c.on != JudgedOn::gpu && (only == nullptr || c.name == only)) check_judging_case(*context, c, options);
}
