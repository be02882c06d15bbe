// A kernel as the machine runs it: PTX decoded once into operations over slots. Calls are inlined while decoding.
//
// Registers live in slots of 32 lanes: a slot is 32 words of 32 bits. A register of up to 32 bits has one slot (8- and
// 16-bit values lie in the low bits, the bits above are zero), one of 64 bits two that follow each other (32 contiguous
// 64-bit values), .b128 four (two planes of 32 64-bit values: low halves, then high halves). Predicates are masks of
// their own. Slots are shared by registers whose lives do not overlap; registers that wgmma works on have slots of
// their own, since they are in flight after the instruction.
#pragma once

#include "ptx/module.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxbench::emulator {

using Mask = std::uint32_t;                     // a bit a lane
inline constexpr unsigned kLanes = 32;
inline constexpr std::uint32_t kSystemShared = 1024;  // of each CTA's window (facts: static shared starts at 0x400)

// Word offset in Warp::regs (a multiple of kLanes); negative: ~o is a word offset in Kernel::constants.
// For predicates: index in Warp::preds; kPredTrue, kPredFalse for constants.
using Operand = std::int32_t;
inline constexpr Operand kPredTrue = -1, kPredFalse = -2, kNoOperand = INT32_MIN;
inline std::uint32_t slot_of(Operand o) { return static_cast<std::uint32_t>(o) / kLanes; }

struct Exec;
enum class Flow : std::uint8_t;
using Handler = Flow (*)(Exec&);

// What the engine does around a handler.
enum OpFlags : std::uint16_t {
  kNone = 0,
  // Lanes of every register destination become undefined where any register source is, else defined. Without it the
  // handler keeps Warp::undefined itself for its destinations (loads, selections, predicates, collectives).
  kPropagate = 1 << 0,
  kBranch = 1 << 1,          // the guard decides where lanes go: never skipped, the handler sees the guard itself
  kAligned = 1 << 2,         // needs the whole warp: the engine converges it before the handler runs
  kAsync = 1 << 3,           // issues an asynchronous operation (kernels with any are run under several schedules)
  kCommunicates = 1 << 4,    // lets CTAs see each other through global memory
  kSideEffect = 1 << 5,      // another warp may see it: counts as progress
  kPoll = 1 << 6,            // a read that loops may wait on (volatile or acquire loads, test_wait): yields
  kMayBeInFlight = 1 << 7,   // touches a register that wgmma works on; set while decoding
  kStrong = 1 << 8,          // an access or a fence by which threads synchronise through memory
  kAcquires = 1 << 9, kReleases = 1 << 10,  // what kind of one
  kFence = 1 << 11,          // it is a fence
};

// How exact a form's result is.
enum class Fidelity : std::uint8_t {
  exact,        // to the bit by the ISA or by measurement
  bounded,      // within the error that `Op::info` states
  unmeasured,   // by the rule that holds for its kin
  ptxas,        // exact as it stands, but ptxas may fuse or fold it to other bits
};

// One decoded instruction. Operands lie in Kernel::operands from `first_operand` on: destinations first
// (`destinations` of them, registers only), then sources; predicate operands and plain numbers come in the places that
// the handler's own decoder chose.
struct Op {
  Handler run = nullptr;
  std::uint32_t first_operand = 0;
  std::uint16_t destinations = 0, sources = 0;  // register operands, for kPropagate and for what is in flight
  std::uint16_t flags = 0;
  Operand guard = kPredTrue;                    // predicate; kPredTrue: none
  bool guard_negated = false;
  std::uint8_t a = 0, b = 0, c = 0, d = 0;      // what a handler's decoder wants to keep: variants, widths
  std::int64_t imm = 0;                         // address offset, branch target, wait count
  std::uint32_t info = 0;                       // index in Kernel::info
};

// Of one PTX instruction; an instruction may become several ops (a special register read before it), a function that
// was inlined twice has its instructions' infos twice, with the same place.
struct OpInfo {
  std::string text;             // "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
  std::string family;           // the counter's: "tma_load", "wgmma", "mbarrier", "fp32", ...; empty: an auxiliary op of
                                // the instruction (a special register read before it), which is no instruction itself
  Fidelity fidelity = Fidelity::exact;
  ptx::Position where;
  std::int32_t location = -1;   // in Module::locations
  std::string function;         // that it was inlined from; empty in the kernel itself
  bool in_spin_loop = false;    // a loop that waits: how often it runs depends on timing
};

// Where shared, local and other variables of the kernel lie.
struct Placed {
  std::string name;
  ptx::Space space = ptx::Space::shared;
  std::uint64_t address = 0, bytes = 0;  // in its window (shared: from kSystemShared on; local: in a thread's frame)
};

struct Kernel {
  std::string name;
  std::shared_ptr<const ptx::Module> module;
  std::vector<Op> ops;
  std::vector<Operand> operands;
  alignas(64) std::vector<std::uint32_t> constants;  // a lane vector each (two for 64 bits)
  std::vector<OpInfo> info;
  std::vector<std::uint32_t> branch_tables;  // of brx.idx: number of targets, then ops
  std::vector<std::uint32_t> rank;      // of each op: order of its block in reverse postorder, then place in it
  std::uint32_t slot_words = 0, predicates = 0;
  std::uint32_t static_shared_bytes = 0;       // behind kSystemShared
  std::uint32_t dynamic_shared_align = 16;
  std::uint32_t local_bytes = 0;               // a thread
  std::vector<std::uint32_t> parameter_offsets;
  std::uint32_t parameter_bytes = 0;
  std::vector<Placed> placed;
  bool any_async = false, communicates = false, has_setmaxnreg = false;
  bool shares = false;                         // its warps wait for each other
  const ptx::Function* function = nullptr;     // in `module`
};

}  // namespace ptxbench::emulator
