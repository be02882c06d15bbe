/// @file
/// Which instructions did a candidate execute? One run of its launch plan, counted by SASS instruction, its
/// outputs verified like any trial's; deciding is pure code over the evidence (`compose_counts`).
///
/// `run_count` belongs to the Device's thread and runs candidate code. CUPTI gives its numbers once in a
/// process's life, so the library calls it only in a count worker, which is a fresh process for each job.
#pragma once

#include <ptxbench/compile.hpp>
#include <ptxbench/core.hpp>
#include <ptxbench/device.hpp>
#include <ptxbench/emulator.hpp>
#include <ptxbench/trace.hpp>
#include <ptxbench/verify.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ptxbench {

struct CountJob {
  Workload workload;
  Candidate candidate;
  std::uint64_t seed = 0;                          ///< the request's
  int trial = 0;                                   ///< of verification: the run gets that trial's inputs
  std::uint64_t run_deadline_ns = 10'000'000'000;  ///< of the counted run, whose code is patched and slower
  InputKind inputs = InputKind::random;
  ReferenceSpec reference;
  ComparatorSpec comparator;
  std::vector<std::uint8_t> judge_cubin;  ///< of judge_compile_request(arch); empty off GPUs
  /// Of the outputs of verification's trial of this number, where those were right: equal ones need no reference. Empty: none.
  std::vector<OutputDigest> verified;
  /// So large that no other job may use the GPU's memory meanwhile. The worker does not look at it; Workers does.
  bool alone = false;
};

/// One SASS instruction, over all launches of its kernel in the run. Only those that were executed.
struct CountRecord {
  std::uint32_t pc_offset = 0;              ///< bytes from the kernel's first instruction
  std::uint64_t warp_executions = 0;        ///< each of the four warps of a warpgroup instruction executes it
  std::uint64_t threads_predicated_on = 0;  ///< threads that were active and whose predicate was on
};

/// The records of one kernel of the candidate, by pc offset.
struct KernelRecords {
  std::size_t module = 0;  ///< index in CountJob::candidate.modules
  std::string symbol;
  std::uint32_t cubin_crc = 0;  ///< CUPTI's
  std::vector<CountRecord> records;
};

/// Why there are no counts, and what to do about it.
struct CountUnavailable {
  enum class Kind : std::uint8_t {
    permission,       ///< the driver lets administrators only read counters
    library_missing,  ///< CUPTI cannot be opened
    other_profiler,   ///< another profiler is attached, or uses the GPU's counters
    unsupported,      ///< this device, or its configuration, has no SASS metrics
    no_cubin,         ///< the driver assembled the code and the counter did not show it, so nobody here can name its instructions
    hang,             ///< the counted run did not end before its deadline
    fault,            ///< the counted run faulted, or its worker died
    plan,             ///< the plan cannot be run in the count worker
    driver            ///< anything else that CUPTI or the driver refused
  } kind = Kind::driver;
  std::string reason;
};
/// "permission", "library_missing", ...
std::string_view count_unavailable_name(CountUnavailable::Kind kind) noexcept;

/// Machine code that the driver assembled from a module's PTX, as the counter saw it loaded.
struct DriverCode {
  std::size_t module = 0;  ///< index in CountJob::candidate.modules
  std::vector<std::uint8_t> cubin;
};

/// A tensor map that the plan puts into a kernel's parameters.
struct CountedMap {
  std::size_t module = 0;  ///< as KernelRecords
  std::string symbol;
  std::uint32_t offset = 0;  ///< in the parameter buffer
  /// What one copy of a tile moves. Empty: it is an im2col map, or the kernel's launches have others there.
  std::optional<std::uint64_t> box_bytes;
};

struct CountEvidence {
  std::optional<CountUnavailable> unavailable;  ///< then `kernels` is empty
  std::string method;                           ///< "cupti_sass"
  std::vector<KernelRecords> kernels;           ///< in the order of modules, then by symbol
  std::vector<DriverCode> driver_code;  ///< of modules that came as PTX
  std::vector<CountedMap> maps;
  std::vector<std::string>
      other_functions;                 ///< executed meanwhile and not the candidate's (the driver's memset)
  std::optional<TrialEvidence> trial;  ///< of the counted run, as far as it came
  bool as_verified = false;            ///< its outputs are, by their digests, those that were verified; `trial` has none
  std::vector<std::pair<std::string, std::string>> versions;  ///< "cupti" -> "13.0.1 (API 130001), GH100"
  std::vector<StageTime> stages;  ///< "turn" "open" "cupti" "plan" "inputs" "run" "flush" "reference" "compare"
};

/// Runs @p job on @p device and counts. What keeps it from counting is evidence, not an Error: an Error means
/// that the request is at fault (a job that needs what it lacks) or a host's callback failed. At most once a
/// process.
Result<CountEvidence> run_count(Device& device, const CountJob& job, HostCallbacks& callbacks,
                                const std::string& cuda_home = {});

// --- deciding: pure -------------------------------------------------------------------------------------

/// Kernels' names in the plan, by symbol. A symbol that is not in it goes by its own name.
using KernelNames = std::vector<std::pair<std::string, std::string>>;

/// Fills @p verdict's counts from @p evidence and the candidate's @p modules (the job's). Numbers are raw: a
/// warpgroup instruction counts once for each of its four warps. A wrong output, or memory changed that must
/// not be, is a failed trial: it sets the status whatever verification said. A hang or a fault only makes the
/// counts unavailable. @p task_flops: of the workload's matrix products (task_work), where they are known;
/// @p task_bytes: of its inputs and outputs (task_bytes).
void compose_counts(const CountEvidence& evidence, const std::vector<CompiledModule>& modules,
                    const KernelNames& names, Verdict& verdict, std::optional<double> task_flops = std::nullopt,
                    std::optional<std::uint64_t> task_bytes = std::nullopt);

/// The same from an emulator's report: executions of PTX by kernel, family, form and source line.
void compose_emulated_counts(const EmulatorReport& report, const KernelNames& names, Verdict& verdict,
                             std::optional<double> task_flops = std::nullopt,
                             std::optional<std::uint64_t> task_bytes = std::nullopt);

}  // namespace ptxbench
