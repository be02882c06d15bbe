#include "agent/records.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ptxbench {
namespace {

Error failed(const std::string& path, const char* what) {
  return make_error(ErrorCode::io, std::string(what) + ": " + std::strerror(errno), {path, {}, 0, 0});
}

}  // namespace

TrajectoryFile::~TrajectoryFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<void> TrajectoryFile::create(const std::string& path) {
  path_ = path;
  descriptor_ = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor_ < 0)
    return failed(path, errno == EEXIST ? "the trajectory is never overwritten" : "cannot be made");
  // The folder too, so that the name survives a crash of the machine. A file system that cannot is no reason
  // to stop.
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (const int at = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); at >= 0) {
    fsync(at);
    close(at);
  }
  return {};
}

Result<void> TrajectoryFile::append(const std::string& line) {
  const std::string whole = line + "\n";
  for (std::size_t done = 0; done < whole.size();) {
    const ssize_t n = write(descriptor_, whole.data() + done, whole.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const Error error = failed(path_, "cannot be written");
      if (ftruncate(descriptor_, size_) == 0) lseek(descriptor_, size_, SEEK_SET);
      return error;
    }
    done += static_cast<std::size_t>(n);
  }
  size_ += static_cast<long long>(whole.size());
  // A pipe or a device knows no fsync (EINVAL, EROFS): the bytes are where they can be.
  if (fsync(descriptor_) != 0 && errno == EIO) return failed(path_, "cannot be flushed");
  return {};
}

}  // namespace ptxbench
