// Memory of a run: tensors between red zones, at addresses that vary.
#include "verify/session.hpp"

#include <algorithm>
#include <bit>

namespace ptxbench {
namespace {

constexpr std::uint64_t kZone = 4096;  // bytes of a red zone
static_assert(std::endian::native == std::endian::little);

std::uint8_t pattern_byte(std::uint64_t pattern, std::uint64_t address) {
  return static_cast<std::uint8_t>(pattern >> (8 * (address & 7)));
}

}  // namespace

Result<OwnedBuffer> OwnedBuffer::allocate(Device& device, std::uint64_t bytes) {
  OwnedBuffer owned;
  PTXBENCH_TRY_ASSIGN(owned.buffer_, device.allocate(std::max<std::uint64_t>(bytes, 1)));
  owned.device_ = &device;
  owned.buffer_.bytes = bytes;
  return owned;
}
OwnedBuffer::OwnedBuffer(OwnedBuffer&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)), buffer_(std::exchange(other.buffer_, {})) {}
OwnedBuffer& OwnedBuffer::operator=(OwnedBuffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(buffer_, other.buffer_);
  return *this;
}
void OwnedBuffer::reset() noexcept {
  if (device_ != nullptr) device_->release(buffer_);
  device_ = nullptr;
  buffer_ = {};
}

Result<TensorLayouts> tensor_layouts(const Workload& workload) {
  TensorLayouts layouts;
  const auto add = [&](const TensorSpec& tensor, std::vector<TensorLayout>& to) -> Result<void> {
    TensorLayout layout;
    layout.name = tensor.name;
    layout.dtype = tensor.dtype;
    layout.scalar = tensor.is_scalar();
    if (!layout.scalar) {
      PTXBENCH_TRY_ASSIGN(layout.shape, workload.shape_of(tensor));
      PTXBENCH_TRY_ASSIGN(layout.elements, workload.elements_of(tensor));
      layout.bytes = dtype_bytes(tensor.dtype, layout.elements);
    }
    to.push_back(std::move(layout));
    return {};
  };
  for (const TensorSpec& tensor : workload.definition->inputs) PTXBENCH_TRY(add(tensor, layouts.inputs));
  for (const TensorSpec& tensor : workload.definition->outputs) {
    PTXBENCH_TRY(add(tensor, layouts.outputs));
    if (tensor.is_scalar())
      return make_error(ErrorCode::unsupported,
                        "output \"" + tensor.name + "\" is a scalar by value; kernels write tensors");
  }
  return layouts;
}

Result<GuardedBuffer> GuardedBuffer::allocate(Device& device, std::uint64_t bytes, std::uint64_t padding,
                                              std::uint64_t pattern) {
  GuardedBuffer guarded;
  PTXBENCH_TRY_ASSIGN(guarded.block_,
                      OwnedBuffer::allocate(device, padding + 2 * kZone + (bytes + 7) / 8 * 8));
  guarded.address_ = guarded.block_.address() + padding + kZone;
  guarded.bytes_ = bytes;
  guarded.pattern_ = pattern;
  return guarded;
}

Result<void> GuardedBuffer::arm(Device& device) const {
  if (block_.address() == 0) return {};
  PTXBENCH_TRY(device.fill(address_ - kZone, pattern_, 8, kZone / 8));
  // The tensor's own last bytes stay: further runs find their inputs placed.
  const std::uint64_t end = address_ + bytes_, from = (end + 7) / 8 * 8;
  std::array<std::uint8_t, 8> first{};
  for (std::uint64_t i = 0; end + i < from; ++i) first[i] = pattern_byte(pattern_, end + i);
  if (end != from) PTXBENCH_TRY(device.write(end, std::span<const std::uint8_t>(first).first(from - end)));
  return device.fill(from, pattern_, 8, kZone / 8);
}

Result<std::optional<IntegrityViolation>> GuardedBuffer::check(Device& device,
                                                               const std::string& tensor) const {
  std::optional<IntegrityViolation> found;
  if (block_.address() == 0) return found;
  const auto look = [&](std::uint64_t from, std::uint64_t count) -> Result<void> {
    std::array<std::uint8_t, kZone> bytes;
    PTXBENCH_TRY(device.read(from, std::span(bytes).first(count)));
    for (std::uint64_t i = 0; i < count; ++i) {
      if (bytes[i] == pattern_byte(pattern_, from + i)) continue;
      if (!found)
        found = IntegrityViolation{IntegrityViolation::Kind::red_zone, tensor,
                                   static_cast<std::int64_t>(from + i - address_), 0};
      ++found->bytes;
    }
    return {};
  };
  PTXBENCH_TRY(look(address_ - kZone, kZone));
  const std::uint64_t end = address_ + bytes_;
  PTXBENCH_TRY(look(end, end / 8 * 8 + kZone - end));
  return found;
}

Result<TensorBuffers> TensorBuffers::allocate(Device& device, const TensorLayouts& layouts,
                                              std::uint64_t seed, bool vary) {
  TensorBuffers buffers;
  const auto add = [&](const TensorLayout& layout, MemoryLabel::Role role, std::vector<GuardedBuffer>& to) -> Result<void> {
    if (layout.scalar) {
      to.emplace_back();
      return {};
    }
    const std::uint64_t r = derive_seed(seed, {"address", layout.name});
    Result<GuardedBuffer> made = GuardedBuffer::allocate(device, layout.bytes, vary ? 256 * (r % 16) : 0,
                                                         derive_seed(seed, {"red zone", layout.name}));
    if (!made) {
      Error error = std::move(made).error();
      error.message = "tensor \"" + layout.name + "\" (" + std::to_string(layout.bytes) +
                      " bytes) does not fit on the device: " + error.message;
      return error;
    }
    device.label(made->buffer(), {role, layout.name, layout.dtype, layout.shape});  // the red zones stay outside
    to.push_back(std::move(*made));
    return {};
  };
  for (const TensorLayout& layout : layouts.inputs) PTXBENCH_TRY(add(layout, MemoryLabel::Role::input, buffers.inputs));
  for (const TensorLayout& layout : layouts.outputs) PTXBENCH_TRY(add(layout, MemoryLabel::Role::output, buffers.outputs));
  return buffers;
}

PlanBuffers TensorBuffers::plan_buffers() const {
  PlanBuffers plan;
  for (const GuardedBuffer& input : inputs) plan.inputs.push_back(input.buffer());
  for (const GuardedBuffer& output : outputs) plan.outputs.push_back(output.buffer());
  return plan;
}

Result<void> TensorBuffers::arm(Device& device) const {
  for (const GuardedBuffer& input : inputs) PTXBENCH_TRY(input.arm(device));
  for (const GuardedBuffer& output : outputs) PTXBENCH_TRY(output.arm(device));
  return {};
}

Result<void> TensorBuffers::poison_outputs(Device& device, std::uint8_t byte) const {
  for (const GuardedBuffer& output : outputs)
    if (output.buffer().bytes != 0)
      PTXBENCH_TRY(device.poison(output.buffer().address, byte, output.buffer().bytes));
  return {};
}

Result<void> TensorBuffers::check(Device& device, const TensorLayouts& layouts,
                                  std::vector<IntegrityViolation>& found) const {
  const auto look = [&](const std::vector<GuardedBuffer>& list,
                        const std::vector<TensorLayout>& names) -> Result<void> {
    for (std::size_t i = 0; i < list.size(); ++i) {
      PTXBENCH_TRY_ASSIGN(auto violation, list[i].check(device, names[i].name));
      if (violation) found.push_back(std::move(*violation));
    }
    return {};
  };
  PTXBENCH_TRY(look(inputs, layouts.inputs));
  return look(outputs, layouts.outputs);
}

Result<void> check_workspaces(Device& device, const PlanRunner& runner, const ResolvedPlan& plan,
                              std::vector<IntegrityViolation>& found) {
  const auto workspaces = runner.workspaces();
  for (std::size_t w = 0; w < workspaces.size(); ++w) {
    std::optional<IntegrityViolation> violation;
    for (const std::uint64_t from :
         {workspaces[w].address - kRedZoneBytes, workspaces[w].address + workspaces[w].bytes}) {
      std::array<std::uint8_t, kRedZoneBytes> bytes;
      PTXBENCH_TRY(device.read(from, bytes));
      for (std::uint64_t i = 0; i < kRedZoneBytes; ++i) {
        if (bytes[i] == kRedZoneByte) continue;
        if (!violation)
          violation =
              IntegrityViolation{IntegrityViolation::Kind::red_zone,
                                 "workspace " + (w < plan.workspaces.size() ? plan.workspaces[w].name : ""),
                                 static_cast<std::int64_t>(from + i - workspaces[w].address), 0};
        ++violation->bytes;
      }
    }
    if (violation) found.push_back(std::move(*violation));
  }
  return {};
}

HostBuffer::HostBuffer(std::uint64_t bytes) : words_((bytes + 63) / 64), bytes_(bytes) {}

Result<void> settle(Device& device, std::string_view what) {
  PTXBENCH_TRY_ASSIGN(const DeviceOutcome outcome, device.synchronize(600'000'000'000));
  if (outcome)
    return make_error(ErrorCode::driver,
                      std::string(what) + " failed: " + outcome->name + ": " + outcome->message);
  return {};
}

}  // namespace ptxbench
