// Memory as kernels see it. Every access of every proxy goes through here: bounds, alignment, values never written, and
// the place where a detector of races would listen.
//
// Addresses: global, constant and parameter memory share one 64-bit space of blocks with unmapped gaps (kGlobalBase
// up); generic addresses of shared memory are kSharedWindow + (rank << 24 | offset), of local memory kLocalWindow +
// offset in the thread's frame. A `.shared` address carries the CTA's rank in bits 24 and up.
#pragma once

#include "emulator/machine.hpp"

#include <ptxbench/device.hpp>

#include <cstdint>
#include <map>
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
  std::vector<Named> named;                      // by address
  std::vector<std::uint64_t> undefined;          // a bit a byte; empty: all of it is defined
};

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
  // "A[3, 17] (bf16)" or "17 bytes behind the end of A"; the address where nothing is near.
  std::string describe(std::uint64_t address) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Bits of bytes that were never written. `any_undefined` over [offset, offset + bytes).
bool any_undefined(const std::vector<std::uint64_t>& bits, std::uint64_t offset, std::uint64_t bytes) noexcept;
void set_undefined(std::vector<std::uint64_t>& bits, std::uint64_t offset, std::uint64_t bytes, bool undefined) noexcept;

}  // namespace ptxbench::emulator
