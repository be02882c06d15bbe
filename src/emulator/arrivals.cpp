// mbarrier objects whose count is smaller than the number of threads that arrive in each round. Each phase
// then ends without the last of them, whose arrival counts for the phase behind: the longer the kernel runs
// the further the phases are ahead of the threads. A run that is short sees no wrong result.
#include "emulator/mbarrier.hpp"
#include "emulator/run.hpp"
#include "emulator/text.hpp"

#include <algorithm>

namespace ptxbench::emulator {
void check_arrival_counts(Run& run, const Grid& grid, const Cta& cta) {
  if (cta.barriers == nullptr) return;
  std::vector<std::uint32_t> offsets;
  for (const auto& [offset, b] : cta.barriers->all())
    if (b.valid && !b.uncounted && b.phase != 0 && b.pending != b.expected) offsets.push_back(offset);
  std::sort(offsets.begin(), offsets.end());
  for (const std::uint32_t offset : offsets) {
    const MBarrier& b = *std::as_const(*cta.barriers).find(offset);
    // Each thread that takes part has arrived as often as every other, more of them than a phase waits for,
    // and the last phase has been left half arrived at.
    std::uint32_t threads = 0, times = 0;
    const bool evenly = std::all_of(b.by_thread.begin(), b.by_thread.end(), [&](std::uint32_t n) {
      if (n == 0) return true;
      if (times == 0) times = n;
      ++threads;
      return n == times;
    });
    if (!evenly || threads <= b.expected) continue;
    const std::string last = grid.kernel != nullptr ? line_text(*grid.kernel, b.last) : std::string();
    run.remark(true, "mbarrier_count_too_small", b.init,
               mbarrier_name(cta, offset) + " expects " + std::to_string(b.expected) +
                   " arrivals a phase, but " + std::to_string(threads) + " threads have arrived at it, " +
                   std::to_string(times) + (times == 1 ? " time" : " times") + " each (the last" +
                   (last.empty() ? "" : ", " + last) +
                   "): its phases end before all of them have come, and it is left with " +
                   std::to_string(b.expected - static_cast<std::uint64_t>(b.pending)) +
                   " arrivals of a phase that never ends");
  }
}

}  // namespace ptxbench::emulator
