// Rows E, T and J of the conformance cases, by their numbers, and the export of verdicts.
#include "support/catch.hpp"
#include "trace/edit.hpp"

#include <ptxbench/trace.hpp>

#include <cmath>
#include <limits>

using namespace ptxbench;
using test::edit;
using test::kDefinition;
using test::kRemove;
using test::kSolution;
using test::kTrace;
using test::kWorkload;

namespace {

struct Row {
  const char* id;
  const char* pointer;
  std::string_view text;
  bool accept;
};

const Row kRows[] = {
    {"E01", "/evaluation/correctness", "{}", true},
    {"E01", "/evaluation/performance", "{}", true},
    {"E03", "/evaluation/performance", kRemove, false},
    {"E03", "/evaluation/performance", "null", false},
    {"E03", "/evaluation/correctness", "null", false},
    {"E12", "/evaluation/status", R"("passed")", false},
    {"E12", "/evaluation/status", R"("FAILED")", false},
    {"E12", "/evaluation/status", R"("OK")", false},
    {"E12", "/evaluation/status", R"("")", false},
    {"E12", "/evaluation/status", "null", false},
    {"E12", "/evaluation/status", R"("REWARD_HACK")", false},
    {"E13", "/evaluation/environment", kRemove, false},
    {"E14", "/evaluation/environment/hardware", R"("")", false},
    {"E15", "/evaluation/environment/libs", "null", false},
    {"E15", "/evaluation/environment/libs", kRemove, true},
    {"E16", "/evaluation/environment/libs", R"({"cuda": 12})", false},
    {"E17", "/evaluation/environment/device", "1", true},
    {"E18", "/evaluation/timestamp", kRemove, false},
    {"E18", "/evaluation/timestamp", R"("")", false},
    {"E20", "/evaluation/timestamp", R"("yesterday")", true},
    {"E20b", "/evaluation/timestamp", "5", false},
    {"E21", "/evaluation/log", "null", false},
    {"E22", "/evaluation/log", kRemove, true},
    {"E23", "/evaluation/correctness/max_absolute_error", "0", true},
    {"E23", "/evaluation/correctness/max_absolute_error", "1", true},
    {"E23", "/evaluation/correctness/max_absolute_error", "0.5", true},
    {"E23", "/evaluation/correctness/max_absolute_error", "-0.0", true},
    {"E23", "/evaluation/correctness/max_absolute_error", "-1", false},
    {"E23", "/evaluation/correctness/max_absolute_error", R"("inf")", true},
    {"E23", "/evaluation/correctness/max_absolute_error", R"("Infinity")", true},
    {"E23", "/evaluation/correctness/max_absolute_error", R"("infinity")", true},
    {"E23", "/evaluation/correctness/max_absolute_error", R"("-inf")", false},
    {"E23", "/evaluation/correctness/max_absolute_error", R"("-Infinity")", false},
    {"E23", "/evaluation/correctness/max_absolute_error", R"("1e-3")", true},
    {"E23", "/evaluation/correctness/max_absolute_error", R"("nan")", true},
    {"E23", "/evaluation/correctness/max_absolute_error", R"("0x1")", false},
    {"E23", "/evaluation/correctness/max_absolute_error", R"("")", false},
    {"E23", "/evaluation/correctness/max_absolute_error", R"("1__0")", false},
    {"E23", "/evaluation/correctness/max_absolute_error", "null", false},
    {"E23", "/evaluation/correctness/max_absolute_error", "true", true},
    {"E24", "/evaluation/correctness/extra", R"({"a": 1})", true},
    {"E24", "/evaluation/correctness/extra", "null", true},
    {"E24", "/evaluation/correctness/extra", "[1]", false},
    {"E27", "/evaluation/performance/latency_ms", "0", true},
    {"E27", "/evaluation/performance/latency_ms", "1.5", true},
    {"E27", "/evaluation/performance/latency_ms", "-1", false},
    {"E27", "/evaluation/performance/latency_ms", R"("nan")", false},
    {"E27", "/evaluation/performance/latency_ms", R"("inf")", true},
    {"E27", "/evaluation/performance/latency_ms", "null", false},
    {"E28", "/evaluation/performance/speedup_factor", "9", true},
    {"T03", "/solution", R"("s")", true},
    {"T04", "/evaluation", kRemove, false},  // ours
    {"T05", "/solution", kRemove, false},    // ours
    {"T05", "/solution", R"("")", false},    // ours
    {"T06", "/definition", R"("")", false},
    {"T08", "/workload", kRemove, false},
    {"J3", "/evaluation/performance/latency_ms", "-Infinity", false},
    {"J4", "/evaluation/performance/latency_ms", "Infinity", true},
    {"J5", "/evaluation/correctness/max_absolute_error", "NaN", true},
    {"J6", "/evaluation/correctness/extra", R"({"tvd": Infinity})", true},
};

Verdict passed() {
  Verdict v;
  v.workload_uuid = "w";
  v.outcome = Outcome::judged;
  v.status = Status::passed;
  v.correctness.state = Availability::measured;
  OutputCorrectness o;
  o.output = "B";
  o.max_absolute_error = 0.5;
  o.max_relative_error = 0.125;
  v.correctness.outputs = {o};
  v.timing.state = Availability::measured;
  v.timing.median_ns = 1500000;
  v.timing.baseline_median_ns = 3000000;
  v.timing.speedup = 2.0;
  v.provenance.device = "cuda:GPU-1";
  v.provenance.device_name = "NVIDIA H200";
  v.provenance.ptxbench_version = "0.1.0";
  return v;
}

Result<Trace> export_of(const Verdict& v) {
  const auto d = parse_definition(kDefinition).value();
  return trace_from_verdict(parse_workload(d, kWorkload).value(), parse_solution(kSolution).value(), v,
                            "2026-01-01T00:00:00");
}

}  // namespace

TEST_CASE("trace: conformance rows") {
  for (const Row& row : kRows) {
    INFO(row.id << " " << row.pointer << " = " << row.text);
    const auto result = parse_trace(nullptr, edit(kTrace, row.pointer, row.text), "t.jsonl");
    REQUIRE(result.has_value() == row.accept);
    if (!result) continue;
    const std::string line = to_json_line(*result);
    REQUIRE(line.find('\n') == std::string::npos);
    const auto again = parse_trace(nullptr, line);
    REQUIRE(again);
    REQUIRE(to_json_line(*again) == line);
  }
}

TEST_CASE("trace: E05 to E10, which parts a status has") {
  for (const char* status : {"PASSED", "INCORRECT_SHAPE", "INCORRECT_NUMERICAL", "INCORRECT_DTYPE",
                             "RUNTIME_ERROR", "COMPILE_ERROR", "TIMEOUT"}) {
    const bool wants_correctness =
        status == std::string("PASSED") || status == std::string("INCORRECT_NUMERICAL");
    const bool wants_performance = status == std::string("PASSED");
    const std::string base = edit(kTrace, "/evaluation/status", "\"" + std::string(status) + "\"");
    for (const char* correctness : {"", "null", "{}"}) {
      for (const char* performance : {"", "null", "{}"}) {
        INFO(status << " " << correctness << " " << performance);
        const auto result = parse_trace(nullptr, edit(edit(base, "/evaluation/correctness", correctness),
                                                      "/evaluation/performance", performance));
        const bool right = (correctness == std::string("{}")) == wants_correctness &&
                           (performance == std::string("{}")) == wants_performance;
        REQUIRE(result.has_value() == right);
      }
    }
  }
}

TEST_CASE("trace: T02, a workload's line") {
  const std::string line = edit(edit(kTrace, "/solution", "null"), "/evaluation", "null");
  const auto trace = parse_trace(nullptr, line).value();
  REQUIRE_FALSE(trace.solution);
  REQUIRE(trace.workload.definition == nullptr);
  REQUIRE(
      to_json_line(trace) ==
      R"({"definition":"d","workload":{"axes":{"M":2},"inputs":{"A":{"type":"random"}},"uuid":"w"},"solution":null,"evaluation":null})");
}

TEST_CASE("trace: values are coerced as the schema's reader does") {
  const auto correctness = [](std::string_view text) {
    return parse_trace(nullptr, edit(kTrace, "/evaluation/correctness/max_absolute_error", text))
        .value()
        .evaluation->correctness->max_absolute_error;
  };
  REQUIRE(correctness("true") == 1.0);
  REQUIRE(correctness("\" 1_0.5e1 \"") == 105.0);
  REQUIRE(std::isnan(correctness("NaN")));
  REQUIRE(std::isinf(correctness("\"+INF\"")));
  const auto line = to_json_line(
      parse_trace(nullptr, edit(kTrace, "/evaluation/correctness/max_absolute_error", "NaN")).value());
  REQUIRE(line.find(R"("max_absolute_error":"NaN")") != std::string::npos);
}

TEST_CASE("trace: against a definition") {
  const auto d = parse_definition(kDefinition).value();
  REQUIRE(parse_trace(d, kTrace));
  REQUIRE_FALSE(parse_trace(d, edit(kTrace, "/definition", R"("other")")));
  REQUIRE_FALSE(parse_trace(d, edit(kTrace, "/workload/axes", R"({"K": 1})")));
  REQUIRE(parse_trace(nullptr, edit(kTrace, "/workload/axes", R"({"K": 1})")));
}

TEST_CASE("trace: export of a pass") {
  const auto trace = export_of(passed());
  REQUIRE(trace);
  REQUIRE(trace->evaluation->performance->latency_ms == 1.5);
  REQUIRE(trace->evaluation->performance->reference_latency_ms == 3.0);
  REQUIRE(trace->evaluation->performance->speedup_factor == 2.0);
  REQUIRE(trace->evaluation->correctness->max_absolute_error == 0.5);
  REQUIRE(trace->evaluation->correctness->extra == R"({"ptxbench_protocol":"rigorous","seed":0})");
  REQUIRE(trace->evaluation->environment.hardware == "NVIDIA H200");
  REQUIRE(parse_trace(nullptr, to_json_line(*trace)));  // whatever is exported can be read
}

TEST_CASE("trace: export of failures") {
  Verdict v = passed();
  v.status = Status::compile_error;
  v.timing = {};
  v.provenance.device_name.clear();
  v.compile.arch = "sm_90a";
  v.compile.diagnostics = {{Severity::error, "expected a ';'", "gemm.cu", 12}};
  v.findings = {{"launch_rule", Severity::error, "too many threads", ""}};
  const auto compile = export_of(v);
  REQUIRE(compile);
  REQUIRE(compile->evaluation->log.find("gemm.cu:12: error: expected a ';'") != std::string::npos);
  REQUIRE(compile->evaluation->log.find("[launch_rule]") != std::string::npos);
  REQUIRE(compile->evaluation->environment.hardware.find("sm_90a") != std::string::npos);
  REQUIRE(parse_trace(nullptr, to_json_line(*compile)));

  v.status = Status::incorrect_numerical;
  v.correctness.outputs[0].max_absolute_error = std::numeric_limits<double>::infinity();
  const auto wrong = export_of(v);
  REQUIRE(wrong->evaluation->correctness);
  REQUIRE_FALSE(wrong->evaluation->performance);
  REQUIRE(parse_trace(nullptr, to_json_line(*wrong)));
  v.correctness.outputs.clear();
  REQUIRE(std::isnan(export_of(v)->evaluation->correctness->max_absolute_error));
}

TEST_CASE("trace: verdicts that cannot be exported say why") {
  Verdict v = passed();
  v.timing.state = Availability::not_requested;
  v.timing.reason = "timing was switched off";
  REQUIRE(export_of(v).error().message.find("switched off") != std::string::npos);
  v = passed();
  v.provenance.device = "emulator:h200";
  REQUIRE(export_of(v).error().message.find("emulator") != std::string::npos);
  v = passed();
  v.timing.speedup.reset();
  REQUIRE(export_of(v).error().message.find("baseline") != std::string::npos);
  v = passed();
  v.outcome = Outcome::not_run;
  v.status.reset();
  v.outcome_reason = "no device";
  REQUIRE(export_of(v).error().message.find("no device") != std::string::npos);
}
