#include "emulator/async_groups.hpp"

#include <algorithm>

namespace ptxbench::emulator {
namespace {
WaitKey key_of(std::uint16_t cta, std::uint32_t warp) { return {WaitKey::Kind::async_group, cta, warp}; }
}  // namespace

void GroupedOp::join(std::shared_ptr<CopyGroups> groups, CopyGroups::Family CopyGroups::*family, Mask lanes) {
  groups_ = std::move(groups);
  family_ = &((*groups_).*family);
  lanes_ = lanes;
  group_ = family_->committed;
  family_->pending.push_back(this);
}

void GroupedOp::tell(Cluster& cluster) {
  if (awaited_) cluster.wake(key_of(cta, warp));
  awaited_ = false;
}

void GroupedOp::source_read(Cluster& cluster) {
  read_ = true;
  tell(cluster);
}

void GroupedOp::reads_source(std::uint32_t number) {
  if (number == 0) return;
  // One lane issues a store.
  const auto lane = static_cast<unsigned>(__builtin_ctz(lanes_));
  groups_->stores.push_back({lanes_, group_[lane], number});
}

void GroupedOp::leave(Cluster& cluster) {
  std::erase(family_->pending, this);
  tell(cluster);
}

bool GroupedOp::holds_up(Mask lanes, std::uint32_t newest, bool read_only) const {
  if (read_only && read_) return false;
  lanes &= lanes_;
  if (newest == kAllCopies) return lanes != 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(__builtin_ctz(lanes));
    // 0: in the group that is still open; 1: in the newest committed one.
    if (family_->committed[lane] - group_[lane] > newest) return true;
  }
  return false;
}

Flow wait_for_groups(Exec& x, const CopyGroups::Family& family, std::uint32_t newest, bool read_only) {
  for (GroupedOp* op : family.pending) {
    if (!op->holds_up(x.mask, newest, read_only)) continue;
    op->await();
    x.fragment.wait = key_of(static_cast<std::uint16_t>(x.cta.rank), x.warp.index);
    return Flow::again;
  }
  return Flow::next;
}

}  // namespace ptxbench::emulator
