// The library baselines that there are, each by the pattern of tensors that it serves.
#pragma once

#include "core/cuda_libs.hpp"
#include "verify/native.hpp"

#include <ptxbench/bench.hpp>

#include <memory>

namespace ptxbench {

// GEMMs: the fastest of what cuBLASLt's heuristics offer with 32 MiB of workspace.
std::unique_ptr<LibraryBaseline> make_cublaslt_gemm(std::shared_ptr<const CublasLt> library,
                                                    const GemmPattern& pattern);

// Attention, forward and backward: the fastest of the plans that cuDNN's heuristics offer for the operation
// graph.
std::unique_ptr<LibraryBaseline> make_cudnn_attention(std::shared_ptr<const Cudnn> library,
                                                      const AttentionPattern& pattern);

}  // namespace ptxbench
