#include "emulator/vector_clocks.hpp"

#include <algorithm>

namespace ptxbench::emulator {

void VectorClocks::reset(const Cluster& cluster) {
  warps_ = static_cast<std::uint32_t>(cluster.ctas.front()->warps.size());
  const std::size_t all = cluster.ctas.size() * warps_;
  clocks_.assign(all, Clock(all * kWhats, 0));
  barriers_.clear();
  memory_.assign(all * kWhats, 0);
}

void VectorClocks::learn(std::uint32_t rank, std::uint32_t warp, What what, std::uint64_t value) {
  std::uint64_t& own = of(rank, warp)[place(rank, warp, what)];
  own = std::max(own, value);
}

bool VectorClocks::known(std::uint32_t rank, std::uint32_t warp, What what, std::uint32_t of_rank,
                         std::uint32_t of_warp, std::uint64_t value) const {
  return of(rank, warp)[place(of_rank, of_warp, what)] >= value;
}

bool VectorClocks::known_of_any(std::uint32_t rank, std::uint32_t warp, What what,
                                std::uint64_t value) const {
  const Clock& clock = of(rank, warp);
  for (std::size_t i = what; i < clock.size(); i += kWhats)
    if (clock[i] >= value) return true;
  return false;
}

std::uint64_t VectorClocks::number_of(const WaitKey& key) {
  return static_cast<std::uint64_t>(key.kind) << 48 | std::uint64_t{key.cta} << 32 | key.address;
}

void VectorClocks::join(Clock& into, const Clock& from) {
  if (into.size() < from.size()) into.resize(from.size(), 0);
  for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

void VectorClocks::arrive(const WaitKey& key, std::uint32_t rank, std::uint32_t warp) {
  join(barriers_[number_of(key)].under_way, of(rank, warp));
}

void VectorClocks::complete(const WaitKey& key) {
  Barrier& b = barriers_[number_of(key)];
  join(b.over, b.under_way);
  b.under_way.clear();
}

void VectorClocks::wait(const WaitKey& key, std::uint32_t rank, std::uint32_t warp) {
  const auto at = barriers_.find(number_of(key));
  if (at != barriers_.end()) join(of(rank, warp), at->second.over);
}

void VectorClocks::access(std::uint32_t rank, std::uint32_t warp) {
  join(memory_, of(rank, warp));
  join(of(rank, warp), memory_);
}

}  // namespace ptxbench::emulator
