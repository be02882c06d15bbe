// Warpgroup multiplies under way. The four warps of a warpgroup issue the same wgmma one after the other;
// when the last has, the operation is ready, and those of one warpgroup complete in the order of their issue.
// Operands in shared memory and in registers are read, and accumulators written, when it completes.
#pragma once

#include "emulator/async.hpp"
#include "emulator/machine.hpp"
#include "emulator/tensor_math.hpp"
#include "emulator/wgmma_descriptor.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

namespace ptxbench::emulator {

class WgmmaOp;

// Of one warpgroup: Cta::warpgroups. Operations are numbered from 1 in the order of their issue, which is the
// same for its warps.
struct WgmmaState {
  std::uint64_t completed = 0;            // this many, the oldest first
  std::array<std::uint64_t, 4> issued{};  // by warp
  std::array<std::deque<std::uint64_t>, 4>
      groups;                      // by warp: last operation of each group that may not be complete
  std::array<std::deque<std::uint64_t>, 4> committed;  // the same of the groups that no wait was for yet
  std::deque<WgmmaOp*> under_way;  // owned by the queue; the first is number completed + 1
};

// Warp::in_flight counts operations that read a slot in its low byte, those that write it in the high one.
// Whoever only reads what is only read need not wait.
inline constexpr std::uint16_t kReadInFlight = 1, kWriteInFlight = 0x100;

class WgmmaOp final : public AsyncOp {
 public:
  bool ready(const Cluster& cluster) const override;
  bool complete(Cluster& cluster, Run& run) override;
  std::string describe() const override;

  const Op* op = nullptr;
  const Kernel* kernel = nullptr;
  std::uint32_t group = 0;  // the warpgroup: warps 4 * group and the three behind
  std::uint64_t number = 0;
  std::uint8_t joined = 0;  // a bit a warp
  int n = 8, k = 16;
  int rule = 0;
  bool a_in_registers = false;
  bool a_mn_major = false, b_mn_major = false;
  std::uint64_t a_descriptor = 0, b_descriptor = 0;
  MultiplyOptions options;
};

}  // namespace ptxbench::emulator
