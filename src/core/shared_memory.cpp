#include "core/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

namespace ptxbench {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

Error no_memory(std::uint64_t bytes, const char* step) {
  const int error = errno;
  char buffer[128];
  return make_error(ErrorCode::no_memory, "cannot share " + std::to_string(bytes) + " bytes: " + step + ": " +
                                              ::strerror_r(error, buffer, sizeof buffer));
}

}  // namespace

Result<SharedMemory> SharedMemory::create(std::uint64_t bytes) {
  if (bytes == 0) return make_error(ErrorCode::invalid_argument, "shared memory of 0 bytes");
  if (bytes > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max()))
    return make_error(ErrorCode::no_memory, "cannot share " + std::to_string(bytes) + " bytes");
  // Growing past the limit would be SIGXFSZ, whose default ends the process.
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur)
    return make_error(ErrorCode::no_memory, "cannot share " + std::to_string(bytes) +
                                                " bytes: the limit of file sizes (RLIMIT_FSIZE) is " +
                                                std::to_string(limit.rlim_cur));
  UniqueFd fd(::memfd_create("ptxbench-shared", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return no_memory(bytes, "memfd_create");
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return no_memory(bytes, "ftruncate");
  int reserved;
  do {
    reserved = ::fallocate(fd.get(), 0, 0, static_cast<off_t>(bytes));
  } while (reserved != 0 && errno == EINTR);
  if (reserved != 0 && errno != EOPNOTSUPP) return no_memory(bytes, "fallocate");
  if (::fcntl(fd.get(), F_ADD_SEALS, kSizeSeals | F_SEAL_SEAL) != 0) return no_memory(bytes, "fcntl");
  return adopt(std::move(fd));
}

Result<SharedMemory> SharedMemory::adopt(UniqueFd fd) {
  SharedMemory memory;
  struct stat s {};
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals || ::fstat(fd.get(), &s) != 0 || s.st_size <= 0)
    return make_error(ErrorCode::invalid_argument, "not shared memory of a sealed size");
  memory.size_ = static_cast<std::uint64_t>(s.st_size);
  void* data = ::mmap(nullptr, static_cast<std::size_t>(memory.size_), PROT_READ | PROT_WRITE, MAP_SHARED,
                      fd.get(), 0);
  if (data == MAP_FAILED) return no_memory(memory.size_, "mmap");
  memory.data_ = static_cast<std::uint8_t*>(data);
  memory.fd_ = std::move(fd);
  return memory;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  if (this != &other) {
    unmap();
    fd_ = std::move(other.fd_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

SharedMemory::~SharedMemory() { unmap(); }

void SharedMemory::unmap() noexcept {
  if (data_ != nullptr) ::munmap(data_, static_cast<std::size_t>(size_));
  data_ = nullptr;
}

}  // namespace ptxbench
