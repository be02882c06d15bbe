/// @file
/// The loop in which a model writes kernels: turns, feedback, budgets, trajectories. docs/agent.md.
///
/// The agent is pull-style, a state machine that calls no model: `step` says what is needed, the host asks
/// its model however it likes, and hands the reply in. `run_agent` is a loop around it.
#pragma once

#include <ptxbench/core.hpp>
#include <ptxbench/evaluate.hpp>
#include <ptxbench/llm.hpp>
#include <ptxbench/pack.hpp>
#include <ptxbench/trace.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxbench {

// ---- replies ------------------------------------------------------------------------------------

/// What a reply's text holds.
struct ParsedReply {
  std::optional<Solution> candidate;  ///< the last complete one: launch.json and a source
  /// Where there is no candidate: exactly what was missing. Else what was left out or guessed.
  std::vector<std::string> notes;
};

/// Reads a candidate out of a model's reply, leniently: any fence of backticks or tildes with any tag, CRLF,
/// text around, a last fence that does not end; names from the tag line, the line before the fence, or the
/// first comment. JSON with "steps" is the launch plan. Never fails. @p name: of the Solution; @p author: of
/// the Solution.
ParsedReply parse_reply(std::string_view text, const Definition& definition, std::string_view name,
                        std::string_view author = "model");

// ---- feedback -----------------------------------------------------------------------------------

struct FeedbackOptions {
  int turn = 1;
  int max_turns = 1;               ///< 0: unlimited
  std::size_t most_bytes = 12000;  ///< the text is cut, and says so
};

/// An evaluation as a model reads it. @p solution (may be null) gives the source lines of diagnostics. A
/// `not_applicable` workload counts as failed.
std::string feedback_text(const Evaluation& evaluation, const Solution* solution,
                          const FeedbackOptions& options = {});
/// The same for a reply that held no candidate.
std::string feedback_text(const ParsedReply& reply, const FeedbackOptions& options = {});

// ---- the agent ----------------------------------------------------------------------------------

/// Judges a candidate; @p seed is the turn's. An Error says that the environment is at fault, and ends no
/// turn.
using Evaluator = std::function<Result<Evaluation>(const Solution& candidate, std::uint64_t seed,
                                                   const CancelToken& cancel)>;

/// `evaluate` on @p workloads, as an Evaluator.
Evaluator make_evaluator(std::shared_ptr<Context> context, std::vector<Workload> workloads, Judging judging,
                         EvaluateOptions options);

/// Microseconds since 1970, UTC.
using ClockFn = std::function<std::int64_t()>;

struct AgentOptions {
  DefinitionPtr definition;
  std::vector<Workload> workloads;
  Evaluator evaluator;
  std::shared_ptr<const KnowledgePack> pack;  ///< null: `prompt` is given
  std::string prompt;                         ///< the first message; empty: the pack's
  std::string device_name;                    ///< for the pack's numbers; empty: unknown
  EvaluateOptions evaluate;                   ///< recorded; what the evaluator was made with
  SamplingHints sampling;

  int max_turns = 8;                      ///< at least 1
  std::uint64_t token_budget = 0;         ///< no further turn once the replies' usage adds up to it; 0: none
  std::uint64_t time_budget_us = 0;       ///< no further turn once so much time has passed; 0: none
  std::optional<double> stop_at_speedup;  ///< no further turn once a turn has reached it
  std::size_t feedback_bytes = 12000;

  std::optional<std::uint64_t>
      seed;  ///< of the attempt; a turn's is derived from it; nothing: evaluate.seed, else random
  std::string trajectory_path;  ///< a new file; empty: no trajectory is written
  ClockFn clock;                ///< empty: the system's
};

enum class AgentStep : std::uint8_t {
  need_completion,  ///< `request` has what to ask; `submit` the reply
  evaluated,        ///< a turn is over: `last_turn`
  done              ///< `end_reason` says why
};

struct AgentTurn {
  int turn = 0;  ///< from 1
  ChatReply reply;
  std::uint64_t seed = 0;
  std::optional<Solution> candidate;
  std::vector<std::string> notes;        ///< of the parser
  std::optional<Evaluation> evaluation;  ///< nothing where the reply held no candidate
  std::optional<Status>
      status;            ///< with `not_applicable` counted as failed; nothing: no candidate, or not judged
  std::string feedback;  ///< what the model is told
  std::int64_t requested_us = 0, submitted_us = 0, judged_us = 0;
};

/// One attempt at one task. Belongs to one thread at a time.
class Agent {
 public:
  /// Writes the trajectory's first line.
  static Result<std::unique_ptr<Agent>> create(AgentOptions options);
  virtual ~Agent() = default;

  /// Moves on: judges the reply that was handed in (this is where time goes), or says what is needed. An
  /// Error leaves the agent where it was: the same step may be tried again.
  virtual Result<AgentStep> step(const CancelToken& cancel = {}) = 0;
  /// The conversation to be completed. ErrorCode::state unless `step` said need_completion.
  virtual Result<ChatRequest> request() = 0;
  /// Hands in the model's reply; `step` judges it. ErrorCode::state unless `step` said need_completion.
  virtual Result<void> submit(ChatReply reply) = 0;
  /// Ends the attempt: the next `step` gives done. ErrorCode::state while a reply waits to be judged.
  virtual Result<void> stop(std::string reason) = 0;

  virtual const std::vector<AgentTurn>& turns() const = 0;
  const AgentTurn* last_turn() const { return turns().empty() ? nullptr : &turns().back(); }
  /// Of the last turn; null where its reply held no candidate.
  const Evaluation* last_evaluation() const {
    const AgentTurn* turn = last_turn();
    return turn != nullptr && turn->evaluation ? &*turn->evaluation : nullptr;
  }
  /// PASSED with the highest speedup; else the last PASSED; else, where nothing could be executed, the last
  /// that compiled for every workload. Null where there is none.
  virtual const AgentTurn* best_turn() const = 0;
  /// "max_turns", "token_budget", "time_budget", "stop_at_speedup", or what `stop` was given; empty before
  /// the end.
  virtual const std::string& end_reason() const = 0;
  virtual const AgentOptions& options() const = 0;
  virtual std::uint64_t seed() const = 0;
};

struct AgentProgress {
  enum class Kind : std::uint8_t { asking, judging, judged, ended } kind = Kind::asking;
  int turn = 0;
};
/// Called on the thread that runs the agent; must not throw.
using AgentProgressFn = std::function<void(const AgentProgress&, const Agent&)>;

/// Asks @p model turn after turn until the agent is done. A scripted model's end ends the attempt
/// ("script_end"). Other errors of the model or the environment are returned; the agent keeps its turns.
Result<void> run_agent(Agent& agent, ChatModel& model, const AgentProgressFn& progress = {},
                       const CancelToken& cancel = {});

/// Writes a candidate as a folder: its files by their paths (a `.cubin` as bytes). The folder is made; it
/// must be empty.
Result<void> write_candidate(const Solution& candidate, const std::string& folder);

// ---- trajectories -------------------------------------------------------------------------------

inline constexpr int kTrajectorySchemaVersion = 1;

/// How a trajectory's turns came to be judged.
enum class TrajectoryMode : std::uint8_t { live, rejudged };

struct TrajectoryTurn {
  AgentTurn turn;                     ///< `candidate` and `notes` as the reply parses now
  std::vector<ChatMessage> messages;  ///< added to the conversation since the turn before
  std::string request_hash;           ///< SHA-256 over the whole conversation that was asked
};

/// A trajectory read back.
struct Trajectory {
  TrajectoryMode mode = TrajectoryMode::live;
  std::string rejudged_from;     ///< SHA-256 of the file that was judged again
  std::string ptxbench_version;  ///< of the library that wrote it
  std::int64_t created_us = 0;
  DefinitionPtr definition;
  std::vector<Workload> workloads;
  EvaluateOptions evaluate;
  SamplingHints sampling;
  std::string device_name, pack_name, pack_hash;
  int max_turns = 0;
  std::uint64_t token_budget = 0, time_budget_us = 0;
  std::optional<double> stop_at_speedup;
  std::size_t feedback_bytes = 0;
  std::uint64_t seed = 0;
  std::vector<TrajectoryTurn> turns;
  std::string end_reason;  ///< empty: it was cut off before its end
  std::int64_t ended_us = 0;
  bool torn = false;  ///< the last line was cut off, and is left out
  std::string bytes;  ///< the whole lines as they are in the file
};

/// Strict but for a torn last line: what a kill in the middle of a write leaves. Errors name the line.
Result<Trajectory> parse_trajectory(std::string_view text, const std::string& file = {});
Result<Trajectory> load_trajectory(const std::string& file);

struct ReplayOptions {
  std::string trajectory_path;  ///< where the replay writes its own; empty: nowhere
  /// Empty: the recorded evaluations are used, the records say what they said, and the bytes are the same.
  /// Given: the recorded replies are judged again, and the records say `rejudged`.
  Evaluator evaluator;
  ClockFn clock;  ///< for judging again; empty: the system's
};

struct Replayed {
  std::unique_ptr<Agent> agent;
  bool identical = false;    ///< the replay wrote, or would have written, the same bytes
  int first_difference = 0;  ///< line of the first difference, where not
};

/// Runs a recorded attempt through the agent again: parsing, feedback and requests are made anew. A version
/// that words something differently than the one that wrote the trajectory shows as a difference.
Result<Replayed> replay_trajectory(const Trajectory& trajectory, const ReplayOptions& options,
                                   const AgentProgressFn& progress = {}, const CancelToken& cancel = {});

}  // namespace ptxbench
