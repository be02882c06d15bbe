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

constexpr std::uint64_t kShortNs = 50'000;  // where an event's resolution is no small part of a run

std::string run_text(const TimeEvidence& evidence, int number) {
  if (evidence.trials_wanted > 0) return "timed trial " + std::to_string(number);
  return number < 0 ? "warm-up pair " + std::to_string(-number) : "timed pair " + std::to_string(number);
}

void fail(Verdict& verdict, Status status, std::string reason) {
  verdict.outcome = Outcome::judged;
  if (!verdict.status || *verdict.status == Status::passed) verdict.status = status;
  verdict.timing.state = Availability::unavailable;
  verdict.timing.reason = std::move(reason);
}

void compose_failure(const TimedFailure& failure, const std::string& where, Verdict& verdict) {
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

// The numbers stay; what they support does not. The first reason is kept beside a later one.
void inconclusive(TimingBlock& block, const std::string& reason) {
  block.state = Availability::inconclusive;
  block.reason += (block.reason.empty() ? "" : "; ") + reason;
}

void compose_clocks(const GpuConditions& seen, GpuClocks& gpu) {
  gpu.reason = seen.missing;
  gpu.source = seen.source;
  if (seen.samples == 0) {
    gpu.state = Availability::unavailable;
    return;
  }
  gpu.state = Availability::measured;
  gpu.samples = seen.samples;
  gpu.max_sm_mhz = static_cast<int>(seen.max_sm_mhz);
  gpu.sm_mhz_low = static_cast<int>(seen.low.sm_mhz);
  gpu.sm_mhz_high = static_cast<int>(seen.high.sm_mhz);
  gpu.memory_mhz_low = static_cast<int>(seen.low.memory_mhz);
  gpu.memory_mhz_high = static_cast<int>(seen.high.memory_mhz);
  gpu.temperature_c_low = static_cast<int>(seen.low.temperature_c);
  gpu.temperature_c_high = static_cast<int>(seen.high.temperature_c);
  gpu.power_mw_high = static_cast<int>(seen.high.power_mw);
  gpu.limited_by = clock_reason_names(seen.high.reasons);
  for (const OtherProcess& other : seen.others) gpu.other_processes.push_back(static_cast<int>(other.pid));
}

void compose_pairs(const TimeEvidence& evidence, std::optional<double> kept_noise_floor, TimingBlock& block) {
  std::vector<double> ratios;
  for (const TimedPair& pair : evidence.pairs) {
    block.samples_ns.push_back(pair.candidate_ns);
    std::uint64_t baseline = pair.baseline_ns;
    if (baseline != 0) block.baseline_samples_ns.push_back(baseline);
    if (baseline == 0 && evidence.baseline == BaselineKind::fixed_time) baseline = evidence.fixed_ns;
    if (baseline != 0 && pair.candidate_ns != 0)
      ratios.push_back(static_cast<double>(baseline) / static_cast<double>(pair.candidate_ns));
  }
  block.pairs = static_cast<int>(evidence.pairs.size());
  block.median_ns = median(block.samples_ns);
  block.baseline_median_ns =
      evidence.baseline == BaselineKind::fixed_time ? evidence.fixed_ns : median(block.baseline_samples_ns);
  if (evidence.stop_reason == "throttled")
    inconclusive(block, "the hardware throttled the GPU in " + std::to_string(evidence.pairs_discarded) +
                            " pairs, and " + std::to_string(evidence.pairs.size()) + " are left");
  if (block.median_ns == 0) {
    if (!evidence.pairs.empty()) inconclusive(block, "the run is shorter than the clock can tell");
    return;
  }
  if (block.baseline_median_ns == 0 || ratios.empty()) return;
  block.speedup = median_of(ratios);  // of the same numbers as its interval, so that it lies within
  if (const auto interval = median_interval(std::move(ratios))) {
    block.speedup_low = interval->first;
    block.speedup_high = interval->second;
  } else {
    inconclusive(block, std::to_string(evidence.pairs.size()) + " pairs are too few for an interval");
  }
  block.noise_floor = noise_floor(evidence.noise);
  if (!block.noise_floor) block.noise_floor = kept_noise_floor;
  block.tie = block.noise_floor && std::abs(1 - *block.speedup) <= *block.noise_floor;
}

// Medians over trials, and their mean over all; three trials give no interval.
void compose_trials(const TimeEvidence& evidence, TimingBlock& block) {
  double candidate = 0, baseline = 0;
  for (const TimedTrial& trial : evidence.trials) {
    candidate += static_cast<double>(median(trial.candidate_ns));
    baseline += static_cast<double>(median(trial.baseline_ns));
    block.samples_ns.insert(block.samples_ns.end(), trial.candidate_ns.begin(), trial.candidate_ns.end());
    block.baseline_samples_ns.insert(block.baseline_samples_ns.end(), trial.baseline_ns.begin(),
                                     trial.baseline_ns.end());
  }
  block.trials = static_cast<int>(evidence.trials.size());
  if (evidence.trials.empty()) return;
  const auto mean = [&](double sum) {
    return static_cast<std::uint64_t>(std::llround(sum / static_cast<double>(evidence.trials.size())));
  };
  block.median_ns = mean(candidate);
  block.baseline_median_ns =
      evidence.baseline == BaselineKind::fixed_time ? evidence.fixed_ns : mean(baseline);
  if (block.trials < evidence.trials_wanted)
    inconclusive(block, "the protocol wants " + std::to_string(evidence.trials_wanted) +
                            " trials, and the budget ended after " + std::to_string(block.trials));
  if (block.median_ns == 0) return inconclusive(block, "the run is shorter than the clock can tell");
  if (block.baseline_median_ns != 0)
    block.speedup = static_cast<double>(block.baseline_median_ns) / static_cast<double>(block.median_ns);
}

void compose_others(const TimeEvidence& evidence, TimingBlock& block) {
  if (evidence.gpu.others.empty()) return;
  std::string list;
  for (const OtherProcess& other : evidence.gpu.others)
    list += (list.empty() ? "" : ", ") + std::to_string(other.pid) + " (" + std::to_string(other.sm_percent) +
            "% of the SMs)";
  inconclusive(block, "other processes computed on the GPU meanwhile: " + list);
}

// Below what the card can do there is no record to be had, only a run that did not do its work. An operation
// that the library does not know may need less than all of its inputs: there it is a question, not an answer.
void compose_roofline(const Roofline& bound, Verdict& verdict) {
  TimingBlock& block = verdict.timing;
  if (block.median_ns == 0 ||
      static_cast<double>(block.median_ns) >= kRooflineMargin * static_cast<double>(bound.ns))
    return;
  json::Writer writer;
  writer.begin_object().field("median_ns", block.median_ns).field("roofline_ns", bound.ns);
  writer.field("flops", bound.flops)
      .field("input_bytes", bound.bytes)
      .field("basis", bound.basis)
      .end_object();
  std::string message = "the median of " + std::to_string(block.median_ns) + " ns is below the " +
                        std::to_string(bound.ns) + " ns that the card needs at least: " + bound.basis;
  if (!bound.exact) {
    message += "; unless the operation does not need all of its inputs, the work was not done";
    verdict.findings.push_back(
        {"faster_than_roofline", Severity::warning, std::move(message), std::move(writer).str()});
    return;
  }
  verdict.integrity = Integrity::violated;
  verdict.findings.push_back(
      {"faster_than_roofline", Severity::error, std::move(message), std::move(writer).str()});
  block.speedup.reset();
  block.speedup_low = block.speedup_high = std::numeric_limits<double>::quiet_NaN();
  block.tie = false;
  fail(verdict, Status::incorrect_numerical, "faster than the card can be: no time is claimed");
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

std::optional<std::pair<double, double>> noise_interval(const std::vector<TimedPair>& noise) {
  std::vector<double> ratios;
  for (const TimedPair& pair : noise)
    if (pair.candidate_ns != 0 && pair.baseline_ns != 0)
      ratios.push_back(static_cast<double>(pair.baseline_ns) / static_cast<double>(pair.candidate_ns));
  return median_interval(std::move(ratios));
}

std::optional<double> noise_floor(const std::vector<TimedPair>& noise) {
  // One run's ratio may be one by luck; its interval says how far from one it may as well have been.
  if (const auto interval = noise_interval(noise))
    return std::max(std::abs(1 - interval->first), std::abs(1 - interval->second));
  std::vector<std::uint64_t> a, b;
  for (const TimedPair& pair : noise) {
    a.push_back(pair.candidate_ns);
    b.push_back(pair.baseline_ns);
  }
  const std::uint64_t first = median(std::move(a)), second = median(std::move(b));
  if (first == 0 || second == 0) return std::nullopt;
  return std::abs(1 - static_cast<double>(second) / static_cast<double>(first));
}

void compose_timing(const TimeEvidence& evidence, Verdict& verdict, std::optional<double> kept_noise_floor,
                    const std::optional<Roofline>& bound) {
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
    finding.message = "in " + run_text(evidence, evidence.fault_pair) + ": " + finding.message;
    verdict.findings.push_back(std::move(finding));
    fail(verdict, status, "the candidate failed in " + run_text(evidence, evidence.fault_pair));
    return;
  }
  if (evidence.failure) {
    compose_failure(*evidence.failure, run_text(evidence, evidence.failure->pair), verdict);
    return;
  }
  if (!evidence.unavailable.empty() ||
      (evidence.pairs.empty() && evidence.trials.empty() && evidence.pairs_discarded == 0)) {
    block.state = Availability::unavailable;
    block.reason = evidence.unavailable.empty() ? "nothing was timed" : evidence.unavailable;
    return;
  }
  block.state = Availability::measured;
  block.stop_rule = evidence.stop_reason;
  block.l2 = l2_state_name(evidence.l2);
  block.pairs_verified = evidence.pairs_verified;
  block.pairs_discarded = evidence.pairs_discarded;
  block.event_overhead_ns = evidence.event_overhead_ns;
  block.empty_kernel_ns = evidence.empty_kernel_ns;
  compose_clocks(evidence.gpu, block.gpu);
  if (!evidence.baseline_missing.empty()) block.reason = "no speedup: " + evidence.baseline_missing;
  if (evidence.trials_wanted > 0)
    compose_trials(evidence, block);
  else
    compose_pairs(evidence, kept_noise_floor, block);
  if (block.median_ns > 0 && block.median_ns < kShortNs)
    block.method += "; a run this short (below 50 us) is timed by events as well, which tell " +
                    std::to_string(evidence.event_overhead_ns) + " ns of an empty interval";
  if (bound && bound->ns > 0) {
    block.roofline_ns = bound->ns;
    block.roofline_basis = bound->basis;
    compose_roofline(*bound, verdict);
  }
  if (block.state == Availability::measured) compose_others(evidence, block);
}

}  // namespace ptxbench
