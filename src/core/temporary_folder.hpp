// A folder of its own that is removed with all that is in it.
#pragma once

#include <ptxbench/core.hpp>

#include <string>

namespace ptxbench {

class TemporaryFolder {
 public:
  // "ptxbench-<purpose>-..." where the system keeps temporary files. Errors: io.
  static Result<TemporaryFolder> make(const std::string& purpose);
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  const std::string& path() const { return path_; }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace ptxbench
