// The logs of NVRTC and ptxas, and the PTX text that they are about.
#include "compile/diagnostics.hpp"
#include "compile/kernel_names.hpp"
#include "compile/ptx_text.hpp"
#include "compile/resources.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ptxbench;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // The first half is the log, the second the PTX and the source.
  const std::string_view log = text.substr(0, size / 2), ptx = text.substr(size / 2);
  std::vector<Diagnostic> diagnostics = parse_compiler_log(log);
  map_to_sources(diagnostics, ptx, [&](const std::string&) { return ptx; });
  interpret_diagnostics(diagnostics, ptx, "sm_90a");
  parse_resources(log);
  read_ptx_symbols(ptx);
  read_ptx_header(ptx);
  declared_kernels(ptx);
  kernel_name_of_symbol(std::string(text.substr(0, 200)));
  return 0;
}
