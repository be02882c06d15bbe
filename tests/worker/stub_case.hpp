// The whole product over a device that is a stand-in (programs/stub_device_main.cpp).
#pragma once

#include "support/catch.hpp"

#include <ptxbench/evaluate.hpp>

#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

namespace testing {

using namespace ptxbench;  // NOLINT: a test's header

// A folder that is removed.
class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "ptxbench-stub-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const std::string& path() const { return path_; }
  bool has(const std::string& name) const { return std::filesystem::exists(path_ + "/" + name); }

 private:
  std::string path_;
};

struct StubCase {
  TestFolder folder;
  std::shared_ptr<Context> context;
  Workload workload;
  Judging judging;
  EvaluateOptions options;

  StubCase() {
    ContextOptions own;
    own.device = "cuda:" + folder.path();
    own.worker_path = PTXBENCH_TEST_STUB_WORKER;
    own.cache_dir = "";
    own.lock_dir = folder.path() + "/locks";
    own.compile_workers = 2;
    auto made = Context::create(own);
    if (!made) FAIL(made.error().to_string());
    context = *made;
    Definition d;
    d.name = "own";
    d.op_type = "own";
    d.axes = {{"n", true, 256, {}}};
    d.outputs = {{"y", std::vector<std::string>{"n"}, DType::float32, {}}};
    workload.definition = make_definition(std::move(d)).value();
    workload.uuid = "w";
    class Nothing final : public Reference {
      Result<void> compute(const Workload&, std::span<const HostTensor>, std::span<HostTensor>) override {
        return {};
      }
    };
    judging.reference = std::shared_ptr<Reference>(std::make_shared<Nothing>());
    judging.baseline = NoBaseline{};
    options.trials = 1;
    options.time = options.count = false;
    options.run_deadline_ns = 5'000'000;
  }

  static Solution candidate(const std::string& word) {
    Solution solution;
    solution.name = word;
    solution.definition = "own";
    solution.author = "test";
    solution.spec.language = "cuda";
    solution.spec.target_hardware = {"cuda"};
    solution.spec.entry_point = "launch.json::run";
    solution.sources = {
        {"launch.json", R"json({"version": 1, "steps": [{"kernel": "k_elect", "grid": [2], "block": [64],
                                            "args": [{"tensor": "y"}]}]})json"},
        {"k.cu", "// " + word + "\n"}};
    return solution;
  }
  EvaluateRequest request(const std::string& word) const {
    return {std::make_shared<const Solution>(candidate(word)), {workload}, judging, options};
  }
  Result<Evaluation> run(const std::string& word) const {
    const EvaluateRequest r = request(word);
    return evaluate(*context, *r.solution, r.workloads, r.judging, r.options);
  }
  std::optional<Status> status(const std::string& word) const {
    const auto evaluation = run(word);
    if (!evaluation) FAIL(word << ": " << evaluation.error().to_string());
    return evaluation->status();
  }
};

}  // namespace testing
