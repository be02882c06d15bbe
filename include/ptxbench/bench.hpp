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

struct TimeJob {
  Workload workload;
  Candidate candidate;
  BaselineSpec baseline;
  std::uint64_t seed = 0;
  int pairs = 40;                             ///< most; at least 5 are wanted for an interval
  int warmup_pairs = 2;                       ///< run and verified, not counted
  std::uint64_t budget_ns = 3'000'000'000;    ///< no new pair starts after it
  std::optional<double> stop_if_slower_than;  ///< a speedup: stop when the interval's upper end is below it
  bool noise = false;                         ///< also time the baseline against itself
  int noise_pairs = 40;
  std::string protocol = "rigorous";
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
  BaselineKind baseline = BaselineKind::none;
  std::uint64_t fixed_ns = 0;     ///< BaselineKind::fixed_time
  std::string baseline_description;  ///< "cuBLASLt 13.1.0 algo 66 ..."
  std::string baseline_missing;      ///< why there is none although asked for
  std::string protocol;
  std::string method;
  std::string stop_reason;  ///< "pairs", "budget", "slower"
  std::string unavailable;  ///< why nothing was timed (the device has no clock)
  bool device_lost = false;
  std::vector<StageTime> stages;
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

/// Runs @p job. @p library may be null unless the job asks for it (then the evidence says that it is
/// missing).
/// @p callbacks may be null unless the job's inputs, reference or comparator are callbacks.
Result<TimeEvidence> run_time(Device& device, const TimeJob& job, LibraryBaseline* library,
                              HostCallbacks* callbacks = nullptr);

// --- deciding: pure -------------------------------------------------------------------------------------

/// Lower and upper bound of the median of what @p values sample, with at least 95% confidence, by order
/// statistics: (x_(k), x_(n+1-k)) with the largest k for which P(Bin(n, 1/2) < k) <= 0.025. No assumption
/// on the distribution (David and Nagaraja, Order Statistics, 3rd ed., section 7.1). Fewer than six values:
/// no such k; nothing.
std::optional<std::pair<double, double>> median_interval(std::vector<double> values);

/// |1 - ratio of medians| of a baseline timed against itself; nothing without samples.
std::optional<double> noise_floor(const std::vector<TimedPair>& noise);

/// Fills @p verdict's timing; a fault, a hang or a wrong output of a timed run also sets its status,
/// integrity and findings, whatever verification said. @p noise_floor is a kept one, used where the evidence
/// has none.
void compose_timing(const TimeEvidence& evidence, Verdict& verdict,
                    std::optional<double> kept_noise_floor = std::nullopt);

}  // namespace ptxbench
