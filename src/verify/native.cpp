#include "verify/native.hpp"

#include <ptxbench/verify.hpp>

#include <limits>

namespace ptxbench {

std::optional<GemmPattern> match_gemm(const Definition& definition) noexcept {
  const auto served = [](DType dtype) {
    return dtype == DType::bfloat16 || dtype == DType::float16 || dtype == DType::float32;
  };
  if (definition.op_type != "gemm" || definition.inputs.size() != 2 || definition.outputs.size() != 1)
    return {};
  const TensorSpec &x = definition.inputs[0], &y = definition.inputs[1], &c = definition.outputs[0];
  for (const TensorSpec* tensor : {&x, &y, &c})
    if (!tensor->shape || tensor->shape->size() != 2 || !served(tensor->dtype)) return {};
  if (x.dtype != y.dtype || (*x.shape)[1] != (*y.shape)[1]) return {};
  GemmPattern pattern;
  pattern.input = x.dtype;
  pattern.output = c.dtype;
  if ((*c.shape)[0] == (*x.shape)[0] && (*c.shape)[1] == (*y.shape)[0]) return pattern;
  if ((*c.shape)[0] == (*y.shape)[0] && (*c.shape)[1] == (*x.shape)[0]) {
    pattern.a = 1;
    pattern.b = 0;
    return pattern;
  }
  return {};
}

bool has_native_reference(const Definition& definition) noexcept {
  return match_gemm(definition).has_value();
}

Result<GemmShape> gemm_shape(const Workload& workload, const GemmPattern& pattern) {
  PTXBENCH_TRY_ASSIGN(const auto a, workload.shape_of(workload.definition->inputs[pattern.a]));
  PTXBENCH_TRY_ASSIGN(const auto b, workload.shape_of(workload.definition->inputs[pattern.b]));
  for (const std::int64_t extent : {a[0], a[1], b[0]})
    if (extent < 0 || extent > std::numeric_limits<std::int32_t>::max())
      return make_error(ErrorCode::unsupported, "a GEMM's extent of " + std::to_string(extent) +
                                                    " is beyond what the judge's reference serves");
  return GemmShape{static_cast<std::uint32_t>(a[0]), static_cast<std::uint32_t>(b[0]),
                   static_cast<std::uint32_t>(a[1])};
}

}  // namespace ptxbench
