#include "bench/wire.hpp"
#include "support/catch.hpp"

#include <ptxbench/bench.hpp>

#include <cmath>
#include <numeric>

using namespace ptxbench;

TEST_CASE("the interval of a median has the ranks of the tables") {
  // k and n + 1 - k of 95% intervals for a median (W. J. Conover, Practical Nonparametric Statistics, sign
  // test).
  const auto rank = [](int n) {
    std::vector<double> values(static_cast<std::size_t>(n));
    std::iota(values.begin(), values.end(), 1.0);
    return median_interval(values);
  };
  for (int n = 0; n < 6; ++n) CHECK_FALSE(rank(n));
  CHECK(rank(6) == std::pair(1.0, 6.0));
  CHECK(rank(8) == std::pair(1.0, 8.0));
  CHECK(rank(9) == std::pair(2.0, 8.0));
  CHECK(rank(10) == std::pair(2.0, 9.0));
  CHECK(rank(20) == std::pair(6.0, 15.0));
  CHECK(rank(25) == std::pair(8.0, 18.0));
  CHECK(rank(40) == std::pair(14.0, 27.0));
  REQUIRE(rank(5000));  // no underflow
  CHECK(rank(5000)->first == Approx(2500 - 0.98 * std::sqrt(5000.0)).margin(2));
}

TEST_CASE("the interval does not depend on order, and one outlier does not move it") {
  const auto a = median_interval({5, 1, 4, 2, 3, 6, 8, 7, 9, 10});
  const auto b = median_interval({1, 2, 3, 4, 5, 6, 7, 8, 9, 1e9});
  CHECK(a == std::pair(2.0, 9.0));
  CHECK(b == std::pair(2.0, 9.0));
}

namespace {

TimeEvidence samples(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& pairs) {
  TimeEvidence evidence;
  evidence.baseline = BaselineKind::library;
  evidence.baseline_description = "library";
  evidence.stop_reason = "pairs";
  for (const auto& [candidate, baseline] : pairs) evidence.pairs.push_back({candidate, baseline, false});
  return evidence;
}

Verdict passed() {
  Verdict verdict;
  verdict.outcome = Outcome::judged;
  verdict.status = Status::passed;
  return verdict;
}

}  // namespace

TEST_CASE("speedup is the median of the pairs' ratios") {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pairs(9, {100, 150});
  pairs.push_back({1'000'000, 10});  // an outlier
  Verdict verdict = passed();
  compose_timing(samples(pairs), verdict);
  CHECK(*verdict.timing.speedup == 1.5);
  CHECK(verdict.timing.speedup_low == 1.5);
  CHECK(verdict.timing.samples_ns.size() == 10);
  CHECK(verdict.timing.state == Availability::measured);
}

TEST_CASE("a claim inside the noise floor is a tie") {
  Verdict near = passed(), far = passed(), unknown = passed();
  compose_timing(samples(std::vector<std::pair<std::uint64_t, std::uint64_t>>(10, {1000, 1002})), near,
                 0.003);
  compose_timing(samples(std::vector<std::pair<std::uint64_t, std::uint64_t>>(10, {1000, 1010})), far, 0.003);
  compose_timing(samples(std::vector<std::pair<std::uint64_t, std::uint64_t>>(10, {1000, 1002})), unknown);
  CHECK(near.timing.tie);
  CHECK_FALSE(far.timing.tie);
  CHECK_FALSE(unknown.timing.tie);
  // The evidence's own floor goes before a kept one.
  TimeEvidence evidence = samples(std::vector<std::pair<std::uint64_t, std::uint64_t>>(10, {1000, 1010}));
  evidence.noise.assign(7, {1000, 1020, false});
  Verdict own = passed();
  compose_timing(evidence, own, 0.001);
  CHECK(*own.timing.noise_floor == Approx(0.02));
  CHECK(own.timing.tie);
}

TEST_CASE("the noise floor is the far end of the interval of the baseline's ratio to itself") {
  std::vector<TimedPair> noise;
  for (int i = 0; i < 10; ++i) noise.push_back({1000, static_cast<std::uint64_t>(995 + i), false});
  // Ranks 2 and 9 of ten: 0.996 and 1.003; the medians alone differ by 0.0005.
  CHECK(*noise_floor(noise) == Approx(0.004));
  CHECK(*noise_floor({{1000, 1010, false}}) == Approx(0.01));
  CHECK_FALSE(noise_floor({}));
}

TEST_CASE("numbers of two protocols, or of a cold and a warm L2, have no mean") {
  Evaluation evaluation;
  for (int i = 0; i < 2; ++i) {
    evaluation.verdicts.push_back(passed());
    compose_timing(samples(std::vector<std::pair<std::uint64_t, std::uint64_t>>(10, {1000, 2000})),
                   evaluation.verdicts.back());
  }
  REQUIRE(evaluation.speedup());
  CHECK(*evaluation.speedup() == Approx(2));
  evaluation.verdicts[1].timing.l2 = "warm";
  CHECK_FALSE(evaluation.speedup());
  evaluation.verdicts[1].timing.l2 = "cold";
  evaluation.verdicts[1].provenance.protocol = std::string(kPublished);
  CHECK_FALSE(evaluation.speedup());
}

TEST_CASE("too few pairs are inconclusive, none unavailable") {
  Verdict few = passed(), none = passed(), zero = passed();
  compose_timing(samples({{10, 20}, {10, 20}}), few);
  CHECK(few.timing.state == Availability::inconclusive);
  CHECK(*few.timing.speedup == 2);
  CHECK(std::isnan(few.timing.speedup_low));
  compose_timing(samples({}), none);
  CHECK(none.timing.state == Availability::unavailable);
  CHECK(none.status == Status::passed);
  compose_timing(samples({{0, 20}, {0, 20}}), zero);
  CHECK(zero.timing.state == Availability::inconclusive);
  CHECK_FALSE(zero.timing.speedup);
}

TEST_CASE("a plan that cannot be run any more is a compile error; no clock is no failure") {
  TimeEvidence evidence;
  evidence.plan_error = make_error(ErrorCode::invalid_argument, "no", {}, "launch_rule");
  Verdict verdict = passed();
  compose_timing(evidence, verdict);
  CHECK(verdict.status == Status::compile_error);
  TimeEvidence no_clock;
  no_clock.unavailable = "no clock";
  Verdict other = passed();
  compose_timing(no_clock, other);
  CHECK(other.status == Status::passed);
  CHECK(other.timing.reason == "no clock");
}

TEST_CASE("a failure in a timed run does not soften an earlier one") {
  TimeEvidence evidence;
  evidence.failure.emplace();
  Verdict verdict = passed();
  verdict.status = Status::runtime_error;
  compose_timing(evidence, verdict);
  CHECK(verdict.status == Status::runtime_error);
}

TEST_CASE("time jobs and evidence survive the wire") {
  Definition d;
  d.name = "op";
  d.op_type = "gemm";
  d.axes = {{"M", false, 0, {}}};
  d.inputs = {{"x", std::vector<std::string>{"M"}, DType::bfloat16, {}},
              {"s", std::nullopt, DType::float32, {}}};
  d.outputs = {{"y", std::vector<std::string>{"M"}, DType::bfloat16, {}}};
  TimeJob job;
  job.workload.definition = make_definition(d).value();
  job.workload.axes = {{"M", 12}};
  job.workload.inputs = {{"s", ScalarInput{2.5}}};
  job.workload.uuid = "u";
  job.candidate.solution.name = "c";
  job.candidate.solution.sources = {{"launch.json", std::string("{\0}", 3)}};
  job.candidate.constants = {
      {"BM", PlanNumber(std::int64_t{128})}, {"f", PlanNumber(0.5)}, {"b", PlanNumber(true)}};
  job.candidate.modules = {{"a.cu", {1, 2, 3}, "ptx", {{"k<1>", "_Zk"}}, {}, ""}};
  job.baseline.kind = BaselineKind::solution;
  job.baseline.solution = job.candidate;
  job.seed = ~std::uint64_t{0};
  job.stop_if_slower_than = 0.5;
  job.target_width = 0.01;
  job.l2 = L2State::warm;
  job.warmup_pairs = 7;
  job.comparator.tolerance.either = true;
  job.judge_cubin = {9, 8};
  job.comparator.by_output = {{"y", {0.1, 0.2}}};
  const auto back = time_job_from(to_message(job));
  REQUIRE(back);
  CHECK(to_message(*back).json == to_message(job).json);
  CHECK(to_message(*back).blobs == to_message(job).blobs);
  CHECK(back->seed == job.seed);
  CHECK(back->candidate.solution.sources[0].content.size() == 3);
  CHECK(std::get<bool>(back->candidate.constants[2].second));
  CHECK(std::get<double>(std::get<ScalarInput>(back->workload.inputs[0].second).value) == 2.5);

  TimeEvidence evidence = samples({{1, 2}});
  evidence.fault = DeviceFault{DeviceFault::Kind::trap, "T", 7, true, "m", 3};
  evidence.failure = TimedFailure{-1, {OutputEvidence{}}, {IntegrityViolation{}}};
  evidence.noise = {{5, 6, true}};
  evidence.trials = {{{1, 2}, {3}}};
  evidence.pairs_discarded = 3;
  evidence.l2 = L2State::warm;
  evidence.gpu.add({1700, 3201, 60, 500'000, 0x44});
  evidence.gpu.others = {{12, 50}};
  const auto evidence_back = time_evidence_from(to_message(evidence));
  REQUIRE(evidence_back);
  CHECK(to_message(*evidence_back).json == to_message(evidence).json);
  CHECK(std::isnan(evidence_back->failure->outputs[0].first_wrong_got));

  Message broken = to_message(job);
  broken.blobs.clear();
  CHECK_FALSE(time_job_from(broken));
  broken.json = "{}";
  CHECK_FALSE(time_job_from(broken));
  CHECK_FALSE(time_evidence_from(to_message(job)));
}
