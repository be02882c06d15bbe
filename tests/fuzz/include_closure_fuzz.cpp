// #include scanning and resolution. Files are separated by NUL bytes; the first is the source.
#include "compile/include_closure.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ptxbench;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  HeaderPool pool;
  const char* const names[] = {"k.cu", "a.h", "b/c.h", "ptx/x.cuh", "launch_plan.h"};
  for (const char* name : names) {
    const std::string_view file = text.substr(0, text.find('\0'));
    text.remove_prefix(std::min(file.size() + 1, text.size()));
    (std::string_view(name).starts_with("ptx") || std::string_view(name).starts_with("launch")
         ? pool.given
         : pool.candidate)[name] = file;
  }
  const IncludeClosure closure = close_includes("k.cu", pool.candidate["k.cu"], pool, false);
  // Rewriting keeps the number of lines, or messages would point elsewhere.
  const auto lines = [](std::string_view s) { return std::count(s.begin(), s.end(), '\n'); };
  if (lines(closure.source) != lines(pool.candidate["k.cu"])) std::abort();
  for (const IncludeDirective& d : scan_includes(pool.candidate["k.cu"]))
    if (d.begin >= d.end || d.end > pool.candidate["k.cu"].size()) std::abort();
  return 0;
}
