// Attention, forward and backward, as the operation graphs in which cuDNN's fused flash-attention engines
// recognise it.
#pragma once

#include "bench/cudnn_graph.hpp"
#include "verify/native.hpp"

namespace ptxbench {

// What a run's addresses are for.
struct CudnnAttention {
  std::vector<std::int64_t> inputs, outputs;  // ids of the definition's tensors, in its order
  // Memory that the graph's operations share, in bytes, by id.
  std::vector<std::pair<std::int64_t, std::uint64_t>> scratch;
};

Result<CudnnAttention> add_attention(CudnnGraph& graph, const AttentionPattern& pattern,
                                     const AttentionShape& shape);

}  // namespace ptxbench
