// Rows W of the conformance cases, by their numbers, and what a workload knows of its definition.
#include "support/catch.hpp"
#include "trace/edit.hpp"

#include <ptxbench/trace.hpp>

#include <cmath>
#include <limits>

using namespace ptxbench;
using test::edit;
using test::kDefinition;
using test::kRemove;
using test::kTrace;
using test::kWorkload;

namespace {

DefinitionPtr definition() { return parse_definition(kDefinition).value(); }

struct Row {
  const char* id;
  const char* pointer;
  std::string_view text;
  bool schema;   // accepted where no definition is known
  bool checked;  // accepted against the definition
};

const Row kRows[] = {
    {"W01", "/uuid", R"("w")", true, true},
    {"W02", "/axes", kRemove, false, false},
    {"W02", "/inputs", kRemove, false, false},
    {"W02", "/uuid", kRemove, false, false},
    {"W03", "/uuid", R"("")", false, false},
    {"W03b", "/uuid", R"("not-a-uuid")", true, true},
    {"W06", "/axes/M", "-1", false, false},
    {"W07", "/axes/M", "2.0", true, true},
    {"W07", "/axes/M", "2.5", false, false},
    {"W07", "/axes/M", R"("2")", true, true},
    {"W07", "/axes/M", "true", true, true},
    {"W07", "/axes/M", "null", false, false},
    {"W08", "/axes/", "1", true, false},
    {"W09", "/inputs", "{}", true, true},
    {"W10", "/inputs/A", "{}", true, true},
    {"W11", "/inputs/A", R"({"value": 3})", true, false},
    {"W12", "/inputs/A", R"({"path": "p", "tensor_key": "k"})", true, true},
    {"W13", "/inputs/A", R"({"type": "random", "seed": 1})", true, true},
    {"W15", "/inputs/A", R"({"type": "scalar"})", false, false},
    {"W16", "/inputs/S", R"({"value": null})", false, false},
    {"W16", "/inputs/S", R"({"value": "abc"})", false, false},
    {"W16", "/inputs/S", R"({"value": [1]})", false, false},
    {"W18", "/inputs/A", R"({"type": "safetensors", "path": "p"})", false, false},
    {"W19", "/inputs/A", R"({"path": "", "tensor_key": "k"})", false, false},
    {"W21", "/inputs/A", R"({"path": "../x", "tensor_key": "k"})", false, false},  // ours: refused
    {"W21", "/inputs/A", R"({"path": "a/../../x", "tensor_key": "k"})", false, false},
    {"W21", "/inputs/A", R"({"path": "/etc/x", "tensor_key": "k"})", false, false},
    {"W21", "/inputs/A", R"({"path": "a..b/x", "tensor_key": "k"})", true, true},
    {"W22", "/inputs/A", R"({"type": "random", "path": "p", "tensor_key": "k"})", true, true},
    {"W23", "/outputs", R"({"B": {"type": "safetensors", "path": "p", "tensor_key": "k"}})", true, true},
    {"W23", "/outputs", R"({"O": {"type": "safetensors", "path": "p", "tensor_key": "k"}})", true, false},
    {"W24", "/outputs", R"({"B": {"type": "random"}})", false, false},
    {"W25", "/outputs", "null", true, true},
    {"V11", "/axes/N", "4", true, true},  // ours: a const axis may be listed with its value
    {"V11", "/axes/N", "5", true, false},
    {"V11", "/axes/K", "1", true, false},
    {"V13", "/axes/M", kRemove, true, false},
    {"V13", "/inputs/X", "{}", true, false},
    {"", "/inputs/A", R"({"type": "custom"})", false, false},
    {"", "/inputs/A", "3", false, false},
    {"", "/inputs", "[]", false, false},
};

ScalarInput scalar(std::string_view value) {
  const std::string text = edit(kTrace, "/workload/inputs/A", R"({"value": )" + std::string(value) + "}");
  return std::get<ScalarInput>(parse_trace(nullptr, text).value().workload.inputs.at(0).second);
}

}  // namespace

TEST_CASE("workload: conformance rows") {
  for (const Row& row : kRows) {
    INFO(row.id << " " << row.pointer << " = " << row.text);
    const std::string text = edit(kWorkload, row.pointer, row.text);
    const auto checked = parse_workload(definition(), text, "w.json");
    REQUIRE(checked.has_value() == row.checked);
    const auto free = parse_trace(
        nullptr, edit(edit(edit(kTrace, "/workload", text), "/solution", kRemove), "/evaluation", kRemove));
    REQUIRE(free.has_value() == row.schema);
    if (!checked) {
      REQUIRE(checked.error().where.file == "w.json");
      continue;
    }
    const auto again = parse_workload(definition(), to_json(*checked));
    REQUIRE(again);
    REQUIRE(to_json(*again) == to_json(*checked));
  }
}

TEST_CASE("workload: what inputs are inferred to be") {
  const auto input = [](std::string_view text) {
    return parse_trace(nullptr, edit(kTrace, "/workload/inputs/A", text))
        .value()
        .workload.inputs.at(0)
        .second;
  };
  REQUIRE(std::holds_alternative<RandomInput>(input("{}")));
  REQUIRE(std::holds_alternative<ScalarInput>(input(R"({"value": 3})")));
  REQUIRE(std::holds_alternative<SafetensorsInput>(input(R"({"path": "p", "tensor_key": "k"})")));
  REQUIRE(
      std::holds_alternative<RandomInput>(input(R"({"type": "random", "path": "p", "tensor_key": "k"})")));
}

TEST_CASE("workload: W16, the kind of a scalar") {
  REQUIRE(std::get<std::int64_t>(scalar("1").value) == 1);
  REQUIRE(std::get<double>(scalar("1.0").value) == 1.0);
  REQUIRE(std::get<bool>(scalar("true").value));
  REQUIRE(std::get<std::int64_t>(scalar("\"1\"").value) == 1);
  REQUIRE(std::get<double>(scalar("\"1.5\"").value) == 1.5);
  REQUIRE(std::get<bool>(scalar("\"true\"").value));
  REQUIRE(std::get<double>(scalar("1180591620717411303424").value) == std::ldexp(1.0, 70));
  REQUIRE(std::get<double>(scalar("1e308").value) == 1e308);
  REQUIRE(std::isnan(std::get<double>(scalar("NaN").value)));    // J1
  REQUIRE(std::isinf(std::get<double>(scalar("1E400").value)));  // J22
  REQUIRE(std::get<double>(scalar("1e2").value) == 100.0);
}

TEST_CASE("workload: scalars keep kind and value when written") {
  for (const char* value :
       {"1", "1.0", "-0.0", "true", "0.1", "1e308", "NaN", "-Infinity", "-9223372036854775808"}) {
    INFO(value);
    const std::string text = edit(kTrace, "/workload/inputs/A", R"({"value": )" + std::string(value) + "}");
    const auto trace = parse_trace(nullptr, text).value();
    const auto again = parse_trace(nullptr, to_json_line(trace));
    REQUIRE(again);
    const auto& before = std::get<ScalarInput>(trace.workload.inputs[0].second).value;
    const auto& after = std::get<ScalarInput>(again->workload.inputs[0].second).value;
    REQUIRE(before.index() == after.index());
    REQUIRE(to_json_line(*again) == to_json_line(trace));
  }
}

TEST_CASE("workload: scalars must fit the definition") {
  const auto with = [](const char* dtype) {
    return parse_definition(
               edit(kDefinition, "/inputs/A", R"({"shape": null, "dtype": ")" + std::string(dtype) + "\"}"))
        .value();
  };
  const auto fits = [&](const char* dtype, std::string_view value) {
    return parse_workload(with(dtype),
                          edit(kWorkload, "/inputs/A", R"({"value": )" + std::string(value) + "}"))
        .has_value();
  };
  REQUIRE(fits("float32", "1"));
  REQUIRE(fits("float32", "true"));  // V17
  REQUIRE(fits("int32", "2147483647"));
  REQUIRE_FALSE(fits("int32", "2147483648"));
  REQUIRE(fits("int64", "9223372036854775807"));
  REQUIRE_FALSE(fits("int64", "9223372036854775808"));
  REQUIRE_FALSE(fits("int32", "1.5"));
  REQUIRE_FALSE(fits("int32", "NaN"));
  REQUIRE(fits("int8", "-128"));
  REQUIRE_FALSE(fits("int8", "-129"));
  REQUIRE(fits("bool", "1"));
  REQUIRE_FALSE(fits("bool", "2"));
  const auto random = parse_workload(with("float32"), kWorkload);  // the judge draws it
  REQUIRE(random);
  const auto stored =
      parse_workload(with("float32"), edit(kWorkload, "/inputs/A", R"({"path": "p", "tensor_key": "k"})"));
  REQUIRE_FALSE(stored);
}

TEST_CASE("workload: axes, shapes, elements") {
  const auto w = parse_workload(definition(), edit(kWorkload, "/axes/N", "4")).value();
  REQUIRE(w.axes ==
          std::vector<std::pair<std::string, std::int64_t>>{{"M", 2}});  // the const one is the definition's
  REQUIRE(w.axis_value("M").value() == 2);
  REQUIRE(w.axis_value("N").value() == 4);
  REQUIRE(w.axis_value("K").error().code == ErrorCode::not_found);
  const TensorSpec& a = w.definition->inputs[0];
  REQUIRE(w.shape_of(a).value() == std::vector<std::int64_t>{2, 4});
  REQUIRE(w.elements_of(a).value() == 8);
  TensorSpec scalar_spec{"s", std::nullopt, DType::int32, {}};
  REQUIRE(w.shape_of(scalar_spec).error().code == ErrorCode::invalid_argument);
  TensorSpec zero_d{"z", std::vector<std::string>{}, DType::int32, {}};
  REQUIRE(w.elements_of(zero_d).value() == 1);
  REQUIRE(std::holds_alternative<RandomInput>(w.input_spec("nothing said")));

  const auto elements = [&](std::string_view m) -> Result<std::uint64_t> {
    const auto large = parse_workload(definition(), edit(kWorkload, "/axes/M", m)).value();
    return large.elements_of(large.definition->inputs[0]);
  };
  REQUIRE(elements("274877906944").value() == std::uint64_t{1} << 40);
  REQUIRE_FALSE(elements("274877906945"));
  REQUIRE_FALSE(elements("9223372036854775807"));
  REQUIRE(elements("0").value() == 0);
}

TEST_CASE("workload: from a trace line, and made in memory") {
  REQUIRE(parse_workload(definition(), kTrace)->uuid == "w");
  REQUIRE_FALSE(parse_workload(definition(), edit(kTrace, "/definition", R"("other")")));
  REQUIRE_FALSE(parse_workload(nullptr, kWorkload));
  Workload w;
  w.definition = definition();
  w.axes = {{"M", 3}};
  w.uuid = "mine";
  REQUIRE(make_workload(w));
  w.axes.clear();
  REQUIRE_FALSE(make_workload(w));
  w.definition = nullptr;
  REQUIRE(make_workload(w).error().code == ErrorCode::invalid_argument);
}

TEST_CASE("workload: unknown members are kept, the last of repeated keys wins") {
  const auto w = parse_workload(definition(), edit(kWorkload, "/tolerance", "[1]")).value();
  REQUIRE(w.unknown == UnknownMembers{{"tolerance", "[1]"}});
  REQUIRE(parse_workload(definition(), to_json(w))->unknown == w.unknown);
  const auto repeated =
      parse_workload(definition(), R"({"uuid": "a", "axes": {"M": 2}, "inputs": {}, "uuid": "b"})");  // J7
  REQUIRE(repeated->uuid == "b");
}
