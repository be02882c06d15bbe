// At most one timing on a GPU at a time, between all processes that look into the same folder.
#pragma once

#include "core/unique_fd.hpp"

#include <ptxbench/core.hpp>

#include <string>

namespace ptxbench {

// The folder that is used where none is named: the same for every user and every environment of a machine.
inline constexpr const char* kDefaultLockDir = "/tmp/ptxbench-locks";

// A lock (flock) on a file named after the GPU, held until destroyed. It ends with the process that holds it,
// however that ends. Two holders in one process exclude each other too.
class GpuLock {
 public:
  GpuLock() = default;  // holds nothing
  GpuLock(GpuLock&& other) noexcept = default;
  GpuLock& operator=(GpuLock&& other) noexcept;
  ~GpuLock() { release(); }

  // Waits for its turn. `device_id`: "cuda:GPU-<uuid>". Errors: cancelled; io where the file cannot be made,
  // with the option that names another folder.
  static Result<GpuLock> take(const std::string& dir, const std::string& device_id,
                              const CancelToken& cancel);
  // "<dir>/GPU-<uuid>.lock"
  static std::string path_of(const std::string& dir, const std::string& device_id);

 private:
  void release() noexcept;
  UniqueFd file_;
};

}  // namespace ptxbench
