#include "emulator/run.hpp"

#include <algorithm>
#include <utility>

namespace ptxbench::emulator {

void Run::raise(Fault f) {
  if (fault) return;
  fault = std::move(f);
  if (fault->kind != FaultKind::undefined_value || undefined_reads_.empty()) return;
  fault->detail += "first reads of memory that was never written, from one of which the value may come:\n";
  for (const Site& site : undefined_reads_) {
    const OpInfo& info = kernel_->info[kernel_->ops[site.op].info];
    const std::string source = kernel_->module != nullptr ? kernel_->module->source_line(info.location) : std::string();
    fault->detail += "CTA " + std::to_string(site.cta) + " warp " + std::to_string(site.warp) + " at PTX line " +
                     std::to_string(info.where.line) + (source.empty() ? "" : " (" + source + ")") + ", `" + info.text +
                     "`\n";
  }
}

void Run::keep_undefined_read(const Site& site) {
  if (site.op >= kernel_->ops.size()) return;
  for (const Site& known : undefined_reads_)
    if (known.op == site.op) return;
  undefined_reads_.push_back(site);
}

void Run::remark(bool hazard, std::string_view code, const Site& site, std::string message) {
  constexpr std::size_t kMost = 1000;  // kinds at different instructions
  for (Remark& r : remarks) {
    if (r.site.op != site.op || r.code != code || r.hazard != hazard) continue;
    ++r.times;
    return;
  }
  if (remarks.size() >= kMost) return;
  remarks.push_back({hazard, std::string(code), site, std::move(message), 1});
}

void Run::print(std::string_view text) {
  const std::size_t room = kOutputLimit - std::min(kOutputLimit, output.size());
  if (text.size() > room) output_cut = true;
  output += text.substr(0, room);
}

}  // namespace ptxbench::emulator
