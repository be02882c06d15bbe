// Any bytes as a cubin. Corpus: tests/fixtures/cubins, and corpus/cubin for a cubin with a line table.
#include <ptxbench/sass.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ptxbench;
  const std::span<const std::uint8_t> file(data, size);
  const auto cubin = sass::read_cubin(file);
  if (!cubin) return 0;
  for (const auto& kernel : cubin->kernels) {
    const auto entries = sass::census(file, *cubin, kernel);
    if (!entries) std::abort();
    std::uint64_t total = 0;
    for (const auto& entry : *entries) total += entry.instructions;
    if (total * 16 != kernel.code_bytes) std::abort();
    if (const auto varying = sass::varying_instructions(file, *cubin, kernel))
      for (const std::uint32_t pc : *varying)
        if (pc % 16 != 0 || pc >= kernel.code_bytes) std::abort();
    if (const auto mmas = sass::tcgen05_mmas(file, *cubin, kernel))
      for (const auto& mma : *mmas)
        if (mma.pc_offset >= kernel.code_bytes || (mma.shape && mma.shape->n > 256)) std::abort();
    if (const auto copies = sass::bulk_accesses(file, *cubin, kernel))
      for (const auto& copy : *copies)
        if (copy.parameter && *copy.parameter >= kernel.parameters.size()) std::abort();
    if (const auto lines = sass::source_lines(file, kernel)) {
      for (const auto& line : *lines)
        if (line.places.empty()) std::abort();
      sass::line_at(*lines, 16);
    }
  }
  for (const auto& global : cubin->globals)
    if (global.initialised && (global.image_offset > size || global.bytes > size - global.image_offset))
      std::abort();
  return 0;
}
