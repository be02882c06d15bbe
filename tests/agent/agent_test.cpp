#include "agent/support.hpp"
#include "support/catch.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

ChatReply says(std::string text, std::optional<ChatUsage> usage = {}) {
  return {std::move(text), usage, "stop", "fake"};
}

// Gives its evaluations in order, and keeps the seeds.
struct Judge {
  std::vector<Result<Evaluation>> answers;
  std::vector<std::uint64_t> seeds;
  Evaluator evaluator() {
    return [this](const Solution&, std::uint64_t seed, const CancelToken&) -> Result<Evaluation> {
      seeds.push_back(seed);
      const std::size_t i = seeds.size() - 1;
      return i < answers.size() ? answers[i] : Result<Evaluation>(evaluation({passed(8, 1), passed(3, 1)}));
    };
  }
};

std::vector<ChatReply> repeated(int n) {
  return std::vector<ChatReply>(static_cast<std::size_t>(n), says(kReply));
}

}  // namespace

TEST_CASE("the agent asks, judges, tells, and ends") {
  Judge judge{{evaluation({verdict(8, Status::compile_error), verdict(3, Status::compile_error)}),
               evaluation({passed(8, 0.5), passed(3, 0.5)})},
              {}};
  AgentOptions options = agent_options(judge.evaluator());
  options.max_turns = 2;
  const auto agent = Agent::create(std::move(options)).value();
  CHECK(agent->request().error().code == ErrorCode::state);
  CHECK(agent->submit(says("")).error().code == ErrorCode::state);

  REQUIRE(agent->step().value() == AgentStep::need_completion);
  REQUIRE(agent->step().value() == AgentStep::need_completion);  // asking twice changes nothing
  const ChatRequest first = agent->request().value();
  REQUIRE(first.messages.size() == 1);
  CHECK(first.messages[0].content == "Write a kernel.");
  REQUIRE(agent->submit(says(kReply)));
  CHECK(agent->submit(says(kReply)).error().code == ErrorCode::state);
  CHECK(agent->stop("now").error().code == ErrorCode::state);
  REQUIRE(agent->step().value() == AgentStep::evaluated);
  CHECK(agent->last_turn()->status == Status::compile_error);
  REQUIRE(agent->last_evaluation());
  CHECK(agent->best_turn() == nullptr);

  REQUIRE(agent->step().value() == AgentStep::need_completion);
  const ChatRequest second = agent->request().value();
  REQUIRE(second.messages.size() == 3);
  CHECK(second.messages[1].role == ChatRole::assistant);
  CHECK(second.messages[1].content == kReply);
  CHECK(second.messages[2].content == agent->last_turn()->feedback);
  REQUIRE(agent->submit(says(kReply)));
  REQUIRE(agent->step().value() == AgentStep::evaluated);
  REQUIRE(agent->step().value() == AgentStep::done);
  CHECK(agent->end_reason() == "max_turns");
  CHECK(agent->best_turn()->turn == 2);
  REQUIRE(agent->step().value() == AgentStep::done);
  REQUIRE(judge.seeds.size() == 2);
  CHECK(judge.seeds[0] != judge.seeds[1]);  // fresh draws each turn
}

TEST_CASE("an error of the environment ends no turn") {
  Judge judge{{make_error(ErrorCode::worker, "gone"), evaluation({passed(8, 1), passed(3, 1)})}, {}};
  const auto agent = Agent::create(agent_options(judge.evaluator())).value();
  REQUIRE(agent->step());
  REQUIRE(agent->submit(says(kReply)));
  CHECK(agent->step().error().code == ErrorCode::worker);
  CHECK(agent->turns().empty());
  REQUIRE(agent->step().value() == AgentStep::evaluated);
  CHECK(agent->turns().size() == 1);
  CHECK(judge.seeds[0] == judge.seeds[1]);  // it is the same turn
}

TEST_CASE("a reply without a candidate is a turn, and is told what was missing") {
  Judge judge;
  const auto agent = Agent::create(agent_options(judge.evaluator())).value();
  ScriptedModel model({says("Sorry."), says(kReply)});
  REQUIRE(run_agent(*agent, model));
  CHECK(agent->end_reason() == "script_end");
  REQUIRE(agent->turns().size() == 2);
  CHECK_FALSE(agent->turns()[0].evaluation);
  CHECK(agent->turns()[0].feedback.find("no fenced block") != std::string::npos);
  CHECK(judge.seeds.size() == 1);
  CHECK(agent->best_turn()->turn == 2);
}

TEST_CASE("limits") {
  Judge judge;
  AgentOptions options = agent_options(judge.evaluator());
  options.max_turns = 10;
  std::string reason;
  std::size_t turns = 0;
  SECTION("tokens") {
    options.token_budget = 25;
    reason = "token_budget";
    turns = 3;
  }
  SECTION("time") {
    options.time_budget_us = 3000;  // three looks at the clock a turn
    reason = "time_budget";
    turns = 1;
  }
  SECTION("speedup") {
    judge.answers = {evaluation({passed(8, 0.4), passed(3, 0.4)}),
                     evaluation({passed(8, 0.9), passed(3, 0.9)})};
    options.stop_at_speedup = 0.8;
    reason = "stop_at_speedup";
    turns = 2;
  }
  SECTION("turns") {
    options.max_turns = 4;
    reason = "max_turns";
    turns = 4;
  }
  const auto agent = Agent::create(std::move(options)).value();
  ScriptedModel model(std::vector<ChatReply>(12, says(kReply, ChatUsage{4, 6})));
  REQUIRE(run_agent(*agent, model));
  CHECK(agent->end_reason() == reason);
  CHECK(agent->turns().size() == turns);
}

TEST_CASE("the best turn") {
  const auto best = [](std::vector<Result<Evaluation>> answers) {
    Judge judge{std::move(answers), {}};
    AgentOptions options = agent_options(judge.evaluator());
    options.max_turns = static_cast<int>(judge.answers.size());
    const auto agent = Agent::create(std::move(options)).value();
    ScriptedModel model(repeated(static_cast<int>(judge.answers.size())));
    REQUIRE(run_agent(*agent, model));
    return agent->best_turn() == nullptr ? 0 : agent->best_turn()->turn;
  };
  const auto both = [](Verdict v) {
    Verdict w = v;
    w.axes = {{"M", 3}};
    w.workload_uuid = "w3";
    return evaluation({std::move(v), std::move(w)});
  };
  Verdict untimed = passed(8, 1);
  untimed.timing = {};
  Verdict skipped = verdict(8, std::nullopt);
  skipped.outcome = Outcome::not_applicable;
  const Verdict bad = verdict(8, Status::incorrect_numerical), unknown = verdict(8, std::nullopt);
  CHECK(best({both(passed(8, 0.9)), both(passed(8, 0.5)), both(bad)}) == 1);
  CHECK(best({both(untimed), both(passed(8, 0.1)), both(untimed)}) == 2);
  CHECK(best({both(untimed), both(untimed)}) == 2);
  CHECK(best({both(unknown), both(unknown), both(bad)}) == 2);
  CHECK(best({both(bad), both(skipped)}) == 0);
  CHECK(best({evaluation({passed(8, 3), skipped})}) == 0);  // it must serve every workload
}

TEST_CASE("options are checked") {
  Judge judge;
  const auto refused = [&](auto change) {
    AgentOptions options = agent_options(judge.evaluator());
    change(options);
    const auto agent = Agent::create(std::move(options));
    return !agent && agent.error().code == ErrorCode::invalid_argument;
  };
  CHECK_FALSE(refused([](AgentOptions&) {}));
  CHECK(refused([](AgentOptions& o) { o.definition = nullptr; }));
  CHECK(refused([](AgentOptions& o) { o.workloads.clear(); }));
  CHECK(refused([](AgentOptions& o) { o.evaluator = nullptr; }));
  CHECK(refused([](AgentOptions& o) { o.max_turns = 0; }));
  CHECK(refused([](AgentOptions& o) { o.prompt.clear(); }));
  CHECK(refused([](AgentOptions& o) { o.seed = ~std::uint64_t{0}; }));
}

TEST_CASE("cancelling, and a model that fails") {
  Judge judge;
  const auto agent = Agent::create(agent_options(judge.evaluator())).value();
  class Failing final : public ChatModel {
   public:
    Result<ChatReply> complete(const ChatRequest&, const CancelToken&) override {
      return make_error(ErrorCode::io, "no line");
    }
  } model;
  CHECK(run_agent(*agent, model).error().message == "no line");
  const CancelToken cancel;
  cancel.trigger();
  CHECK(run_agent(*agent, model, {}, cancel).error().code == ErrorCode::cancelled);
  ScriptedModel better(repeated(9));
  REQUIRE(run_agent(*agent, better));  // it goes on where it was
  CHECK(agent->turns().size() == 3);
}

TEST_CASE("candidates as folders") {
  const Folder folder;
  const ParsedReply reply = parse_reply(kReply, *task(), "t");
  REQUIRE(write_candidate(*reply.candidate, folder / "c"));
  CHECK(read(folder / "c/scale.cu") == kKernelText);
  const auto again = load_solution(folder / "c", *task());
  REQUIRE(again);
  CHECK(again->sources.size() == 2);
  CHECK(write_candidate(*reply.candidate, folder / "c").error().code == ErrorCode::io);  // not empty
  Solution hostile = *reply.candidate;
  hostile.sources[1].path = "../x.cu";
  CHECK_FALSE(write_candidate(hostile, folder / "d"));
}

TEST_CASE("a model is told which of a pack's rules its candidate does not meet, and a trajectory keeps them") {
  const auto pack = KnowledgePack::load(std::string(PTXBENCH_SOURCE_DIR) + "/knowledge_packs/hopper").value();
  const auto contracts = std::make_shared<std::vector<Contract>>(pack->contracts());
  contracts->push_back(Contract::parse("median_ns < 10", "Ten nanoseconds, please.").value());
  Folder folder;
  // As evaluate does it, at the end of each verdict.
  AgentOptions options = agent_options([contracts](const Solution&, std::uint64_t, const CancelToken&) -> Result<Evaluation> {
    Evaluation e = evaluation({passed(8, 0.25), passed(3, 0.9)});
    for (Verdict& v : e.verdicts) v.contracts = check_contracts(*contracts, task()->op_type, v);
    return e;
  });
  options.evaluate.contracts = *contracts;
  options.trajectory_path = folder / "t.jsonl";
  options.max_turns = 1;
  const auto agent = Agent::create(std::move(options)).value();
  ScriptedModel model(repeated(1));
  REQUIRE(run_agent(*agent, model));
  const std::string& feedback = agent->turns()[0].feedback;
  INFO(feedback);
  CHECK(feedback.find("- `speedup >= 0.6`, and it is 0.25: The library's kernel is far ahead") != std::string::npos);
  CHECK(feedback.find("it is 1000000: Ten nanoseconds, please.") != std::string::npos);
  CHECK(feedback.find("tma.loads") == std::string::npos);  // a rule for other operations
  CHECK(feedback.find("spills") == std::string::npos);     // nothing is known of them: not checked

  const Result<Trajectory> read_back = load_trajectory(folder / "t.jsonl");
  INFO((read_back ? std::string() : read_back.error().to_string()));
  REQUIRE(read_back);
  REQUIRE(read_back->evaluate.contracts.size() == contracts->size());
  CHECK(read_back->evaluate.contracts.back().sentence() == "Ten nanoseconds, please.");
  const Replayed again = replay_trajectory(*read_back, {}).value();
  CHECK(again.identical);
}
