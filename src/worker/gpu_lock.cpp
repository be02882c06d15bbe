#include "worker/gpu_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

namespace ptxbench {
namespace {

// How often a lock that another holds is tried, and the cancel token is looked at.
constexpr std::chrono::milliseconds kTry{10};

Error cannot(const std::string& path, const std::string& why) {
  return make_error(ErrorCode::io,
                    "the lock file " + path +
                        ", by which processes take turns in timing on a GPU, cannot be used: " + why +
                        "; the option lock_dir names another folder (\"\": no turns)",
                    {path, {}, 0, 0}, "lock_file");
}

Result<void> make_folder(const std::string& dir) {
  if (dir == kDefaultLockDir) {
    // As /tmp itself: everybody may add files, nobody may remove another's.
    if (::mkdir(dir.c_str(), 0777) == 0)
      ::chmod(dir.c_str(), 01777);
    else if (errno != EEXIST)
      return cannot(dir, std::strerror(errno));
    return {};
  }
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) return cannot(dir, error.message());
  return {};
}

// For reading: that is enough for a lock, and works on a file of another user's.
Result<UniqueFd> open_file(const std::string& path) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW;
  for (int attempt = 0; attempt < 100; ++attempt) {
    UniqueFd file(::open(path.c_str(), kFlags));
    if (file) return file;
    if (errno != ENOENT) return cannot(path, std::strerror(errno));
    file.reset(::open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0644));
    if (file) return file;
    if (errno != EEXIST) return cannot(path, std::strerror(errno));
  }
  return cannot(path, "it comes and goes");
}

// Whether the file that is open is the one that others find by its name.
bool still_there(const UniqueFd& file, const std::string& path) {
  struct stat open {
  }, named{};
  return ::fstat(file.get(), &open) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

}  // namespace

GpuLock& GpuLock::operator=(GpuLock&& other) noexcept {
  if (this != &other) {
    release();
    file_ = std::move(other.file_);
  }
  return *this;
}

// Not by closing alone: a forked copy of the process may have the descriptor still.
void GpuLock::release() noexcept {
  if (file_) ::flock(file_.get(), LOCK_UN);
  file_.reset();
}

std::string GpuLock::path_of(const std::string& dir, const std::string& device_id) {
  std::string name = device_id.substr(device_id.find(':') + 1);
  for (char& c : name)
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-')) c = '_';
  return dir + "/" + name + ".lock";
}

Result<GpuLock> GpuLock::take(const std::string& dir, const std::string& device_id,
                              const CancelToken& cancel) {
  PTXBENCH_TRY(make_folder(dir));
  const std::string path = path_of(dir, device_id);
  GpuLock lock;
  for (;;) {
    if (!lock.file_) {
      PTXBENCH_TRY_ASSIGN(lock.file_, open_file(path));
    }
    if (::flock(lock.file_.get(), LOCK_EX | LOCK_NB) == 0) {
      if (still_there(lock.file_, path)) return lock;
      lock.release();  // somebody has removed it: it excludes nobody
      continue;
    }
    if (errno != EWOULDBLOCK && errno != EINTR) return cannot(path, std::strerror(errno));
    if (cancel.triggered())
      return make_error(ErrorCode::cancelled, "cancelled while another process timed on " + device_id);
    std::this_thread::sleep_for(kTry);
    if (!still_there(lock.file_, path)) lock.file_.reset();
  }
}

}  // namespace ptxbench
