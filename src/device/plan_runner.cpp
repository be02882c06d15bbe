// Runs a resolved plan on any Device: all that can be prepared is prepared once, so that `enqueue` only
// queues.
#include <ptxbench/device.hpp>

#include <cstring>
#include <exception>

namespace ptxbench {
namespace {

// A kernel launch with its parameter buffer complete.
struct ReadyLaunch {
  DeviceLaunch launch;  // its views point into the two members below and into the module list
  std::string symbol;
  std::vector<std::uint8_t> parameters;
  std::size_t step = 0;
  std::string name;
};
struct ReadyFill {
  std::uint64_t address = 0, pattern = 0, elements = 0;
  int element_bytes = 1;
};
struct ReadyCopy {
  std::uint64_t to = 0, from = 0, bytes = 0;
};
using ReadyOperation = std::variant<std::unique_ptr<ReadyLaunch>, ReadyFill, ReadyCopy>;

struct ReadyGlobal {
  std::uint64_t address = 0;
  std::vector<std::uint8_t> bytes;
};

Error defect(std::string message) { return make_error(ErrorCode::internal, std::move(message)); }

class Runner final : public PlanRunner {
 public:
  explicit Runner(Device& device) : device_(device) {}
  ~Runner() override {
    for (const DeviceBuffer& block : blocks_) device_.release(block);
  }

  Result<void> prepare(const ResolvedPlan& plan, const std::vector<DeviceModule>& modules,
                       const PlanBuffers& buffers) {
    buffers_ = &buffers;
    for (const ResolvedWorkspace& workspace : plan.workspaces) PTXBENCH_TRY(add_workspace(workspace));
    for (const ResolvedTensorMap& map : plan.maps) {
      PTXBENCH_TRY_ASSIGN(const std::uint64_t base, address_of(map.base, 1));
      PTXBENCH_TRY_ASSIGN(auto bytes, device_.encode(map, base));
      maps_.push_back(bytes);
    }
    for (const ResolvedGlobal& global : plan.globals) PTXBENCH_TRY(add_global(global, modules));
    for (const ResolvedOperation& operation : plan.operations) {
      if (const auto* launch = std::get_if<ResolvedLaunch>(&operation)) {
        PTXBENCH_TRY(add_launch(*launch, modules));
      } else if (const auto* memset = std::get_if<ResolvedMemset>(&operation)) {
        const std::uint64_t bytes = memset->elements * static_cast<std::uint64_t>(memset->element_bytes);
        PTXBENCH_TRY_ASSIGN(const std::uint64_t to, address_of(memset->to, bytes));
        operations_.push_back(ReadyFill{to, memset->pattern, memset->elements, memset->element_bytes});
      } else if (const auto* copy = std::get_if<ResolvedCopy>(&operation)) {
        PTXBENCH_TRY_ASSIGN(const std::uint64_t to, address_of(copy->to, copy->bytes));
        PTXBENCH_TRY_ASSIGN(const std::uint64_t from, address_of(copy->from, copy->bytes));
        operations_.push_back(ReadyCopy{to, from, copy->bytes});
      }
    }
    buffers_ = nullptr;
    return {};
  }

  Result<void> set_globals() override {
    for (const ReadyGlobal& global : globals_) PTXBENCH_TRY(device_.write(global.address, global.bytes));
    return {};
  }

  Result<void> poison_workspaces(std::uint8_t byte) override {
    for (const DeviceBuffer& workspace : poisoned_)
      PTXBENCH_TRY(device_.poison(workspace.address, byte, workspace.bytes));
    return {};
  }

  Result<DeviceOutcome> enqueue() override {
    for (const ReadyFill& fill : initial_)
      if (Result<void> queued = queue(fill); !queued) return fault_or(std::move(queued).error());
    for (const ReadyOperation& operation : operations_) {
      if (const auto* fill = std::get_if<ReadyFill>(&operation)) {
        if (Result<void> queued = queue(*fill); !queued) return fault_or(std::move(queued).error());
      } else if (const auto* copy = std::get_if<ReadyCopy>(&operation)) {
        if (copy->bytes == 0) continue;
        if (Result<void> queued = device_.copy(copy->to, copy->from, copy->bytes); !queued)
          return fault_or(std::move(queued).error());
      } else {
        const ReadyLaunch& ready = *std::get<std::unique_ptr<ReadyLaunch>>(operation);
        PTXBENCH_TRY_ASSIGN(DeviceOutcome outcome, device_.launch(ready.launch));
        if (outcome) return at_step(std::move(*outcome), ready);
      }
    }
    return DeviceOutcome{};
  }

  std::span<const DeviceBuffer> workspaces() const override { return workspaces_; }

 private:
  // A fault of an earlier step may show at a copy or a memset: it is what the run did, and no fault of the environment.
  Result<DeviceOutcome> fault_or(Error error) const {
    if (std::optional<DeviceFault> loss = device_.loss()) return DeviceOutcome(std::move(*loss));
    return error;
  }

  Result<void> queue(const ReadyFill& fill) {
    if (fill.elements == 0) return {};
    return device_.fill(fill.address, fill.pattern, fill.element_bytes, fill.elements);
  }

  // A fault of an earlier step may only show now (`sticky`, found at this launch): then no step is named.
  static DeviceOutcome at_step(DeviceFault fault, const ReadyLaunch& ready) {
    if (!fault.step && fault.kind == DeviceFault::Kind::launch_refused) {
      fault.step = ready.step;
      fault.message = "step " + std::to_string(ready.step) + " (" + ready.name + "): " + fault.message;
    }
    return fault;
  }

  Result<void> add_workspace(const ResolvedWorkspace& workspace) {
    if (workspace.bytes > UINT64_MAX - 2 * kRedZoneBytes) return defect("a workspace's size overflows");
    PTXBENCH_TRY_ASSIGN(const DeviceBuffer block, device_.allocate(workspace.bytes + 2 * kRedZoneBytes));
    blocks_.push_back(block);
    const DeviceBuffer inner{block.address + kRedZoneBytes, workspace.bytes};
    workspaces_.push_back(inner);
    device_.label(inner, {MemoryLabel::Role::workspace, workspace.name, workspace.dtype, workspace.shape});
    PTXBENCH_TRY(device_.fill(block.address, kRedZoneByte, 1, kRedZoneBytes));
    PTXBENCH_TRY(device_.fill(inner.address + inner.bytes, kRedZoneByte, 1, kRedZoneBytes));
    if (!workspace.initialised) {
      if (inner.bytes != 0) poisoned_.push_back(inner);
      return {};
    }
    const int size = workspace.element_bytes;
    if (size != 1 && size != 2 && size != 4 && size != 8)
      return defect("workspace \"" + workspace.name + "\" has elements of " + std::to_string(size) +
                    " bytes");
    initial_.push_back(
        {inner.address, workspace.pattern, inner.bytes / static_cast<std::uint64_t>(size), size});
    return {};
  }

  Result<void> add_global(const ResolvedGlobal& global, const std::vector<DeviceModule>& modules) {
    if (global.module >= modules.size()) return defect("a global's module is not loaded");
    PTXBENCH_TRY_ASSIGN(const DeviceBuffer symbol, device_.global(modules[global.module], global.symbol));
    if (global.byte_offset > symbol.bytes || global.bytes.size() > symbol.bytes - global.byte_offset)
      return make_error(ErrorCode::invalid_argument,
                        "the symbol " + global.symbol + " has " + std::to_string(symbol.bytes) + " bytes; " +
                            std::to_string(global.bytes.size()) + " bytes at offset " +
                            std::to_string(global.byte_offset) + " do not fit",
                        {}, "launch_rule");
    ReadyGlobal ready{symbol.address + global.byte_offset, global.bytes};
    PTXBENCH_TRY(patch(ready.bytes, global.patches));
    globals_.push_back(std::move(ready));
    return {};
  }

  Result<void> add_launch(const ResolvedLaunch& launch, const std::vector<DeviceModule>& modules) {
    if (launch.module >= modules.size()) return defect("the module of \"" + launch.name + "\" is not loaded");
    auto ready = std::make_unique<ReadyLaunch>();
    ready->symbol = launch.symbol;
    ready->parameters = launch.parameters;
    ready->step = launch.step;
    ready->name = launch.name;
    PTXBENCH_TRY(patch(ready->parameters, launch.patches));
    DeviceLaunch& to = ready->launch;
    to.module = modules[launch.module];
    to.symbol = ready->symbol;
    to.grid = launch.grid;
    to.block = launch.block;
    to.cluster = launch.cluster;
    to.has_cluster = launch.has_cluster;
    to.preferred_cluster = launch.preferred_cluster;
    to.dynamic_shared_bytes = launch.dynamic_shared_bytes;
    to.cooperative = launch.cooperative;
    to.pdl = launch.pdl;
    to.cluster_policy = launch.cluster_policy;
    to.carveout = launch.carveout;
    to.parameters = ready->parameters;
    operations_.push_back(std::move(ready));
    return {};
  }

  // The address of `ref`, behind which `bytes` bytes must lie in its buffer.
  Result<std::uint64_t> address_of(const BufferRef& ref, std::uint64_t bytes) const {
    const std::vector<DeviceBuffer>* list = nullptr;
    const char* kind = "";
    switch (ref.kind) {
      case BufferRef::Kind::input:
        list = &buffers_->inputs, kind = "input";
        break;
      case BufferRef::Kind::output:
        list = &buffers_->outputs, kind = "output";
        break;
      case BufferRef::Kind::workspace:
        list = &workspaces_, kind = "workspace";
        break;
    }
    if (list == nullptr || ref.index >= list->size())
      return defect(std::string("the plan refers to ") + kind + " " + std::to_string(ref.index) +
                    ", which is not there");
    const DeviceBuffer& buffer = (*list)[ref.index];
    // One past the end is a place, as in C: an empty tensor's argument.
    if (ref.byte_offset > buffer.bytes || (bytes > 1 && bytes > buffer.bytes - ref.byte_offset))
      return defect(std::string(kind) + " " + std::to_string(ref.index) + " has " +
                    std::to_string(buffer.bytes) + " bytes; " + std::to_string(bytes) + " bytes at offset " +
                    std::to_string(ref.byte_offset) + " are used");
    return buffer.address + ref.byte_offset;
  }

  Result<void> patch(std::vector<std::uint8_t>& bytes, const std::vector<Patch>& patches) const {
    for (const Patch& p : patches) {
      const auto* ref = std::get_if<BufferRef>(&p.what);
      const std::size_t size = ref != nullptr ? 8 : 128;
      if (p.offset > bytes.size() || size > bytes.size() - p.offset)
        return defect("a patch at offset " + std::to_string(p.offset) + " lies outside of " +
                      std::to_string(bytes.size()) + " bytes");
      if (ref != nullptr) {
        PTXBENCH_TRY_ASSIGN(const std::uint64_t address, address_of(*ref, 0));
        std::memcpy(bytes.data() + p.offset, &address, 8);
      } else {
        const std::size_t map = std::get<std::size_t>(p.what);
        if (map >= maps_.size()) return defect("the plan has no tensor map " + std::to_string(map));
        std::memcpy(bytes.data() + p.offset, maps_[map].data(), 128);
      }
    }
    return {};
  }

  Device& device_;
  const PlanBuffers* buffers_ = nullptr;  // while preparing
  std::vector<DeviceBuffer> blocks_;      // workspaces with their red zones
  std::vector<DeviceBuffer> workspaces_;  // without
  std::vector<DeviceBuffer> poisoned_;    // those that the plan leaves uninitialised
  std::vector<std::array<std::uint8_t, 128>> maps_;
  std::vector<ReadyGlobal> globals_;
  std::vector<ReadyFill> initial_;
  std::vector<ReadyOperation> operations_;
};

}  // namespace

Result<std::unique_ptr<PlanRunner>> PlanRunner::create(Device& device, const ResolvedPlan& plan,
                                                       std::vector<DeviceModule> modules,
                                                       const PlanBuffers& buffers) {
  try {
    auto runner = std::make_unique<Runner>(device);
    PTXBENCH_TRY(runner->prepare(plan, modules, buffers));
    return std::unique_ptr<PlanRunner>(std::move(runner));
  } catch (const std::exception& e) {
    return make_error(ErrorCode::no_memory, std::string("preparing a plan: ") + e.what());
  }
}

}  // namespace ptxbench
