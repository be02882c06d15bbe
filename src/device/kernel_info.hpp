// What a cubin tells of a kernel, as plans want it.
#pragma once

#include <ptxbench/plan.hpp>
#include <ptxbench/sass.hpp>

namespace ptxbench {

KernelInfo kernel_info(const sass::Kernel& kernel);

}  // namespace ptxbench
