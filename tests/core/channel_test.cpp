#include "core/channel.hpp"

#include "core/shared_memory.hpp"
#include "support/catch.hpp"
#include "support/processes.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cstring>
#include <numeric>
#include <thread>

using namespace ptxbench;
using namespace std::chrono_literals;

namespace {

struct Pair {
  Channel a, b;
};

Pair make_pair(std::uint64_t max_bytes = std::uint64_t{1} << 30) {
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  return {Channel(UniqueFd(fds[0]), max_bytes), Channel(UniqueFd(fds[1]), max_bytes)};
}

Wait within(std::chrono::milliseconds time) { return {SteadyClock::now() + time, nullptr, -1}; }

Message message(std::string type, std::size_t blob_bytes = 0) {
  Message m;
  m.type = std::move(type);
  m.json = R"({"x":1})";
  if (blob_bytes > 0) {
    m.blobs.emplace_back(blob_bytes);
    std::iota(m.blobs[0].begin(), m.blobs[0].end(), std::uint8_t{0});
  }
  return m;
}

}  // namespace

TEST_CASE("messages arrive in order with kind, JSON and blobs") {
  Pair p = make_pair();
  REQUIRE(p.a.send(FrameKind::job, message("one"), {}, within(20s)) == ChannelStatus::ok);
  REQUIRE(p.a.send(FrameKind::progress, message("two", 1000), {}, within(20s)) == ChannelStatus::ok);
  Frame f;
  REQUIRE(p.b.receive(f, within(20s)) == ChannelStatus::ok);
  REQUIRE(f.kind == FrameKind::job);
  REQUIRE(f.message.type == "one");
  REQUIRE(p.b.receive(f, within(20s)) == ChannelStatus::ok);
  REQUIRE(f.kind == FrameKind::progress);
  REQUIRE(f.message.blobs == message("two", 1000).blobs);
  REQUIRE(p.b.idle_and_open());
}

TEST_CASE("a message larger than the socket's buffer goes through in pieces") {
  Pair p = make_pair();
  const Message big = message("big", 40'000'000);
  std::thread sender([&] { (void)p.a.send(FrameKind::reply, big, {}, within(60s)); });
  Frame f;
  const ChannelStatus status = p.b.receive(f, within(60s));
  sender.join();
  REQUIRE(status == ChannelStatus::ok);
  REQUIRE(f.message.blobs == big.blobs);
}

TEST_CASE("a deadline between messages loses nothing, within one breaks the channel") {
  Pair p = make_pair();
  Frame f;
  REQUIRE(p.b.receive(f, within(5ms)) == ChannelStatus::deadline);
  REQUIRE(p.a.send(FrameKind::job, message("x"), {}, within(20s)) == ChannelStatus::ok);
  REQUIRE(p.b.receive(f, within(20s)) == ChannelStatus::ok);

  REQUIRE(::send(p.a.fd(), "PX", 2, MSG_NOSIGNAL) == 2);
  REQUIRE(p.b.receive(f, within(5ms)) == ChannelStatus::deadline);
  REQUIRE(p.b.receive(f, within(5ms)) == ChannelStatus::broken);
  REQUIRE_FALSE(p.b.idle_and_open());
}

TEST_CASE("sending to one that does not read ends at the deadline") {
  Pair p = make_pair();
  REQUIRE(p.a.send(FrameKind::job, message("big", 10'000'000), {}, within(30ms)) == ChannelStatus::deadline);
  REQUIRE(p.a.send(FrameKind::job, message("x"), {}, within(30ms)) == ChannelStatus::broken);
}

TEST_CASE("a cancel token ends a wait") {
  Pair p = make_pair();
  CancelToken cancel;
  std::thread later([&] {
    std::this_thread::sleep_for(20ms);
    cancel.trigger();
  });
  Frame f;
  const ChannelStatus status = p.b.receive(f, {SteadyClock::now() + 60s, &cancel, -1});
  later.join();
  REQUIRE(status == ChannelStatus::cancelled);
}

TEST_CASE("a peer that hangs up is seen in every state, without SIGPIPE") {
  Frame f;
  SECTION("between messages") {
    Pair p = make_pair();
    p.a.close();
    REQUIRE_FALSE(p.b.idle_and_open());
    REQUIRE(p.b.receive(f, within(20s)) == ChannelStatus::closed);
  }
  SECTION("in the middle of one") {
    Pair p = make_pair();
    REQUIRE(::send(p.a.fd(), "PXBP\1\0", 6, MSG_NOSIGNAL) == 6);
    p.a.close();
    REQUIRE(p.b.receive(f, within(20s)) == ChannelStatus::closed);
    REQUIRE(p.b.problem().find("middle") != std::string::npos);
  }
  SECTION("after its last message, which is still read") {
    Pair p = make_pair();
    REQUIRE(p.a.send(FrameKind::job, message("last"), {}, within(20s)) == ChannelStatus::ok);
    p.a.close();
    REQUIRE(p.b.receive(f, within(20s)) == ChannelStatus::ok);
    REQUIRE(p.b.receive(f, within(20s)) == ChannelStatus::closed);
  }
  SECTION("while sending") {
    Pair p = make_pair();
    p.b.close();
    REQUIRE(p.a.send(FrameKind::job, message("x"), {}, within(20s)) == ChannelStatus::closed);
  }
}

TEST_CASE("an ended process is seen though something keeps its socket open") {
  Pair p = make_pair();
  int ended[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ended) == 0);
  const UniqueFd exit_fd(ended[0]);
  REQUIRE(p.a.send(FrameKind::job, message("last"), {}, within(20s)) == ChannelStatus::ok);
  ::close(ended[1]);
  Frame f;
  const Wait wait{SteadyClock::now() + 20s, nullptr, exit_fd.get()};
  REQUIRE(p.b.receive(f, wait) == ChannelStatus::ok);
  REQUIRE(p.b.receive(f, wait) == ChannelStatus::closed);
}

TEST_CASE("what is no frame, or too large, breaks the channel") {
  Frame f;
  SECTION("other bytes") {
    Pair p = make_pair();
    const std::string text = "Segmentation fault (core dumped)\n";
    REQUIRE(::send(p.a.fd(), text.data(), text.size(), MSG_NOSIGNAL) > 0);
    REQUIRE(p.b.receive(f, within(20s)) == ChannelStatus::broken);
    REQUIRE(p.b.problem().find("not a message") != std::string::npos);
  }
  SECTION("a size over the limit, on both sides") {
    Pair p = make_pair(1000);
    REQUIRE(p.a.send(FrameKind::job, message("big", 2000), {}, within(20s)) == ChannelStatus::broken);
    Pair q = make_pair();
    Channel small(UniqueFd(::fcntl(q.b.fd(), F_DUPFD_CLOEXEC, 0)), 1000);
    REQUIRE(q.a.send(FrameKind::job, message("big", 2000), {}, within(20s)) == ChannelStatus::ok);
    REQUIRE(small.receive(f, within(20s)) == ChannelStatus::broken);
    REQUIRE(small.problem().find("limit") != std::string::npos);
  }
  SECTION("a frame whose content is malformed") {
    Pair p = make_pair();
    const char raw[] = "PXBP\1\0\0\0\4\0\0\0\0\0\0\0junk";
    REQUIRE(::send(p.a.fd(), raw, sizeof raw - 1, MSG_NOSIGNAL) == sizeof raw - 1);
    REQUIRE(p.b.receive(f, within(20s)) == ChannelStatus::broken);
  }
  SECTION("a frame that announces a descriptor and brings none") {
    Pair p = make_pair();
    const char raw[] = "PXBP\1\0\1\0\4\0\0\0\0\0\0\0junk";
    REQUIRE(::send(p.a.fd(), raw, sizeof raw - 1, MSG_NOSIGNAL) == sizeof raw - 1);
    REQUIRE(p.b.receive(f, within(20s)) == ChannelStatus::broken);
    REQUIRE(p.b.problem().find("descriptors") != std::string::npos);
  }
}

TEST_CASE("shared memory travels with its message") {
  const std::size_t before = testing::open_descriptors();
  {
    Pair p = make_pair();
    auto mine = SharedMemory::create(3'000'000);
    auto second = SharedMemory::create(1);
    REQUIRE(mine);
    REQUIRE(second);
    mine->data()[2'999'999] = 42;
    const int fds[] = {mine->fd(), second->fd()};
    REQUIRE(p.a.send(FrameKind::ask, message("two", 100'000), fds, within(20s)) == ChannelStatus::ok);
    REQUIRE(p.a.send(FrameKind::ask, message("none"), {}, within(20s)) == ChannelStatus::ok);
    Frame f, g;
    REQUIRE(p.b.receive(f, within(20s)) == ChannelStatus::ok);
    REQUIRE(p.b.receive(g, within(20s)) == ChannelStatus::ok);
    REQUIRE(f.files.size() == 2);
    REQUIRE(g.files.empty());
    REQUIRE((::fcntl(f.files[0].get(), F_GETFD) & FD_CLOEXEC) != 0);
    auto theirs = SharedMemory::adopt(std::move(f.files[0]));
    REQUIRE(theirs);
    REQUIRE(theirs->size() == 3'000'000);
    REQUIRE(theirs->data()[2'999'999] == 42);
    theirs->data()[0] = 7;
    REQUIRE(mine->data()[0] == 7);
    REQUIRE(::ftruncate(theirs->fd(), 10) != 0);  // sealed
  }
  REQUIRE(testing::open_descriptors() == before);
}

TEST_CASE("memory that could change its size is refused") {
  REQUIRE_FALSE(SharedMemory::create(0));
  UniqueFd open_sized(::memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::ftruncate(open_sized.get(), 100) == 0);
  REQUIRE(SharedMemory::adopt(std::move(open_sized)).error().code == ErrorCode::invalid_argument);
  REQUIRE_FALSE(SharedMemory::adopt(UniqueFd(::open("/dev/zero", O_RDWR | O_CLOEXEC))));
  REQUIRE_FALSE(SharedMemory::adopt(UniqueFd()));
}

TEST_CASE("an error reads back as it was sent") {
  Error e = make_error(ErrorCode::callback, "no \"reference\"\n", {"a.cu", "/x/0", 3, 4}, "rule");
  e.user_code = -17;
  const Error back = error_from(to_message(e));
  REQUIRE(back.code == e.code);
  REQUIRE(back.to_string() == e.to_string());
  REQUIRE(back.rule == e.rule);
  REQUIRE(back.user_code == e.user_code);
  REQUIRE(error_from(Message{"error", "[]", {}}).code == ErrorCode::internal);
}
