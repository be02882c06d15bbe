#include "worker/worker_process.hpp"

#include <csignal>

namespace ptxbench {
namespace {

using std::chrono::nanoseconds;

// How long the exit status of a worker whose socket has closed is waited for.
constexpr std::chrono::seconds kEndTimeout{2};

CallOutcome died(WorkerDeath death) { return {true, {}, std::move(death)}; }

WorkerDeath describe(const std::optional<ExitStatus>& status, std::string output) {
  WorkerDeath death;
  death.output = std::move(output);
  const bool noted = death.output.find(kWorkerMemoryNote) != std::string::npos;
  // The words of the C++ runtime and of LLVM before they abort.
  const bool bad_alloc = death.output.find("std::bad_alloc") != std::string::npos ||
                         death.output.find("LLVM ERROR: out of memory") != std::string::npos;
  if (!status) {
    death.description = "closed its connection";
    return death;
  }
  death.description = status->to_string();
  switch (status->kind) {
    case ExitStatus::Kind::signalled:
      death.kind = noted || (bad_alloc && status->value == SIGABRT) ? WorkerDeath::Kind::memory
                                                                    : WorkerDeath::Kind::crashed;
      death.signal = status->value;
      if (status->value == SIGKILL)
        death.description += ", not by this process: by the kernel for lack of memory, or by somebody else";
      break;
    case ExitStatus::Kind::exited:
      death.kind =
          status->value == kWorkerExitMemory ? WorkerDeath::Kind::memory : WorkerDeath::Kind::crashed;
      death.exit_status = status->value;
      break;
    case ExitStatus::Kind::unknown:
      if (noted || bad_alloc) death.kind = WorkerDeath::Kind::memory;
      break;
  }
  if (death.kind == WorkerDeath::Kind::memory) death.description += " at its memory limit";
  return death;
}

}  // namespace

std::string_view death_name(WorkerDeath::Kind kind) noexcept {
  switch (kind) {
    case WorkerDeath::Kind::deadline:
      return "deadline";
    case WorkerDeath::Kind::memory:
      return "memory";
    case WorkerDeath::Kind::crashed:
      return "crashed";
    case WorkerDeath::Kind::closed:
      return "closed";
  }
  return "unknown";
}

Result<WorkerProcess> WorkerProcess::launch(const WorkerLaunch& launch) {
  WorkerProcess worker;
  worker.launch_ = launch;
  PTXBENCH_TRY(worker.spawn());
  return worker;
}

WorkerProcess& WorkerProcess::operator=(WorkerProcess&& other) noexcept {
  if (this != &other) {
    discard();
    launch_ = std::move(other.launch_);
    process_ = std::move(other.process_);
    channel_ = std::move(other.channel_);
    hello_ = std::move(other.hello_);
    greeted_ = other.greeted_;
    jobs_done_ = other.jobs_done_;
    spawned_at_ = other.spawned_at_;
    predecessor_killed_at_ = other.predecessor_killed_at_;
    start_time_ = other.start_time_;
    kill_to_ready_ = other.kill_to_ready_;
    other.process_.reset();
  }
  return *this;
}

WorkerProcess::~WorkerProcess() { discard(); }

Result<void> WorkerProcess::spawn() {
  SpawnOptions options;
  options.path = launch_.path;
  options.arguments = command_line(launch_.arguments);
  options.set_environment = launch_.environment;
  options.private_temp = launch_.private_temp;
  // An MPS daemon would put this process's GPU work beside others' in one context, where one client's fault
  // reaches all: no settings of one, and a pipe directory in which there is none.
  options.unset_environment = {"CUDA_MPS_*"};
  options.set_environment.emplace_back("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent/ptxbench-without-mps");
  spawned_at_ = SteadyClock::now();
  PTXBENCH_TRY_ASSIGN(Subprocess process, Subprocess::start(options));
  process_.emplace(std::move(process));
  channel_ = Channel(process_->take_socket());
  hello_ = {};
  greeted_ = false;
  jobs_done_ = 0;
  start_time_ = kill_to_ready_ = nanoseconds{0};
  return {};
}

void WorkerProcess::discard() noexcept {
  channel_.close();
  greeted_ = false;
  if (!process_) return;
  Subprocess process = std::move(*process_);
  process_.reset();
  if (launch_.graveyard) launch_.graveyard->bury(std::move(process));
  // Else it is killed and waited for as it goes out of scope.
}

void WorkerProcess::kill() noexcept {
  if (!process_) return;
  predecessor_killed_at_ = SteadyClock::now();
  process_->kill();
  discard();
}

Result<void> WorkerProcess::restart() {
  kill();
  return spawn();
}

bool WorkerProcess::ready() noexcept {
  return process_ && !process_->poll() && (greeted_ ? channel_.idle_and_open() : true);
}

std::string WorkerProcess::output_tail() const {
  return process_ ? process_->output_tail(launch_.output_bytes) : std::string();
}

Error WorkerProcess::not_started(std::string_view why) {
  std::string message = "the worker " + launch_.path + " " + std::string(why);
  const auto status = process_->wait(SteadyClock::now() + std::chrono::milliseconds(200));
  if (status) message += ": " + status->to_string();
  const std::string output = output_tail();
  if (!output.empty()) message += "; it printed: " + output;
  kill();
  return make_error(ErrorCode::worker, std::move(message));
}

Result<void> WorkerProcess::greet(const CancelToken* cancel) {
  if (process_ && !process_->owned())
    return make_error(ErrorCode::state,
                      "this process is a forked copy of the one that started the worker " + launch_.path);
  if (greeted_) return {};
  if (!process_) return make_error(ErrorCode::worker, "the worker " + launch_.path + " has ended");
  Frame frame;
  // Of the time limit, what the worker has had already does not count: nobody was waiting.
  const Wait wait{SteadyClock::now() + launch_.hello_timeout, cancel, process_->exit_fd()};
  switch (channel_.receive(frame, wait)) {
    case ChannelStatus::ok:
      break;
    case ChannelStatus::deadline:
      return not_started("did not say hello within " + std::to_string(launch_.hello_timeout.count()) + " ms");
    case ChannelStatus::cancelled:
      return make_error(ErrorCode::cancelled, "cancelled while a worker started");
    case ChannelStatus::closed:
      return not_started("ended before it said hello");
    case ChannelStatus::broken:
      return not_started("does not speak this library's protocol (" + channel_.problem() + ")");
  }
  auto hello = frame.kind == FrameKind::hello
                   ? hello_from(frame.message)
                   : Result<Hello>(make_error(ErrorCode::worker, "its first message is no hello"));
  if (!hello)
    return not_started("does not speak this library's protocol (" + hello.error().to_string() + ")");
  if (const std::string why = mismatch(*hello); !why.empty()) {
    kill();
    return make_error(ErrorCode::worker, "the worker " + launch_.path + " does not match: " + why, {},
                      "worker_mismatch");
  }
  hello_ = std::move(hello).value();
  greeted_ = true;
  const auto now = SteadyClock::now();
  start_time_ = now - spawned_at_;
  if (predecessor_killed_at_) kill_to_ready_ = now - *predecessor_killed_at_;
  predecessor_killed_at_.reset();
  return {};
}

// The worker is lost: finds out how, ends what is left of it.
WorkerDeath WorkerProcess::bury(ChannelStatus status) {
  WorkerDeath death;
  if (status == ChannelStatus::deadline) {
    death.kind = WorkerDeath::Kind::deadline;
    death.description = "killed because the job's time was up";
    death.output = output_tail();
  } else if (status == ChannelStatus::broken) {
    death.description = "sent something that is no message of this protocol (" + channel_.problem() + ")";
    death.output = output_tail();
  } else {
    const auto exit = process_->wait(SteadyClock::now() + kEndTimeout);
    death = describe(exit, output_tail());
  }
  kill();
  return death;
}

Result<CallOutcome> WorkerProcess::call(const Message& job, std::span<const int> files,
                                        const CallLimits& limits, const CallHandler& handler) {
  PTXBENCH_TRY(greet(limits.cancel));
  process_->clear_output();
  Wait wait{std::nullopt, limits.cancel, process_->exit_fd()};
  if (limits.time) wait.deadline = SteadyClock::now() + *limits.time;
  bool begun = false;
  const auto lost = [&](ChannelStatus status) -> Result<CallOutcome> {
    if (status == ChannelStatus::cancelled) {
      kill();
      return make_error(ErrorCode::cancelled, "cancelled");
    }
    WorkerDeath death = bury(status);
    death.begun = begun;
    return died(std::move(death));
  };

  if (const auto status = channel_.send(FrameKind::job, job, files, wait); status != ChannelStatus::ok)
    return lost(status);
  for (;;) {
    Frame frame;
    if (const auto status = channel_.receive(frame, wait); status != ChannelStatus::ok) return lost(status);
    switch (frame.kind) {
      case FrameKind::accepted:
        begun = true;
        continue;
      case FrameKind::reply:
        ++jobs_done_;
        return CallOutcome{false, Parcel(std::move(frame.message), std::move(frame.files)), {}};
      case FrameKind::error:
        ++jobs_done_;
        return error_from(frame.message);
      case FrameKind::progress:
      case FrameKind::ask:
        break;
      default: {
        WorkerDeath death = bury(ChannelStatus::broken);
        death.begun = begun;
        death.description = "sent a message out of turn";
        return died(std::move(death));
      }
    }
    const FrameKind kind = frame.kind;
    const auto before = SteadyClock::now();
    Result<Parcel> answer =
        handler ? handler(kind, Parcel(std::move(frame.message), std::move(frame.files)))
                : Result<Parcel>(make_error(ErrorCode::internal,
                                            "nobody answers the worker's \"" + frame.message.type + "\""));
    if (wait.deadline) *wait.deadline += SteadyClock::now() - before;
    if (kind == FrameKind::progress) {
      if (answer || !handler) continue;
      kill();
      return std::move(answer).error();
    }
    std::vector<int> numbers;
    if (answer)
      for (const UniqueFd& file : answer->files) numbers.push_back(file.get());
    const auto status = answer ? channel_.send(FrameKind::answer, answer->message, numbers, wait)
                               : channel_.send(FrameKind::error, to_message(answer.error()), {}, wait);
    if (status != ChannelStatus::ok) return lost(status);
  }
}

}  // namespace ptxbench
