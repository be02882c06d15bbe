// Groups of copies, which each thread forms for itself: those of cp.async, and those of bulk copies
// (cp.async.bulk.commit_group). A thread's copies belong to the group that it commits next; a wait is for all
// of its groups but the newest few.
#pragma once

#include "emulator/async_operands.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace ptxbench::emulator {

class GroupedOp;

struct CopyGroups {
  struct Family {
    std::array<std::uint32_t, kLanes>
        committed{};                  // groups that a lane has committed: the number of its open one
    std::vector<GroupedOp*> pending;  // of this warp, not complete
  } cp_async, bulk;
  // Stores that no wait was for yet, complete or not, and the number of waits (overwrites.hpp).
  struct Unwaited {
    Mask lanes = 0;
    std::uint32_t group = 0, number = 0;
  };
  std::vector<Unwaited> stores;
  std::uint64_t waits = 0;
};

// Of a warp; made when asked for.
inline const std::shared_ptr<CopyGroups>& copy_groups(Warp& warp) {
  if (!warp.copies) warp.copies = std::make_shared<CopyGroups>();
  return warp.copies;
}

// An operation that belongs to groups of its lanes.
class GroupedOp : public AsyncOp {
 public:
  // @p family: of @p groups, which lives as long as the operation.
  void join(std::shared_ptr<CopyGroups> groups, CopyGroups::Family CopyGroups::*family, Mask lanes);
  // Its source has been read: wait_group.read need not wait for it any more.
  void source_read(Cluster& cluster);
  // It is complete.
  void leave(Cluster& cluster);
  // Whether a wait of @p lanes for all but @p newest groups has to wait for this one.
  bool holds_up(Mask lanes, std::uint32_t newest, bool read_only) const;
  // Somebody waits for it: told when it has read and when it is complete.
  void await() { awaited_ = true; }
  Mask lanes() const { return lanes_; }
  // How many groups @p lane had committed when it issued this.
  std::uint32_t group_of(int lane) const { return group_[static_cast<unsigned>(lane)]; }
  // A bulk store, number @p number of note_store_read, reads its source now.
  void reads_source(std::uint32_t number);

 private:
  void tell(Cluster& cluster);
  std::shared_ptr<CopyGroups> groups_;
  CopyGroups::Family* family_ = nullptr;
  Mask lanes_ = 0;
  bool read_ = false, awaited_ = false;
  std::array<std::uint32_t, kLanes> group_{};
};

inline constexpr std::uint32_t kAllCopies = UINT32_MAX;  // as `newest`: also those in groups not committed
// What a wait_group of the executing lanes does: next, or again with the fragment parked.
Flow wait_for_groups(Exec& x, const CopyGroups::Family& family, std::uint32_t newest, bool read_only);

}  // namespace ptxbench::emulator
