// The attention candidate that tests/gpu holds against cuDNN, on the emulator: right, with its counts; and
// without the mask that a definition has, wrong and named.
#include "support/attention_solution.hpp"

#include "emulator_context.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

Verdict judge(Context& context, const Workload& workload, bool causal, bool count,
              ComparatorKind comparator = ComparatorKind::model_error) {
  Judging judging;
  judging.comparator.kind = comparator;
  judging.baseline = NoBaseline{};
  EvaluateOptions options;
  options.time = false;
  options.count = count;
  options.headers = hopper_headers();
  const auto evaluation =
      evaluate(context, attention_solution(workload, causal), {&workload, 1}, judging, options);
  if (!evaluation) FAIL(evaluation.error().to_string());
  return evaluation->verdicts.at(0);
}

}  // namespace

TEST_CASE("a whole attention with wgmma and TMA passes by the library's own reference, and is counted") {
  const auto context = emulator_context();
  const Workload ragged = shipped_attention("mha_with_lse_d128_small", {{"B", 1}, {"H", 2}, {"S", 200}});
  const Verdict verdict = judge(*context, ragged, false, true);
  INFO(to_json(verdict));
  CHECK(verdict.status == Status::passed);
  REQUIRE(verdict.counts.state == Availability::measured);
  CHECK(warps_of_family(verdict, "wgmma") == attention_wgmmas(2, 200));
  CHECK(warps_of_family(verdict, "tma_load") > 0);

  const Workload masked =
      shipped_attention("mha_with_lse_d128_causal_small", {{"B", 1}, {"H", 1}, {"S", 200}});
  const Verdict causal = judge(*context, masked, true, false);
  INFO(to_json(causal));
  CHECK(causal.status == Status::passed);
}

TEST_CASE("a whole attention with the wrong mask fails, and the mask is named") {
  const auto context = emulator_context();
  const Workload masked =
      shipped_attention("mha_with_lse_d128_causal_small", {{"B", 1}, {"H", 1}, {"S", 200}});
  const Verdict missing = judge(*context, masked, false, false);
  INFO(to_json(missing));
  CHECK(missing.status == Status::incorrect_numerical);
  for (const char* output : {"O", "LSE"}) CHECK(named_pattern(missing, output) == "missing_mask");

  const Workload full = shipped_attention("mha_with_lse_d128_small", {{"B", 1}, {"H", 1}, {"S", 128}});
  const Verdict unwanted = judge(*context, full, true, false);
  INFO(to_json(unwanted));
  CHECK(unwanted.status == Status::incorrect_numerical);
  for (const char* output : {"O", "LSE"}) CHECK(named_pattern(unwanted, output) == "unwanted_mask");
  const Verdict tolerant = judge(*context, full, true, false, ComparatorKind::tolerance);
  INFO(to_json(tolerant));
  CHECK(named_pattern(tolerant, "O") == "unwanted_mask");
}
