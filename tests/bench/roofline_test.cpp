// The least time of a workload, and what a time below it means.
#include "support/catch.hpp"
#include "support/gemm_case.hpp"

#include <ptxbench/bench.hpp>

#include <cmath>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

DeviceInfo h200() {
  DeviceInfo info;
  info.id = "cuda:GPU-1";
  info.limits.compute_major = 9;
  info.limits.sm_count = 132;
  info.limits.l2_bytes = 60 << 20;
  info.max_sm_khz = 1'980'000;
  info.memory_khz = 3'201'000;
  info.memory_bus_bits = 6016;
  return info;
}

Workload attention(bool backward, bool causal, std::int64_t s) {
  Definition d;
  d.name = "attention";
  d.op_type = "attention";
  d.tags = {causal ? "mask:causal" : "mask:none"};
  d.axes = {{"B", true, 4, {}}, {"H", true, 48, {}}, {"S", false, 0, {}}, {"D", true, 128, {}}};
  const std::vector<std::string> tensor{"B", "H", "S", "D"}, rows{"B", "H", "S"};
  const auto half = DType::bfloat16;
  d.inputs = {{"Q", tensor, half, {}}, {"K", tensor, half, {}}, {"V", tensor, half, {}}};
  d.outputs = {{"O", tensor, half, {}}, {"L", rows, DType::float32, {}}};
  if (backward) {
    d.inputs.push_back({"O", tensor, half, {}});
    d.inputs.push_back({"dO", tensor, half, {}});
    d.inputs.push_back({"L", rows, DType::float32, {}});
    d.outputs = {{"dQ", tensor, half, {}}, {"dK", tensor, half, {}}, {"dV", tensor, half, {}}};
  }
  Workload w;
  w.definition = make_definition(std::move(d)).value();
  w.axes = {{"S", s}};
  w.uuid = "s";
  return make_workload(std::move(w)).value();
}

TimeEvidence ten_pairs(std::uint64_t candidate, std::uint64_t baseline) {
  TimeEvidence evidence;
  evidence.baseline = BaselineKind::library;
  evidence.baseline_description = "library";
  evidence.stop_reason = "pairs";
  evidence.pairs.assign(10, {candidate, baseline, false});
  return evidence;
}

Verdict judged(const TimeEvidence& evidence, const std::optional<Roofline>& bound) {
  Verdict verdict;
  verdict.outcome = Outcome::judged;
  verdict.status = Status::passed;
  compose_timing(evidence, verdict, std::nullopt, bound);
  return verdict;
}

}  // namespace

TEST_CASE("a GEMM is bound by its tensor cores at the highest clock, or by reading A and B once") {
  const Workload large = gemm_workload(gemm_definition(7168, 5120), 8192);
  const auto bound = roofline(large, h200(), L2State::cold);
  REQUIRE(bound);
  CHECK(bound->flops == 2.0 * 8192 * 7168 * 5120);
  CHECK(bound->compute_ns == Approx(2.0 * 8192 * 7168 * 5120 / (132 * 4096 * 1.98)).epsilon(1e-9));
  CHECK(bound->bytes == 2.0 * 5120 * (8192 + 7168));
  CHECK(bound->memory_ns == Approx(bound->bytes / 4814.304).epsilon(1e-6));
  CHECK(bound->ns == static_cast<std::uint64_t>(bound->compute_ns));
  CHECK(bound->exact);
  CHECK(bound->basis.find("bfloat16, 132 SMs, 1980 MHz") != std::string::npos);

  const auto thin = roofline(gemm_workload(gemm_definition(7168, 5120), 1), h200(), L2State::cold);
  REQUIRE(thin);
  CHECK(thin->ns == static_cast<std::uint64_t>(thin->memory_ns));
  CHECK(thin->basis.find("MB of inputs") != std::string::npos);
  // What the L2 may hold need not be read.
  const auto warm = roofline(gemm_workload(gemm_definition(7168, 5120), 1), h200(), L2State::warm);
  REQUIRE(warm);
  CHECK(warm->bytes == Approx(thin->bytes - (60 << 20)));
  // The larger clock of the two counts.
  CHECK(roofline(large, h200(), L2State::cold, 2100)->compute_ns < bound->compute_ns);
  CHECK(roofline(large, h200(), L2State::cold, 1000)->compute_ns == bound->compute_ns);
}

TEST_CASE("fp32 may be computed in tf32, and what is not known bounds nothing") {
  const auto wide = roofline(gemm_workload(gemm_definition(7168, 5120, DType::float32, DType::float32), 8192),
                             h200(), L2State::cold);
  REQUIRE(wide);
  CHECK(wide->compute_ns == Approx(2.0 * 8192 * 7168 * 5120 / (132 * 2048 * 1.98)).epsilon(1e-9));
  DeviceInfo unknown = h200();
  unknown.limits.compute_major = 12;
  CHECK(roofline(gemm_workload(gemm_definition(64, 64), 64), unknown, L2State::cold)->compute_ns == 0);
  CHECK(roofline(gemm_workload(gemm_definition(64, 64), 64), DeviceInfo{}, L2State::cold) == std::nullopt);
}

TEST_CASE("attention: two products forward, five backward; of a causal one the scores that count, exactly") {
  const double heads = 4 * 48, d = 128;
  CHECK(roofline(attention(false, false, 4096), h200(), L2State::cold)->flops == 4 * heads * d * 4096 * 4096);
  CHECK(roofline(attention(false, true, 4096), h200(), L2State::cold)->flops ==
        4 * heads * d * 4096 * 4097 / 2);
  CHECK(roofline(attention(true, false, 1024), h200(), L2State::cold)->flops == 10 * heads * d * 1024 * 1024);
  CHECK(roofline(attention(true, true, 1024), h200(), L2State::cold)->flops ==
        10 * heads * d * 1024 * 1025 / 2);
  CHECK(roofline(attention(true, true, 1), h200(), L2State::cold)->flops == 10 * heads * d);
}

TEST_CASE("a time below the roofline is no record but a violation; an honest one near it is fine") {
  const auto bound = roofline(gemm_workload(gemm_definition(7168, 5120), 8192), h200(), L2State::cold);
  REQUIRE(bound);
  const Verdict cheat = judged(ten_pairs(bound->ns * 96 / 100, 750'000), bound);
  CHECK(cheat.status == Status::incorrect_numerical);
  CHECK(cheat.integrity == Integrity::violated);
  REQUIRE(cheat.find_finding("faster_than_roofline") != nullptr);
  CHECK(cheat.find_finding("faster_than_roofline")->severity == Severity::error);
  CHECK(cheat.timing.state == Availability::unavailable);
  CHECK_FALSE(cheat.timing.speedup);
  CHECK(std::isnan(cheat.timing.speedup_low));

  for (const std::uint64_t percent : {98, 100, 133}) {
    const Verdict honest = judged(ten_pairs(bound->ns * percent / 100, 750'000), bound);
    CHECK(honest.status == Status::passed);
    CHECK(honest.integrity == Integrity::clean);
    CHECK(honest.findings.empty());
    CHECK(honest.timing.state == Availability::measured);
    CHECK(honest.timing.roofline_ns == bound->ns);
    CHECK(honest.timing.roofline_basis == bound->basis);
  }
}

TEST_CASE(
    "an operation that is not known is asked about, not failed: it may need less than all of its inputs") {
  Definition d;
  d.name = "lookup";
  d.op_type = "embedding";
  d.axes = {{"N", true, 1 << 20, {}}, {"D", true, 1024, {}}, {"M", false, 0, {}}};
  d.inputs = {{"table", std::vector<std::string>{"N", "D"}, DType::bfloat16, {}},
              {"index", std::vector<std::string>{"M"}, DType::int32, {}}};
  d.outputs = {{"rows", std::vector<std::string>{"M", "D"}, DType::bfloat16, {}}};
  Workload w;
  w.definition = make_definition(std::move(d)).value();
  w.axes = {{"M", 16}};
  w.uuid = "m";
  const auto bound = roofline(make_workload(std::move(w)).value(), h200(), L2State::cold);
  REQUIRE(bound);
  CHECK_FALSE(bound->exact);
  CHECK(bound->flops == 0);
  const Verdict verdict = judged(ten_pairs(5000, 6000), bound);
  CHECK(verdict.status == Status::passed);
  CHECK(verdict.integrity == Integrity::clean);
  CHECK(verdict.timing.state == Availability::measured);
  REQUIRE(verdict.find_finding("faster_than_roofline") != nullptr);
  CHECK(verdict.find_finding("faster_than_roofline")->severity == Severity::warning);
}
