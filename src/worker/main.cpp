// ptxbench-worker: the process that does everything dangerous. Started by the library (worker_process.hpp).
#include "worker/worker_main.hpp"

int main(int argc, char** argv) { return ptxbench::worker_program(argc, argv, {}); }
