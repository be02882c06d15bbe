// How long processes take: a compile worker from spawn to its first message, a GPU's worker from spawn to an open device, and the
// time from a killed GPU worker to the next one's open device. Prints medians, minima and maxima; asserts nothing.
//   process_benchmark WORKER [ROUNDS]
#include "worker/device_worker.hpp"
#include "worker/worker_process.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using namespace ptxbench;

namespace {

void print(const char* what, std::vector<double> ms) {
  if (ms.empty()) return;
  std::sort(ms.begin(), ms.end());
  std::printf("%-44s median %8.2f ms   min %8.2f   max %8.2f   (%zu)\n", what, ms[ms.size() / 2], ms.front(), ms.back(), ms.size());
}

double milliseconds(std::chrono::nanoseconds t) { return static_cast<double>(t.count()) / 1e6; }

WorkerLaunch launch_of(const std::string& path, const std::string& kind) {
  WorkerLaunch launch;
  launch.path = path;
  launch.arguments.kind = kind;
  launch.graveyard = std::make_shared<Graveyard>();
  return launch;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 20;
  std::vector<double> start, kill_to_ready, open;
  for (int i = 0; i < rounds; ++i) {
    Result<WorkerProcess> worker = WorkerProcess::launch(launch_of(argv[1], "compile"));
    if (!worker || !worker->greet()) return 1;
    start.push_back(milliseconds(worker->start_time()));
    worker->kill();
    if (!worker->restart() || !worker->greet()) return 1;
    kill_to_ready.push_back(milliseconds(worker->kill_to_ready()));
  }
  print("compile worker: spawn to hello", start);
  print("compile worker: kill to the next one's hello", kill_to_ready);
  for (int i = 0; i < rounds; ++i) {
    DeviceWorker worker(launch_of(argv[1], "device"), "auto", "", {});
    const auto before = std::chrono::steady_clock::now();
    const Result<DeviceInfo> info = worker.open(nullptr);
    if (!info) {
      std::printf("GPU worker: %s\n", info.error().to_string().c_str());
      return 0;
    }
    open.push_back(milliseconds(std::chrono::steady_clock::now() - before));
  }
  print("GPU worker: spawn to an open device", open);
  return 0;
}
