// The queue of asynchronous operations.
#include "emulator/async.hpp"

#include "emulator/mbarrier.hpp"
#include "emulator/support.hpp"

#include <set>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

struct Log {
  std::vector<std::string> lines;
};

class Step final : public AsyncOp {
 public:
  Step(Log& log, std::string name, int halves = 1, const bool* gate = nullptr)
      : log_(log), name_(std::move(name)), halves_(halves), gate_(gate) {}
  bool ready(const Cluster&) const override { return gate_ == nullptr || *gate_; }
  bool complete(Cluster&, Run&) override {
    log_.lines.push_back(name_);
    return --halves_ == 0;
  }
  std::string describe() const override { return name_; }

 private:
  Log& log_;
  std::string name_;
  int halves_;
  const bool* gate_;
};

struct Bench {
  explicit Bench(Schedule schedule) {
    grid.kernel = &kernel;
    grid.schedule = schedule;
    cluster.grid = &grid;
    cluster.random.seed(schedule.seed);
    queue = std::make_unique<AsyncQueue>(cluster);
  }
  void issue(const char* name, int halves = 1, const bool* gate = nullptr) {
    queue->issue(std::make_unique<Step>(log, name, halves, gate), run);
  }
  using Lines = std::vector<std::string>;
  Kernel kernel;
  Grid grid;
  Cluster cluster;
  std::unique_ptr<AsyncQueue> queue;
  Run run{kernel};
  Log log;
};

}  // namespace

TEST_CASE("eager operations complete when they are issued, or when they become ready") {
  Bench b({Schedule::Mode::eager, 0});
  bool gate = false;
  b.issue("a", 2);
  b.issue("b", 1, &gate);
  b.issue("c");
  CHECK(b.log.lines == Bench::Lines{"a", "a", "c"});
  CHECK(!b.queue->advance(b.run));
  gate = true;
  b.queue->poke(b.run);
  CHECK(b.log.lines == Bench::Lines{"a", "a", "c", "b"});
  CHECK(b.queue->empty());
}

TEST_CASE("lazy operations complete one by one, the oldest that is ready first, halves apart") {
  Bench b({Schedule::Mode::lazy, 0});
  bool gate = false;
  b.issue("a", 1, &gate);
  b.issue("b", 2);
  b.issue("c");
  b.queue->poke(b.run);
  b.queue->breathe(b.run);
  CHECK(b.log.lines.empty());
  for (int i = 0; i < 2; ++i) CHECK(b.queue->advance(b.run));
  gate = true;
  for (int i = 0; i < 2; ++i) CHECK(b.queue->advance(b.run));
  CHECK(!b.queue->advance(b.run));
  CHECK(b.log.lines == Bench::Lines{"b", "b", "a", "c"});
  CHECK(b.cluster.progress == 4);
}

TEST_CASE("random operations complete in many orders, each by its seed") {
  std::set<Bench::Lines> orders;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Bench::Lines first;
    for (int again = 0; again < 2; ++again) {
      Bench b({Schedule::Mode::random, seed});
      for (const char* name : {"a", "b", "c"}) {
        b.issue(name);
        b.queue->breathe(b.run);
      }
      while (b.queue->advance(b.run)) {
      }
      CHECK(b.log.lines.size() == 3);
      if (again == 0)
        first = b.log.lines;
      else
        CHECK(b.log.lines == first);
    }
    orders.insert(first);
  }
  CHECK(orders.size() == 6);
}

TEST_CASE("finish completes what it is asked for and no more") {
  Bench b({Schedule::Mode::lazy, 0});
  b.issue("a");
  b.issue("b", 2);
  b.issue("c");
  b.queue->finish([](const AsyncOp& op) { return op.describe() != "a"; }, b.run);
  CHECK(b.log.lines == Bench::Lines{"b", "b", "c"});
  CHECK(b.queue->pending().size() == 1);
}

TEST_CASE("nothing completes after a fault") {
  Bench b({Schedule::Mode::lazy, 0});
  b.issue("a");
  b.run.raise({FaultKind::trap, {}, "stop", {}});
  CHECK(!b.queue->advance(b.run));
  CHECK(b.log.lines.empty());
}
