// Rows D of the conformance cases, by their numbers.
#include "support/catch.hpp"
#include "trace/edit.hpp"

#include <ptxbench/trace.hpp>

#include <cmath>

using namespace ptxbench;
using test::edit;
using test::kDefinition;
using test::kRemove;

namespace {

struct Row {
  const char* id;
  const char* pointer;
  std::string_view text;
  bool accept;
};

const Row kRows[] = {
    {"D02", "/name", kRemove, false},
    {"D02", "/op_type", kRemove, false},
    {"D02", "/axes", kRemove, false},
    {"D02", "/inputs", kRemove, false},
    {"D02", "/outputs", kRemove, false},
    {"D02", "/reference", kRemove, false},
    {"D03", "/name", R"("")", false},
    {"D03", "/op_type", R"("")", false},
    {"D04", "/name", R"("a/b c")", true},
    {"D05", "/extra", R"({"x": [1, NaN]})", true},
    {"D06", "/tags", "null", false},
    {"D07", "/tags", R"([""])", false},
    {"D07b", "/tags", "[1]", false},
    {"D07c", "/tags", R"(["a", "a"])", true},
    {"D09", "/constraints", R"([""])", false},
    {"D09", "/constraints", "null", false},
    {"D10", "/constraints", R"(["M >"])", false},
    {"D11", "/constraints", R"(["M = 4"])", false},
    {"D12", "/constraints", R"(["X > 1"])", true},
    {"D13", "/constraints", R"([" M > 1"])", false},
    {"D13b", "/constraints", R"(["M > 1\n"])", true},
    {"D14", "/constraints", R"(["f(M) > 0"])", true},
    {"D14b", "/constraints", R"(["# c"])", false},
    {"D14c", "/constraints", R"j(["n == kv_indptr[-1].item()"])j", true},
    {"D14+", "/constraints", R"(["M > 1\nN > 1"])", false},
    {"D14+", "/constraints", R"(["M > 1 // at least one"])", false},
    {"D15", "/description", "null", true},
    {"D15b", "/description", R"("")", true},
    {"D15c", "/description", "3", false},
    {"D17", "/inputs", "{}", true},
    {"D18", "/outputs", "{}", true},
    {"D19", "/outputs", R"({"A": {"shape": ["M"], "dtype": "float32"}})", false},
    {"D20", "/inputs/A/shape", R"(["X"])", false},
    {"D21", "/outputs/B/shape", R"(["M", "X"])", false},
    {"D22", "/axes/K", "{}", true},
    {"D24", "/axes/", "{}", false},
    {"D25", "/inputs/", R"({"shape": [], "dtype": "float32"})", false},
    {"D26", "/axes/M/type", R"("unknown")", false},
    {"D26b", "/axes/M/type", R"("expr")", false},
    {"D27", "/axes/M", "{}", true},
    {"D28", "/axes/N", R"({"value": 4})", true},
    {"D28+", "/axes/M", R"({"type": "var", "value": 5})", true},
    {"D30", "/axes/N", R"({"type": "const"})", false},
    {"D31", "/axes/N/value", "0", true},
    {"D32", "/axes/N/value", "-1", false},
    {"D32", "/axes/N/value", "-3", false},
    {"D33", "/axes/N/value", "4.0", true},
    {"D33", "/axes/N/value", "4.5", false},
    {"D33", "/axes/N/value", R"("4")", true},
    {"D33", "/axes/N/value", R"("4.0")", true},
    {"D33", "/axes/N/value", R"("1_000")", true},
    {"D33", "/axes/N/value", R"("0x10")", false},
    {"D33", "/axes/N/value", "true", true},
    {"D33", "/axes/N/value", "null", false},
    {"D33", "/axes/N/value", "9223372036854775807", true},
    {"D33", "/axes/N/value", "9223372036854775808", false},  // ours: int64 is the range
    {"D34", "/axes/M/parent", R"("x")", true},
    {"D34b", "/axes/N/type", R"("CONST")", false},
    {"D34d", "/axes/N", "4", false},
    {"D35", "/inputs/A/shape", kRemove, false},
    {"D36", "/inputs/A/shape", "null", true},
    {"D37", "/inputs/A/shape", "[]", true},
    {"D39", "/inputs/A/shape", R"(["M", "M"])", true},
    {"D40", "/inputs/A/shape", "[4]", false},
    {"D40b", "/inputs/A/shape", R"(["4"])", false},
    {"D40c", "/inputs/A/shape", R"(["M * 2"])", false},
    {"D41", "/inputs/A/shape", R"([""])", false},
    {"D41+", "/inputs/A/shape", R"("M")", false},
    {"D42", "/inputs/A/dtype", R"("float32")", true},
    {"D42", "/inputs/A/dtype", R"("float16")", true},
    {"D42", "/inputs/A/dtype", R"("bfloat16")", true},
    {"D42", "/inputs/A/dtype", R"("float8_e4m3fn")", true},
    {"D42", "/inputs/A/dtype", R"("float8_e5m2")", true},
    {"D42", "/inputs/A/dtype", R"("float4_e2m1")", true},
    {"D42", "/inputs/A/dtype", R"("int64")", true},
    {"D42", "/inputs/A/dtype", R"("int32")", true},
    {"D42", "/inputs/A/dtype", R"("int16")", true},
    {"D42", "/inputs/A/dtype", R"("int8")", true},
    {"D42", "/inputs/A/dtype", R"("bool")", true},
    {"D42", "/inputs/A/dtype", R"("uint64")", false},
    {"D42", "/inputs/A/dtype", R"("float64")", false},
    {"D42", "/inputs/A/dtype", R"("tf32")", false},
    {"D42", "/inputs/A/dtype", R"("FLOAT32")", false},
    {"D42", "/inputs/A/dtype", R"("float8_e4m3")", false},
    {"D42", "/inputs/A/dtype", R"("float4_e2m1fn_x2")", false},
    {"D42", "/inputs/A/dtype", R"("fp16")", false},
    {"D42", "/inputs/A/dtype", R"("")", false},
    {"D42", "/inputs/A/dtype", R"("not_a_dtype")", false},
    {"D42", "/inputs/A/dtype", R"("unknown")", false},
    {"D43", "/inputs/A/dtype", kRemove, false},
    {"D44 no run", "/reference", R"("def f(A):\n    return A\n")", false},
    {"D44 syntax", "/reference", R"("def run(A:\n    return A\n")", false},
    {"D44 syntax", "/reference", R"("def run(A)\n    return A\n")", false},
    {"D44 syntax", "/reference", R"("def run(A):\nreturn A\n")", false},
    {"D44 syntax", "/reference", R"("def run(A):\n    return 'A\n")", false},
    {"D44 syntax", "/reference", R"("def run(A):\n    return (A]\n")", false},
    {"D44 lambda", "/reference", R"("run = lambda A: A\n")", false},
    {"D44 if", "/reference", R"("if True:\n    def run(A):\n        return A\n")", false},
    {"D44 method", "/reference", R"("class C:\n    def run(self, A):\n        return A\n")", false},
    {"D44 async", "/reference", R"("async def run(A):\n    return A\n")", false},
    {"D44 string", "/reference", R"("'''\ndef run(A):\n    return A\n'''\n")", false},
    {"D44 comment", "/reference", R"("#def run(A): return A\n")", false},
    {"D44 continued", "/reference", R"("x = \\\ndef run(A): return A\n")", false},
    {"D44 arity", "/reference", R"("def run():\n    return 1\n")", true},
    {"D44 two", "/reference", R"("import torch\ndef run(A):\n    return A\ndef run(B):\n    return B\n")",
     true},
    {"D44 decorated", "/reference", R"("@torch.no_grad()\ndef run(A):\n    return A\n")", true},
    {"D44 raises", "/reference", R"("raise ValueError()\ndef run(A):\n    return A\n")", true},
    {"D44 one line", "/reference", R"("def run(A): return A")", true},
    {"D44 annotated", "/reference",
     R"("def run(\n    A: 'x',  # :\n) -> dict[str, int]:\n\n    # c\n    '''doc'''\n    return A")", true},
    {"D44 CRLF", "/reference", R"("def run(A):\r\n    x = \"a\\\r\nb\"\r\n    return A\r\n")", true},
    {"D44 f-string", "/reference", R"("def run(A):\n    raise E(f\"{A!r} {A['x']}\")\n")", true},
    {"D44 list", "/reference", R"(["def run(A): return A"])", false},
    {"D44 NUL", "/reference", R"("def run(A): return A\u0000")", false},
    {"D44 other name", "/reference", R"("def _x_reference(A):\n    return A\n")", false},
};

}  // namespace

TEST_CASE("definition: D01, the base record") {
  const auto d = parse_definition(kDefinition, "d.json");
  REQUIRE(d);
  REQUIRE((*d)->axes.size() == 2);
  REQUIRE_FALSE((*d)->find_axis("M")->is_const);
  REQUIRE((*d)->find_axis("N")->value == 4);
  REQUIRE((*d)->find_axis("K") == nullptr);
  REQUIRE((*d)->find_tensor("B")->shape->size() == 2);
  REQUIRE((*d)->find_tensor("C") == nullptr);
}

TEST_CASE("definition: conformance rows") {
  for (const Row& row : kRows) {
    INFO(row.id << " " << row.pointer << " = " << row.text);
    const auto result = parse_definition(edit(kDefinition, row.pointer, row.text), "d.json");
    if (!result) INFO(result.error().to_string());
    REQUIRE(result.has_value() == row.accept);
    if (!result) {
      REQUIRE(result.error().code == ErrorCode::parse);
      REQUIRE(result.error().where.file == "d.json");
      continue;
    }
    // What is accepted survives being written, twice the same.
    const std::string text = to_json(**result);
    const auto again = parse_definition(text);
    REQUIRE(again);
    REQUIRE(to_json(**again) == text);
  }
}

TEST_CASE("definition: what the axes are inferred to be") {
  const auto axis = [](std::string_view text) {
    return *parse_definition(edit(kDefinition, "/axes/N", text)).value()->find_axis("N");
  };
  REQUIRE_FALSE(axis("{}").is_const);
  REQUIRE(axis(R"({"value": 4})").is_const);
  REQUIRE(axis(R"({"value": "1_000"})").value == 1000);
  REQUIRE(axis(R"({"value": true})").value == 1);
  REQUIRE(axis(R"({"value": 1e2})").value == 100);  // J21
  REQUIRE_FALSE(axis(R"({"type": "var", "value": 5})").is_const);
  REQUIRE(axis(R"({"value": 1, "description": "rows"})").description == "rows");
}

TEST_CASE("definition: errors name the place") {
  const auto at = [](const char* pointer, std::string_view text) {
    return parse_definition(edit(kDefinition, pointer, text), "d.json").error().where.pointer;
  };
  REQUIRE(at("/axes/N/value", "4.5") == "/axes/N/value");
  REQUIRE(at("/inputs/A/shape", R"(["M", "NN"])") == "/inputs/A/shape/1");
  REQUIRE(at("/inputs/A/dtype", R"("fp16")") == "/inputs/A/dtype");
  REQUIRE(at("/constraints", R"(["M > 0", "M ="])") == "/constraints/1");
  REQUIRE(at("/reference", R"("x = 1")") == "/reference");
  const auto near = parse_definition(edit(kDefinition, "/inputs/A/shape", R"(["M", "NN"])"));
  REQUIRE(near.error().message.find("\"N\"") != std::string::npos);
}

TEST_CASE("definition: unknown members and the order of tensors are kept") {
  const std::string text = edit(edit(kDefinition, "/extra", R"({"x": [1, 1180591620717411303424]})"),
                                "/inputs/Z", R"({"shape": null, "dtype": "int32"})");
  const auto d = parse_definition(text);
  REQUIRE(d);
  REQUIRE((*d)->unknown == UnknownMembers{{"extra", R"({"x":[1,1180591620717411303424]})"}});
  const auto back = parse_definition(to_json(**d));
  REQUIRE((*back)->unknown == (*d)->unknown);
  REQUIRE((*back)->inputs[0].name == "A");
  REQUIRE((*back)->inputs[1].name == "Z");
  REQUIRE((*back)->inputs[1].is_scalar());
}

TEST_CASE("definition: one made in memory") {
  Definition d;
  d.name = "mine";
  d.op_type = "op";
  d.axes = {{"M", false, 0, {}}};
  d.inputs = {{"x", std::vector<std::string>{"M"}, DType::float32, {}}};
  d.outputs = {{"y", std::vector<std::string>{"M"}, DType::float32, {}}};
  REQUIRE(make_definition(d));  // needs no reference
  Definition bad = d;
  bad.outputs[0].name = "x";
  REQUIRE_FALSE(make_definition(bad));
  bad = d;
  bad.outputs[0].dtype = DType::uint8;
  REQUIRE_FALSE(make_definition(bad));
  bad = d;
  bad.axes.push_back({"M", true, 3, {}});
  REQUIRE_FALSE(make_definition(bad));
  bad = d;
  bad.outputs[0].shape->push_back("K");
  REQUIRE_FALSE(make_definition(bad));
  bad = d;
  bad.reference = "x";
  REQUIRE_FALSE(make_definition(bad));
}

TEST_CASE("definition: J rows, the text itself") {
  const std::string base(kDefinition);
  for (const std::string& bad : {
           base.substr(0, 1) + "// c\n" + base.substr(1),  // J10
           "\xEF\xBB\xBF" + base,                          // J11, L20
           base + " x",                                    // J12
           base + base,                                    // J13
           std::string("[]"),
           std::string("null"),
           std::string(""),                                                // J14
           std::string("{'name': 'd'}"),                                   // J15
           edit(base, "/name", "1").replace(0, 1, "{\"name\":\"a\tb\","),  // J18
           edit(base, "/axes/N", kRemove).replace(0, 1, R"({"x":02,)"),    // J20
           std::string(1000, '['),
       }) {
    INFO(bad);
    REQUIRE_FALSE(parse_definition(bad, "d.json"));
  }
  const auto pair =
      parse_definition(edit(base, "/description", R"("\ud83d\ude00 \u0000 é")"));  // J17, J19, J30
  REQUIRE(pair);
  const std::string text = to_json(**pair);
  REQUIRE(text.find("\xF0\x9F\x98\x80 \\u0000 é") != std::string::npos);
  REQUIRE((*parse_definition(text))->description == (*pair)->description);
}
