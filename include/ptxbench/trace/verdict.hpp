/// @file
/// The verdict: what ptxbench says about one candidate on one workload; and the Evaluation, the verdicts of
/// one candidate over a request's workloads. `docs/verdict.md` is the page, `docs/verdict.schema.json` the
/// JSON schema. Plain types; the stages of a judgement fill them.
#pragma once

#include <ptxbench/core.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ptxbench {

/// Version of the JSON form of Verdict and Evaluation.
inline constexpr int kVerdictSchemaVersion = 5;

/// FlashInfer-Trace's words. Spelled in upper case in JSON ("PASSED").
enum class Status : std::int32_t {
  passed = 0, incorrect_shape = 1, incorrect_numerical = 2, incorrect_dtype = 3,
  runtime_error = 4, compile_error = 5, timeout = 6
};
/// `incomplete` occurs in an Evaluation only.
enum class Outcome : std::uint8_t { judged, not_applicable, not_run, incomplete };
enum class Integrity : std::uint8_t { clean, violated };
/// State of a block of numbers. `reason` beside it says why they are missing.
enum class Availability : std::uint8_t { measured, not_requested, unavailable, inconclusive };
enum class Severity : std::uint8_t { note, warning, error };
/// `not_checked`: the verdict lacks the value that the rule is about; this is never taken for met.
enum class ContractState : std::uint8_t { met, not_met, not_checked };

std::string_view status_name(Status status) noexcept;          ///< "PASSED", ...
std::optional<Status> status_from_name(std::string_view name) noexcept;
std::string_view outcome_name(Outcome outcome) noexcept;       ///< "judged", "not_applicable", ...
std::string_view availability_name(Availability a) noexcept;   ///< "measured", ...
std::string_view severity_name(Severity severity) noexcept;    ///< "note", "warning", "error"
std::string_view contract_state_name(ContractState state) noexcept;  ///< "met", "not_met", "not_checked"

/// One message of a compiler, mapped to a place.
struct Diagnostic {
  Severity severity = Severity::error;
  std::string message;
  std::string file;      ///< source of the candidate, or a header's name
  int line = 0;          ///< 1-based; for an asm statement the CUDA line; 0 unknown
  int column = 0;
  int ptx_line = 0;      ///< line in the PTX, where ptxas spoke; 0 otherwise
  std::string code;      ///< the tool's number, e.g. "C7510"; may be empty
  std::string function;  ///< kernel it is about, where known
};

/// Something a person or a model should know, with its evidence. Codes: docs/verdict.md.
struct Finding {
  std::string code;      ///< e.g. "launch_rule", "compiler_crashed", "never_written", "setmaxnreg_ignored"
  Severity severity = Severity::warning;
  std::string message;
  std::string evidence;  ///< JSON object as text; may be empty
};

/// What became of one of a pack's rules (ptxbench/pack/contract.hpp).
struct ContractResult {
  std::string rule;      ///< as the pack writes it, "spills == 0"
  ContractState state = ContractState::not_checked;
  std::string value;     ///< what the verdict has, as text: "24", "0.97", "TIMEOUT"; empty where not checked
  std::string kernel;    ///< which kernel's value decided; empty where it is of no single one
  std::string reason;    ///< why it was not checked; else empty
  std::string sentence;  ///< what a model reads where it is not met
};

/// Resources of one compiled kernel, as the cubin and ptxas state them.
struct KernelResources {
  std::string kernel;             ///< as the plan names it (`as`, else `kernel`)
  std::string symbol;             ///< mangled name
  int registers = 0;              ///< per thread
  std::uint64_t static_shared_bytes = 0;
  std::uint64_t dynamic_shared_bytes = 0;  ///< of the plan's step
  std::uint64_t stack_bytes = 0;
  std::uint64_t spill_store_bytes = 0;
  std::uint64_t spill_load_bytes = 0;
  std::optional<int> occupancy_ctas_per_sm;
};

/// Static instructions of a family in the cubin, by kernel.
struct StaticFamily {
  std::string kernel;
  std::string family;             ///< e.g. "wgmma", "tma_load"
  std::uint64_t instructions = 0;
};

struct CompileBlock {
  Availability state = Availability::not_requested;  ///< measured: the compiler ran (or the cache answered)
  std::string reason;
  bool ok = false;
  bool cached = false;
  std::string arch;               ///< "sm_90a"
  std::string compiler;           ///< e.g. "NVRTC 13.0.88"
  std::uint64_t duration_ns = 0;
  std::vector<Diagnostic> diagnostics;
  std::vector<KernelResources> kernels;
  std::vector<StaticFamily> static_families;
};

/// Comparison of one output with its reference, the worst trial's numbers.
struct OutputCorrectness {
  std::string output;
  DType dtype = DType::float32;
  std::uint64_t elements = 0;
  std::uint64_t elements_checked = 0;   ///< equals elements unless the run ended early
  std::uint64_t elements_wrong = 0;     ///< beyond the limit, not finite where it must be, or never written
  std::uint64_t elements_unwritten = 0; ///< still held the poison of both patterns
  std::optional<std::vector<std::int64_t>> first_wrong_index;  ///< outermost first
  double first_wrong_expected = std::numeric_limits<double>::quiet_NaN();
  double first_wrong_got = std::numeric_limits<double>::quiet_NaN();
  double rms_error = 0;                 ///< against the reference
  double max_absolute_error = 0;
  double max_relative_error = 0;
  double scale = 1;                     ///< slope of the output on the reference
  double model_rms_error = 0;           ///< the model kernel's
  double model_max_error = 0;
  double rms_limit = 0;                 ///< what was allowed
  double max_limit = 0;
  std::string comparator;               ///< "model_error", "tolerance", "callback"
  bool ok = false;
};

struct CorrectnessBlock {
  Availability state = Availability::not_requested;
  std::string reason;
  int trials = 0;
  int trials_failed = 0;
  std::vector<OutputCorrectness> outputs;
};

/// The GPU's state while it was timed, as its management library says; 0 where a card does not tell.
struct GpuClocks {
  Availability state = Availability::not_requested;
  std::string reason;                    ///< what could not be told
  std::string source;                    ///< "NVML 580.159.04"
  int samples = 0;
  int max_sm_mhz = 0;                    ///< the SMs' highest clock
  int sm_mhz_low = 0, sm_mhz_high = 0;   ///< over the samples
  int memory_mhz_low = 0, memory_mhz_high = 0;
  int temperature_c_low = 0, temperature_c_high = 0;
  int power_mw_high = 0;
  std::vector<std::string> limited_by;   ///< why the clock was not higher, all that was seen: "sw_power_cap", ...
  std::vector<int> other_processes;      ///< that computed meanwhile, by pid
};

struct TimingBlock {
  Availability state = Availability::not_requested;
  std::string reason;
  std::uint64_t median_ns = 0;           ///< the candidate's
  std::uint64_t baseline_median_ns = 0;
  std::string baseline;                  ///< what it was, e.g. "cuBLASLt 13.1 algo 66"
  std::optional<double> speedup;         ///< baseline's time / candidate's
  double speedup_low = std::numeric_limits<double>::quiet_NaN();   ///< 95% interval
  double speedup_high = std::numeric_limits<double>::quiet_NaN();
  std::optional<double> noise_floor;     ///< |1 - ratio| of the baseline against itself
  bool tie = false;                      ///< the claim lies inside the noise floor
  int pairs = 0;                         ///< that count
  int pairs_verified = 0;                ///< whose outputs were compared whole (of trials: the trials)
  int pairs_discarded = 0;               ///< left out, because the hardware throttled
  int trials = 0;                        ///< of a protocol that measures by trials
  std::string stop_rule;                 ///< "target_width", "pairs", "budget", "slower", "throttled", "trials"; else empty
  std::string l2;                        ///< "cold" or "warm"; empty where nothing was timed
  std::string method;                    ///< e.g. "events, gated, cold L2, alternating pairs"
  std::uint64_t event_overhead_ns = 0;   ///< what the clock tells of an empty interval; not subtracted
  std::uint64_t empty_kernel_ns = 0;     ///< and of a kernel that does nothing
  std::optional<std::uint64_t> roofline_ns;  ///< the least time that the work can take
  std::string roofline_basis;            ///< of what it was computed
  GpuClocks gpu;
  std::vector<std::uint64_t> samples_ns;           ///< candidate, by pair
  std::vector<std::uint64_t> baseline_samples_ns;  ///< baseline, by pair
};

/// What a count is worth: "counted" by the hardware and the same in every run; of the emulator "exact" executions of PTX
/// instructions; "timing_dependent" where some run a different number of times each run, in loops that wait for instance; "ptx_only" where the machine code has no instruction of its own.
struct FamilyCount {
  std::string kernel;
  std::string family;
  std::uint64_t warp_instructions = 0;    ///< warp-level executions
  std::uint64_t thread_instructions = 0;  ///< threads whose predicate was on
  std::string label = "counted";
};
struct OpcodeCount {
  std::string kernel;
  std::string opcode;                     ///< SASS: sass::operation_name, so with modifiers where the family's are decoded, or "unknown:0x..."; PTX form
  std::string family;
  std::uint64_t warp_instructions = 0;
  std::uint64_t thread_instructions = 0;
  std::string label = "counted";
};
/// Of one line of the candidate's source. On a GPU each instruction counts for one line, as the compiler's table has it.
struct LineCount {
  std::string kernel;
  std::string source;                     ///< "gemm.cu:120", with where it was inlined; "ptx:77" where only that is known
  std::string family;
  std::uint64_t warp_instructions = 0;
  std::uint64_t thread_instructions = 0;
  std::string label = "exact";
};

/// Floating-point operations executed, a multiply-add being two; of matrix instructions operations on integers and bits too.
struct FlopCount {
  std::string kernel;                      ///< empty of the total
  std::optional<std::uint64_t> arch_mma;   ///< by the architecture's own: wgmma on 9.x, tcgen05.mma on 10.x; none: unknown
  std::optional<std::uint64_t> mma_sync;   ///< by matrix instructions of a warp; none: unknown
  std::uint64_t fp32 = 0, fp64 = 0, half = 0;  ///< by ordinary arithmetic
  std::optional<double> arch_flops_share;  ///< arch_mma / (arch_mma + mma_sync + fp32 + fp64 + half)
};
struct FlopsBlock {
  std::vector<FlopCount> kernels;
  FlopCount total;
  std::string arch_flops_share_reason;      ///< why the total's is missing
  std::optional<std::uint64_t> task_flops;  ///< of the workload's matrix products, without ragged tiles, masked or recomputed parts
  std::optional<double> mma_work_ratio;     ///< (arch_mma + mma_sync of the total) / task_flops
  std::string mma_work_ratio_reason;        ///< why it is missing
};
/// Whether the candidate is a kernel for its architecture, in two definitions; none: unknown.
struct ArchitectureVerdict {
  std::optional<bool> published;  ///< 9.x: any wgmma or TMA tensor copy executed; 10.x: any UTC*, LDTM or STTM
  std::optional<bool> strict;     ///< arch_flops_share and mma_work_ratio both at least 0.9
  std::string reason;             ///< what decided, or what is not known
};

/// What of the bytes moved follows from the counts; a member that is missing has its reason beside it.
struct BytesBlock {
  std::string tma_reason;                  ///< why tma_load_bytes or tma_store_bytes is missing; else empty
  std::string bulk_copy_reason;            ///< why bulk_copy_bytes is
  std::optional<std::uint64_t> task;       ///< of the workload: each input read once, each output written once
  std::optional<double> tma_ratio;         ///< (tma_load_bytes + tma_store_bytes) / task
  std::string tma_ratio_reason;
  std::optional<std::uint64_t> spill;      ///< loads and stores of local memory, of kernels that spill registers
  std::string spill_reason;
};

struct CountsBlock {
  Availability state = Availability::not_requested;
  std::string reason;
  std::string method;                     ///< "cupti_sass", "emulator"
  std::vector<FamilyCount> families;
  std::vector<OpcodeCount> opcodes;
  std::vector<LineCount> lines;           ///< none where the code has no table of lines
  std::optional<std::uint64_t> tma_load_bytes, tma_store_bytes, bulk_copy_bytes;  ///< none: not known
  BytesBlock bytes;
  std::optional<double> waits_per_mma;    ///< waits for wgmma groups, over wgmma; none where no wgmma was executed
  FlopsBlock flops;
  ArchitectureVerdict architecture;
};

/// How the emulator ran the candidate; `not_requested` on a GPU.
struct EmulationBlock {
  Availability state = Availability::not_requested;
  std::string reason;
  std::string fidelity;                   ///< of all that was executed: "exact", "ptxas", "unmeasured", "bounded"
  std::vector<std::string> inexact;       ///< each instruction form that is not exact, with the reason and a place
  std::vector<std::string> schedules;     ///< under which it ran: "eager", "lazy", "random:17", "eager on 2 SMs"
  std::uint64_t warp_instructions = 0;    ///< of the first trial's run
};

/// What a stage of the judgement took, wall clock.
struct StageTime {
  std::string stage;                      ///< "bind" "compile" "verify" "time" "count" ...
  std::uint64_t duration_ns = 0;
};

struct Provenance {
  std::string ptxbench_version;
  std::string protocol = "rigorous";
  std::string device;                     ///< "cuda:GPU-..." or "emulator:h200"; empty where none
  std::string device_name;                ///< "NVIDIA H200"
  std::uint64_t seed = 0;                 ///< the request's
  std::vector<std::pair<std::string, std::string>> versions;  ///< driver, nvrtc, cublas, cupti, ...
  std::vector<StageTime> stages;
};

struct Verdict {
  std::string workload_uuid;
  std::vector<std::pair<std::string, std::int64_t>> axes;  ///< the workload's var axes
  Outcome outcome = Outcome::not_run;
  std::string outcome_reason;             ///< for not_applicable and not_run
  std::optional<Status> status;           ///< null unless judged
  Integrity integrity = Integrity::clean;
  CompileBlock compile;
  CorrectnessBlock correctness;
  TimingBlock timing;
  CountsBlock counts;
  EmulationBlock emulation;
  std::vector<Finding> findings;
  std::vector<ContractResult> contracts;  ///< of EvaluateOptions::contracts, those that apply to the operation
  std::string resolved_plan;              ///< JSON: what grid, args, workspaces and maps resolved to; may be empty
  std::string output_log;                 ///< what the candidate printed (printf, assert), cut to 64 KiB
  Provenance provenance;

  const Finding* find_finding(std::string_view code) const noexcept;
};

struct Evaluation {
  std::string definition;
  std::string solution;
  std::string solution_hash;              ///< content hash of the candidate
  std::vector<Verdict> verdicts;          ///< one a workload, in the request's order

  /// PASSED only if every verdict is judged and PASSED; else the first status that is not PASSED; nothing if
  /// none failed but something was not judged. `not_applicable_fails`: count such verdicts as failed
  /// (agents, benchmarks) instead of leaving them out (sweeps).
  std::optional<Status> status(bool not_applicable_fails = false) const noexcept;
  /// judged, not_applicable (all are), not_run (all are), or incomplete.
  Outcome outcome() const noexcept;
  /// Geometric mean over the verdicts; only if PASSED and every timing is measured, by one protocol and L2 state.
  std::optional<double> speedup() const noexcept;
};

std::string to_json(const Verdict& verdict, int indent = 2);
std::string to_json(const Evaluation& evaluation, int indent = 2);
/// Strict: reads what to_json wrote (this schema_version).
Result<Verdict> parse_verdict(std::string_view json, std::string_view file = {});
Result<Evaluation> parse_evaluation(std::string_view json, std::string_view file = {});

}  // namespace ptxbench
