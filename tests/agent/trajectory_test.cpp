#include "agent/support.hpp"
#include "support/catch.hpp"

#include <limits>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

Evaluation answer(int turn) {
  switch (turn) {
    case 0: {
      Verdict v = verdict(8, Status::compile_error);
      v.compile.diagnostics = {{Severity::error, "bad \xff byte", "scale.cu", 1, 1, 0, "", ""}};  // no UTF-8
      return evaluation({v, verdict(3, Status::compile_error)});
    }
    case 1: {
      Verdict v = verdict(8, Status::incorrect_numerical);
      OutputCorrectness o;
      o.output = "Y";
      o.elements = o.elements_checked = 512;
      o.elements_wrong = 1;
      o.first_wrong_index = std::vector<std::int64_t>{1, 2};
      o.first_wrong_got = std::numeric_limits<double>::infinity();
      o.max_absolute_error = std::numeric_limits<double>::infinity();
      v.correctness.outputs = {o};
      return evaluation({v, passed(3, 0.5)});
    }
    default:
      return evaluation({passed(8, 1.0 / 3), passed(3, 0.7)});
  }
}

Evaluator answers() {
  return [turn = 0](const Solution&, std::uint64_t, const CancelToken&) mutable -> Result<Evaluation> {
    return answer(turn++);
  };
}

std::vector<ChatReply> script() {
  return {{"Nothing yet \xfe.", ChatUsage{10, 20}, "stop", "fake"},
          {kReply, {}, "stop", "fake"},
          {kReply, {}, "length", "fake"},
          {kReply, {}, "", "fake"}};
}

// Runs the script into a trajectory; gives its path.
std::string record(const Folder& folder, int max_turns = 4, int replies = 4) {
  AgentOptions options = agent_options(answers());
  options.max_turns = max_turns;
  options.trajectory_path = folder / "t.jsonl";
  options.sampling.temperature = 0.7;
  options.sampling.max_tokens = 1000;
  options.evaluate.constants = {{"BM", std::int64_t{64}}, {"x", 0.1}, {"on", true}};
  options.evaluate.time_budget_ns = 1234567891;
  options.evaluate.stop_if_slower_than = 0.3;
  options.device_name = "NVIDIA H200";
  const auto agent = Agent::create(std::move(options)).value();
  std::vector<ChatReply> all = script();
  all.resize(static_cast<std::size_t>(replies));
  ScriptedModel model(std::move(all));
  REQUIRE(run_agent(*agent, model));
  return folder / "t.jsonl";
}

}  // namespace

TEST_CASE("a trajectory holds the attempt") {
  const Folder folder;
  const auto t = load_trajectory(record(folder));
  INFO((t ? std::string() : t.error().to_string()));
  REQUIRE(t);
  CHECK_FALSE(t->torn);
  CHECK(t->mode == TrajectoryMode::live);
  CHECK(t->ptxbench_version == version_string());
  CHECK(t->seed == 7);
  CHECK(t->device_name == "NVIDIA H200");
  CHECK(t->definition->name == "scale");
  CHECK(t->workloads.size() == 2);
  CHECK(t->evaluate.time_budget_ns == 1234567891);
  CHECK(t->evaluate.constants.size() == 3);
  CHECK(t->sampling.temperature == 0.7);
  CHECK(t->end_reason == "max_turns");
  REQUIRE(t->turns.size() == 4);
  const TrajectoryTurn& first = t->turns[0];
  REQUIRE(first.messages.size() == 1);
  CHECK(first.messages[0].content == "Write a kernel.");
  CHECK(first.request_hash.size() == 64);
  CHECK(first.turn.reply.text == "Nothing yet \xEF\xBF\xBD.");
  CHECK(first.turn.reply.usage->output_tokens == 20);
  CHECK_FALSE(first.turn.evaluation);
  CHECK(t->turns[1].messages[0].content == first.turn.feedback);
  CHECK(t->turns[1].turn.status == Status::compile_error);
  CHECK(t->turns[3].turn.status == Status::passed);
  CHECK(t->turns[3].turn.submitted_us > t->turns[3].turn.requested_us);
  CHECK(t->turns[3].turn.candidate->sources[1].content == kKernelText);

  SECTION("it is never overwritten") {
    AgentOptions options = agent_options(answers());
    options.trajectory_path = folder / "t.jsonl";
    CHECK(Agent::create(std::move(options)).error().code == ErrorCode::io);
  }
}

TEST_CASE("a replay writes the same bytes") {
  const Folder folder;
  std::string file;
  SECTION("to its last turn") { file = record(folder); }
  SECTION("ended by the script") { file = record(folder, 9, 3); }
  SECTION("cut off after any line, or within one") {
    const std::string whole = read(record(folder));
    for (std::size_t at = whole.find('\n') + 1; at < whole.size(); at += 97) {
      const auto t = parse_trajectory(whole.substr(0, at));
      INFO(at);
      REQUIRE(t);
      CHECK(t->torn == (whole[at - 1] != '\n'));
      CHECK(whole.compare(0, t->bytes.size(), t->bytes) == 0);
      const std::string path = folder / ("r" + std::to_string(at));
      const auto replayed = replay_trajectory(*t, {path, {}, {}});
      REQUIRE(replayed);
      CHECK(replayed->identical);
      CHECK(read(path) == t->bytes);
    }
    return;
  }
  const auto t = load_trajectory(file);
  REQUIRE(t);
  int judged = 0;
  const auto replayed =
      replay_trajectory(*t, {folder / "again.jsonl", {}, {}}, [&](const AgentProgress& event, const Agent&) {
        judged += event.kind == AgentProgress::Kind::judged ? 1 : 0;
      });
  INFO((replayed ? std::string() : replayed.error().to_string()));
  REQUIRE(replayed);
  CHECK(replayed->identical);
  CHECK(replayed->first_difference == 0);
  CHECK(read(folder / "again.jsonl") == read(file));
  CHECK(judged == static_cast<int>(t->turns.size()));
  CHECK(replayed->agent->turns().size() == t->turns.size());
  CHECK(replay_trajectory(*t, {})->identical);  // without writing
}

TEST_CASE("a replay that comes out different says where") {
  const Folder folder;
  std::string text = read(record(folder));
  const std::size_t at = text.rfind("Good luck!");
  REQUIRE(at != std::string::npos);
  const std::size_t feedback = text.find("no candidate was found");
  REQUIRE(feedback != std::string::npos);
  text.replace(feedback, 22, "no candidate was faund");
  const auto t = parse_trajectory(text);
  REQUIRE(t);
  const auto replayed = replay_trajectory(*t, {});
  REQUIRE(replayed);
  CHECK_FALSE(replayed->identical);
  CHECK(replayed->first_difference == 2);
}

TEST_CASE("judging again is another mode, and the records say so") {
  const Folder folder;
  const auto t = load_trajectory(record(folder));
  REQUIRE(t);
  ReplayOptions how;
  how.trajectory_path = folder / "again.jsonl";
  how.evaluator = [](const Solution&, std::uint64_t, const CancelToken&) -> Result<Evaluation> {
    return evaluation({passed(8, 2), passed(3, 2)});
  };
  how.clock = ticking();
  const auto replayed = replay_trajectory(*t, how);
  REQUIRE(replayed);
  CHECK_FALSE(replayed->identical);
  CHECK(replayed->agent->last_turn()->status == Status::passed);
  const auto again = load_trajectory(folder / "again.jsonl");
  INFO((again ? std::string() : again.error().to_string()));
  REQUIRE(again);
  CHECK(again->mode == TrajectoryMode::rejudged);
  CHECK(again->rejudged_from.size() == 64);
  CHECK(again->turns[1].turn.status == Status::passed);
  CHECK(again->turns[1].turn.seed == t->turns[1].turn.seed);
  CHECK(replay_trajectory(*again, {})->identical);  // and can be replayed itself
}

TEST_CASE("trajectories that are none") {
  const Folder folder;
  const std::string whole = read(record(folder));
  const auto line = [&](int n) {
    std::size_t at = 0;
    for (int i = 1; i < n; ++i) at = whole.find('\n', at) + 1;
    return whole.substr(at, whole.find('\n', at) + 1 - at);
  };
  const auto changed = [](std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  struct Row {
    std::string text;
    int line;
  };
  const Row rows[] = {
      {"", 1},
      {"{", 1},
      {"{}\n", 1},
      {changed(line(1), "\"ptxbench_trajectory\":1", "\"ptxbench_trajectory\":2"), 1},
      {changed(line(1), "\"seed\"", "\"sead\""), 1},
      {line(1) + "x\n" + line(2), 2},  // torn in the middle is damage, not a kill
      {line(1) + line(3), 2},          // turn 1 is missing
      {line(1) + changed(line(2), "\"mode\":\"live\"", "\"mode\":\"rejudged\""), 2},
      {line(1) + line(2) + changed(line(3), "\"status\":\"COMPILE_ERROR\"", "\"status\":\"PASSED\""), 3},
      {whole + line(2), 7},
  };
  for (const Row& row : rows) {
    const auto t = parse_trajectory(row.text, "t.jsonl");
    REQUIRE_FALSE(t);
    INFO(t.error().to_string());
    CHECK(t.error().where.line == row.line);
    CHECK(t.error().where.file == "t.jsonl");
  }
  CHECK(load_trajectory("/nonexistent").error().code == ErrorCode::not_found);
}
