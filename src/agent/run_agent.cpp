// The loop around an agent, its evaluator, and its candidates as folders.
#include "core/base64.hpp"
#include "core/guard.hpp"

#include <ptxbench/agent.hpp>

#include <filesystem>
#include <fstream>

namespace ptxbench {
namespace {

Result<void> run(Agent& agent, ChatModel& model, const AgentProgressFn& progress, const CancelToken& cancel) {
  const auto tell = [&](AgentProgress::Kind kind, int turn) {
    if (progress) progress({kind, turn}, agent);
  };
  for (;;) {
    if (cancel.triggered()) return make_error(ErrorCode::cancelled, "cancelled");
    PTXBENCH_TRY_ASSIGN(const AgentStep step, agent.step(cancel));
    const int turn = static_cast<int>(agent.turns().size());
    switch (step) {
      case AgentStep::done:
        tell(AgentProgress::Kind::ended, turn);
        return {};
      case AgentStep::evaluated:
        tell(AgentProgress::Kind::judged, turn);
        break;
      case AgentStep::need_completion: {
        tell(AgentProgress::Kind::asking, turn + 1);
        PTXBENCH_TRY_ASSIGN(const ChatRequest request, agent.request());
        Result<ChatReply> reply = model.complete(request, cancel);
        if (!reply && reply.error().rule == kScriptEnd) {
          PTXBENCH_TRY(agent.stop(std::string(kScriptEnd)));
          break;
        }
        if (!reply) return std::move(reply).error();
        PTXBENCH_TRY(agent.submit(std::move(*reply)));
        tell(AgentProgress::Kind::judging, turn + 1);
        break;
      }
    }
  }
}

}  // namespace

Result<void> run_agent(Agent& agent, ChatModel& model, const AgentProgressFn& progress,
                       const CancelToken& cancel) {
  return guarded([&] { return run(agent, model, progress, cancel); });
}

Evaluator make_evaluator(std::shared_ptr<Context> context, std::vector<Workload> workloads, Judging judging,
                         EvaluateOptions options) {
  return [context = std::move(context), workloads = std::move(workloads), judging = std::move(judging),
          options = std::move(options)](const Solution& candidate, std::uint64_t seed,
                                        const CancelToken& cancel) {
    EvaluateOptions own = options;
    own.seed = seed;
    return evaluate(*context, candidate, workloads, judging, own, cancel);
  };
}

Result<void> write_candidate(const Solution& candidate, const std::string& folder) {
  namespace fs = std::filesystem;
  return guarded([&]() -> Result<void> {
    PTXBENCH_TRY(make_solution(candidate));  // its paths stay inside
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) return make_error(ErrorCode::io, "cannot be made: " + error.message(), {folder, {}, 0, 0});
    if (!fs::is_empty(folder, error) || error)
      return make_error(ErrorCode::io, "is not empty", {folder, {}, 0, 0});
    for (const SourceFile& file : candidate.sources) {
      const fs::path path = fs::path(folder) / file.path;
      fs::create_directories(path.parent_path(), error);
      std::string content = file.content;
      if (path.extension() == ".cubin") {
        PTXBENCH_TRY_ASSIGN(content, base64_decode(file.content));
      }
      std::ofstream out(path, std::ios::binary);
      out.write(content.data(), static_cast<std::streamsize>(content.size()));
      out.close();
      if (!out) return make_error(ErrorCode::io, "cannot be written", {path.string(), {}, 0, 0});
    }
    return {};
  });
}

}  // namespace ptxbench
