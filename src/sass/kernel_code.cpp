#include "sass/kernel_code.hpp"

#include <string>

namespace ptxbench::sass {

Result<elf::Bytes> code_of(elf::Bytes file, const Kernel& kernel) {
  if (kernel.code_offset > file.size() || kernel.code_bytes > file.size() - kernel.code_offset ||
      kernel.code_bytes % 16 != 0)
    return make_error(ErrorCode::invalid_argument,
                      "the code of kernel '" + kernel.symbol + "' is not in this file of " +
                          std::to_string(file.size()) + " bytes; was the kernel read from another one?");
  return file.subspan(kernel.code_offset, kernel.code_bytes);
}

}  // namespace ptxbench::sass
