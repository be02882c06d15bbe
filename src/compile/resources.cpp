#include "compile/resources.hpp"

#include <charconv>

namespace ptxbench {
namespace {

// The number before `unit` in `line`, e.g. " bytes smem".
std::uint64_t number_before(std::string_view line, std::string_view unit) {
  const std::size_t at = line.find(unit);
  if (at == std::string_view::npos) return 0;
  std::size_t begin = at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  std::uint64_t value = 0;
  std::from_chars(line.data() + begin, line.data() + at, value);
  return value;
}

std::string_view quoted(std::string_view line, std::string_view head) {
  const std::size_t at = line.find(head);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = at + head.size(), end = line.find('\'', begin);
  return end == std::string_view::npos ? std::string_view() : line.substr(begin, end - begin);
}

}  // namespace

std::vector<KernelResources> parse_resources(std::string_view log) {
  std::vector<KernelResources> kernels;
  std::string_view properties_of;
  for (std::size_t begin = 0; begin < log.size();) {
    const std::size_t end = std::min(log.find('\n', begin), log.size());
    const std::string_view line = log.substr(begin, end - begin);
    begin = end + 1;
    if (!line.starts_with("ptxas")) continue;
    if (const std::string_view name = quoted(line, "Compiling entry function '"); !name.empty()) {
      KernelResources kernel;
      kernel.kernel = kernel.symbol = std::string(name);
      kernels.push_back(std::move(kernel));
      properties_of = {};
      continue;
    }
    constexpr std::string_view kProperties = "Function properties for ";
    if (const std::size_t at = line.find(kProperties); at != std::string_view::npos) {
      properties_of = line.substr(at + kProperties.size());
      while (properties_of.ends_with('\r') || properties_of.ends_with(' ')) properties_of.remove_suffix(1);
      continue;
    }
    if (kernels.empty()) continue;
    KernelResources& kernel = kernels.back();
    if (line.find(" bytes stack frame") != std::string_view::npos) {
      // Functions that were not inlined have properties of their own; a kernel's are those under its name.
      if (properties_of != kernel.symbol) continue;
      kernel.stack_bytes = number_before(line, " bytes stack frame");
      kernel.spill_store_bytes = number_before(line, " bytes spill stores");
      kernel.spill_load_bytes = number_before(line, " bytes spill loads");
    } else if (line.find(": Used ") != std::string_view::npos) {
      kernel.registers = static_cast<int>(std::min<std::uint64_t>(number_before(line, " registers"), 1024));
      kernel.static_shared_bytes = number_before(line, " bytes smem");
      if (const std::uint64_t stack = number_before(line, " bytes cumulative stack size"); stack > 0)
        kernel.stack_bytes = stack;
    }
  }
  return kernels;
}

}  // namespace ptxbench
