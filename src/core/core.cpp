#include <ptxbench/core.hpp>

#include <array>

namespace ptxbench {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  int bits;
  bool in_schema;
};

constexpr std::array<DTypeRow, 17> kDTypes{{
    {DType::float32, "float32", 32, true},
    {DType::float16, "float16", 16, true},
    {DType::bfloat16, "bfloat16", 16, true},
    {DType::float8_e4m3fn, "float8_e4m3fn", 8, true},
    {DType::float8_e5m2, "float8_e5m2", 8, true},
    {DType::float4_e2m1, "float4_e2m1", 4, true},
    {DType::int64, "int64", 64, true},
    {DType::int32, "int32", 32, true},
    {DType::int16, "int16", 16, true},
    {DType::int8, "int8", 8, true},
    {DType::boolean, "bool", 8, true},
    {DType::float64, "float64", 64, false},
    {DType::uint64, "uint64", 64, false},
    {DType::uint32, "uint32", 32, false},
    {DType::uint16, "uint16", 16, false},
    {DType::uint8, "uint8", 8, false},
    {DType::tfloat32, "tf32", 32, false},
}};

const DTypeRow& row(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::string_view error_code_name(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::parse:
      return "parse";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::io:
      return "io";
    case ErrorCode::no_device:
      return "no_device";
    case ErrorCode::toolkit:
      return "toolkit";
    case ErrorCode::driver:
      return "driver";
    case ErrorCode::state:
      return "state";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::callback:
      return "callback";
    case ErrorCode::no_memory:
      return "no_memory";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::worker:
      return "worker";
    case ErrorCode::busy:
      return "busy";
    case ErrorCode::internal:
      return "internal";
  }
  return "unknown";
}

std::string Error::to_string() const {
  std::string place = where.file;
  if (!where.pointer.empty()) place += (place.empty() ? "" : ":") + where.pointer;
  if (where.line > 0) {
    place += (place.empty() ? "line " : ":") + std::to_string(where.line);
    if (where.column > 0) place += ":" + std::to_string(where.column);
  }
  return place.empty() ? message : place + ": " + message;
}

std::string_view dtype_name(DType dtype) noexcept { return row(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
  for (const DTypeRow& r : kDTypes)
    if (r.name == name) return r.dtype;
  return std::nullopt;
}

bool dtype_in_schema(DType dtype) noexcept { return row(dtype).in_schema; }
int dtype_bits(DType dtype) noexcept { return row(dtype).bits; }

std::uint64_t dtype_bytes(DType dtype, std::uint64_t elements) noexcept {
  const auto bits = static_cast<std::uint64_t>(dtype_bits(dtype));
  return bits >= 8 ? elements * (bits / 8) : (elements * bits + 7) / 8;
}

std::uint32_t version() noexcept { return 0u << 16 | 1u << 8 | 0u; }
std::string_view version_string() noexcept { return "0.1.0"; }

}  // namespace ptxbench
