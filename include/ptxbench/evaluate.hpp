/// @file
/// One call that judges a candidate: binds its launch plan, compiles, verifies, times, counts, and composes
/// verdicts. Everything that reads candidate text with a compiler, or runs it, happens in worker processes.
#pragma once

#include <ptxbench/bench.hpp>
#include <ptxbench/compile.hpp>
#include <ptxbench/core.hpp>
#include <ptxbench/count.hpp>
#include <ptxbench/device.hpp>
#include <ptxbench/pack/contract.hpp>
#include <ptxbench/plan.hpp>
#include <ptxbench/trace.hpp>
#include <ptxbench/verify.hpp>
#include <ptxbench/worker.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ptxbench {

struct ContextOptions {
  /// "auto" (the first GPU; where there is none, the emulator of an H200), "cuda:0", "cuda:GPU-<uuid>", "emulator",
  /// "emulator:h200", "emulator:h100" (with options: `parse_emulator_name`), "none".
  std::string device = "auto";
  /// The worker program; empty: beside the library or program, then the installed path.
  std::string worker_path;
  /// A CUDA toolkit's folder or the `nvidia/cu13` folder of NVIDIA's wheels; empty: searched (docs/toolkit.md).
  std::string cuda_home;
  /// Where compiled candidates are kept: nothing = the user's cache folder, "" = nowhere.
  std::optional<std::string> cache_dir;
  /// Where processes take turns in timing on a GPU, a lock file for each: nothing = one folder for the whole machine
  /// (/tmp/ptxbench-locks), "" = they take no turns.
  std::optional<std::string> lock_dir;
  std::uint64_t compile_memory_bytes = std::uint64_t{4} << 30;  ///< of a compile worker, beyond what it starts with
  LogFn log;
  int compile_workers = 0;  ///< most at a time; 0: by the number of cores
};

/// Holds the workers, the choice of device and the cache. Made once, used from many threads at once; timings take a lock
/// of their own, between processes too, so that they never overlap on a GPU. The last reference ends the workers.
class Context {
 public:
  static Result<std::shared_ptr<Context>> create(const ContextOptions& options);
  virtual ~Context() = default;

  virtual const ContextOptions& options() const = 0;
  /// The device that candidates run on, or the Error that says why there is none. The first call starts a
  /// device worker to ask.
  virtual Result<DeviceInfo> device() = 0;
  virtual Workers& workers() = 0;
};

/// A Solution in the part of reference or baseline, with constants to override.
struct SolutionChoice {
  std::shared_ptr<const Solution> solution;
  std::vector<std::pair<std::string, PlanNumber>> constants;
};
/// The outputs that a workload stores beside its inputs (safetensors); its inputs must be stored too. Compared by tolerance.
struct GoldenReference {};
/// The Definition's own `reference`, run by a Python interpreter with torch in a process of its own, once for each draw of
/// inputs. It is given the tensors in the definition's order and must define `run`. Compared by tolerance. Trusted code: it
/// runs with the rights of this process.
struct PythonReference {
  std::string python = "python3";                   ///< a path, or a name that is searched on the PATH
  bool gpu = false;                                  ///< tensors on "cuda" where torch sees one
  std::uint64_t deadline_ns = 600'000'000'000;       ///< of one call
};
struct NativeReference {};     ///< the library's own, found by op_type and the pattern of tensors
struct LibraryKernel {};       ///< the vendor library's kernel (cuBLASLt for a GEMM)
struct NoBaseline {};          ///< no speedup
struct FixedTime {
  std::uint64_t ns = 0;        ///< compared with the candidate's median
};

/// What a caller brings. All defaults: random inputs, the native reference, the library's kernel as baseline,
/// comparison by model error. Callbacks run on the thread that calls `evaluate` or `evaluate_many`, for jobs on a thread of
/// the library, one at a time; they must not throw, and may not evaluate on the context that calls them
/// (ErrorCode::state); submitting a job is fine.
struct Judging {
  /// Null: what a workload stores in safetensors files is read, the others are random by seed.
  std::shared_ptr<InputSource> inputs;
  /// NativeReference, where the library has none of its own and the workloads store their outputs: these.
  std::variant<NativeReference, SolutionChoice, std::shared_ptr<Reference>, GoldenReference, PythonReference> reference;
  std::variant<LibraryKernel, SolutionChoice, FixedTime, NoBaseline> baseline;
  ComparatorSpec comparator;               ///< `kind` callback needs `own_comparator`
  std::shared_ptr<Comparator> own_comparator;
  /// The folder that the paths of stored tensors are relative to: a trace set's root.
  std::string data_root = ".";
};

/// On which workloads of a request executed instructions are counted.
enum class CountScope : std::uint8_t { first, all };

/// What a candidate may take. More is COMPILE_ERROR, with a finding that names the limit, the value and what is allowed. Beside
/// them: `compile_deadline_ns`, `run_deadline_ns`, `memory_budget_bytes`, and ContextOptions::compile_memory_bytes.
struct CandidateLimits {
  std::uint64_t source_bytes = std::uint64_t{16} << 20;  ///< all its files together: `source_limit`
  std::uint64_t steps = kMaxOperations;                  ///< operations of one run, repeats counted, at most so many: `plan_limit`
  std::uint64_t grid_ctas = 2'147'483'647;               ///< CTAs of one launch: `grid_limit`
  std::optional<std::uint64_t> workspace_bytes;          ///< all together; nothing: what fits: `workspace_limit`
  std::uint64_t global_bytes = std::uint64_t{4} << 20;   ///< `__device__` and `__constant__` variables: `globals_limit`
};

struct EvaluateOptions {
  bool verify = true, time = true, count = true;  ///< compiling is always done; time needs verify
  CountScope count_workloads = CountScope::first;
  std::optional<int> trials;                      ///< nothing: 3 on a GPU, 1 on an emulator
  int pairs = 40;                                 ///< most timed pairs of candidate and baseline
  std::uint64_t time_budget_ns = 3'000'000'000;   ///< no new pair starts after it
  std::optional<double> stop_if_slower_than;      ///< a speedup: timing stops when it is out of reach
  double target_width = 0.003;  ///< timing stops when the speedup's 95% interval is narrower than this part of it; 0: never
  L2State l2 = L2State::cold;   ///< what the L2 holds when a timed run starts; labelled in the verdict
  std::string protocol{kRigorous};                ///< or kPublished (docs/timing.md)
  std::optional<std::uint64_t> seed;              ///< nothing: random, and in the verdict
  std::optional<std::uint64_t> memory_budget_bytes;  ///< of tensors and workspaces; nothing: the device's
  CandidateLimits limits;
  std::uint64_t compile_deadline_ns = 60'000'000'000;
  std::optional<std::uint64_t> run_deadline_ns;    ///< of one run of the candidate; nothing: 10 s on a GPU, 300 s emulated
  /// On an emulator: how many further schedules a candidate with asynchronous operations is run under (the first is
  /// lazy, the others random by seeds derived from the request's), and on how many SMs a plan that depends on their
  /// number is run once more (0: not at all).
  int schedules = 3;
  int small_sm_count = 2;
  std::uint64_t schedule_budget_ns = 20'000'000'000;  ///< no such run begins that would probably end after it
  std::vector<std::pair<std::string, PlanNumber>> constants;  ///< the plan's constants to override
  std::string arch;                               ///< empty: the device's, else sm_90a
  std::vector<SourceFile> headers;                ///< further virtual headers, by include name (a pack's)
  /// Rules that every verdict is held against (a pack's), those that apply to its operation: Verdict::contracts.
  std::vector<Contract> contracts;
  /// Called before the first and after the last timed run of a workload, for a host that shares the GPU.
  std::function<void()> before_timing, after_timing;
};

/// One thing that a machine has or lacks.
struct DoctorItem {
  std::string name;     ///< "driver", "NVRTC", "ptxas", "headers", "CUPTI", "cuBLASLt", "cuDNN", "counters", "worker",
                        ///< "emulator"
  bool ok = false;
  std::string version;  ///< empty where unknown
  std::string path;     ///< of the file or folder in use
  std::string message;  ///< what is missing, where it was looked for, what to do
};
/// What this machine can do.
struct DoctorReport {
  std::vector<DoctorItem> items;
  std::vector<DeviceInfo> devices;
  std::string device_used;      ///< id of the device that candidates will run on; empty: none
  std::string device_reason;    ///< why that one, or why none
};
/// Looks at the machine. Opens CUDA's libraries in this process and initialises the driver, but makes no
/// context; starts one worker. Never fails: what is missing is in the report.
DoctorReport doctor(const ContextOptions& options);
std::string to_json(const DoctorReport& report);

/// Reads options from JSON, strictly: an unknown key is ErrorCode::parse and names the nearest known one.
Result<EvaluateOptions> parse_evaluate_options(std::string_view json);
/// The form that parse_evaluate_options reads; headers and hooks have none and are left out.
std::string to_json(const EvaluateOptions& options);

/// A candidate compiled for a workload, with what was found out on the way.
struct CompiledCandidate {
  Verdict verdict;                     ///< `compile`, findings; COMPILE_ERROR, not_applicable, or not judged yet
  std::optional<BoundPlan> bound;      ///< nothing if binding failed
  Compiled compiled;                   ///< modules, if ok
  std::vector<ModuleInfo> modules;     ///< as resolve_plan wants them, read from the cubins
  std::uint64_t workspace_bytes = 0;   ///< of all workspaces together, where the plan could be resolved
};

/// Binds and compiles, no more. A bad candidate is not an Error: `verdict.status` says COMPILE_ERROR.
Result<CompiledCandidate> compile_candidate(Context& context, const Solution& solution, const Workload& workload,
                                            const EvaluateOptions& options, const CancelToken& cancel = {});

/// Judges @p solution on each of @p workloads. A bad candidate is not an Error; an Error says that the
/// environment or the request is at fault: a workload whose tensors and reference do not fit on the device is no_memory (rule
/// memory). Thread-safe; may be called from many threads at once.
Result<Evaluation> evaluate(Context& context, const Solution& solution, std::span<const Workload> workloads,
                            const Judging& judging, const EvaluateOptions& options,
                            const CancelToken& cancel = {});

/// One of many evaluations: what `evaluate` takes.
struct EvaluateRequest {
  std::shared_ptr<const Solution> solution;
  std::vector<Workload> workloads;
  Judging judging;
  EvaluateOptions options;
};

/// Judges every request and keeps the device busy: candidates are compiled ahead, in parallel, a bounded number of them,
/// while the device measures (in the order in which they are ready; what is counted, and calls nothing of the host's, on threads of
/// the library, beside the verification of the next). Callbacks and hooks run on the calling thread, one at a time. Gives one result a request, in order; an Error among them is that request's alone. The call
/// itself fails only where it cannot begin (no thread can be started, no memory). Thread-safe.
Result<std::vector<Result<Evaluation>>> evaluate_many(Context& context, std::span<const EvaluateRequest> requests,
                                                      const CancelToken& cancel = {});

enum class JobState : std::uint8_t {
  queued,    ///< nothing has been done for it
  running,   ///< it is being compiled or measured, or waits between the two
  finished,  ///< `take` has its result
  taken      ///< it has been taken
};

/// An evaluation under way, made by `submit`. Candidates of a context's jobs are compiled ahead in parallel; one thread of
/// the library measures them one after another, and calls all callbacks and hooks of all jobs of the context. A job may be
/// used from any thread; destroy it when no other thread is in a call on it.
class Job {
 public:
  /// Cancels what still runs, and waits for its end (within 100 ms, or as long as a callback of the job still runs): after
  /// it nothing of the job is called. In a callback of the same context's jobs it does not wait.
  virtual ~Job() = default;

  /// An eventfd that becomes readable when the job has finished and stays so: for poll, select, epoll. It is the job's: do
  /// not read from it nor close it.
  virtual int descriptor() const noexcept = 0;
  virtual JobState state() const noexcept = 0;
  /// Waits until it has finished, at most @p timeout_ns (nothing: without an end). True: it has. Errors: state, in a
  /// callback of the same context's jobs, where waiting would never end.
  virtual Result<bool> wait(std::optional<std::uint64_t> timeout_ns = std::nullopt) const = 0;
  /// Ends it with ErrorCode::cancelled, unless it has finished. Does not wait.
  virtual void cancel() noexcept = 0;
  /// The result, once. Errors: busy where it has not finished; state where it has been taken; the evaluation's own.
  virtual Result<Evaluation> take() = 0;
};

/// Starts an evaluation and does not wait for it. Many may be under way on one context; they begin in the order of submission.
/// The context lives until its last job is gone. Errors: a request that does not hold together, as evaluate says; no_memory.
Result<std::unique_ptr<Job>> submit(const std::shared_ptr<Context>& context, EvaluateRequest request);

}  // namespace ptxbench
