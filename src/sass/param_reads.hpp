// Which parameters a kernel's code reads, and whether it needs dynamic shared memory.
#pragma once

#include "sass/elf.hpp"

#include <ptxbench/sass.hpp>

#include <cstdint>
#include <optional>

namespace ptxbench::sass {

// Sets `read` of the kernel's parameters from its code (whole instructions of 16 bytes). Wherever the code
// could read a parameter in a way that its words do not show, those not certainly read are unknown.
void mark_parameter_reads(int sm, elf::Bytes code, Kernel& kernel);

// Where the parameters' generic address is in bank 0: code that takes a parameter's address begins by loading
// it.
std::optional<std::uint32_t> address_of_parameters(int sm);

// Whether an instruction of the code names shared memory.
bool addresses_shared(int sm, elf::Bytes code);

}  // namespace ptxbench::sass
