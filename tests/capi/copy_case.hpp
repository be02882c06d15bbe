// A candidate that copies, judged through the C surface.
#pragma once

#include "support/catch.hpp"

#include <ptxbench/ptxbench.h>

#include <string>

namespace testing {

// A definition y = x of n elements, and a candidate that copies.
inline constexpr const char* kDefinition =
    R"({"name": "copy", "op_type": "copy", "axes": {"n": {"type": "var"}},
        "inputs": {"x": {"shape": ["n"], "dtype": "float32"}}, "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
        "reference": "def run(x):\n    return x\n"})";
inline constexpr const char* kWorkload =
    R"({"axes": {"n": 1000}, "inputs": {"x": {"type": "random"}}, "uuid": "w"})";

inline std::string solution(const std::string& body) {
  return R"({"name": "s", "definition": "copy", "author": "test",
      "spec": {"language": "cuda", "target_hardware": ["cuda"], "entry_point": "launch.json::run"},
      "sources": [{"path": "launch.json", "content": "{\"version\": 1, \"steps\": [{\"kernel\": \"copy\", \"grid\": [1], \"block\": [1], \"args\": [{\"tensor\": \"x\"}, {\"tensor\": \"y\"}]}]}"},
                  {"path": "copy.cu", "content": "extern \"C\" __global__ void copy(const float* x, float* y) { )" +
         body + R"( }"}]})";
}

struct Handles {
  ptxbench_context* context = nullptr;
  ptxbench_definition* definition = nullptr;
  ptxbench_workload* workload = nullptr;

  explicit Handles(const char* device = "none") {
    ptxbench_context_options options;
    ptxbench_context_options_init(&options, sizeof options);
    options.device = device;
    options.cache_dir = "";
    options.worker_path = PTXBENCH_BINARY_DIR "/bin/ptxbench-worker";
    REQUIRE(ptxbench_context_create(&context, &options, nullptr) == PTXBENCH_OK);
    REQUIRE(ptxbench_definition_parse(&definition, kDefinition, PTXBENCH_LEN_AUTO, nullptr) == PTXBENCH_OK);
    REQUIRE(ptxbench_workload_parse(&workload, definition, kWorkload, PTXBENCH_LEN_AUTO, nullptr) ==
            PTXBENCH_OK);
  }
  ~Handles() {
    // Parents first: children hold what they need.
    ptxbench_definition_free(definition);
    ptxbench_context_free(context);
    ptxbench_workload_free(workload);
  }
};

inline ptxbench_solution* parse(const std::string& json) {
  ptxbench_solution* out = nullptr;
  REQUIRE(ptxbench_solution_parse(&out, nullptr, json.data(), json.size(), nullptr) == PTXBENCH_OK);
  return out;
}

}  // namespace testing
