// The way to shared memory of a whole warp: one look at the addresses of all lanes, one entry in what is
// remembered of the memory.
#include "emulator/access.hpp"
#include "emulator/lane_loop.hpp"

#include <algorithm>

namespace ptxbench::emulator {
namespace {

// Of the lanes that execute: the OR of (high half of the address) ^ (that of the window), the smallest and
// the largest low half, the OR of the low halves, and what tells them from lanes that lie one behind the
// other.
struct Bounds {
  std::uint32_t other = 0, low = UINT32_MAX, high = 0, bits = 0, differs = 0;
};

PTXBENCH_CLONES void bounds_of(const std::uint32_t* address, std::uint32_t stride, Bounds& b) {
  std::uint32_t low = UINT32_MAX, high = 0, bits = 0, differs = 0;
  const std::uint32_t first = address[0];
  for (std::uint32_t i = 0; i < kLanes; ++i) {
    const std::uint32_t v = address[i];
    low = v < low ? v : low;
    high = v > high ? v : high;
    bits |= v;
    differs |= (v - first) ^ (i * stride);
  }
  b.low = low;
  b.high = high;
  b.bits = bits;
  b.differs = differs;
}

// Low halves of base[i] + add; those of lanes that do not execute are @p fill.
PTXBENCH_CLONES void narrow_addresses(const std::uint32_t* base, std::uint32_t add, Mask mask,
                                      std::uint32_t fill, std::uint32_t* out) {
  for (std::uint32_t i = 0; i < kLanes; ++i) out[i] = select((mask >> i & 1) != 0, base[i] + add, fill);
}

// The same of 64-bit addresses, and how their high halves differ from @p window.
PTXBENCH_CLONES void wide_addresses(const std::uint64_t* base, std::uint64_t add, Mask mask,
                                    std::uint32_t fill, std::uint32_t window, std::uint32_t* out,
                                    std::uint32_t* other) {
  std::uint32_t differs = 0;
  for (std::uint32_t i = 0; i < kLanes; ++i) {
    const std::uint64_t v = base[i] + add;
    const bool on = (mask >> i & 1) != 0;
    out[i] = select(on, static_cast<std::uint32_t>(v), fill);
    differs |= select(on, static_cast<std::uint32_t>(v >> 32) ^ window, 0u);
  }
  *other = differs;
}

// Whoever wants to know of accesses of the generic proxy to shared memory by a whole warp hears of each here,
// once. (Lanes that shared_lanes has nothing to say of go through Memory::shared one by one.)
void note_shared_access(const Exec& x, const SharedLanes& lanes, unsigned bytes, Access access) {
  x.run.shared_high_water = std::max(x.run.shared_high_water, lanes.high + bytes);
  if (access == Access::read || !x.kernel.any_async) return;
  Agent agent = agent_of(x, -1);
  if (lanes.contiguous) {
    note_generic_write(agent, x.cta, lanes.low, lanes.span(bytes));
  } else {
    note_generic_writes(agent, x.cta, lanes.offset, x.mask, bytes);
  }
}

// `lanes.offset`: the low halves of the addresses.
bool check(const Exec& x, bool own, unsigned bytes, unsigned align, Access access, SharedLanes& lanes) {
  Bounds b;
  bounds_of(lanes.offset, bytes, b);
  const std::uint32_t rank = b.low >> 24;
  if (b.high >> 24 != rank || (rank != x.cta.rank && !(own && rank == 0)) || (b.bits & (align - 1)) != 0)
    return false;
  lanes.low = b.low & 0xffffff;
  lanes.high = b.high & 0xffffff;
  lanes.contiguous = b.differs == 0 && x.mask == ~Mask{0};
  if (rank != 0)
    for (std::uint32_t& offset : lanes.offset) offset &= 0xffffff;
  if (lanes.low < kSystemShared || std::uint64_t{lanes.high} + bytes > x.cta.shared.size()) return false;
  if (access != Access::read && live_barrier_in(x.cta, lanes.low, lanes.span(bytes)) >= 0) return false;
  note_shared_access(x, lanes, bytes, access);
  return true;
}

constexpr std::uint32_t kWindowHigh = kSharedWindow >> 32;
// A span of up to so many bytes is looked at whole before its lanes are.
constexpr std::uint32_t kShortSpan = 512;

}  // namespace

bool shared_lanes(const Exec& x, Where where, Operand base, bool wide, unsigned bytes, Access access,
                  SharedLanes& out) {
  const std::uint32_t* lanes = x.lanes(base);
  const int first = __builtin_ctz(x.mask);
  if (wide) {
    const auto* a = reinterpret_cast<const std::uint64_t*>(lanes);
    const auto add = static_cast<std::uint64_t>(x.op.imm);
    const std::uint64_t one = a[first] + add;
    const std::uint32_t window = where == Where::generic ? kWindowHigh : 0;
    if (one >> 32 != window) return false;
    std::uint32_t other = 0;
    wide_addresses(a, add, x.mask, static_cast<std::uint32_t>(one), window, out.offset, &other);
    if (other != 0) return false;
  } else {
    if (where == Where::generic) return false;
    const auto add = static_cast<std::uint32_t>(x.op.imm);
    narrow_addresses(lanes, add, x.mask, lanes[first] + add, out.offset);
  }
  return check(x, where == Where::shared_cta, bytes, bytes, access, out);
}

bool shared_lanes(const Exec& x, bool own, const std::uint64_t address[kLanes], unsigned bytes,
                  unsigned align, Access access, SharedLanes& out) {
  std::uint32_t other = 0;
  const std::uint64_t one = address[__builtin_ctz(x.mask)];
  wide_addresses(address, 0, x.mask, static_cast<std::uint32_t>(one), 0, out.offset, &other);
  return other == 0 && check(x, own, bytes, align, access, out);
}

bool any_undefined(const Cta& cta, const SharedLanes& lanes, unsigned bytes) {
  const std::uint32_t span = lanes.span(bytes);
  if (lanes.contiguous || span <= kShortSpan) {
    const bool any = any_undefined(cta.shared_undefined, lanes.low, span);
    if (!any || lanes.contiguous) return any;
  }
  // An element is as long as it is aligned: its bits lie in one word.
  const std::uint64_t* words = cta.shared_undefined.data();
  const std::uint64_t element = (std::uint64_t{1} << bytes) - 1;
  std::uint64_t any = 0;
  for (const std::uint32_t offset : lanes.offset) any |= words[offset / 64] >> (offset % 64) & element;
  return any != 0;
}

void define(Cta& cta, const SharedLanes& lanes, Mask mask, unsigned bytes) {
  if (lanes.contiguous) {
    set_undefined(cta.shared_undefined, lanes.low, lanes.span(bytes), false);
  } else if (any_undefined(cta, lanes, bytes)) {
    for_lanes(mask, [&](int i) { put_undefined_bits(cta.shared_undefined, lanes.offset[i], bytes, 0); });
  }
}

}  // namespace ptxbench::emulator
