#include <ptxbench/sass.hpp>

namespace ptxbench::sass {
namespace {

// Which operation belongs where is in opcodes.csv (from tools/opcode_table.py); here is what a family means.
constexpr Family kFamilies[] = {
    {"wgmma", "Warpgroup matrix multiplication (wgmma.mma_async), one instruction a warp"},
    {"wgmma_sync", "Fences and waits of wgmma (wgmma.fence, commit_group, wait_group)"},
    {"mma_sync", "Warp matrix multiplication (mma.sync, wmma), of every operand type"},
    {"tcgen05_mma", "Matrix multiplication into tensor memory (tcgen05.mma)"},
    {"tcgen05_ld", "Loads from tensor memory to registers (tcgen05.ld)"},
    {"tcgen05_st", "Stores from registers to tensor memory (tcgen05.st)"},
    {"tcgen05_cp", "Copies from shared to tensor memory, and shifts in it (tcgen05.cp, tcgen05.shift)"},
    {"tcgen05_alloc", "Allocation of tensor memory (tcgen05.alloc, dealloc, relinquish_alloc_permit)"},
    {"tcgen05_commit", "Completion of tensor-memory work (tcgen05.commit, tcgen05.wait::st)"},
    {"tma_load",
     "TMA loads of a tensor's tile to shared memory of one CTA or a CTA pair (cp.async.bulk.tensor)"},
    {"tma_multicast", "TMA loads of a tensor's tile to several CTAs of a cluster; not counted in tma_load"},
    {"tma_store", "TMA stores of a tile from shared memory (cp.async.bulk.tensor)"},
    {"tma_reduce", "TMA reductions of a tile into global memory (cp.reduce.async.bulk.tensor)"},
    {"tma_prefetch", "TMA prefetches of a tile into L2 (cp.async.bulk.prefetch.tensor)"},
    {"tma_control", "Commits of bulk groups; prefetch and invalidation of tensor maps"},
    {"bulk_copy",
     "Bulk copies, reductions and prefetches of contiguous bytes (cp.async.bulk), multicast included"},
    {"mbarrier", "Operations of mbarriers in shared memory: init, arrive, expect_tx, test, try_wait, inval"},
    {"fence_proxy_async", "Fences between ordinary accesses and the async proxy (fence.proxy.async)"},
    {"fence", "Memory fences (fence, membar, and the error barriers that go with them)"},
    {"cluster_barrier", "Barrier of a cluster, arrive and wait (barrier.cluster)"},
    {"cluster_launch", "Requests for another CTA's work (clusterlaunchcontrol.try_cancel)"},
    {"dsmem",
     "Asynchronous stores and reductions to another CTA's shared memory (st.async, red.async); plain "
     "accesses to it are generic and count as global or atomics"},
    {"setmaxnreg", "Moving registers between warpgroups (setmaxnreg)"},
    {"elect", "Election of one thread of a warp (elect.sync)"},
    {"pdl", "Programmatic dependent launch (griddepcontrol.wait, launch_dependents)"},
    {"ldmatrix", "Loads of matrix fragments from shared memory (ldmatrix)"},
    {"stmatrix", "Stores of matrix fragments to shared memory (stmatrix)"},
    {"cp_async", "Copies from global to shared memory by threads, and their groups (cp.async)"},
    {"sfu", "Approximate functions of the special function unit (rcp, rsqrt, ex2, lg2, sin, cos, tanh)"},
    {"shuffle", "Exchange between the threads of a warp (shfl)"},
    {"vote", "Votes and matches over a warp (vote, match)"},
    {"redux", "Reductions over a warp (redux)"},
    {"atomics", "Atomics and reductions of threads on global, shared and generic memory (atom, red)"},
    {"global", "Loads, stores and cache control of global memory, and through generic addresses"},
    {"shared", "Loads and stores of shared memory"},
    {"local", "Loads and stores of local memory: stack and spills"},
    {"constant", "Loads from constant banks; most arithmetic reads them without a load"},
    {"texture", "Textures and surfaces"},
    {"barrier", "Barriers of a CTA or a warp (barrier, bar.warp.sync)"},
    {"fp32", "Arithmetic, comparison and selection of 32-bit floats, packed pairs included"},
    {"fp64", "Arithmetic and comparison of 64-bit floats"},
    {"half", "Arithmetic and comparison of packed halves, bfloat16 and fp8 (HFMA2.MMA too: it is no matrix work)"},
    {"int", "Integers, logic, shifts, permutations, moves, selections and predicates"},
    {"conversion", "Conversions between number types, and rounding to integers"},
    {"uniform", "The uniform datapath: once a warp; integers, floats and moves from and to it"},
    {"control", "Branches, calls, convergence, waits for scoreboards, sleep, breakpoints"},
    {"other", "Everything else: no-ops and padding, special registers, and operations that the table lacks"},
};

}  // namespace

std::span<const Family> families() { return kFamilies; }

}  // namespace ptxbench::sass
