// 120 candidates in a row on one device, a third of them faulting, trapping or hanging in random order, in
// one process:
//   soak WORKER [DEVICE] [COUNT]
// Prints how many verdicts were as expected, this process's memory before and after, how long the device took
// to answer again after a worker was killed, how long a cancelled hang took to end, and how many workers are
// left. Exit status 0: all verdicts as expected, memory flat, no worker left.
#include "support/processes.hpp"

#include "support/processes.hpp"
#include "twice.hpp"

#include <ptxbench/evaluate.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

using namespace ptxbench;
using namespace testing;

namespace {

using Clock = std::chrono::steady_clock;

struct Kind {
  const char* name;
  const char* body;
  Status status;
};
constexpr Kind kRight{"right", "if (i < n) z[i] = x[i] + x[i];", Status::passed};
constexpr Kind kWrong{"wrong", "if (i < n) z[i] = x[i];", Status::incorrect_numerical};
constexpr Kind kIllegal{"illegal address", "z[i + (1ll << 44)] = x[0];", Status::runtime_error};
constexpr Kind kTrap{"trap", "__trap();", Status::runtime_error};
// It writes: an emulator knows a loop that waits for what nobody writes for a deadlock.
constexpr Kind kHang{"hang", "for (unsigned k = 0;; ++k) *(volatile unsigned*)z = k;", Status::timeout};

EvaluateRequest request_of(const Kind& kind, const Workload& workload, int number) {
  EvaluateRequest request;
  // Each is compiled anew.
  request.solution = std::make_shared<const Solution>(
      twice_solution(kind.name, kind.body, "// " + std::to_string(number) + "\n").value());
  request.workloads = {workload};
  request.judging = twice_judging();
  request.options.trials = 1;
  request.options.time = request.options.count = false;
  request.options.schedules = request.options.small_sm_count = 0;
  request.options.run_deadline_ns = 1'000'000'000;
  return request;
}

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void print_times(const char* what, std::vector<double> times) {
  if (times.empty()) return;
  std::sort(times.begin(), times.end());
  std::printf("%s: %zu times, min %.0f, median %.0f, max %.0f ms\n", what, times.size(), times.front(),
              times[times.size() / 2], times.back());
}

struct Times {
  std::vector<double> after_hang, cancel;
};

int soak(const std::shared_ptr<Context>& context, const Workload& workload, int count) {
  std::vector<Kind> kinds;
  const std::array<Kind, 3> bad{kIllegal, kHang, kTrap};
  for (int i = 0; i < count; ++i)
    kinds.push_back(i % 3 == 0 ? bad[static_cast<std::size_t>(i / 3) % 3] : i % 5 == 1 ? kWrong : kRight);
  std::mt19937_64 random(7);
  for (std::size_t i = kinds.size(); i > 1; --i) std::swap(kinds[i - 1], kinds[random() % i]);
  kinds.insert(kinds.begin(), kRight);

  Times times;
  std::map<std::string, std::pair<int, int>> by_kind;  // as expected, in all
  long warm_kb = 0;
  bool good = true;
  const Clock::time_point start = Clock::now();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const EvaluateRequest request = request_of(kinds[i], workload, static_cast<int>(i));
    const Result<Evaluation> evaluation =
        evaluate(*context, *request.solution, request.workloads, request.judging, request.options);
    auto& [right, all] = by_kind[kinds[i].name];
    ++all;
    if (!evaluation)
      std::printf("%s: %s\n", kinds[i].name, evaluation.error().to_string().c_str());
    else if (evaluation->status() == kinds[i].status)
      ++right;
    else
      std::printf("%s: %s\n", kinds[i].name, to_json(evaluation->verdicts.at(0)).c_str());
    good = good && evaluation && evaluation->status() == kinds[i].status;
    if (i == kinds.size() / 4) warm_kb = ::testing::resident_kb();
  }
  const long end_kb = ::testing::resident_kb();
  std::printf("%zu candidates in %.1f s\n", kinds.size(), ms_since(start) / 1000);
  for (const auto& [name, counts] : by_kind)
    std::printf("  %s: %d of %d as expected\n", name.c_str(), counts.first, counts.second);
  std::printf("resident memory of this process: %ld KiB after a quarter, %ld KiB at the end\n", warm_kb,
              end_kb);
  if (end_kb > warm_kb + 32 * 1024) {
    std::printf("it grows\n");
    good = false;
  }

  // Hangs that are cancelled instead: to the end of the job, and to the next verdict.
  for (int i = 0; i < 5; ++i) {
    EvaluateRequest request = request_of(kHang, workload, 10'000 + i);
    request.options.run_deadline_ns = 60'000'000'000;
    Result<std::unique_ptr<Job>> job = submit(context, std::move(request));
    if (!job) return 1;
    (void)(*job)->wait(1'500'000'000);
    const Clock::time_point cancelled = Clock::now();
    (*job)->cancel();
    (void)(*job)->wait();
    times.cancel.push_back(ms_since(cancelled));
    const Result<Evaluation> ended = (*job)->take();
    if (ended || ended.error().code != ErrorCode::cancelled) {
      std::printf("a cancelled hang has another result\n");
      good = false;
    }
    const EvaluateRequest next = request_of(kRight, workload, 20'000 + i);
    const Result<Evaluation> evaluation =
        evaluate(*context, *next.solution, next.workloads, next.judging, next.options);
    times.after_hang.push_back(ms_since(cancelled));
    good = good && evaluation && evaluation->status() == Status::passed;
  }
  print_times("a cancelled hang ends after", times.cancel);
  print_times("the verdict after a cancelled hang, compiling included, is there after", times.after_hang);
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const Result<Workload> workload = twice_workload(4096);
  if (!workload) return 2;
  std::mutex mutex;
  std::vector<double> answers;
  ContextOptions options;
  options.worker_path = argv[1];
  options.cache_dir = "";
  if (argc > 2) options.device = argv[2];
  options.log = [&](LogLevel, std::string_view line) {
    const std::size_t at = line.find(" answers again ");
    if (at == std::string_view::npos) return;
    const std::lock_guard lock(mutex);
    answers.push_back(std::atof(std::string(line.substr(at + 15)).c_str()));
  };
  int code = 2;
  {
    const Result<std::shared_ptr<Context>> context = Context::create(options);
    if (!context) {
      std::printf("%s\n", context.error().to_string().c_str());
      return 2;
    }
    code = soak(*context, *workload, argc > 3 ? std::atoi(argv[3]) : 120);
  }
  print_times("from the kill of a worker to a device that has passed its self-test", answers);
  const bool left = !testing::eventually([] { return testing::children_of(::getpid()).empty(); });
  std::printf("workers left: %zu\n", testing::children_of(::getpid()).size());
  std::printf(code == 0 && !left ? "soak: all as expected\n" : "soak: FAILED\n");
  return left ? 1 : code;
}
