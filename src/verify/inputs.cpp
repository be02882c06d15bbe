// Inputs of a run: drawn by the generator, derived from what it drew, or filled by a host's callback.
#include "verify/session.hpp"

#include <algorithm>

namespace ptxbench {

Result<Inputs> Inputs::random(const Workload& workload, const TensorLayouts& layouts,
                              std::uint64_t trial_seed, judge::Distribution distribution) {
  Inputs inputs;
  for (const TensorLayout& layout : layouts.inputs)
    inputs.specs_.push_back(
        draw_spec(tensor_key(trial_seed, layout.name), layout.dtype, layout.shape, distribution));
  inputs.copies_.resize(layouts.inputs.size());
  const auto attention = match_attention(*workload.definition);
  if (attention && attention->backward) {
    inputs.derived_ = attention;
    PTXBENCH_TRY_ASSIGN(inputs.shape_, attention_shape(workload));
    inputs.specs_[kAttentionGradient].distribution =
        judge::kGaussian;  // no term of dQ, dK and dV is zero for its sake
  }
  return inputs;
}

Result<Inputs> Inputs::callback(const Workload& workload, const TensorLayouts& layouts,
                                std::uint64_t request_seed, int trial, HostCallbacks& callbacks) {
  Inputs inputs;
  inputs.from_host_ = true;
  std::vector<HostTensor> tensors;
  for (const TensorLayout& layout : layouts.inputs) {
    inputs.host_.emplace_back(layout.bytes);
    if (!layout.scalar)
      tensors.push_back({layout.name, layout.dtype, layout.shape, inputs.host_.back().data(), layout.bytes});
  }
  PTXBENCH_TRY(callbacks.fill(workload, request_seed, trial, tensors));
  return inputs;
}

Result<void> Inputs::place(JudgeOps& judge, Device& device, const TensorBuffers& buffers) {
  bool missing = false;
  for (std::size_t i = 0; i < buffers.inputs.size(); ++i) {
    const DeviceBuffer at = buffers.inputs[i].buffer();
    if (at.bytes == 0) continue;
    if (from_host_) {
      PTXBENCH_TRY(device.write(at.address, host_[i].span()));
    } else if (copies_[i].address != 0) {
      PTXBENCH_TRY(device.copy(at.address, copies_[i].address, at.bytes));
    } else if (derived_ && (i == kAttentionOutput || i == kAttentionLse)) {
      missing = true;
    } else {
      PTXBENCH_TRY(judge.draw(specs_[i], at.address));
    }
  }
  return missing ? derive(judge, device, buffers) : Result<void>{};
}

// They cannot be drawn again element by element, so a copy says later whether they are as they were.
Result<void> Inputs::derive(JudgeOps& judge, Device& device, const TensorBuffers& buffers) {
  AttentionTensors t;
  t.q = buffers.inputs[0].buffer().address;
  t.k = buffers.inputs[1].buffer().address;
  t.v = buffers.inputs[2].buffer().address;
  t.o = buffers.inputs[kAttentionOutput].buffer().address;
  t.lse = buffers.inputs[kAttentionLse].buffer().address;
  PTXBENCH_TRY(judge.attention_forward(forward_as_inputs(*derived_), shape_, t));
  for (const std::size_t i : {kAttentionOutput, kAttentionLse}) {
    const DeviceBuffer at = buffers.inputs[i].buffer();
    if (at.bytes == 0) continue;
    PTXBENCH_TRY_ASSIGN(OwnedBuffer copy, OwnedBuffer::allocate(device, at.bytes));
    PTXBENCH_TRY(device.copy(copy.address(), at.address, at.bytes));
    copies_[i] = copy.get();
    kept_.push_back(std::move(copy));
  }
  return settle(device, "deriving the inputs");
}

Result<void> Inputs::keep(Device& device, const TensorBuffers& buffers) {
  if (from_host_) return {};
  std::vector<OwnedBuffer> kept;
  std::vector<DeviceBuffer> copies = copies_;
  for (std::size_t i = 0; i < buffers.inputs.size(); ++i) {
    const DeviceBuffer at = buffers.inputs[i].buffer();
    if (at.bytes == 0 || copies[i].address != 0) continue;
    Result<OwnedBuffer> made = OwnedBuffer::allocate(device, at.bytes);
    if (!made && made.error().code == ErrorCode::no_memory) return {};
    if (!made) return std::move(made).error();
    PTXBENCH_TRY(device.copy(made->address(), at.address, at.bytes));
    copies[i] = made->get();
    kept.push_back(std::move(*made));
  }
  PTXBENCH_TRY(settle(device, "keeping the inputs"));
  for (OwnedBuffer& buffer : kept) kept_.push_back(std::move(buffer));
  copies_ = std::move(copies);
  return {};
}

Result<void> Inputs::check(JudgeOps& judge, Device& device, const TensorLayouts& layouts,
                           const TensorBuffers& buffers, std::vector<IntegrityViolation>& found) {
  for (std::size_t i = 0; i < buffers.inputs.size(); ++i) {
    const DeviceBuffer at = buffers.inputs[i].buffer();
    if (at.bytes == 0) continue;
    std::uint64_t count = 0, first = 0;
    if (from_host_) {
      HostBuffer now(at.bytes);
      PTXBENCH_TRY(device.read(at.address, now.span()));
      for (std::uint64_t b = 0; b < at.bytes; ++b)
        if (now.data()[b] != host_[i].data()[b] && count++ == 0) first = b;
    } else if (copies_[i].address != 0) {
      PTXBENCH_TRY_ASSIGN(const judge::Mismatch differs,
                          judge.compare(at.address, copies_[i].address, at.bytes));
      count = differs.count;
      first = differs.first;
    } else {
      const std::uint64_t unit = std::max<std::uint64_t>(1, judge::type_bits(specs_[i].type) / 8);
      PTXBENCH_TRY_ASSIGN(const judge::Mismatch differs, judge.check_draw(specs_[i], at.address));
      count = differs.count * unit;
      first = differs.first * unit;
    }
    if (count != 0)
      found.push_back({IntegrityViolation::Kind::input_clobbered, layouts.inputs[i].name,
                       static_cast<std::int64_t>(first), count});
  }
  return {};
}

}  // namespace ptxbench
