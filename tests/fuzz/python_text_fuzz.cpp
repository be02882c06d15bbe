#include "trace/python_text.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)ptxbench::reference_problem(text);
  (void)ptxbench::constraint_problem(text);
  return 0;
}
