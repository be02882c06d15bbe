// Library baselines that stay prepared from one timing to the next: choosing an algorithm takes longer than timing it.
#pragma once

#include <ptxbench/bench.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ptxbench {

// Belongs to one Device and its thread; must be cleared before the device goes.
class PreparedLibraries {
 public:
  using Find = std::function<Result<std::unique_ptr<LibraryBaseline>>(const Workload&, const std::string& cuda_home)>;
  explicit PreparedLibraries(Find find = find_library_baseline) : find_(std::move(find)) {}

  // The baseline for @p workload, the same object as before where it was asked for lately; its `prepare` does something the
  // first time only. Valid until the next call of `find` or `clear`. Errors: those of find_library_baseline.
  struct Prepared {
    LibraryBaseline* library = nullptr;
    BaselineCalibration* calibration = nullptr;
  };
  Result<Prepared> find(const Workload& workload, const std::string& cuda_home);
  void clear() { kept_.clear(); }
  std::size_t size() const { return kept_.size(); }

  static constexpr std::size_t kMost = 3;  // each has a workspace on the device

 private:
  struct Kept {
    std::string key;
    std::unique_ptr<LibraryBaseline> library;
    std::unique_ptr<BaselineCalibration> calibration;
  };
  Find find_;
  std::vector<Kept> kept_;  // the last used at the end
};

}  // namespace ptxbench
