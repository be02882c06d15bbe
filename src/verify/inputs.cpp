// Inputs of a run: drawn by the generator, or filled by a host's callback.
#include "verify/session.hpp"

namespace ptxbench {

Result<Inputs> Inputs::random(const TensorLayouts& layouts, std::uint64_t trial_seed,
                              judge::Distribution distribution) {
  Inputs inputs;
  for (const TensorLayout& layout : layouts.inputs)
    inputs.specs_.push_back(
        draw_spec(tensor_key(trial_seed, layout.name), layout.dtype, layout.shape, distribution));
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
  for (std::size_t i = 0; i < buffers.inputs.size(); ++i) {
    const DeviceBuffer at = buffers.inputs[i].buffer();
    if (at.bytes == 0) continue;
    if (from_host_) {
      PTXBENCH_TRY(device.write(at.address, host_[i].span()));
    } else {
      PTXBENCH_TRY(judge.draw(specs_[i], at.address));
    }
  }
  return {};
}

Result<void> Inputs::keep(Device& device, const TensorBuffers& buffers) {
  if (from_host_) return {};
  std::vector<OwnedBuffer> kept(buffers.inputs.size());
  for (std::size_t i = 0; i < buffers.inputs.size(); ++i) {
    const DeviceBuffer at = buffers.inputs[i].buffer();
    if (at.bytes == 0) continue;
    Result<OwnedBuffer> made = OwnedBuffer::allocate(device, at.bytes);
    if (!made && made.error().code == ErrorCode::no_memory) return {};
    if (!made) return std::move(made).error();
    kept[i] = std::move(*made);
    PTXBENCH_TRY(device.copy(kept[i].address(), at.address, at.bytes));
  }
  PTXBENCH_TRY(settle(device, "keeping the inputs"));
  kept_ = std::move(kept);
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
    } else if (!kept_.empty()) {
      PTXBENCH_TRY_ASSIGN(const judge::Mismatch differs, judge.compare(at.address, kept_[i].address(), at.bytes));
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
