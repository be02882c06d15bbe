// A host that treats its guest badly, on a GPU: SIGCHLD ignored, SIGPIPE at its default, the thread that started the workers
// ended. Five times an illegal address, a kernel that never ends and a trap, each followed by a good candidate; then no process may be
// left. Exit status 0: all went well. Also prints how long from a kill to the next verdict.
//   hostile_gpu_host WORKER
#include "support/processes.hpp"

#include <ptxbench/evaluate.hpp>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
#include <thread>

using namespace ptxbench;

namespace {

class Sum final : public Reference {
 public:
  Result<void> compute(const Workload&, std::span<const HostTensor> in, std::span<HostTensor> out) override {
    const auto* x = static_cast<const float*>(in[0].data);
    auto* z = static_cast<float*>(out[0].data);
    for (std::uint64_t i = 0; i < out[0].bytes / sizeof(float); ++i) z[i] = x[i] + x[i];
    return {};
  }
};

Result<Workload> twice() {
  Definition d;
  d.name = "twice";
  d.op_type = "elementwise";
  d.axes = {{"n", false, 0, {}}};
  d.inputs = {{"x", std::vector<std::string>{"n"}, DType::float32, {}}};
  d.outputs = {{"z", std::vector<std::string>{"n"}, DType::float32, {}}};
  PTXBENCH_TRY_ASSIGN(DefinitionPtr definition, make_definition(std::move(d)));
  Workload w;
  w.definition = definition;
  w.axes = {{"n", 100'000}};
  w.uuid = "w";
  return make_workload(std::move(w));
}

Result<Solution> candidate(const char* body) {
  Solution s;
  s.name = "candidate";
  s.definition = "twice";
  s.author = "test";
  s.spec.language = "cuda";
  s.spec.target_hardware = {"cuda"};
  s.spec.entry_point = "launch.json::run";
  s.sources = {{"launch.json", R"json({"version": 1, "steps": [{"kernel": "twice", "grid": ["ceil_div(n, 256)"], "block": [256],
                                    "args": [{"tensor": "x"}, {"tensor": "z"}, {"i32": "n"}]}]})json"},
               {"twice.cu", std::string("extern \"C\" __global__ void twice(const float* x, float* z, int n) {\n"
                                        "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n") + body + "\n}\n"}};
  return make_solution(std::move(s));
}

std::optional<Status> status_of(Context& context, const Workload& workload, const char* body) {
  const Result<Solution> solution = candidate(body);
  if (!solution) return std::nullopt;
  Judging judging;
  judging.reference = std::shared_ptr<Reference>(std::make_shared<Sum>());
  judging.baseline = NoBaseline{};
  EvaluateOptions options;
  options.trials = 1;
  options.time = options.count = false;
  options.run_deadline_ns = 1'000'000'000;
  const Result<Evaluation> evaluation = evaluate(context, *solution, {&workload, 1}, judging, options);
  if (!evaluation) {
    std::printf("error: %s\n", evaluation.error().to_string().c_str());
    return std::nullopt;
  }
  return evaluation->status();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::signal(SIGCHLD, SIG_IGN);
  std::signal(SIGPIPE, SIG_DFL);
  const Result<Workload> workload = twice();
  if (!workload) return 2;
  ContextOptions options;
  options.worker_path = argv[1];
  options.cache_dir = "";
  Result<std::shared_ptr<Context>> context = Context::create(options);
  if (!context) return 2;
  constexpr const char* kGood = "if (i < n) z[i] = x[i] + x[i];";
  std::optional<Status> first;
  std::thread([&] { first = status_of(**context, *workload, kGood); }).join();
  if (first != Status::passed) {
    std::printf("the first good one did not pass\n");
    return 1;
  }
  const struct {
    const char* name;
    const char* body;
    Status status;
  } bad[] = {{"illegal address", "z[i + (1ll << 44)] = x[0];", Status::runtime_error},
             {"endless", "for (volatile int* p = (volatile int*)z;;) if (*p == 42 && *p == 43) return;", Status::timeout},
             {"trap", "__trap();", Status::runtime_error}};
  for (const auto& one : bad) {
    for (int i = 0; i < 5; ++i) {
      if (status_of(**context, *workload, one.body) != one.status) {
        std::printf("%s: not the status it must get\n", one.name);
        return 1;
      }
      const auto start = std::chrono::steady_clock::now();
      if (status_of(**context, *workload, kGood) != Status::passed) {
        std::printf("%s: the good one after it did not pass\n", one.name);
        return 1;
      }
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
      std::printf("%s: replaced, next verdict after %.0f ms\n", one.name, took.count());
    }
  }
  context->reset();
  for (int i = 0; i < 50 && !testing::children_of(::getpid()).empty(); ++i) ::usleep(100'000);
  if (!testing::children_of(::getpid()).empty()) {
    std::printf("children are left\n");
    return 1;
  }
  std::printf("hostile host: all passed, no process is left\n");
  return 0;
}
