// The public Workers: compile jobs in a pool of compile workers, and what their deaths mean for a candidate.
#include "compile/wire.hpp"
#include "core/guard.hpp"
#include "core/json.hpp"
#include "verify/stopwatch.hpp"
#include "worker/count_worker.hpp"
#include "worker/device_worker.hpp"
#include "worker/gpu_lock.hpp"
#include "worker/worker_path.hpp"
#include "worker/worker_pool.hpp"

#include <ptxbench/worker.hpp>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <new>
#include <thread>

namespace ptxbench {
namespace {

// A compiler that listens to its own deadline (NVRTC's flow callback) is back before this is over.
constexpr std::chrono::milliseconds kGrace{500};
// Of any file that a compile worker writes: its captured output, cubins, the compilers' temporary files.
constexpr std::uint64_t kCompileFileLimit = std::uint64_t{256} << 20;
// The same of a device worker, whose tensors for callbacks travel in files of memory.
constexpr std::uint64_t kDeviceFileLimit = std::uint64_t{16} << 30;

std::string seconds(std::uint64_t ns) { return json::format_double(static_cast<double>(ns) * 1e-9) + " s"; }

std::string evidence(const WorkerDeath& death, const CompileRequest& request, const WorkerOptions& options) {
  json::Writer w;
  w.begin_object().field("end", death.description);
  if (death.signal != 0) w.field("signal", death.signal);
  if (death.exit_status >= 0) w.field("exit_status", death.exit_status);
  if (death.kind == WorkerDeath::Kind::deadline) w.field("deadline_ns", request.deadline_ns);
  if (death.kind == WorkerDeath::Kind::memory) w.field("memory_limit_bytes", options.memory_limit_bytes);
  w.field("output", death.output).end_object();
  return std::move(w).str();
}

Compiled compiled_from_death(const WorkerDeath& death, const CompileRequest& request,
                             const WorkerOptions& options) {
  Compiled compiled;
  compiled.arch = request.arch;
  compiled.log = death.output;
  Finding finding;
  finding.severity = Severity::error;
  finding.evidence = evidence(death, request, options);
  switch (death.kind) {
    case WorkerDeath::Kind::deadline:
      finding.code = "compiler_timeout";
      finding.message = "compiling took longer than its deadline of " + seconds(request.deadline_ns) +
                        ", and the compiler did not stop when told to; it was killed";
      break;
    case WorkerDeath::Kind::memory:
      finding.code = "compiler_memory";
      finding.message = "the compiler needed more memory than its limit of " +
                        std::to_string(options.memory_limit_bytes >> 20) + " MiB (" + death.description + ")";
      break;
    case WorkerDeath::Kind::crashed:
    case WorkerDeath::Kind::closed:
      finding.code = "compiler_crashed";
      finding.message = "the compiler crashed on this source (" + death.description + ")";
      break;
  }
  compiled.findings.push_back(std::move(finding));
  return compiled;
}

// Whether the compiler reports that it, and not the source, has failed.
bool compiler_failed(const Compiled& compiled) {
  return std::any_of(compiled.findings.begin(), compiled.findings.end(), [](const Finding& f) {
    return f.code == "compiler_memory" || f.code == "compiler_crashed";
  });
}

// The worker's working directory is the host's as it was when the worker started.
void make_absolute(std::string& path) {
  std::error_code error;
  if (path.empty()) return;
  const auto absolute = std::filesystem::absolute(path, error);
  if (!error) path = absolute.string();
}

class WorkersImpl final : public Workers {
 public:
  explicit WorkersImpl(WorkerOptions options)
      : options_(std::move(options)),
        compile_pool_(
            launch(options_), [path = options_.worker_path] { return find_worker(path); }, most(options_),
            options_.log),
        count_workers_([this](const WarmStart* warm) -> Result<WorkerLaunch> {
          PTXBENCH_TRY_ASSIGN(WorkerLaunch launch, device_launch("count"));
          if (warm != nullptr) launch.arguments.warm = *warm;
          // It runs one stream. A context with one channel is made in half the time of one with the usual eight.
          launch.environment.emplace_back("CUDA_DEVICE_MAX_CONNECTIONS", "1");
          return launch;
        }) {}

  Result<Compiled> compile(const CompileRequest& request, const CancelToken& cancel) override try {
    const auto start = SteadyClock::now();
    CompileRequest absolute = request;
    make_absolute(absolute.toolkit.cuda_home);
    make_absolute(absolute.cache_dir);
    const Message job = to_message(absolute);
    auto compiled = compile_once(job, request, cancel, false);
    if (compiled && !compiled->second) {
      // The worker had served others before: what it has kept of them (leaks, damage) is not this candidate's
      // fault. A second, fresh one decides.
      compiled = compile_once(job, request, cancel, true);
    }
    if (!compiled) return std::move(compiled).error();
    Compiled result = std::move(compiled->first);
    if (result.duration_ns == 0)
      result.duration_ns = static_cast<std::uint64_t>(
          std::chrono::duration_cast<std::chrono::nanoseconds>(SteadyClock::now() - start).count());
    return result;
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::no_memory, "out of memory while compiling a candidate");
  } catch (const std::exception& e) {
    return make_error(ErrorCode::internal, std::string("compiling a candidate: ") + e.what());
  }

  Result<DeviceInfo> open_device(const std::string& device, const std::string& cuda_home, const CancelToken& cancel) override {
    return guarded([&]() -> Result<DeviceInfo> {
      PTXBENCH_TRY_ASSIGN(WorkerLaunch own, device_launch("device"));
      std::string home = cuda_home;
      make_absolute(home);
      auto worker = std::make_shared<DeviceWorker>(std::move(own), device, std::move(home), options_.log);
      PTXBENCH_TRY_ASSIGN(DeviceInfo info, worker->open(&cancel));
      // Two threads may have opened the same device, or one did under another name: the first worker stays.
      const std::lock_guard lock(devices_mutex_);
      devices_.emplace(info.id, std::move(worker));
      return info;
    });
  }

  Result<VerifyEvidence> verify(const std::string& device_id, const VerifyJob& job, HostCallbacks& callbacks,
                                const CancelToken& cancel) override {
    return guarded([&]() -> Result<VerifyEvidence> {
      PTXBENCH_TRY_ASSIGN(const std::shared_ptr<DeviceWorker> worker, device_worker(device_id));
      return worker->verify(job, callbacks, cancel);
    });
  }

  Result<TimeEvidence> time(const std::string& device_id, const TimeJob& job, HostCallbacks& callbacks,
                            const TimeHooks& hooks, const CancelToken& cancel) override {
    return guarded([&]() -> Result<TimeEvidence> {
      PTXBENCH_TRY_ASSIGN(const std::shared_ptr<DeviceWorker> worker, device_worker(device_id));
      // When it is this job's turn. A process that starts or ends beside it would be seen in the times.
      const auto alone = [&]() -> Result<GpuLock> {
        count_workers_.settle(cancel);
        if (options_.lock_dir.empty()) return GpuLock();
        return GpuLock::take(options_.lock_dir, device_id, cancel);
      };
      return worker->time(job, callbacks, hooks, alone, cancel);
    });
  }

  Result<CountEvidence> count(const std::string& device_id, const CountJob& job, HostCallbacks& callbacks,
                              const CancelToken& cancel) override {
    return guarded([&]() -> Result<CountEvidence> {
      if (is_emulator_name(device_id))
        return make_error(ErrorCode::unsupported, "an emulator counts while it verifies: VerifyEvidence::emulator has the counts");
      PTXBENCH_TRY_ASSIGN(const std::shared_ptr<DeviceWorker> worker, device_worker(device_id));
      std::vector<StageTime> waited;
      Stopwatch watch(waited);
      PTXBENCH_TRY_ASSIGN(const Turns::Turn turn, worker->turns().take(job.alone ? TurnKind::alone : TurnKind::count, &cancel));
      watch.lap("turn");
      PTXBENCH_TRY_ASSIGN(CountEvidence evidence, count_workers_.count({device_id, worker->cuda_home(), job}, callbacks, cancel));
      evidence.stages.insert(evidence.stages.begin(), waited.begin(), waited.end());
      return evidence;
    });
  }

  void prepare_count(const std::string& device_id) override {
    (void)guarded([&]() -> Result<void> {
      PTXBENCH_TRY_ASSIGN(const std::shared_ptr<DeviceWorker> worker, device_worker(device_id));
      count_workers_.prepare({worker->cuda_home(), device_id});
      return {};
    });
  }

  Check check() override try {
    Check check;
    auto path = find_worker(options_.worker_path);
    if (!path) {
      check.message = path.error().to_string();
      return check;
    }
    check.path = *path;
    check.found = true;
    auto worker = compile_pool_.start_one();
    if (!worker) {
      check.message = worker.error().to_string();
      return check;
    }
    check.matches = true;
    check.version = worker->hello().version;
    check.start_ns = static_cast<std::uint64_t>(worker->start_time().count());
    check.message =
        "protocol " + std::to_string(worker->hello().protocol) + ", build " + worker->hello().build;
    return check;
  } catch (const std::exception& e) {
    Check check;
    check.message = e.what();
    return check;
  }

 private:
  static int most(const WorkerOptions& options) {
    if (options.compile_workers > 0) return options.compile_workers;
    return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  }

  static WorkerLaunch launch(const WorkerOptions& options) {
    WorkerLaunch launch;
    launch.arguments.kind = "compile";
    launch.arguments.memory_limit_bytes = options.memory_limit_bytes;
    launch.arguments.file_limit_bytes = kCompileFileLimit;
    launch.private_temp = true;  // ptxas works on files
    return launch;
  }

  // The result, and whether it stands: a failure of the compiler itself counts only in a fresh worker.
  Result<std::pair<Compiled, bool>> compile_once(const Message& job, const CompileRequest& request,
                                                 const CancelToken& cancel, bool want_fresh) {
    constexpr std::uint64_t kMostNs = std::uint64_t{1} << 60;
    const auto time = std::chrono::nanoseconds(std::min(request.deadline_ns, kMostNs)) + kGrace;
    PTXBENCH_TRY_ASSIGN(WorkerPool::Outcome outcome, compile_pool_.run(job, time, cancel, want_fresh));
    if (outcome.died)
      return std::pair(compiled_from_death(outcome.death, request, options_),
                       outcome.fresh || outcome.death.kind == WorkerDeath::Kind::deadline);
    PTXBENCH_TRY_ASSIGN(Compiled compiled, compiled_from(outcome.reply.message));
    const bool stands = outcome.fresh || !compiler_failed(compiled);
    return std::pair(std::move(compiled), stands);
  }

  // No memory limit: a CUDA context reserves address space without end.
  Result<WorkerLaunch> device_launch(std::string kind) const {
    WorkerLaunch launch;
    PTXBENCH_TRY_ASSIGN(launch.path, find_worker(options_.worker_path));
    launch.arguments.kind = std::move(kind);
    launch.arguments.file_limit_bytes = kDeviceFileLimit;
    launch.output_bytes = 64 * 1024;  // of what the candidate printed, as docs/verdict.md says
    launch.graveyard = graveyard_;
    return launch;
  }

  Result<std::shared_ptr<DeviceWorker>> device_worker(const std::string& id) {
    const std::lock_guard lock(devices_mutex_);
    const auto found = devices_.find(id);
    if (found == devices_.end()) return make_error(ErrorCode::state, "device " + id + " has not been opened");
    return found->second;
  }

  const WorkerOptions options_;
  const std::shared_ptr<Graveyard> graveyard_ = std::make_shared<Graveyard>();
  WorkerPool compile_pool_;
  CountWorkers count_workers_;
  std::mutex devices_mutex_;
  std::map<std::string, std::shared_ptr<DeviceWorker>> devices_;  // by DeviceInfo::id
};

}  // namespace

Result<std::shared_ptr<Workers>> Workers::create(const WorkerOptions& options) try {
  if (options.compile_workers < 0)
    return make_error(ErrorCode::invalid_argument, "compile_workers is " +
                                                       std::to_string(options.compile_workers) +
                                                       "; it counts processes (0: by the number of cores)");
  WorkerOptions own = options;
  make_absolute(own.worker_path);
  make_absolute(own.lock_dir);
  return std::shared_ptr<Workers>(std::make_shared<WorkersImpl>(std::move(own)));
} catch (const std::exception& e) {
  return make_error(ErrorCode::no_memory, e.what());
}

}  // namespace ptxbench
