#include "verify/seed.hpp"

#include <algorithm>

namespace ptxbench {

namespace {

static_assert(static_cast<int>(DType::float32) == judge::kFloat32);
static_assert(static_cast<int>(DType::float4_e2m1) == judge::kFloat4E2m1);
static_assert(static_cast<int>(DType::int64) == judge::kInt64);
static_assert(static_cast<int>(DType::boolean) == judge::kBool);
static_assert(static_cast<int>(DType::float64) == judge::kFloat64);
static_assert(static_cast<int>(DType::uint8) == judge::kUint8);
static_assert(static_cast<int>(DType::tfloat32) == judge::kTfloat32);

std::uint64_t mix(std::uint64_t z) noexcept {
  z += 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

}  // namespace

std::uint64_t derive_seed(std::uint64_t seed, std::initializer_list<std::string_view> words) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  const auto byte = [&](std::uint64_t b) { hash = (hash ^ (b & 0xff)) * 0x100000001b3ull; };
  const auto number = [&](std::uint64_t n) {
    for (int i = 0; i < 8; ++i) byte(n >> (8 * i));
  };
  number(seed);
  for (const std::string_view word : words) {
    number(word.size());
    for (const char c : word) byte(static_cast<unsigned char>(c));
  }
  return mix(hash);
}

std::uint64_t trial_seed(std::uint64_t request_seed, std::string_view workload_uuid,
                         std::int64_t trial) noexcept {
  return mix(derive_seed(request_seed, {workload_uuid}) ^ mix(static_cast<std::uint64_t>(trial)));
}

std::uint64_t tensor_key(std::uint64_t trial_seed, std::string_view tensor) noexcept {
  return derive_seed(trial_seed, {tensor});
}

judge::Distribution distribution_of_trial(int trial) noexcept {
  return static_cast<judge::Distribution>(((trial % 3) + 3) % 3);
}

std::string_view distribution_name(judge::Distribution distribution) noexcept {
  switch (distribution) {
    case judge::kSpiky:
      return "spiky";
    case judge::kIntegers:
      return "integers";
    default:
      return "gaussian";
  }
}

judge::DrawSpec draw_spec(std::uint64_t key, DType dtype, const std::vector<std::int64_t>& shape,
                          judge::Distribution distribution) noexcept {
  judge::DrawSpec spec{};
  spec.key = key;
  spec.elements = 1;
  for (const std::int64_t extent : shape) spec.elements *= static_cast<std::uint64_t>(extent);
  spec.columns = shape.empty() ? 1 : std::max<std::uint64_t>(1, static_cast<std::uint64_t>(shape.back()));
  spec.type = static_cast<judge::u32>(dtype);
  spec.distribution = distribution;
  const auto block = [](std::uint64_t extent) {  // at least four blocks a side where the tensor allows it
    return static_cast<judge::u32>(std::clamp<std::uint64_t>(extent / 4, 1, 64));
  };
  spec.block_rows = block(spec.elements / spec.columns);
  spec.block_columns = block(spec.columns);
  return spec;
}

}  // namespace ptxbench
