// What verification, timing and counting share: a candidate loaded on a device, buffers between red zones,
// inputs that are drawn or asked for, and what is expected of the outputs.
#pragma once

#include "verify/judge_ops.hpp"
#include "verify/seed.hpp"

#include <ptxbench/device.hpp>
#include <ptxbench/verify.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ptxbench {

// Memory of a device that is released with its owner.
class OwnedBuffer {
 public:
  OwnedBuffer() = default;
  static Result<OwnedBuffer> allocate(Device& device, std::uint64_t bytes);
  OwnedBuffer(OwnedBuffer&& other) noexcept;
  OwnedBuffer& operator=(OwnedBuffer&& other) noexcept;
  ~OwnedBuffer() { reset(); }

  void reset() noexcept;
  const DeviceBuffer& get() const { return buffer_; }
  std::uint64_t address() const { return buffer_.address; }

 private:
  Device* device_ = nullptr;
  DeviceBuffer buffer_;
};

// A candidate (or a reference or baseline Solution) bound, loaded and resolved.
struct LoadedPlan {
  explicit LoadedPlan(Device& d) : device(d) {}
  LoadedPlan(const LoadedPlan&) = delete;
  LoadedPlan& operator=(const LoadedPlan&) = delete;
  ~LoadedPlan();

  Device& device;
  ResolvedPlan plan;
  std::vector<DeviceModule> modules;
  std::unique_ptr<GlobalsImage> globals;
  std::vector<Finding> findings;
};
// What kept a plan from being loaded, where that is the Solution's own fault.
struct PlanProblem {
  std::optional<Error> error;
  std::optional<std::string> not_applicable;
  std::optional<Error> unsupported;  // the emulator does not know what the code uses
};
// Null with @p problem set where the Solution is at fault; an Error where the environment is.
Result<std::unique_ptr<LoadedPlan>> load_plan(Device& device, const Candidate& candidate,
                                              const Workload& workload, const ScalarValues& scalars,
                                              PlanProblem& problem);
// The same for a Solution that must work (a reference, a baseline): any problem is an Error that says @p
// role.
Result<std::unique_ptr<LoadedPlan>> load_trusted_plan(Device& device, const Candidate& candidate,
                                                      const Workload& workload, const ScalarValues& scalars,
                                                      std::string_view role);

// The workload's scalars, and a value for each that it leaves to chance.
ScalarValues draw_scalars(const Workload& workload, std::uint64_t request_seed);

// A tensor of the definition as it is for one workload.
struct TensorLayout {
  std::string name;
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape;
  std::uint64_t elements = 0, bytes = 0;
  bool scalar = false;
};
struct TensorLayouts {
  std::vector<TensorLayout> inputs, outputs;  // in the definition's order
};
Result<TensorLayouts> tensor_layouts(const Workload& workload);

// A tensor's memory between two red zones.
class GuardedBuffer {
 public:
  // `padding` bytes (a multiple of 256) in front move the address.
  static Result<GuardedBuffer> allocate(Device& device, std::uint64_t bytes, std::uint64_t padding,
                                        std::uint64_t pattern);
  DeviceBuffer buffer() const { return {address_, bytes_}; }
  // Fills the red zones; the last few bytes of the tensor with them, so do this before filling it.
  Result<void> arm(Device& device) const;
  // Looks at both red zones; waits for what is queued.
  Result<std::optional<IntegrityViolation>> check(Device& device, const std::string& tensor) const;

 private:
  OwnedBuffer block_;
  std::uint64_t address_ = 0, bytes_ = 0, pattern_ = 0;
};

// Buffers for every tensor of a run.
struct TensorBuffers {
  std::vector<GuardedBuffer> inputs, outputs;  // scalars have none (an empty buffer)
  // `vary`: addresses differ with the seed, else they are 4096-aligned.
  static Result<TensorBuffers> allocate(Device& device, const TensorLayouts& layouts, std::uint64_t seed,
                                        bool vary);
  PlanBuffers plan_buffers() const;
  Result<void> arm(Device& device) const;
  Result<void> poison_outputs(Device& device, std::uint8_t byte) const;
  Result<void> check(Device& device, const TensorLayouts& layouts,
                     std::vector<IntegrityViolation>& found) const;
};
// The red zones of a runner's workspaces.
Result<void> check_workspaces(Device& device, const PlanRunner& runner, const ResolvedPlan& plan,
                              std::vector<IntegrityViolation>& found);

// Host memory that is 64-byte aligned, as HostTensor promises.
class HostBuffer {
 public:
  explicit HostBuffer(std::uint64_t bytes = 0);
  std::uint8_t* data() { return words_.empty() ? nullptr : words_.front().bytes; }
  std::uint64_t bytes() const { return bytes_; }
  std::span<std::uint8_t> span() { return {data(), static_cast<std::size_t>(bytes_)}; }

 private:
  struct alignas(64) Line {
    std::uint8_t bytes[64];
  };
  std::vector<Line> words_;
  std::uint64_t bytes_ = 0;
};

// One draw of the inputs: by the generator, or as a callback filled them. Of an attention's backward pass the generator
// draws Q, K, V and dO; O and L are then the forward pass's, from the judge's own reference.
class Inputs {
 public:
  static Result<Inputs> random(const Workload& workload, const TensorLayouts& layouts, std::uint64_t trial_seed,
                               judge::Distribution distribution);
  static Result<Inputs> callback(const Workload& workload, const TensorLayouts& layouts,
                                 std::uint64_t request_seed, int trial, HostCallbacks& callbacks);

  // Writes them to @p buffers (queued; callback inputs block).
  Result<void> place(JudgeOps& judge, Device& device, const TensorBuffers& buffers);
  // For further runs on the same inputs: keeps a copy of what lies in @p buffers, which is as it was placed, and compares
  // with it from now on, which costs less than drawing again. Where memory is short there is no copy.
  Result<void> keep(Device& device, const TensorBuffers& buffers);
  // Compares what lies there with what was placed.
  Result<void> check(JudgeOps& judge, Device& device, const TensorLayouts& layouts,
                     const TensorBuffers& buffers, std::vector<IntegrityViolation>& found);

 private:
  friend class InputPool;
  Result<void> derive(JudgeOps& judge, Device& device, const TensorBuffers& buffers);

  std::vector<judge::DrawSpec> specs_;  // by input; scalars: unused
  std::vector<HostBuffer> host_;        // callback
  bool from_host_ = false;
  // Copies by input, of address 0 where there is none: what is placed and compared with instead of being drawn.
  std::vector<DeviceBuffer> copies_;
  std::vector<OwnedBuffer> kept_;                // owns some of them
  std::optional<AttentionPattern> derived_;      // O and L follow from Q, K and V
  AttentionShape shape_;                         // of `derived_`
};

// The outputs of a run, or what is expected of them.
struct OutputValues {
  std::vector<DeviceBuffer> buffers;
  std::vector<DType> dtypes;
  std::vector<ModelAt> model;        // empty: there is none
  std::vector<int> sum_floor;        // as long as `model`: of outputs that cannot be exact, OutputStatistics::sum_floor; else 0
  std::vector<OwnedBuffer> storage;  // of what lies in memory of its own
  // Allocates `bytes` and keeps them.
  Result<DeviceBuffer> own(Device& device, std::uint64_t bytes);
  // The outputs where they are.
  static OutputValues view(const TensorLayouts& layouts, const TensorBuffers& buffers);
  // Copies the outputs of a finished run away, to memory that is allocated now.
  static Result<OutputValues> take(Device& device, const TensorLayouts& layouts,
                                   const TensorBuffers& buffers);
};

// Computes what is expected. Made once a job; a reference Solution is loaded then.
class ExpectedSource {
 public:
  static Result<std::unique_ptr<ExpectedSource>> create(Device& device, const Workload& workload,
                                                        const TensorLayouts& layouts,
                                                        const ReferenceSpec& reference, bool want_model,
                                                        const ScalarValues& scalars,
                                                        std::uint64_t run_deadline_ns);
  // From the inputs in @p buffers, which must be as they were placed. Nothing of the candidate may be
  // running. @p seed: what a model that is computed for some rows only picks them by.
  Result<OutputValues> compute(JudgeOps& judge, HostCallbacks* callbacks, const TensorBuffers& buffers,
                               std::uint64_t seed);

 private:
  ExpectedSource(Device& device, const Workload& workload, const TensorLayouts& layouts)
      : device_(device), workload_(workload), layouts_(layouts) {}
  Result<OutputValues> gemm(JudgeOps& judge, const TensorBuffers& buffers);
  Result<OutputValues> attention(JudgeOps& judge, const TensorBuffers& buffers, std::uint64_t seed);
  Result<OutputValues> by_solution(const TensorBuffers& buffers);
  Result<OutputValues> by_callback(HostCallbacks* callbacks, const TensorBuffers& buffers);

  Device& device_;
  const Workload& workload_;
  const TensorLayouts& layouts_;
  ReferenceKind kind_ = ReferenceKind::native;
  bool want_model_ = true;
  std::optional<GemmPattern> gemm_;
  std::optional<AttentionPattern> attention_;
  std::unique_ptr<LoadedPlan> solution_;
  std::uint64_t run_deadline_ns_ = 0;
};

// The values of elements [first, first + count). Blocks.
Result<std::vector<double>> read_elements(Device& device, ElementsAt at, std::uint64_t first, std::uint64_t count);

// Compares outputs with what is expected of them; poison 0..255 counts unwritten elements, -1 does not.
Result<std::vector<OutputEvidence>> compare_outputs(JudgeOps& judge, Device& device, const Workload& workload,
                                                    const TensorLayouts& layouts,
                                                    const ComparatorSpec& comparator, const OutputValues& got,
                                                    const OutputValues& expected, int poison,
                                                    HostCallbacks* callbacks);
// Whether every output is right by its own comparator.
bool all_right(const std::vector<OutputEvidence>& outputs);

// Waits for the judge's own work; a fault there is an Error.
Result<void> settle(Device& device, std::string_view what);

}  // namespace ptxbench
