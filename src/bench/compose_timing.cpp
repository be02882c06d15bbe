// What samples mean: medians, the interval of the ratio, ties; and what a failure in a timed run means.
#include "core/json.hpp"

#include <ptxbench/bench.hpp>

#include <algorithm>
#include <cmath>

namespace ptxbench {
namespace {

std::uint64_t median(std::vector<std::uint64_t> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  if (n % 2 == 1) return values[n / 2];
  return values[n / 2 - 1] + (values[n / 2] - values[n / 2 - 1]) / 2;
}

std::string pair_text(int pair) {
  return pair < 0 ? "warm-up pair " + std::to_string(-pair) : "timed pair " + std::to_string(pair);
}

void fail(Verdict& verdict, Status status, std::string reason) {
  verdict.outcome = Outcome::judged;
  if (!verdict.status || *verdict.status == Status::passed) verdict.status = status;
  verdict.timing.state = Availability::unavailable;
  verdict.timing.reason = std::move(reason);
}

void compose_failure(const TimedFailure& failure, Verdict& verdict) {
  const std::string where = pair_text(failure.pair);
  for (const IntegrityViolation& violation : failure.violations) {
    verdict.integrity = Integrity::violated;
    const bool input = violation.kind == IntegrityViolation::Kind::input_clobbered;
    json::Writer writer;
    writer.begin_object().field("tensor", violation.tensor).field("first_offset", violation.first_offset);
    writer.field("bytes", violation.bytes).field("pair", failure.pair).end_object();
    verdict.findings.push_back({input ? "input_clobbered" : "red_zone", Severity::error,
                                (input ? "input " : "memory beside ") + violation.tensor +
                                    " was changed in " + where + ", the first byte at " +
                                    std::to_string(violation.first_offset),
                                std::move(writer).str()});
  }
  for (const OutputEvidence& evidence : failure.outputs) {
    const OutputCorrectness output = judge_output(evidence);
    if (output.ok) continue;
    std::string message =
        "output " + output.output + " was right in verification and wrong in " + where + ": ";
    if (output.elements_unwritten > 0)
      message += std::to_string(output.elements_unwritten) + " of " + std::to_string(output.elements) +
                 " elements were not written";
    else if (output.elements_wrong > 0)
      message += std::to_string(output.elements_wrong) + " of " + std::to_string(output.elements) +
                 " elements are wrong";
    else
      message += "its error is beyond the limits";
    json::Writer writer;
    writer.begin_object().field("output", output.output).field("pair", failure.pair);
    writer.field("elements_wrong", output.elements_wrong)
        .field("elements_unwritten", output.elements_unwritten);
    if (output.first_wrong_index) {
      writer.key("first_wrong_index").begin_array();
      for (const std::int64_t i : *output.first_wrong_index) writer.integer(i);
      writer.end_array();
      writer.field("expected", output.first_wrong_expected).field("got", output.first_wrong_got);
    }
    writer.end_object();
    verdict.findings.push_back(
        {"wrong_in_timed_run", Severity::error, std::move(message), std::move(writer).str()});
  }
  fail(verdict, Status::incorrect_numerical, "the candidate was wrong in " + where);
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

std::string_view baseline_kind_name(BaselineKind kind) noexcept {
  switch (kind) {
    case BaselineKind::library:
      return "library";
    case BaselineKind::solution:
      return "solution";
    case BaselineKind::fixed_time:
      return "fixed_time";
    case BaselineKind::none:
      break;
  }
  return "none";
}

std::optional<std::pair<double, double>> median_interval(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  // P(Bin(n, 1/2) = j) in logarithms, because 2^-n underflows.
  double below = 0;  // P(Bin(n, 1/2) < k)
  std::size_t best = 0;
  for (std::size_t k = 1; k <= (n + 1) / 2; ++k) {
    const auto j = static_cast<double>(k - 1), size = static_cast<double>(n);
    below += std::exp(std::lgamma(size + 1) - std::lgamma(j + 1) - std::lgamma(size - j + 1) -
                      size * std::log(2.0));
    if (below > 0.025) break;
    best = k;
  }
  if (best == 0) return std::nullopt;
  return std::pair(values[best - 1], values[n - best]);
}

std::optional<double> noise_floor(const std::vector<TimedPair>& noise) {
  if (noise.empty()) return std::nullopt;
  std::vector<std::uint64_t> a, b;
  for (const TimedPair& pair : noise) {
    a.push_back(pair.candidate_ns);
    b.push_back(pair.baseline_ns);
  }
  const std::uint64_t first = median(std::move(a)), second = median(std::move(b));
  if (first == 0 || second == 0) return std::nullopt;
  return std::abs(1 - static_cast<double>(second) / static_cast<double>(first));
}

void compose_timing(const TimeEvidence& evidence, Verdict& verdict, std::optional<double> kept_noise_floor) {
  TimingBlock& block = verdict.timing;
  block = {};
  block.method = evidence.method;
  block.baseline = evidence.baseline_missing.empty() ? evidence.baseline_description : "";
  for (const StageTime& stage : evidence.stages)
    verdict.provenance.stages.push_back({"time." + stage.stage, stage.duration_ns});
  if (evidence.plan_error) {
    const Error& error = *evidence.plan_error;
    verdict.findings.push_back(
        {error.rule.empty() ? "plan_invalid" : error.rule, Severity::error, error.to_string(), {}});
    fail(verdict, Status::compile_error, "the launch plan cannot be run");
    return;
  }
  if (evidence.fault) {
    auto [status, finding] = judge_fault(*evidence.fault);
    finding.message = "in " + pair_text(evidence.fault_pair) + ": " + finding.message;
    verdict.findings.push_back(std::move(finding));
    fail(verdict, status, "the candidate failed in " + pair_text(evidence.fault_pair));
    return;
  }
  if (evidence.failure) {
    compose_failure(*evidence.failure, verdict);
    return;
  }
  if (!evidence.unavailable.empty() || evidence.pairs.empty()) {
    block.state = Availability::unavailable;
    block.reason = evidence.unavailable.empty() ? "nothing was timed" : evidence.unavailable;
    return;
  }

  std::vector<double> ratios;
  for (const TimedPair& pair : evidence.pairs) {
    block.samples_ns.push_back(pair.candidate_ns);
    std::uint64_t baseline = pair.baseline_ns;
    if (baseline != 0) block.baseline_samples_ns.push_back(baseline);
    if (baseline == 0 && evidence.baseline == BaselineKind::fixed_time) baseline = evidence.fixed_ns;
    if (baseline != 0 && pair.candidate_ns != 0)
      ratios.push_back(static_cast<double>(baseline) / static_cast<double>(pair.candidate_ns));
  }
  block.state = Availability::measured;
  block.pairs = static_cast<int>(evidence.pairs.size());
  block.median_ns = median(block.samples_ns);
  block.baseline_median_ns =
      evidence.baseline == BaselineKind::fixed_time ? evidence.fixed_ns : median(block.baseline_samples_ns);
  if (!evidence.stop_reason.empty()) block.method += "; stopped by " + evidence.stop_reason;
  if (!evidence.baseline_missing.empty()) block.reason = "no speedup: " + evidence.baseline_missing;
  if (block.median_ns == 0) {
    block.state = Availability::inconclusive;
    block.reason = "the run is shorter than the clock can tell";
    return;
  }
  if (block.baseline_median_ns == 0 || ratios.empty()) return;
  block.speedup = median_of(ratios);  // of the same numbers as its interval, so that it lies within
  if (const auto interval = median_interval(std::move(ratios))) {
    block.speedup_low = interval->first;
    block.speedup_high = interval->second;
  } else {
    block.state = Availability::inconclusive;
    block.reason = std::to_string(evidence.pairs.size()) + " pairs are too few for an interval";
  }
  block.noise_floor = noise_floor(evidence.noise);
  if (!block.noise_floor) block.noise_floor = kept_noise_floor;
  block.tie = block.noise_floor && std::abs(1 - *block.speedup) <= *block.noise_floor;
}

}  // namespace ptxbench
