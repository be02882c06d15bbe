/// @file
/// Worker processes: everything that reads candidate text with a compiler or runs candidate code happens in a
/// `ptxbench-worker`, so that a crash, a hang or a sticky GPU error ends the worker and not the host.
#pragma once

#include <ptxbench/compile.hpp>
#include <ptxbench/core.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace ptxbench {

struct WorkerOptions {
  std::string worker_path;          ///< empty: beside the library or executable, else the installed path
  int compile_workers = 0;          ///< most at a time; 0: by the number of cores
  std::uint64_t memory_limit_bytes = std::uint64_t{4} << 30;  ///< address space of a compile worker, beyond its start
  LogFn log;
};

/// Pools of workers. Thread-safe: calls may overlap. Destroying it ends its workers.
class Workers {
 public:
  static Result<std::shared_ptr<Workers>> create(const WorkerOptions& options);
  virtual ~Workers() = default;

  /// Runs a compile job in a compile worker. The worker's death or deadline is a Compiled with ok == false
  /// and the finding compiler_crashed, compiler_timeout or compiler_memory; the next job finds a fresh one.
  virtual Result<Compiled> compile(const CompileRequest& request, const CancelToken& cancel) = 0;

  /// Where the worker is, and whether its protocol and build match. Starts one.
  struct Check {
    std::string path;
    bool found = false, matches = false;
    std::string version, message;
    std::uint64_t start_ns = 0;     ///< from spawn to its first message
  };
  virtual Check check() = 0;
};

}  // namespace ptxbench
