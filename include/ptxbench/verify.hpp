/// @file
/// Is a candidate right? Runs it on several draws of inputs on a Device and returns evidence; deciding is
/// pure code over that evidence (`compose_correctness`).
///
/// `run_verify` uses its Device and may load and run candidate code: the library calls it only inside a
/// device worker. It belongs to the Device's thread. Everything else here is pure.
#pragma once

#include <ptxbench/compile.hpp>
#include <ptxbench/core.hpp>
#include <ptxbench/device.hpp>
#include <ptxbench/emulator.hpp>
#include <ptxbench/plan.hpp>
#include <ptxbench/trace.hpp>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ptxbench {

// --- what a host brings ---------------------------------------------------------------------------------

/// A tensor in host memory, densely packed, row-major. The memory is the caller's and is valid during the
/// call that passes it.
struct HostTensor {
  std::string name;  ///< of the definition
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape;  ///< outermost first
  void* data = nullptr;             ///< at least 64-byte aligned
  std::uint64_t bytes = 0;          ///< dtype_bytes(dtype, product of shape)
};

/// Draws inputs. Implemented by an embedder whose operation needs more than independent random tensors.
/// Called on the thread that evaluates, one call at a time. Must not throw.
class InputSource {
 public:
  virtual ~InputSource() = default;
  /// Fills every tensor of @p inputs (the definition's tensor inputs, in order; scalars are left out).
  /// Equal (seed, trial) must give equal bytes. An error ends the evaluation with ErrorCode::callback.
  virtual Result<void> fill(const Workload& workload, std::uint64_t seed, int trial,
                            std::span<HostTensor> inputs) = 0;
};

/// Computes what is expected. The same rules as for InputSource.
class Reference {
 public:
  virtual ~Reference() = default;
  /// @p inputs as InputSource filled them; writes every tensor of @p outputs (the definition's, in order).
  virtual Result<void> compute(const Workload& workload, std::span<const HostTensor> inputs,
                               std::span<HostTensor> outputs) = 0;
};

/// Compares outputs. The same rules as for InputSource.
class Comparator {
 public:
  virtual ~Comparator() = default;
  /// One entry for each output, in order, with at least `ok` and `elements_wrong` set.
  virtual Result<std::vector<OutputCorrectness>> compare(const Workload& workload,
                                                         std::span<const HostTensor> expected,
                                                         std::span<const HostTensor> got) = 0;
};

/// How a stage asks its host for what a job brings as a callback. In a worker each call crosses to the host;
/// in one process it calls the three interfaces above directly (`LocalCallbacks`).
class HostCallbacks {
 public:
  virtual ~HostCallbacks() = default;
  virtual Result<void> fill(const Workload& workload, std::uint64_t seed, int trial,
                            std::span<HostTensor> inputs) = 0;
  virtual Result<void> compute(const Workload& workload, std::span<const HostTensor> inputs,
                               std::span<HostTensor> outputs) = 0;
  virtual Result<std::vector<OutputCorrectness>> compare(const Workload& workload,
                                                         std::span<const HostTensor> expected,
                                                         std::span<const HostTensor> got) = 0;
};

/// Calls the interfaces in this process; any may be null, asking for it is ErrorCode::invalid_argument.
class LocalCallbacks final : public HostCallbacks {
 public:
  LocalCallbacks() = default;
  LocalCallbacks(InputSource* inputs, Reference* reference, Comparator* comparator)
      : inputs_(inputs), reference_(reference), comparator_(comparator) {}
  Result<void> fill(const Workload& workload, std::uint64_t seed, int trial,
                    std::span<HostTensor> inputs) override;
  Result<void> compute(const Workload& workload, std::span<const HostTensor> inputs,
                       std::span<HostTensor> outputs) override;
  Result<std::vector<OutputCorrectness>> compare(const Workload& workload,
                                                 std::span<const HostTensor> expected,
                                                 std::span<const HostTensor> got) override;

 private:
  InputSource* inputs_ = nullptr;
  Reference* reference_ = nullptr;
  Comparator* comparator_ = nullptr;
};

// --- what is judged -------------------------------------------------------------------------------------

/// What is run, by its launch plan: the same code is verified, timed and counted.
struct Candidate {
  Solution solution;                                          ///< with its `launch.json`
  std::vector<std::pair<std::string, PlanNumber>> constants;  ///< overrides
  std::vector<CompiledModule> modules;                        ///< in the order of BoundPlan::sources
};

enum class InputKind : std::uint8_t { random, callback };
enum class ReferenceKind : std::uint8_t { native, solution, callback };
enum class ComparatorKind : std::uint8_t { model_error, tolerance, callback };

/// Names as they are spelled in JSON: "random", "native", "model_error", ...
std::string_view input_kind_name(InputKind kind) noexcept;
std::string_view reference_kind_name(ReferenceKind kind) noexcept;
std::string_view comparator_kind_name(ComparatorKind kind) noexcept;

/// |got - expected| <= atol + rtol * |expected|; with `either`, as the benchmark published it, an element is right if one of
/// |got - expected| <= atol and |got - expected| <= rtol * (|expected| + 1e-8) holds.
struct Tolerance {
  double atol = 1e-2, rtol = 1e-2;
  bool either = false;
  bool operator==(const Tolerance&) const = default;
};

/// How outputs are compared. `model_error` needs a model of the operation's arithmetic; where there is none
/// the tolerance decides. Integer and boolean outputs are compared exactly unless a tolerance names them.
struct ComparatorSpec {
  ComparatorKind kind = ComparatorKind::model_error;
  Tolerance tolerance;                                       ///< default of all outputs
  std::vector<std::pair<std::string, Tolerance>> by_output;  ///< overrides, by output's name
  bool operator==(const ComparatorSpec&) const = default;
};

/// Where expected results come from.
struct ReferenceSpec {
  ReferenceKind kind = ReferenceKind::native;
  std::optional<Candidate> solution;  ///< ReferenceKind::solution
};

/// Whether the library has a reference of its own for @p definition (found by op_type and the pattern of its
/// tensors, never by name): "gemm" with A[M,K] and B[N,K] -> C[M,N] in bf16, fp16 or fp32; "attention" with Q, K, V
/// [B,H,S,D] in bf16 or fp16 -> O and LSE [B,H,S] in fp32, or Q, K, V, O, dO, L -> dQ, dK, dV, and one of the tags
/// "mask:causal" and "mask:none".
bool has_native_reference(const Definition& definition) noexcept;

struct VerifyJob {
  Workload workload;
  Candidate candidate;
  std::uint64_t seed = 0;  ///< the request's
  int trials = 3;
  int first_trial = 0;                             ///< number of the first one; draws differ by it
  std::uint64_t run_deadline_ns = 10'000'000'000;  ///< of one run of the candidate
  InputKind inputs = InputKind::random;
  ReferenceSpec reference;
  ComparatorSpec comparator;
  std::vector<std::uint8_t> judge_cubin;  ///< of judge_compile_request(arch); empty off GPUs
  /// Further runs of the first trial on an emulator, on the same inputs: under each of these where kernels with
  /// asynchronous operations ran, under the first where warps wait for each other, and on a GPU of `small_sm_count` SMs where the plan depends on their number (0: none).
  /// A GPU ignores them.
  std::vector<EmulatorSchedule> schedules;
  int small_sm_count = 0;
  /// A further run is left out where it would probably end later than this after the first one was judged.
  std::uint64_t schedule_budget_ns = 20'000'000'000;
  bool digest = false;  ///< of the first trial's outputs: OutputEvidence::digest
  /// So large that no other job may use the GPU's memory meanwhile. The worker does not look at it; Workers does.
  bool alone = false;
};

/// The judge's own device code, to be compiled once for @p arch (in a compile worker, like any other code).
/// `modules[0].cubin` of the result is what jobs carry.
CompileRequest judge_compile_request(std::string_view arch);

// --- evidence -------------------------------------------------------------------------------------------

/// Sums over all elements of one output, as computed on the device.
struct OutputStatistics {
  std::uint64_t elements = 0;
  std::uint64_t nonfinite_wrong = 0;  ///< finite where the reference is not or the reverse, or another one
  double sum_squared_error = 0;       ///< over elements that are finite on both sides
  double max_absolute_error = 0;
  double max_relative_error = 0;  ///< where the reference is not zero
  double sum_got_times_reference = 0;
  double sum_squared_reference = 0;
  double sum_fourth_reference =
      0;  ///< how unequal the outputs are: what the slope of few large ones scatters by
  double largest_reference = 0;  ///< magnitude
  bool has_model = false;
  double model_sum_squared_error = 0;
  double model_max_error = 0;
  double model_times_reference = 0;
  /// How many elements the model was computed for: all, or a sample of rows where it is costly. What follows is of these.
  std::uint64_t model_elements = 0;
  double sampled_squared_error = 0;
  double sampled_squared_reference = 0;
  double sampled_largest_reference = 0;
  /// What an honest fp32 sum may be off by, whatever the model is off by: 2^sum_floor of the outputs' RMS.
  int sum_floor = -15;
  /// Whether outputs must be exact where the model is: sums of products, but for an exponential's no candidate can.
  bool may_be_exact = true;
};

/// What one output of one trial was found to be.
/// Of an output's bytes, keyed by the request's seed: equal where they are, and where they differ only with a probability of about
/// 2^-128.
struct OutputDigest {
  std::uint64_t low = 0, high = 0;
  bool operator==(const OutputDigest&) const = default;
};

struct OutputEvidence {
  std::string output;
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape;
  ComparatorKind comparator = ComparatorKind::model_error;  ///< what decides here
  OutputStatistics statistics;
  Tolerance tolerance;                       ///< where that decides
  std::uint64_t unwritten = 0;               ///< elements that still held the poison
  std::uint64_t wrong = 0;                   ///< elements beyond the limit, or not finite where they must be
  std::optional<std::uint64_t> first_wrong;  ///< flat index
  double first_wrong_expected = std::numeric_limits<double>::quiet_NaN();
  double first_wrong_got = std::numeric_limits<double>::quiet_NaN();
  std::optional<OutputCorrectness> callback;  ///< what a host's Comparator said
  /// Of a wrong output, where it was looked at closer: notes that say where it is wrong and by what mistake.
  std::vector<Finding> diagnosis;
  std::optional<OutputDigest> digest;  ///< where the job asks for it
};

struct IntegrityViolation {
  enum class Kind : std::uint8_t { input_clobbered, red_zone } kind = Kind::red_zone;
  std::string tensor;             ///< input, output, or "workspace NAME"
  std::int64_t first_offset = 0;  ///< bytes from the buffer's first byte; negative: in front of it
  std::uint64_t bytes = 0;        ///< how many were seen changed
};

struct TrialEvidence {
  int trial = 0;
  std::uint64_t seed = 0;    ///< of the trial
  std::string distribution;  ///< "gaussian", "spiky", "integers", "callback"
  std::uint8_t poison = 0;
  bool reused_addresses = false;
  bool disturbed = false;            ///< other work took SMs from the run meanwhile: its CTAs were late
  std::string schedule;              ///< of an emulator: "eager", "random:17", "eager on 2 SMs"; empty on a GPU
  bool extra = false;                ///< a further run on the inputs of the trial of this number
  bool differs = false;              ///< of an extra run: its outputs have other bytes than that trial's
  std::optional<DeviceFault> fault;  ///< the run ended in this; nothing below was looked at
  std::vector<IntegrityViolation> violations;
  std::vector<OutputEvidence> outputs;  ///< empty after a fault
};

/// A trial that was wrong where others were right, run again on the same inputs, by turns with and without other work beside it.
struct RepeatedTrial {
  int trial = 0, runs = 0, wrong = 0;
};

struct VerifyEvidence {
  /// The plan could not be bound or resolved, or its modules not be loaded: the candidate's fault.
  std::optional<Error> plan_error;
  std::optional<std::string> not_applicable;  ///< the `require` that is false
  std::optional<Error> unsupported;           ///< the emulator does not know what the code uses; nobody is at fault
  std::vector<Finding> findings;              ///< of binding and resolving
  std::string resolved_plan;                  ///< JSON
  ScalarValues scalars;                       ///< as stated or drawn
  std::vector<TrialEvidence> trials;          ///< ends after a fault
  int trials_requested = 0;
  std::optional<RepeatedTrial> repeated;      ///< on a GPU, where some trials are wrong
  std::vector<std::string> schedules_skipped; ///< further runs that the budget left no time for
  /// Of an emulator: what the first trial executed; findings and fidelity are of all runs.
  std::optional<EmulatorReport> emulator;
  std::string output;             ///< what was printed meanwhile (printf, assert); the host adds it
  bool device_lost = false;       ///< the worker must be replaced
  std::vector<StageTime> stages;  ///< "turn" "plan" "inputs" "run" "reference" "compare"
};

/// Runs @p job on @p device. A candidate that fails is evidence; an Error means that the environment or the
/// request is at fault (a reference that fails, memory, a callback, a job that needs what it lacks).
Result<VerifyEvidence> run_verify(Device& device, const VerifyJob& job, HostCallbacks& callbacks);

// --- deciding: pure -------------------------------------------------------------------------------------

/// What the comparator by model error allows: RMS, maximum, and the distance of the slope from one.
struct ModelLimits {
  double rms = 0, max = 0, scale = 0;
  double rms_of_all = 0;  ///< of a sample `rms` is for its elements: the limit for all, which is wider; else equal to `rms`
  bool exact = false;  ///< the model is exact: so must the output be (rms and max are zero)
};
ModelLimits model_limits(const OutputStatistics& statistics, DType output) noexcept;

/// The verdict's numbers for one output of one trial.
OutputCorrectness judge_output(const OutputEvidence& evidence);

/// Fills @p verdict's outcome, status, integrity, correctness, findings, resolved plan and stages from
/// @p evidence. A status already set stays (an earlier stage has decided).
void compose_correctness(const VerifyEvidence& evidence, Verdict& verdict);
/// Adds a trial that was run after those, @p where ("in the run that was counted", "in the trial after timing"; its findings end so).
/// One that failed sets the status, whatever the trials before said, and a time that was measured is the time of a wrong candidate: it
/// is unavailable then.
void add_trial(const TrialEvidence& trial, std::string_view where, Verdict& verdict);

/// An emulator's finding as a verdict has it: a fault is an error, a hazard a warning, a note a note.
Finding finding_of(const EmulatorFinding& finding);

/// The finding and the status that a fault of the candidate means.
std::pair<Status, Finding> judge_fault(const DeviceFault& fault);

}  // namespace ptxbench
