#include "agent/agent_impl.hpp"
#include "core/guard.hpp"
#include "core/hash.hpp"

#include <algorithm>

namespace ptxbench {
namespace {

// What the lines of a replay are held against.
struct Compared {
  std::string_view rest;  // of the recorded bytes
  int line = 0, first_difference = 0;

  void next(const std::string& own) {
    ++line;
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (rest.substr(0, end) != own && first_difference == 0) first_difference = line;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
};

Result<Replayed> replay(const Trajectory& recorded, const ReplayOptions& how, const AgentProgressFn& progress,
                        const CancelToken& cancel) {
  const bool again = static_cast<bool>(how.evaluator);
  const auto in_work = std::make_shared<std::size_t>(0);
  std::size_t& turn = *in_work;

  AgentOptions options;
  options.definition = recorded.definition;
  options.workloads = recorded.workloads;
  options.prompt = recorded.turns.empty() ? "nothing was asked" : recorded.turns[0].messages.front().content;
  options.device_name = recorded.device_name;
  options.evaluate = recorded.evaluate;
  options.sampling = recorded.sampling;
  options.max_turns = recorded.max_turns;
  options.token_budget = recorded.token_budget;
  options.time_budget_us = recorded.time_budget_us;
  options.stop_at_speedup = recorded.stop_at_speedup;
  options.feedback_bytes = recorded.feedback_bytes;
  options.seed = recorded.seed;
  options.trajectory_path = how.trajectory_path;
  std::vector<std::int64_t> times;
  if (again) {
    options.evaluator = how.evaluator;
    options.clock = how.clock;
  } else {
    // In order, null where a turn had no candidate. The agent outlives this call, so it owns them.
    std::vector<std::optional<Evaluation>> evaluations;
    for (const TrajectoryTurn& record : recorded.turns) evaluations.push_back(record.turn.evaluation);
    const auto current = in_work;
    options.evaluator = [evaluations = std::move(evaluations), current](
                            const Solution&, std::uint64_t, const CancelToken&) -> Result<Evaluation> {
      if (*current < evaluations.size() && evaluations[*current]) return *evaluations[*current];
      return make_error(ErrorCode::state, "turn " + std::to_string(*current + 1) +
                                              " has no recorded evaluation, but its reply holds a candidate");
    };
    for (const TrajectoryTurn& record : recorded.turns)
      times.insert(times.end(), {record.turn.requested_us, record.turn.submitted_us, record.turn.judged_us});
    times.push_back(recorded.ended_us);
    options.clock = [times = std::move(times), next = std::size_t{0}]() mutable {
      return next < times.size() ? times[next++] : times.back();
    };
  }
  PTXBENCH_TRY_ASSIGN(options, checked_options(std::move(options)));

  Trajectory header = recorded;
  header.turns.clear();
  header.bytes.clear();
  if (again) {
    header.mode = TrajectoryMode::rejudged;
    header.rejudged_from = sha256_hex(recorded.bytes);
    header.created_us = options.clock();
    header.ptxbench_version = std::string(version_string());
  }
  const auto compared = std::make_shared<Compared>();
  compared->rest = recorded.bytes;
  std::shared_ptr<TrajectoryFile> file;
  if (!how.trajectory_path.empty()) {
    file = std::make_shared<TrajectoryFile>();
    PTXBENCH_TRY(file->create(how.trajectory_path));
  }
  LineSink sink = [file, compared](const std::string& line) -> Result<void> {
    compared->next(line);
    if (file) return file->append(line);
    return {};
  };

  Replayed out;
  PTXBENCH_TRY_ASSIGN(out.agent, AgentImpl::start(std::move(options), std::move(header), std::move(sink)));
  Agent& agent = *out.agent;
  const auto tell = [&](AgentProgress::Kind kind) {
    if (progress) progress({kind, static_cast<int>(turn) + 1}, agent);
  };
  bool ended = false;
  for (; turn < recorded.turns.size() && !ended; ++turn) {
    if (cancel.triggered()) return make_error(ErrorCode::cancelled, "cancelled");
    PTXBENCH_TRY_ASSIGN(const AgentStep step, agent.step(cancel));
    ended = step == AgentStep::done;  // judged again, a limit may be reached earlier
    if (ended) break;
    tell(AgentProgress::Kind::asking);
    PTXBENCH_TRY(agent.request());
    PTXBENCH_TRY(agent.submit(recorded.turns[turn].turn.reply));
    tell(AgentProgress::Kind::judging);
    PTXBENCH_TRY(agent.step(cancel));
    tell(AgentProgress::Kind::judged);
  }
  if (!ended && !recorded.end_reason.empty()) {
    PTXBENCH_TRY_ASSIGN(const AgentStep step, agent.step(cancel));
    if (step != AgentStep::done) {
      PTXBENCH_TRY(agent.stop(recorded.end_reason));
      PTXBENCH_TRY(agent.step(cancel));
    }
  }
  if (progress && !agent.end_reason().empty())
    progress({AgentProgress::Kind::ended, static_cast<int>(agent.turns().size())}, agent);
  if (!again) {
    if (!compared->rest.empty() && compared->first_difference == 0)
      compared->first_difference = compared->line + 1;
    out.first_difference = compared->first_difference;
    out.identical = compared->first_difference == 0;
  }
  // The sink outlives this call with the agent, the recorded bytes may not.
  compared->rest = {};
  return out;
}

}  // namespace

Result<Replayed> replay_trajectory(const Trajectory& trajectory, const ReplayOptions& options,
                                   const AgentProgressFn& progress, const CancelToken& cancel) {
  return guarded([&] { return replay(trajectory, options, progress, cancel); });
}

}  // namespace ptxbench
