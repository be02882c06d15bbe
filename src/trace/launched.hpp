// Which kernels of the compiled code a workload's plan launches.
#pragma once

#include <ptxbench/trace/verdict.hpp>

#include <algorithm>
#include <string_view>

namespace ptxbench {

// Only launched kernels have an occupancy; where none has one (nothing could be asked), all count as
// launched.
inline bool launched(const CompileBlock& block, std::string_view kernel) {
  const auto known = [](const KernelResources& k) { return k.occupancy_ctas_per_sm.has_value(); };
  if (std::none_of(block.kernels.begin(), block.kernels.end(), known)) return true;
  return std::any_of(block.kernels.begin(), block.kernels.end(),
                     [&](const KernelResources& k) { return k.kernel == kernel && known(k); });
}

}  // namespace ptxbench
