// What evidence means: pure functions from what was seen to what the verdict says.
#include "core/json.hpp"
#include "verify/emulated.hpp"
#include "verify/text.hpp"
#include "verify/judge/values.h"

#include <ptxbench/verify.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ptxbench {
namespace {

double rms(double sum_of_squares, std::uint64_t elements) {
  return elements == 0 ? 0 : std::sqrt(sum_of_squares / static_cast<double>(elements));
}

// Limits of the comparator by model error. Honest sums of any order, tensor cores' truncating ones included,
// have 1.00 to 1.01 times the model's RMS error after rounding to 16 bits; the sums of fp16 tensor-core
// accumulators have 1.2 times at K = 512 and 1.5 times at K = 5120, split-K of two parts in bf16 has 1.45
// times, anything coarser more. Before rounding, a tensor core's sum, cut towards zero at every step, is off
// by 2^-16 of the outputs' RMS at K = 21504 and grows with K; sums staged in fp16 by 2^-12. Hence the factor
// and the floor (OutputStatistics::sum_floor).
//
// Where the model is a sample's, the candidate's RMS error is taken of the same elements: outputs of an attention differ
// so much in size that two samples' RMS would not be one number. Over all elements the limits then grow with what the
// sample did not see: by the size of the largest output for the maximum, and by the size of all for the RMS.
constexpr double kRmsFactor = 1.125, kMaxFactor = 4, kMaxSumFactor = 16, kAllFactor = 1.5;
constexpr int kScaleLimit = -12;  // 2^

// What an honest fp32 sum may be off by, before its rounding.
double sum_floor(const OutputStatistics& s, double size, DType output) {
  return std::ldexp(output == DType::float32 ? std::max(1.0, size) : size, s.sum_floor);
}

// Whether the model was computed for some elements only.
bool sampled(const OutputStatistics& s) { return s.has_model && s.model_elements != 0 && s.model_elements < s.elements; }

// What one rounding may be off by: half an ulp of the output's type at the output's RMS.
double rounding_floor(double size, DType output) {
  const judge::FloatFormat format = judge::float_format(static_cast<judge::u32>(output));
  int exponent = 1 - format.bias;
  if (size > 0) exponent = std::max(exponent, std::ilogb(size));
  return std::ldexp(1.0, exponent - static_cast<int>(format.mantissa) - 1);
}

void add(Verdict& verdict, std::string code, Severity severity, std::string message,
         std::string evidence = {}) {
  verdict.findings.push_back({std::move(code), severity, std::move(message), std::move(evidence)});
}

bool recognised(const std::vector<Finding>& diagnosis) {
  return std::any_of(diagnosis.begin(), diagnosis.end(), [](const Finding& f) { return f.code == "wrong_pattern"; });
}

// How far beyond its limits an output is; at most one where it is right.
double badness(const OutputCorrectness& o) {
  double worst = o.ok ? 0 : 2;
  if (o.rms_limit > 0) worst = std::max(worst, o.rms_error / o.rms_limit);
  if (o.max_limit > 0) worst = std::max(worst, o.max_absolute_error / o.max_limit);
  return o.ok ? worst : std::max(worst, 2.0) + static_cast<double>(o.elements_wrong > 0);
}

std::string why_wrong(const OutputCorrectness& o, const OutputEvidence& evidence) {
  std::string text = "output " + o.output + ": ";
  if (o.elements_wrong > 0) {
    text += std::to_string(o.elements_wrong) + " of " + std::to_string(o.elements) + " elements are wrong";
    if (o.first_wrong_index)
      text += "; the first at " + index_text(*o.first_wrong_index) + ": expected " +
              number_text(o.first_wrong_expected) + ", got " + number_text(o.first_wrong_got);
    if (o.comparator == "model_error") {
      text += o.max_limit == 0 ? " (these inputs allow no error)"
                               : " (allowed error " + number_text(o.max_limit) + ")";
    } else if (o.comparator == "tolerance") {
      text += " (allowed error " + number_text(evidence.tolerance.atol) + (evidence.tolerance.either ? " or " : " + ") +
              number_text(evidence.tolerance.rtol) + " * |expected|)";
    }
  } else if (o.comparator == "model_error" && o.rms_error > o.rms_limit) {
    text += "the RMS error " + number_text(o.rms_error) + " is beyond " + number_text(o.rms_limit) +
            "; an fp32 sum in order has " + number_text(o.model_rms_error) + ": the arithmetic is too coarse";
  } else if (o.comparator == "model_error") {
    text += "the outputs are scaled by " + number_text(o.scale) + " on average";
  } else {
    text += "the comparator says that it is wrong";
  }
  return text;
}

std::string fault_code(DeviceFault::Kind kind) {
  switch (kind) {
    case DeviceFault::Kind::illegal_address:
    case DeviceFault::Kind::misaligned:
      return "illegal_address";
    case DeviceFault::Kind::illegal_instruction:
      return "illegal_instruction";
    case DeviceFault::Kind::trap:
      return "trap";
    case DeviceFault::Kind::launch_refused:
      return "launch_refused";
    case DeviceFault::Kind::launch_failed:
      return "launch_failed";
    case DeviceFault::Kind::timeout:
      return "deadline";
    case DeviceFault::Kind::out_of_memory:
      return "out_of_memory";
    case DeviceFault::Kind::hardware:
    case DeviceFault::Kind::other:
      break;
  }
  return "device_fault";
}

}  // namespace

std::string_view input_kind_name(InputKind kind) noexcept {
  return kind == InputKind::random ? "random" : "callback";
}
std::string_view reference_kind_name(ReferenceKind kind) noexcept {
  switch (kind) {
    case ReferenceKind::native:
      return "native";
    case ReferenceKind::solution:
      return "solution";
    default:
      return "callback";
  }
}
std::string_view comparator_kind_name(ComparatorKind kind) noexcept {
  switch (kind) {
    case ComparatorKind::model_error:
      return "model_error";
    case ComparatorKind::tolerance:
      return "tolerance";
    default:
      return "callback";
  }
}

ModelLimits model_limits(const OutputStatistics& s, DType output) noexcept {
  ModelLimits limits;
  limits.exact = s.has_model && s.may_be_exact && s.model_max_error == 0 && !sampled(s);
  const double size = rms(s.sum_squared_reference, s.elements),
               model = rms(s.model_sum_squared_error, sampled(s) ? s.model_elements : s.elements);
  const double rounding = rounding_floor(size, output), sum = sum_floor(s, size, output);
  if (!limits.exact) {
    limits.rms = limits.rms_of_all = kRmsFactor * model + sum;
    double largest = s.model_max_error;
    if (sampled(s)) {
      const double sampled_size = rms(s.sampled_squared_reference, s.model_elements);
      limits.rms_of_all *= kAllFactor * (sampled_size > 0 ? std::max(1.0, size / sampled_size) : 1);
      if (s.sampled_largest_reference > 0) largest *= std::max(1.0, s.largest_reference / s.sampled_largest_reference);
    }
    limits.max = std::max(kMaxFactor * std::max(largest, rounding), kMaxSumFactor * sum);
    // Outputs of an attention are of very different sizes: the largest one's sum, as the floor has it.
    if (!s.may_be_exact) limits.max = std::max(limits.max, kMaxFactor * std::ldexp(s.largest_reference, s.sum_floor));
  }
  // Errors go with the outputs' own size, so the slope scatters by (error / size) * sqrt(sum x^4) / sum x^2:
  // that is 1 / sqrt(n) for outputs of one size and more where a few large ones decide. 2^-12 is what is left
  // for large n.
  limits.scale = std::ldexp(1.0, kScaleLimit);
  if (size > 0 && s.elements > 0) {
    const double even = 1 / std::sqrt(static_cast<double>(s.elements));
    const double spread = std::max(even, std::sqrt(s.sum_fourth_reference) / s.sum_squared_reference);
    limits.scale += 4 * std::max({model, rounding, sum}) / size * spread;
    // Where P takes a few values only, as of small integers, its roundings do not average out, and the model's slope says by
    // how much.
    if (s.has_model && !s.may_be_exact && s.sampled_squared_reference > 0)
      limits.scale += 2 * std::abs(s.model_times_reference / s.sampled_squared_reference - 1);
  }
  return limits;
}

OutputCorrectness judge_output(const OutputEvidence& evidence) {
  const OutputStatistics& s = evidence.statistics;
  OutputCorrectness o;
  if (evidence.callback) o = *evidence.callback;
  o.output = evidence.output;
  o.dtype = evidence.dtype;
  o.elements = 1;
  for (const std::int64_t extent : evidence.shape) o.elements *= static_cast<std::uint64_t>(extent);
  o.comparator = comparator_kind_name(evidence.comparator);
  o.elements_unwritten = evidence.unwritten;
  if (evidence.callback) {
    if (o.elements_checked == 0) o.elements_checked = o.elements;
    return o;
  }
  o.elements_checked = s.elements;
  o.elements_wrong = evidence.wrong;
  if (evidence.first_wrong) {
    o.first_wrong_index = index_of(*evidence.first_wrong, evidence.shape);
    o.first_wrong_expected = evidence.first_wrong_expected;
    o.first_wrong_got = evidence.first_wrong_got;
  }
  const double rms_of_all = rms(s.sum_squared_error, s.elements);
  o.rms_error = sampled(s) ? rms(s.sampled_squared_error, s.model_elements) : rms_of_all;
  o.max_absolute_error = s.max_absolute_error;
  o.max_relative_error = s.max_relative_error;
  if (s.sum_squared_reference > 0) o.scale = s.sum_got_times_reference / s.sum_squared_reference;
  if (s.has_model) {
    o.model_rms_error = rms(s.model_sum_squared_error, sampled(s) ? s.model_elements : s.elements);
    o.model_max_error = s.model_max_error;
  }
  o.ok = evidence.wrong == 0 && s.nonfinite_wrong == 0 && o.elements_checked == o.elements;
  if (evidence.comparator == ComparatorKind::model_error) {
    const ModelLimits limits = model_limits(s, evidence.dtype);
    if (sampled(s) && rms_of_all > limits.rms_of_all) {  // wrong outside the sample: say it in numbers of all elements
      o.rms_error = rms_of_all;
      o.rms_limit = limits.rms_of_all;
      o.max_limit = limits.max;
      o.ok = false;
      return o;
    }
    o.rms_limit = limits.rms;
    o.max_limit = limits.max;
    o.ok = o.ok && o.max_absolute_error <= limits.max && o.rms_error <= limits.rms &&
           std::abs(o.scale - 1) <= limits.scale;
  }
  return o;
}

std::pair<Status, Finding> judge_fault(const DeviceFault& fault) {
  std::string message = fault.message;
  if (message.find(fault.name) == std::string::npos && !fault.name.empty())
    message = fault.name + ": " + message;
  std::string evidence;
  {
    json::Writer writer;
    writer.begin_object().field("name", fault.name).field("code", fault.code);
    if (fault.step) writer.field("step", static_cast<std::uint64_t>(*fault.step));
    writer.end_object();
    evidence = std::move(writer).str();
  }
  return {fault.kind == DeviceFault::Kind::timeout ? Status::timeout : Status::runtime_error,
          {fault_code(fault.kind), Severity::error, std::move(message), std::move(evidence)}};
}

void compose_correctness(const VerifyEvidence& evidence, Verdict& verdict) {
  const auto decide = [&](Status status) {
    verdict.outcome = Outcome::judged;
    verdict.outcome_reason.clear();
    if (!verdict.status) verdict.status = status;
  };
  for (const Finding& finding : evidence.findings) {
    const bool known = std::any_of(verdict.findings.begin(), verdict.findings.end(), [&](const Finding& f) {
      return f.code == finding.code && f.message == finding.message;
    });
    if (!known) verdict.findings.push_back(finding);
  }
  if (!evidence.resolved_plan.empty()) verdict.resolved_plan = evidence.resolved_plan;
  for (const StageTime& stage : evidence.stages)
    verdict.provenance.stages.push_back({"verify." + stage.stage, stage.duration_ns});

  CorrectnessBlock& block = verdict.correctness;
  block = {};
  if (evidence.not_applicable) {
    verdict.outcome = Outcome::not_applicable;
    verdict.outcome_reason = *evidence.not_applicable;
    block.state = Availability::unavailable;
    block.reason = "not applicable: " + *evidence.not_applicable;
    return;
  }
  compose_emulation(evidence, verdict);
  if (evidence.unsupported) {
    // Neither the candidate nor the environment has failed: this device cannot tell.
    if (!verdict.status) {
      verdict.outcome = Outcome::not_run;
      verdict.outcome_reason = "the emulator cannot run it: " + evidence.unsupported->to_string();
    }
    add(verdict, "emulator_unsupported", Severity::warning, evidence.unsupported->to_string());
    block.state = Availability::unavailable;
    block.reason = "the emulator cannot run it";
    return;
  }
  if (evidence.plan_error) {
    const Error& error = *evidence.plan_error;
    add(verdict, error.rule.empty() ? "plan_invalid" : error.rule, Severity::error, error.to_string());
    block.state = Availability::unavailable;
    block.reason = "the launch plan cannot be run";
    decide(Status::compile_error);
    return;
  }

  const DeviceFault* fault = nullptr;
  bool violated = false, wrong = false, unwritten_always = !evidence.trials.empty();
  struct Worst {
    OutputCorrectness output;
    const OutputEvidence* evidence = nullptr;
    const TrialEvidence* trial = nullptr;
    double badness = -1;
  };
  std::vector<Worst> worst;
  int failed_trial = -1;
  for (const TrialEvidence& trial : evidence.trials) {
    // Further runs of a trial count with it.
    if (!trial.extra) ++block.trials;
    bool failed = false;
    if (trial.fault) {
      if (fault == nullptr) fault = &*trial.fault;
      failed = true;
    }
    for (const IntegrityViolation& violation : trial.violations) {
      failed = true;
      if (!violated) verdict.integrity = Integrity::violated;
      violated = true;
      const bool input = violation.kind == IntegrityViolation::Kind::input_clobbered;
      const std::string code = input ? "input_clobbered" : "red_zone";
      const std::string message =
          input
              ? "input " + violation.tensor + " was changed by the run: " + std::to_string(violation.bytes) +
                    " bytes, the first at byte " + std::to_string(violation.first_offset)
              : "memory beside " + violation.tensor +
                    " was changed by the run: " + std::to_string(violation.bytes) + " bytes, the first " +
                    (violation.first_offset < 0
                         ? std::to_string(-violation.first_offset) + " bytes in front of it"
                         : "at byte " + std::to_string(violation.first_offset) + ", behind its end");
      const bool known = std::any_of(verdict.findings.begin(), verdict.findings.end(), [&](const Finding& f) {
        return f.code == code &&
               f.evidence.find("\"tensor\":\"" + violation.tensor + "\"") != std::string::npos;
      });
      if (known) continue;
      json::Writer writer;
      writer.begin_object().field("tensor", violation.tensor).field("first_offset", violation.first_offset);
      writer.field("bytes", violation.bytes).field("trial", trial.trial).end_object();
      add(verdict, code, Severity::error, message, std::move(writer).str());
    }
    bool unwritten_here = false;
    for (std::size_t i = 0; i < trial.outputs.size(); ++i) {
      OutputCorrectness output = judge_output(trial.outputs[i]);
      if (!output.ok) failed = wrong = true;
      unwritten_here = unwritten_here || (!output.ok && output.elements_unwritten > 0);
      if (worst.size() <= i) worst.resize(i + 1);
      const double bad = badness(output);
      if (bad > worst[i].badness) worst[i] = {std::move(output), &trial.outputs[i], &trial, bad};
    }
    if (!trial.fault) unwritten_always = unwritten_always && unwritten_here;
    if (failed && (!trial.extra || failed_trial != trial.trial)) {
      ++block.trials_failed;
      failed_trial = trial.trial;
    }
  }
  for (const Worst& w : worst)
    if (w.evidence != nullptr) block.outputs.push_back(w.output);
  block.state = Availability::measured;
  if (evidence.trials.empty()) {
    block.state = Availability::unavailable;
    block.reason = "no trial was run";
    return;
  }

  for (const Worst& w : worst) {
    if (w.evidence == nullptr || w.output.ok) continue;
    json::Writer writer;
    writer.begin_object().field("output", w.output.output).field("trial", w.trial->trial);
    writer.field("distribution", w.trial->distribution).field("seed", w.trial->seed);
    writer.field("trials", block.trials).field("trials_failed", block.trials_failed).end_object();
    const std::string detail = std::move(writer).str();
    const std::string draw = " (trial " + std::to_string(w.trial->trial) + ", " + w.trial->distribution + " inputs" +
                             (w.trial->extra ? ", schedule " + w.trial->schedule : "") +
                             (w.trial->disturbed ? ", beside other work on the GPU" : "") + ")";
    if (unwritten_always && w.output.elements_unwritten > 0)
      add(verdict, "never_written", Severity::error,
          "output " + w.output.output + ": " +
              (w.output.elements_unwritten >= w.output.elements
                   ? "nothing was written to it"
                   : std::to_string(w.output.elements_unwritten) + " of " +
                         std::to_string(w.output.elements) + " elements were never written") +
              draw,
          detail);
    add(verdict, "wrong_result", Severity::error, why_wrong(w.output, *w.evidence) + draw, detail);
    // The trial that shows a mistake, else the worst one.
    const auto i = static_cast<std::size_t>(&w - worst.data());
    const std::vector<Finding>* shown = &w.evidence->diagnosis;
    for (const TrialEvidence& trial : evidence.trials)
      if (i < trial.outputs.size() && (shown->empty() || (!recognised(*shown) && recognised(trial.outputs[i].diagnosis))))
        shown = &trial.outputs[i].diagnosis;
    verdict.findings.insert(verdict.findings.end(), shown->begin(), shown->end());
  }
  if (const auto& again = evidence.repeated) {
    const std::string k_of_n = std::to_string(block.trials_failed) + " of " + std::to_string(block.trials) + " trials are wrong; ";
    const std::string repeated = "trial " + std::to_string(again->trial) + ", run " + std::to_string(again->runs) +
                                 " times more on the same inputs, was wrong ";
    json::Writer writer;
    writer.begin_object().field("trials", block.trials).field("trials_failed", block.trials_failed);
    writer.field("trial", again->trial).field("runs", again->runs).field("runs_wrong", again->wrong).end_object();
    std::string detail = std::move(writer).str();
    if (again->wrong == again->runs)
      add(verdict, "input_dependent", Severity::note, k_of_n + repeated + "each time: the inputs decide", std::move(detail));
    else
      add(verdict, "non_deterministic", Severity::warning,
          k_of_n + repeated + std::to_string(again->wrong) + " times: not the inputs but the timing decides (a missing barrier, "
          "fence or wait)", std::move(detail));
  }
  if (fault != nullptr) {
    auto [status, finding] = judge_fault(*fault);
    // An emulator has said it already, with the place.
    const bool told = evidence.emulator && std::any_of(evidence.emulator->findings.begin(), evidence.emulator->findings.end(),
                                                       [](const EmulatorFinding& f) { return f.grade == EmulatorFinding::Grade::fault; });
    if (!told || fault->kind == DeviceFault::Kind::launch_refused) verdict.findings.push_back(std::move(finding));
    if (block.outputs.empty()) block.reason = "the run ended in a fault";
    decide(status);
    return;
  }
  if (violated || wrong) {
    decide(Status::incorrect_numerical);
    return;
  }
  decide(Status::passed);
}

void add_trial(const TrialEvidence& trial, std::string_view where, Verdict& verdict) {
  VerifyEvidence one;
  one.trials_requested = 1;
  one.trials.push_back(trial);
  Verdict judged;
  compose_correctness(one, judged);
  CorrectnessBlock& block = verdict.correctness;
  block.trials += 1;
  if (judged.status == Status::passed) return;
  block.trials_failed += 1;
  verdict.outcome = Outcome::judged;
  verdict.status = judged.status;
  if (judged.integrity == Integrity::violated) verdict.integrity = Integrity::violated;
  for (Finding& finding : judged.findings) {
    finding.message += ", " + std::string(where);
    verdict.findings.push_back(std::move(finding));
  }
  for (const OutputCorrectness& output : judged.correctness.outputs) {
    if (output.ok) continue;
    const auto known = std::find_if(block.outputs.begin(), block.outputs.end(),
                                    [&](const OutputCorrectness& o) { return o.output == output.output; });
    if (known == block.outputs.end())
      block.outputs.push_back(output);
    else if (known->ok)
      *known = output;
  }
  if (verdict.timing.state != Availability::measured) return;
  verdict.timing.state = Availability::unavailable;
  verdict.timing.reason = "the candidate failed " + std::string(where);
}

}  // namespace ptxbench
