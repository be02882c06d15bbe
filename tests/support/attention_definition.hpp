// An attention's definition and workload, for tests.
#pragma once

#include <ptxbench/trace.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ptxbench::testing {

// Q K V -> O LSE, or Q K V O dO L -> dQ dK dV, over [B,H,S,D].
inline DefinitionPtr attention_definition(bool backward, bool causal, std::int64_t d,
                                          DType dtype = DType::bfloat16) {
  Definition def;
  def.name = "small_attention";
  def.op_type = "attention";
  def.tags = {causal ? "mask:causal" : "mask:none"};
  def.axes = {{"B", false, 0, {}}, {"H", false, 0, {}}, {"S", false, 0, {}}, {"D", true, d, {}}};
  const std::vector<std::string> rows{"B", "H", "S", "D"}, by_row{"B", "H", "S"};
  const auto like = [&](const char* name) { return TensorSpec{name, rows, dtype, {}}; };
  def.inputs = {like("Q"), like("K"), like("V")};
  if (backward) {
    def.inputs.insert(def.inputs.end(), {like("O"), like("dO"), {"L", by_row, DType::float32, {}}});
    def.outputs = {like("dQ"), like("dK"), like("dV")};
  } else {
    def.outputs = {like("O"), {"LSE", by_row, DType::float32, {}}};
  }
  return make_definition(std::move(def)).value();
}

inline Workload attention_workload(DefinitionPtr definition, std::int64_t b, std::int64_t h, std::int64_t s) {
  Workload w;
  w.definition = std::move(definition);
  w.axes = {{"B", b}, {"H", h}, {"S", s}};
  w.uuid = "w";
  return make_workload(std::move(w)).value();
}

}  // namespace ptxbench::testing
