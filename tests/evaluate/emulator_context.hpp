// A context whose candidates run on the emulator, and nothing is cached.
#pragma once

#include "support/catch.hpp"

#include <ptxbench/evaluate.hpp>

#include <memory>
#include <string>

namespace ptxbench::testing {

inline std::shared_ptr<Context> emulator_context(const std::string& device = "emulator:h200") {
  ContextOptions options;
  options.device = device;
  options.worker_path = PTXBENCH_BINARY_DIR "/bin/ptxbench-worker";
  options.cuda_home = PTXBENCH_TEST_CUDA_HOME;
  options.cache_dir = "";
  auto made = Context::create(options);
  if (!made) FAIL(made.error().to_string());
  return *made;
}

}  // namespace ptxbench::testing
