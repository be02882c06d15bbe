#include "device/cuda_device.hpp"

#include <cstring>

namespace ptxbench {
namespace {

template <class T>
std::string list_of(const std::vector<T>& values) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(values[i]);
  return text + "]";
}

// All that the driver saw: it only ever says "invalid value".
std::string describe_map(const ResolvedTensorMap& map, std::uint64_t address) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string hex;
  for (int shift = 60; shift >= 0; shift -= 4) hex += kHex[address >> shift & 15];
  return "tensor map \"" + map.name + "\" (address 0x" + hex + ", data type " +
         std::to_string(map.data_type) + ", dims " + list_of(map.dims) + ", strides " + list_of(map.strides) +
         ", box " + list_of(map.box) + ", element strides " + list_of(map.element_strides) + ", interleave " +
         std::to_string(map.interleave) + ", swizzle " + std::to_string(map.swizzle) + ")";
}

}  // namespace

Result<std::array<std::uint8_t, 128>> CudaDevice::encode(const ResolvedTensorMap& map,
                                                         std::uint64_t base_address) {
  const std::size_t rank = map.dims.size();
  const auto broken = [&](const std::string& why) {
    return make_error(ErrorCode::invalid_argument, describe_map(map, base_address) + ": " + why, {},
                      "tensor_map");
  };
  // The driver reads as many numbers as the rank says.
  if (rank < 1 || rank > 5) return broken("the rank is 1 to 5");
  if (map.strides.size() + 1 != rank) return broken("strides are one fewer than dims");
  if (map.element_strides.size() != rank) return broken("element strides are as many as dims");
  if (!map.im2col && map.box.size() != rank) return broken("box has as many numbers as dims");
  if (map.im2col &&
      (rank < 3 || map.pixel_box_lower.size() + 2 != rank || map.pixel_box_upper.size() + 2 != rank))
    return broken("im2col needs rank 3 to 5 and pixel boxes of rank - 2 numbers");

  CUtensorMap encoded;
  void* address = reinterpret_cast<void*>(base_address);
  const auto type = static_cast<CUtensorMapDataType>(map.data_type);
  const auto interleave = static_cast<CUtensorMapInterleave>(map.interleave);
  const auto swizzle = static_cast<CUtensorMapSwizzle>(map.swizzle);
  const auto l2 = static_cast<CUtensorMapL2promotion>(map.l2_promotion);
  const auto oob = static_cast<CUtensorMapFloatOOBfill>(map.oob_fill);
  static_assert(sizeof(cuuint64_t) == sizeof(std::uint64_t) && sizeof(int) == sizeof(std::int32_t));
  const auto* dims = reinterpret_cast<const cuuint64_t*>(map.dims.data());
  // A map of rank 1 has no strides, but the driver refuses a null pointer all the same.
  static constexpr cuuint64_t kNoStride = 0;
  const auto* strides = map.strides.empty() ? &kNoStride : reinterpret_cast<const cuuint64_t*>(map.strides.data());
  Current current(*this);
  const CUresult result =
      map.im2col ? driver_->cuTensorMapEncodeIm2col(
                       &encoded, type, static_cast<cuuint32_t>(rank), address, dims, strides,
                       map.pixel_box_lower.data(), map.pixel_box_upper.data(), map.channels_per_pixel,
                       map.pixels_per_column, map.element_strides.data(), interleave, swizzle, l2, oob)
                 : driver_->cuTensorMapEncodeTiled(&encoded, type, static_cast<cuuint32_t>(rank), address,
                                                   dims, strides, map.box.data(), map.element_strides.data(),
                                                   interleave, swizzle, l2, oob);
  if (result != CUDA_SUCCESS) return broken("the driver refuses it: " + driver_->error_text(result));
  static_assert(sizeof(CUtensorMap) == 128);
  std::array<std::uint8_t, 128> bytes;
  std::memcpy(bytes.data(), &encoded, 128);
  return bytes;
}

}  // namespace ptxbench
