// What a workload's operation takes at least, whatever the kernel.
#include "verify/native.hpp"

#include <ptxbench/bench.hpp>

namespace ptxbench {

std::optional<TaskWork> task_work(const Workload& workload) {
  if (workload.definition == nullptr) return std::nullopt;
  const Definition& definition = *workload.definition;
  if (const auto gemm = match_gemm(definition)) {
    const Result<GemmShape> s = gemm_shape(workload, *gemm);
    if (!s) return std::nullopt;
    return TaskWork{2.0 * s->m * s->n * s->k, gemm->input};
  }
  if (const auto attention = match_attention(definition)) {
    const Result<AttentionShape> s = attention_shape(workload);
    if (!s) return std::nullopt;
    const double length = s->sequence;
    const double scores = attention->causal ? length * (length + 1) / 2 : length * length;
    // Two products forward; backward five: the scores again, dP, dQ, dK, dV.
    return TaskWork{(attention->backward ? 10.0 : 4.0) * scores * s->head_dim * s->batch * s->heads,
                    attention->dtype};
  }
  return std::nullopt;
}

std::optional<std::uint64_t> task_bytes(const Workload& workload) {
  if (workload.definition == nullptr) return std::nullopt;
  std::uint64_t sum = 0;
  for (const auto* tensors : {&workload.definition->inputs, &workload.definition->outputs})
    for (const TensorSpec& tensor : *tensors) {
      if (tensor.is_scalar()) continue;
      const Result<std::uint64_t> elements = workload.elements_of(tensor);
      if (!elements) return std::nullopt;
      sum += dtype_bytes(tensor.dtype, *elements);
    }
  return sum;
}

}  // namespace ptxbench
