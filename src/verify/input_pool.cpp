#include "verify/input_pool.hpp"

#include <numeric>
#include <utility>

namespace ptxbench {
namespace {

constexpr int kPoolTrials = 3'000'000;  // trial numbers of the sets, far from all others

}  // namespace

Result<Inputs> InputPool::draw(JudgeOps& judge, Device& device, int number) {
  const std::uint64_t seed = trial_seed(request_seed_, workload_->uuid, number);
  PTXBENCH_TRY_ASSIGN(Inputs inputs, Inputs::random(*workload_, *layouts_, seed, judge::kGaussian));
  if (!inputs.derived_ || inputs.shape_.elements() == 0) return inputs;
  // So few heads have too few orders for the contents to be new each time, and are quickly drawn and derived anew.
  if (inputs.shape_.all_heads() <= kFewHeads) return inputs;
  if (sets_.empty()) PTXBENCH_TRY(make_sets(judge, device, *inputs.derived_, inputs.shape_));
  const Set& set = sets_[derive_seed(seed, {"set"}) % sets_.size()];
  PTXBENCH_TRY(arrange(device, set, seed, inputs.shape_.all_heads()));
  for (std::size_t i = 0; i < inputs.copies_.size(); ++i)
    if (i != kAttentionGradient) inputs.copies_[i] = arranged_.tensors[i].get();
  return inputs;
}

Result<InputPool::Set> InputPool::allocate(Device& device) const {
  Set set;
  for (std::size_t i = 0; i < layouts_->inputs.size(); ++i) {
    OwnedBuffer buffer;
    if (i != kAttentionGradient) {
      PTXBENCH_TRY_ASSIGN(buffer, OwnedBuffer::allocate(device, layouts_->inputs[i].bytes));
    }
    set.tensors.push_back(std::move(buffer));
  }
  return set;
}

Result<void> InputPool::make_sets(JudgeOps& judge, Device& device, const AttentionPattern& pattern,
                                  const AttentionShape& shape) {
  PTXBENCH_TRY_ASSIGN(arranged_, allocate(device));
  for (int s = 0; s < kSets; ++s) {
    Result<Set> set = allocate(device);
    if (!set && set.error().code == ErrorCode::no_memory && s > 0) break;  // fewer will do
    if (!set) return std::move(set).error();
    const std::uint64_t seed = trial_seed(request_seed_, workload_->uuid, kPoolTrials + s);
    for (std::size_t i = 0; i < 3; ++i) {
      const TensorLayout& layout = layouts_->inputs[i];
      PTXBENCH_TRY(
          judge.draw(draw_spec(tensor_key(seed, layout.name), layout.dtype, layout.shape, judge::kGaussian),
                     set->tensors[i].address()));
    }
    AttentionTensors t;
    t.q = set->tensors[0].address();
    t.k = set->tensors[1].address();
    t.v = set->tensors[2].address();
    t.o = set->tensors[kAttentionOutput].address();
    t.lse = set->tensors[kAttentionLse].address();
    PTXBENCH_TRY(judge.attention_forward(forward_as_inputs(pattern), shape, t));
    sets_.push_back(std::move(*set));
  }
  return settle(device, "making the inputs");
}

Result<void> InputPool::arrange(Device& device, const Set& from, std::uint64_t seed, std::uint64_t heads) {
  std::vector<std::uint64_t> order(heads);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  const std::uint64_t key = derive_seed(seed, {"heads"});
  for (std::uint64_t i = heads; i-- > 1;)
    std::swap(order[i], order[judge::philox(key, static_cast<judge::u32>(i), 0, 0, 0).v[0] % (i + 1)]);
  for (std::size_t t = 0; t < arranged_.tensors.size(); ++t) {
    if (t == kAttentionGradient) continue;
    const std::uint64_t bytes = layouts_->inputs[t].bytes / heads;
    for (std::uint64_t h = 0; h < heads; ++h)
      PTXBENCH_TRY(device.copy(arranged_.tensors[t].address() + h * bytes,
                               from.tensors[t].address() + order[h] * bytes, bytes));
  }
  return settle(device, "arranging the inputs");
}

}  // namespace ptxbench
