#include "evaluate/stored.hpp"

#include "bench/timed_trials.hpp"
#include "core/guard.hpp"
#include "trace/safetensors.hpp"
#include "verify/host_loops.hpp"
#include "verify/seed.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <vector>

namespace ptxbench {
namespace {

std::span<std::uint8_t> bytes_of(const HostTensor& tensor) {
  return {static_cast<std::uint8_t*>(tensor.data), static_cast<std::size_t>(tensor.bytes)};
}

// Reads tensors of a data set, and keeps the bytes of the last ones: timing asks for the same in each pair. One call at a time,
// as with the callbacks that own it.
class StoredTensors {
 public:
  explicit StoredTensors(std::string root) : root_(std::move(root)) {}

  Result<void> read(const SafetensorsInput& stored, const HostTensor& into) {
    const auto known = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) {
      return k.path == stored.path && k.key == stored.tensor_key && k.dtype == into.dtype && k.shape == into.shape;
    });
    if (known == kept_.end()) {
      PTXBENCH_TRY(read_file(stored, into));
      keep({stored.path, stored.tensor_key, into.dtype, into.shape, {}}, bytes_of(into));
    } else if (!known->bytes.empty()) {
      std::memcpy(into.data, known->bytes.data(), known->bytes.size());
    }
    return {};
  }

 private:
  struct Kept {
    std::string path, key;
    DType dtype;
    std::vector<std::int64_t> shape;
    std::vector<std::uint8_t> bytes;
  };
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

  Result<void> read_file(const SafetensorsInput& stored, const HostTensor& into) const {
    // A path that leads out of the data set is none of its own.
    const std::filesystem::path path = std::filesystem::path(stored.path).lexically_normal();
    if (path.is_absolute() || (!path.empty() && *path.begin() == ".."))
      return make_error(ErrorCode::invalid_argument, "tensor \"" + into.name + "\": the path \"" + stored.path +
                                                         "\" leads out of the data set", {}, "stored_path");
    PTXBENCH_TRY_ASSIGN(const SafetensorsFile file, SafetensorsFile::open((std::filesystem::path(root_) / path).string()));
    PTXBENCH_TRY_ASSIGN(const StoredTensor* const tensor, file.find(stored.tensor_key, into.dtype, into.shape));
    return file.read(*tensor, bytes_of(into));
  }

  void keep(Kept made, std::span<const std::uint8_t> bytes) {
    if (bytes.size() > kMostBytes) return;
    while (bytes_ + bytes.size() > kMostBytes) {
      bytes_ -= kept_.front().bytes.size();
      kept_.pop_front();
    }
    made.bytes.assign(bytes.begin(), bytes.end());
    kept_.push_back(std::move(made));
    bytes_ += bytes.size();
  }

  const std::string root_;
  std::deque<Kept> kept_;  // the oldest first
  std::uint64_t bytes_ = 0;
};

// Of a timing's draws all are Gaussian.
judge::Distribution distribution_of(int trial) noexcept {
  return is_timed_trial(trial) ? judge::kGaussian : distribution_of_trial(trial);
}

class StoredInputs final : public InputSource {
 public:
  explicit StoredInputs(std::string root) : stored_(std::move(root)) {}
  Result<void> fill(const Workload& workload, std::uint64_t seed, int trial, std::span<HostTensor> inputs) override {
    return guarded([&]() -> Result<void> {
      for (const HostTensor& tensor : inputs) {
        if (const auto* stored = std::get_if<SafetensorsInput>(&workload.input_spec(tensor.name))) {
          PTXBENCH_TRY(stored_.read(*stored, tensor));
          continue;
        }
        host_draw(draw_spec(tensor_key(trial_seed(seed, workload.uuid, trial), tensor.name), tensor.dtype, tensor.shape,
                            distribution_of(trial)),
                  tensor.data);
      }
      return {};
    });
  }

 private:
  StoredTensors stored_;
};

class GoldenReference final : public Reference {
 public:
  explicit GoldenReference(std::string root) : stored_(std::move(root)) {}
  Result<void> compute(const Workload& workload, std::span<const HostTensor>, std::span<HostTensor> outputs) override {
    return guarded([&]() -> Result<void> {
      for (const TensorSpec& input : workload.definition->inputs)
        if (!input.is_scalar() && !std::holds_alternative<SafetensorsInput>(workload.input_spec(input.name)))
          return make_error(ErrorCode::invalid_argument,
                            "the stored outputs of workload " + workload.uuid + " belong to inputs that are not stored: \"" +
                                input.name + "\" is drawn", {}, "golden_inputs");
      for (const HostTensor& tensor : outputs) {
        const auto stored = std::find_if(workload.outputs.begin(), workload.outputs.end(),
                                         [&](const auto& o) { return o.first == tensor.name; });
        if (stored == workload.outputs.end())
          return make_error(ErrorCode::invalid_argument,
                            "workload " + workload.uuid + " stores no output \"" + tensor.name + "\"", {}, "golden_outputs");
        PTXBENCH_TRY(stored_.read(stored->second, tensor));
      }
      return {};
    });
  }

 private:
  StoredTensors stored_;
};

}  // namespace

bool has_stored_inputs(const Workload& workload) noexcept {
  return std::any_of(workload.inputs.begin(), workload.inputs.end(),
                     [](const auto& input) { return std::holds_alternative<SafetensorsInput>(input.second); });
}
bool has_golden_outputs(const Workload& workload) noexcept {
  return std::all_of(workload.definition->outputs.begin(), workload.definition->outputs.end(), [&](const TensorSpec& output) {
    return std::any_of(workload.outputs.begin(), workload.outputs.end(),
                       [&](const auto& stored) { return stored.first == output.name; });
  });
}

std::shared_ptr<InputSource> make_stored_inputs(std::string root) { return std::make_shared<StoredInputs>(std::move(root)); }
std::shared_ptr<Reference> make_golden_reference(std::string root) { return std::make_shared<GoldenReference>(std::move(root)); }

}  // namespace ptxbench
