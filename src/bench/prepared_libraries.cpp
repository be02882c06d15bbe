#include "bench/prepared_libraries.hpp"

#include "core/hash.hpp"

#include <algorithm>

namespace ptxbench {
namespace {

class PreparedOnce final : public LibraryBaseline {
 public:
  explicit PreparedOnce(std::unique_ptr<LibraryBaseline> library) : library_(std::move(library)) {}
  Result<void> prepare(Device& device, const Workload& workload, const PlanBuffers& buffers) override {
    if (ready_) return {};
    failed_ = true;
    PTXBENCH_TRY(library_->prepare(device, workload, buffers));
    ready_ = true;
    failed_ = false;
    return {};
  }
  std::string description() const override { return library_->description(); }
  Result<void> enqueue(const PlanBuffers& buffers) override { return library_->enqueue(buffers); }
  bool failed() const { return failed_; }

 private:
  std::unique_ptr<LibraryBaseline> library_;
  bool ready_ = false, failed_ = false;
};

std::string key_of(const Workload& workload) {
  if (workload.definition == nullptr) return {};
  return std::move(Hasher().field(to_json(*workload.definition)).field(to_json(workload))).hex();
}

}  // namespace

Result<PreparedLibraries::Prepared> PreparedLibraries::find(const Workload& workload, const std::string& cuda_home) {
  const std::string key = key_of(workload);
  const auto known = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) { return k.key == key; });
  if (known != kept_.end()) {
    // One that could not be prepared (memory was short, say) may be another time.
    if (static_cast<const PreparedOnce&>(*known->library).failed()) {
      kept_.erase(known);
    } else {
      std::rotate(known, known + 1, kept_.end());
      return Prepared{kept_.back().library.get(), kept_.back().calibration.get()};
    }
  }
  if (kept_.size() == kMost) kept_.erase(kept_.begin());
  PTXBENCH_TRY_ASSIGN(auto found, find_(workload, cuda_home));
  kept_.push_back({key, std::make_unique<PreparedOnce>(std::move(found)), std::make_unique<BaselineCalibration>()});
  return Prepared{kept_.back().library.get(), kept_.back().calibration.get()};
}

}  // namespace ptxbench
