// The judge's attention as loops on the CPU.
#pragma once

#include "verify/judge_ops.hpp"

#include <cstdint>

namespace ptxbench {

// AttentionTensors as the host sees them.
struct HostAttention {
  void *q = nullptr, *k = nullptr, *v = nullptr, *o = nullptr, *lse = nullptr, *d_o = nullptr;
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;
  const std::uint32_t* rows = nullptr;
};

// No extent may be zero.
void host_attention_forward(const AttentionSpec& spec, const AttentionShape& shape, const HostAttention& at);
void host_attention_backward(const AttentionSpec& spec, const AttentionShape& shape, const HostAttention& at);

}  // namespace ptxbench
