// The machine: a launch's grid, its clusters, CTAs, warps and lanes, and one decoded instruction.
//
// A cluster (one CTA where the launch has none) is what one host thread works on at a time; nothing in it is shared
// with other host threads but global memory. Grids whose clusters speak to each other through global memory (atomics,
// volatile or acquire loads, cooperative launches) are run by one host thread, their resident clusters interleaved in a
// fixed order: so a run's bytes never depend on the number of threads.
//
// Lanes of a warp are 32 contiguous values; an instruction is a Handler called with the mask of lanes that execute it.
// A warp is a set of Fragments: lanes at the same instruction. The scheduler runs the fragment whose block comes first
// in reverse postorder (so that divergent lanes meet again at the earliest place) and lets the others go on whenever it
// waits: no lane can keep another from running.
#pragma once

#include "emulator/kernel.hpp"

#include <ptxbench/core.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace ptxbench::emulator {

class Memory;      // memory.hpp: all that kernels read and write
class Barriers;    // mbarrier.hpp: the mbarrier objects of one CTA's shared memory
class AsyncQueue;  // async.hpp: operations under way in a cluster
class VectorClocks;  // vector_clocks.hpp: which warp knows of whose waits
class Races;       // races.hpp: accesses to shared memory that nothing orders
struct Cta;
struct Cluster;
struct Grid;
struct SharedTrack;  // memory.hpp: who wrote shared memory last
struct WgmmaState;  // op_wgmma.cpp: of a warpgroup
struct CopyGroups;  // op_cp_async.cpp, op_bulk.cpp: a warp's cp.async and bulk groups

// What a fragment waits for. Whoever brings it about calls Cluster::wake with the same key.
struct WaitKey {
  enum class Kind : std::uint8_t {
    none,             // it can run
    mbarrier,         // object at `address` of CTA `cta`
    named_barrier,    // number `address`
    cluster_barrier,
    converge,         // lanes that a .sync or .aligned instruction needs have not come (they are of this warp)
    warpgroup,        // the other warps of the warpgroup have not issued the same wgmma
    async_group,      // wait_group of cp.async, bulk copies or wgmma
    registers,        // setmaxnreg.inc
    grid,             // griddepcontrol.wait
    time,             // nanosleep, a poll that failed: runs again when nobody else can
  } kind = Kind::none;
  std::uint16_t cta = 0;        // rank
  std::uint32_t address = 0;
  bool operator==(const WaitKey&) const = default;
};

struct Fragment {
  std::uint32_t pc = 0;
  Mask mask = 0;
  WaitKey wait;
  // A wait that may give up (try_wait with its time limit) is woken with `timed_out` set when nobody can run: the
  // instruction then answers false. Twice in a row without any progress of the cluster is a deadlock.
  bool may_time_out = false, timed_out = false;
  std::uint64_t wait_value = 0;      // what the waiting instruction wants to remember (phase, group number); 0 once it is done
  // Fairness among the fragments of a warp: backward jumps since it was chosen, whether one polled since, its turn.
  std::uint32_t backward = 0;
  bool polled = false;
  std::uint32_t polls = 0;                 // backward jumps after polls without any progress of the cluster
  std::uint64_t progress_seen = 0;         // Cluster::progress at the first of them
  std::uint64_t last_run = 0;
  // For reports: the poll (kPoll) that it executed last, and what that found unfinished, where the handler says so.
  std::uint32_t poll = UINT32_MAX;
  WaitKey polled_for;
};

struct Warp {
  Cta* cta = nullptr;
  std::uint32_t index = 0;                 // in its CTA
  Mask all = 0, live = 0;                  // lanes that exist; that have not exited
  std::uint32_t* regs = nullptr;           // kernel.slot_words; 64-byte aligned
  Mask* undefined = nullptr;               // by slot: lanes whose value was never written
  Mask* preds = nullptr;                   // by predicate
  Mask* preds_undefined = nullptr;
  std::vector<Fragment> fragments;
  std::uint32_t register_quota = 0;        // setmaxnreg
  // Slots that an asynchronous operation will still read or write (wgmma's accumulators and A); the engine completes
  // the operation before an instruction touches one.
  std::vector<std::uint16_t> in_flight;    // by slot: number of operations
  std::uint32_t in_flight_total = 0;
  std::vector<std::uint8_t> unfenced;      // by slot: written since the last wgmma.fence (all, before the first)
  std::shared_ptr<CopyGroups> copies;      // made by whoever needs them first; gone with the CTA
  std::uint64_t steps = 0;                 // instructions executed
  bool ready = true;                       // it may have a fragment that can run
  std::uint32_t favoured = 0;              // instructions for which the running fragment is not overtaken
  Mask cluster_arrived[2] = {0, 0};        // barrier.cluster.arrive without its wait yet, by parity of the phase
};

// bar.sync and bar.arrive: one of 16 in a CTA.
struct NamedBarrier {
  std::uint32_t expected = 0;              // threads; 0: nobody there
  std::uint32_t arrived = 0;               // threads, counted by whole warps
  std::uint32_t arrived_warps = 0;         // a bit a warp
  bool everyone = false;                   // no thread count was given: all that have not exited
  std::array<Mask, 32> partial{};          // by warp: lanes that came while the others of their warp have not
  std::uint64_t generation = 1;
  std::uint32_t reduction_count = 0; bool reduction_and = true, reduction_or = false;   // bar.red
  std::uint32_t last_count = 0; bool last_and = true, last_or = false;                  // of the generation before
};

struct Cta {
  Cluster* cluster = nullptr;
  std::uint32_t rank = 0;                  // in its cluster
  std::array<std::uint32_t, 3> id{};       // %ctaid
  std::uint64_t linear_id = 0;
  std::vector<Warp> warps;
  std::vector<std::uint8_t> shared;        // the window from address 0 on: kSystemShared, static, dynamic
  std::vector<std::uint64_t> shared_undefined;  // a bit a byte
  std::vector<std::uint8_t> local;         // thread by thread, kernel.local_bytes each
  std::vector<std::uint64_t> local_undefined;
  std::unique_ptr<Barriers> barriers;
  std::shared_ptr<SharedTrack> track;      // made by memory.cpp when needed
  std::array<NamedBarrier, 16> named;
  std::uint32_t threads = 0, exited = 0;
  std::uint32_t free_registers = 0;        // given back by setmaxnreg.dec
  std::uint32_t sm = 0, slot = 0;          // where it resides: %smid
  std::vector<std::shared_ptr<WgmmaState>> warpgroups;  // by index of the warp / 4; null until one is needed
  bool done() const { return exited == threads; }
};

struct ClusterBarrier {
  std::uint32_t arrived = 0;               // threads
  std::uint64_t phase = 0;
};

struct Cluster {
  Grid* grid = nullptr;
  std::uint64_t index = 0;                 // in the grid
  std::array<std::uint32_t, 3> id{};       // %clusterid
  std::vector<std::unique_ptr<Cta>> ctas;
  std::unique_ptr<AsyncQueue> async;
  std::shared_ptr<VectorClocks> clocks;    // null where nothing is checked by them
  std::shared_ptr<Races> races;            // null where nobody looks for them
  ClusterBarrier barrier;
  std::uint64_t progress = 0;              // raised by everything that another warp could see
  std::uint64_t clock = 0;                 // instructions executed by all its warps
  std::mt19937_64 random;                  // seeded by (schedule, cluster index)
  // Makes fragments runnable that wait for @p key.
  void wake(const WaitKey& key);
};

// --- what a run found -----------------------------------------------------------------------------------------

enum class FaultKind : std::uint8_t {
  out_of_bounds, misaligned, undefined_value, barrier_misuse, deadlock, partial_collective, tensor_map, descriptor,
  shared_limit, exit_with_work, trap, assertion, illegal_instruction, step_limit, memory_limit, time_limit, unsupported,
};
std::string_view fault_name(FaultKind kind) noexcept;  // "out_of_bounds"

// Where in the code and the grid.
struct Site {
  std::uint32_t op = UINT32_MAX;           // index in Kernel::ops
  std::int64_t cta = -1;                   // linear
  std::int32_t warp = -1, lane = -1;
};
struct Fault {
  FaultKind kind = FaultKind::trap;
  Site site;
  std::string message;                     // what, the values, the rule
  std::string detail;                      // several lines: who waits for what
};
// A hazard or a note: the same one at the same instruction is kept once, with the number of times.
struct Remark {
  bool hazard = false;                     // else a note
  std::string code;                        // "missing_proxy_fence", "wgmma_register_touched"
  Site site;
  std::string message;
  std::uint64_t times = 1;
};

// How asynchronous operations complete and in which order ready warps run.
struct Schedule {
  enum class Mode : std::uint8_t { eager, lazy, random } mode = Mode::eager;
  std::uint64_t seed = 0;                  // random: of everything
};

struct Limits {
  std::uint64_t steps = 0;                 // warp instructions of one launch; 0: no limit
  std::uint64_t deadline_ns = 0;           // steady clock; 0: none
  std::uint32_t threads = 0;               // host threads; 0: as many as the machine has
};

struct Grid {
  const Kernel* kernel = nullptr;
  Memory* memory = nullptr;
  std::array<std::uint32_t, 3> dim{1, 1, 1}, block{1, 1, 1}, cluster_dim{1, 1, 1};
  bool has_cluster = false, cooperative = false;
  std::uint32_t dynamic_shared_bytes = 0, shared_bytes = 0;  // shared_bytes: the whole window, kSystemShared included
  std::uint64_t parameters = 0;            // address of the parameter buffer in device memory
  std::uint64_t cooperative_workspace = 0; // %envreg1 (high half) and %envreg2; 0 where the grid is not cooperative
  std::uint64_t launch_index = 0;          // %gridid
  std::uint32_t sm_count = 1, ctas_per_sm = 1;
  // Launched while the one before may still run (programmatic dependent launch); the next launch is such a one, so that
  // what this one writes is remembered.
  bool dependent = false, remembers_writes = false;
  // Remembers which bytes of global memory are accessed, to say whether one that is written is accessed again.
  bool follows_global = false;
  bool watches_global() const { return dependent || remembers_writes || follows_global; }
  bool finds_races = false;                // in shared memory
  Schedule schedule;
  Limits limits;
};

// What a handler tells the engine.
enum class Flow : std::uint8_t {
  next,     // done; go on
  jump,     // done; the handler set the fragment's pc
  again,    // not done: x.fragment.wait says what for; the same instruction runs again for the same lanes
  split,    // the handler replaced the fragment by others (branches, exits)
  stop,     // a fault was raised, or somebody else's is to be reported
};

// One instruction being executed: what a handler gets.
struct Exec {
  Grid& grid;
  Cluster& cluster;
  Cta& cta;
  Warp& warp;
  Fragment& fragment;                      // valid until the handler adds fragments
  const Kernel& kernel;
  const Op& op;
  Mask mask;                               // lanes that execute: of the fragment, guard on
  class Run& run;                          // run.hpp: faults, remarks, counts, printf

  // Operand number @p i of the op as lanes. Constants lie in the kernel's pool and are never written.
  const std::uint32_t* src(unsigned i) const { return lanes(kernel.operands[op.first_operand + i]); }
  std::uint32_t* dst(unsigned i) const { return warp.regs + kernel.operands[op.first_operand + i]; }
  const std::uint64_t* src64(unsigned i) const { return reinterpret_cast<const std::uint64_t*>(src(i)); }
  std::uint64_t* dst64(unsigned i) const { return reinterpret_cast<std::uint64_t*>(dst(i)); }
  Operand operand(unsigned i) const { return kernel.operands[op.first_operand + i]; }
  const std::uint32_t* lanes(Operand o) const { return o >= 0 ? warp.regs + o : kernel.constants.data() + ~o; }
  // Predicates as operands: index in Warp::preds; negative: ~(mask of a constant) is 0 or all.
  Mask pred(unsigned i) const {
    const Operand o = operand(i);
    return o >= 0 ? warp.preds[o] : o == kPredTrue ? ~Mask{0} : 0;
  }
  Mask pred_undefined(unsigned i) const {
    const Operand o = operand(i);
    return o >= 0 ? warp.preds_undefined[o] : 0;
  }
  // Of the lanes in `mask`; @p undefined: those whose value depends on one never written.
  void set_pred(unsigned i, Mask value, Mask undefined = 0) const {
    const Operand o = operand(i);
    if (o < 0) return;  // the sink
    warp.preds[o] = (warp.preds[o] & ~mask) | (value & mask);
    warp.preds_undefined[o] = (warp.preds_undefined[o] & ~mask) | (undefined & mask);
  }
  void set_undefined(unsigned i, Mask undefined) const {  // of a register destination, lanes in `mask`
    Mask& u = warp.undefined[slot_of(operand(i))];
    u = (u & ~mask) | (undefined & mask);
  }
  Mask undefined_of(Operand o) const { return o >= 0 ? warp.undefined[slot_of(o)] : 0; }
  Site site(int lane = -1) const;
  std::uint32_t thread(int lane) const { return warp.index * kLanes + static_cast<std::uint32_t>(lane); }
  // Raises a fault here and returns Flow::stop.
  Flow fault(FaultKind kind, int lane, std::string message) const;
  void remark(bool hazard, std::string_view code, std::string message, int lane = -1) const;
  // For a .sync instruction: whether all lanes of @p members that have not exited are in `mask`. If not the fragment is
  // set to wait for them (WaitKey::converge), and the handler returns Flow::again. `.aligned` asks for warp.all.
  bool converged(Mask members) const;
};

// Calls f(lane) for each lane of @p mask.
template <class F>
inline void for_lanes(Mask mask, F&& f) {
  for (; mask != 0; mask &= mask - 1) f(static_cast<int>(__builtin_ctz(mask)));
}

// Writes @p value(lane) to the lanes of @p mask of d. Full masks are one loop that the compiler vectorises.
template <class T, class F>
inline void write_lanes(T* d, Mask mask, F&& value) {
  if (mask == ~Mask{0}) {
    T out[kLanes];
    for (unsigned i = 0; i < kLanes; ++i) out[i] = value(i);
    for (unsigned i = 0; i < kLanes; ++i) d[i] = out[i];
  } else {
    for (Mask m = mask; m != 0; m &= m - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(m));
      d[i] = value(i);
    }
  }
}

}  // namespace ptxbench::emulator
