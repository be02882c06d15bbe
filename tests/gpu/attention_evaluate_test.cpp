// A whole attention candidate through the library on a card: verified by the judge's reference, timed against
// cuDNN, counted.
#include "evaluate_case.hpp"
#include "support/attention_solution.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

Verdict judged(Context& context, const Workload& workload, bool causal, bool time) {
  EvaluateOptions options;
  options.time = options.count = time;
  options.headers = hopper_headers();
  Judging judging;  // the library's reference, the library kernel as baseline
  return judge(context, attention_solution(workload, causal), workload, judging, options);
}

// Timed and counted. Where there is no cuDNN the verdict says so, and has a time all the same.
void check_passed(const Verdict& verdict, std::uint64_t heads, std::uint64_t sequence) {
  INFO(to_json(verdict));
  REQUIRE(verdict.status == Status::passed);
  CHECK(verdict.integrity == Integrity::clean);
  CHECK(verdict.correctness.trials_failed == 0);
  REQUIRE(verdict.timing.state == Availability::measured);
  CHECK(verdict.timing.median_ns > 0);
  if (verdict.timing.baseline.empty()) {
    WARN("not compared with cuDNN: " << verdict.timing.reason);
    CHECK(verdict.timing.reason.find("no speedup: ") == 0);
    CHECK_FALSE(verdict.timing.speedup);
  } else {
    // Name, version, algorithm.
    CHECK(verdict.timing.baseline.find("cuDNN 9.") == 0);
    CHECK(verdict.timing.baseline.find(" engine ") != std::string::npos);
    REQUIRE(verdict.timing.speedup);
    CHECK(*verdict.timing.speedup > 0);
    CHECK(verdict.timing.speedup_low <= *verdict.timing.speedup);
    CHECK(*verdict.timing.speedup <= verdict.timing.speedup_high);
    CHECK(verdict.timing.baseline_median_ns > 0);
    CHECK(verdict.timing.pairs > 0);
    WARN("S=" << sequence << ": " << *verdict.timing.speedup << " times as fast as "
              << verdict.timing.baseline);
  }
  INFO(verdict.counts.reason);
  REQUIRE(verdict.counts.state == Availability::measured);
  CHECK(warps_of_family(verdict, "wgmma") == attention_wgmmas(heads, sequence));
  CHECK(warps_of_family(verdict, "tma_load") > 0);
}

}  // namespace

TEST_CASE("gpu: a whole attention is verified, timed against cuDNN and counted, B=4 H=48 S=1024 D=128") {
  if (!gpu_or_skip()) return;
  const auto context = gpu_context();
  const Workload full = shipped_attention("mha_with_lse_d128", {{"S", 1024}});
  check_passed(judged(*context, full, false, true), 192, 1024);
  const Workload masked = shipped_attention("mha_with_lse_d128_causal", {{"S", 1024}});
  check_passed(judged(*context, masked, true, true), 192, 1024);
}

TEST_CASE("gpu: an attention without the mask that its definition has fails, and the mask is named") {
  if (!gpu_or_skip()) return;
  const auto context = gpu_context();
  for (const bool wanted : {true, false}) {
    const Workload workload =
        shipped_attention(wanted ? "mha_with_lse_d128_causal" : "mha_with_lse_d128", {{"S", 1024}});
    const Verdict verdict = judged(*context, workload, !wanted, false);
    INFO(to_json(verdict));
    CHECK(verdict.status == Status::incorrect_numerical);
    for (const char* output : {"O", "LSE"}) {
      INFO(output);
      CHECK(named_pattern(verdict, output) == (wanted ? "missing_mask" : "unwanted_mask"));
    }
  }
}
