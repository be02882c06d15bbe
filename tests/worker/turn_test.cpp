// Whose turn it is on a GPU.
#include "worker/turn.hpp"

#include "support/catch.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace ptxbench;

namespace {

// Threads that wait for their turn and hold it until they are told.
class Bench {
 public:
  ~Bench() {
    end_all();
    for (std::thread& thread : threads_) thread.join();
  }
  // Asks; returns once the thread waits, or has its turn.
  void ask(const std::string& name, TurnKind kind) {
    const std::size_t before = begun();
    std::atomic<bool> asking{false};
    threads_.emplace_back([this, name, kind, &asking] {
      asking = true;
      const auto turn = turns.take(kind, nullptr);
      std::unique_lock lock(mutex_);
      if (!turn) return;
      order_ += name;
      changed_.notify_all();
      changed_.wait(lock, [&] { return all_ || ended_.find(name) != std::string::npos; });
    });
    while (!asking) std::this_thread::yield();
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(50), [&] { return order_.size() > before; });
  }
  void end(const std::string& name) {
    const std::lock_guard lock(mutex_);
    ended_ += name;
    changed_.notify_all();
  }
  void end_all() {
    const std::lock_guard lock(mutex_);
    all_ = true;
    changed_.notify_all();
  }
  // Waits until so many have begun.
  std::string order(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return order_.size() >= count; });
    return order_;
  }
  std::size_t begun() {
    const std::lock_guard lock(mutex_);
    return order_.size();
  }

  Turns turns;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string order_, ended_;
  bool all_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

TEST_CASE("turns: a verification and three counts run side by side, nothing beside what wants to be alone") {
  Bench bench;
  bench.ask("v", TurnKind::verify);
  for (const char* count : {"c", "d", "e"}) bench.ask(count, TurnKind::count);
  CHECK(bench.order(4) == "vcde");
  bench.ask("t", TurnKind::alone);
  bench.ask("w", TurnKind::verify);
  bench.ask("f", TurnKind::count);  // waits for another count, and comes before `t`
  CHECK(bench.begun() == 4);
  bench.end("c");
  CHECK(bench.order(5) == "vcdef");
  bench.end("v");
  CHECK(bench.order(6) == "vcdefw");  // beside counts, for which `t` waits
  for (const char* count : {"d", "e", "f"}) bench.end(count);
  bench.ask("x", TurnKind::verify);
  CHECK(bench.begun() == 6);
  bench.end("w");
  CHECK(bench.order(7) == "vcdefwt");
  CHECK(bench.begun() == 7);
  bench.end("t");
  CHECK(bench.order(8) == "vcdefwtx");
}

TEST_CASE("turns: what is half done comes before what has not begun, within a kind the first that asked") {
  Bench bench;
  bench.ask("0", TurnKind::alone);
  bench.ask("1", TurnKind::verify);
  bench.ask("2", TurnKind::verify);
  bench.ask("3", TurnKind::alone);
  bench.ask("4", TurnKind::alone);
  bench.end("0");
  CHECK(bench.order(2) == "03");
  bench.ask("5", TurnKind::count);
  CHECK(bench.begun() == 2);
  bench.end("3");
  CHECK(bench.order(4).substr(0, 3) == "035");  // and `1` beside it
  CHECK(bench.order(4) == "0351");
  bench.end("5");
  CHECK(bench.begun() == 4);
  bench.end("1");
  CHECK(bench.order(5) == "03514");
  bench.end("4");
  CHECK(bench.order(6) == "035142");
}

TEST_CASE("turns: waiting is cancelled, and a thread that has a turn gets an error, not a deadlock") {
  Turns turns;
  auto held = turns.take(TurnKind::count, nullptr);
  REQUIRE(held);
  for (const TurnKind kind : {TurnKind::verify, TurnKind::alone, TurnKind::count}) {
    const auto again = turns.take(kind, nullptr);
    REQUIRE_FALSE(again);
    CHECK(again.error().code == ErrorCode::state);
  }
  CancelToken cancel;
  std::optional<ErrorCode> code;
  std::thread other([&] {
    const auto waited = turns.take(TurnKind::alone, &cancel);
    if (!waited) code = waited.error().code;
  });
  cancel.trigger();
  other.join();
  CHECK(code == ErrorCode::cancelled);
  { const auto dropped = std::make_unique<Turns::Turn>(std::move(*held)); }
  CHECK(turns.take(TurnKind::alone, nullptr));
}
