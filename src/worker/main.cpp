// ptxbench-worker: the process that does everything dangerous. Started by the library (worker_process.hpp).
#include "worker/compile_stage.hpp"
#include "worker/count_stage.hpp"
#include "worker/device_stages.hpp"
#include "worker/worker_main.hpp"

int main(int argc, char** argv) {
  ptxbench::StageTable stages;
  stages["compile"] = ptxbench::compile_stage;
  ptxbench::add_device_stages(stages);
  const ptxbench::WarmUp warm_up = ptxbench::add_count_stage(stages);
  return ptxbench::worker_program(argc, argv, stages, warm_up);
}
