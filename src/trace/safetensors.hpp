// Tensors in a safetensors file: eight bytes with the header's length, a JSON header, then the tensors' bytes.
// The format: https://github.com/huggingface/safetensors (README, "Format").
#pragma once

#include <ptxbench/core.hpp>
#include <ptxbench/trace.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxbench {

struct StoredTensor {
  std::string name;
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape;  // outermost first
  std::uint64_t offset = 0;         // of its first byte in the file
  std::uint64_t bytes = 0;
};

// How the format spells @p dtype ("BF16"); empty for a type that it lacks.
std::string_view safetensors_type(DType dtype) noexcept;

// The longest header that is read; the format's own limit.
inline constexpr std::uint64_t kMostSafetensorsHeader = 100'000'000;

// Reads the JSON header of a file whose tensors begin at @p data_offset and hold @p data_bytes. Errors: ErrorCode::parse with the
// place in the header: a type that is not known, a size that does not fit its shape, bytes beyond the file's end.
Result<std::vector<StoredTensor>> parse_safetensors_header(std::string_view header, std::uint64_t data_offset,
                                                           std::uint64_t data_bytes, const std::string& file);

// A file that is open for reading. One thread at a time.
class SafetensorsFile {
 public:
  // Errors: not_found, io, parse.
  static Result<SafetensorsFile> open(const std::string& path);
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  // The tensor called @p key, of this type and shape; else an error that says what there is.
  Result<const StoredTensor*> find(std::string_view key, DType dtype, const std::vector<std::int64_t>& shape) const;
  // Its bytes, as many as there are.
  Result<void> read(const StoredTensor& tensor, std::span<std::uint8_t> into) const;

 private:
  std::string path_;
  std::vector<StoredTensor> tensors_;
};

// A tensor to be written; the bytes are the caller's.
struct TensorBytes {
  std::string name;
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape;
  std::span<const std::uint8_t> bytes;
};
// Writes a file; what was there is replaced once all is written. Errors: io; invalid_argument for a type that the format lacks.
Result<void> write_safetensors(const std::string& path, std::span<const TensorBytes> tensors);

}  // namespace ptxbench
