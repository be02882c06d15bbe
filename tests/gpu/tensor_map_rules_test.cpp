// Our rules of tensor maps against the driver's own answers, on random maps near the edges of the rules.
#include "plan/tensor_map.hpp"
#include "support/gpu.hpp"

#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <random>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

class RandomMaps {
 public:
  // A map that is mostly right, with up to two fields moved to an edge.
  ResolvedTensorMap next() {
    ResolvedTensorMap m;
    m.im2col = pick({0, 0, 0, 1}) == 1;
    const std::size_t rank = m.im2col ? pick({3, 4, 5}) : pick({1, 2, 3, 4, 5});
    m.data_type = static_cast<int>(pick({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11}));
    const auto bits = static_cast<std::uint64_t>(plan::tensor_map_type_bits(m.data_type));
    m.interleave = rank >= 3 ? static_cast<int>(pick({0, 0, 0, 1, 2})) : 0;
    m.swizzle = m.interleave == 2 ? 1 : static_cast<int>(pick({0, 1, 2, 3, 3}));
    m.l2_promotion = static_cast<int>(pick({0, 1, 2, 3}));
    m.oob_fill = static_cast<int>(pick({0, 0, 0, 1}));
    std::uint64_t stride = pick({32, 64, 128, 512, 4096});
    for (std::size_t d = 0; d < rank; ++d) {
      m.dims.push_back(d == 0 ? stride * 8 / bits : pick({1, 2, 7, 64, 1000}));
      if (d + 1 < rank) m.strides.push_back(stride);
      stride *= pick({1, 2, 8});
      m.box.push_back(
          static_cast<std::uint32_t>(d == 0 ? pick({16, 32, 64, 128}) * 8 / bits : pick({1, 2, 64, 256})));
      m.element_strides.push_back(static_cast<std::uint32_t>(pick({1, 1, 1, 2, 8})));
    }
    if (m.im2col) {
      m.channels_per_pixel = m.box[0];
      m.pixels_per_column = static_cast<std::uint32_t>(pick({1, 64, 1024}));
      m.box.clear();
      for (std::size_t d = 0; d + 2 < rank; ++d) {
        m.dims[d + 1] = pick({7, 64});
        m.pixel_box_lower.push_back(static_cast<int>(pick({0, 1, 2})) - 1);
        m.pixel_box_upper.push_back(static_cast<int>(pick({0, 1, 2})) - 1);
      }
    }
    for (std::uint64_t change = pick({0, 1, 2}); change > 0; --change) disturb(m);
    return m;
  }

 private:
  std::uint64_t pick(std::initializer_list<std::uint64_t> list) {
    return *(list.begin() + random_() % list.size());
  }

  void disturb(ResolvedTensorMap& m) {
    const std::size_t rank = m.dims.size(), d = random_() % rank;
    const int sign = random_() % 2 ? 1 : -1;
    switch (random_() % 10) {
      case 0:
        m.dims[d] = pick({0, 1, 3, std::uint64_t{1} << 32, (std::uint64_t{1} << 32) + 1});
        break;
      case 1:
        if (d + 1 < rank)
          m.strides[d] = pick({0, 8, 16, 24, 32, 48, (std::uint64_t{1} << 40) - 32, std::uint64_t{1} << 40});
        break;
      case 2:
        if (m.im2col)
          m.channels_per_pixel = static_cast<std::uint32_t>(pick({0, 1, 8, 255, 256, 257}));
        else
          m.box[d] = static_cast<std::uint32_t>(pick({0, 1, 3, 255, 256, 257}));
        break;
      case 3:
        m.element_strides[d] = static_cast<std::uint32_t>(pick({0, 1, 8, 9}));
        break;
      case 4:
        m.base.byte_offset = pick({4, 8, 16, 32, 48});
        break;
      case 5:
        m.interleave = static_cast<int>(pick({0, 1, 2}));
        break;
      case 6:
        m.swizzle = static_cast<int>(pick({0, 1, 2, 3, 4, 5, 6}));
        break;
      case 7:
        m.data_type = static_cast<int>(pick({0, 1, 4, 7, 9, 11, 13}));
        break;
      case 8:
        if (m.im2col)
          (sign > 0 ? m.pixel_box_lower : m.pixel_box_upper)[d % (rank - 2)] =
              sign * static_cast<int>(pick({0, 15, 16, 17, 100, 127, 128, 129, 32767, 32768, 32769}));
        break;
      default:
        if (m.im2col) m.pixels_per_column = static_cast<std::uint32_t>(pick({0, 1, 1023, 1024, 1025}));
    }
  }

  std::mt19937_64 random_{1};
};

std::string text(const ResolvedTensorMap& m) {
  std::string out = "type " + std::to_string(m.data_type) + " offset " + std::to_string(m.base.byte_offset) +
                    " interleave " + std::to_string(m.interleave) + " swizzle " + std::to_string(m.swizzle) +
                    " fill " + std::to_string(m.oob_fill);
  const auto list = [&](const char* name, const auto& values) {
    out += std::string(" ") + name;
    for (const auto v : values) out += " " + std::to_string(v);
  };
  list("dims", m.dims);
  list("strides", m.strides);
  list("box", m.box);
  list("element strides", m.element_strides);
  list("lower", m.pixel_box_lower);
  list("upper", m.pixel_box_upper);
  return out + " channels " + std::to_string(m.channels_per_pixel) + " pixels " +
         std::to_string(m.pixels_per_column);
}

}  // namespace

TEST_CASE("gpu: a tensor map of rank 1, which has no strides, is encoded") {
  const auto device = gpu_or_skip();
  if (!device) return;
  ResolvedTensorMap map;
  map.data_type = 9;  // BFLOAT16
  map.dims = {4096};
  map.box = {64};
  map.element_strides = {1};
  REQUIRE_FALSE(plan::check_tensor_map(map, device->info().limits.compute_major));
  const DeviceBuffer buffer = device->allocate(8192).value();
  const auto encoded = device->encode(map, buffer.address);
  if (!encoded) FAIL(encoded.error().to_string());
}

TEST_CASE("the driver takes the tensor maps that our rules let through, and no others", "[.driver_rules]") {
  const auto device = gpu_or_skip();
  if (!device) return;
  const DeviceBuffer buffer = device->allocate(1 << 20).value();
  RandomMaps maps;
  // PTXBENCH_RULES_DUMP=FILE: every disagreement, for whoever mends the rules.
  std::optional<std::ofstream> dump;
  if (const char* path = std::getenv("PTXBENCH_RULES_DUMP")) dump.emplace(path);
  std::map<std::string, int> seen;  // kinds of disagreement
  for (int n = 0; n < 200000; ++n) {
    const ResolvedTensorMap m = maps.next();
    const auto broken = plan::check_tensor_map(m, device->info().limits.compute_major);
    const bool taken = device->encode(m, buffer.address + m.base.byte_offset).has_value();
    if (taken != broken.has_value()) continue;
    if (dump) *dump << (m.im2col ? "im2col" : "tiled") << ", rank " << m.dims.size() << ", "
                    << (broken ? std::string(broken->rule) : std::string("driver")) << ": " << text(m) << "\n";
    const std::string kind =
        (m.im2col ? "im2col: " : "tiled: ") +
        (broken ? "we refuse by " + std::string(broken->rule) : std::string("the driver refuses"));
    if (++seen[kind] <= 5) UNSCOPED_INFO(kind << ": " << text(m));
  }
  for (const auto& [kind, count] : seen) UNSCOPED_INFO(kind << ": " << count << " times");
  CHECK(seen.empty());
}
