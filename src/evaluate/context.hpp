// What a Context is inside.
#pragma once

#include "evaluate/threads.hpp"

#include <ptxbench/evaluate.hpp>

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ptxbench {

class Lane;

// What "auto" takes where there is no GPU.
inline constexpr std::string_view kDefaultEmulator = "emulator:h200";
// There is none, or nothing to reach one with; a GPU that does not answer is another matter.
bool no_gpu(const Error& error) noexcept;

class ContextImpl final : public Context {
 public:
  ContextImpl(ContextOptions options, std::shared_ptr<Workers> workers);
  ~ContextImpl() override;

  const ContextOptions& options() const override { return options_; }
  Workers& workers() override { return *workers_; }
  Result<DeviceInfo> device() override { return device(CancelToken{}); }
  Result<DeviceInfo> device(const CancelToken& cancel);

  // The judge's own device code for `arch`, compiled once (by two threads at first, perhaps).
  Result<std::vector<std::uint8_t>> judge_cubin(const std::string& arch, const CancelToken& cancel);

  // The noise floor of a (device, workload, protocol, baseline), measured once and kept.
  std::optional<double> noise_floor(const std::string& key);
  void keep_noise_floor(const std::string& key, double value);

  // Compiled solutions in the part of reference or baseline, the last few. Null: not there.
  using Modules = std::shared_ptr<const std::vector<CompiledModule>>;
  Modules kept_modules(const std::string& key);
  void keep_modules(const std::string& key, Modules modules);

  // Threads in which candidates are compiled ahead.
  ThreadGroup& compilers() { return compilers_; }
  // Threads in which workloads are measured that may be counted beside another's verification.
  ThreadGroup& measurers() { return measurers_; }
  // How many candidates are compiled ahead of the device at most.
  int compile_window() const;
  // Where jobs go; the first call starts the thread that measures them.
  std::shared_ptr<Lane> job_lane();
  // Whether the caller is called by one of the context's threads.
  bool is_own_thread() const noexcept {
    return measurer_.is_own_thread() || measurers_.is_own_thread() || compilers_.is_own_thread();
  }

  // Every Context is one of these: only Context::create makes them.
  static ContextImpl& of(Context& context) { return static_cast<ContextImpl&>(context); }

 private:
  const ContextOptions options_;
  const std::shared_ptr<Workers> workers_;
  Result<DeviceInfo> open_device(const CancelToken& cancel);
  std::mutex device_mutex_;  // of these three; not held while a device worker starts
  std::condition_variable device_changed_;
  bool device_opening_ = false;
  std::optional<Result<DeviceInfo>> device_;
  std::mutex mutex_;  // of what follows; never held over a call
  std::map<std::string, std::vector<std::uint8_t>> judge_cubins_;
  std::map<std::string, double> noise_floors_;
  std::deque<std::pair<std::string, Modules>> modules_;  // oldest first
  std::shared_ptr<Lane> job_lane_;
  ThreadGroup compilers_;    // these go first
  ThreadGroup measurers_{6};  // three are counted, one is verified, two wait
  ThreadGroup measurer_{1};
};

}  // namespace ptxbench
