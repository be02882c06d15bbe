// One run under a profiler, or counted by the library: what tests/gpu/ncu_compare.py holds against Nsight Compute.
//   count_probe launch|count cubin FILE KERNEL GRID BLOCK                   a kernel that takes one pointer (to 1 MiB of zeros)
//   count_probe launch|count candidate FOLDER DEFINITION AXIS=VALUE...      one run of a candidate's plan
//   count_probe launch|count library DEFINITION AXIS=VALUE...               one run of the library's kernel for it
// `launch` makes the run between cuProfilerStart and cuProfilerStop. `count` prints "OPCODE WARPS THREADS" for each opcode,
// modifiers left out, summed over the kernels, and "varies" behind those that the library says differ from run to run.
#include "core/cuda_libs.hpp"
#include "count/sass_counter.hpp"
#include "support/count_case.hpp"
#include "verify/session.hpp"

#include <ptxbench/bench.hpp>
#include <ptxbench/compile.hpp>
#include <ptxbench/evaluate.hpp>
#include <ptxbench/pack.hpp>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace ptxbench;

namespace {

constexpr std::uint64_t kBytes = 1 << 20;
constexpr std::uint64_t kDeadline = 60'000'000'000;

struct Sum {
  std::uint64_t warps = 0, threads = 0;
  bool varies = false;
};
using Sums = std::map<std::string, Sum>;

void add(Sums& sums, const std::string& opcode, const Sum& more) {
  Sum& sum = sums[opcode.substr(0, opcode.find('.'))];
  sum.warps += more.warps;
  sum.threads += more.threads;
  sum.varies = sum.varies || more.varies;
}

// Lets a profiler that waits for it see what is between start and finish.
class ProfilerRange final : public SassCounter {
 public:
  MaybeUnavailable prepare(Device&) override { return std::nullopt; }
  MaybeUnavailable start() override { return call("cuProfilerStart"); }
  MaybeUnavailable finish(std::vector<SassRecord>&) override {
    call("cuProfilerStop");
    return CountUnavailable{CountUnavailable::Kind::other_profiler, "launched only"};
  }
  void abandon() noexcept override {}
  std::optional<std::uint32_t> cubin_crc(std::span<const std::uint8_t>) override { return std::nullopt; }
  std::string method() const override { return "profiler"; }
  std::vector<std::pair<std::string, std::string>> versions() const override { return {}; }

 private:
  MaybeUnavailable call(const char* name) {
    const auto driver = CudaDriver::open();
    auto* function = driver ? reinterpret_cast<CUresult (*)()>((*driver)->library.symbol(name)) : nullptr;
    if (function == nullptr || function() != CUDA_SUCCESS)
      return CountUnavailable{CountUnavailable::Kind::driver, std::string(name) + " failed"};
    return std::nullopt;
  }
};

// Compiled once for many runs, which takes ten seconds, where COUNT_PROBE_JUDGE names a file to keep it in.
Result<std::vector<std::uint8_t>> judge_cubin(const std::string& arch) {
  const char* kept = std::getenv("COUNT_PROBE_JUDGE");
  if (kept != nullptr && std::filesystem::exists(kept)) return read_bytes(kept);
  PTXBENCH_TRY_ASSIGN(const Compiled judge, compile_in_process(judge_compile_request(arch)));
  if (!judge.ok) return make_error(ErrorCode::internal, judge.log);
  const std::vector<std::uint8_t>& cubin = judge.modules.at(0).cubin;
  if (kept != nullptr)
    std::ofstream(kept, std::ios::binary).write(reinterpret_cast<const char*>(cubin.data()), static_cast<std::streamsize>(cubin.size()));
  return cubin;
}

Result<Sums> run_job(Device& device, CountJob job, bool count) {
  PTXBENCH_TRY_ASSIGN(job.judge_cubin, judge_cubin(device.info().arch));
  testing::AnyOutput any;
  LocalCallbacks callbacks(nullptr, &any, &any);
  if (!count) {
    ProfilerRange range;
    PTXBENCH_TRY_ASSIGN(const CountEvidence evidence, run_count_with(device, job, callbacks, range));
    if (!evidence.unavailable || evidence.unavailable->reason != "launched only")
      return make_error(ErrorCode::internal, evidence.unavailable ? evidence.unavailable->reason : "not launched");
    return Sums();
  }
  PTXBENCH_TRY_ASSIGN(const CountEvidence evidence, run_count(device, job, callbacks));
  Verdict verdict;
  compose_counts(evidence, job.candidate.modules, {}, verdict);
  if (verdict.counts.state != Availability::measured) return make_error(ErrorCode::internal, verdict.counts.reason);
  Sums sums;
  for (const OpcodeCount& opcode : verdict.counts.opcodes)
    add(sums, opcode.opcode, {opcode.warp_instructions, opcode.thread_instructions, opcode.label == "timing_dependent"});
  return sums;
}

// The records of whatever was launched, named by the code that CUPTI showed when it was loaded.
Result<Sums> name_records(const std::vector<SassRecord>& records, const std::vector<std::vector<std::uint8_t>>& code) {
  Sums sums;
  struct Loaded {
    const std::vector<std::uint8_t>* file;
    sass::Cubin cubin;
    sass::Kernel kernel;
    std::optional<std::vector<std::uint32_t>> varying;
  };
  std::map<std::string, Loaded> kernels;
  for (const std::vector<std::uint8_t>& file : code) {
    const auto cubin = sass::read_cubin(file);
    if (!cubin) continue;
    for (const sass::Kernel& kernel : cubin->kernels) {
      kernels[kernel.symbol] = {&file, *cubin, kernel, {}};
    }
  }
  for (const SassRecord& record : records) {
    if (record.warps == 0) continue;
    const auto kernel = kernels.find(record.function);
    if (kernel == kernels.end()) return make_error(ErrorCode::not_found, "no loaded code has a kernel " + record.function);
    Loaded& loaded = kernel->second;
    if (record.pc_offset + 16 > loaded.kernel.code_bytes) return make_error(ErrorCode::internal, "a record beyond the code");
    if (!loaded.varying) {
      PTXBENCH_TRY_ASSIGN(loaded.varying, sass::varying_instructions(*loaded.file, loaded.cubin, loaded.kernel));
    }
    const bool varies = std::binary_search(loaded.varying->begin(), loaded.varying->end(), record.pc_offset);
    const sass::Word word = testing::word_at(*loaded.file, loaded.kernel.code_offset + record.pc_offset);
    add(sums, sass::decode(loaded.cubin.sm, word).mnemonic, {record.warps, record.threads, varies});
  }
  return sums;
}

Result<Sums> run_library(Device& device, const Workload& workload, bool count) {
  const std::unique_ptr<SassCounter> counter =
      count ? make_cupti_counter({}) : std::unique_ptr<SassCounter>(std::make_unique<ProfilerRange>());
  const auto check = [](MaybeUnavailable why) -> Result<void> {
    if (why) return make_error(ErrorCode::internal, why->reason);
    return {};
  };
  PTXBENCH_TRY(check(counter->prepare(device)));
  PTXBENCH_TRY_ASSIGN(const std::unique_ptr<LibraryBaseline> library, find_library_baseline(workload));
  PTXBENCH_TRY_ASSIGN(const TensorLayouts layouts, tensor_layouts(workload));
  PTXBENCH_TRY_ASSIGN(TensorBuffers buffers, TensorBuffers::allocate(device, layouts, 1, true));
  PTXBENCH_TRY(library->prepare(device, workload, buffers.plan_buffers()));
  PTXBENCH_TRY_ASSIGN(const DeviceOutcome idle, device.synchronize(kDeadline));
  PTXBENCH_TRY(check(counter->start()));
  PTXBENCH_TRY(library->enqueue(buffers.plan_buffers()));
  PTXBENCH_TRY_ASSIGN(const DeviceOutcome outcome, device.synchronize(kDeadline));
  if (idle || outcome) return make_error(ErrorCode::driver, (idle ? *idle : *outcome).message);
  std::fprintf(stderr, "%s\n", library->description().c_str());
  std::vector<SassRecord> records;
  const MaybeUnavailable why = counter->finish(records);
  if (!count) return Sums();
  PTXBENCH_TRY(check(why));
  return name_records(records, counter->loaded_code());
}

Result<Workload> workload_of(const std::string& definition, std::span<char*> axes) {
  Workload w;
  PTXBENCH_TRY_ASSIGN(w.definition, load_definition(definition));
  w.uuid = "probe";
  for (const std::string_view axis : axes) {
    const std::size_t equals = axis.find('=');
    std::int64_t value = 0;
    if (equals != axis.npos) std::from_chars(axis.data() + equals + 1, axis.data() + axis.size(), value);
    w.axes.push_back({std::string(axis.substr(0, equals)), value});
  }
  return make_workload(std::move(w));
}

Result<Sums> run_candidate(Device& device, const std::string& folder, Workload workload, bool count) {
  ContextOptions options;
  options.device = "none";
  options.worker_path = PTXBENCH_BINARY_DIR "/bin/ptxbench-worker";
  PTXBENCH_TRY_ASSIGN(const std::shared_ptr<Context> context, Context::create(options));
  PTXBENCH_TRY_ASSIGN(const auto pack, KnowledgePack::load(PTXBENCH_SOURCE_DIR "/knowledge_packs/hopper"));
  EvaluateOptions evaluate;
  evaluate.arch = device.info().arch;
  evaluate.headers = pack->headers();
  PTXBENCH_TRY_ASSIGN(const Solution solution, load_solution(folder, *workload.definition));
  PTXBENCH_TRY_ASSIGN(CompiledCandidate compiled, compile_candidate(*context, solution, workload, evaluate));
  if (!compiled.compiled.ok) return make_error(ErrorCode::internal, compiled.compiled.log);
  CountJob job;
  job.workload = std::move(workload);
  job.candidate.solution = solution;
  job.candidate.modules = std::move(compiled.compiled.modules);
  job.seed = 42;
  job.reference.kind = ReferenceKind::callback;
  job.comparator.kind = ComparatorKind::callback;
  return run_job(device, std::move(job), count);
}

Result<Sums> run(std::span<char*> words) {
  const bool count = std::string_view(words[0]) == "count";
  const std::string_view what = words[1];
  const Error usage = make_error(ErrorCode::invalid_argument, "see the head of count_probe.cpp for its forms");
  if (!count && std::string_view(words[0]) != "launch") return usage;
  PTXBENCH_TRY_ASSIGN(const std::unique_ptr<Device> device, open_cuda_device("auto"));
  if (what == "cubin" && words.size() == 6) {
    std::vector<std::uint8_t> cubin = read_bytes(words[2]);
    const int grid = std::atoi(words[4]), block = std::atoi(words[5]);
    if (cubin.empty() || grid < 1 || block < 1) return usage;
    return run_job(*device, testing::probe_job(std::move(cubin), words[3], grid, block, 1, kBytes / 4), count);
  }
  if (what == "candidate" && words.size() >= 4) {
    PTXBENCH_TRY_ASSIGN(Workload workload, workload_of(words[3], words.subspan(4)));
    return run_candidate(*device, words[2], std::move(workload), count);
  }
  if (what == "library" && words.size() >= 3) {
    PTXBENCH_TRY_ASSIGN(const Workload workload, workload_of(words[2], words.subspan(3)));
    return run_library(*device, workload, count);
  }
  return usage;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "count_probe: see the head of count_probe.cpp for its forms\n");
    return 2;
  }
  const Result<Sums> sums = run({argv + 1, static_cast<std::size_t>(argc - 1)});
  if (!sums) {
    std::fprintf(stderr, "count_probe: %s\n", sums.error().to_string().c_str());
    return 1;
  }
  for (const auto& [opcode, sum] : *sums)
    std::printf("%s %llu %llu%s\n", opcode.c_str(), static_cast<unsigned long long>(sum.warps),
                static_cast<unsigned long long>(sum.threads), sum.varies ? " varies" : "");
  return 0;
}
