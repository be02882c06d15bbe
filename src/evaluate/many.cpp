// A list of requests at once, and jobs: what callers have of the pipeline.
#include "core/guard.hpp"
#include "evaluate/pipeline.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace ptxbench {
namespace {

Result<std::vector<Result<Evaluation>>> run_many(ContextImpl& context,
                                                 std::span<const EvaluateRequest> requests,
                                                 const CancelToken& cancel) {
  const auto lane = std::make_shared<Lane>(context.compilers(), context.measurers(), context.compile_window());
  std::vector<Result<std::shared_ptr<RunningRequest>>> running;
  running.reserve(requests.size());
  std::vector<Result<Evaluation>> results;
  results.reserve(requests.size());
  for (const EvaluateRequest& request : requests)
    running.push_back(RunningRequest::begin(context, request, cancel.follower(), false));  // `end` triggers it
  // From here on requests are in other threads' hands until they have finished.
  const auto end = [&] {
    lane->stop();
    for (const auto& request : running)
      if (request) (*request)->cancel();
    for (const auto& request : running)
      if (request) {
        (*request)->wait(std::nullopt);
        (*request)->drop_judging();
      }
  };
  try {
    for (const auto& request : running)
      if (request) lane->add(*request);
    while (std::optional<Lane::Ready> ready = lane->take(&cancel)) lane->measure(std::move(*ready));
  } catch (...) {
    end();
    throw;
  }
  end();
  for (const auto& request : running) {
    if (request)
      results.push_back((*request)->take());
    else
      results.push_back(request.error());
  }
  return results;
}

// Destroyed together, the context last.
struct JobParts {
  std::shared_ptr<Context> context;
  EvaluateRequest content;
};

class JobImpl final : public Job {
 public:
  JobImpl(std::shared_ptr<JobParts> parts, std::shared_ptr<RunningRequest> running)
      : parts_(std::move(parts)), running_(std::move(running)) {}
  ~JobImpl() override {
    running_->cancel();
    if (context().is_own_thread() && running_->keep_until_finished(parts_)) return;
    running_->wait(std::nullopt);
    running_->drop_judging();
  }
  JobImpl(const JobImpl&) = delete;
  JobImpl& operator=(const JobImpl&) = delete;

  int descriptor() const noexcept override { return running_->descriptor(); }
  JobState state() const noexcept override { return running_->state(); }
  Result<bool> wait(std::optional<std::uint64_t> timeout_ns) const override {
    return guarded([&]() -> Result<bool> {
      if (running_->finished()) return true;
      if (context().is_own_thread())
        return make_error(
            ErrorCode::state,
            "a callback may not wait for jobs of the context that calls it: it would wait for ever");
      if (!timeout_ns) return running_->wait(std::nullopt);
      constexpr std::uint64_t kMostNs = std::uint64_t{1} << 60;  // so that no clock overflows
      return running_->wait(SteadyClock::now() + std::chrono::nanoseconds(std::min(*timeout_ns, kMostNs)));
    });
  }
  void cancel() noexcept override { running_->cancel(); }
  Result<Evaluation> take() override {
    return guarded([&] { return running_->take(); });
  }

 private:
  ContextImpl& context() const { return ContextImpl::of(*parts_->context); }

  const std::shared_ptr<JobParts> parts_;
  const std::shared_ptr<RunningRequest> running_;
};

}  // namespace

Result<std::vector<Result<Evaluation>>> evaluate_many(Context& context,
                                                      std::span<const EvaluateRequest> requests,
                                                      const CancelToken& cancel) {
  return guarded([&] { return run_many(ContextImpl::of(context), requests, cancel); });
}

Result<std::unique_ptr<Job>> submit(const std::shared_ptr<Context>& context, EvaluateRequest request) {
  return guarded([&]() -> Result<std::unique_ptr<Job>> {
    if (context == nullptr) return make_error(ErrorCode::invalid_argument, "a job without a context");
    auto parts = std::make_shared<JobParts>(JobParts{context, std::move(request)});
    ContextImpl& impl = ContextImpl::of(*context);
    PTXBENCH_TRY_ASSIGN(std::shared_ptr<RunningRequest> running,
                        RunningRequest::begin(impl, parts->content, CancelToken{}, true));
    const std::shared_ptr<Lane> lane = impl.job_lane();
    auto job = std::make_unique<JobImpl>(std::move(parts), running);  // ends it where adding fails
    lane->add(std::move(running));
    return std::unique_ptr<Job>(std::move(job));
  });
}

}  // namespace ptxbench
