#include "evaluate/module_info.hpp"

#include "device/kernel_info.hpp"

#include <ptxbench/sass.hpp>

#include <map>
#include <string>

namespace ptxbench {

Result<ModuleInfo> module_info(const CompiledModule& module) {
  ModuleInfo info;
  info.source = module.source;
  info.lowered = module.lowered;
  if (module.cubin.empty()) return info;
  PTXBENCH_TRY_ASSIGN(const sass::Cubin cubin, sass::read_cubin(module.cubin));
  for (const sass::Kernel& kernel : cubin.kernels) info.kernels.push_back(kernel_info(kernel));
  for (const sass::Global& global : cubin.globals) info.globals.push_back({global.symbol, global.bytes});
  return info;
}

Result<std::vector<StaticFamily>> static_families(const CompiledModule& module) {
  std::vector<StaticFamily> out;
  if (module.cubin.empty()) return out;
  PTXBENCH_TRY_ASSIGN(const sass::Cubin cubin, sass::read_cubin(module.cubin));
  for (const sass::Kernel& kernel : cubin.kernels) {
    PTXBENCH_TRY_ASSIGN(const std::vector<sass::CensusEntry> census, sass::census(module.cubin, cubin, kernel));
    std::map<std::string, std::uint64_t> by_family;
    for (const sass::CensusEntry& entry : census) by_family[entry.family] += entry.instructions;
    for (const auto& [family, instructions] : by_family) out.push_back({kernel.symbol, family, instructions});
  }
  return out;
}

}  // namespace ptxbench
