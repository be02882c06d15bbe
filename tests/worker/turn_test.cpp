// Whose turn it is on a GPU.
#include "worker/turn.hpp"

#include "support/catch.hpp"

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <thread>

using namespace ptxbench;

namespace {

// A turn of a thread of its own, which lives as long; none where it is not its turn.
class Held {
 public:
  Held(Turns& turns, TurnKind kind, bool expected) {
    std::promise<bool> said;
    std::future<bool> has = said.get_future();
    thread_ = std::thread([&turns, kind, token = cancel_, end = end_.get_future(), said = std::move(said)]() mutable {
      const auto turn = turns.take(kind, &token);
      said.set_value(turn.has_value());
      end.wait();
    });
    has.wait_for(std::chrono::milliseconds(expected ? 60'000 : 50));
    cancel_.trigger();
    has_ = has.get();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    end_.set_value();
    thread_.join();
  }
  explicit operator bool() const { return has_; }

 private:
  CancelToken cancel_;
  std::promise<void> end_;
  std::thread thread_;
  bool has_ = false;
};

std::unique_ptr<Held> take(Turns& turns, TurnKind kind, bool expected) {
  return std::make_unique<Held>(turns, kind, expected);
}

}  // namespace

TEST_CASE("turns: a verification and three counts run side by side, nothing beside what wants to be alone") {
  Turns turns;
  auto verify = take(turns, TurnKind::verify, true);
  REQUIRE(*verify);
  std::unique_ptr<Held> counts[3];
  for (auto& count : counts) {
    count = take(turns, TurnKind::count, true);
    REQUIRE(*count);
  }
  CHECK_FALSE(*take(turns, TurnKind::verify, false));
  CHECK_FALSE(*take(turns, TurnKind::count, false));
  CHECK_FALSE(*take(turns, TurnKind::alone, false));
  verify.reset();
  CHECK_FALSE(*take(turns, TurnKind::alone, false));
  CHECK(*take(turns, TurnKind::verify, true));
  for (auto& count : counts) count.reset();
  const auto alone = take(turns, TurnKind::alone, true);
  REQUIRE(*alone);
  for (const TurnKind kind : {TurnKind::verify, TurnKind::alone, TurnKind::count}) CHECK_FALSE(*take(turns, kind, false));
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
