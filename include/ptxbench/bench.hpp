/// @file
/// How fast is a candidate next to a baseline? Runs both in alternating pairs on a Device, verifies the
/// outputs of the timed runs, and returns samples; deciding is pure code over them (`compose_timing`).
///
/// `run_time` belongs to the Device's thread and runs candidate code: only inside a device worker.
#pragma once

#include <ptxbench/core.hpp>
#include <ptxbench/device.hpp>
#include <ptxbench/trace.hpp>
#include <ptxbench/verify.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxbench {

enum class BaselineKind : std::uint8_t { library, solution, fixed_time, none };
std::string_view baseline_kind_name(BaselineKind kind) noexcept;  ///< "library", "solution", ...

struct BaselineSpec {
  BaselineKind kind = BaselineKind::library;
  std::optional<Candidate> solution;  ///< BaselineKind::solution
  std::uint64_t fixed_ns = 0;         ///< BaselineKind::fixed_time
};

/// Protocols: named sets of judging rules. `rigorous` times alternating pairs (docs/timing.md); `ptxbench-published`
/// repeats what the benchmark's authors did, trials of many runs on the same tensors, to be compared with their tables.
inline constexpr std::string_view kRigorous = "rigorous", kPublished = "ptxbench-published";
/// What kPublished runs: trials, and in each so many untimed and timed runs of candidate and baseline.
inline constexpr int kPublishedTrials = 3, kPublishedWarmups = 10, kPublishedRuns = 50;
/// Nothing, or an Error that names the protocols there are.
Result<void> check_protocol(std::string_view protocol);

/// The comparator that a protocol judges by: kRigorous the request's own; kPublished an absolute or a relative error of at
/// most 1e-2 for every element.
ComparatorSpec protocol_comparator(std::string_view protocol, const ComparatorSpec& requested);

/// What the L2 holds when a timed run starts: nothing of the run's tensors, or what fits of its inputs.
enum class L2State : std::uint8_t { cold, warm };
std::string_view l2_state_name(L2State state) noexcept;  ///< "cold", "warm"

struct TimeJob {
  Workload workload;
  Candidate candidate;
  BaselineSpec baseline;
  std::uint64_t seed = 0;
  int pairs = 40;                             ///< most; at least 6 are wanted for an interval; 0: `noise` alone
  int warmup_pairs = 2;                       ///< run, the first verified, not counted
  std::uint64_t budget_ns = 3'000'000'000;    ///< no new pair (trial) starts after it
  std::optional<double> stop_if_slower_than;  ///< a speedup: stop when the interval's upper end is below it
  double target_width = 0.003;  ///< stop when the ratio's 95% interval is narrower than this part of it; 0: never
  bool noise = false;           ///< also time the baseline against itself
  int noise_pairs = 40;
  L2State l2 = L2State::cold;
  std::string protocol{kRigorous};
  std::uint64_t run_deadline_ns = 10'000'000'000;
  InputKind inputs = InputKind::random;
  ReferenceSpec reference;  ///< decides where candidate and baseline differ, or without baseline
  ComparatorSpec comparator;
  std::vector<std::uint8_t> judge_cubin;
};

/// One pair of runs, in nanoseconds. `baseline_ns` is 0 where there is no baseline to run.
struct TimedPair {
  std::uint64_t candidate_ns = 0, baseline_ns = 0;
  bool baseline_first = false;
};

/// kPublished: the timed runs of one trial, in order.
struct TimedTrial {
  std::vector<std::uint64_t> candidate_ns, baseline_ns;
};

/// A GPU's state at one moment, as its management library says.
struct GpuState {
  std::uint32_t sm_mhz = 0, memory_mhz = 0;  ///< clocks
  std::uint32_t temperature_c = 0, power_mw = 0;
  std::uint64_t reasons = 0;  ///< why the clock is not higher: NVML's bits
};
/// The names of the bits of GpuState::reasons, e.g. "sw_power_cap", "hw_thermal_slowdown".
std::vector<std::string> clock_reason_names(std::uint64_t reasons);
/// Whether the hardware slows the clock for heat or a power brake; the power cap that every large kernel meets is no such.
bool is_throttled(std::uint64_t reasons) noexcept;

/// A process that was seen computing on the GPU.
struct OtherProcess {
  std::uint32_t pid = 0, sm_percent = 0;
};

/// Looks at a GPU through its management library. Made and used on the Device's thread.
class GpuMonitor {
 public:
  virtual ~GpuMonitor() = default;
  virtual std::string description() const = 0;              ///< "NVML 580.159.04"
  virtual std::uint32_t max_sm_mhz() const = 0;             ///< 0 where it does not tell
  virtual Result<GpuState> state() = 0;                     ///< clocks, temperature, power, reasons
  virtual Result<std::uint64_t> reasons() = 0;              ///< GpuState::reasons alone, which costs less
  virtual void watch_others() = 0;                          ///< from now on
  /// Other processes that computed since `watch_others`. Errors: unsupported (it cannot tell, and why).
  virtual Result<std::vector<OtherProcess>> others() = 0;
};
/// Opens NVML for the GPU of that id ("cuda:GPU-<uuid>"). Errors: toolkit (libnvidia-ml.so.1 is missing or too old),
/// driver, not_found.
Result<std::unique_ptr<GpuMonitor>> open_gpu_monitor(const std::string& device_id);

/// What a GpuMonitor saw during a timing.
struct GpuConditions {
  std::string source;   ///< GpuMonitor::description; empty: nothing looked
  std::string missing;  ///< why nothing looked, or what it could not tell
  std::uint32_t max_sm_mhz = 0;
  int samples = 0;      ///< of the whole state; the ranges below are over them
  GpuState low, high;   ///< member by member; `reasons` of low unused, of high every bit seen in any sample
  std::vector<OtherProcess> others;
  void add(const GpuState& state) noexcept;
};

/// A timed (or warm-up) run whose outputs were wrong.
struct TimedFailure {
  int pair = 0;  ///< from 0; warm-up pairs are negative
  std::vector<OutputEvidence> outputs;
  std::vector<IntegrityViolation> violations;
};

struct TimeEvidence {
  std::optional<Error> plan_error;   ///< the candidate's, as in VerifyEvidence
  std::optional<DeviceFault> fault;  ///< of the candidate, in pair `fault_pair`
  int fault_pair = 0;
  std::optional<TimedFailure> failure;
  std::vector<TimedPair> pairs;
  std::vector<TimedPair> noise;  ///< baseline against itself: both members are baseline's times
  std::vector<TimedTrial> trials;  ///< kPublished, instead of pairs
  int trials_wanted = 0;
  int pairs_verified = 0;   ///< whose outputs were compared whole; the others' red zones alone were looked at
  int pairs_discarded = 0;  ///< the hardware throttled during them
  L2State l2 = L2State::cold;
  std::uint64_t event_overhead_ns = 0;  ///< what events tell of an empty interval; not subtracted
  std::uint64_t empty_kernel_ns = 0;    ///< and of a kernel that does nothing
  GpuConditions gpu;
  BaselineKind baseline = BaselineKind::none;
  std::uint64_t fixed_ns = 0;     ///< BaselineKind::fixed_time
  std::string baseline_description;  ///< "cuBLASLt 13.1.0 algo 66 ..."
  std::string baseline_missing;      ///< why there is none although asked for
  std::string protocol;
  std::string method;
  std::string stop_reason;  ///< "pairs", "budget", "target_width", "slower", "throttled", "trials"
  std::string unavailable;  ///< why nothing was timed (the device has no clock)
  bool device_lost = false;
  std::vector<StageTime> stages;  ///< "turn" "quiet" (until nothing of ours starts or ends) "prepare" "pairs" "noise"
};

/// A library's kernel for a workload, queued on the device's own stream. Made and used on the Device's
/// thread.
class LibraryBaseline {
 public:
  virtual ~LibraryBaseline() = default;
  /// Chooses an algorithm for @p workload on tensors like @p buffers (contents may be destroyed in outputs).
  virtual Result<void> prepare(Device& device, const Workload& workload, const PlanBuffers& buffers) = 0;
  /// Library, version, algorithm; after `prepare`.
  virtual std::string description() const = 0;
  /// Queues one run on @p buffers. Every call after `prepare` uses the same algorithm.
  virtual Result<void> enqueue(const PlanBuffers& buffers) = 0;
};

/// The library baseline for @p workload, found by op_type and tensors: cuBLASLt for a GEMM in bf16, fp16 or fp32; cuDNN
/// for attention in bf16 or fp16, forward with its LSE or backward (op_type "attention", tag "mask:causal" or
/// "mask:none"). Errors: unsupported (no library serves this operation), toolkit (it cannot be opened).
Result<std::unique_ptr<LibraryBaseline>> find_library_baseline(const Workload& workload,
                                                               const std::string& cuda_home = {});

/// What was learnt when a library's own outputs were compared with the reference: how far a right candidate may be from them. Kept
/// by who times on the same workload with the same library again.
struct BaselineCalibration {
  /// By output: its own limit and the baseline's error.
  struct Allowance {
    bool by_model = false;
    double max = 0, rms = 0;
    Tolerance tolerance;
  };
  bool done = false;
  ComparatorSpec comparator;  ///< that judged it
  std::vector<Allowance> allowances;
  bool wrong = false;         ///< its outputs were beyond the limits: it is no yardstick
};

/// Runs @p job. @p library may be null unless the job asks for it (then the evidence says that it is
/// missing).
/// @p callbacks may be null unless the job's inputs, reference or comparator are callbacks. @p monitor may be null; then
/// clocks, throttling and other processes are unknown, and the evidence says so. @p calibration: of @p library on this workload,
/// from an earlier timing and for a later one; null: made for this one. It is for drawn inputs and the library's own references.
Result<TimeEvidence> run_time(Device& device, const TimeJob& job, LibraryBaseline* library,
                              HostCallbacks* callbacks = nullptr, GpuMonitor* monitor = nullptr,
                              BaselineCalibration* calibration = nullptr);

// --- deciding: pure -------------------------------------------------------------------------------------

/// Lower and upper bound of the median of what @p values sample, with at least 95% confidence, by order
/// statistics: (x_(k), x_(n+1-k)) with the largest k for which P(Bin(n, 1/2) < k) <= 0.025. No assumption
/// on the distribution (David and Nagaraja, Order Statistics, 3rd ed., section 7.1). Fewer than six values:
/// no such k; nothing.
std::optional<std::pair<double, double>> median_interval(std::vector<double> values);

/// The 95% interval of the baseline's ratio to itself; nothing with fewer pairs than an interval needs.
std::optional<std::pair<double, double>> noise_interval(const std::vector<TimedPair>& noise);

/// How far a baseline is from itself: of the 95% interval of its ratio to itself, the end that is farther from one, as
/// |1 - end|. With fewer pairs than an interval needs, |1 - ratio of medians|; nothing without samples.
std::optional<double> noise_floor(const std::vector<TimedPair>& noise);

/// The floating-point operations of a workload's matrix products, a multiply-add being two: what every kernel must do, without
/// a GEMM's tiles, recomputed or masked parts. 2*M*N*K of a GEMM; of attention over [B,H,S,D] 4*P*D*B*H forward and 10*P*D*B*H
/// backward, where P is S*S, or S*(S+1)/2 with a causal mask.
struct TaskWork {
  double flops = 0;
  DType type = DType::bfloat16;  ///< of the operands
};
/// Nothing for an operation that the library does not know. Pure.
std::optional<TaskWork> task_work(const Workload& workload);

/// Bytes of the workload's tensors, each input read once and each output written once. Nothing where a size is not known. Pure.
std::optional<std::uint64_t> task_bytes(const Workload& workload);

/// The least time that a workload can take on a GPU, whatever the kernel.
struct Roofline {
  std::uint64_t ns = 0;      ///< the larger of the two below, rounded down; 0: no bound is known
  double compute_ns = 0;     ///< floating-point operations at the peak of the fastest type that could serve
  double memory_ns = 0;      ///< inputs read once at the memory's peak; warm: less what the L2 holds
  double flops = 0, bytes = 0;
  bool exact = false;        ///< of an operation that the library knows: every kernel must do as much
  std::string basis;         ///< "601.3 GFLOP at 1070.6 TFLOP/s (bfloat16, 132 SMs, 1980 MHz)"
};
/// The bound for @p workload on @p device; nothing where neither operations nor memory can be bounded. @p max_sm_mhz: what a
/// GpuMonitor says, 0 for the device's own attribute (the larger of both counts). Pure.
std::optional<Roofline> roofline(const Workload& workload, const DeviceInfo& device, L2State l2, std::uint32_t max_sm_mhz = 0);
/// A median below this part of the bound is no measurement.
inline constexpr double kRooflineMargin = 0.97;

/// Fills @p verdict's timing; a fault, a hang or a wrong output of a timed run also sets its status,
/// integrity and findings, whatever verification said, and so does a time below @p bound (`faster_than_roofline`).
/// @p kept_noise_floor is used where the evidence has none.
void compose_timing(const TimeEvidence& evidence, Verdict& verdict,
                    std::optional<double> kept_noise_floor = std::nullopt,
                    const std::optional<Roofline>& bound = std::nullopt);

}  // namespace ptxbench
