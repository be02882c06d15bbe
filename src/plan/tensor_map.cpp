// The rules are those of the comments of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col in CUDA 13.0's
// cuda.h (CUDA Driver API, "Tensor Map Object Management").
#include "plan/tensor_map.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace ptxbench::plan {
namespace {

// CUtensorMapDataType
constexpr int kFloat16 = 6, kFloat32 = 7, kFloat64 = 8, kBfloat16 = 9, kTfloat32 = 11, k16U4Align8B = 13;
// CUtensorMapInterleave, CUtensorMapSwizzle
constexpr int kInterleaveNone = 0, kInterleave32B = 2;
constexpr int kSwizzleNone = 0, kSwizzle32B = 1, kSwizzle64B = 2, kSwizzle128B = 3;

bool is_float_type(int data_type) {
  return data_type == kFloat16 || data_type == kFloat32 || data_type == kFloat64 || data_type == kBfloat16 ||
         data_type == kTfloat32;
}

std::string number(std::uint64_t v) { return std::to_string(v); }
std::string item(std::string_view field, std::size_t d) {
  return std::string(field) + "[" + std::to_string(d) + "]";
}

using Violation = std::optional<TensorMapViolation>;

Violation check_rank(const ResolvedTensorMap& map) {
  const std::size_t rank = map.dims.size();
  const std::size_t least = map.im2col || map.interleave != kInterleaveNone ? 3 : 1;
  if (rank < least || rank > 5)
    return TensorMapViolation{"rank", "dims",
                              "a rank of " + number(rank) + "; it must be " + number(least) + " to 5" +
                                  (map.im2col   ? " in im2col mode"
                                   : least == 3 ? " with an interleaved layout"
                                                : "")};
  if (map.strides.size() + 1 != rank)
    return TensorMapViolation{"strides_count", "strides",
                              number(map.strides.size()) + " strides for a rank of " + number(rank) +
                                  "; there must be rank - 1, from dimension 1 outwards, in bytes"};
  if (map.element_strides.size() != rank)
    return TensorMapViolation{
        "element_strides_count", "element_strides",
        number(map.element_strides.size()) + " element strides for a rank of " + number(rank)};
  if (!map.im2col && map.box.size() != rank)
    return TensorMapViolation{
        "box_count", "box",
        "a box of " + number(map.box.size()) + " dimensions for a tensor of " + number(rank)};
  return {};
}

Violation check_memory(const ResolvedTensorMap& map) {
  const std::uint64_t alignment = map.interleave == kInterleave32B ? 32 : 16;
  if (map.base.byte_offset % alignment != 0)
    return TensorMapViolation{"address_alignment", "offset",
                              "the address is " + number(map.base.byte_offset) +
                                  " bytes into the buffer; it must be aligned to " + number(alignment) +
                                  " bytes"};
  for (std::size_t d = 0; d < map.dims.size(); ++d)
    if (map.dims[d] == 0 || map.dims[d] > std::uint64_t{1} << 32)
      return TensorMapViolation{"dims_range", "dims",
                                item("dims", d) + " = " + number(map.dims[d]) + "; it must be 1 to 2^32"};
  if (map.data_type == k16U4Align8B && map.dims[0] % 2 != 0)
    return TensorMapViolation{"dims_even", "dims",
                              "dims[0] = " + number(map.dims[0]) + "; elements of 4 bits come in twos"};
  for (std::size_t d = 0; d < map.strides.size(); ++d) {
    if (map.strides[d] % alignment != 0)
      return TensorMapViolation{"strides_multiple", "strides",
                                item("strides", d) + " = " + number(map.strides[d]) +
                                    " bytes; it must be a multiple of " + number(alignment)};
    if (map.strides[d] >= std::uint64_t{1} << 40)
      return TensorMapViolation{
          "strides_range", "strides",
          item("strides", d) + " = " + number(map.strides[d]) + " bytes; it must be less than 2^40"};
  }
  return {};
}

Violation check_traversal(const ResolvedTensorMap& map) {
  for (std::size_t d = 0; d < map.box.size(); ++d)
    if (map.box[d] == 0 || map.box[d] > 256)
      return TensorMapViolation{"box_range", "box",
                                item("box", d) + " = " + number(map.box[d]) + "; it must be 1 to 256"};
  for (std::size_t d = 0; d < map.element_strides.size(); ++d)
    if (map.element_strides[d] == 0 || map.element_strides[d] > 8)
      return TensorMapViolation{
          "element_strides_range", "element_strides",
          item("element_strides", d) + " = " + number(map.element_strides[d]) + "; it must be 1 to 8"};
  return {};
}

Violation check_im2col(const ResolvedTensorMap& map) {
  const std::size_t spatial = map.dims.size() - 2;
  const std::int64_t least = spatial == 1 ? -32768 : spatial == 2 ? -128 : -16;
  for (const auto& [corner, field] : {std::pair{&map.pixel_box_lower, "pixel_box_lower_corner"},
                                      std::pair{&map.pixel_box_upper, "pixel_box_upper_corner"}}) {
    if (corner->size() != spatial)
      return TensorMapViolation{"pixel_box_count", field,
                                number(corner->size()) + " offsets; a rank of " + number(map.dims.size()) +
                                    " takes " + number(spatial)};
    for (std::size_t d = 0; d < spatial; ++d)
      if ((*corner)[d] < least || (*corner)[d] > -least - 1)
        return TensorMapViolation{"pixel_box_range", field,
                                  item(field, d) + " = " + std::to_string((*corner)[d]) + "; with " +
                                      number(spatial) + " offsets it must be " + std::to_string(least) +
                                      " to " + std::to_string(-least - 1)};
  }
  for (std::size_t d = 0; d < spatial; ++d) {
    const auto extent =
        static_cast<std::int64_t>(map.dims[d + 1]) + map.pixel_box_upper[d] - map.pixel_box_lower[d];
    if (extent <= 0)
      return TensorMapViolation{"pixel_box_empty", "pixel_box_upper_corner",
                                "the bounding box has no area: dimension " + number(d + 1) + " of " +
                                    number(map.dims[d + 1]) + " pixels goes from " +
                                    std::to_string(map.pixel_box_lower[d]) + " to its end " +
                                    std::to_string(map.pixel_box_upper[d])};
  }
  if (map.channels_per_pixel == 0 || map.channels_per_pixel > 256)
    return TensorMapViolation{
        "channels_range", "channels_per_pixel",
        "channels_per_pixel = " + number(map.channels_per_pixel) + "; it must be 1 to 256"};
  if (map.pixels_per_column == 0 || map.pixels_per_column > 1024)
    return TensorMapViolation{
        "pixels_range", "pixels_per_column",
        "pixels_per_column = " + number(map.pixels_per_column) + "; it must be 1 to 1024"};
  return {};
}

// Shared memory of a CTA of compute capability 9.0 and 10.0, opted in. An H200's driver refuses larger boxes too.
constexpr std::uint64_t kMostBoxBytes = 232448;

Violation check_layout(const ResolvedTensorMap& map, int compute_major) {
  const std::uint64_t inner_elements = map.im2col ? map.channels_per_pixel : map.box[0];
  const std::string_view field = map.im2col ? "channels_per_pixel" : "box";
  const std::uint64_t inner_bits =
      inner_elements * static_cast<std::uint64_t>(tensor_map_type_bits(map.data_type));
  const std::string inner =
      number(inner_elements) + " elements of " + number(inner_bits / inner_elements) + " bits";
  // The driver's documentation asks for this where there is no interleave; the driver itself always does.
  if (inner_bits % 128 != 0 && (map.interleave == kInterleaveNone || !map.im2col))
    return TensorMapViolation{
        "box_inner_multiple_of_16_bytes", field,
        "the box's inner dimension has " + inner + "; it must be a multiple of 16 bytes"};
  if (!map.im2col) {
    std::uint64_t bits = static_cast<std::uint64_t>(tensor_map_type_bits(map.data_type));
    for (std::size_t d = 0; d < map.box.size(); ++d)  // at most 256^5 elements of 64 bits
      bits *= (map.box[d] + map.element_strides[d] - 1) / map.element_strides[d];
    if (bits / 8 > kMostBoxBytes)
      return TensorMapViolation{"box_shared_memory", "box",
                                "a box takes " + number(bits / 8) + " bytes of shared memory; a CTA has at most " +
                                    number(kMostBoxBytes)};
  }
  if (map.interleave == kInterleaveNone) {
    const std::uint64_t span = map.swizzle == kSwizzleNone  ? std::numeric_limits<std::uint64_t>::max()
                               : map.swizzle == kSwizzle32B ? 32
                               : map.swizzle == kSwizzle64B ? 64
                                                            : 128;
    if (inner_bits / 8 > span)
      return TensorMapViolation{"box_inner_within_swizzle", field,
                                "the box's inner dimension has " + number(inner_bits / 8) +
                                    " bytes; with this swizzle at most " + number(span) + " are allowed"};
  }
  if (map.interleave == kInterleave32B && map.swizzle != kSwizzle32B)
    return TensorMapViolation{"interleave_swizzle", "swizzle", "an interleave of 32B needs a swizzle of 32B"};
  if (map.swizzle > kSwizzle128B && compute_major < 10)
    return TensorMapViolation{"swizzle_atom_needs_sm_100", "swizzle",
                              "swizzles with an atom need compute capability 10.0"};
  if (map.data_type == k16U4Align8B && compute_major < 10)
    return TensorMapViolation{"type_needs_sm_100", "dtype",
                              "elements of 4 bits need compute capability 10.0"};
  if (map.oob_fill != 0 && !is_float_type(map.data_type))
    return TensorMapViolation{"oob_fill_nan_needs_float", "oob_fill",
                              "filling with NaN needs a floating-point type of at least 16 bits"};
  return {};
}

}  // namespace

int tensor_map_type(DType dtype) {
  switch (dtype) {
    case DType::uint8:
    case DType::int8:
    case DType::boolean:
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
      return 0;  // UINT8: eight bits are eight bits
    case DType::uint16:
    case DType::int16:
      return 1;
    case DType::uint32:
      return 2;
    case DType::int32:
      return 3;
    case DType::uint64:
      return 4;
    case DType::int64:
      return 5;
    case DType::float16:
      return kFloat16;
    case DType::float32:
      return kFloat32;
    case DType::float64:
      return kFloat64;
    case DType::bfloat16:
      return kBfloat16;
    case DType::tfloat32:
      return kTfloat32;
    case DType::float4_e2m1:
      return k16U4Align8B;
  }
  return 0;
}

int tensor_map_type_bits(int data_type) {
  constexpr std::array<int, 16> kBits{8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6};
  return data_type >= 0 && data_type < 16 ? kBits[static_cast<std::size_t>(data_type)] : 8;
}

std::optional<TensorMapViolation> check_tensor_map(const ResolvedTensorMap& map, int compute_major) {
  if (compute_major < 9)
    return TensorMapViolation{"compute_capability", "name", "tensor maps need compute capability 9.0"};
  if (auto broken = check_rank(map)) return broken;
  if (auto broken = check_memory(map)) return broken;
  if (auto broken = check_traversal(map)) return broken;
  if (map.im2col)
    if (auto broken = check_im2col(map)) return broken;
  return check_layout(map, compute_major);
}

std::optional<TensorMapViolation> check_tensor_map_inside(const ResolvedTensorMap& map, std::uint64_t bytes) {
  // Strides are below 2^40 and dims at most 2^32: a sum of five products fits 128 bits.
  unsigned __int128 end = map.base.byte_offset;
  end += (static_cast<unsigned __int128>(map.dims[0]) *
              static_cast<unsigned>(tensor_map_type_bits(map.data_type)) +
          7) /
         8;
  for (std::size_t d = 1; d < map.dims.size(); ++d)
    end += static_cast<unsigned __int128>(map.dims[d] - 1) * map.strides[d - 1];
  if (end <= bytes) return {};
  const bool huge = end > std::numeric_limits<std::uint64_t>::max();
  return TensorMapViolation{"inside_buffer", "dims",
                            "the tensor that the map describes ends " +
                                (huge ? "far" : number(static_cast<std::uint64_t>(end) - bytes) + " bytes") +
                                " behind the end of the buffer, which has " + number(bytes) + " bytes"};
}

Result<ResolvedTensorMap> resolve_tensor_map(const LaunchPlan::Impl& plan, const TensorMap& map,
                                             const Buffer& buffer, const expr::Environment& environment,
                                             const DeviceLimits& limits) {
  const auto refuse = [&](const TensorMapViolation& broken) {
    return plan.error(
        map.pointer + "/" + std::string(broken.field),
        "tensor map `" + map.name + "`: rule " + std::string(broken.rule) + ": " + broken.message,
        kTensorMapRule);
  };
  // Each list of numbers: evaluated, then kept to what the driver's type can hold.
  const auto evaluate = [&](const std::vector<Expression>& list, std::string_view field, std::int64_t least,
                            std::int64_t most, auto& out) -> Result<void> {
    for (std::size_t d = 0; d < list.size(); ++d) {
      PTXBENCH_TRY_ASSIGN(const std::int64_t v, list[d].evaluate_int(environment));
      if (v < least || v > most)
        return refuse({std::string_view(field == "pixel_box_lower_corner" || field == "pixel_box_upper_corner"
                                            ? "pixel_box_range"
                                        : field == "dims"            ? "dims_range"
                                        : field == "strides"         ? "strides_range"
                                        : field == "box"             ? "box_range"
                                        : field == "element_strides" ? "element_strides_range"
                                                                     : "range"),
                       field, item(field, d) + " = " + std::to_string(v) + " is out of range"});
      out.push_back(static_cast<typename std::decay_t<decltype(out)>::value_type>(v));
    }
    return {};
  };
  constexpr std::int64_t kMost32 = std::numeric_limits<std::uint32_t>::max();
  constexpr std::int64_t kMost64 = std::numeric_limits<std::int64_t>::max();

  ResolvedTensorMap out;
  out.name = map.name;
  out.im2col = map.im2col;
  const DType dtype = map.dtype.value_or(buffer.dtype);
  out.data_type = tensor_map_type(dtype);
  out.interleave = map.interleave;
  out.swizzle = map.swizzle;
  out.l2_promotion = map.l2_promotion;
  out.oob_fill = map.oob_fill;
  out.base = {buffer.kind, buffer.index, 0};
  const auto bits = static_cast<std::uint64_t>(dtype_bits(dtype));
  if (map.offset) {
    PTXBENCH_TRY_ASSIGN(const std::int64_t offset, map.offset->evaluate_int(environment));
    const auto position = static_cast<unsigned __int128>(static_cast<std::uint64_t>(offset)) * bits;
    if (offset < 0 || position / 8 >= buffer.bytes)
      return plan.error(map.pointer + "/offset",
                        "tensor map `" + map.name + "`: offset " + std::to_string(offset) +
                            " is not inside `" + buffer.name + "`, which has " +
                            number(buffer.bytes * 8 / bits) + " elements of " +
                            std::string(dtype_name(dtype)),
                        kTensorMapRule);
    if (position % 8 != 0)
      return plan.error(map.pointer + "/offset",
                        "tensor map `" + map.name + "`: an odd offset of 4-bit elements has no address",
                        kTensorMapRule);
    out.base.byte_offset = static_cast<std::uint64_t>(position / 8);
  }
  if (map.dims) {
    PTXBENCH_TRY(evaluate(*map.dims, "dims", 0, kMost64, out.dims));
  } else {
    for (auto dim = buffer.shape.rbegin(); dim != buffer.shape.rend(); ++dim)
      out.dims.push_back(static_cast<std::uint64_t>(*dim));
    if (out.dims.empty()) out.dims.push_back(1);
    const auto own = static_cast<std::uint64_t>(dtype_bits(buffer.dtype));
    if (out.dims[0] * own % bits != 0)
      return plan.error(map.pointer + "/dtype",
                        "tensor map `" + map.name + "`: the innermost dimension of `" + buffer.name +
                            "` has " + number(out.dims[0]) + " elements of " +
                            std::string(dtype_name(buffer.dtype)) + ", which are no whole number of " +
                            std::string(dtype_name(dtype)),
                        kTensorMapRule);
    out.dims[0] = out.dims[0] * own / bits;
  }
  if (map.strides) {
    PTXBENCH_TRY(evaluate(*map.strides, "strides", 0, kMost64, out.strides));
  } else {
    unsigned __int128 stride = 1;
    for (std::size_t d = 0; d + 1 < out.dims.size(); ++d) {
      stride *= out.dims[d];
      if (d == 0) {
        if (stride * bits % 8 != 0)
          return refuse({"strides_multiple", "dims",
                         "a row of " + number(out.dims[0]) + " elements has no whole bytes"});
        stride = stride * bits / 8;
      }
      if (stride >= static_cast<unsigned __int128>(1) << 40)
        return refuse(
            {"strides_range", "dims",
             "dimension " + number(d + 1) + " has a stride of 2^40 bytes or more; it must be less"});
      out.strides.push_back(static_cast<std::uint64_t>(stride));
    }
  }
  PTXBENCH_TRY(evaluate(map.box, "box", 0, kMost32, out.box));
  if (map.element_strides) {
    PTXBENCH_TRY(evaluate(*map.element_strides, "element_strides", 0, kMost32, out.element_strides));
  } else {
    out.element_strides.assign(out.dims.size(), 1);
  }
  if (map.im2col) {
    constexpr std::int64_t kInt32 = std::numeric_limits<std::int32_t>::max();
    PTXBENCH_TRY(
        evaluate(map.pixel_box_lower, "pixel_box_lower_corner", -kInt32, kInt32, out.pixel_box_lower));
    PTXBENCH_TRY(
        evaluate(map.pixel_box_upper, "pixel_box_upper_corner", -kInt32, kInt32, out.pixel_box_upper));
    std::vector<std::uint32_t> counts;
    PTXBENCH_TRY(evaluate({*map.channels_per_pixel}, "channels_per_pixel", 0, kMost32, counts));
    PTXBENCH_TRY(evaluate({*map.pixels_per_column}, "pixels_per_column", 0, kMost32, counts));
    out.channels_per_pixel = counts[0];
    out.pixels_per_column = counts[1];
  }
  if (const auto broken = check_tensor_map(out, limits.compute_major)) return refuse(*broken);
  if (const auto broken = check_tensor_map_inside(out, buffer.bytes)) return refuse(*broken);
  return out;
}

}  // namespace ptxbench::plan
