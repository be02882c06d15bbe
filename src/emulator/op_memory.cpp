// ld, st, ldu and what only speaks to caches (prefetch, discard, applypriority).
#include "emulator/access.hpp"
#include "emulator/races.hpp"

#include <algorithm>
#include <cstring>

namespace ptxbench::emulator {

namespace {

// How an element lies in memory and in its register.
enum class Lane : std::uint8_t {
  u8_32,
  s8_16,
  s8_32,
  u8_64,
  s8_64,  // memory, register: 16- and 8-bit registers are 32-bit lanes with zeros above
  u16_32,
  s16_32,
  u16_64,
  s16_64,
  b32,
  u32_64,
  s32_64,
  b64,
  b128,
};

// Op::a elements, b bytes of one, c Where and kWide, d Lane. Operands: elements, address (loads); address,
// elements (stores).
constexpr std::uint8_t kWhereMask = 7, kWide = 8;

template <class Mem, class Mid, class Reg, class P>
void load_as(Reg* d, Mask mask, P&& data) {
  const auto one = [&](unsigned i) {  // memory never lies over registers
    Mem v;
    std::memcpy(&v, data(i), sizeof v);
    d[i] = static_cast<Reg>(static_cast<Mid>(v));
  };
  if (mask == ~Mask{0}) {
    for (unsigned i = 0; i < kLanes; ++i) one(i);
  } else {
    for_lanes(mask, [&](int i) { one(static_cast<unsigned>(i)); });
  }
}

template <class P>
void load_element(const Exec& x, unsigned k, Lane lane, Mask mask, P&& data) {
  using namespace std;
  if (x.operand(k) == kNoOperand) return;
  switch (lane) {
    case Lane::u8_32:
      load_as<uint8_t, uint8_t>(x.dst(k), mask, data);
      break;
    case Lane::s8_16:
      load_as<int8_t, uint16_t>(x.dst(k), mask, data);
      break;
    case Lane::s8_32:
      load_as<int8_t, int32_t>(x.dst(k), mask, data);
      break;
    case Lane::u8_64:
      load_as<uint8_t, uint8_t>(x.dst64(k), mask, data);
      break;
    case Lane::s8_64:
      load_as<int8_t, int64_t>(x.dst64(k), mask, data);
      break;
    case Lane::u16_32:
      load_as<uint16_t, uint16_t>(x.dst(k), mask, data);
      break;
    case Lane::s16_32:
      load_as<int16_t, int32_t>(x.dst(k), mask, data);
      break;
    case Lane::u16_64:
      load_as<uint16_t, uint16_t>(x.dst64(k), mask, data);
      break;
    case Lane::s16_64:
      load_as<int16_t, int64_t>(x.dst64(k), mask, data);
      break;
    case Lane::b32:
      load_as<uint32_t, uint32_t>(x.dst(k), mask, data);
      break;
    case Lane::u32_64:
      load_as<uint32_t, uint32_t>(x.dst64(k), mask, data);
      break;
    case Lane::s32_64:
      load_as<int32_t, int64_t>(x.dst64(k), mask, data);
      break;
    case Lane::b64:
      load_as<uint64_t, uint64_t>(x.dst64(k), mask, data);
      break;
    case Lane::b128:
      load_as<uint64_t, uint64_t>(x.dst64(k), mask, data);
      load_as<uint64_t, uint64_t>(x.dst64(k) + kLanes, mask, [&](unsigned i) { return data(i) + 8; });
      break;
  }
}

template <class Mem, class Reg, class P>
void store_as(const Reg* s, Mask mask, P&& data) {
  const auto one = [&](unsigned i) {
    const Mem v = static_cast<Mem>(s[i]);
    std::memcpy(data(i), &v, sizeof v);
  };
  if (mask == ~Mask{0}) {
    for (unsigned i = 0; i < kLanes; ++i) one(i);
  } else {
    for_lanes(mask, [&](int i) { one(static_cast<unsigned>(i)); });
  }
}

template <class P>
void store_element(const Exec& x, unsigned k, Lane lane, Mask mask, P&& data) {
  using namespace std;
  switch (lane) {
    case Lane::u8_32:
    case Lane::s8_16:
    case Lane::s8_32:
      store_as<uint8_t>(x.src(k), mask, data);
      break;
    case Lane::u8_64:
    case Lane::s8_64:
      store_as<uint8_t>(x.src64(k), mask, data);
      break;
    case Lane::u16_32:
    case Lane::s16_32:
      store_as<uint16_t>(x.src(k), mask, data);
      break;
    case Lane::u16_64:
    case Lane::s16_64:
      store_as<uint16_t>(x.src64(k), mask, data);
      break;
    case Lane::b32:
      store_as<uint32_t>(x.src(k), mask, data);
      break;
    case Lane::u32_64:
    case Lane::s32_64:
      store_as<uint32_t>(x.src64(k), mask, data);
      break;
    case Lane::b64:
      store_as<uint64_t>(x.src64(k), mask, data);
      break;
    case Lane::b128:
      store_as<uint64_t>(x.src64(k), mask, data);
      store_as<uint64_t>(x.src64(k) + kLanes, mask, [&](unsigned i) { return data(i) + 8; });
      break;
  }
}

constexpr std::uint64_t kNear = 16 << 10;  // bytes

std::uint64_t lowest(Mask mask, const std::uint64_t address[kLanes]) {
  std::uint64_t low = UINT64_MAX;
  for_lanes(mask, [&](int i) { low = std::min(low, address[i]); });
  return low;
}

// Where the lanes of x.mask lie within kNear of one another, all defined, one check does for all: where the
// lowest lies. Null, and nothing raised, where each lane takes a look of its own.
const std::uint8_t* resolve_near(const Exec& x, Where where, const std::uint64_t address[kLanes],
                                 unsigned bytes) {
  std::uint64_t low = UINT64_MAX, high = 0, bits = 0;
  for_lanes(x.mask, [&](int i) {
    low = std::min(low, address[i]);
    high = std::max(high, address[i]);
    bits |= address[i];
  });
  if (high - low > kNear || (bits & (bytes - 1)) != 0) return nullptr;
  Place p;
  const auto span = static_cast<unsigned>(high - low + bytes);
  const std::uint8_t* data = resolve_range(x, where, low, span, bytes, Access::read, p);
  return data != nullptr && !x.grid.memory->global_undefined(p.at, span) ? data : nullptr;
}

// The bits of an element's bytes, number @p k of @p each bytes.
std::uint64_t element_bits(unsigned k, unsigned each) {
  return ((std::uint64_t{1} << each) - 1) << (k * each);
}

Flow load_shared(Exec& x, Lane lane, const SharedLanes& at) {
  const unsigned n = x.op.a, each = x.op.b, total = n * each;
  const std::uint8_t* data = x.cta.shared.data();
  std::uint64_t undefined[kLanes];
  const bool any = any_undefined(x.cta, at, total);
  if (any) [[unlikely]] {
    x.run.read_undefined(x.site(), [&] {
      std::string text;
      for_lanes(x.mask, [&](int i) {
        if (text.empty()) text = hole_text(x.grid, x.cta, at.offset[i], total);
      });
      return text;
    });
    for_lanes(x.mask,
              [&](int i) { undefined[i] = undefined_bits(x.cta.shared_undefined, at.offset[i], total); });
  }
  for (unsigned k = 0; k < n; ++k) {
    if (x.operand(k) == kNoOperand) continue;
    if (lane == Lane::b32 && n == 1 && at.contiguous) {
      std::memcpy(x.dst(0), data + at.low, 4 * kLanes);
    } else if (lane == Lane::b64 && n == 1 && at.contiguous) {
      std::memcpy(x.dst(0), data + at.low, 8 * kLanes);
    } else {
      load_element(x, k, lane, x.mask, [&](unsigned i) { return data + at.offset[i] + k * each; });
    }
    Mask u = 0;
    if (any) [[unlikely]] {
      for_lanes(x.mask, [&](int i) { u |= Mask{(undefined[i] & element_bits(k, each)) != 0} << i; });
    }
    x.set_undefined(k, u);
  }
  return Flow::next;
}

void store_shared(Exec& x, Lane lane, const SharedLanes& at, Mask undefined) {
  const unsigned n = x.op.a, each = x.op.b, total = n * each;
  std::uint8_t* data = x.cta.shared.data();
  for (unsigned k = 0; k < n; ++k) {
    if (lane == Lane::b32 && n == 1 && at.contiguous) {
      std::memcpy(data + at.low, x.src(1), 4 * kLanes);
    } else if (lane == Lane::b64 && n == 1 && at.contiguous) {
      std::memcpy(data + at.low, x.src(1), 8 * kLanes);
    } else {
      store_element(x, k + 1, lane, x.mask, [&](unsigned i) { return data + at.offset[i] + k * each; });
    }
  }
  if (undefined == 0) [[likely]] {
    define(x.cta, at, x.mask, total);
    return;
  }
  x.run.stored_undefined(x.site());
  for_lanes(x.mask, [&](int i) {
    std::uint64_t bits = 0;
    for (unsigned k = 0; k < n; ++k)
      if ((x.undefined_of(x.operand(k + 1)) >> i & 1) != 0) bits |= element_bits(k, each);
    put_undefined_bits(x.cta.shared_undefined, at.offset[i], total, bits);
  });
}

bool is_shared(Where where) { return where == Where::shared_cta || where == Where::shared_cluster; }

Flow run_load(Exec& x) {
  const unsigned n = x.op.a, each = x.op.b, total = n * each;
  const auto where = static_cast<Where>(x.op.c & kWhereMask);
  const auto lane = static_cast<Lane>(x.op.d);
  const Operand base = x.operand(n);
  if (address_undefined(x, base)) return Flow::stop;
  const bool shared = is_shared(where);
  if (shared || where == Where::generic) {
    SharedLanes at;
    if (shared_lanes(x, where, base, (x.op.c & kWide) != 0, total, Access::read, at)) {
      if (x.cluster.races != nullptr) x.cluster.races->own(x, at, total, Access::read);
      return load_shared(x, lane, at);
    }
  }
  std::uint64_t address[kLanes];
  addresses(x, base, (x.op.c & kWide) != 0, address);

  // `.shared` lanes that shared_lanes refused each take a look of their own.
  if (!shared && x.mask == ~Mask{0} && contiguous(address, total)) {
    Place p;
    const std::uint8_t* data = resolve_range(x, where, address[0], total * kLanes, total, Access::read, p);
    if (data != nullptr && !x.grid.memory->global_undefined(p.at, total * kLanes)) {
      if (total == 4 && lane == Lane::b32) {
        std::memcpy(x.dst(0), data, 4 * kLanes);
      } else if (total == 8 && lane == Lane::b64) {
        std::memcpy(x.dst(0), data, 8 * kLanes);
      } else {
        for (unsigned k = 0; k < n; ++k) {
          load_element(x, k, lane, x.mask, [&](unsigned i) { return data + i * total + k * each; });
        }
      }
      for (unsigned k = 0; k < n; ++k) {
        if (x.operand(k) != kNoOperand) x.set_undefined(k, 0);
      }
      return Flow::next;
    }
  }

  if (const std::uint8_t* data = shared ? nullptr : resolve_near(x, where, address, total); data != nullptr) {
    const std::uint64_t low = lowest(x.mask, address);
    for (unsigned k = 0; k < n; ++k) {
      if (x.operand(k) == kNoOperand) continue;
      load_element(x, k, lane, x.mask, [&](unsigned i) { return data + (address[i] - low) + k * each; });
      x.set_undefined(k, 0);
    }
    return Flow::next;
  }

  Place place[kLanes];
  if (!resolve_lanes(x, where, address, total, total, Access::read, place)) return Flow::stop;
  if (x.cluster.races != nullptr) x.cluster.races->scattered(x, place, total, Access::read);
  std::uint64_t undefined[kLanes];
  std::uint64_t any = 0;
  for_lanes(x.mask, [&](int i) { any |= undefined[i] = undefined_at(x, place[i], total); });
  if (any != 0) [[unlikely]]
    x.run.read_undefined(x.site());
  for (unsigned k = 0; k < n; ++k) {
    if (x.operand(k) == kNoOperand) continue;
    load_element(x, k, lane, x.mask, [&](unsigned i) { return place[i].data + k * each; });
    Mask u = 0;
    if (any != 0) [[unlikely]] {
      for_lanes(x.mask, [&](int i) { u |= Mask{(undefined[i] & element_bits(k, each)) != 0} << i; });
    }
    x.set_undefined(k, u);
  }
  return Flow::next;
}

Flow run_store(Exec& x) {
  const unsigned n = x.op.a, each = x.op.b, total = n * each;
  const auto where = static_cast<Where>(x.op.c & kWhereMask);
  const auto lane = static_cast<Lane>(x.op.d);
  const Operand base = x.operand(0);
  if (address_undefined(x, base)) return Flow::stop;
  Mask undefined = 0;  // of any element
  for (unsigned k = 1; k <= n; ++k) undefined |= x.undefined_of(x.operand(k));
  undefined &= x.mask;
  const bool shared = is_shared(where);
  if (shared || where == Where::generic) {
    SharedLanes at;
    if (shared_lanes(x, where, base, (x.op.c & kWide) != 0, total, Access::write, at)) {
      if (x.cluster.races != nullptr) x.cluster.races->own(x, at, total, Access::write);
      store_shared(x, lane, at, undefined);
      return Flow::next;
    }
  }
  std::uint64_t address[kLanes];
  addresses(x, base, (x.op.c & kWide) != 0, address);

  if (!shared && x.mask == ~Mask{0} && undefined == 0 && contiguous(address, total)) {
    Place p;
    std::uint8_t* data = resolve_range(x, where, address[0], total * kLanes, total, Access::write, p);
    if (data != nullptr) {
      if (total == 4 && lane == Lane::b32) {
        std::memcpy(data, x.src(1), 4 * kLanes);
      } else if (total == 8 && lane == Lane::b64) {
        std::memcpy(data, x.src(1), 8 * kLanes);
      } else {
        for (unsigned k = 0; k < n; ++k) {
          store_element(x, k + 1, lane, x.mask, [&](unsigned i) { return data + i * total + k * each; });
        }
      }
      x.grid.memory->define(p.at, total * kLanes);
      return Flow::next;
    }
  }

  Place place[kLanes];
  if (!resolve_lanes(x, where, address, total, total, Access::write, place)) return Flow::stop;
  if (x.cluster.races != nullptr) x.cluster.races->scattered(x, place, total, Access::write);
  for (unsigned k = 0; k < n; ++k) {
    store_element(x, k + 1, lane, x.mask, [&](unsigned i) { return place[i].data + k * each; });
  }
  bool good = true;
  for_lanes(x.mask, [&](int i) {
    std::uint64_t bits = 0;
    if ((undefined >> i & 1) != 0) [[unlikely]] {
      for (unsigned k = 0; k < n; ++k) {
        if ((x.undefined_of(x.operand(k + 1)) >> i & 1) != 0) bits |= element_bits(k, each);
      }
    }
    if (good) good = now_holds(x, place[i], i, total, bits);
  });
  return good ? Flow::next : Flow::stop;
}

Flow run_nothing(Exec&) { return Flow::next; }

// discard and applypriority: the 128 bytes must be there.
Flow run_check_line(Exec& x) {
  const Operand base = x.operand(0);
  if (address_undefined(x, base)) return Flow::stop;
  std::uint64_t address[kLanes];
  addresses(x, base, (x.op.c & kWide) != 0, address);
  Place place[kLanes];
  const auto access = x.op.a != 0 ? Access::write : Access::read;
  return resolve_lanes(x, static_cast<Where>(x.op.c & kWhereMask), address, 128, 128, access, place)
             ? Flow::next
             : Flow::stop;
}

// --- decoding
// ---------------------------------------------------------------------------------------------------

bool is_signed(Ty t) { return t == Ty::s8 || t == Ty::s16 || t == Ty::s32 || t == Ty::s64; }

// How @p operands (registers of one width, or constants) take elements of @p type. `natural`: for what is no
// register.
Result<Lane> lane_of(Decoder& d, Ty type, const std::vector<const ptx::Operand*>& operands) {
  const unsigned bits = ty_bits(type);
  unsigned width = 0;
  for (const ptx::Operand* o : operands) {
    const unsigned w = d.register_bits(*o);
    if (w == 0) continue;
    if (w < bits) return d.bad("a register of " + std::to_string(w) + " bits is too small");
    if (width != 0 && w != width) return d.unsupported("registers of different sizes in one vector");
    width = w;
  }
  if (width == 0) width = bits;
  const bool s = is_signed(type);
  switch (bits) {
    case 8:
      return width > 32   ? (s ? Lane::s8_64 : Lane::u8_64)
             : !s         ? Lane::u8_32
             : width > 16 ? Lane::s8_32
                          : Lane::s8_16;
    case 16:
      return width > 32 ? (s ? Lane::s16_64 : Lane::u16_64) : s && width > 16 ? Lane::s16_32 : Lane::u16_32;
    case 32:
      return width > 32 ? (s ? Lane::s32_64 : Lane::u32_64) : Lane::b32;
    case 64:
      return width > 64 ? Result<Lane>(d.unsupported("a 64-bit access with a 128-bit register")) : Lane::b64;
    case 128:
      return Lane::b128;
    default:
      return d.bad("a type of " + std::to_string(bits) + " bits is no memory type");
  }
}

std::vector<const ptx::Operand*> elements(const ptx::Operand& operand) {
  std::vector<const ptx::Operand*> v;
  if (operand.kind == ptx::Operand::Kind::vector) {
    for (const ptx::Operand& o : operand.parts) v.push_back(&o);
  } else {
    v.push_back(&operand);
  }
  return v;
}

struct Form {
  Where where = Where::generic;
  ptx::Space space = ptx::Space::generic;
  Ordering order;
  bool hint = false;
  unsigned count = 1;
  Ty type = Ty::b32;
};

Result<Form> take_form(Decoder& d) {
  Modifiers m(d.instruction());
  Form f;
  f.order = take_ordering(m, false);
  f.where = take_where(m, f.space);
  take_cache(m, f.hint);
  const int vector = m.take_one({"v2", "v4", "v8"});
  f.count = vector < 0 ? 1U : 2U << vector;
  PTXBENCH_TRY_ASSIGN(f.type, m.type());
  PTXBENCH_TRY(m.finish(d));
  if (f.count * ty_bits(f.type) > 256) return d.bad("a vector of more than 256 bits");
  return f;
}

Result<void> decode_load(Decoder& d) {
  PTXBENCH_TRY_ASSIGN(const Form f, take_form(d));
  PTXBENCH_TRY(d.expect_operands(f.hint ? 3 : 2));
  const auto& operands = d.instruction().operands;
  const auto parts = elements(operands[0]);
  if (parts.size() != f.count) return d.bad("the vector of registers has another size than the access");
  PTXBENCH_TRY_ASSIGN(const Lane lane, lane_of(d, f.type, parts));
  Emit e;
  PTXBENCH_TRY(d.dst_vector(e, 0, ty_bits(f.type), true));
  PTXBENCH_TRY_ASSIGN(const Address a, d.address(e, operands[1], f.space));
  const Where where = f.where == Where::parameter && a.space == ptx::Space::local ? Where::local : f.where;
  e.run = run_load;
  e.a = static_cast<std::uint8_t>(f.count);
  e.b = static_cast<std::uint8_t>(ty_bits(f.type) / 8);
  e.c = static_cast<std::uint8_t>(static_cast<unsigned>(where) | (a.wide ? kWide : 0U));
  e.d = static_cast<std::uint8_t>(lane);
  e.flags = kNone;
  if (f.order.strong) {
    e.flags |= kPoll | kStrong;
    if (f.order.acquire) e.flags |= kAcquires;
    if (f.order.beyond_cluster && (where == Where::global || where == Where::generic))
      e.flags |= kCommunicates;
  }
  return d.emit(e, family_of(where, f.space == ptx::Space::constant));
}

Result<void> decode_store(Decoder& d) {
  PTXBENCH_TRY_ASSIGN(const Form f, take_form(d));
  PTXBENCH_TRY(d.expect_operands(f.hint ? 3 : 2));
  const auto& operands = d.instruction().operands;
  const auto parts = elements(operands[1]);
  if (parts.size() != f.count) return d.bad("the vector of registers has another size than the access");
  PTXBENCH_TRY_ASSIGN(const Lane lane, lane_of(d, f.type, parts));
  Emit e;
  PTXBENCH_TRY_ASSIGN(const Address a, d.address(e, operands[0], f.space));
  PTXBENCH_TRY(d.src_vector(e, 1, f.type, true));
  const Where where = f.where == Where::parameter && a.space == ptx::Space::local ? Where::local : f.where;
  if (f.space == ptx::Space::constant) return d.bad("constant memory cannot be written");
  e.run = run_store;
  e.a = static_cast<std::uint8_t>(f.count);
  e.b = static_cast<std::uint8_t>(ty_bits(f.type) / 8);
  e.c = static_cast<std::uint8_t>(static_cast<unsigned>(where) | (a.wide ? kWide : 0U));
  e.d = static_cast<std::uint8_t>(lane);
  e.flags = kNone;
  if (where != Where::local && where != Where::parameter) e.flags |= kSideEffect;
  if (f.order.strong) e.flags |= kStrong;
  if (f.order.release) e.flags |= kReleases;
  if (f.order.beyond_cluster && (where == Where::global || where == Where::generic)) e.flags |= kCommunicates;
  return d.emit(e, family_of(where, false));
}

// prefetch{.tensormap}, prefetchu: hints that never fault.
Result<void> decode_prefetch(Decoder& d) {
  Modifiers m(d.instruction());
  const bool map = m.take("tensormap");
  ptx::Space space;
  take_where(m, space);
  m.take_one({"L1", "L2"});
  bool hint = false;
  take_cache(m, hint);
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(1));
  Emit e;
  PTXBENCH_TRY(d.address(e, d.instruction().operands[0], space));
  e.run = run_nothing;
  e.flags = kNone;
  return d.emit(e, map ? "tma_control" : "global");
}

Result<void> decode_line(Decoder& d) {
  Modifiers m(d.instruction());
  ptx::Space space;
  const Where where = take_where(m, space);
  m.take("L2");
  bool hint = false;
  take_cache(m, hint);
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(2));
  PTXBENCH_TRY_ASSIGN(const std::int64_t size, d.immediate(1));
  if (size != 128) return d.bad("the size must be 128");
  Emit e;
  PTXBENCH_TRY_ASSIGN(const Address a, d.address(e, d.instruction().operands[0], space));
  e.run = run_check_line;
  e.a = d.instruction().opcode == "discard";
  e.c = static_cast<std::uint8_t>(static_cast<unsigned>(where) | (a.wide ? kWide : 0U));
  e.flags = kNone;
  return d.emit(e, "global");
}

}  // namespace

void register_memory(InstructionTable& table) {
  table.add("ld", decode_load);
  table.add("ldu", decode_load);
  table.add("st", decode_store);
  table.add("prefetch", decode_prefetch);
  table.add("prefetchu", decode_prefetch);
  table.add("discard", decode_line);
  table.add("applypriority", decode_line);
}

}  // namespace ptxbench::emulator
