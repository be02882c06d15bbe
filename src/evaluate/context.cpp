#include <ptxbench/evaluate.hpp>

#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>

namespace ptxbench {
namespace {

// The user's cache folder by the XDG Base Directory Specification; empty where there is no home.
std::string default_cache_dir() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && xdg[0] == '/')
    return std::string(xdg) + "/ptxbench";
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/')
    return std::string(home) + "/.cache/ptxbench";
  return {};
}

class ContextImpl final : public Context {
 public:
  ContextImpl(ContextOptions options, std::shared_ptr<Workers> workers)
      : options_(std::move(options)), workers_(std::move(workers)) {}

  const ContextOptions& options() const override { return options_; }
  Workers& workers() override { return *workers_; }

  Result<DeviceInfo> device() override {
    const std::lock_guard lock(mutex_);
    if (!device_) device_ = find_device();
    return *device_;
  }

 private:
  Result<DeviceInfo> find_device() {
    if (options_.device == "none") return make_error(ErrorCode::no_device, "no device was asked for (device \"none\")");
    return make_error(ErrorCode::no_device, "running on a device is not built yet");
  }

  const ContextOptions options_;
  const std::shared_ptr<Workers> workers_;
  std::mutex mutex_;
  std::optional<Result<DeviceInfo>> device_;
};

}  // namespace

Result<std::shared_ptr<Context>> Context::create(const ContextOptions& options) {
  try {
    ContextOptions own = options;
    if (!own.cache_dir) own.cache_dir = default_cache_dir();
    WorkerOptions worker_options;
    worker_options.worker_path = own.worker_path;
    worker_options.compile_workers = own.compile_workers;
    worker_options.log = own.log;
    PTXBENCH_TRY_ASSIGN(std::shared_ptr<Workers> workers, Workers::create(worker_options));
    return std::shared_ptr<Context>(std::make_shared<ContextImpl>(std::move(own), std::move(workers)));
  } catch (const std::exception& e) {
    return make_error(ErrorCode::no_memory, e.what());
  }
}

}  // namespace ptxbench
