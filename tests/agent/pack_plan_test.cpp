// What the pack tells a model about launch plans is what the library takes.
#include "agent/support.hpp"
#include "support/catch.hpp"

#include <ptxbench/plan.hpp>

using namespace ptxbench;
using namespace ptxbench::testing;

TEST_CASE("the plan in the Hopper pack's notes binds to the GEMM") {
  const auto pack = KnowledgePack::load(std::string(PTXBENCH_SOURCE_DIR) + "/knowledge_packs/hopper").value();
  const std::string root = std::string(PTXBENCH_SOURCE_DIR) + "/examples/data/";
  const auto gemm = load_definition(root + "definitions/gemm/gemm_n7168_k5120.json").value();
  const auto workloads = load_workloads(gemm, root + "workloads/gemm/gemm_n7168_k5120.jsonl").value();
  const std::string kernel = "\n```cuda\ntemplate <int A, int B> __global__ void gemm() {}\n```\n";
  const ParsedReply reply = parse_reply(pack->launch_plan().text + kernel, *gemm, "t");
  REQUIRE(reply.candidate);
  const auto plan = LaunchPlan::parse(reply.candidate->find_source("launch.json")->content);
  INFO((plan ? std::string() : plan.error().to_string()));
  REQUIRE(plan);
  const auto bound = bind_plan(*plan, *reply.candidate, workloads[0], BindOptions{device_profile("h200").value(), {}});
  INFO((bound ? std::string() : bound.error().to_string()));
  CHECK(bound);
}
