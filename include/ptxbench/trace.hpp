/// @file
/// FlashInfer-Trace records (Definition, Workload, Solution, Trace) as value types, with the schema's field
/// names, and ptxbench's own Verdict and Evaluation (trace/verdict.hpp).
///
/// Reading is lenient where the schema's own reader is (unknown members are kept and ignored, numbers may be
/// numeric strings); every error names the file and the JSON pointer. Records are immutable once parsed and
/// may be shared between threads.
#pragma once

#include <ptxbench/core.hpp>
#include <ptxbench/trace/verdict.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ptxbench {

/// Members of a record that the schema does not know, as compact JSON text, kept for rewriting.
using UnknownMembers = std::vector<std::pair<std::string, std::string>>;

struct Axis {
  std::string name;
  bool is_const = false;    ///< `const` with `value`, else `var`
  std::int64_t value = 0;   ///< of a const axis; >= 0
  std::optional<std::string> description;
};

struct TensorSpec {
  std::string name;
  std::optional<std::vector<std::string>> shape;  ///< axis names, outermost first; nothing = scalar by value
  DType dtype = DType::float32;
  std::optional<std::string> description;
  bool is_scalar() const { return !shape.has_value(); }
};

struct Definition {
  std::string name;
  std::string op_type;
  std::vector<Axis> axes;           ///< in the record's order
  std::vector<TensorSpec> inputs;   ///< in call order
  std::vector<TensorSpec> outputs;  ///< in call order; names disjoint from the inputs'
  std::string reference;            ///< Python source; may be empty in a Definition made in memory
  std::vector<std::string> tags;
  std::vector<std::string> constraints;
  std::optional<std::string> description;
  UnknownMembers unknown;

  const Axis* find_axis(std::string_view axis) const noexcept;
  const TensorSpec* find_tensor(std::string_view tensor) const noexcept;  ///< inputs, then outputs
};
using DefinitionPtr = std::shared_ptr<const Definition>;

/// @p file is used in messages only. Validates as FlashInfer-Trace's reader does, with int64 as the range of
/// axis values. Errors: ErrorCode::parse.
Result<DefinitionPtr> parse_definition(std::string_view json, std::string_view file = {});
/// Checks a Definition made in memory (names, shapes, dtypes; `reference` may be empty) and shares it.
Result<DefinitionPtr> make_definition(Definition definition);
/// Pretty JSON (2 spaces), unknown members kept.
std::string to_json(const Definition& definition);

struct RandomInput {};
struct ScalarInput {
  std::variant<std::int64_t, double, bool> value;
};
struct SafetensorsInput {
  std::string path;        ///< relative to the trace set's root
  std::string tensor_key;
};
using InputSpec = std::variant<RandomInput, ScalarInput, SafetensorsInput>;

struct Workload {
  DefinitionPtr definition;  ///< never null in a parsed workload
  std::vector<std::pair<std::string, std::int64_t>> axes;  ///< the definition's var axes
  std::vector<std::pair<std::string, InputSpec>> inputs;   ///< an input left out is random
  std::vector<std::pair<std::string, SafetensorsInput>> outputs;  ///< stored outputs (golden), may be empty
  std::string uuid;
  UnknownMembers unknown;

  /// Value of an axis, const or var.
  Result<std::int64_t> axis_value(std::string_view axis) const;
  /// Concrete shape of an input or output, outermost first; a scalar has none (ErrorCode::invalid_argument).
  Result<std::vector<std::int64_t>> shape_of(const TensorSpec& tensor) const;
  /// Number of elements of a tensor; error if it exceeds 2^40.
  Result<std::uint64_t> elements_of(const TensorSpec& tensor) const;
  /// What the workload says of an input (RandomInput where it says nothing).
  const InputSpec& input_spec(std::string_view input) const noexcept;
};

/// Parses a workload (the object under "workload" of a trace line, or a bare one) and checks it against
/// @p definition: all var axes there and no others, inputs known, scalars where the definition has scalars.
Result<Workload> parse_workload(DefinitionPtr definition, std::string_view json, std::string_view file = {});
Result<Workload> make_workload(Workload workload);  ///< the same checks for one made in memory
std::string to_json(const Workload& workload);

/// A source file of a Solution. `content` of a `.cubin` is base64.
struct SourceFile {
  std::string path;
  std::string content;
};

struct BuildSpec {
  std::string language;  ///< "python" "triton" "cpp" "cuda" "tilelang"
  std::vector<std::string> target_hardware;
  std::string entry_point;  ///< "launch.json::run" for candidates
  std::vector<std::string> dependencies;
  bool destination_passing_style = true;
  std::optional<std::string> binding;
};

struct Solution {
  std::string name;
  std::string definition;
  std::string author;
  std::optional<std::string> description;
  BuildSpec spec;
  std::vector<SourceFile> sources;
  UnknownMembers unknown;

  const SourceFile* find_source(std::string_view path) const noexcept;
};

Result<Solution> parse_solution(std::string_view json, std::string_view file = {});
Result<Solution> make_solution(Solution solution);  ///< the same checks for one made in memory
std::string to_json(const Solution& solution);
/// Reads a candidate from a folder that holds `launch.json` beside its sources (.cu .cuh .h .ptx .cubin, at
/// any depth), or from one solution `.json` file. Name = the folder's name, author = "local".
Result<Solution> load_solution(const std::string& path, const Definition& definition);

struct TraceEnvironment {
  std::string hardware;
  std::vector<std::pair<std::string, std::string>> libs;
};
struct TraceCorrectness {
  double max_relative_error = 0;
  double max_absolute_error = 0;
  std::optional<std::string> extra;  ///< JSON object as text
};
struct TracePerformance {
  double latency_ms = 0;
  double reference_latency_ms = 0;
  double speedup_factor = 0;
};
/// FlashInfer-Trace's record `Evaluation` (ours of that name is the list of verdicts).
struct TraceEvaluation {
  Status status = Status::passed;
  TraceEnvironment environment;
  std::string timestamp;
  std::string log;
  std::optional<TraceCorrectness> correctness;
  std::optional<TracePerformance> performance;
};
struct Trace {
  std::string definition;
  Workload workload;  ///< `definition` inside may be null when the trace was read without its definition
  std::optional<std::string> solution;
  std::optional<TraceEvaluation> evaluation;
};

Result<Trace> parse_trace(DefinitionPtr definition, std::string_view json, std::string_view file = {});
std::string to_json_line(const Trace& trace);  ///< compact, all fields, no newline

/// Exports a verdict as a trace of @p workload by @p solution. Fails with the reason where the schema cannot
/// carry it: not judged, PASSED without a measured timing, a pass on an emulator. @p timestamp is ISO 8601.
Result<Trace> trace_from_verdict(const Workload& workload, const Solution& solution, const Verdict& verdict,
                                 std::string timestamp);

/// Reads definitions and their workloads from files: `definitions/<op_type>/<name>.json` and
/// `workloads/<op_type>/<name>.jsonl` under @p root (FlashInfer-Trace's layout).
Result<DefinitionPtr> load_definition(const std::string& file);
Result<std::vector<Workload>> load_workloads(DefinitionPtr definition, const std::string& jsonl_file);

}  // namespace ptxbench
