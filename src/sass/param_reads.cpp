#include "sass/param_reads.hpp"

namespace ptxbench::sass {
void mark_parameter_reads(int, elf::Bytes, Kernel&) {}
}  // namespace ptxbench::sass
