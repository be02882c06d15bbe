#include "emulator/access.hpp"
#include "emulator/mbarrier.hpp"
#include "emulator/text.hpp"

#include <algorithm>

namespace ptxbench::emulator {

namespace {

bool resolve_shared(const Exec& x, std::uint32_t address, bool own, int lane, unsigned bytes, unsigned align,
                    Access access, Place& out) {
  Agent agent = agent_of(x, lane);
  Cta* where = nullptr;
  std::uint32_t offset = 0;
  out.data = x.grid.memory->shared(agent, address, bytes, align, access, Proxy::generic, own, where, offset);
  if (out.data == nullptr) return false;
  out.kind = Place::Kind::shared;
  out.at = offset;
  out.cta = where;
  if (access != Access::read && where->barriers != nullptr) [[unlikely]] {
    if (const std::int64_t barrier = live_barrier_in(*where, offset, bytes); barrier >= 0) {
      x.fault(FaultKind::barrier_misuse, lane,
              "stores " + std::to_string(bytes) + " bytes at shared address " + hex(address) +
                  ", over the live " + mbarrier_name(*where, static_cast<std::uint32_t>(barrier)) +
                  ": its storage may be used again only after mbarrier.inval");
      return false;
    }
  }
  return true;
}

bool resolve_local(const Exec& x, std::uint64_t offset, int lane, unsigned bytes, unsigned align,
                   Access access, Place& out) {
  const std::uint64_t frame = x.kernel.local_bytes;
  if (bytes <= frame && offset <= frame - bytes && (offset & (align - 1)) == 0) [[likely]] {
    out.kind = Place::Kind::local;
    out.at = x.thread(lane) * frame + offset;
    out.cta = &x.cta;
    out.data = x.cta.local.data() + out.at;
    return true;
  }
  Agent agent = agent_of(x, lane);
  x.grid.memory->local(agent, x.thread(lane), offset, bytes, align, access);  // says what is wrong
  return false;
}
}  // namespace

bool resolve(const Exec& x, Where where, std::uint64_t address, int lane, unsigned bytes, unsigned align,
             Access access, Span& span, Place& out) {
  switch (where) {
    case Where::shared_cta:
    case Where::shared_cluster:
      if ((address >> 32) != 0) [[unlikely]] {
        x.fault(FaultKind::out_of_bounds, lane,
                "shared address " + hex(address) + " has more than 32 bits" +
                    ((address & ~std::uint64_t{0xffffffff}) == kSharedWindow
                         ? std::string(": a generic address, which cvta.to.shared must convert first")
                         : std::string()));
        return false;
      }
      return resolve_shared(x, static_cast<std::uint32_t>(address), where == Where::shared_cta, lane, bytes,
                            align, access, out);
    case Where::local:
      return resolve_local(x, address, lane, bytes, align, access, out);
    case Where::parameter:
      address += x.grid.parameters;
      break;
    case Where::generic:
      if ((address >> 32) == (kSharedWindow >> 32)) {
        return resolve_shared(x, static_cast<std::uint32_t>(address), false, lane, bytes, align, access, out);
      }
      if ((address >> 32) == (kLocalWindow >> 32)) {
        return resolve_local(x, address - kLocalWindow, lane, bytes, align, access, out);
      }
      break;
    case Where::global:
      break;
  }
  out.kind = Place::Kind::global;
  out.at = address;
  out.cta = nullptr;
  if (!span.holds(address, bytes)) span = x.grid.memory->span(address);
  if (span.holds(address, bytes) && (address & (align - 1)) == 0 && (access == Access::read || span.writable))
      [[likely]] {
    out.data = span.data + (address - span.begin);
    if (x.grid.watches_global()) [[unlikely]] {
      Agent agent = agent_of(x, lane);
      x.grid.memory->watch(agent, address, bytes, access);
    }
    return true;
  }
  Agent agent = agent_of(x, lane);
  x.grid.memory->global(agent, address, bytes, align, access);  // says what is wrong
  return false;
}

namespace {
constexpr std::uint32_t kSharedHigh = kSharedWindow >> 32, kLocalHigh = kLocalWindow >> 32;

// Generic addresses that all lead to one window, as addresses of its space. Where::generic where they are
// mixed.
Where uniform_window(Mask mask, const std::uint64_t address[kLanes], std::uint64_t out[kLanes]) {
  bool any_shared = false, any_local = false, any_other = false;
  for_lanes(mask, [&](int i) {
    const auto high = static_cast<std::uint32_t>(address[i] >> 32);
    any_shared |= high == kSharedHigh;
    any_local |= high == kLocalHigh;
    any_other |= high != kSharedHigh && high != kLocalHigh;
    out[i] = address[i] & 0xffffffff;
  });
  if (any_shared + any_local + any_other != 1) return Where::generic;
  return any_shared ? Where::shared_cluster : any_local ? Where::local : Where::global;
}

}  // namespace

bool resolve_lanes(const Exec& x, Where where, const std::uint64_t address[kLanes], unsigned bytes,
                   unsigned align, Access access, Place out[kLanes]) {
  std::uint64_t in_window[kLanes];
  if (where == Where::generic) {
    const Where found = uniform_window(x.mask, address, in_window);
    if (found != Where::generic) {
      where = found;
      if (found != Where::global) address = in_window;
    }
  }
  if (where == Where::shared_cta || where == Where::shared_cluster) {
    SharedLanes lanes;
    if (shared_lanes(x, where == Where::shared_cta, address, bytes, align, access, lanes)) {
      for_lanes(x.mask, [&](int i) {
        out[i] = {Place::Kind::shared, x.cta.shared.data() + lanes.offset[i], lanes.offset[i], &x.cta};
      });
      return true;
    }
  }
  Span span;
  bool good = true;
  for_lanes(x.mask, [&](int i) {
    if (good) good = resolve(x, where, address[i], i, bytes, align, access, span, out[i]);
  });
  return good;
}

std::uint8_t* resolve_range(const Exec& x, Where where, std::uint64_t address, unsigned bytes, unsigned align,
                            Access access, Place& out) {
  if ((address & (align - 1)) != 0) return nullptr;
  if (where == Where::parameter) {
    address += x.grid.parameters;
  } else if (where != Where::global && where != Where::generic) {
    return nullptr;
  }
  const Span span = x.grid.memory->span(address);
  if (!span.holds(address, bytes) || (access != Access::read && !span.writable)) return nullptr;
  out.kind = Place::Kind::global;
  out.at = address;
  out.cta = nullptr;
  out.data = span.data + (address - span.begin);
  if (x.grid.watches_global()) [[unlikely]] {
    Agent agent = agent_of(x, -1);
    x.grid.memory->watch(agent, address, bytes, access);
  }
  return out.data;
}

std::uint64_t undefined_at(const Exec& x, const Place& place, unsigned bytes) {
  switch (place.kind) {
    case Place::Kind::shared:
      return undefined_bits(place.cta->shared_undefined, place.at, bytes);
    case Place::Kind::local:
      return undefined_bits(place.cta->local_undefined, place.at, bytes);
    case Place::Kind::global:
      break;
  }
  if (!x.grid.memory->any_global_undefined()) [[likely]]
    return 0;
  std::uint64_t bits = 0;
  x.grid.memory->global_undefined(place.at, bytes, &bits);
  return bits;
}

bool now_holds(const Exec& x, const Place& place, int lane, unsigned bytes, std::uint64_t undefined) {
  switch (place.kind) {
    case Place::Kind::shared:
      if (undefined != 0) x.run.stored_undefined(x.site(lane));
      put_undefined_bits(place.cta->shared_undefined, place.at, bytes, undefined);
      return true;
    case Place::Kind::local:
      put_undefined_bits(place.cta->local_undefined, place.at, bytes, undefined);
      return true;
    case Place::Kind::global:
      break;
  }
  if (undefined == 0 && !x.grid.memory->any_global_undefined()) [[likely]]
    return true;
  Agent agent = agent_of(x, lane);
  return x.grid.memory->stored(agent, place.at, bytes, undefined);
}

bool address_undefined(const Exec& x, Operand base) {
  const Mask bad = x.undefined_of(base) & x.mask;
  if (bad == 0) [[likely]]
    return false;
  x.fault(FaultKind::undefined_value, __builtin_ctz(bad),
          "the address depends on a value that was never written");
  return true;
}

void addresses(const Exec& x, Operand base, bool wide, std::uint64_t out[kLanes]) {
  const std::uint32_t* lanes = x.lanes(base);
  if (wide) {
    const auto* a = reinterpret_cast<const std::uint64_t*>(lanes);
    const auto offset = static_cast<std::uint64_t>(x.op.imm);
    for (unsigned i = 0; i < kLanes; ++i) out[i] = a[i] + offset;
  } else {
    const auto offset = static_cast<std::uint32_t>(x.op.imm);
    for (unsigned i = 0; i < kLanes; ++i) out[i] = lanes[i] + offset;
  }
}

Where take_where(Modifiers& m, ptx::Space& space) {
  const int s = m.take_one({"global", "shared", "shared::cta", "shared::cluster", "local", "const", "param",
                            "param::entry", "param::func"});
  switch (s) {
    case 0:
      space = ptx::Space::global;
      return Where::global;
    case 1:
    case 2:
      space = ptx::Space::shared;
      return Where::shared_cta;
    case 3:
      space = ptx::Space::shared;
      return Where::shared_cluster;
    case 4:
      space = ptx::Space::local;
      return Where::local;
    case 5:
      space = ptx::Space::constant;
      return Where::global;
    case 6:
    case 7:
    case 8:
      space = ptx::Space::param;
      return Where::parameter;
    default:
      space = ptx::Space::generic;
      return Where::generic;
  }
}

Ordering take_ordering(Modifiers& m, bool atomic) {
  Ordering o;
  // Shorter names first would do as well: each is a modifier of its own.
  const int kind = m.take_one({"weak", "volatile", "relaxed", "acquire", "release", "acq_rel"});
  if (m.take("mmio")) o.strong = true;
  o.strong |= kind >= 1 || atomic;
  o.acquire = kind == 3 || kind == 5;
  o.release = kind == 4 || kind == 5;
  const int scope = m.take_one({"cta", "cluster", "gpu", "sys"});
  o.beyond_cluster = o.strong && scope != 0 && scope != 1;
  return o;
}

void take_cache(Modifiers& m, bool& hint) {
  for (const std::string_view name : {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "unified", "nc"})
    m.take(name);
  hint = m.take("L2::cache_hint");
  for (const std::string_view prefix : {"L1::", "L2::"}) {
    while (m.take_prefix(prefix)) {
    }
  }
}

std::string_view family_of(Where where, bool constant) {
  switch (where) {
    case Where::shared_cta:
    case Where::shared_cluster:
      return "shared";
    case Where::local:
      return "local";
    case Where::parameter:
      return "constant";
    default:
      return constant ? "constant" : "global";
  }
}

}  // namespace ptxbench::emulator
