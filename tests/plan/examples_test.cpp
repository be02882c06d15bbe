#include "plan_support.hpp"

#include <filesystem>

using namespace ptxbench;
using namespace ptxbench::testing;

TEST_CASE("the example candidates' plans bind to every workload") {
  const std::string data = std::string(PTXBENCH_SOURCE_DIR) + "/examples/data";
  const DefinitionPtr definition = must(load_definition(data + "/definitions/gemm/gemm_n7168_k5120.json"));
  const std::vector<Workload> workloads =
      must(load_workloads(definition, data + "/workloads/gemm/gemm_n7168_k5120.jsonl"));
  REQUIRE_FALSE(workloads.empty());
  std::size_t candidates = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data + "/candidates")) {
    if (!entry.is_directory()) continue;
    INFO(entry.path().string());
    const Solution solution = must(load_solution(entry.path().string(), *definition));
    const SourceFile* text = solution.find_source("launch.json");
    REQUIRE(text != nullptr);
    const LaunchPlan plan = must(LaunchPlan::parse(text->content));
    for (const Workload& workload : workloads) {
      const BoundPlan bound = must(bind_plan(plan, solution, workload, h200()));
      CHECK(bound.applicable);
      CHECK(bound.sources.size() == 1);
    }
    ++candidates;
  }
  CHECK(candidates >= 3);
}
