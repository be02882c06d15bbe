/// @file
/// Cubins: reading the ELF, and which machine instructions a kernel holds, by opcode and family.
///
/// Pure functions over bytes; hostile input gives an Error, never a crash.
#pragma once

#include <ptxbench/core.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxbench::sass {

/// One parameter of a kernel; its offset is from the start of the parameter buffer, in bytes.
struct Parameter {
  std::uint32_t ordinal = 0, offset = 0, size = 0;
  /// Whether the kernel's code reads it: false only where that is certain. Empty: unknown, because the code reads
  /// parameters through an index or takes the address of one.
  std::optional<bool> read;
};

/// One kernel (an entry) of a cubin.
struct Kernel {
  std::string symbol;
  std::vector<Parameter> parameters;      ///< by ordinal, 0 to n-1 without gaps
  std::uint32_t parameter_bytes = 0;      ///< size of the parameter buffer
  std::uint32_t parameter_base = 0;       ///< where the buffer begins in constant bank 0
  int registers = 0;
  std::uint64_t static_shared_bytes = 0;  ///< without what the system reserves (1 KiB a CTA on 9.0 and later)
  std::uint64_t local_bytes = 0;          ///< stack of a thread, functions it calls included
  std::optional<std::array<std::uint32_t, 3>> required_block;    ///< .reqntid
  std::optional<std::array<std::uint32_t, 3>> max_block;         ///< .maxntid
  std::optional<std::array<std::uint32_t, 3>> required_cluster;  ///< .reqnctapercluster
  std::uint32_t max_cluster_rank = 0;     ///< .maxclusterrank; 0: not stated
  bool explicit_cluster = false;          ///< .explicitcluster: must be launched as clusters
  bool blocks_are_clusters = false;       ///< compiled so that a launch's grid counts clusters (__block_size__)
  /// The code addresses shared memory though it declares none: it must be given dynamic shared memory. (The file
  /// does not tell for a kernel that has static shared memory too: false.)
  bool uses_dynamic_shared = false;
  std::uint64_t code_offset = 0, code_bytes = 0;  ///< in the file; functions that it calls included
};

/// A `__device__`/`__constant__` symbol with its initial image. String literals are among them ("$str", ...).
struct Global {
  std::string symbol;
  std::uint64_t bytes = 0;
  bool writable = false;                  ///< by device code: not in a constant bank
  bool initialised = false;               ///< has an image in the file; else zero
  std::uint64_t image_offset = 0;         ///< in the file, if initialised
};

struct Cubin {
  int sm = 0;                             ///< 90, 100, ...
  std::string arch;                       ///< "sm_90a", where the file tells
  std::vector<Kernel> kernels;
  std::vector<Global> globals;
  bool uses_device_heap = false;          ///< refers to device malloc/free
  std::vector<std::string> undefined;     ///< symbols that the module needs from elsewhere (vprintf, malloc...)
};

Result<Cubin> read_cubin(std::span<const std::uint8_t> file);

/// A 16-byte instruction word.
struct Word {
  std::uint64_t low = 0, high = 0;
};
struct Opcode {
  std::string mnemonic;                   ///< "HGMMA", "UTMALDG", ... or "unknown:0x1f0"
  std::string family;                     ///< "wgmma", ..., "other"
  bool known = false;
};
/// Names the operation of @p word on compute capability @p sm.
Opcode decode(int sm, Word word);
/// The operation's whole name as nvdisasm prints it, up to the operands: "HGMMA.64x256x16.F32.BF16", "UTMALDG.3D.MULTICAST.2CTA",
/// "SYNCS.PHASECHK.TRANS64.TRYWAIT". With all modifiers for the families `wgmma`, `wgmma_sync`, `mma_sync`, `tcgen05_*`, `tma_*`,
/// `bulk_copy`, `mbarrier`, `fence_proxy_async`, `cluster_barrier`, `cluster_launch`, `dsmem`, `setmaxnreg`, `elect`, `pdl`,
/// `ldmatrix`, `stmatrix` and `cp_async`; of other families the mnemonic alone. A value that is no modifier nvdisasm knows is
/// printed as its number (".0x5"), an unknown operation as "unknown:0x1f0"; nothing is dropped.
std::string operation_name(int sm, Word word);
/// Bytes that each thread accesses by a load, store, atomic or reduction: families `global`, `shared`, `local`, `constant`,
/// `atomics`; LDGSTS, STAS, REDAS; of `ldmatrix` and `stmatrix` the bytes of the thread's registers. 0 for every other word (TMA and
/// bulk copies, whose size is elsewhere, tensor memory, textures, control of caches), and for a width that is unknown.
std::uint32_t access_bytes(int sm, Word word);

/// D[m,n] += A[m,k] * B[k,n]. Of a sparse one, k counts A's zeros too: half of the products are made.
struct MmaShape {
  std::uint16_t m = 0, n = 0, k = 0;
  bool sparse = false;
};
/// The shape of a matrix instruction (families `wgmma` and `mma_sync`); of `wgmma` that of the warpgroup. Nothing for other
/// words, and for tcgen05.mma, whose shape is in a descriptor that the program makes at run time.
std::optional<MmaShape> mma_shape(int sm, Word word);

/// Where floating-point operations are executed: by the matrix instructions that the architecture brought (wgmma on 9.x,
/// tcgen05.mma on 10.x), by those of a warp, or by ordinary arithmetic.
enum class FlopPipe : std::uint8_t { none, arch_mma, mma_sync, fp32, fp64, half };
struct Flops {
  FlopPipe pipe = FlopPipe::none;
  /// Of each thread whose predicate is on: a multiply-add is two, an operation on a packed pair twice one of its halves. A
  /// matrix instruction's operations, integers' too, are shared out evenly over its warp's 32 threads, or the warpgroup's 128,
  /// since each of the four warps executes it. Moves, negations and conversions by arithmetic on RZ are none. Empty: unknown.
  std::optional<std::uint32_t> per_thread = 0;
};
Flops flops_of(int sm, Word word);

/// A line of a source file, as the compiler named the file.
struct SourcePlace {
  std::string file;
  std::uint32_t line = 0;
};
/// From the instruction at @p pc_offset on, up to the next one that is listed, code is of these lines.
struct SourceLine {
  std::uint32_t pc_offset = 0;      ///< bytes from the kernel's first instruction
  std::vector<SourcePlace> places;  ///< the line itself; where it is inlined, then the call's line, that one's, ...
};
/// The line table of @p kernel, by pc offset; empty where the cubin has none (compiled without -lineinfo). At one
/// offset the last entry holds. Errors: ErrorCode::parse, for a table that is broken or of a version that is not read.
Result<std::vector<SourceLine>> source_lines(std::span<const std::uint8_t> file, const Kernel& kernel);
/// The entry that holds at @p pc_offset, or nullptr. @p lines: as source_lines gives them.
const SourceLine* line_at(std::span<const SourceLine> lines, std::uint32_t pc_offset) noexcept;

/// What a family is. docs/sass.md explains them.
struct Family {
  std::string_view name, description;
};
std::span<const Family> families();
/// The mnemonics of @p family on compute capability @p sm, sorted; none for a name that is no family.
std::vector<std::string> family_mnemonics(int sm, std::string_view family);

struct CensusEntry {
  std::string opcode, family;
  std::uint64_t instructions = 0;
};
/// Counts of the kernel's instructions by opcode, most frequent first. Padding (NOPs and the trailing
/// self-branch) after the last EXIT is counted like everything else.
Result<std::vector<CensusEntry>> census(std::span<const std::uint8_t> file, const Cubin& cubin,
                                        const Kernel& kernel);

/// Offsets of the kernel's instructions, in bytes from its first and ascending, that run a different number of times
/// from run to run, because a branch or a guard decides about them whose predicate timing decides: of a wait for an
/// mbarrier, a load that polls, an atomic's result, a clock. Where such a value is passed on through memory, more are
/// listed than vary. Error: the kernel is not of this file, or larger than is analysed (4 MiB of code).
Result<std::vector<std::uint32_t>> varying_instructions(std::span<const std::uint8_t> file, const Cubin& cubin,
                                                        const Kernel& kernel);

/// One tcgen05.mma of a kernel.
struct Tcgen05Mma {
  std::uint32_t pc_offset = 0;    ///< bytes from the kernel's first instruction
  bool guarded = false;           ///< has a predicate other than "always"
  /// Of one execution, whose matrices with .cta_group::2 are the pair's. Where the instruction descriptor is a constant
  /// whichever way the code came; else nothing.
  std::optional<MmaShape> shape;
};
/// All of them, by offset. Errors as varying_instructions.
Result<std::vector<Tcgen05Mma>> tcgen05_mmas(std::span<const std::uint8_t> file, const Cubin& cubin,
                                             const Kernel& kernel);

/// One TMA copy or reduction of a tensor's tile, or one bulk copy, of a kernel.
struct BulkAccess {
  enum class Direction : std::uint8_t {
    load,   ///< from global memory to shared
    store,  ///< or reduction, from shared memory to global
    shared  ///< between the shared memories of a cluster
  };
  std::uint32_t pc_offset = 0;
  bool guarded = false;
  Direction direction = Direction::load;
  bool tensor = true;  ///< by a tensor map; false: contiguous bytes
  bool tiled = true;   ///< of a tensor: one box; false: im2col, gather, scatter
  /// Of a tensor: where its map is in the parameter buffer, in bytes, where that is the same whichever way the code came.
  std::optional<std::uint32_t> map_offset;
  std::optional<std::uint32_t> parameter;  ///< the ordinal of the parameter in which that is
  std::optional<std::uint32_t> bytes;  ///< of a bulk copy whose size is a constant
};
/// All of them, by offset. Errors as varying_instructions.
Result<std::vector<BulkAccess>> bulk_accesses(std::span<const std::uint8_t> file, const Cubin& cubin,
                                              const Kernel& kernel);

}  // namespace ptxbench::sass
