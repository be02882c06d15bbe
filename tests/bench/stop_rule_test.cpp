#include "bench/stop_rule.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <set>

using namespace ptxbench;

TEST_CASE("each rule ends the pairs where it must, and not before") {
  StopRules rules{20, 1000, 0.01, 0.9};
  const std::vector<double> steady(10, 1.5), nine(9, 1.5), slow(6, 0.5), five(5, 0.5);
  CHECK(stop_rule(rules, {}, true, 0) == std::nullopt);
  CHECK(stop_rule(rules, nine, true, 0) == std::nullopt);
  CHECK(stop_rule(rules, steady, true, 0) == "target_width");
  CHECK(stop_rule(rules, std::vector<double>(11, 1.5), true, 0) == std::nullopt);  // half a turn
  CHECK(stop_rule(rules, five, true, 0) == std::nullopt);
  CHECK(stop_rule(rules, slow, true, 0) == "slower");
  CHECK(stop_rule(rules, slow, false, 0) == std::nullopt);  // times are no speedups
  CHECK(stop_rule(rules, five, true, 1001) == "budget");
  CHECK(stop_rule(rules, five, true, 1000) == std::nullopt);
  std::vector<double> wide;
  for (int i = 0; i < 20; ++i) wide.push_back(1 + 0.01 * i);
  CHECK(stop_rule(rules, wide, true, 0) == "pairs");
  wide.pop_back();
  CHECK(stop_rule(rules, wide, true, 0) == std::nullopt);
  rules.target_width = 0;
  CHECK(stop_rule(rules, steady, true, 0) == std::nullopt);
}

TEST_CASE("the first pair and one of every four are verified whole, by seed") {
  std::set<int> positions;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    CHECK(verified_whole(seed, 0));
    for (int block = 1; block < 20; ++block) {
      int count = 0;
      for (int i = 0; i < 4; ++i)
        if (verified_whole(seed, 4 * block + i)) {
          ++count;
          positions.insert(i);
        }
      CHECK(count == 1);
    }
  }
  CHECK(positions.size() == 4);
}

TEST_CASE("candidate and baseline walk over all sets, never on one") {
  for (const std::size_t sets : {2, 3, 4, 7}) {
    std::set<std::size_t> candidate[2], baseline[2];
    for (int pair = 0; pair < 100; ++pair) {
      const SetChoice choice = choose_sets(pair, sets);
      REQUIRE(choice.candidate < sets);
      REQUIRE(choice.baseline < sets);
      REQUIRE(choice.candidate != choice.baseline);
      candidate[pair % 2].insert(choice.candidate);
      baseline[pair % 2].insert(choice.baseline);
    }
    for (int order = 0; order < 2; ++order) {
      CHECK(candidate[order].size() == sets);
      CHECK(baseline[order].size() == sets);
    }
  }
  CHECK(choose_sets(5, 1).candidate == 0);
  CHECK(choose_sets(-3, 4).candidate < 4);
}

TEST_CASE("the runs that a timing plans are those of its protocol") {
  TimeJob job;
  job.pairs = 10;
  job.warmup_pairs = 2;
  job.noise_pairs = 5;
  CHECK(planned_runs(job) == 24);
  job.noise = true;
  CHECK(planned_runs(job) == 34);
  job.protocol = kPublished;
  CHECK(planned_runs(job) == 360);
}
