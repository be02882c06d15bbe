// Operations that the judge itself can compute, found by op_type and the pattern of tensors, never by name.
#pragma once

#include <ptxbench/trace.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace ptxbench {

// C[M,N] = A[M,K] * B[N,K]^T in one of bf16, fp16, fp32 (A and B of one type; C of any of the three).
struct GemmPattern {
  std::size_t a = 0, b = 1;  // positions in Definition::inputs
  DType input = DType::bfloat16, output = DType::bfloat16;
};
std::optional<GemmPattern> match_gemm(const Definition& definition) noexcept;

struct GemmShape {
  std::uint32_t m = 0, n = 0, k = 0;
};
Result<GemmShape> gemm_shape(const Workload& workload, const GemmPattern& pattern);

}  // namespace ptxbench
