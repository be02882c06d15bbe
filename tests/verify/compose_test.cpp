// Deciding as a table: evidence in, verdict out.
#include "support/catch.hpp"
#include "verify/wire.hpp"

#include <ptxbench/verify.hpp>

#include <cmath>

using namespace ptxbench;

namespace {

// An output of 100 elements with RMS 64 whose model has an RMS error of 0.1 and a maximum of 0.5.
OutputEvidence right_output() {
  OutputEvidence o;
  o.output = "C";
  o.dtype = DType::bfloat16;
  o.shape = {10, 10};
  o.comparator = ComparatorKind::model_error;
  o.statistics.elements = 100;
  o.statistics.sum_squared_reference = 100 * 64.0 * 64.0;
  o.statistics.sum_got_times_reference = o.statistics.sum_squared_reference;
  o.statistics.has_model = true;
  o.statistics.model_sum_squared_error = 100 * 0.1 * 0.1;
  o.statistics.model_max_error = 0.5;
  o.statistics.sum_squared_error = 100 * 0.1 * 0.1;
  o.statistics.max_absolute_error = 0.5;
  return o;
}

OutputEvidence wrong_output() {
  OutputEvidence o = right_output();
  o.statistics.max_absolute_error = 40;
  o.wrong = 3;
  o.first_wrong = 57;
  o.first_wrong_expected = 64;
  o.first_wrong_got = 24;
  return o;
}

DeviceFault fault(DeviceFault::Kind kind) { return {kind, "CUDA_ERROR_X", 1, true, "it failed", 0}; }

TrialEvidence trial_with(std::vector<OutputEvidence> outputs) {
  TrialEvidence t;
  t.distribution = "gaussian";
  t.outputs = std::move(outputs);
  return t;
}
TrialEvidence trial_fault(DeviceFault::Kind kind) {
  TrialEvidence t;
  t.fault = fault(kind);
  return t;
}
TrialEvidence trial_violation(IntegrityViolation::Kind kind) {
  TrialEvidence t = trial_with({right_output()});
  t.violations.push_back({kind, "A", -4, 2});
  return t;
}

}  // namespace

TEST_CASE("which status wins") {
  struct Row {
    const char* what;
    std::vector<TrialEvidence> trials;
    Status status;
    Integrity integrity;
    const char* finding;
    int failed;
  };
  using Kind = DeviceFault::Kind;
  const TrialEvidence good = trial_with({right_output()}), bad = trial_with({wrong_output()});
  const auto red = trial_violation(IntegrityViolation::Kind::red_zone);
  const auto clobber = trial_violation(IntegrityViolation::Kind::input_clobbered);
  const std::vector<Row> table = {
      {"all right", {good, good, good}, Status::passed, Integrity::clean, nullptr, 0},
      {"one wrong", {good, bad, good}, Status::incorrect_numerical, Integrity::clean, "wrong_result", 1},
      {"red zone", {good, red}, Status::incorrect_numerical, Integrity::violated, "red_zone", 1},
      {"clobbered", {clobber}, Status::incorrect_numerical, Integrity::violated, "input_clobbered", 1},
      {"illegal address",
       {trial_fault(Kind::illegal_address)},
       Status::runtime_error,
       Integrity::clean,
       "illegal_address",
       1},
      {"misaligned",
       {trial_fault(Kind::misaligned)},
       Status::runtime_error,
       Integrity::clean,
       "illegal_address",
       1},
      {"illegal instruction",
       {trial_fault(Kind::illegal_instruction)},
       Status::runtime_error,
       Integrity::clean,
       "illegal_instruction",
       1},
      {"trap", {trial_fault(Kind::trap)}, Status::runtime_error, Integrity::clean, "trap", 1},
      {"refused",
       {trial_fault(Kind::launch_refused)},
       Status::runtime_error,
       Integrity::clean,
       "launch_refused",
       1},
      {"launch failed",
       {trial_fault(Kind::launch_failed)},
       Status::runtime_error,
       Integrity::clean,
       "launch_failed",
       1},
      {"out of memory",
       {trial_fault(Kind::out_of_memory)},
       Status::runtime_error,
       Integrity::clean,
       "out_of_memory",
       1},
      {"unknown", {trial_fault(Kind::other)}, Status::runtime_error, Integrity::clean, "device_fault", 1},
      {"hang", {good, trial_fault(Kind::timeout)}, Status::timeout, Integrity::clean, "deadline", 1},
      {"wrong, then a crash",
       {bad, trial_fault(Kind::trap)},
       Status::runtime_error,
       Integrity::clean,
       "trap",
       2},
      {"red zone, then a hang",
       {red, trial_fault(Kind::timeout)},
       Status::timeout,
       Integrity::violated,
       "red_zone",
       2},
  };
  for (const Row& row : table) {
    INFO(row.what);
    VerifyEvidence evidence;
    evidence.trials = row.trials;
    Verdict verdict;
    compose_correctness(evidence, verdict);
    CHECK(verdict.outcome == Outcome::judged);
    CHECK(verdict.status == row.status);
    CHECK(verdict.integrity == row.integrity);
    CHECK(verdict.correctness.trials == static_cast<int>(row.trials.size()));
    CHECK(verdict.correctness.trials_failed == row.failed);
    if (row.finding == nullptr) {
      CHECK(verdict.findings.empty());
    } else {
      CHECK(verdict.find_finding(row.finding) != nullptr);
    }
    // Findings' evidence is JSON: the record reads back.
    CHECK(parse_verdict(to_json(verdict)));
  }
}

TEST_CASE("a status that an earlier stage set stays") {
  VerifyEvidence evidence;
  evidence.trials = {trial_with({right_output()})};
  Verdict verdict;
  verdict.status = Status::compile_error;
  compose_correctness(evidence, verdict);
  CHECK(verdict.status == Status::compile_error);
}

TEST_CASE("a plan that cannot be run is a compile error with its rule and place") {
  VerifyEvidence evidence;
  evidence.plan_error = make_error(ErrorCode::invalid_argument, "block of 2048 threads",
                                   {"launch.json", "/steps/0/block", 0, 0}, "launch_rule");
  Verdict verdict;
  compose_correctness(evidence, verdict);
  CHECK(verdict.status == Status::compile_error);
  const Finding* finding = verdict.find_finding("launch_rule");
  REQUIRE(finding != nullptr);
  CHECK(finding->message.find("/steps/0/block") != std::string::npos);
  CHECK(verdict.correctness.state == Availability::unavailable);
}

TEST_CASE("nothing run is not a pass") {
  Verdict verdict;
  compose_correctness({}, verdict);
  CHECK_FALSE(verdict.status);
}

TEST_CASE("the worst trial's numbers are shown, with the index in the tensor's shape") {
  VerifyEvidence evidence;
  evidence.trials = {trial_with({right_output()}), trial_with({wrong_output()}),
                     trial_with({right_output()})};
  Verdict verdict;
  compose_correctness(evidence, verdict);
  REQUIRE(verdict.correctness.outputs.size() == 1);
  const OutputCorrectness& c = verdict.correctness.outputs[0];
  CHECK(c.elements_wrong == 3);
  CHECK(c.first_wrong_index == std::vector<std::int64_t>{5, 7});
  CHECK(c.first_wrong_got == 24);
  CHECK_FALSE(c.ok);
  CHECK(verdict.find_finding("wrong_result")->message.find("[5, 7]") != std::string::npos);
}

TEST_CASE("limits by model error: RMS, maximum, slope") {
  const auto judged = [](const auto& change) {
    OutputEvidence o = right_output();
    change(o.statistics);
    return judge_output(o).ok;
  };
  // 1.125 times the model's RMS and 2^-15 of the outputs'; four times its maximum.
  CHECK(model_limits(right_output().statistics, DType::bfloat16).rms ==
        Approx(0.1125 + std::ldexp(64.0, -15)));
  CHECK(model_limits(right_output().statistics, DType::bfloat16).max == Approx(2.0));
  CHECK(judged([](OutputStatistics&) {}));
  CHECK(judged([](OutputStatistics& s) { s.sum_squared_error = 100 * 0.114 * 0.114; }));
  CHECK_FALSE(judged([](OutputStatistics& s) { s.sum_squared_error = 100 * 0.115 * 0.115; }));
  CHECK(judged([](OutputStatistics& s) { s.max_absolute_error = 1.99; }));
  CHECK_FALSE(judged([](OutputStatistics& s) { s.max_absolute_error = 2.01; }));
  CHECK_FALSE(judged([](OutputStatistics& s) { s.nonfinite_wrong = 1; }));
  CHECK_FALSE(judged([](OutputStatistics& s) { s.elements = 99; }));  // one was not checked
  // A model that happens to be right leaves half an ulp (2^(6 - 7 - 1) = 0.25) for the maximum.
  CHECK(judged([](OutputStatistics& s) {
    s.model_max_error = 0.01;
    s.max_absolute_error = 0.99;
  }));
  // Errors grow with the model's.
  CHECK(judged([](OutputStatistics& s) {
    s.model_sum_squared_error = 100 * 2.0 * 2.0;
    s.sum_squared_error = 100 * 2.25 * 2.25;
    s.model_max_error = 8;
    s.max_absolute_error = 31;
  }));
  // The slope: 2^-12 for many elements, more for few.
  const auto slope = [](std::uint64_t elements, double scale) {
    OutputEvidence o = right_output();
    o.shape = {static_cast<std::int64_t>(elements)};
    o.statistics.elements = elements;
    o.statistics.sum_squared_reference = static_cast<double>(elements) * 64 * 64;
    o.statistics.sum_got_times_reference = o.statistics.sum_squared_reference * scale;
    return judge_output(o).ok;
  };
  CHECK(slope(100'000'000, 1 + 0.9 / 4096));
  CHECK_FALSE(slope(100'000'000, 1 + 1.1 / 4096));
  CHECK_FALSE(slope(100'000'000, 1 - 1.1 / 4096));
  CHECK(slope(1, 1 + 1.0 / 256));
  // 1517 bf16 outputs whose sum of squares is that of six: an honest kernel had a slope of 1.00082.
  OutputEvidence few = right_output();
  few.shape = {1517};
  OutputStatistics& s = few.statistics;
  s.elements = 1517;
  s.sum_squared_reference = 1517 * 64.0 * 64.0;
  s.sum_fourth_reference = s.sum_squared_reference * s.sum_squared_reference / 6;
  s.sum_got_times_reference = s.sum_squared_reference * 1.00082;
  CHECK(judge_output(few).ok);
  s.sum_fourth_reference = s.sum_squared_reference * s.sum_squared_reference / 1517;
  CHECK_FALSE(judge_output(few).ok);
}

TEST_CASE("where the model is exact, so must the output be") {
  OutputEvidence o = right_output();
  o.statistics.model_max_error = 0;
  o.statistics.model_sum_squared_error = 0;
  o.statistics.max_absolute_error = 0;
  o.statistics.sum_squared_error = 0;
  CHECK(model_limits(o.statistics, o.dtype).exact);
  CHECK(judge_output(o).ok);
  o.statistics.max_absolute_error = 1e-30;
  CHECK_FALSE(judge_output(o).ok);
  o.statistics.has_model = false;
  CHECK_FALSE(model_limits(o.statistics, o.dtype).exact);
}

TEST_CASE("the floor of fp32 outputs is 2^-15 of the larger of one and the RMS") {
  OutputStatistics s;
  s.elements = 4;
  s.has_model = true;
  s.model_max_error = 1e-12;
  s.sum_squared_reference = 4 * 0.01 * 0.01;
  CHECK(model_limits(s, DType::float32).max == 16 * std::ldexp(1.0, -15));
  CHECK(model_limits(s, DType::float32).rms == std::ldexp(1.0, -15));
  s.sum_squared_reference = 4 * 1024.0 * 1024.0;
  CHECK(model_limits(s, DType::float32).max == 16 * std::ldexp(1024.0, -15));
}

TEST_CASE("a callback's word counts as it is") {
  OutputEvidence o = right_output();
  o.comparator = ComparatorKind::callback;
  o.callback.emplace();
  o.callback->ok = false;
  o.callback->elements_wrong = 7;
  VerifyEvidence evidence;
  evidence.trials = {trial_with({o})};
  Verdict verdict;
  compose_correctness(evidence, verdict);
  CHECK(verdict.status == Status::incorrect_numerical);
  CHECK(verdict.correctness.outputs[0].comparator == "callback");
  CHECK(verdict.correctness.outputs[0].output == "C");
  CHECK(verdict.correctness.outputs[0].elements_wrong == 7);
}

TEST_CASE("never written needs both patterns") {
  OutputEvidence unwritten = wrong_output();
  unwritten.unwritten = 3;
  VerifyEvidence evidence;
  evidence.trials = {trial_with({unwritten}), trial_with({wrong_output()})};
  Verdict once;
  compose_correctness(evidence, once);
  CHECK(once.find_finding("never_written") == nullptr);
  evidence.trials = {trial_with({unwritten}), trial_with({unwritten})};
  Verdict both;
  compose_correctness(evidence, both);
  CHECK(both.find_finding("never_written") != nullptr);
}

TEST_CASE("verify evidence survives the wire") {
  VerifyEvidence evidence;
  evidence.trials = {trial_with({wrong_output()}), trial_fault(DeviceFault::Kind::trap),
                     trial_violation(IntegrityViolation::Kind::red_zone)};
  evidence.trials[0].seed = ~std::uint64_t{0};
  evidence.trials[0].outputs[0].statistics.max_relative_error = INFINITY;
  evidence.plan_error = make_error(ErrorCode::parse, "m", {"f", "/p", 1, 2}, "r");
  evidence.scalars = {{"s", PlanNumber(0.25)}, {"n", PlanNumber(std::int64_t{-3})}, {"b", PlanNumber(true)}};
  evidence.resolved_plan = "{\"a\":1}";
  evidence.stages = {{"plan", 5}};
  const auto back = verify_evidence_from(to_message(evidence));
  REQUIRE(back);
  CHECK(to_message(*back).json == to_message(evidence).json);
  CHECK(back->trials[0].seed == evidence.trials[0].seed);
  CHECK(std::isinf(back->trials[0].outputs[0].statistics.max_relative_error));
  CHECK(back->scalars == evidence.scalars);
  CHECK_FALSE(verify_job_from(to_message(evidence)));
  Message broken = to_message(evidence);
  broken.json.resize(broken.json.size() / 2);
  CHECK_FALSE(verify_evidence_from(broken));
}
