// Inputs for many timed runs, where drawing them anew for each would cost more than the runs.
#pragma once

#include "verify/session.hpp"

#include <cstdint>
#include <vector>

namespace ptxbench {

// Gaussian inputs by number. For most definitions every number is an independent draw. An attention's
// backward pass takes O and L from a forward pass, so a few consistent sets of Q, K, V, O and L are made at
// the first draw, and each number has one of them with its heads (all B*H of them) permuted, the same way in
// every tensor, and a dO of its own: so that contents are new each time. Up to six heads each number is a draw of its own.
class InputPool {
 public:
  static constexpr int kSets = 3;
  static constexpr std::uint64_t kFewHeads = 6;

  InputPool() = default;
  // @p workload and @p layouts outlive the pool. Numbers are trials of @p request_seed.
  InputPool(const Workload& workload, const TensorLayouts& layouts, std::uint64_t request_seed)
      : workload_(&workload), layouts_(&layouts), request_seed_(request_seed) {}

  // The inputs of @p number; those of an earlier number must not be placed or checked any more. Waits for the
  // device.
  Result<Inputs> draw(JudgeOps& judge, Device& device, int number);

 private:
  struct Set {
    std::vector<OwnedBuffer> tensors;  // by input; dO: none
  };
  Result<Set> allocate(Device& device) const;
  Result<void> make_sets(JudgeOps& judge, Device& device, const AttentionPattern& pattern,
                         const AttentionShape& shape);
  Result<void> arrange(Device& device, const Set& from, std::uint64_t seed, std::uint64_t heads);

  const Workload* workload_ = nullptr;
  const TensorLayouts* layouts_ = nullptr;
  std::uint64_t request_seed_ = 0;
  std::vector<Set> sets_;
  Set arranged_;
};

}  // namespace ptxbench
