#include "verify/native.hpp"

#include "verify/seed.hpp"

#include <ptxbench/verify.hpp>

#include <algorithm>
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

std::optional<AttentionPattern> match_attention(const Definition& definition) noexcept {
  if (definition.op_type != "attention") return {};
  AttentionPattern pattern;
  const auto tagged = [&](std::string_view tag) {
    return std::find(definition.tags.begin(), definition.tags.end(), tag) != definition.tags.end();
  };
  pattern.causal = tagged("mask:causal");
  if (pattern.causal == tagged("mask:none")) return {};
  const auto& in = definition.inputs;
  const auto& out = definition.outputs;
  if (in.size() == 6 && out.size() == 3)
    pattern.backward = true;
  else if (in.size() != 3 || out.size() != 2)
    return {};
  pattern.dtype = in[0].dtype;
  if (pattern.dtype != DType::bfloat16 && pattern.dtype != DType::float16) return {};
  if (!in[0].shape || in[0].shape->size() != 4) return {};
  const auto& shape = *in[0].shape;
  const auto like_q = [&](const TensorSpec& t) {
    return t.shape && *t.shape == shape && t.dtype == pattern.dtype;
  };
  const auto by_row = [&](const TensorSpec& t) {
    return t.shape && t.shape->size() == 3 && std::equal(t.shape->begin(), t.shape->end(), shape.begin()) &&
           t.dtype == DType::float32;
  };
  const std::size_t like = pattern.backward ? 5 : 3;
  for (std::size_t i = 0; i < like; ++i)
    if (!like_q(in[i])) return {};
  if (pattern.backward) {
    if (!by_row(in[5]) || !like_q(out[0]) || !like_q(out[1]) || !like_q(out[2])) return {};
  } else if (!like_q(out[0]) || !by_row(out[1])) {
    return {};
  }
  return pattern;
}

Result<AttentionShape> attention_shape(const Workload& workload) {
  PTXBENCH_TRY_ASSIGN(const auto q, workload.shape_of(workload.definition->inputs[0]));
  for (const std::int64_t extent : {q[0], q[1], q[2], q[3], q[0] * q[1]})
    if (extent < 0 || extent > std::numeric_limits<std::int32_t>::max())
      return make_error(ErrorCode::unsupported, "an attention's extent of " + std::to_string(extent) +
                                                    " is beyond what the judge's reference serves");
  return AttentionShape{static_cast<std::uint32_t>(q[0]), static_cast<std::uint32_t>(q[1]),
                        static_cast<std::uint32_t>(q[2]), static_cast<std::uint32_t>(q[3])};
}

bool has_native_reference(const Definition& definition) noexcept {
  return match_gemm(definition).has_value() || match_attention(definition).has_value();
}

std::uint32_t sampled_rows(const AttentionShape& shape) noexcept {
  constexpr std::uint64_t kOutputs = std::uint64_t{1} << 20;
  const std::uint64_t of_one_row =
      std::max<std::uint64_t>(1, std::uint64_t{shape.all_heads()} * shape.head_dim);
  const std::uint64_t rows = (kOutputs + of_one_row - 1) / of_one_row;
  return 2 * rows > shape.sequence ? shape.sequence : static_cast<std::uint32_t>(rows);
}

std::vector<std::uint32_t> sample_rows(const AttentionShape& shape, std::uint64_t seed) {
  const std::uint32_t rows = sampled_rows(shape);
  std::vector<std::uint32_t> list;
  list.reserve(std::size_t{shape.all_heads()} * rows);
  const auto part = [&](std::uint64_t i) { return static_cast<std::uint32_t>(i * shape.sequence / rows); };
  for (std::uint32_t head = 0; head < shape.all_heads(); ++head)
    for (std::uint32_t i = 0; i < rows; ++i) {
      const judge::Philox random = judge::philox(derive_seed(seed, {"sample"}), i, head, 0, 0);
      list.push_back(part(i) + random.v[0] % (part(i + 1) - part(i)));
    }
  return list;
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
