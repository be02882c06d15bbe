// Reading records from files.
#include "core/base64.hpp"
#include "support/catch.hpp"
#include "trace/edit.hpp"

#include <ptxbench/trace.hpp>

#include <filesystem>
#include <fstream>
#include <random>

using namespace ptxbench;
using test::edit;
using test::kDefinition;
using test::kRemove;
using test::kSolution;
using test::kTrace;

namespace {

namespace fs = std::filesystem;

// A folder of its own for one test case.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("ptxbench-load-" + std::to_string(std::random_device{}()))) {
    fs::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string write(const std::string& name, std::string_view text) const {
    const fs::path file = path_ / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return file.string();
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

DefinitionPtr definition() { return parse_definition(kDefinition).value(); }
std::string workload_line(std::string_view uuid) {
  return edit(edit(edit(kTrace, "/workload/uuid", "\"" + std::string(uuid) + "\""), "/solution", "null"),
              "/evaluation", "null");
}

}  // namespace

TEST_CASE("load: a definition") {
  const Folder folder;
  REQUIRE(load_definition(folder.write("d.json", kDefinition)));
  const auto missing = load_definition((folder.path() / "none.json").string());
  REQUIRE(missing.error().code == ErrorCode::not_found);
  REQUIRE(missing.error().where.file.find("none.json") != std::string::npos);
  REQUIRE(load_definition(folder.path().string()).error().code == ErrorCode::io);
  REQUIRE_FALSE(load_definition(folder.write("empty.json", "")));
}

TEST_CASE("load: workloads, with L rows") {
  const Folder folder;
  const std::string good = workload_line("a") + "\r\n\n  \n" + workload_line("b\\u2028") + "\n" +
                           workload_line("a");  // L12, L18, L8, no final newline
  const auto workloads = load_workloads(definition(), folder.write("w.jsonl", good));
  REQUIRE(workloads);
  REQUIRE(workloads->size() == 3);
  REQUIRE((*workloads)[1].uuid == "b\xE2\x80\xA8");
  REQUIRE(load_workloads(definition(), folder.write("empty.jsonl", ""))->empty());

  const auto bad =
      load_workloads(definition(), folder.write("bad.jsonl", workload_line("a") + "\n{\"x\"\n" +
                                                                 workload_line("b") + "\n{}\n[]\n"));  // L13
  REQUIRE(bad.error().where.line == 2);
  REQUIRE(bad.error().message.find("4, 5") != std::string::npos);
  const auto result = load_workloads(
      definition(), folder.write("t.jsonl", workload_line("a") + "\n" + edit(kTrace, "/x", "1")));  // L10
  REQUIRE(result.error().where.line == 2);
  const auto pretty = load_workloads(definition(), folder.write("p.jsonl", kTrace));  // L17
  REQUIRE_FALSE(pretty);
  const auto negative = load_workloads(
      definition(), folder.write("n.jsonl", edit(workload_line("a"), "/workload/axes/M", "-1")));
  REQUIRE(negative.error().where.line == 1);
  REQUIRE(negative.error().where.pointer == "/workload/axes/M");
  REQUIRE_FALSE(load_workloads(nullptr, folder.write("w2.jsonl", good)));
}

TEST_CASE("load: a candidate's folder") {
  const Folder folder;
  folder.write("cand/launch.json", "{}");
  folder.write("cand/gemm.cu", "__global__ void f() {}\n");
  folder.write("cand/include/util.cuh", "// \xC3\xA9\n");
  folder.write("cand/a.h", "#pragma once\n");
  folder.write("cand/k.ptx", ".version 9.0\n");
  folder.write("cand/k.cubin", std::string_view("\x7f"
                                                "ELF\0\xff",
                                                6));
  folder.write("cand/notes.md", "no source");
  folder.write("cand/.git/x.cu", "hidden");
  const auto solution = load_solution((folder.path() / "cand").string() + "/", *definition());
  if (!solution) FAIL(solution.error().to_string());
  std::vector<std::string> paths;
  for (const SourceFile& source : solution->sources) paths.push_back(source.path);
  REQUIRE(paths ==
          std::vector<std::string>{"launch.json", "a.h", "gemm.cu", "include/util.cuh", "k.cubin", "k.ptx"});
  REQUIRE(solution->name == "cand");
  REQUIRE(solution->author == "local");
  REQUIRE(solution->definition == "d");
  REQUIRE(solution->spec.language == "cuda");
  REQUIRE(solution->spec.entry_point == "launch.json::run");
  REQUIRE(base64_decode(solution->find_source("k.cubin")->content).value() == std::string("\x7f"
                                                                                          "ELF\0\xff",
                                                                                          6));
  REQUIRE(parse_solution(to_json(*solution)));

  // The same from a solution file, with a check of the definition.
  const std::string file = folder.write("s.json", to_json(*solution));
  const auto again = load_solution(file, *definition());
  REQUIRE(again);
  REQUIRE(to_json(*again) == to_json(*solution));
  REQUIRE_FALSE(
      load_solution(folder.write("other.json", edit(kSolution, "/definition", R"("x")")), *definition()));
}

TEST_CASE("load: folders that are no candidates say why") {
  const Folder folder;
  folder.write("noplan/gemm.cu", "x");
  const auto noplan = load_solution((folder.path() / "noplan").string(), *definition());
  REQUIRE(noplan.error().code == ErrorCode::not_found);
  REQUIRE(noplan.error().message.find("launch.json") != std::string::npos);
  folder.write("empty/launch.json", "{}");
  folder.write("empty/x.cuh", "");
  REQUIRE(load_solution((folder.path() / "empty").string(), *definition()).error().where.file.find("x.cuh") !=
          std::string::npos);
  folder.write("latin/launch.json", "{}");
  folder.write("latin/x.cu", "// \xE9\n");
  REQUIRE(load_solution((folder.path() / "latin").string(), *definition()).error().message.find("UTF-8") !=
          std::string::npos);
  const std::string plan = folder.write("cand/launch.json", "{}");
  REQUIRE(load_solution(plan, *definition()).error().code == ErrorCode::invalid_argument);
  REQUIRE(load_solution((folder.path() / "nothing").string(), *definition()).error().code ==
          ErrorCode::not_found);
}
