// Tensor maps: from the plan's words to the driver's numbers, and the driver's rules checked beforehand.
#pragma once

#include "plan/model.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ptxbench::plan {

// A concrete buffer of a run.
struct Buffer {
  BufferRef::Kind kind = BufferRef::Kind::input;
  std::size_t index = 0;
  std::string name;
  DType dtype = DType::uint8;
  std::vector<std::int64_t> shape;
  std::uint64_t elements = 0, bytes = 0;
};

// A rule that is broken: its name, the plan's field, and what is wrong.
struct TensorMapViolation {
  std::string_view rule;
  std::string_view field;
  std::string message;
};

// What cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col of CUDA 13.0 document as requirements, for a base
// that is `map.base.byte_offset` bytes into a buffer aligned to 256 bytes. `compute_major`: of the device.
std::optional<TensorMapViolation> check_tensor_map(const ResolvedTensorMap& map, int compute_major);

// Whether the rows that `map` describes lie within `bytes` bytes.
std::optional<TensorMapViolation> check_tensor_map_inside(const ResolvedTensorMap& map, std::uint64_t bytes);

// Evaluates `map` over `buffer` and checks it.
Result<ResolvedTensorMap> resolve_tensor_map(const LaunchPlan::Impl& plan, const TensorMap& map,
                                             const Buffer& buffer, const expr::Environment& environment,
                                             const DeviceLimits& limits);

// CUtensorMapDataType of an element type, and its size in bits.
int tensor_map_type(DType dtype);
int tensor_map_type_bits(int data_type);

}  // namespace ptxbench::plan
