#include "core/channel.hpp"

#include "core/json.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

namespace ptxbench {
namespace {

// In front of each encoded message, little endian.
struct Header {
  std::uint32_t magic = 0;
  std::uint16_t kind = 0;
  std::uint16_t files = 0;
  std::uint64_t bytes = 0;
};
constexpr std::size_t kHeaderBytes = 16;
constexpr std::uint32_t kMagic = 0x50425850;  // "PXBP"

// How often a cancel token is looked at while waiting.
constexpr int kCancelPollMs = 10;

template <class T>
void put(std::uint8_t* to, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    to[i] = static_cast<std::uint8_t>(std::uint64_t{value} >> (8 * i));
}
template <class T>
T get(const std::uint8_t* from) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= std::uint64_t{from[i]} << (8 * i);
  return static_cast<T>(value);
}

std::string system_message(int error) {
  char buffer[128];
  return ::strerror_r(error, buffer, sizeof buffer);
}

bool is_end(int error) { return error == EPIPE || error == ECONNRESET || error == ENOTCONN; }

}  // namespace

ChannelStatus Channel::fail(ChannelStatus status, std::string problem) {
  desynchronised_ = true;
  problem_ = std::move(problem);
  return status;
}

ChannelStatus Channel::wait_for(short events, const Wait& wait) {
  for (;;) {
    if (wait.cancel != nullptr && wait.cancel->triggered()) return ChannelStatus::cancelled;
    int timeout = wait.cancel != nullptr ? kCancelPollMs : -1;
    if (wait.deadline) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(*wait.deadline - SteadyClock::now());
      if (*wait.deadline <= SteadyClock::now()) return ChannelStatus::deadline;
      const int ms = static_cast<int>(std::min<long long>(left.count() + 1, INT_MAX));
      timeout = timeout < 0 ? ms : std::min(timeout, ms);
    }
    std::array<pollfd, 2> fds{{{socket_.get(), events, 0}, {wait.exit_fd, POLLIN, 0}}};
    const int n = ::poll(fds.data(), wait.exit_fd >= 0 ? 2 : 1, timeout);
    if (n < 0 && errno != EINTR) return fail(ChannelStatus::broken, "poll: " + system_message(errno));
    if (n <= 0) continue;
    if (fds[0].revents & POLLNVAL) return fail(ChannelStatus::closed, "the channel is closed");
    if (fds[0].revents != 0) return ChannelStatus::ok;
    // The process has ended, and nothing that it sent is left to read.
    if (fds[1].revents != 0) {
      pollfd last{socket_.get(), events, 0};
      if (::poll(&last, 1, 0) > 0) return ChannelStatus::ok;
      return fail(ChannelStatus::closed, "the other process has ended");
    }
  }
}

ChannelStatus Channel::send(FrameKind kind, const Message& message, std::span<const int> files,
                            const Wait& wait) {
  if (desynchronised_) return ChannelStatus::broken;
  if (files.size() > kMaxFiles) return fail(ChannelStatus::broken, "too many descriptors for one message");
  const std::vector<std::uint8_t> payload = encode(message);
  if (payload.size() > max_bytes_)
    return fail(ChannelStatus::broken, "a message of " + std::to_string(payload.size()) +
                                           " bytes is over the limit of " + std::to_string(max_bytes_));
  std::array<std::uint8_t, kHeaderBytes> header{};
  put(header.data(), kMagic);
  put(header.data() + 4, static_cast<std::uint16_t>(kind));
  put(header.data() + 6, static_cast<std::uint16_t>(files.size()));
  put(header.data() + 8, static_cast<std::uint64_t>(payload.size()));

  const std::size_t total = kHeaderBytes + payload.size();
  std::size_t sent = 0;
  while (sent < total) {
    std::array<iovec, 2> parts{};
    msghdr out{};
    out.msg_iov = parts.data();
    if (sent < kHeaderBytes) parts[out.msg_iovlen++] = {header.data() + sent, kHeaderBytes - sent};
    const std::size_t done = sent > kHeaderBytes ? sent - kHeaderBytes : 0;
    parts[out.msg_iovlen++] = {const_cast<std::uint8_t*>(payload.data()) + done, payload.size() - done};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFiles * sizeof(int))> control{};
    if (sent == 0 && !files.empty()) {  // descriptors travel with the first byte
      out.msg_control = control.data();
      out.msg_controllen = CMSG_SPACE(files.size_bytes());
      cmsghdr* c = CMSG_FIRSTHDR(&out);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(files.size_bytes());
      std::memcpy(CMSG_DATA(c), files.data(), files.size_bytes());
    }
    const ssize_t n = ::sendmsg(socket_.get(), &out, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) sent += static_cast<std::size_t>(n);
    if (n >= 0 || errno == EINTR) continue;
    if (is_end(errno)) return fail(ChannelStatus::closed, "the other process has hung up");
    if (errno != EAGAIN && errno != EWOULDBLOCK)
      return fail(ChannelStatus::broken, "sendmsg: " + system_message(errno));
    if (const ChannelStatus status = wait_for(POLLOUT, wait); status != ChannelStatus::ok) {
      if (sent > 0) desynchronised_ = true;
      return status;
    }
  }
  return ChannelStatus::ok;
}

// Reads exactly `size` bytes. Descriptors are taken where `files` is given, and refused by the kernel
// elsewhere.
ChannelStatus Channel::read_bytes(std::uint8_t* to, std::size_t size, const Wait& wait,
                                  std::vector<UniqueFd>* files) {
  std::size_t got = 0;
  while (got < size) {
    if (const ChannelStatus status = wait_for(POLLIN, wait); status != ChannelStatus::ok) {
      if (got > 0) desynchronised_ = true;
      return status;
    }
    iovec part{to + got, size - got};
    msghdr in{};
    in.msg_iov = &part;
    in.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFiles * sizeof(int))> control{};
    if (files != nullptr) {
      in.msg_control = control.data();
      in.msg_controllen = control.size();
    }
    const ssize_t n = ::recvmsg(socket_.get(), &in, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0) {
      if (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK) continue;
      if (is_end(errno)) return fail(ChannelStatus::closed, "the other process has hung up");
      return fail(ChannelStatus::broken, "recvmsg: " + system_message(errno));
    }
    for (cmsghdr* c = CMSG_FIRSTHDR(&in); files != nullptr && c != nullptr; c = CMSG_NXTHDR(&in, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
        files->emplace_back(fd);
      }
    }
    if (files != nullptr && (in.msg_flags & MSG_CTRUNC))
      return fail(ChannelStatus::broken,
                  "descriptors were lost (too many, or this process has no free ones)");
    if (n == 0)
      return fail(ChannelStatus::closed, got == 0
                                             ? "the other process has hung up"
                                             : "the other process has hung up in the middle of a message");
    got += static_cast<std::size_t>(n);
  }
  return ChannelStatus::ok;
}

ChannelStatus Channel::receive(Frame& frame, const Wait& wait) {
  if (desynchronised_) return ChannelStatus::broken;
  frame = {};
  std::array<std::uint8_t, kHeaderBytes> raw{};
  if (const ChannelStatus status = read_bytes(raw.data(), raw.size(), wait, &frame.files);
      status != ChannelStatus::ok)
    return status;
  const Header header{get<std::uint32_t>(raw.data()), get<std::uint16_t>(raw.data() + 4),
                      get<std::uint16_t>(raw.data() + 6), get<std::uint64_t>(raw.data() + 8)};
  if (header.magic != kMagic)
    return fail(ChannelStatus::broken, "what came is not a message of this protocol");
  if (header.bytes > max_bytes_)
    return fail(ChannelStatus::broken, "a message of " + std::to_string(header.bytes) +
                                           " bytes is over the limit of " + std::to_string(max_bytes_));
  if (header.files != frame.files.size())
    return fail(ChannelStatus::broken, "a message announced " + std::to_string(header.files) +
                                           " descriptors and came with " +
                                           std::to_string(frame.files.size()));
  // Memory grows with what has come, not with what was announced.
  std::vector<std::uint8_t> payload;
  constexpr std::uint64_t kStep = std::uint64_t{16} << 20;
  while (payload.size() < header.bytes) {
    const std::size_t at = payload.size();
    payload.resize(static_cast<std::size_t>(std::min<std::uint64_t>(header.bytes, at + kStep)));
    if (const ChannelStatus status = read_bytes(payload.data() + at, payload.size() - at, wait, nullptr);
        status != ChannelStatus::ok) {
      desynchronised_ = true;
      return status;
    }
  }
  auto message = decode({reinterpret_cast<const char*>(payload.data()), payload.size()}, max_bytes_);
  if (!message) return fail(ChannelStatus::broken, message.error().message);
  frame.kind = static_cast<FrameKind>(header.kind);
  frame.message = std::move(message).value();
  return ChannelStatus::ok;
}

bool Channel::idle_and_open() const noexcept {
  pollfd p{socket_.get(), POLLIN | POLLRDHUP, 0};
  return socket_ && !desynchronised_ && ::poll(&p, 1, 0) == 0;
}

Message to_message(const Error& error) {
  Message message;
  message.type = "error";
  json::Writer w;
  w.begin_object()
      .field("code", static_cast<std::int64_t>(error.code))
      .field("message", error.message)
      .field("rule", error.rule)
      .field("user_code", static_cast<std::int64_t>(error.user_code));
  w.key("where").begin_object();
  w.field("file", error.where.file).field("pointer", error.where.pointer);
  w.field("line", error.where.line).field("column", error.where.column);
  w.end_object().end_object();
  message.json = std::move(w).str();
  return message;
}

Error error_from(const Message& message) {
  const auto read = [&](Error& error) -> Result<void> {
    PTXBENCH_TRY_ASSIGN(const json::Document document, json::parse(message.json));
    const json::Cursor root(document);
    const auto text = [](const json::Cursor& at, std::string_view key, std::string& to) -> Result<void> {
      PTXBENCH_TRY_ASSIGN(const json::Cursor c, at.require(key));
      PTXBENCH_TRY_ASSIGN(to, c.as_string());
      return {};
    };
    const auto number = [](const json::Cursor& at, std::string_view key) -> Result<std::int64_t> {
      PTXBENCH_TRY_ASSIGN(const json::Cursor c, at.require(key));
      return c.as_int();
    };
    PTXBENCH_TRY_ASSIGN(const std::int64_t code, number(root, "code"));
    PTXBENCH_TRY_ASSIGN(const std::int64_t user_code, number(root, "user_code"));
    PTXBENCH_TRY(text(root, "message", error.message));
    PTXBENCH_TRY(text(root, "rule", error.rule));
    PTXBENCH_TRY_ASSIGN(const json::Cursor where, root.require("where"));
    PTXBENCH_TRY(text(where, "file", error.where.file));
    PTXBENCH_TRY(text(where, "pointer", error.where.pointer));
    PTXBENCH_TRY_ASSIGN(const std::int64_t line, number(where, "line"));
    PTXBENCH_TRY_ASSIGN(const std::int64_t column, number(where, "column"));
    // The other side's word is not trusted: a code of success, or one that means nothing here, is a defect.
    error.code = static_cast<ErrorCode>(code);
    if (code < -1000 || code >= 0 || error_code_name(error.code) == "unknown") error.code = ErrorCode::internal;
    error.user_code = static_cast<std::int32_t>(user_code);
    error.where.line = static_cast<int>(line);
    error.where.column = static_cast<int>(column);
    return {};
  };
  Error error;
  const Result<void> done = read(error);
  if (done) return error;
  return make_error(ErrorCode::internal,
                    "an error from the other process cannot be read: " + done.error().message);
}

}  // namespace ptxbench
