// Takes the lock of a GPU, prints its process id, holds it until it is killed: lock_holder_program FOLDER
// DEVICE
#include "worker/gpu_lock.hpp"

#include <unistd.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto lock = ptxbench::GpuLock::take(argv[1], argv[2], {});
  if (!lock) return 1;
  std::printf("%d\n", ::getpid());
  std::fflush(stdout);
  for (;;) ::pause();
}
