// Candidates that hurt, each followed by a good one that passes, in one process.
#include "evaluate_case.hpp"
#include "support/processes.hpp"

#include <cstdlib>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

EvaluateOptions quick() {
  EvaluateOptions options;
  options.trials = 1;
  options.time = options.count = false;
  options.run_deadline_ns = 1'000'000'000;
  return options;
}

void bad_then_good(const std::string& body, Status status, std::string_view finding, int times) {
  const auto context = gpu_context();
  const Workload workload = vector_add(100'000);
  for (int i = 0; i < times; ++i) {
    const Verdict bad = judge(*context, vector_add_candidate(body), workload, judged_by_addition(), quick());
    INFO(to_json(bad));
    REQUIRE(bad.status == status);
    REQUIRE(bad.find_finding(finding) != nullptr);
    const Verdict good = judge(*context, vector_add_candidate(), workload, judged_by_addition(), quick());
    INFO(to_json(good));
    REQUIRE(good.status == Status::passed);
  }
}

}  // namespace

TEST_CASE("gpu: an illegal address, then a good candidate, 20 times") {
  if (!gpu_or_skip()) return;
  bad_then_good("z[i + (1ll << 44)] = x[0];", Status::runtime_error, "illegal_address", 20);
}

TEST_CASE("gpu: a kernel that never ends, then a good candidate, 20 times") {
  if (!gpu_or_skip()) return;
  bad_then_good("for (volatile int* p = (volatile int*)z;;) if (*p == 42 && *p == 43) return;", Status::timeout, "deadline", 20);
}

TEST_CASE("gpu: a trap, then a good candidate, 20 times") {
  if (!gpu_or_skip()) return;
  bad_then_good("__trap();", Status::runtime_error, "trap", 20);
}

TEST_CASE("gpu: what a kernel prints is in the verdict") {
  if (!gpu_or_skip()) return;
  const auto context = gpu_context();
  Solution solution = vector_add_candidate("if (i < n) z[i] = x[i] + y[i]; if (i == 7) printf(\"hello %d\\n\", i);");
  const Verdict verdict = judge(*context, solution, vector_add(100'000), judged_by_addition(), quick());
  INFO(to_json(verdict));
  CHECK(verdict.status == Status::passed);
  CHECK(verdict.output_log.find("hello 7") != std::string::npos);
}

TEST_CASE("gpu: a reference that traps is an error of the call, and the next judgement finds a healthy device") {
  if (!gpu_or_skip()) return;
  const auto context = gpu_context();
  const Workload workload = vector_add(100'000);
  Judging judging;
  judging.reference = SolutionChoice{std::make_shared<const Solution>(vector_add_candidate("__trap();")), {}};
  judging.baseline = NoBaseline{};
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(evaluate(*context, vector_add_candidate(), {&workload, 1}, judging, quick()));
    const Verdict good = judge(*context, vector_add_candidate(), workload, judged_by_addition(), quick());
    INFO(to_json(good));
    REQUIRE(good.status == Status::passed);
  }
}

TEST_CASE("gpu: a callback that evaluates on the context that calls it gets an error, and nothing hangs") {
  if (!gpu_or_skip()) return;
  const auto context = gpu_context();
  const Workload workload = vector_add(1000);
  Judging judging = judged_by([&](std::span<const HostTensor>, std::span<HostTensor>) {
    const auto inner = evaluate(*context, vector_add_candidate(), {&workload, 1}, judged_by_addition(), quick());
    CHECK_FALSE(inner);
    CHECK(inner.error().code == ErrorCode::state);
  });
  CHECK(judge(*context, vector_add_candidate(), workload, judging, quick()).status == Status::incorrect_numerical);
}
