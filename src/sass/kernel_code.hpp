// A kernel's machine code in the bytes of its cubin.
#pragma once

#include "sass/elf.hpp"

#include <ptxbench/sass.hpp>

namespace ptxbench::sass {

// Whole instructions. Error: the kernel was read from another file.
Result<elf::Bytes> code_of(elf::Bytes file, const Kernel& kernel);

}  // namespace ptxbench::sass
