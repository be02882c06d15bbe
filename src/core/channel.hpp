// Messages over a stream socket between a host and its worker: framed, with a kind that says what a frame is
// for, and with descriptors (of SharedMemory) beside it. Never raises SIGPIPE.
#pragma once

#include "core/message.hpp"
#include "core/subprocess.hpp"
#include "core/unique_fd.hpp"

#include <ptxbench/core.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ptxbench {

enum class FrameKind : std::uint16_t {
  hello = 1,     // worker to host, first of all
  job = 2,       // host to worker
  progress = 3,  // worker to host during a job, not answered
  ask = 4,       // worker to host during a job, waits for an answer or an error
  answer = 5,    // host to worker
  reply = 6,     // worker to host: the job's result
  error = 7,     // either way, in place of a reply or an answer: an Error
  accepted = 8,  // worker to host: the job has been read and begins
};

struct Frame {
  FrameKind kind = FrameKind::hello;
  Message message;
  std::vector<UniqueFd> files;
};

enum class ChannelStatus : std::uint8_t {
  ok,
  deadline,   // nothing lost if no byte of a frame had come; else the channel is broken from then on
  cancelled,  // the same
  closed,     // the other side has gone
  broken      // what came is not a frame, is too large, or the system refused; problem() says what
};

// How long a call may take, and what else ends it.
struct Wait {
  std::optional<SteadyClock::time_point> deadline;
  const CancelToken* cancel = nullptr;
  int exit_fd = -1;  // readable once the other process has ended (should something else keep its socket open)
};

// One thread at a time.
class Channel {
 public:
  static constexpr std::size_t kMaxFiles = 16;

  Channel() = default;
  explicit Channel(UniqueFd socket, std::uint64_t max_bytes = std::uint64_t{1} << 30)
      : socket_(std::move(socket)), max_bytes_(max_bytes) {}

  ChannelStatus send(FrameKind kind, const Message& message, std::span<const int> files, const Wait& wait);
  ChannelStatus receive(Frame& frame, const Wait& wait);
  // Whether the other side has hung up, or has sent something that nobody asked for.
  bool idle_and_open() const noexcept;

  int fd() const noexcept { return socket_.get(); }
  void close() noexcept { socket_.reset(); }
  const std::string& problem() const { return problem_; }

 private:
  ChannelStatus fail(ChannelStatus status, std::string problem);
  ChannelStatus wait_for(short events, const Wait& wait);
  ChannelStatus read_bytes(std::uint8_t* to, std::size_t size, const Wait& wait,
                           std::vector<UniqueFd>* files);

  UniqueFd socket_;
  std::uint64_t max_bytes_ = std::uint64_t{1} << 30;
  bool desynchronised_ = false;
  std::string problem_;
};

// An Error as a message and back, for FrameKind::error.
Message to_message(const Error& error);
Error error_from(const Message& message);

}  // namespace ptxbench
