// Memory shared by a host and its worker, for bulk data: a sealed memfd whose descriptor travels over a
// Channel.
#pragma once

#include "core/unique_fd.hpp"

#include <ptxbench/core.hpp>

#include <cstdint>
#include <span>

namespace ptxbench {

// The size is sealed, so neither side can shrink it under the other's feet (that would be SIGBUS there). All
// pages are reserved at creation. Move-only; unmapped at destruction. Contents start as zeros.
class SharedMemory {
 public:
  // Errors: ErrorCode::no_memory (also where RLIMIT_FSIZE, which counts memfds, is smaller), invalid_argument
  // for 0 bytes.
  static Result<SharedMemory> create(std::uint64_t bytes);
  // Maps what another process created. Errors: ErrorCode::invalid_argument where it is not a memfd with a
  // sealed size, no_memory where it cannot be mapped.
  static Result<SharedMemory> adopt(UniqueFd fd);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  std::uint8_t* data() const noexcept { return data_; }
  std::uint64_t size() const noexcept { return size_; }
  std::span<std::uint8_t> bytes() const noexcept { return {data_, static_cast<std::size_t>(size_)}; }
  int fd() const noexcept { return fd_.get(); }

 private:
  SharedMemory() = default;
  void unmap() noexcept;

  UniqueFd fd_;
  std::uint8_t* data_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace ptxbench
