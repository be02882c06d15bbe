// A worker with the product's loop and a device that is a stand-in: what a candidate's source says happens.
// No GPU, no compiler. A word in a comment of the source decides:
//   right wrong illegal hang crash        what its run does; hang: past the run's deadline, as a GPU's worker
//   reports it compile_crash compile_error           what compiling it does sick_after the run faults, and
//   the device does not work afterwards (until the file is removed)
// The folder of "cuda:FOLDER" holds a file "sick" while the device is sick, and "timing" while a candidate is
// timed.
#include "bench/wire.hpp"
#include "compile/wire.hpp"
#include "core/json.hpp"
#include "device/wire.hpp"
#include "verify/wire.hpp"
#include "worker/remote_callbacks.hpp"
#include "worker/worker_main.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace {

using namespace ptxbench;

std::string g_folder;  // of the device that is open

bool is_sick() { return ::access((g_folder + "/sick").c_str(), F_OK) == 0; }

bool says(const std::vector<SourceFile>& files, std::string_view word) {
  for (const SourceFile& file : files)
    if (file.path != "launch.json" &&
        file.content.find("// " + std::string(word) + "\n") != std::string::npos)
      return true;
  return false;
}

Result<Parcel> compile(Parcel& job, StageHost&) {
  PTXBENCH_TRY_ASSIGN(const CompileRequest request, compile_request_from(job.message));
  if (says(request.files, "compile_crash")) std::abort();
  Compiled compiled;
  compiled.arch = request.arch;
  compiled.compiler = "stub";
  compiled.ok = !says(request.files, "compile_error");
  if (!compiled.ok) {
    compiled.findings.push_back({"compile_error", Severity::error, "no", {}});
    return Parcel(to_message(compiled));
  }
  static const std::vector<std::uint8_t> cubin = [] {
    std::ifstream in(PTXBENCH_SOURCE_DIR "/tests/fixtures/cubins/async.sm_90a.cubin", std::ios::binary);
    return std::vector<std::uint8_t>(std::istreambuf_iterator<char>(in), {});
  }();
  CompiledModule module;
  module.source = request.sources.empty() ? "k.cu" : request.sources[0].path;
  module.cubin = cubin;  // holds k_elect, which takes one pointer
  compiled.modules.push_back(std::move(module));
  return Parcel(to_message(compiled));
}

Result<Parcel> open_device(Parcel& job, StageHost&) {
  PTXBENCH_TRY_ASSIGN(const json::Document document,
                      json::parse(job.message.json, {"open_device", false, 16}));
  PTXBENCH_TRY_ASSIGN(const json::Cursor id, json::Cursor(document).require("device"));
  DeviceInfo info;
  PTXBENCH_TRY_ASSIGN(info.id, id.as_string());
  g_folder = info.id.substr(info.id.find(':') + 1);
  info.name = "stub";
  info.arch = "sm_90a";
  info.limits = device_profile("h200").value();
  return Parcel(to_message(info));
}

Result<Parcel> self_test(Parcel&, StageHost&) {
  if (is_sick()) return make_error(ErrorCode::driver, "CUDA_ERROR_UNKNOWN");
  return Parcel(Message{"healthy", "{}", {}});
}

DeviceFault fault(DeviceFault::Kind kind, const char* name) {
  return {kind, name, 0, true, "as the candidate says", {}};
}

std::optional<DeviceFault> run(const std::vector<SourceFile>& files, std::uint64_t deadline_ns) {
  if (says(files, "illegal")) return fault(DeviceFault::Kind::illegal_address, "CUDA_ERROR_ILLEGAL_ADDRESS");
  if (says(files, "sick_after")) {
    std::ofstream(g_folder + "/sick") << "yes";
    return fault(DeviceFault::Kind::launch_failed, "CUDA_ERROR_LAUNCH_FAILED");
  }
  if (says(files, "hang")) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(deadline_ns));
    return fault(DeviceFault::Kind::timeout, "TIMEOUT");
  }
  if (says(files, "crash")) {
    std::printf("about to crash\n");
    std::fflush(stdout);
    std::raise(SIGSEGV);
  }
  return std::nullopt;
}

Result<Parcel> verify(Parcel& parcel, StageHost& host) {
  PTXBENCH_TRY_ASSIGN(const VerifyJob job, verify_job_from(parcel.message));
  RemoteCallbacks callbacks(host);
  VerifyEvidence evidence;
  evidence.trials_requested = job.trials;
  for (int i = 0; i < job.trials; ++i) {
    TrialEvidence trial;
    trial.trial = i;
    trial.fault = run(job.candidate.solution.sources, job.run_deadline_ns);
    if (trial.fault) {
      evidence.device_lost = true;
      evidence.trials.push_back(std::move(trial));
      break;
    }
    std::vector<float> expected(256);
    HostTensor y{"y", DType::float32, {256}, expected.data(), 1024};
    PTXBENCH_TRY(callbacks.compute(job.workload, {}, {&y, 1}));
    OutputEvidence output;
    output.output = "y";
    output.shape = {256};
    output.comparator = ComparatorKind::tolerance;
    output.statistics.elements = 256;
    if (says(job.candidate.solution.sources, "wrong")) output.wrong = 7, output.first_wrong = 0;
    trial.outputs.push_back(std::move(output));
    evidence.trials.push_back(std::move(trial));
  }
  return Parcel(to_message(evidence));
}

// Notes where two are timed at once.
Result<Parcel> time_stage(Parcel& parcel, StageHost&) {
  PTXBENCH_TRY_ASSIGN(const TimeJob job, time_job_from(parcel.message));
  const std::string mark = g_folder + "/timing";
  const int fd = ::open(mark.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) return make_error(ErrorCode::internal, "another is timed at the same time");
  ::close(fd);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  ::unlink(mark.c_str());
  TimeEvidence evidence;
  evidence.protocol = job.protocol;
  evidence.baseline = job.baseline.kind;
  evidence.pairs.assign(8, TimedPair{1000, 0, false});
  return Parcel(to_message(evidence));
}

}  // namespace

int main(int argc, char** argv) {
  return worker_program(argc, argv,
                        {{"compile", compile},
                         {"open_device", open_device},
                         {"self_test", self_test},
                         {"verify", verify},
                         {"time", time_stage}});
}
