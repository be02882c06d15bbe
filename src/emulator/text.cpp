#include "emulator/text.hpp"

#include "emulator/kernel.hpp"
#include "emulator/machine.hpp"

#include <cinttypes>
#include <cstdio>

namespace ptxbench::emulator {

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%" PRIx64, value);
  return text;
}

std::string bytes_text(std::uint64_t bytes) {
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

namespace {
const OpInfo* info_of(const Kernel& kernel, const Site& site) {
  return site.op < kernel.ops.size() ? &kernel.info[kernel.ops[site.op].info] : nullptr;
}
std::string cuda_line(const Kernel& kernel, const OpInfo& info) {
  return kernel.module != nullptr ? kernel.module->source_line(info.location) : std::string();
}
}  // namespace

std::string line_text(const Kernel& kernel, const Site& site) {
  const OpInfo* info = info_of(kernel, site);
  if (info == nullptr) return {};
  const std::string source = cuda_line(kernel, *info);
  return "PTX line " + std::to_string(info->where.line) + (source.empty() ? "" : " (" + source + ")");
}

std::string who_text(const Kernel& kernel, const Site& site) {
  const std::string text = "warp " + std::to_string(site.warp) + " of CTA " + std::to_string(site.cta);
  const OpInfo* info = info_of(kernel, site);
  if (info == nullptr) return text;
  const std::string source = cuda_line(kernel, *info);
  return text + " (`" + info->text + "`, PTX line " + std::to_string(info->where.line) +
         (source.empty() ? ")" : ", " + source + ")");
}

}  // namespace ptxbench::emulator
