// Which parameters a kernel's code reads.
#pragma once

#include "sass/elf.hpp"

#include <ptxbench/sass.hpp>

namespace ptxbench::sass {

// Sets `read` of the kernel's parameters, and `uses_dynamic_shared`, from its code (whole instructions of 16
// bytes).
void mark_parameter_reads(int sm, elf::Bytes code, Kernel& kernel);

}  // namespace ptxbench::sass
