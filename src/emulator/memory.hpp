// Memory as kernels see it. Every access of every proxy goes through here: bounds, alignment, values never written, and
// the place where a detector of races would listen.
//
// Addresses: global, constant and parameter memory share one 64-bit space of blocks with unmapped gaps (kGlobalBase
// up); generic addresses of shared memory are kSharedWindow + (rank << 24 | offset), of local memory kLocalWindow +
// offset in the thread's frame. A `.shared` address carries the CTA's rank in bits 24 and up.
#pragma once

#include "emulator/machine.hpp"

#include <ptxbench/device.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ptxbench::emulator {

inline constexpr std::uint64_t kGlobalBase = 0x0000'7000'0000'0000;
inline constexpr std::uint64_t kSharedWindow = 0x0000'7f10'0000'0000;
inline constexpr std::uint64_t kLocalWindow = 0x0000'7f20'0000'0000;

enum class Access : std::uint8_t { read, write, atomic };
enum class Proxy : std::uint8_t { generic, async };

// Who accesses: an instruction, or an operation that one issued earlier.
struct Agent {
  class Run& run;
  Grid& grid;
  Cluster& cluster;
  Cta& cta;
  Site site;
};

// A part of a block that has a name: a tensor, a workspace, a variable.
struct Named {
  std::uint64_t address = 0, bytes = 0;
  MemoryLabel label;
};

// One block of global memory. Where a block has named parts only these may be accessed by kernels.
struct Block {
  std::uint64_t address = 0, bytes = 0;
  std::uint8_t* data = nullptr;
  bool read_only = false;                        // constants, parameters
  std::vector<Named> named;                      // by address, none overlaps another
  // A bit a byte, read and written with atomic_ref; null: all of it is defined.
  std::atomic<std::uint64_t*> undefined{nullptr};
  // The same of what the launch that runs has written, and the one before it; null: nothing, or nobody asks.
  std::atomic<std::uint64_t*> written{nullptr}, written_before{nullptr};
  // For launches with Grid::follows_global: what the one that runs has read, and written.
  std::atomic<std::uint64_t*> followed_reads{nullptr}, followed_writes{nullptr};
};

// Global addresses [begin, end) that kernels may access, all in one block (and in one named part, where it has any).
struct Span {
  std::uint64_t begin = 0, end = 0;
  std::uint8_t* data = nullptr;                  // of `begin`
  Block* block = nullptr;
  bool writable = false, output = false;
  bool holds(std::uint64_t address, std::uint64_t bytes) const {
    return address >= begin && bytes <= end - begin && address - begin <= end - begin - bytes;
  }
};

class MapChanges;  // map_changes.hpp

class Memory {
 public:
  explicit Memory(std::uint64_t limit_bytes);
  ~Memory();
  // --- the host's side; not while a grid runs ---
  Result<std::uint64_t> allocate(std::uint64_t bytes, bool read_only = false);  // 256-byte aligned; zeroed
  void release(std::uint64_t address) noexcept;
  void name(std::uint64_t address, std::uint64_t bytes, MemoryLabel label);
  std::uint8_t* host(std::uint64_t address, std::uint64_t bytes = 1) noexcept;  // null where not in one block
  Block* find(std::uint64_t address) noexcept;
  std::uint64_t live_bytes() const noexcept;
  // A launch begins: what the one before wrote (where it was remembered) is what written_before tells.
  void next_launch() noexcept;
  // The host wrote there: the bytes are defined from now on.
  void define(std::uint64_t address, std::uint64_t bytes) noexcept;
  // The host says that nobody has written there yet.
  void undefine(std::uint64_t address, std::uint64_t bytes);
  // The host copied: bytes are as defined as those that they come from.
  void copy_undefined(std::uint64_t to, std::uint64_t from, std::uint64_t bytes);

  // --- the kernels' side. Null (and a fault raised at `agent.site`) where the rule is broken. The pointer is good for
  // `bytes` bytes. Alignment is checked against @p align. ---
  // Host threads of one grid may call these at once: the block table does not change meanwhile.
  std::uint8_t* global(Agent& agent, std::uint64_t address, std::uint64_t bytes, std::uint32_t align, Access access);
  // @p address as in a register (rank in bits 24 and up); `own`: .shared::cta, where rank 0 in the bits means the
  // agent's CTA too. Sets @p where to the CTA that it lies in and @p offset to the place in its window.
  std::uint8_t* shared(Agent& agent, std::uint32_t address, std::uint32_t bytes, std::uint32_t align, Access access,
                       Proxy proxy, bool own, Cta*& where, std::uint32_t& offset);
  std::uint8_t* local(Agent& agent, std::uint32_t thread, std::uint64_t offset, std::uint32_t bytes,
                      std::uint32_t align, Access access);
  // What kernels may access around @p address, for many accesses in a row; empty where nothing.
  Span span(std::uint64_t address) const noexcept;
  // Whether any of the bytes was never written; how: bit i of @p into for byte i (at most 64 bytes; into may be null).
  // The bytes lie in one block.
  bool global_undefined(std::uint64_t address, std::uint64_t bytes, std::uint64_t* into = nullptr) const noexcept;
  bool any_global_undefined() const noexcept;    // a cheap "no" for all of memory
  // What was stored at [address, address + bytes), at most 64 bytes, and which bytes of it (bits of @p undefined) were
  // never written. False and a fault where such a byte goes to an output. To be called after each store while
  // any_global_undefined() or @p undefined is not zero.
  bool stored(Agent& agent, std::uint64_t address, std::uint64_t bytes, std::uint64_t undefined);
  // For launches of which Grid::watches_global: remembers a write, remarks a read of what the launch before wrote. Reads
  // and writes through `global` are watched there; those through a span by who makes them.
  void watch(Agent& agent, std::uint64_t address, std::uint64_t bytes, Access access);
  // Whether a launch with Grid::follows_global has written a byte that it accessed by another instruction or lane too,
  // by whomever and however: where not, no order of accesses to global memory within a launch can matter. Errs towards
  // true: a load may count more bytes than it reads.
  bool reused() const noexcept;
  void forget_reuse() noexcept;
  // Tensor maps that the launch under way has changed.
  MapChanges& map_changes() noexcept;
  // "A[3, 17] (bf16)" or "17 bytes behind the end of A"; the address where nothing is near.
  std::string describe(std::uint64_t address) const;

 private:
  void remember_write(std::uint64_t address, std::uint64_t bytes);
  void follow(std::uint64_t address, std::uint64_t bytes, Access access);
  bool written_before(std::uint64_t address, std::uint64_t bytes) const noexcept;
  struct State;
  std::unique_ptr<State> state_;
};

// Bits of bytes that were never written. `any_undefined` over [offset, offset + bytes).
bool any_undefined(const std::vector<std::uint64_t>& bits, std::uint64_t offset, std::uint64_t bytes) noexcept;
// Bits [offset, offset + bytes), at most 64, in the low ones of the result.
std::uint64_t undefined_bits(const std::vector<std::uint64_t>& bits, std::uint64_t offset, unsigned bytes) noexcept;
void put_undefined_bits(std::vector<std::uint64_t>& bits, std::uint64_t offset, unsigned bytes,
                        std::uint64_t value) noexcept;
void set_undefined(std::vector<std::uint64_t>& bits, std::uint64_t offset, std::uint64_t bytes, bool undefined) noexcept;

// What a CTA's shared memory remembers beside its bytes, where a kernel has asynchronous operations (`Cta::track`).
// Times are Cluster::clock. A generic write that an async-proxy read sees needs fence.proxy.async in between, by the
// writing or the issuing warp.
struct AsyncReads;  // overwrites.hpp
struct SharedTrack {
  // By granule of 16 bytes: time of the last generic write << 16 | rank of the writer << 8 | its warp; 0: none.
  std::vector<std::uint64_t> written;
  std::vector<std::uint32_t> writers;            // by granule: op of the last write, of any proxy; kernel.ops.size(): none
  std::vector<std::uint64_t> fenced;             // by warp of this CTA: time of its last fence.proxy.async
  std::shared_ptr<AsyncReads> reads;             // of wgmma and of bulk stores; null where there were none
  // Where mbarrier objects lie, as far as Barriers had any when it was looked at last.
  std::size_t barriers_seen = 0;
  std::uint32_t barrier_low = UINT32_MAX, barrier_high = 0;
};
// Null where the kernel has no asynchronous operations.
SharedTrack* shared_track(const Grid& grid, Cta& cta);
// A fence.proxy.async by @p warp of @p cta.
void proxy_fence(const Grid& grid, Cta& cta, std::uint32_t warp);
// For who writes shared memory without Memory::shared: a generic write by agent.site.warp of agent.cta.
void note_generic_write(Agent& agent, Cta& where, std::uint32_t offset, std::uint32_t bytes);
// The same of the lanes of @p mask, @p bytes each.
void note_generic_writes(Agent& agent, Cta& where, const std::uint32_t offset[kLanes], Mask mask, std::uint32_t bytes);
// For who reads shared memory in the async proxy without Memory::shared. Remarks a missing fence.
void note_async_read(Agent& agent, Cta& where, std::uint32_t offset, std::uint32_t bytes);
void note_async_write(Agent& agent, Cta& where, std::uint32_t offset, std::uint32_t bytes);
// The first byte of [offset, offset + bytes) that was never written, and what wrote last beside it: for reports.
std::string hole_text(const Grid& grid, const Cta& cta, std::uint32_t offset, std::uint32_t bytes);
// Offset of a live mbarrier object that [offset, offset + bytes) touches; -1 where none.
std::int64_t live_barrier_in(Cta& cta, std::uint32_t offset, std::uint32_t bytes);

}  // namespace ptxbench::emulator
