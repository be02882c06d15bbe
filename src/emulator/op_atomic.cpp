// atom and red. Lanes take their turns in order, so that results do not depend on chance.
#include "emulator/scalar_math.hpp"
#include "emulator/access.hpp"

#include <bit>
#include <cstring>
#include <string>

namespace ptxbench::emulator {

namespace {

// Op::a elements, c Where and kWide, d whether there is a destination. Operands: destinations (atom),
// address, values, and for cas the new values.
constexpr std::uint8_t kWhereMask = 7, kWide = 8;

struct Wide128 {
  std::uint64_t low = 0, high = 0;
  bool operator==(const Wide128&) const = default;
};

// --- small floats, by way of f32: sums of two of them round to the same bits ---
float of_half(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000) << 16, exponent = h >> 10 & 31,
                      m = h & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | m << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | m << 13);
  const float tiny = static_cast<float>(m) * 0x1p-24F;
  return sign != 0 ? -tiny : tiny;
}
std::uint16_t to_half(float f) {
  const auto bits = std::bit_cast<std::uint32_t>(f);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7fff;
  if (magnitude >= 0x47800000) return sign | 0x7c00;  // 65536 and up; 65520 to 65535 round up below
  if (magnitude < 0x38800000) {                       // subnormal: a multiple of 2^-24
    // Adding 0.5 puts the ulp at 2^-24 exactly.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return sign | static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(shifted) - 0x3f000000);
  }
  const std::uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return sign | static_cast<std::uint16_t>((rounded - 0x38000000) >> 13);
}
float of_bf16(std::uint16_t h) { return std::bit_cast<float>(static_cast<std::uint32_t>(h) << 16); }
std::uint16_t to_bf16(float f) {
  const auto bits = std::bit_cast<std::uint32_t>(f);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
struct Half {
  static float of(std::uint16_t h) { return of_half(h); }
  static std::uint16_t to(float f) { return to_half(f); }
};
struct Bf16 {
  static float of(std::uint16_t h) { return of_bf16(h); }
  static std::uint16_t to(float f) { return to_bf16(f); }
};

std::uint32_t flushed(std::uint32_t f) { return (f & 0x7f800000) == 0 ? f & 0x80000000 : f; }

// --- what becomes of the value in memory; `global`: the ISA flushes f32 sums there, and only there ---
struct And {
  template <class T>
  static T apply(T old, T b, T, bool) {
    return old & b;
  }
};
struct Or {
  template <class T>
  static T apply(T old, T b, T, bool) {
    return old | b;
  }
};
struct Xor {
  template <class T>
  static T apply(T old, T b, T, bool) {
    return old ^ b;
  }
};
struct Add {
  template <class T>
  static T apply(T old, T b, T, bool) {
    return old + b;
  }
};
struct Inc {
  template <class T>
  static T apply(T old, T b, T, bool) {
    return old >= b ? 0 : old + 1;
  }
};
struct Dec {
  template <class T>
  static T apply(T old, T b, T, bool) {
    return old == 0 || old > b ? b : old - 1;
  }
};
struct Exchange {
  template <class T>
  static T apply(T, T b, T, bool) {
    return b;
  }
};
struct CompareSwap {
  template <class T>
  static T apply(T old, T b, T c, bool) {
    return old == b ? c : old;
  }
};
template <bool kSigned, bool kMax>
struct Extreme {
  template <class T>
  static T apply(T old, T b, T, bool) {
    using S = std::make_signed_t<T>;
    const bool less = kSigned ? static_cast<S>(b) < static_cast<S>(old) : b < old;
    return less != kMax ? b : old;
  }
};
struct AddF32 {
  static std::uint32_t apply(std::uint32_t old, std::uint32_t b, std::uint32_t, bool global) {
    if (global) old = flushed(old), b = flushed(b);
    const float sum = std::bit_cast<float>(old) + std::bit_cast<float>(b);
    if (sum != sum) return 0x7fffffff;
    const auto bits = std::bit_cast<std::uint32_t>(sum);
    return global ? flushed(bits) : bits;
  }
};
struct AddF64 {
  static std::uint64_t apply(std::uint64_t old, std::uint64_t b, std::uint64_t, bool) {
    const double sum = std::bit_cast<double>(old) + std::bit_cast<double>(b);
    if (sum == sum) return std::bit_cast<std::uint64_t>(sum);
    std::uint64_t result[kLanes], olds[kLanes] = {old}, values[kLanes] = {b};  // NaNs as add.f64 makes them
    add_f64(result, olds, values, Rounding::nearest_even);
    return result[0];
  }
};
template <class F>
struct AddSmall {
  static std::uint16_t apply(std::uint16_t old, std::uint16_t b, std::uint16_t, bool) {
    return F::to(F::of(old) + F::of(b));
  }
};
// One NaN gives the other operand, two the canonical one; -0 is less than +0.
template <class F, bool kMax>
struct ExtremeSmall {
  static std::uint16_t apply(std::uint16_t old, std::uint16_t b, std::uint16_t, bool) {
    const float x = F::of(old), y = F::of(b);
    if (x != x) return y != y ? 0x7fff : b;
    if (y != y) return old;
    if (x == y) return ((old & 0x8000) != 0) != kMax ? old : b;
    return (y < x) != kMax ? b : old;
  }
};
template <class F>
struct Packed {
  static std::uint32_t apply(std::uint32_t old, std::uint32_t b, std::uint32_t, bool global) {
    const auto half = [&](unsigned shift) {
      return std::uint32_t{F::apply(static_cast<std::uint16_t>(old >> shift),
                                    static_cast<std::uint16_t>(b >> shift), std::uint16_t{0}, global)}
             << shift;
    };
    return half(0) | half(16);
  }
};

template <class T>
T get(const Exec& x, unsigned operand, int lane) {
  if constexpr (sizeof(T) == 16) {
    const std::uint64_t* v = x.src64(operand);
    return T{v[lane], v[lane + static_cast<int>(kLanes)]};
  } else if constexpr (sizeof(T) == 8) {
    return x.src64(operand)[lane];
  } else {
    return static_cast<T>(x.src(operand)[lane]);
  }
}
template <class T>
void put(const Exec& x, unsigned operand, int lane, T value) {
  if constexpr (sizeof(T) == 16) {
    x.dst64(operand)[lane] = value.low;
    x.dst64(operand)[lane + static_cast<int>(kLanes)] = value.high;
  } else if constexpr (sizeof(T) == 8) {
    x.dst64(operand)[lane] = value;
  } else {
    x.dst(operand)[lane] = value;
  }
}

template <class T, class F>
Flow run_atomic(Exec& x) {
  constexpr bool kThree = std::is_same_v<F, CompareSwap>, kKeepsOld = !std::is_same_v<F, Exchange>;
  constexpr unsigned kMost = 8;
  const unsigned n = x.op.a, total = n * sizeof(T), results = x.op.d != 0 ? n : 0;
  const auto where = static_cast<Where>(x.op.c & kWhereMask);
  const Operand base = x.operand(results);
  if (address_undefined(x, base)) return Flow::stop;
  std::uint64_t address[kLanes];
  addresses(x, base, (x.op.c & kWide) != 0, address);
  Place place[kLanes];
  if (!resolve_lanes(x, where, address, total, total, Access::atomic, place)) return Flow::stop;

  Mask values_undefined[kMost] = {};
  for (unsigned k = 0; k < n; ++k) {
    values_undefined[k] = x.undefined_of(x.operand(results + 1 + k));
    if (kThree) values_undefined[k] |= x.undefined_of(x.operand(results + 1 + n + k));
  }
  Mask results_undefined[kMost] = {};
  bool good = true;
  for_lanes(x.mask, [&](int i) {
    if (!good) return;
    const Place& p = place[i];
    if (n > 1 && p.kind != Place::Kind::global) {
      x.fault(FaultKind::out_of_bounds, i, "a vector atomic works on global memory only");
      good = false;
      return;
    }
    if (p.kind == Place::Kind::local) {
      x.fault(FaultKind::out_of_bounds, i,
              "an atomic works on global and shared memory, and this is local memory");
      good = false;
      return;
    }
    const std::uint64_t was = undefined_at(x, p, total);
    if (kKeepsOld && was != 0) [[unlikely]] x.run.read_undefined(x.site(i));
    std::uint64_t is = 0;
    T old[kMost];
    for (unsigned k = 0; k < n; ++k) {
      std::memcpy(&old[k], p.data + k * sizeof(T), sizeof(T));
      T c{};
      if constexpr (kThree) c = get<T>(x, results + 1 + n + k, i);
      const T now = F::apply(old[k], get<T>(x, results + 1 + k, i), c, p.kind == Place::Kind::global);
      std::memcpy(p.data + k * sizeof(T), &now, sizeof(T));
      constexpr std::uint64_t kBytes = (std::uint64_t{1} << sizeof(T)) - 1;
      const bool old_bad = (was >> (k * sizeof(T)) & kBytes) != 0;
      if (old_bad) results_undefined[k] |= Mask{1} << i;
      if ((kKeepsOld && old_bad) || (values_undefined[k] >> i & 1) != 0) is |= kBytes << (k * sizeof(T));
    }
    if ((was | is) != 0) [[unlikely]]
      good = now_holds(x, p, i, total, is);
    for (unsigned k = 0; k < results; ++k) {
      if (x.operand(k) != kNoOperand) put(x, k, i, old[k]);
    }
  });
  if (!good) return Flow::stop;
  for (unsigned k = 0; k < results; ++k) {
    if (x.operand(k) != kNoOperand) x.set_undefined(k, results_undefined[k]);
  }
  return Flow::next;
}

template <class T>
Handler bitwise(std::string_view op) {
  if (op == "and") return run_atomic<T, And>;
  if (op == "or") return run_atomic<T, Or>;
  if (op == "xor") return run_atomic<T, Xor>;
  if (op == "exch") return run_atomic<T, Exchange>;
  if (op == "cas") return run_atomic<T, CompareSwap>;
  return nullptr;
}
template <class T, bool kSigned>
Handler integer(std::string_view op) {
  if (op == "add") return run_atomic<T, Add>;
  if (op == "min") return run_atomic<T, Extreme<kSigned, false>>;
  if (op == "max") return run_atomic<T, Extreme<kSigned, true>>;
  if (!kSigned && op == "inc") return run_atomic<T, Inc>;
  if (!kSigned && op == "dec") return run_atomic<T, Dec>;
  return bitwise<T>(op);
}
template <class F, bool kPair>
Handler small(std::string_view op) {
  const auto pick = [](auto f) -> Handler {
    using G = decltype(f);
    if constexpr (kPair) {
      return run_atomic<std::uint32_t, Packed<G>>;
    } else {
      return run_atomic<std::uint16_t, G>;
    }
  };
  if (op == "add") return pick(AddSmall<F>{});
  if (op == "min") return pick(ExtremeSmall<F, false>{});
  if (op == "max") return pick(ExtremeSmall<F, true>{});
  return nullptr;
}

Handler handler_of(std::string_view op, Ty type) {
  switch (type) {
    case Ty::b16:
      return op == "cas" ? run_atomic<std::uint16_t, CompareSwap> : nullptr;
    case Ty::b32:
      return bitwise<std::uint32_t>(op);
    case Ty::b64:
      return bitwise<std::uint64_t>(op);
    case Ty::b128:
      return op == "cas"    ? run_atomic<Wide128, CompareSwap>
             : op == "exch" ? run_atomic<Wide128, Exchange>
                            : nullptr;
    case Ty::u32:
      return integer<std::uint32_t, false>(op);
    case Ty::u64:
      return integer<std::uint64_t, false>(op);
    case Ty::s32:
      return integer<std::uint32_t, true>(op);
    case Ty::s64:
      return integer<std::uint64_t, true>(op);
    case Ty::f32:
      return op == "add" ? run_atomic<std::uint32_t, AddF32> : bitwise<std::uint32_t>(op);
    case Ty::f64:
      return op == "add" ? run_atomic<std::uint64_t, AddF64> : bitwise<std::uint64_t>(op);
    case Ty::f16:
      return small<Half, false>(op);
    case Ty::bf16:
      return small<Bf16, false>(op);
    case Ty::f16x2:
      return small<Half, true>(op);
    case Ty::bf16x2:
      return small<Bf16, true>(op);
    default:
      return nullptr;
  }
}

Result<void> decode_atomic(Decoder& d) {
  Modifiers m(d.instruction());
  const bool returns = d.instruction().opcode == "atom";
  const Ordering order = take_ordering(m, true);
  ptx::Space space;
  const Where where = take_where(m, space);
  constexpr std::string_view kOps[] = {"and", "or", "xor", "cas", "exch", "add", "inc", "dec", "min", "max"};
  const int found = m.take_one({"and", "or", "xor", "cas", "exch", "add", "inc", "dec", "min", "max"});
  if (found < 0) return d.unsupported("no operation that is known");
  const std::string_view op = kOps[found];
  m.take("noftz");
  const bool hint = m.take("L2::cache_hint");
  const int vector = m.take_one({"v2", "v4", "v8"});
  const unsigned n = vector < 0 ? 1U : 2U << vector;
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  if (where != Where::generic && where != Where::global && where != Where::shared_cta &&
      where != Where::shared_cluster) {
    return d.bad("atomics work on global and shared memory");
  }
  const bool swap = op == "cas";
  if (!returns && (swap || op == "exch")) return d.bad("red has no " + std::string(op));
  const Handler handler = handler_of(op, type);
  if (handler == nullptr) {
    return d.unsupported("operation ." + std::string(op) + " on type ." + std::string(ty_name(type)));
  }
  if (n > 1 &&
      !(type == Ty::f32 || type == Ty::f16 || type == Ty::bf16 || type == Ty::f16x2 || type == Ty::bf16x2)) {
    return d.bad("no vector atomic has type ." + std::string(ty_name(type)));
  }
  if (n * ty_bits(type) > 128) return d.bad("a vector of more than 128 bits");
  if (n > 1 && where != Where::generic && where != Where::global)
    return d.bad("vector atomics work on global memory");
  const std::size_t at = returns ? 1 : 0;
  PTXBENCH_TRY(d.expect_operands(at + 2 + (swap ? 1 : 0) + (hint ? 1 : 0)));
  Emit e;
  if (returns) {
    PTXBENCH_TRY_ASSIGN(const std::size_t got, d.dst_vector(e, 0, ty_bits(type)));
    if (got != n) return d.bad("the vector of results has another size than the operation");
  }
  PTXBENCH_TRY_ASSIGN(const Address a, d.address(e, d.instruction().operands[at], space));
  PTXBENCH_TRY_ASSIGN(const std::size_t got, d.src_vector(e, at + 1, type));
  if (got != n) return d.bad("the vector of values has another size than the operation");
  if (swap) PTXBENCH_TRY(d.src(e, at + 2, type));
  e.run = handler;
  e.a = static_cast<std::uint8_t>(n);
  e.c = static_cast<std::uint8_t>(static_cast<unsigned>(where) | (a.wide ? kWide : 0U));
  e.d = returns;
  e.flags = kSideEffect | kStrong;
  if (returns) e.flags |= kPoll;  // spin locks
  if (order.beyond_cluster && (where == Where::global || where == Where::generic)) e.flags |= kCommunicates;
  return d.emit(e, "atomics");
}

}  // namespace

void register_atomic(InstructionTable& table) {
  table.add("atom", decode_atomic);
  table.add("red", decode_atomic);
}

}  // namespace ptxbench::emulator
