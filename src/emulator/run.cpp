#include "emulator/run.hpp"

#include "emulator/text.hpp"

#include <algorithm>
#include <utility>

namespace ptxbench::emulator {

void Run::raise(Fault f) {
  if (fault) return;
  fault = std::move(f);
  if (fault->kind != FaultKind::undefined_value) return;
  tell("first stores to shared memory of values that were never written", undefined_stores_);
  tell("first reads of memory that was never written, from one of which the value may come", undefined_reads_);
}

void Run::tell(const char* title, const std::vector<Undefined>& list) {
  if (list.empty()) return;
  fault->detail += std::string(title) + ":\n";
  for (const Undefined& u : list) {
    fault->detail += "CTA " + std::to_string(u.site.cta) + " warp " + std::to_string(u.site.warp) + " at " +
                     line_text(*kernel_, u.site) + ", `" + kernel_->info[kernel_->ops[u.site.op].info].text +
                     "`" + u.where + "\n";
  }
}

bool Run::keeps(const std::vector<Undefined>& list, const Site& site) const {
  return list.size() < kReadsKept && site.op < kernel_->ops.size() &&
         std::none_of(list.begin(), list.end(), [&](const Undefined& u) { return u.site.op == site.op; });
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
