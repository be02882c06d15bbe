#include "agent/agent_impl.hpp"
#include "core/guard.hpp"
#include "core/json.hpp"

#include <sys/random.h>

#include <chrono>
#include <limits>

namespace ptxbench {
namespace {

// JSON holds UTF-8 only: what is none is replaced before anything is made of it, so that a replay sees the
// same.
std::string as_utf8(std::string text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t n = json::utf8_sequence(std::string_view(text).substr(i));
    if (n == 0) {
      text.replace(i, 1, "\xEF\xBF\xBD");
      i += 3;
    } else {
      i += n;
    }
  }
  return text;
}

// splitmix64; a positive int64, so that every JSON reader keeps it.
std::uint64_t seed_of_turn(std::uint64_t seed, int turn) {
  std::uint64_t z = seed + 0x9E3779B97F4A7C15u * static_cast<std::uint64_t>(turn);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return (z ^ (z >> 31)) >> 1;
}

bool compiled_everywhere(const Evaluation& evaluation) {
  for (const Verdict& verdict : evaluation.verdicts)
    if (!verdict.compile.ok) return false;
  return !evaluation.verdicts.empty();
}

}  // namespace

Result<AgentOptions> checked_options(AgentOptions options) {
  const auto wrong = [](std::string message) {
    return make_error(ErrorCode::invalid_argument, std::move(message));
  };
  if (options.definition == nullptr) return wrong("an agent needs a definition");
  if (options.workloads.empty()) return wrong("an agent needs a workload");
  for (const Workload& workload : options.workloads)
    if (workload.definition == nullptr || workload.definition->name != options.definition->name)
      return wrong("a workload is of another definition than the agent's");
  if (!options.evaluator) return wrong("an agent needs an evaluator");
  if (options.max_turns < 1 || options.max_turns > kMostTurns)
    return wrong("max_turns lies in 1 to " + std::to_string(kMostTurns) + ", not " +
                 std::to_string(options.max_turns));
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  for (const std::uint64_t number : {options.token_budget, options.time_budget_us, options.seed.value_or(0),
                                     options.evaluate.seed.value_or(0), options.sampling.seed.value_or(0)})
    if (number > kMost) return wrong("budgets and seeds must be below 2^63");
  if (options.prompt.empty() && options.pack == nullptr)
    return wrong("an agent needs a knowledge pack or a prompt");
  if (!options.clock)
    options.clock = [] {
      return static_cast<std::int64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                           std::chrono::system_clock::now().time_since_epoch())
                                           .count());
    };
  if (options.prompt.empty())
    options.prompt = options.pack->prompt(*options.definition, options.workloads, options.device_name);
  options.prompt = as_utf8(std::move(options.prompt));
  return options;
}

AgentImpl::AgentImpl(AgentOptions options, Trajectory header, LineSink sink)
    : options_(std::move(options)), header_(std::move(header)), sink_(std::move(sink)) {
  conversation_.push_back({ChatRole::user, options_.prompt});
}

Result<std::unique_ptr<Agent>> AgentImpl::start(AgentOptions options, Trajectory header, LineSink sink) {
  std::unique_ptr<AgentImpl> agent(new AgentImpl(std::move(options), std::move(header), std::move(sink)));
  PTXBENCH_TRY(agent->sink_(header_line(agent->header_)));
  return std::unique_ptr<Agent>(std::move(agent));
}

Result<std::unique_ptr<Agent>> Agent::create(AgentOptions wanted) {
  return guarded([&]() -> Result<std::unique_ptr<Agent>> {
    PTXBENCH_TRY_ASSIGN(AgentOptions options, checked_options(std::move(wanted)));
    Trajectory header;
    header.ptxbench_version = std::string(version_string());
    header.created_us = options.clock();
    if (options.seed) {
      header.seed = *options.seed;
    } else if (options.evaluate.seed) {
      header.seed = *options.evaluate.seed;
    } else {
      if (getrandom(&header.seed, sizeof header.seed, 0) != static_cast<ssize_t>(sizeof header.seed))
        return make_error(ErrorCode::io, "the system gives no random numbers");
      header.seed >>= 1;
    }
    header.definition = options.definition;
    header.workloads = options.workloads;
    header.evaluate = options.evaluate;
    header.sampling = options.sampling;
    header.device_name = as_utf8(options.device_name);
    if (options.pack) {
      header.pack_name = options.pack->name();
      header.pack_hash = options.pack->hash();
    }
    header.max_turns = options.max_turns;
    header.token_budget = options.token_budget;
    header.time_budget_us = options.time_budget_us;
    header.stop_at_speedup = options.stop_at_speedup;
    header.feedback_bytes = options.feedback_bytes;
    LineSink sink = [](const std::string&) -> Result<void> { return {}; };
    if (!options.trajectory_path.empty()) {
      const auto file = std::make_shared<TrajectoryFile>();
      PTXBENCH_TRY(file->create(options.trajectory_path));
      sink = [file](const std::string& line) { return file->append(line); };
    }
    return AgentImpl::start(std::move(options), std::move(header), std::move(sink));
  });
}

std::string AgentImpl::limit_reached() const {
  if (!stop_reason_.empty()) return stop_reason_;
  if (turns_.empty()) return {};
  if (options_.stop_at_speedup)
    for (const AgentTurn& turn : turns_) {
      const auto speedup = turn.evaluation ? turn.evaluation->speedup() : std::nullopt;
      if (turn.status == Status::passed && speedup && *speedup >= *options_.stop_at_speedup)
        return "stop_at_speedup";
    }
  if (static_cast<int>(turns_.size()) >= options_.max_turns) return "max_turns";
  if (options_.token_budget > 0) {
    std::uint64_t tokens = 0;
    for (const AgentTurn& turn : turns_)
      if (turn.reply.usage) tokens += turn.reply.usage->input_tokens + turn.reply.usage->output_tokens;
    if (tokens >= options_.token_budget) return "token_budget";
  }
  if (options_.time_budget_us > 0 &&
      turns_.back().judged_us - header_.created_us >= static_cast<std::int64_t>(options_.time_budget_us))
    return "time_budget";
  return {};
}

Result<AgentStep> AgentImpl::step(const CancelToken& cancel) {
  return guarded([&]() -> Result<AgentStep> {
    if (state_ == State::judging) {
      PTXBENCH_TRY(judge(cancel));
      return AgentStep::evaluated;
    }
    if (state_ == State::ended) return AgentStep::done;
    if (std::string reason = limit_reached(); !reason.empty()) {
      PTXBENCH_TRY(end(std::move(reason)));
      return AgentStep::done;
    }
    if (state_ == State::between) {
      current_ = {};
      judged_ = false;
      current_.turn.turn = static_cast<int>(turns_.size()) + 1;
      current_.turn.seed = seed_of_turn(header_.seed, current_.turn.turn);
      state_ = State::asking;
    }
    return AgentStep::need_completion;
  });
}

Result<ChatRequest> AgentImpl::request() {
  return guarded([&]() -> Result<ChatRequest> {
    if (state_ != State::asking)
      return make_error(ErrorCode::state, "no completion is needed now: call step first");
    if (current_.turn.requested_us == 0) current_.turn.requested_us = options_.clock();
    return ChatRequest{conversation_, options_.sampling};
  });
}

Result<void> AgentImpl::submit(ChatReply reply) {
  return guarded([&]() -> Result<void> {
    if (state_ != State::asking)
      return make_error(ErrorCode::state, "no reply is wanted now: call step first");
    if (current_.turn.requested_us == 0) current_.turn.requested_us = options_.clock();
    current_.turn.submitted_us = options_.clock();
    reply.text = as_utf8(std::move(reply.text));
    reply.model = as_utf8(std::move(reply.model));
    reply.finish_reason = as_utf8(std::move(reply.finish_reason));
    current_.turn.reply = std::move(reply);
    current_.messages.assign(conversation_.begin() + static_cast<std::ptrdiff_t>(asked_),
                             conversation_.end());
    current_.request_hash = conversation_hash(conversation_);
    state_ = State::judging;
    return {};
  });
}

Result<void> AgentImpl::stop(std::string reason) {
  return guarded([&]() -> Result<void> {
    if (state_ == State::judging)
      return make_error(ErrorCode::state, "a reply waits to be judged: call step first");
    if (reason.empty()) return make_error(ErrorCode::invalid_argument, "stopping needs a reason");
    if (state_ != State::ended) stop_reason_ = as_utf8(std::move(reason));
    return {};
  });
}

Result<void> AgentImpl::judge(const CancelToken& cancel) {
  AgentTurn& turn = current_.turn;
  if (!judged_) {
    ParsedReply parsed = parse_reply(turn.reply.text, *options_.definition,
                                     "turn_" + std::to_string(turn.turn), turn.reply.model);
    const FeedbackOptions how{turn.turn, options_.max_turns, options_.feedback_bytes};
    if (parsed.candidate) {
      PTXBENCH_TRY_ASSIGN(const Evaluation evaluation,
                          options_.evaluator(*parsed.candidate, turn.seed, cancel));
      // As it will be read back: a replay must find the same words for it.
      PTXBENCH_TRY_ASSIGN(turn.evaluation, parse_evaluation(to_json(evaluation, 0)));
      turn.status = turn.evaluation->status(true);
      turn.feedback = feedback_text(*turn.evaluation, &*parsed.candidate, how);
      if (!parsed.notes.empty()) {
        turn.feedback += "\nAbout the reply:\n";
        for (const std::string& note : parsed.notes) turn.feedback += "- " + note + "\n";
      }
    } else {
      turn.feedback = feedback_text(parsed, how);
    }
    turn.feedback = as_utf8(std::move(turn.feedback));
    turn.candidate = std::move(parsed.candidate);
    turn.notes = std::move(parsed.notes);
    turn.judged_us = options_.clock();
    judged_ = true;
  }
  PTXBENCH_TRY(sink_(turn_line(current_, options_.sampling, header_.mode)));
  conversation_.push_back({ChatRole::assistant, turn.reply.text});
  asked_ = conversation_.size();
  conversation_.push_back({ChatRole::user, turn.feedback});
  turns_.push_back(std::move(turn));
  state_ = State::between;
  return {};
}

Result<void> AgentImpl::end(std::string reason) {
  const AgentTurn* best = best_turn();
  const TrajectoryEnd record{reason, static_cast<int>(turns_.size()), best == nullptr ? 0 : best->turn,
                             options_.clock()};
  PTXBENCH_TRY(sink_(end_line(record)));
  end_reason_ = std::move(reason);
  state_ = State::ended;
  return {};
}

const AgentTurn* AgentImpl::best_turn() const {
  const AgentTurn* best = nullptr;
  std::pair<int, double> best_rank{0, 0};
  for (const AgentTurn& turn : turns_) {
    if (!turn.evaluation) continue;
    std::pair<int, double> rank{0, 0};
    if (turn.status == Status::passed) {
      const auto speedup = turn.evaluation->speedup();
      rank = speedup ? std::pair{3, *speedup} : std::pair{2, 0.0};
    } else if (!turn.status && compiled_everywhere(*turn.evaluation)) {
      rank = {1, 0};
    }
    // Of equals the later; of equal speedups too: it was written with more knowledge.
    if (rank.first > 0 && rank >= best_rank) {
      best = &turn;
      best_rank = rank;
    }
  }
  return best;
}

}  // namespace ptxbench
