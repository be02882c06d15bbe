// The judge's attention on a GPU: which kernels of judge.cu run on which rows of which heads.
#pragma once

#include "verify/judge_ops.hpp"

#include <array>
#include <functional>
#include <span>
#include <string_view>

namespace ptxbench {

// Queues one of the judge's kernels with blocks of 256 threads.
using JudgeLauncher = std::function<Result<void>(std::string_view symbol, std::array<std::uint32_t, 3> grid,
                                                 std::span<const std::uint8_t> parameters)>;

// Both wait until they are done: memory of their own is released then.
Result<void> cuda_attention_forward(Device& device, const JudgeLauncher& launch, const AttentionSpec& spec,
                                    const AttentionShape& shape, const AttentionTensors& tensors);
Result<void> cuda_attention_backward(Device& device, const JudgeLauncher& launch, const AttentionSpec& spec,
                                     const AttentionShape& shape, const AttentionTensors& tensors);

}  // namespace ptxbench
