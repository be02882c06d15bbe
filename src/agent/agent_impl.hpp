// What an Agent is inside.
#pragma once

#include "agent/records.hpp"

#include <functional>

namespace ptxbench {

// Where a trajectory's lines go.
using LineSink = std::function<Result<void>(const std::string& line)>;

class AgentImpl final : public Agent {
 public:
  // `header` has everything that the first line says; the sink has not seen it yet.
  static Result<std::unique_ptr<Agent>> start(AgentOptions options, Trajectory header, LineSink sink);

  Result<AgentStep> step(const CancelToken& cancel) override;
  Result<ChatRequest> request() override;
  Result<void> submit(ChatReply reply) override;
  Result<void> stop(std::string reason) override;
  const std::vector<AgentTurn>& turns() const override { return turns_; }
  const AgentTurn* best_turn() const override;
  const std::string& end_reason() const override { return end_reason_; }
  const AgentOptions& options() const override { return options_; }
  std::uint64_t seed() const override { return header_.seed; }

 private:
  enum class State { between, asking, judging, ended };

  AgentImpl(AgentOptions options, Trajectory header, LineSink sink);
  Result<void> judge(const CancelToken& cancel);
  Result<void> end(std::string reason);
  // Why there is no further turn; empty: there is one.
  std::string limit_reached() const;

  AgentOptions options_;
  Trajectory header_;
  LineSink sink_;
  State state_ = State::between;
  std::vector<ChatMessage> conversation_;
  std::size_t asked_ = 0;   // messages of the conversation that earlier turns have recorded
  TrajectoryTurn current_;  // the turn in work
  bool judged_ = false;     // it only waits to be written
  std::vector<AgentTurn> turns_;
  std::string stop_reason_, end_reason_;
};

// The checks of an agent's options, and the system's clock where there is none.
Result<AgentOptions> checked_options(AgentOptions options);

}  // namespace ptxbench
