// Definitions, and workloads and traces without and with the accepted definition.
#include <ptxbench/trace.hpp>

#include <cstdlib>

using namespace ptxbench;

namespace {

constexpr std::string_view kDefinition =
    R"({"name": "d", "op_type": "op", "axes": {"M": {}, "N": {"value": 4}},
  "inputs": {"A": {"shape": ["M", "N"], "dtype": "float32"}, "s": {"shape": null, "dtype": "int32"}},
  "outputs": {"B": {"shape": ["M"], "dtype": "float32"}}, "reference": "def run(A): return A"})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const DefinitionPtr fixed = parse_definition(kDefinition).value();
  if (const auto definition = parse_definition(text, "fuzz")) {
    const std::string written = to_json(**definition);
    const auto again = parse_definition(written);
    if (!again || to_json(**again) != written) std::abort();
  }
  if (const auto workload = parse_workload(fixed, text, "fuzz")) {
    const std::string written = to_json(*workload);
    const auto again = parse_workload(fixed, written);
    if (!again || to_json(*again) != written) std::abort();
    for (const TensorSpec& tensor : fixed->inputs) (void)workload->elements_of(tensor);
  }
  if (const auto trace = parse_trace(nullptr, text, "fuzz")) {
    const std::string written = to_json_line(*trace);
    const auto again = parse_trace(nullptr, written);
    if (!again || to_json_line(*again) != written) std::abort();
  }
  return 0;
}
