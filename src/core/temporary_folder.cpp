#include "core/temporary_folder.hpp"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace ptxbench {

namespace fs = std::filesystem;

Result<TemporaryFolder> TemporaryFolder::make(const std::string& purpose) {
  std::error_code failed;
  fs::path base = fs::temp_directory_path(failed);
  if (failed) base = "/tmp";
  std::string pattern = (base / ("ptxbench-" + purpose + "-XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr)
    return make_error(ErrorCode::io, "cannot make a temporary folder in " + base.string() + ": " + std::strerror(errno));
  return TemporaryFolder(pattern);
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace ptxbench
