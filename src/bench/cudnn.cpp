// The library baseline for attention: cuDNN's fused engines, the fastest of the plans that its heuristics
// offer.
#include "bench/cudnn_attention.hpp"
#include "bench/library_baselines.hpp"
#include "bench/time_offered.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace ptxbench {
namespace {

using cudnn::Attribute;
using cudnn::AttributeType;
using cudnn::DescriptorType;
using cudnn::HeuristicMode;

constexpr std::uint64_t kAlignment = 256;

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct CudnnHandle {
  explicit CudnnHandle(const Cudnn& library) : library(library) {}
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;
  ~CudnnHandle() {
    if (value != nullptr) library.cudnnDestroy(value);
  }
  const Cudnn& library;
  cudnn::Handle value = nullptr;
};

struct Plan {
  CudnnDescriptor config, plan;
  std::uint64_t workspace = 0;
};

class CudnnAttentionBaseline final : public LibraryBaseline {
 public:
  CudnnAttentionBaseline(std::shared_ptr<const Cudnn> library, const AttentionPattern& pattern)
      : dnn_(std::move(library)), pattern_(pattern), handle_(*dnn_), graph_(dnn_) {}
  ~CudnnAttentionBaseline() override {
    if (device_ != nullptr)
      for (const DeviceBuffer& buffer : {scratch_, workspace_})
        if (buffer.address != 0) device_->release(buffer);
  }

  Result<void> prepare(Device& device, const Workload& workload, const PlanBuffers& buffers) override {
    if (device.native_stream() == nullptr)
      return make_error(ErrorCode::unsupported, device.info().id + " runs no library's kernels");
    if (device_ != nullptr) return make_error(ErrorCode::state, "the baseline is prepared already");
    device_ = &device;
    PTXBENCH_TRY_ASSIGN(const AttentionShape shape, attention_shape(workload));
    if (shape.batch == 0 || shape.heads == 0 || shape.sequence == 0 || shape.head_dim == 0)
      return make_error(ErrorCode::unsupported, "an attention of no elements");
    PTXBENCH_TRY(check(dnn_->cudnnCreate(&handle_.value), "cudnnCreate"));
    PTXBENCH_TRY(check(dnn_->cudnnSetStream(handle_.value, static_cast<CUstream>(device.native_stream())),
                       "cudnnSetStream"));
    PTXBENCH_TRY_ASSIGN(tensors_, add_attention(graph_, pattern_, shape));
    PTXBENCH_TRY_ASSIGN(operations_, graph_.finish(handle_.value));
    PTXBENCH_TRY(allocate_scratch());
    PTXBENCH_TRY_ASSIGN(std::vector<Plan> offered, plans());
    return choose(offered, buffers);
  }

  std::string description() const override { return description_; }

  Result<void> enqueue(const PlanBuffers& buffers) override {
    if (!chosen_) return make_error(ErrorCode::state, "the baseline is not prepared");
    return run(*chosen_, buffers);
  }

 private:
  Result<void> check(int status, const char* what) const {
    if (status == cudnn::kSuccess) return {};
    return cudnn_error(*dnn_, status, what);
  }

  Result<DeviceBuffer> allocate(std::uint64_t bytes) {
    Result<DeviceBuffer> buffer = device_->allocate(bytes);
    if (!buffer && buffer.error().code == ErrorCode::no_memory)
      return make_error(
          ErrorCode::unsupported,
          "cuDNN's " + std::to_string(bytes) + " bytes of workspace do not fit: " + buffer.error().message);
    return buffer;
  }

  Result<void> allocate_scratch() {
    std::uint64_t bytes = 0;
    for (const auto& [id, size] : tensors_.scratch) bytes += aligned(size);
    if (bytes == 0) return {};
    PTXBENCH_TRY_ASSIGN(scratch_, allocate(bytes));
    return {};
  }

  // The configurations that one mode of the heuristics offers, best first.
  Result<std::vector<CudnnDescriptor>> configurations(HeuristicMode mode) {
    PTXBENCH_TRY_ASSIGN(CudnnDescriptor heuristics,
                        CudnnDescriptor::create(dnn_, DescriptorType::engine_heuristics));
    PTXBENCH_TRY(heuristics.set(Attribute::heuristics_operation_graph, operations_));
    PTXBENCH_TRY(heuristics.set(Attribute::heuristics_mode, AttributeType::heuristic_mode, 1, &mode));
    PTXBENCH_TRY(heuristics.finalize());
    PTXBENCH_TRY_ASSIGN(std::int64_t count,
                        heuristics.get(Attribute::heuristics_results, AttributeType::descriptor, 0, nullptr));
    std::vector<CudnnDescriptor> found;
    std::vector<cudnn::Descriptor> handles;
    for (std::int64_t i = 0; i < count; ++i) {
      PTXBENCH_TRY_ASSIGN(CudnnDescriptor config,
                          CudnnDescriptor::create(dnn_, DescriptorType::engine_config));
      handles.push_back(config.handle());
      found.push_back(std::move(config));
    }
    // Asked how many there are it counts all that it knows of; asked for them it gives those that can serve.
    if (!found.empty()) {
      PTXBENCH_TRY_ASSIGN(count, heuristics.get(Attribute::heuristics_results, AttributeType::descriptor,
                                                count, handles.data()));
    }
    if (count <= 0) return cudnn_error(*dnn_, cudnn::kNotSupported, "the heuristics offer nothing");
    found.resize(std::min(found.size(), static_cast<std::size_t>(count)));
    return found;
  }

  Result<Plan> make_plan(CudnnDescriptor config) {
    Plan made;
    PTXBENCH_TRY_ASSIGN(made.plan, CudnnDescriptor::create(dnn_, DescriptorType::execution_plan));
    PTXBENCH_TRY(made.plan.set(Attribute::plan_engine_config, config));
    PTXBENCH_TRY(made.plan.set(Attribute::plan_handle, AttributeType::handle, 1, &handle_.value));
    PTXBENCH_TRY(made.plan.finalize());
    std::int64_t bytes = 0;
    PTXBENCH_TRY(made.plan.get(Attribute::plan_workspace_size, AttributeType::int64, 1, &bytes));
    made.workspace = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0));
    made.config = std::move(config);
    return made;
  }

  // Up to kMostOffered plans that can be made; the fallback engines only where there is no other.
  Result<std::vector<Plan>> plans() {
    std::vector<Plan> made;
    std::optional<Error> first;
    const auto note = [&](const Error& error) {
      if (!first) first = error;
    };
    for (const HeuristicMode mode : {HeuristicMode::a, HeuristicMode::fallback}) {
      if (!made.empty()) break;
      Result<std::vector<CudnnDescriptor>> found = configurations(mode);
      if (!found) {
        note(found.error());
        continue;
      }
      for (CudnnDescriptor& config : *found) {
        if (made.size() == kMostOffered) break;
        Result<Plan> plan = make_plan(std::move(config));
        if (plan)
          made.push_back(std::move(*plan));
        else
          note(plan.error());
      }
    }
    if (!made.empty()) return made;
    if (first && first->code != ErrorCode::unsupported) return *first;
    return make_error(ErrorCode::unsupported, "cuDNN " + dnn_->version_text() +
                                                  " has no engine for this attention" +
                                                  (first ? ": " + first->message : std::string()));
  }

  Result<void> choose(std::vector<Plan>& offered, const PlanBuffers& buffers) {
    PTXBENCH_TRY_ASSIGN(Fastest fastest,
                        time_offered(*device_, "cuDNN", offered.size(), [&](std::size_t i) -> Result<void> {
                          PTXBENCH_TRY(make_room(offered[i].workspace));
                          return run(offered[i], buffers);
                        }));
    if (!fastest.index)
      return make_error(ErrorCode::unsupported,
                        "none of cuDNN's plans for this attention could be run" +
                            (fastest.first_refusal ? ": " + fastest.first_refusal->message : std::string()));
    // A plan that was tried later may have taken this one's workspace in vain.
    PTXBENCH_TRY(make_room(offered[*fastest.index].workspace));
    chosen_ = std::move(offered[*fastest.index]);
    description_ = "cuDNN " + dnn_->version_text() + " " + algorithm(chosen_->config) + ", best of " +
                   std::to_string(offered.size());
    return {};
  }

  // "engine 8 tile_m=2 kernel_cfg=1"
  std::string algorithm(const CudnnDescriptor& config) const {
    std::string text = "engine " + engine_of(config);
    constexpr std::int64_t kMost = 64;
    std::vector<CudnnDescriptor> knobs;
    std::vector<cudnn::Descriptor> handles;
    for (std::int64_t i = 0; i < kMost; ++i) {
      Result<CudnnDescriptor> knob = CudnnDescriptor::create(dnn_, DescriptorType::knob_choice);
      if (!knob) break;
      handles.push_back(knob->handle());
      knobs.push_back(std::move(*knob));
    }
    const Result<std::int64_t> count =
        config.get(Attribute::engine_config_knob_choices, AttributeType::descriptor,
                   static_cast<std::int64_t>(handles.size()), handles.data());
    if (!count) return text;
    for (std::size_t i = 0; i < knobs.size() && static_cast<std::int64_t>(i) < *count; ++i) {
      int type = 0;
      std::int64_t value = 0;
      if (!knobs[i].get(Attribute::knob_choice_type, AttributeType::knob_type, 1, &type) ||
          !knobs[i].get(Attribute::knob_choice_value, AttributeType::int64, 1, &value))
        continue;
      const char* name = cudnn::knob_name(type);
      text += " " + (name != nullptr ? name : "knob" + std::to_string(type)) + "=" + std::to_string(value);
    }
    return text;
  }

  std::string engine_of(const CudnnDescriptor& config) const {
    Result<CudnnDescriptor> engine = CudnnDescriptor::create(dnn_, DescriptorType::engine);
    if (!engine) return "?";
    cudnn::Descriptor handle = engine->handle();
    std::int64_t index = 0;
    if (!config.get(Attribute::engine_config_engine, AttributeType::descriptor, 1, &handle) ||
        !engine->get(Attribute::engine_global_index, AttributeType::int64, 1, &index))
      return "?";
    return std::to_string(index);
  }

  Result<void> make_room(std::uint64_t bytes) {
    if (bytes <= workspace_.bytes) return {};
    if (workspace_.address != 0) device_->release(workspace_);
    workspace_ = {};
    PTXBENCH_TRY_ASSIGN(workspace_, allocate(bytes));
    return {};
  }

  Result<void> run(const Plan& plan, const PlanBuffers& buffers) {
    std::vector<std::int64_t> ids;
    std::vector<void*> pointers;
    const auto bind = [&](std::int64_t id, const void* pointer) {
      ids.push_back(id);
      pointers.push_back(const_cast<void*>(pointer));
    };
    const auto device = [](std::uint64_t address) { return reinterpret_cast<void*>(address); };
    if (buffers.inputs.size() < tensors_.inputs.size() || buffers.outputs.size() < tensors_.outputs.size())
      return make_error(ErrorCode::invalid_argument, "fewer buffers than the attention has tensors");
    for (std::size_t i = 0; i < tensors_.inputs.size(); ++i)
      bind(tensors_.inputs[i], device(buffers.inputs[i].address));
    for (std::size_t i = 0; i < tensors_.outputs.size(); ++i)
      bind(tensors_.outputs[i], device(buffers.outputs[i].address));
    std::uint64_t scratch = scratch_.address;
    for (const auto& [id, size] : tensors_.scratch) {
      bind(id, device(scratch));
      scratch += aligned(size);
    }
    for (const auto& [id, value] : graph_.constants()) bind(id, &value);
    void* const workspace = device(workspace_.address);

    PTXBENCH_TRY_ASSIGN(CudnnDescriptor pack, CudnnDescriptor::create(dnn_, DescriptorType::variant_pack));
    const auto count = static_cast<std::int64_t>(ids.size());
    PTXBENCH_TRY(
        pack.set(Attribute::variant_pack_data_pointers, AttributeType::void_pointer, count, pointers.data()));
    PTXBENCH_TRY(pack.set(Attribute::variant_pack_unique_ids, AttributeType::int64, count, ids.data()));
    PTXBENCH_TRY(pack.set(Attribute::variant_pack_workspace, AttributeType::void_pointer, 1, &workspace));
    PTXBENCH_TRY(pack.finalize());
    return check(dnn_->cudnnBackendExecute(handle_.value, plan.plan.handle(), pack.handle()),
                 "cudnnBackendExecute");
  }

  std::shared_ptr<const Cudnn> dnn_;
  AttentionPattern pattern_;
  Device* device_ = nullptr;
  CudnnHandle handle_;  // destroyed after all that was made with it
  CudnnGraph graph_;
  CudnnAttention tensors_;
  CudnnDescriptor operations_;
  DeviceBuffer scratch_, workspace_;
  std::optional<Plan> chosen_;
  std::string description_;
};

}  // namespace

std::unique_ptr<LibraryBaseline> make_cudnn_attention(std::shared_ptr<const Cudnn> library,
                                                      const AttentionPattern& pattern) {
  return std::make_unique<CudnnAttentionBaseline>(std::move(library), pattern);
}

}  // namespace ptxbench
