// A consumer without exceptions and RTTI: every public header, and every interface implemented. Judges the RMSNorm example
// with nothing but its own parts; where there is no GPU the verdict must say that nothing was run.
#include <ptxbench/agent.hpp>
#include <ptxbench/bench.hpp>
#include <ptxbench/compile.hpp>
#include <ptxbench/core.hpp>
#include <ptxbench/count.hpp>
#include <ptxbench/device.hpp>
#include <ptxbench/evaluate.hpp>
#include <ptxbench/export.h>
#include <ptxbench/llm.hpp>
#include <ptxbench/pack.hpp>
#include <ptxbench/plan.hpp>
#include <ptxbench/ptxbench.h>
#include <ptxbench/ptxbench.hpp>
#include <ptxbench/sass.hpp>
#include <ptxbench/trace.hpp>
#include <ptxbench/trace/verdict.hpp>
#include <ptxbench/verify.hpp>
#include <ptxbench/version.h>
#include <ptxbench/worker.hpp>

#include <cstdio>
#include <cstring>

using namespace ptxbench;

namespace {

class Zeros final : public InputSource {
 public:
  Result<void> fill(const Workload&, std::uint64_t, int, std::span<HostTensor> inputs) override {
    for (HostTensor& tensor : inputs) std::memset(tensor.data, 0, tensor.bytes);
    return {};
  }
};
class ZeroReference final : public Reference {
 public:
  Result<void> compute(const Workload&, std::span<const HostTensor>, std::span<HostTensor> outputs) override {
    for (HostTensor& tensor : outputs) std::memset(tensor.data, 0, tensor.bytes);
    return {};
  }
};
class Bytewise final : public Comparator {
 public:
  Result<std::vector<OutputCorrectness>> compare(const Workload&, std::span<const HostTensor> expected,
                                                 std::span<const HostTensor> got) override {
    std::vector<OutputCorrectness> out(got.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      out[i].output = got[i].name;
      out[i].ok = std::memcmp(got[i].data, expected[i].data, got[i].bytes) == 0;
      out[i].elements_wrong = out[i].ok ? 0 : 1;
    }
    return out;
  }
};

class Silent final : public ChatModel {
 public:
  Result<ChatReply> complete(const ChatRequest& request, const CancelToken&) override {
    ChatReply reply;
    reply.text = request.messages.empty() ? "" : "I was asked, and have no candidate.";
    return reply;
  }
};

// An agent whose model has nothing to say: two turns without a candidate.
bool agent_runs(const Workload& workload) {
  AgentOptions options;
  options.definition = workload.definition;
  options.workloads = {workload};
  options.prompt = "Write a kernel.";
  options.max_turns = 2;
  options.evaluator = [](const Solution&, std::uint64_t, const CancelToken&) -> Result<Evaluation> { return Evaluation{}; };
  const Result<std::unique_ptr<Agent>> agent = Agent::create(std::move(options));
  Silent model;
  return agent && run_agent(**agent, model) && (*agent)->turns().size() == 2 && (*agent)->last_evaluation() == nullptr;
}

Result<Evaluation> judge(const char* folder) {
  Definition d;
  d.name = "rmsnorm";
  d.op_type = "rmsnorm";
  d.axes = {{"rows", false, 0, {}}, {"width", true, 4096, {}}};
  d.inputs = {{"x", std::vector<std::string>{"rows", "width"}, DType::bfloat16, {}},
              {"w", std::vector<std::string>{"width"}, DType::bfloat16, {}}};
  d.outputs = {{"y", std::vector<std::string>{"rows", "width"}, DType::bfloat16, {}}};
  PTXBENCH_TRY_ASSIGN(DefinitionPtr definition, make_definition(std::move(d)));
  Workload w;
  w.definition = definition;
  w.axes = {{"rows", 3}};
  w.uuid = "w";
  PTXBENCH_TRY_ASSIGN(const Workload workload, make_workload(std::move(w)));
  if (!agent_runs(workload)) return make_error(ErrorCode::internal, "the agent did not run");
  PTXBENCH_TRY_ASSIGN(const Solution solution, load_solution(folder, *definition));
  ContextOptions options;
  options.cache_dir = "";
  options.worker_path = PTXBENCH_WORKER;
  PTXBENCH_TRY_ASSIGN(const std::shared_ptr<Context> context, Context::create(options));
  Judging judging;
  judging.inputs = std::make_shared<Zeros>();
  judging.reference = std::shared_ptr<Reference>(std::make_shared<ZeroReference>());
  judging.own_comparator = std::make_shared<Bytewise>();
  judging.comparator.kind = ComparatorKind::callback;
  judging.baseline = NoBaseline{};
  return evaluate(*context, solution, {&workload, 1}, judging, EvaluateOptions{});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const Result<Evaluation> evaluation = judge(argv[1]);
  if (!evaluation) {
    std::fprintf(stderr, "%s\n", evaluation.error().to_string().c_str());
    return 2;
  }
  const Verdict& verdict = evaluation->verdicts.at(0);
  if (!verdict.compile.ok) {
    std::fprintf(stderr, "%s\n", to_json(verdict).c_str());
    return 1;
  }
  const bool passed = verdict.status == Status::passed;
  const bool not_run = verdict.outcome == Outcome::not_run && verdict.outcome_reason.find("no device") != std::string::npos;
  std::printf("%s\n", passed ? "PASSED" : not_run ? "not run, and says so" : to_json(verdict).c_str());
  return passed || not_run ? 0 : 1;
}
