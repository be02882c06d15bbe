#include "device/kernel_info.hpp"

namespace ptxbench {

KernelInfo kernel_info(const sass::Kernel& kernel) {
  KernelInfo info;
  info.symbol = kernel.symbol;
  for (const sass::Parameter& p : kernel.parameters) info.parameters.push_back({p.offset, p.size, p.read});
  info.parameter_bytes = kernel.parameter_bytes;
  info.parameter_base = kernel.parameter_base;
  info.registers = kernel.registers;
  info.static_shared_bytes = kernel.static_shared_bytes;
  info.required_block = kernel.required_block;
  info.max_block = kernel.max_block;
  info.required_cluster = kernel.required_cluster;
  info.explicit_cluster = kernel.explicit_cluster;
  return info;
}

}  // namespace ptxbench
