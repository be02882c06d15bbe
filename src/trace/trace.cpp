// Trace: one line of FlashInfer-Trace's result files, and the export of a Verdict as one.
#include "core/guard.hpp"
#include "trace/lax.hpp"

#include <algorithm>
#include <cmath>

namespace ptxbench {
namespace {

using json::Cursor;
using json::Kind;

Result<double> error_member(const Cursor& at, std::string_view key) {
  PTXBENCH_TRY_ASSIGN(const std::optional<Cursor> place, at.get(key));
  if (!place) return 0.0;
  PTXBENCH_TRY_ASSIGN(const double value, as_double_lax(*place));
  if (value < 0) return place->error("an error cannot be negative");
  return value;
}

Result<double> performance_member(const Cursor& at, std::string_view key) {
  PTXBENCH_TRY_ASSIGN(const std::optional<Cursor> place, at.get(key));
  if (!place) return 0.0;
  PTXBENCH_TRY_ASSIGN(const double value, as_double_lax(*place));
  if (!(value >= 0)) return place->error("a time or ratio must be a number of at least 0");
  return value;
}

Result<TraceCorrectness> read_correctness(const Cursor& at) {
  TraceCorrectness c;
  PTXBENCH_TRY_ASSIGN(c.max_relative_error, error_member(at, "max_relative_error"));
  PTXBENCH_TRY_ASSIGN(c.max_absolute_error, error_member(at, "max_absolute_error"));
  PTXBENCH_TRY_ASSIGN(const std::optional<Cursor> extra, at.get("extra"));
  if (extra && !extra->is_null()) {
    PTXBENCH_TRY(extra->members());
    c.extra = json::to_string(extra->value());
  }
  return c;
}

Result<TracePerformance> read_performance(const Cursor& at) {
  TracePerformance p;
  PTXBENCH_TRY_ASSIGN(p.latency_ms, performance_member(at, "latency_ms"));
  PTXBENCH_TRY_ASSIGN(p.reference_latency_ms, performance_member(at, "reference_latency_ms"));
  PTXBENCH_TRY_ASSIGN(p.speedup_factor, performance_member(at, "speedup_factor"));
  return p;
}

Result<TraceEnvironment> read_environment(const Cursor& at) {
  TraceEnvironment e;
  PTXBENCH_TRY_ASSIGN(e.hardware, required_string(at, "hardware"));
  PTXBENCH_TRY_ASSIGN(const std::optional<Cursor> libs, at.get("libs"));
  if (libs) {
    PTXBENCH_TRY_ASSIGN(const auto members, libs->members());
    for (const auto& [name, value] : members) {
      PTXBENCH_TRY_ASSIGN(std::string version, value.as_string());
      e.libs.emplace_back(name, std::move(version));
    }
  }
  return e;
}

// Which parts a status has is the schema's rule; the message says it.
Result<void> check_parts(const Cursor& at, const TraceEvaluation& e) {
  const bool correctness = e.status == Status::passed || e.status == Status::incorrect_numerical;
  const bool performance = e.status == Status::passed;
  const auto complain = [&](std::string_view part, bool wanted) {
    return at.error("an evaluation with the status " + std::string(status_name(e.status)) +
                        (wanted ? " needs \"" : " cannot have \"") + std::string(part) + "\"",
                    "evaluation_parts");
  };
  if (e.correctness.has_value() != correctness) return complain("correctness", correctness);
  if (e.performance.has_value() != performance) return complain("performance", performance);
  return {};
}

Result<TraceEvaluation> read_trace_evaluation(const Cursor& at) {
  TraceEvaluation e;
  PTXBENCH_TRY_ASSIGN(const Cursor status, at.require("status"));
  PTXBENCH_TRY_ASSIGN(const std::string word, status.as_string());
  const std::optional<Status> known = status_from_name(word);
  if (!known) return status.error("\"" + word + "\" is no status of an evaluation", "status");
  e.status = *known;
  PTXBENCH_TRY_ASSIGN(const Cursor environment, at.require("environment"));
  PTXBENCH_TRY_ASSIGN(e.environment, read_environment(environment));
  PTXBENCH_TRY_ASSIGN(e.timestamp, required_string(at, "timestamp"));
  PTXBENCH_TRY_ASSIGN(const std::optional<Cursor> log, at.get("log"));
  if (log) {
    PTXBENCH_TRY_ASSIGN(e.log, log->as_string());
  }
  PTXBENCH_TRY_ASSIGN(const std::optional<Cursor> correctness, at.get("correctness"));
  if (correctness && !correctness->is_null()) {
    PTXBENCH_TRY_ASSIGN(e.correctness, read_correctness(*correctness));
  }
  PTXBENCH_TRY_ASSIGN(const std::optional<Cursor> performance, at.get("performance"));
  if (performance && !performance->is_null()) {
    PTXBENCH_TRY_ASSIGN(e.performance, read_performance(*performance));
  }
  PTXBENCH_TRY(check_parts(at, e));
  return e;
}

void write_trace_evaluation(json::Writer& out, const TraceEvaluation& e) {
  out.begin_object().field("status", status_name(e.status)).key("environment").begin_object();
  out.field("hardware", e.environment.hardware).key("libs").begin_object();
  for (const auto& [name, version] : e.environment.libs) out.field(name, version);
  out.end_object().end_object().field("timestamp", e.timestamp).field("log", e.log).key("correctness");
  if (e.correctness) {
    out.begin_object().field("max_relative_error", e.correctness->max_relative_error);
    out.field("max_absolute_error", e.correctness->max_absolute_error).key("extra");
    const auto extra = json::parse(e.correctness->extra.value_or(""), {"", true});
    if (extra) {
      out.value(extra->root);
    } else {
      out.null();
    }
    out.end_object();
  } else {
    out.null();
  }
  out.key("performance");
  if (e.performance) {
    out.begin_object().field("latency_ms", e.performance->latency_ms);
    out.field("reference_latency_ms", e.performance->reference_latency_ms);
    out.field("speedup_factor", e.performance->speedup_factor).end_object();
  } else {
    out.null();
  }
  out.end_object();
}

// Every finding, diagnostic and line of output, as text.
std::string log_of(const Verdict& v) {
  std::string log;
  for (const Finding& f : v.findings)
    log += std::string(severity_name(f.severity)) + ": [" + f.code + "] " + f.message + "\n";
  for (const Diagnostic& d : v.compile.diagnostics) {
    if (!d.file.empty()) log += d.file + ":" + (d.line > 0 ? std::to_string(d.line) + ":" : "") + " ";
    log += std::string(severity_name(d.severity)) + ": " + d.message + "\n";
  }
  return log + v.output_log;
}

TraceCorrectness correctness_of(const Verdict& v) {
  TraceCorrectness c;
  if (v.correctness.outputs.empty())
    c.max_absolute_error = c.max_relative_error = std::numeric_limits<double>::quiet_NaN();
  const auto worst = [](double a, double b) {
    return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::max(a, b);
  };
  for (const OutputCorrectness& o : v.correctness.outputs) {
    c.max_absolute_error = worst(c.max_absolute_error, o.max_absolute_error);
    c.max_relative_error = worst(c.max_relative_error, o.max_relative_error);
  }
  json::Writer extra;
  extra.begin_object()
      .field("ptxbench_protocol", v.provenance.protocol)
      .field("seed", v.provenance.seed)
      .end_object();
  c.extra = std::move(extra).str();
  return c;
}

Result<void> check_exportable(const Verdict& v) {
  const auto no = [](std::string why) {
    return make_error(ErrorCode::unsupported, "this verdict cannot be a trace: " + std::move(why), {},
                      "trace_export");
  };
  if (v.outcome != Outcome::judged || !v.status)
    return no("it is " + std::string(outcome_name(v.outcome)) +
              (v.outcome_reason.empty() ? "" : " (" + v.outcome_reason + ")"));
  if (*v.status != Status::passed) return {};
  if (v.provenance.device.rfind("emulator:", 0) == 0)
    return no("it passed on an emulator, and the schema wants a performance");
  if (v.timing.state != Availability::measured)
    return no("it passed, and its timing is " + std::string(availability_name(v.timing.state)) +
              (v.timing.reason.empty() ? "" : " (" + v.timing.reason + ")"));
  if (!v.timing.speedup) return no("it passed, and was timed without a baseline");
  return {};
}

}  // namespace

Result<Trace> read_trace(const DefinitionPtr& definition, const Cursor& root) {
  Trace trace;
  PTXBENCH_TRY_ASSIGN(const Cursor name, root.require("definition"));
  PTXBENCH_TRY_ASSIGN(trace.definition, name.as_nonempty_string());
  if (definition != nullptr && trace.definition != definition->name)
    return name.error("this line is about the definition \"" + trace.definition + "\", not \"" +
                      definition->name + "\"");
  PTXBENCH_TRY_ASSIGN(const Cursor workload, root.require("workload"));
  PTXBENCH_TRY_ASSIGN(trace.workload, read_workload(definition, workload));
  PTXBENCH_TRY_ASSIGN(trace.solution, optional_string(root, "solution"));
  PTXBENCH_TRY_ASSIGN(const std::optional<Cursor> evaluation, root.get("evaluation"));
  if (evaluation && !evaluation->is_null()) {
    PTXBENCH_TRY_ASSIGN(trace.evaluation, read_trace_evaluation(*evaluation));
  }
  if (trace.solution.has_value() != trace.evaluation.has_value())
    return root.error("a trace has both \"solution\" and \"evaluation\", or neither");
  if (trace.solution && trace.solution->empty()) return root.error("\"solution\" cannot be empty");
  return trace;
}

Result<Trace> parse_trace(DefinitionPtr definition, std::string_view text, std::string_view file) {
  return guarded([&]() -> Result<Trace> {
    PTXBENCH_TRY_ASSIGN(const json::Document document, parse_record(text, file));
    return read_trace(definition, Cursor(document));
  });
}

std::string to_json_line(const Trace& trace) {
  json::Writer out(json::Writer::Options{0, true});
  out.begin_object().field("definition", trace.definition).key("workload");
  write_workload(out, trace.workload);
  out.key("solution");
  if (trace.solution) {
    out.string(*trace.solution);
  } else {
    out.null();
  }
  out.key("evaluation");
  if (trace.evaluation) {
    write_trace_evaluation(out, *trace.evaluation);
  } else {
    out.null();
  }
  out.end_object();
  return std::move(out).str();
}

Result<Trace> trace_from_verdict(const Workload& workload, const Solution& solution, const Verdict& verdict,
                                 std::string timestamp) {
  return guarded([&]() -> Result<Trace> {
    PTXBENCH_TRY(check_exportable(verdict));
    if (timestamp.empty()) return make_error(ErrorCode::invalid_argument, "a trace needs a timestamp");
    TraceEvaluation e;
    e.status = *verdict.status;
    const Provenance& from = verdict.provenance;
    e.environment.hardware = !from.device_name.empty() ? from.device_name
                             : !verdict.compile.arch.empty()
                                 ? "none (compiled for " + verdict.compile.arch + ")"
                                 : "none";
    e.environment.libs = from.versions;
    if (!from.ptxbench_version.empty()) e.environment.libs.emplace_back("ptxbench", from.ptxbench_version);
    e.timestamp = std::move(timestamp);
    e.log = log_of(verdict);
    if (e.status == Status::passed || e.status == Status::incorrect_numerical)
      e.correctness = correctness_of(verdict);
    if (e.status == Status::passed) {
      constexpr double kNanosecondsPerMillisecond = 1e6;
      e.performance = TracePerformance{
          static_cast<double>(verdict.timing.median_ns) / kNanosecondsPerMillisecond,
          static_cast<double>(verdict.timing.baseline_median_ns) / kNanosecondsPerMillisecond,
          *verdict.timing.speedup};
    }
    return Trace{solution.definition, workload, solution.name, std::move(e)};
  });
}

}  // namespace ptxbench
