#include "emulator/tma.hpp"

#include "emulator/async_copy.hpp"
#include "emulator/run.hpp"

#include <algorithm>
#include <cstring>

namespace ptxbench::emulator {

BoxShape box_shape(const TensorMap& map) {
  BoxShape s;
  const bool interleaved = map.interleave != kInterleaveNone;
  s.element_bytes = interleaved ? 16u * map.interleave : element_bits(map.data_type) / 8;
  s.rows = 1;
  for (unsigned d = 0; d < map.rank; ++d) {
    s.step[d] = d == 0 && !interleaved ? 1 : map.element_strides[d];  // an innermost dimension has none
    s.extent[d] = interleaved && d + 2 == map.rank ? 1 : (map.box[d] + s.step[d] - 1) / s.step[d];
    if (d > 0) s.rows *= s.extent[d];
  }
  s.inner_bytes = s.extent[0] * s.element_bytes;
  s.bytes = s.rows * s.inner_bytes;
  const std::uint32_t span = map.swizzle == kSwizzleNone ? 1 : 16u << map.swizzle;
  s.pitch = interleaved ? s.inner_bytes : std::max(s.inner_bytes, span);
  s.footprint = (s.rows * s.pitch + span - 1) / span * span;
  return s;
}

std::string coordinates_text(const Coordinates& at, unsigned rank) {
  std::string text = "(";
  for (unsigned d = 0; d < rank; ++d) text += (d > 0 ? ", " : "") + std::to_string(at[d]);
  return text + ")";
}

namespace {

// Calls row(index, address of the row's element 0, first, last) for each row of the box in order: elements
// [first, last) of the row lie inside the tensor, each step[0] elements behind the one before; first == last
// where none does. Stops where row returns false.
template <class F>
bool for_rows(const TensorMap& map, const BoxShape& s, const Coordinates& at, F&& row) {
  // Of the innermost dimension: which elements are inside. The same for every row.
  const auto dim0 = static_cast<std::int64_t>(map.dims[0]), c0 = std::int64_t{at[0]},
             step0 = std::int64_t{s.step[0]}, n0 = std::int64_t{s.extent[0]};
  const std::int64_t first = c0 >= 0 ? 0 : std::min(n0, (-c0 + step0 - 1) / step0);
  const std::int64_t last = std::clamp((dim0 - c0 + step0 - 1) / step0, first, n0);
  std::array<std::uint32_t, 5> i{};
  for (std::uint32_t r = 0; r < s.rows; ++r) {
    bool inside = first < last;
    std::uint64_t address =
        map.address + static_cast<std::uint64_t>(c0) * s.element_bytes;  // wraps; only what is inside is used
    for (unsigned d = 1; d < map.rank; ++d) {
      const std::int64_t c = std::int64_t{at[d]} + std::int64_t{i[d]} * s.step[d];
      if (c < 0 || c >= static_cast<std::int64_t>(map.dims[d])) inside = false;
      address += static_cast<std::uint64_t>(c) * map.strides[d - 1];
    }
    if (!row(r, address, static_cast<std::uint32_t>(first),
             inside ? static_cast<std::uint32_t>(last) : static_cast<std::uint32_t>(first)))
      return false;
    for (unsigned d = 1; d < map.rank && ++i[d] == s.extent[d]; ++d) i[d] = 0;
  }
  return true;
}

// Calls run(first element, how many, address) for the runs of elements [first, last) of a row that adjoin in
// global memory. Stops where run returns false.
template <class F>
bool for_runs(const BoxShape& s, std::uint64_t address, std::uint32_t first, std::uint32_t last, F&& run) {
  if (s.step[0] == 1)
    return first == last || run(first, last - first, address + std::uint64_t{first} * s.element_bytes);
  for (std::uint32_t i = first; i < last; ++i)
    if (!run(i, 1u, address + std::uint64_t{i} * s.step[0] * s.element_bytes)) return false;
  return true;
}

// What a load writes for elements outside the tensor.
void fill_outside(const TensorMap& map, std::uint8_t* to, std::uint32_t bytes) {
  if (map.oob_fill == 0 || bytes == 0) {
    std::memset(to, 0, bytes);
    return;
  }
  const unsigned n = element_bits(map.data_type) / 8;
  const std::uint64_t nan = 0x7ff7'7ff7'7ff7'7ff7;
  for (std::uint32_t i = 0; i < bytes; i += n) std::memcpy(to + i, &nan, n);
}

// What a load makes of f32 elements whose type says so: subnormal values become zero, tf32 is rounded to
// nearest even.
void convert(std::uint8_t data_type, std::uint8_t* p, std::uint32_t bytes) {
  if (data_type != kMapTF32 && data_type != kMapTF32Ftz) return;
  for (std::uint32_t i = 0; i < bytes; i += 4) {
    std::uint32_t v;
    std::memcpy(&v, p + i, 4);
    const std::uint32_t exponent = v & 0x7f80'0000;
    if (exponent != 0x7f80'0000) v += 0xfff + (v >> 13 & 1);
    if ((v & 0x7fff'ffff) > 0x7f80'0000 && exponent == 0x7f80'0000) v = 0x7fff'e000;
    v &= ~0x1fffu;
    std::memcpy(p + i, &v, 4);
  }
}

// The place of bytes [address, address + bytes) of the tensor. Rows mostly lie in the same span.
std::uint8_t* place(Agent& agent, Span& span, std::uint64_t address, std::uint64_t bytes, Access access) {
  if (span.holds(address, bytes) && (access == Access::read || span.writable)) {
    if (agent.grid.watches_global()) [[unlikely]]
      agent.grid.memory->watch(agent, address, bytes, access);
    return span.data + (address - span.begin);
  }
  std::uint8_t* p = agent.grid.memory->global(agent, address, bytes, 1, access);
  if (p) span = agent.grid.memory->span(address);
  return p;
}

}  // namespace

bool gather_box(Agent& agent, const TensorMap& map, const BoxShape& s, const Coordinates& at,
                std::vector<std::uint8_t>& out, std::vector<std::uint64_t>& undefined) {
  Memory& memory = *agent.grid.memory;
  const bool track = memory.any_global_undefined();
  out.resize(s.bytes);
  undefined.clear();
  Span span;
  const unsigned n = s.element_bytes;
  return for_rows(
      map, s, at, [&](std::uint32_t r, std::uint64_t address, std::uint32_t first, std::uint32_t last) {
        std::uint8_t* to = out.data() + std::size_t{r} * s.inner_bytes;
        fill_outside(map, to, first * n);
        fill_outside(map, to + last * n, s.inner_bytes - last * n);
        const auto copy = [&](std::uint32_t i, std::uint32_t count, std::uint64_t from) {
          const std::uint8_t* p = place(agent, span, from, std::uint64_t{count} * n, Access::read);
          if (!p) return false;
          std::memcpy(to + i * n, p, std::size_t{count} * n);
          convert(map.data_type, to + i * n, count * n);
          if (!track || !memory.global_undefined(from, std::uint64_t{count} * n)) return true;
          if (undefined.empty()) undefined.resize(s.bytes / 64 + 1);
          for (std::uint32_t b = 0; b < count * n; b += 64) {
            const unsigned k = std::min<unsigned>(64, count * n - b);
            std::uint64_t bits = 0;
            memory.global_undefined(from + b, k, &bits);
            put_undefined_bits(undefined, std::uint64_t{r} * s.inner_bytes + i * n + b, k, bits);
          }
          return true;
        };
        return for_runs(s, address, first, last, copy);
      });
}

void box_to_shared(Cta& cta, std::uint32_t offset, const TensorMap& map, const BoxShape& s,
                   const std::vector<std::uint8_t>& box, const std::vector<std::uint64_t>& undefined) {
  std::uint8_t* window = cta.shared.data();
  const bool track = !cta.shared_undefined.empty();
  if (map.swizzle == kSwizzleNone) {
    std::memcpy(window + offset, box.data(), s.bytes);
    put_undefined(cta, offset, s.bytes, undefined);
    return;
  }
  // Where rows fill the swizzle's span the box covers its footprint.
  const bool whole = s.bytes == s.footprint && undefined.empty();
  if (track && whole) set_undefined(cta.shared_undefined, offset, s.bytes, false);
  const std::uint8_t* from = box.data();
  for (std::uint32_t r = 0, i = 0; r < s.rows; ++r)
    for (std::uint32_t c = 0; c < s.inner_bytes; c += 16, i += 16, from += 16) {
      const std::uint32_t to = swizzled(map.swizzle, offset + r * s.pitch + c);
      std::memcpy(window + to, from, 16);
      if (track && !whole)
        put_undefined_bits(cta.shared_undefined, to, 16,
                           undefined.empty() ? 0 : undefined_bits(undefined, i, 16));
    }
}

void box_from_shared(const Cta& cta, std::uint32_t offset, const TensorMap& map, const BoxShape& s,
                     std::vector<std::uint8_t>& box, std::vector<std::uint64_t>& undefined) {
  const std::uint8_t* window = cta.shared.data();
  box.resize(s.bytes);
  undefined.clear();
  if (map.swizzle == kSwizzleNone) {
    std::memcpy(box.data(), window + offset, s.bytes);
    undefined = shared_undefined_of(cta, offset, s.bytes);
    return;
  }
  const bool track = any_undefined(cta.shared_undefined, offset, s.footprint);
  if (track) undefined.resize(s.bytes / 64 + 1);
  std::uint64_t any = 0;
  std::uint8_t* to = box.data();
  for (std::uint32_t r = 0, i = 0; r < s.rows; ++r)
    for (std::uint32_t c = 0; c < s.inner_bytes; c += 16, i += 16, to += 16) {
      const std::uint32_t from = swizzled(map.swizzle, offset + r * s.pitch + c);
      std::memcpy(to, window + from, 16);
      if (!track) continue;
      const std::uint64_t bits = undefined_bits(cta.shared_undefined, from, 16);
      any |= bits;
      put_undefined_bits(undefined, i, 16, bits);
    }
  if (any == 0) undefined.clear();
}

bool scatter_box(Agent& agent, const TensorMap& map, const BoxShape& s, const Coordinates& at,
                 const std::vector<std::uint8_t>& box, const std::vector<std::uint64_t>& undefined,
                 const Reduction* reduction) {
  Span span;
  const unsigned n = s.element_bytes;
  return for_rows(
      map, s, at, [&](std::uint32_t r, std::uint64_t address, std::uint32_t first, std::uint32_t last) {
        return for_runs(s, address, first, last, [&](std::uint32_t i, std::uint32_t count, std::uint64_t to) {
          const std::uint32_t begin = i * n, bytes = count * n;
          // Stores end where granules of 16 bytes do, behind the last element of the row if need be (seen on
          // an H200).
          const std::uint32_t padding = reduction ? 0 : (16 - (begin + bytes) % 16) % 16;
          std::uint8_t* p =
              place(agent, span, to, bytes + padding, reduction ? Access::atomic : Access::write);
          if (!p) return false;
          const std::size_t from = std::size_t{r} * s.inner_bytes + begin;
          if (reduction) {
            reduce(reduction->op, reduction->type, p, box.data() + from, bytes);
          } else {
            std::memcpy(p, box.data() + from, bytes + padding);
          }
          return store_undefined(agent, to, bytes, undefined, from, reduction != nullptr);
        });
      });
}

}  // namespace ptxbench::emulator
