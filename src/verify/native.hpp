// Operations that the judge itself can compute, found by op_type and the pattern of tensors, never by name.
#pragma once

#include <ptxbench/trace.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

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

// O = softmax(Q K^T / sqrt(D)) V over [B,H,S,D] in bf16 or fp16, LSE [B,H,S] in fp32: the natural logarithm
// of the sum of exp of the scaled scores. Backward: Q K V O dO [B,H,S,D] and L [B,H,S] give dQ dK dV. op_type
// "attention"; the mask is the tag "mask:causal" (query i sees keys 0..i) or "mask:none". Without such a tag
// nothing matches, since the tensors of both are alike.
struct AttentionPattern {
  bool backward = false, causal = false;
  DType dtype = DType::bfloat16;
};
std::optional<AttentionPattern> match_attention(const Definition& definition) noexcept;

struct AttentionShape {
  std::uint32_t batch = 0, heads = 0, sequence = 0, head_dim = 0;
  std::uint32_t all_heads() const { return batch * heads; }
  std::uint64_t rows() const { return std::uint64_t{all_heads()} * sequence; }
  std::uint64_t elements() const { return rows() * head_dim; }
};
Result<AttentionShape> attention_shape(const Workload& workload);

// How many rows of each head the model is computed for: those of about 2^20 outputs, or all where that is not
// much less.
std::uint32_t sampled_rows(const AttentionShape& shape) noexcept;
// Which they are: [batch * heads, sampled_rows], ascending, one from each of as many equal parts of the
// sequence.
std::vector<std::uint32_t> sample_rows(const AttentionShape& shape, std::uint64_t seed);

}  // namespace ptxbench
