#include "emulator/run.hpp"

#include <algorithm>
#include <utility>

namespace ptxbench::emulator {

void Run::remark(bool hazard, std::string_view code, const Site& site, std::string message) {
  constexpr std::size_t kMost = 1000;  // kinds at different instructions
  for (Remark& r : remarks) {
    if (r.site.op != site.op || r.code != code) continue;
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
