// Rows S of the conformance cases, by their numbers.
#include "support/catch.hpp"
#include "trace/edit.hpp"

#include <ptxbench/trace.hpp>

using namespace ptxbench;
using test::edit;
using test::kRemove;
using test::kSolution;

namespace {

struct Row {
  const char* id;
  const char* pointer;
  std::string_view text;
  bool accept;
};

const Row kRows[] = {
    {"S01", "/name", R"("s")", true},
    {"S02", "/name", kRemove, false},
    {"S02", "/definition", kRemove, false},
    {"S02", "/author", kRemove, false},
    {"S02", "/spec", kRemove, false},
    {"S02", "/sources", kRemove, false},
    {"S03", "/name", R"("")", false},
    {"S03", "/author", R"("")", false},
    {"S04", "/sources", "[]", false},
    {"S05", "/sources/0/content", R"("")", false},
    {"S06", "/sources/0/path", R"("")", false},
    {"S07", "/sources/0/content", "1", false},
    {"S08", "/sources", R"([{"path": "main.py", "content": "a"}, {"path": "main.py", "content": "b"}])",
     false},
    {"S10", "/sources", R"([{"path": "main.py", "content": "a"}, {"path": "/tmp/k.cpp", "content": "b"}])",
     false},
    {"S11", "/sources", R"([{"path": "main.py", "content": "a"}, {"path": "../k.cpp", "content": "b"}])",
     false},
    {"S12", "/sources", R"([{"path": "main.py", "content": "a"}, {"path": "a/../b.py", "content": "b"}])",
     false},
    {"S13", "/sources", R"([{"path": "main.py", "content": "a"}, {"path": "a..b.py", "content": "b"}])",
     true},
    {"S14", "/spec/entry_point", R"("./main.py::run")", false},
    {"S15", "/sources", R"([{"path": "main.py", "content": "a"}, {"path": "./main.py", "content": "b"}])",
     false},  // ours
    {"S15", "/sources",
     R"([{"path": "main.py", "content": "a"}, {"path": "x//./y.cu", "content": "b"}, {"path": "x/y.cu", "content": "c"}])",
     false},
    {"S15c", "/sources", R"([{"path": "main.py", "content": "a"}, {"path": "C:\\k.cu", "content": "b"}])",
     false},  // ours
    {"S15c", "/sources", R"([{"path": "main.py", "content": "a"}, {"path": "C:/k.cu", "content": "b"}])",
     false},
    {"S15c", "/sources", R"([{"path": "main.py", "content": "a"}, {"path": "..\\k.cu", "content": "b"}])",
     false},
    {"S15c", "/sources", R"([{"path": "main.py", "content": "a"}, {"path": "a\u0000.cu", "content": "b"}])",
     false},
    {"S16", "/spec/entry_point", R"("main.py")", false},
    {"S16", "/spec/entry_point", R"("main.py:run")", false},
    {"S16", "/spec/entry_point", R"("main.py::run::x")", false},
    {"S16", "/spec/entry_point", R"("main.py::ns::run")", false},
    {"S16", "/spec/entry_point", R"("::run")", false},
    {"S16", "/spec/entry_point", R"("main.py:::run")", false},      // ours
    {"S16", "/spec/entry_point", R"("main.py::bad name")", false},  // ours
    {"S16", "/spec/entry_point", R"("main.py::")", false},          // ours
    {"S16", "/spec/entry_point", R"("main.py::run2")", true},
    {"S22", "/spec/language", R"("python")", true},
    {"S22", "/spec/language", R"("triton")", true},
    {"S22", "/spec/language", R"("cpp")", true},
    {"S22", "/spec/language", R"("cuda")", true},
    {"S22", "/spec/language", R"("tilelang")", true},
    {"S22", "/spec/language", R"("cutile")", false},
    {"S22", "/spec/language", R"("CUDA")", false},
    {"S22", "/spec/language", R"("c++")", false},
    {"S22", "/spec/language", R"("ptx")", false},
    {"S22", "/spec/language", R"("rust")", false},
    {"S22", "/spec/language", R"("")", false},
    {"S23", "/spec/target_hardware", R"(["NVIDIA_H100"])", true},
    {"S23", "/spec/target_hardware", R"([""])", true},
    {"S23", "/spec/target_hardware", "[]", false},
    {"S23", "/spec/target_hardware", "null", false},
    {"S23", "/spec/target_hardware", kRemove, false},
    {"S23", "/spec/target_hardware", R"("cuda")", false},
    {"S23", "/spec/target_hardware", "[1]", false},
    {"S25", "/spec/binding", R"("tvm-ffi")", true},
    {"S25", "/spec/binding", R"("torch")", true},
    {"S25", "/spec/binding", "null", true},
    {"S25", "/spec/binding", R"("tvm_ffi")", false},
    {"S25", "/spec/binding", R"("TORCH")", false},
    {"S25", "/spec/binding", R"("pybind11")", false},
    {"S27", "/spec/dependencies", "null", false},
    {"S27", "/spec/dependencies", "[]", true},
    {"S27", "/spec/dependencies", R"(["numpy"])", true},
    {"S27", "/spec/dependencies", R"([""])", false},
    {"S27", "/spec/dependencies", "[1]", false},
    {"S27", "/spec/dependencies", R"("numpy")", false},
    {"S27", "/spec/dependencies", R"(["a", "a"])", true},
    {"S28", "/spec/destination_passing_style", "true", true},
    {"S28", "/spec/destination_passing_style", "false", true},
    {"S28", "/spec/destination_passing_style", "null", false},
    {"S28", "/spec/destination_passing_style", "1", true},
    {"S28", "/spec/destination_passing_style", "0", true},
    {"S28", "/spec/destination_passing_style", "1.0", true},
    {"S28", "/spec/destination_passing_style", "2", false},
    {"S28", "/spec/destination_passing_style", R"("true")", true},
    {"S28", "/spec/destination_passing_style", R"("yes")", true},
    {"S28", "/spec/destination_passing_style", R"("on")", true},
    {"S28", "/spec/destination_passing_style", R"("T")", true},
    {"S28", "/spec/destination_passing_style", R"("maybe")", false},
    {"S29", "/spec/compile_options", R"({"a": 1})", true},
    {"S30", "/build_commands", R"(["make"])", true},
    {"S31", "/sources/0/content", R"("def (")", true},
    {"S32", "/spec/language", R"("cuda")", true},
};

}  // namespace

TEST_CASE("solution: conformance rows") {
  for (const Row& row : kRows) {
    INFO(row.id << " " << row.pointer << " = " << row.text);
    const auto result = parse_solution(edit(kSolution, row.pointer, row.text), "s.json");
    REQUIRE(result.has_value() == row.accept);
    if (!result) {
      REQUIRE(result.error().code == ErrorCode::parse);
      REQUIRE(result.error().where.file == "s.json");
      continue;
    }
    const auto again = parse_solution(to_json(*result));
    REQUIRE(again);
    REQUIRE(to_json(*again) == to_json(*result));
  }
}

TEST_CASE("solution: values") {
  const auto s = parse_solution(kSolution).value();
  REQUIRE(s.spec.destination_passing_style);
  REQUIRE_FALSE(s.spec.binding);
  REQUIRE(s.find_source("main.py")->content == "x=1\n");
  REQUIRE(s.find_source("other") == nullptr);
  REQUIRE_FALSE(parse_solution(edit(kSolution, "/spec/destination_passing_style", R"("OFF")"))
                    ->spec.destination_passing_style);
  const auto kept = parse_solution(edit(kSolution, "/build_commands", R"(["make"])")).value();
  REQUIRE(parse_solution(to_json(kept))->unknown == UnknownMembers{{"build_commands", R"(["make"])"}});
}

TEST_CASE("solution: made in memory") {
  Solution s = parse_solution(kSolution).value();
  REQUIRE(make_solution(s));
  s.spec.entry_point = "launch.json::run";
  REQUIRE_FALSE(make_solution(s));
}
