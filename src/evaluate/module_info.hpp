// What the host itself reads out of compiled modules, no device needed.
#pragma once

#include <ptxbench/compile.hpp>
#include <ptxbench/plan.hpp>
#include <ptxbench/trace.hpp>

#include <vector>

namespace ptxbench {

// Kernels and globals of a compiled module, from its cubin. Without a cubin (only the driver can assemble it) the
// kernel list is empty.
Result<ModuleInfo> module_info(const CompiledModule& module);

// Static instructions by kernel and family.
Result<std::vector<StaticFamily>> static_families(const CompiledModule& module);

}  // namespace ptxbench
