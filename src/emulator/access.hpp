// How instructions of 32 lanes reach memory: where each lane's address leads, with all checks, and what is
// known of the bytes there beside their values. For loads, stores and atomics.
#pragma once

#include "emulator/decode.hpp"
#include "emulator/machine.hpp"
#include "emulator/memory.hpp"
#include "emulator/run.hpp"

#include <cstdint>

namespace ptxbench::emulator {

// State spaces as accesses tell them apart; `global` also serves constants (one address space).
enum class Where : std::uint8_t { generic, global, shared_cta, shared_cluster, local, parameter };

// The bytes of one lane.
struct Place {
  enum class Kind : std::uint8_t { global, shared, local } kind = Kind::global;
  std::uint8_t* data = nullptr;
  std::uint64_t at =
      0;  // global: the address; shared: offset in the window of `cta`; local: in `cta`'s local memory
  Cta* cta = nullptr;
};

inline Agent agent_of(const Exec& x, int lane) {
  return Agent{x.run, x.grid, x.cluster, x.cta, x.site(lane)};
}

// Where @p address of lane @p lane leads for an access of @p bytes. False: a fault was raised. @p span caches
// global memory from lane to lane. A write over a live mbarrier object is a fault too.
bool resolve(const Exec& x, Where where, std::uint64_t address, int lane, unsigned bytes, unsigned align,
             Access access, Span& span, Place& out);

// The same for all lanes of x.mask; places of other lanes are left alone.
bool resolve_lanes(const Exec& x, Where where, const std::uint64_t address[kLanes], unsigned bytes,
                   unsigned align, Access access, Place out[kLanes]);
// One range of global memory that the lanes share out among them: the same checks, but it raises nothing. Null
// where a rule is broken, or where it is no global memory.
std::uint8_t* resolve_range(const Exec& x, Where where, std::uint64_t address, unsigned bytes, unsigned align,
                            Access access, Place& out);

// The lanes of one access that all lie in their own CTA's shared memory, which is what nearly every access to
// shared memory is: checked, and told to whoever listens, once for all of them.
struct SharedLanes {
  alignas(64) std::uint32_t offset[kLanes];  // in the window; of a lane that does not execute: as of one that does
  std::uint32_t low = 0, high = 0;           // the smallest and the largest of them
  bool contiguous = false;                   // all 32 lanes execute, and lie one behind the other
  std::uint32_t span(unsigned bytes) const { return high + bytes - low; }
};
// False, and nothing done, where a lane lies elsewhere, breaks a rule, or would store over a live mbarrier object:
// resolve_lanes then says which.
bool shared_lanes(const Exec& x, Where where, Operand base, bool wide, unsigned bytes, Access access,
                  SharedLanes& out);
// The same of `.shared` addresses, whose alignment need not be their size.
bool shared_lanes(const Exec& x, bool own, const std::uint64_t address[kLanes], unsigned bytes, unsigned align,
                  Access access, SharedLanes& out);
// Whether a lane touches a byte that was never written. An aligned element of at most 32 bytes a lane.
bool any_undefined(const Cta& cta, const SharedLanes& lanes, unsigned bytes);
// All that the lanes touch is written now.
void define(Cta& cta, const SharedLanes& lanes, Mask mask, unsigned bytes);

// Bit i: byte i was never written; at most 64 bytes.
std::uint64_t undefined_at(const Exec& x, const Place& place, unsigned bytes);
// The place now holds something new, of which the bytes in @p undefined were never written. False: a fault
// was raised.
bool now_holds(const Exec& x, const Place& place, int lane, unsigned bytes, std::uint64_t undefined);

// Raises undefined_value and returns true where an address operand was never written.
bool address_undefined(const Exec& x, Operand base);

// The address operand as 64-bit values, offset added: of a 64-bit base, or of a 32-bit one (which wraps).
void addresses(const Exec& x, Operand base, bool wide, std::uint64_t out[kLanes]);
// Whether address i is out[0] + i * stride for all 32.
inline bool contiguous(const std::uint64_t a[kLanes], std::uint64_t stride) {
  std::uint64_t differs = 0;
  for (unsigned i = 0; i < kLanes; ++i) differs |= (a[i] - a[0]) ^ (i * stride);
  return differs == 0;
}

// --- for decoders ---

// Takes the state space; generic where none is named.
Where take_where(Modifiers& m, ptx::Space& space);
// Ordering and scope of an access.
struct Ordering {
  bool strong = false;  // volatile, relaxed, acquire, release, mmio: other threads may be meant to see it
  bool acquire = false, release = false;
  bool beyond_cluster = false;  // scope gpu or sys
};
Ordering take_ordering(Modifiers& m, bool atomic);
// Cache operators, eviction priorities, prefetch sizes: no effect on values. Sets @p hint where a
// cache-policy operand follows.
void take_cache(Modifiers& m, bool& hint);
// What the counter calls an access of @p where.
std::string_view family_of(Where where, bool constant);

}  // namespace ptxbench::emulator
