#include "emulator/tensor_map.hpp"

#include <cstring>

namespace ptxbench::emulator {
namespace {

constexpr std::uint64_t kMagic = 0x7074'7862'2d6d'6170;  // "ptxb-map"

// The 128 bytes. Dimensions are kept as size - 1, so that 2^32 fits.
struct Image {
  std::uint64_t magic;
  std::uint64_t address;
  std::uint8_t rank, data_type, interleave, swizzle, oob_fill, l2_promotion, im2col, padding;
  std::uint32_t dims[5];
  std::uint32_t box[5];
  std::uint64_t strides[4];
  std::uint8_t element_strides[5];
  std::uint8_t rest[11];
};
constexpr std::size_t kSumAt = 120;  // the last eight bytes
static_assert(sizeof(Image) == 112);

std::uint64_t sum_of(const std::uint8_t* bytes, std::size_t n) {
  std::uint64_t h = 0x9e37'79b9'7f4a'7c15;
  for (std::size_t i = 0; i < n; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes + i, 8);
    h = (h ^ word) * 0xff51'afd7'ed55'8ccd;
    h ^= h >> 32;
  }
  return h;
}

std::string item(const char* field, unsigned d, std::uint64_t v) {
  return std::string(field) + "[" + std::to_string(d) + "] = " + std::to_string(v);
}

}  // namespace

TensorMap tensor_map_of(const ResolvedTensorMap& map, std::uint64_t address) {
  TensorMap out;
  out.address = address;
  out.rank = static_cast<std::uint8_t>(map.dims.size());
  out.data_type = static_cast<std::uint8_t>(map.data_type);
  out.interleave = static_cast<std::uint8_t>(map.interleave);
  out.swizzle = static_cast<std::uint8_t>(map.swizzle);
  out.oob_fill = static_cast<std::uint8_t>(map.oob_fill);
  out.l2_promotion = static_cast<std::uint8_t>(map.l2_promotion);
  out.im2col = map.im2col;
  for (unsigned d = 0; d < 5; ++d) {
    out.dims[d] = d < map.dims.size() ? map.dims[d] : 1;
    out.box[d] = d < map.box.size() ? map.box[d] : 1;
    out.element_strides[d] = d < map.element_strides.size() ? map.element_strides[d] : 1;
  }
  for (unsigned d = 0; d < 4 && d < map.strides.size(); ++d) out.strides[d] = map.strides[d];
  return out;
}

std::array<std::uint8_t, 128> encode(const TensorMap& map) {
  Image image{};
  image.magic = kMagic;
  image.address = map.address;
  image.rank = map.rank;
  image.data_type = map.data_type;
  image.interleave = map.interleave;
  image.swizzle = map.swizzle;
  image.oob_fill = map.oob_fill;
  image.l2_promotion = map.l2_promotion;
  image.im2col = map.im2col;
  for (unsigned d = 0; d < 5; ++d) {
    image.dims[d] = static_cast<std::uint32_t>(map.dims[d] - 1);
    image.box[d] = map.box[d];
    image.element_strides[d] = static_cast<std::uint8_t>(map.element_strides[d]);
  }
  for (unsigned d = 0; d < 4; ++d) image.strides[d] = map.strides[d];
  std::array<std::uint8_t, 128> bytes{};
  std::memcpy(bytes.data(), &image, sizeof image);
  const std::uint64_t sum = sum_of(bytes.data(), kSumAt);
  std::memcpy(bytes.data() + kSumAt, &sum, sizeof sum);
  return bytes;
}

std::optional<TensorMap> decode_tensor_map(const std::uint8_t* bytes) {
  Image image;
  std::memcpy(&image, bytes, sizeof image);
  std::uint64_t sum;
  std::memcpy(&sum, bytes + kSumAt, sizeof sum);
  if (image.magic != kMagic || sum != sum_of(bytes, kSumAt)) return {};
  TensorMap map;
  map.address = image.address;
  map.rank = image.rank;
  map.data_type = image.data_type;
  map.interleave = image.interleave;
  map.swizzle = image.swizzle;
  map.oob_fill = image.oob_fill;
  map.l2_promotion = image.l2_promotion;
  map.im2col = image.im2col != 0;
  for (unsigned d = 0; d < 5; ++d) {
    map.dims[d] = std::uint64_t{image.dims[d]} + 1;
    map.box[d] = image.box[d];
    map.element_strides[d] = image.element_strides[d];
  }
  for (unsigned d = 0; d < 4; ++d) map.strides[d] = image.strides[d];
  return map;
}

unsigned element_bits(std::uint8_t data_type) {
  constexpr std::uint8_t kBits[] = {8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6};
  return data_type < sizeof kBits ? kBits[data_type] : 0;
}

std::string_view element_name(std::uint8_t data_type) {
  constexpr std::string_view kNames[] = {"u8",       "u16",   "u32",       "s32",      "u64",     "s64",
                                         "f16",      "f32",   "f64",       "bf16",     "f32.ftz", "tf32",
                                         "tf32.ftz", "b4x16", "b4x16_p64", "b6x16_p32"};
  return data_type < std::size(kNames) ? kNames[data_type] : "?";
}

std::string tensor_map_problem(const TensorMap& map) {
  if (map.rank < 1 || map.rank > 5) return "a rank of " + std::to_string(map.rank) + "; it must be 1 to 5";
  if (map.interleave > kInterleave32B) return "an interleave of " + std::to_string(map.interleave);
  if (map.interleave != kInterleaveNone && map.rank < 3)
    return "a rank of " + std::to_string(map.rank) + " with an interleaved layout; it must be 3 to 5";
  const unsigned align = map.interleave == kInterleave32B ? 32 : 16;
  if (map.address % align != 0)
    return "an address that is not aligned to " + std::to_string(align) + " bytes";
  if (map.data_type > kMapTF32Ftz)
    return "elements of type " + std::string(element_name(map.data_type)) +
           ", which need compute capability 10.0";
  if (map.swizzle > kSwizzle128B)
    return "a swizzle of mode " + std::to_string(map.swizzle) + ", which needs compute capability 10.0";
  for (unsigned d = 0; d < map.rank; ++d) {
    if (map.box[d] < 1 || map.box[d] > 256) return item("box", d, map.box[d]) + "; it must be 1 to 256";
    if (map.element_strides[d] < 1 || map.element_strides[d] > 8)
      return item("element_strides", d, map.element_strides[d]) + "; it must be 1 to 8";
  }
  for (unsigned d = 0; d + 1 < map.rank; ++d) {
    if (map.strides[d] % align != 0)
      return item("strides", d, map.strides[d]) + " bytes; it must be a multiple of " + std::to_string(align);
    if (map.strides[d] >> 40 != 0)
      return item("strides", d, map.strides[d]) + " bytes; it must be below 2^40";
  }
  const unsigned inner = map.box[0] * element_bits(map.data_type) / 8;
  if (inner % 16 != 0)
    return "a box whose inner dimension has " + std::to_string(inner) + " bytes; it must be a multiple of 16";
  const unsigned span = 16u << map.swizzle;
  if (map.interleave == kInterleaveNone && map.swizzle != kSwizzleNone && inner > span)
    return "a box whose inner dimension has " + std::to_string(inner) + " bytes, more than the swizzle's " +
           std::to_string(span);
  if (map.interleave == kInterleave32B && map.swizzle != kSwizzle32B)
    return "an interleave of 32B without a swizzle of 32B";
  return {};
}

}  // namespace ptxbench::emulator
