#include "bench/cudnn_attention.hpp"

#include <cmath>
#include <limits>

namespace ptxbench {
namespace {

using cudnn::DataType;
using cudnn::PointwiseMode;
using cudnn::ReductionOperator;

class Attention {
 public:
  Attention(CudnnGraph& graph, const AttentionPattern& pattern, const AttentionShape& shape)
      : graph_(graph),
        causal_(pattern.causal),
        type_(pattern.dtype == DType::bfloat16 ? DataType::bfloat16 : DataType::float16),
        wide_{shape.batch, shape.heads, shape.sequence, shape.head_dim},
        rows_{shape.batch, shape.heads, shape.sequence, 1},
        scale_(1.0f / std::sqrt(static_cast<float>(shape.head_dim))) {}

  // Q K V give O LSE.
  Result<CudnnAttention> forward() {
    PTXBENCH_TRY_ASSIGN(const CudnnTensor q, tensor());
    PTXBENCH_TRY_ASSIGN(const CudnnTensor k_transposed, transposed_tensor());
    PTXBENCH_TRY_ASSIGN(const CudnnTensor v, tensor());
    PTXBENCH_TRY_ASSIGN(const CudnnTensor o, tensor());
    PTXBENCH_TRY_ASSIGN(const CudnnTensor stats, row_tensor());

    PTXBENCH_TRY_ASSIGN(const CudnnTensor s, scores(q, k_transposed));
    PTXBENCH_TRY_ASSIGN(const CudnnTensor masked, mask(s));
    PTXBENCH_TRY_ASSIGN(const CudnnTensor most, graph_.reduce(ReductionOperator::max, masked));
    PTXBENCH_TRY_ASSIGN(const CudnnTensor below, apply(PointwiseMode::sub, masked, &most));
    PTXBENCH_TRY_ASSIGN(const CudnnTensor powers, apply(PointwiseMode::exp, below));
    PTXBENCH_TRY_ASSIGN(const CudnnTensor sum, graph_.reduce(ReductionOperator::add, powers));
    PTXBENCH_TRY_ASSIGN(const CudnnTensor log, apply(PointwiseMode::log, sum));
    PTXBENCH_TRY(apply(PointwiseMode::add, most, &log, &stats));
    // The second product takes operands of the tensors' own type.
    PTXBENCH_TRY_ASSIGN(const CudnnTensor p, graph_.pointwise({PointwiseMode::div, type_}, powers, &sum));
    PTXBENCH_TRY(graph_.matmul(p, v, &o));
    return CudnnAttention{{q.id, k_transposed.id, v.id}, {o.id, stats.id}, {}};
  }

  // Q K V O dO L give dQ dK dV.
  Result<CudnnAttention> backward() {
    PTXBENCH_TRY_ASSIGN(const CudnnTensor q, tensor());
    PTXBENCH_TRY_ASSIGN(const CudnnTensor k_transposed, transposed_tensor());
    PTXBENCH_TRY_ASSIGN(const CudnnTensor v_transposed, transposed_tensor());
    PTXBENCH_TRY_ASSIGN(const CudnnTensor o, tensor());
    PTXBENCH_TRY_ASSIGN(const CudnnTensor d_o, tensor());
    PTXBENCH_TRY_ASSIGN(const CudnnTensor stats, row_tensor());
    PTXBENCH_TRY_ASSIGN(const CudnnTensor d_q, tensor());
    PTXBENCH_TRY_ASSIGN(const CudnnTensor d_k, tensor());
    PTXBENCH_TRY_ASSIGN(const CudnnTensor d_v, tensor());
    // The sums of dO * O by row, and dQ as it is summed up, lie in memory: kernels of their own make and end
    // them.
    PTXBENCH_TRY_ASSIGN(const CudnnTensor row_sums, row_tensor());
    PTXBENCH_TRY_ASSIGN(const CudnnTensor d_q_sums,
                        graph_.tensor(wide_, packed_strides(wide_), DataType::float32));

    PTXBENCH_TRY_ASSIGN(const CudnnTensor products, apply(PointwiseMode::mul, d_o, &o));
    PTXBENCH_TRY_ASSIGN(const CudnnTensor reduced, graph_.reduce(ReductionOperator::add, products));
    // The engine wants the factor of a dropout here.
    PTXBENCH_TRY_ASSIGN(const CudnnTensor one, graph_.constant(1.0f));
    PTXBENCH_TRY(apply(PointwiseMode::mul, reduced, &one, &row_sums));

    PTXBENCH_TRY_ASSIGN(const CudnnTensor s, scores(q, k_transposed));
    PTXBENCH_TRY_ASSIGN(const CudnnTensor masked, mask(s));
    PTXBENCH_TRY_ASSIGN(const CudnnTensor below, apply(PointwiseMode::sub, masked, &stats));
    PTXBENCH_TRY_ASSIGN(const CudnnTensor p, apply(PointwiseMode::exp, below));
    PTXBENCH_TRY_ASSIGN(const CudnnTensor p_transposed, graph_.transpose(p, type_));
    PTXBENCH_TRY(graph_.matmul(p_transposed, d_o, &d_v));

    PTXBENCH_TRY_ASSIGN(const CudnnTensor d_p, graph_.matmul(d_o, v_transposed));
    PTXBENCH_TRY_ASSIGN(const CudnnTensor centred, apply(PointwiseMode::sub, d_p, &row_sums));
    PTXBENCH_TRY_ASSIGN(const CudnnTensor weighted, apply(PointwiseMode::mul, centred, &p));
    PTXBENCH_TRY_ASSIGN(const CudnnTensor d_s, apply(PointwiseMode::mul, weighted, &scale_tensor_));
    PTXBENCH_TRY_ASSIGN(const CudnnTensor d_s_transposed, graph_.transpose(d_s, type_));
    PTXBENCH_TRY(graph_.matmul(d_s_transposed, q, &d_k));
    PTXBENCH_TRY_ASSIGN(const CudnnTensor k, graph_.transpose(k_transposed, type_));
    PTXBENCH_TRY(graph_.matmul(d_s, k, &d_q_sums));
    PTXBENCH_TRY(apply(PointwiseMode::identity, d_q_sums, nullptr, &d_q));

    const auto elements = [](const CudnnDims& d) {
      return static_cast<std::uint64_t>(d[0] * d[1] * d[2] * d[3]);
    };
    return CudnnAttention{{q.id, k_transposed.id, v_transposed.id, o.id, d_o.id, stats.id},
                          {d_q.id, d_k.id, d_v.id},
                          {{row_sums.id, elements(rows_) * 4}, {d_q_sums.id, elements(wide_) * 4}}};
  }

 private:
  Result<CudnnTensor> tensor() { return graph_.tensor(wide_, packed_strides(wide_), type_); }
  Result<CudnnTensor> row_tensor() { return graph_.tensor(rows_, packed_strides(rows_), DataType::float32); }
  // [B,H,S,D] in memory, seen as [B,H,D,S].
  Result<CudnnTensor> transposed_tensor() {
    CudnnDims dims = wide_, strides = packed_strides(wide_);
    std::swap(dims[2], dims[3]);
    std::swap(strides[2], strides[3]);
    return graph_.tensor(dims, strides, type_);
  }

  Result<CudnnTensor> apply(PointwiseMode mode, const CudnnTensor& x, const CudnnTensor* b = nullptr,
                            const CudnnTensor* into = nullptr) {
    return graph_.pointwise({mode}, x, b, nullptr, into);
  }

  Result<CudnnTensor> scores(const CudnnTensor& q, const CudnnTensor& k_transposed) {
    PTXBENCH_TRY_ASSIGN(const CudnnTensor product, graph_.matmul(q, k_transposed));
    PTXBENCH_TRY_ASSIGN(scale_tensor_, graph_.constant(scale_));
    return apply(PointwiseMode::mul, product, &scale_tensor_);
  }

  // Query i sees the keys 0..i.
  Result<CudnnTensor> mask(const CudnnTensor& s) {
    if (!causal_) return s;
    const auto index = [&](std::int64_t axis) {
      return graph_.pointwise({PointwiseMode::gen_index, DataType::int32, DataType::int32, axis}, s);
    };
    PTXBENCH_TRY_ASSIGN(const CudnnTensor row, index(2));
    PTXBENCH_TRY_ASSIGN(const CudnnTensor column, index(3));
    PTXBENCH_TRY_ASSIGN(
        const CudnnTensor seen,
        graph_.pointwise({PointwiseMode::compare_ge, DataType::boolean, DataType::boolean}, row, &column));
    PTXBENCH_TRY_ASSIGN(const CudnnTensor lowest, graph_.constant(std::numeric_limits<float>::lowest()));
    return graph_.pointwise({PointwiseMode::binary_select}, s, &lowest, &seen);
  }

  CudnnGraph& graph_;
  bool causal_;
  DataType type_;
  CudnnDims wide_, rows_;
  float scale_;
  CudnnTensor scale_tensor_;
};

}  // namespace

Result<CudnnAttention> add_attention(CudnnGraph& graph, const AttentionPattern& pattern,
                                     const AttentionShape& shape) {
  Attention attention(graph, pattern, shape);
  return pattern.backward ? attention.backward() : attention.forward();
}

}  // namespace ptxbench
