#include "evaluate/stored.hpp"

#include "core/guard.hpp"
#include "trace/safetensors.hpp"
#include "verify/host_loops.hpp"
#include "verify/seed.hpp"

#include <algorithm>
#include <filesystem>

namespace ptxbench {
namespace {

std::span<std::uint8_t> bytes_of(const HostTensor& tensor) {
  return {static_cast<std::uint8_t*>(tensor.data), static_cast<std::size_t>(tensor.bytes)};
}

Result<void> read_stored(const std::string& root, const SafetensorsInput& stored, const HostTensor& into) {
  // A path that leads out of the data set is none of its own.
  const std::filesystem::path path = std::filesystem::path(stored.path).lexically_normal();
  if (path.is_absolute() || (!path.empty() && *path.begin() == ".."))
    return make_error(ErrorCode::invalid_argument, "tensor \"" + into.name + "\": the path \"" + stored.path +
                                                       "\" leads out of the data set", {}, "stored_path");
  PTXBENCH_TRY_ASSIGN(const SafetensorsFile file, SafetensorsFile::open((std::filesystem::path(root) / path).string()));
  PTXBENCH_TRY_ASSIGN(const StoredTensor* const tensor, file.find(stored.tensor_key, into.dtype, into.shape));
  return file.read(*tensor, bytes_of(into));
}

class StoredInputs final : public InputSource {
 public:
  explicit StoredInputs(std::string root) : root_(std::move(root)) {}
  Result<void> fill(const Workload& workload, std::uint64_t seed, int trial, std::span<HostTensor> inputs) override {
    return guarded([&]() -> Result<void> {
      for (const HostTensor& tensor : inputs) {
        if (const auto* stored = std::get_if<SafetensorsInput>(&workload.input_spec(tensor.name))) {
          PTXBENCH_TRY(read_stored(root_, *stored, tensor));
          continue;
        }
        host_draw(draw_spec(tensor_key(trial_seed(seed, workload.uuid, trial), tensor.name), tensor.dtype, tensor.shape,
                            distribution_of_trial(trial)),
                  tensor.data);
      }
      return {};
    });
  }

 private:
  const std::string root_;
};

class GoldenReference final : public Reference {
 public:
  explicit GoldenReference(std::string root) : root_(std::move(root)) {}
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
        PTXBENCH_TRY(read_stored(root_, stored->second, tensor));
      }
      return {};
    });
  }

 private:
  const std::string root_;
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
