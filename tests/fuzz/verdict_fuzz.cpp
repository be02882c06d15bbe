#include <ptxbench/trace/verdict.hpp>

#include <cstdlib>

using namespace ptxbench;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto verdict = parse_verdict(text, "fuzz")) {
    const std::string written = to_json(*verdict);
    const auto again = parse_verdict(written);
    if (!again || to_json(*again) != written) std::abort();
  }
  if (const auto evaluation = parse_evaluation(text, "fuzz")) {
    const std::string written = to_json(*evaluation);
    const auto again = parse_evaluation(written);
    if (!again || to_json(*again) != written) std::abort();
  }
  return 0;
}
