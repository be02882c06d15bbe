#include "trace/safetensors.hpp"

#include "core/guard.hpp"
#include "core/json.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

namespace ptxbench {
namespace {

constexpr std::array<std::pair<std::string_view, DType>, 14> kTypes{{{"F64", DType::float64},
                                                                     {"F32", DType::float32},
                                                                     {"F16", DType::float16},
                                                                     {"BF16", DType::bfloat16},
                                                                     {"F8_E4M3", DType::float8_e4m3fn},
                                                                     {"F8_E5M2", DType::float8_e5m2},
                                                                     {"I64", DType::int64},
                                                                     {"I32", DType::int32},
                                                                     {"I16", DType::int16},
                                                                     {"I8", DType::int8},
                                                                     {"U64", DType::uint64},
                                                                     {"U32", DType::uint32},
                                                                     {"U8", DType::uint8},
                                                                     {"BOOL", DType::boolean}}};

std::optional<DType> type_of(std::string_view name) {
  for (const auto& [known, dtype] : kTypes)
    if (known == name) return dtype;
  return {};
}

Result<StoredTensor> read_tensor(const std::string& name, const json::Cursor& at, std::uint64_t data_offset,
                                 std::uint64_t data_bytes) {
  StoredTensor tensor;
  tensor.name = name;
  PTXBENCH_TRY_ASSIGN(const json::Cursor type, at.require("dtype"));
  PTXBENCH_TRY_ASSIGN(const std::string type_name, type.as_string());
  const std::optional<DType> dtype = type_of(type_name);
  if (!dtype) return type.error("the element type \"" + type_name + "\" is not known");
  tensor.dtype = *dtype;
  PTXBENCH_TRY_ASSIGN(const json::Cursor shape, at.require("shape"));
  PTXBENCH_TRY_ASSIGN(const auto extents, shape.items());
  std::uint64_t bytes = static_cast<std::uint64_t>(dtype_bits(*dtype)) / 8;
  for (const json::Cursor& extent : extents) {
    PTXBENCH_TRY_ASSIGN(const std::int64_t value, extent.as_int());
    if (value < 0) return extent.error("an extent below zero");
    if (value != 0 && bytes > (std::uint64_t{1} << 48) / static_cast<std::uint64_t>(value))
      return shape.error("a tensor of more than 2^48 bytes");
    bytes *= static_cast<std::uint64_t>(value);
    tensor.shape.push_back(value);
  }
  PTXBENCH_TRY_ASSIGN(const json::Cursor offsets, at.require("data_offsets"));
  PTXBENCH_TRY_ASSIGN(const auto ends, offsets.items());
  if (ends.size() != 2) return offsets.error("two offsets are wanted: of the first byte, and behind the last");
  PTXBENCH_TRY_ASSIGN(const std::int64_t begin, ends[0].as_int());
  PTXBENCH_TRY_ASSIGN(const std::int64_t end, ends[1].as_int());
  if (begin < 0 || end < begin || static_cast<std::uint64_t>(end) > data_bytes)
    return offsets.error("bytes " + std::to_string(begin) + " to " + std::to_string(end) + " of " + std::to_string(data_bytes));
  if (static_cast<std::uint64_t>(end - begin) != bytes)
    return offsets.error("the shape wants " + std::to_string(bytes) + " bytes, the offsets give " + std::to_string(end - begin));
  tensor.offset = data_offset + static_cast<std::uint64_t>(begin);
  tensor.bytes = bytes;
  return tensor;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace

std::string_view safetensors_type(DType dtype) noexcept {
  for (const auto& [name, known] : kTypes)
    if (known == dtype) return name;
  return {};
}

Result<std::vector<StoredTensor>> parse_safetensors_header(std::string_view header, std::uint64_t data_offset,
                                                           std::uint64_t data_bytes, const std::string& file) {
  return guarded([&]() -> Result<std::vector<StoredTensor>> {
    PTXBENCH_TRY_ASSIGN(const json::Document document, json::parse(header, {file, false, 8}));
    const json::Cursor root(document);
    PTXBENCH_TRY_ASSIGN(const auto members, root.members());
    std::vector<StoredTensor> tensors;
    for (const auto& [name, at] : members) {
      if (name == "__metadata__") continue;
      PTXBENCH_TRY_ASSIGN(StoredTensor tensor, read_tensor(name, at, data_offset, data_bytes));
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  });
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  return guarded([&]() -> Result<SafetensorsFile> {
    std::error_code code;
    const std::uint64_t size = std::filesystem::file_size(path, code);
    if (code) return make_error(ErrorCode::not_found, "cannot open the safetensors file: " + code.message(), {path});
    std::ifstream in(path, std::ios::binary);
    std::uint8_t length[8] = {};
    if (!in.read(reinterpret_cast<char*>(length), 8))
      return make_error(ErrorCode::parse, "no safetensors file: it is shorter than eight bytes", {path});
    std::uint64_t header_bytes = 0;
    for (int i = 7; i >= 0; --i) header_bytes = header_bytes << 8 | length[i];
    if (header_bytes > kMostSafetensorsHeader || header_bytes > size - 8)
      return make_error(ErrorCode::parse, "no safetensors file: a header of " + std::to_string(header_bytes) + " bytes does not fit",
                        {path});
    std::string header(header_bytes, '\0');
    if (!in.read(header.data(), static_cast<std::streamsize>(header_bytes)))
      return make_error(ErrorCode::io, "cannot read the header", {path});
    SafetensorsFile file;
    file.path_ = path;
    PTXBENCH_TRY_ASSIGN(file.tensors_, parse_safetensors_header(header, 8 + header_bytes, size - 8 - header_bytes, path));
    return file;
  });
}

Result<const StoredTensor*> SafetensorsFile::find(std::string_view key, DType dtype,
                                                  const std::vector<std::int64_t>& shape) const {
  for (const StoredTensor& tensor : tensors_) {
    if (tensor.name != key) continue;
    if (tensor.dtype != dtype || tensor.shape != shape)
      return make_error(ErrorCode::invalid_argument,
                        "tensor \"" + tensor.name + "\" is " + std::string(dtype_name(tensor.dtype)) + " " +
                            shape_text(tensor.shape) + " where " + std::string(dtype_name(dtype)) + " " + shape_text(shape) +
                            " is wanted",
                        {path_});
    return &tensor;
  }
  std::string names;
  for (std::size_t i = 0; i < std::min<std::size_t>(8, tensors_.size()); ++i) names += (i ? ", " : "") + tensors_[i].name;
  return make_error(ErrorCode::not_found,
                    "there is no tensor \"" + std::string(key) + "\"" + (names.empty() ? "" : "; there are " + names), {path_});
}

Result<void> SafetensorsFile::read(const StoredTensor& tensor, std::span<std::uint8_t> into) const {
  return guarded([&]() -> Result<void> {
    if (into.size() != tensor.bytes)
      return make_error(ErrorCode::invalid_argument, "tensor \"" + tensor.name + "\" has " + std::to_string(tensor.bytes) + " bytes",
                        {path_});
    std::ifstream in(path_, std::ios::binary);
    in.seekg(static_cast<std::streamoff>(tensor.offset));
    if (!in || !in.read(reinterpret_cast<char*>(into.data()), static_cast<std::streamsize>(into.size())))
      return make_error(ErrorCode::io, "cannot read tensor \"" + tensor.name + "\"", {path_});
    return {};
  });
}

Result<void> write_safetensors(const std::string& path, std::span<const TensorBytes> tensors) {
  return guarded([&]() -> Result<void> {
    json::Writer w;
    w.begin_object();
    std::uint64_t at = 0;
    for (const TensorBytes& tensor : tensors) {
      const std::string_view type = safetensors_type(tensor.dtype);
      if (type.empty())
        return make_error(ErrorCode::invalid_argument, "safetensors has no type for " + std::string(dtype_name(tensor.dtype)), {path});
      w.key(tensor.name).begin_object().field("dtype", type).key("shape").begin_array();
      for (const std::int64_t extent : tensor.shape) w.integer(extent);
      w.end_array().key("data_offsets").begin_array().unsigned_integer(at).unsigned_integer(at + tensor.bytes.size());
      w.end_array().end_object();
      at += tensor.bytes.size();
    }
    w.end_object();
    std::string header = std::move(w).str();
    header.resize((header.size() + 7) / 8 * 8, ' ');  // tensors begin aligned
    const std::string unfinished = path + ".part";
    {
      std::ofstream out(unfinished, std::ios::binary | std::ios::trunc);
      std::uint8_t length[8];
      for (int i = 0; i < 8; ++i) length[i] = static_cast<std::uint8_t>(header.size() >> (8 * i));
      out.write(reinterpret_cast<const char*>(length), 8);
      out.write(header.data(), static_cast<std::streamsize>(header.size()));
      for (const TensorBytes& tensor : tensors)
        out.write(reinterpret_cast<const char*>(tensor.bytes.data()), static_cast<std::streamsize>(tensor.bytes.size()));
      out.flush();
      if (!out) {
        std::error_code ignored;
        std::filesystem::remove(unfinished, ignored);
        return make_error(ErrorCode::io, "cannot write the safetensors file", {path});
      }
    }
    std::filesystem::rename(unfinished, path);
    return {};
  });
}

}  // namespace ptxbench
