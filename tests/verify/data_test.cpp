// The definitions and workloads of examples/data.
#include "support/catch.hpp"
#include "verify/native.hpp"

#include <ptxbench/verify.hpp>

#include <filesystem>
#include <map>
#include <set>

using namespace ptxbench;

TEST_CASE("every definition of examples/data loads, has workloads, and is one the judge computes itself") {
  const std::filesystem::path data = std::string(PTXBENCH_SOURCE_DIR) + "/examples/data";
  std::map<std::string, int> of_type;
  std::set<std::string> names, uuids;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data / "definitions")) {
    if (entry.path().extension() != ".json") continue;
    INFO(entry.path().string());
    const auto definition = load_definition(entry.path().string());
    if (!definition) FAIL(definition.error().to_string());
    const Definition& d = **definition;
    CHECK(d.name == entry.path().stem().string());
    CHECK(d.op_type == entry.path().parent_path().filename().string());
    CHECK(d.reference.find("def run(") != std::string::npos);
    CHECK(has_native_reference(d));
    const auto workloads =
        load_workloads(*definition, (data / "workloads" / d.op_type / (d.name + ".jsonl")).string());
    if (!workloads) FAIL(workloads.error().to_string());
    CHECK(workloads->size() >= 3);
    for (const Workload& workload : *workloads) {
      CHECK(uuids.insert(workload.uuid).second);
      for (const TensorSpec& tensor : d.outputs) CHECK(workload.elements_of(tensor).value() > 0);
    }
    if (const auto attention = match_attention(d)) {
      CHECK(attention->causal == (d.name.find("_causal") != std::string::npos));
      CHECK(attention->backward == (d.name.find("mha_bwd_") == 0));
      CHECK(attention->dtype == DType::bfloat16);
      CHECK(workloads->size() == (d.name.find("_small") != std::string::npos ? 3 : 6));
      CHECK(attention_shape(workloads->front()).value().elements() > 0);
    } else {
      CHECK(match_gemm(d));
    }
    names.insert(d.name);
    ++of_type[d.op_type];
  }
  CHECK(of_type["gemm"] == 18);  // the published ones and gemm_small
  CHECK(of_type["attention"] == 32);
  for (const char* name : {"gemm_n7168_k5120", "gemm_n128_k2048", "gemm_n34816_k5120", "mha_with_lse_d128",
                           "mha_with_lse_d96_causal", "mha_bwd_d128", "mha_bwd_d256_causal",
                           "mha_bwd_d64_causal_small", "mha_with_lse_d256_small"})
    CHECK(names.count(name) == 1);
}

TEST_CASE("an attention without a mask's tag, or with tensors of other shapes, is not recognised") {
  auto made = load_definition(std::string(PTXBENCH_SOURCE_DIR) +
                              "/examples/data/definitions/attention/mha_bwd_d64.json");
  REQUIRE(made);
  CHECK(match_attention(**made));
  Definition d = **made;
  d.name = "renamed";
  CHECK(match_attention(d));
  d.tags = {};
  CHECK_FALSE(match_attention(d));
  d.tags = {"mask:none", "mask:causal"};
  CHECK_FALSE(match_attention(d));
  d = **made;
  d.inputs[5].dtype = DType::bfloat16;
  CHECK_FALSE(match_attention(d));
  d = **made;
  d.inputs[1].shape = std::vector<std::string>{"B", "D", "S", "H"};
  CHECK_FALSE(match_attention(d));
  d = **made;
  d.op_type = "mine";
  CHECK_FALSE(has_native_reference(d));
}
