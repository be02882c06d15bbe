#include <ptxbench/trace.hpp>

#include <cstdlib>

using namespace ptxbench;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto solution = parse_solution({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!solution) return 0;
  const std::string written = to_json(*solution);
  const auto again = parse_solution(written);
  if (!again || to_json(*again) != written) std::abort();
  return 0;
}
