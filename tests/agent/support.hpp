// A task, candidates as replies, and evaluations made up, so that turns need no compiler.
#pragma once

#include <ptxbench/agent.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <random>
#include <string>
#include <vector>

namespace ptxbench::testing {

struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("ptxbench-agent-" + std::to_string(std::random_device{}()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string& name) const { return (path / name).string(); }
};

inline std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline DefinitionPtr task() {
  Definition d;
  d.name = "scale";
  d.op_type = "scale";
  d.axes = {{"M", false, 0, {}}, {"N", true, 64, {}}};
  d.inputs = {{"X", std::vector<std::string>{"M", "N"}, DType::bfloat16, {}}};
  d.outputs = {{"Y", std::vector<std::string>{"M", "N"}, DType::bfloat16, {}}};
  return make_definition(std::move(d)).value();
}

inline std::vector<Workload> workloads(const DefinitionPtr& definition,
                                       std::vector<std::int64_t> rows = {8, 3}) {
  std::vector<Workload> out;
  for (const std::int64_t m : rows) {
    Workload w;
    w.definition = definition;
    w.axes = {{"M", m}};
    w.uuid = "w" + std::to_string(m);
    out.push_back(make_workload(std::move(w)).value());
  }
  return out;
}

inline const std::string kPlanText =
    R"({"version": 1, "steps": [{"kernel": "scale", "grid": [1], "block": [32]}]})";
inline const std::string kKernelText = "extern \"C\" __global__ void scale() {}\n";
inline const std::string kReply = "Here it is.\n\n**launch.json**\n```json\n" + kPlanText +
                                  "\n```\n\n**scale.cu**\n```cuda\n" + kKernelText + "```\nGood luck!\n";

inline Verdict verdict(std::int64_t m, std::optional<Status> status) {
  Verdict v;
  v.workload_uuid = "w" + std::to_string(m);
  v.axes = {{"M", m}};
  v.outcome = Outcome::judged;
  v.status = status;
  v.compile.state = Availability::measured;
  v.compile.ok = status != Status::compile_error;
  v.compile.arch = "sm_90a";
  if (!status) {
    v.outcome = Outcome::not_run;
    v.outcome_reason = "no device: the CUDA driver not found (libcuda.so.1); searched: here and there";
  }
  return v;
}

inline Verdict passed(std::int64_t m, double speedup) {
  Verdict v = verdict(m, Status::passed);
  v.correctness.state = Availability::measured;
  v.correctness.trials = 3;
  v.timing.state = Availability::measured;
  v.timing.median_ns = 1000000;
  v.timing.baseline_median_ns = static_cast<std::uint64_t>(1000000 * speedup);
  v.timing.baseline = "cuBLASLt";
  v.timing.speedup = speedup;
  v.timing.speedup_low = speedup - 0.01;
  v.timing.speedup_high = speedup + 0.01;
  return v;
}

inline Evaluation evaluation(std::vector<Verdict> verdicts) {
  Evaluation e;
  e.definition = "scale";
  e.solution = "turn";
  e.solution_hash = "h";
  e.verdicts = std::move(verdicts);
  return e;
}

// The time goes on by a millisecond each time that it is asked for.
inline ClockFn ticking() {
  return [now = std::int64_t{1'700'000'000'000'000}]() mutable { return now += 1000; };
}

inline AgentOptions agent_options(Evaluator evaluator) {
  AgentOptions options;
  options.definition = task();
  options.workloads = workloads(options.definition);
  options.evaluator = std::move(evaluator);
  options.prompt = "Write a kernel.";
  options.seed = 7;
  options.clock = ticking();
  options.max_turns = 3;
  return options;
}

}  // namespace ptxbench::testing
