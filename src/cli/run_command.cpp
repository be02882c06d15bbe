// A model's turns, judged one after another; or a trajectory's, once more.
#include "trace/launched.hpp"
#include "cli/command.hpp"
#include "cli/print.hpp"
#include "core/json.hpp"

#include <ptxbench/agent.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>

namespace ptxbench::cli {
namespace {

namespace fs = std::filesystem;

std::string number(double value, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// "8192: PASSED 0.99x, 70: not run"
std::string statuses(const AgentTurn& turn) {
  if (!turn.evaluation) return "no candidate in the reply";
  std::string out;
  for (const Verdict& v : turn.evaluation->verdicts) {
    out += (out.empty() ? "" : ", ") + axes_text(v) + " " +
           std::string(v.status ? status_name(*v.status) : outcome_name(v.outcome));
    if (v.timing.state == Availability::measured && v.timing.speedup)
      out += " " + number(*v.timing.speedup, "%.3f") + "x";
  }
  return out;
}

// Executions by warps where they were counted, else what the code holds, marked.
std::string family_text(const AgentTurn& turn, std::initializer_list<std::string_view> families) {
  if (!turn.evaluation) return "-";
  const auto one_of = [&](const std::string& family) {
    return std::find(families.begin(), families.end(), family) != families.end();
  };
  std::uint64_t executed = 0, held = 0;
  bool counted = false, known = false;
  for (const Verdict& v : turn.evaluation->verdicts) {
    if (v.counts.state == Availability::measured && !counted) {
      counted = true;
      for (const FamilyCount& f : v.counts.families)
        if (one_of(f.family)) executed += f.warp_instructions;
    }
    if (v.compile.ok && !known) {
      known = true;
      for (const StaticFamily& f : v.compile.static_families)
        if (launched(v.compile, f.kernel) && one_of(f.family)) held += f.instructions;
    }
  }
  if (counted) return std::to_string(executed);
  return known ? std::to_string(held) + " static" : "-";
}

std::string summary(const Agent& agent) {
  std::vector<std::vector<std::string>> rows{{"turn", "status by workload", "speedup", "wgmma", "TMA"}};
  for (const AgentTurn& turn : agent.turns()) {
    const auto speedup = turn.evaluation ? turn.evaluation->speedup() : std::nullopt;
    rows.push_back({std::to_string(turn.turn), statuses(turn), speedup ? number(*speedup, "%.3f") + "x" : "-",
                    family_text(turn, {"wgmma"}),
                    family_text(turn, {"tma_load", "tma_multicast", "tma_store", "tma_reduce"})});
  }
  return table(rows);
}

// Where things go: a new folder.
Result<std::string> out_folder(const Arguments& arguments) {
  std::error_code error;
  if (const auto out = arguments.get("--out")) {
    fs::create_directories(*out, error);
    if (error) return make_error(ErrorCode::io, "cannot be made: " + error.message(), {*out, {}, 0, 0});
    if (fs::exists(fs::path(*out) / "trajectory.jsonl", error))
      return make_error(ErrorCode::invalid_argument,
                        "--out holds a trajectory already; a run never overwrites one", {*out, {}, 0, 0});
    return *out;
  }
  fs::create_directories("ptxbench-runs", error);
  for (int i = 1; i < 100000; ++i) {
    const std::string folder = "ptxbench-runs/" + std::to_string(i);
    if (fs::create_directory(folder, error)) return folder;
    if (error && !fs::exists(folder))
      return make_error(ErrorCode::io, "cannot be made: " + error.message(), {folder, {}, 0, 0});
  }
  return make_error(ErrorCode::io, "ptxbench-runs is full; give --out");
}

Result<std::optional<std::int64_t>> whole_number(const Arguments& arguments, const char* name,
                                                 std::int64_t least) {
  const auto text = arguments.get(name);
  if (!text) return std::optional<std::int64_t>();
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < least)
    return make_error(ErrorCode::invalid_argument, std::string(name) + " wants a number from " +
                                                       std::to_string(least) + " on, not " + *text);
  return std::optional(value);
}

std::string definition_text(const Definition& definition, const std::vector<Workload>& workloads) {
  std::string out = "definition " + definition.name + " (" + definition.op_type + "):";
  const auto list = [&](const std::vector<TensorSpec>& tensors) {
    for (const TensorSpec& tensor : tensors) {
      out += " " + tensor.name;
      if (tensor.shape) {
        out += "[";
        for (std::size_t i = 0; i < tensor.shape->size(); ++i)
          out += (i > 0 ? ", " : "") + (*tensor.shape)[i];
        out += "]";
      }
      out += " " + std::string(dtype_name(tensor.dtype));
    }
  };
  list(definition.inputs);
  out += " ->";
  list(definition.outputs);
  out += "\nworkloads:";
  for (const Workload& workload : workloads)
    for (const auto& [axis, value] : workload.axes) out += " " + axis + "=" + std::to_string(value);
  return out + "\n";
}

void tell(const AgentProgress& event, const Agent& agent) {
  switch (event.kind) {
    case AgentProgress::Kind::asking:
      std::fprintf(stderr, "turn %d of %d: asking the model\n", event.turn, agent.options().max_turns);
      break;
    case AgentProgress::Kind::judging:
      std::fprintf(stderr, "turn %d of %d: judging\n", event.turn, agent.options().max_turns);
      break;
    case AgentProgress::Kind::judged:
    case AgentProgress::Kind::ended:
      break;
  }
}

void show(const AgentProgress& event, const Agent& agent) {
  tell(event, agent);
  if (event.kind != AgentProgress::Kind::judged) return;
  const AgentTurn& turn = *agent.last_turn();
  std::printf("\n=== turn %d, %s", turn.turn, turn.reply.model.c_str());
  if (turn.candidate)
    for (const SourceFile& file : turn.candidate->sources) std::printf(", %s", file.path.c_str());
  std::printf("\n%s", turn.feedback.c_str());
  std::fflush(stdout);
}

std::string to_json(const Agent& agent, const std::string& best, const std::string& trajectory) {
  json::Writer out(json::Writer::Options{2, false});
  out.begin_object().key("turns").begin_array();
  for (const AgentTurn& turn : agent.turns()) {
    out.begin_object().field("turn", turn.turn).field("model", turn.reply.model).key("status");
    if (turn.status)
      out.string(status_name(*turn.status));
    else
      out.null();
    out.key("speedup");
    if (const auto speedup = turn.evaluation ? turn.evaluation->speedup() : std::nullopt)
      out.number(*speedup);
    else
      out.null();
    out.key("evaluation");
    if (turn.evaluation)
      out.raw(ptxbench::to_json(*turn.evaluation, 0));
    else
      out.null();
    out.field("feedback", turn.feedback).end_object();
  }
  out.end_array().field("end_reason", agent.end_reason()).key("best_candidate");
  if (best.empty())
    out.null();
  else
    out.string(best);
  out.field("trajectory", trajectory).end_object();
  return std::move(out).str();
}

// Candidates as folders, the table, the places.
int finish(const Arguments& arguments, const Agent& agent, const std::string& out,
           const std::string& trajectory) {
  std::string best;
  for (const AgentTurn& turn : agent.turns()) {
    if (!turn.candidate) continue;
    const std::string folder = out + "/candidates/turn_" + std::to_string(turn.turn);
    if (const Result<void> written = write_candidate(*turn.candidate, folder); !written)
      return fail(written.error());
    if (&turn == agent.best_turn()) best = folder;
  }
  if (arguments.has("--json")) {
    std::printf("%s\n", to_json(agent, best, trajectory).c_str());
    return kOk;
  }
  std::printf("\n%s", summary(agent).c_str());
  const AgentTurn* chosen = agent.best_turn();
  if (chosen == nullptr)
    std::printf("best candidate: none%s\n", agent.turns().empty() ? "" : " passed");
  else if (chosen->status)
    std::printf("best candidate: %s\n", best.c_str());
  else
    std::printf("last candidate that compiled (nothing was executed, so none is known to be right): %s\n",
                best.c_str());
  std::printf("trajectory: %s\n", trajectory.c_str());
  return kOk;
}

// The device in words, and its name for the pack's numbers.
std::string device_text(Context& context, std::string& name) {
  const Result<DeviceInfo> device = context.device();
  if (!device) return "device: none, so nothing is executed (" + device.error().to_string() + ")\n";
  name = device->name;
  return "device: " + device->name + " (" + device->id + ")" +
         (device->emulated ? ": says whether a kernel is right and what it executes; measures no speed" : "") + "\n";
}

int replay(const Arguments& arguments, const std::string& file) {
  const Result<Trajectory> recorded = load_trajectory(file);
  if (!recorded) return fail(recorded.error());
  ReplayOptions how;
  std::string name;
  const bool words = !arguments.has("--json");
  if (words) std::fputs(definition_text(*recorded->definition, recorded->workloads).c_str(), stdout);
  if (recorded->torn) std::fprintf(stderr, "%s: the last line was cut off and is left out\n", file.c_str());
  if (arguments.has("--rejudge")) {
    EvaluateOptions options = recorded->evaluate;
    Result<std::vector<SourceFile>> headers = headers_of(arguments);
    if (!headers) return fail(headers.error());
    options.headers = std::move(*headers);
    const Result<std::shared_ptr<Context>> context = make_context(arguments);
    if (!context) return fail(context.error());
    const std::string device = device_text(**context, name);
    if (words) std::fputs(device.c_str(), stdout);
    how.evaluator = make_evaluator(*context, recorded->workloads, {}, options);
  } else if (words) {
    std::printf("device: as recorded (%s)\n",
                recorded->device_name.empty() ? "none" : recorded->device_name.c_str());
  }
  const Result<std::string> out = out_folder(arguments);
  if (!out) return fail(out.error());
  how.trajectory_path = *out + "/trajectory.jsonl";
  const Result<Replayed> replayed = replay_trajectory(*recorded, how, words ? show : tell);
  if (!replayed) return fail(replayed.error());
  const int code = finish(arguments, *replayed->agent, *out, how.trajectory_path);
  if (how.evaluator || code != kOk) return code;
  if (replayed->identical) {
    if (words) std::printf("replayed: the same bytes\n");
    return kOk;
  }
  std::fprintf(stderr,
               "ptxbench: the replay differs from the trajectory at line %d; it was written by version %s, "
               "this is %s\n",
               replayed->first_difference, recorded->ptxbench_version.c_str(),
               std::string(version_string()).c_str());
  return kFailed;
}

int run(const Arguments& arguments) {
  if (!arguments.positional.empty())
    return fail(make_error(ErrorCode::invalid_argument,
                           "run takes no candidate: a model writes them (" + arguments.positional[0] + ")"));
  if (const auto file = arguments.get("--replay")) return replay(arguments, *file);
  if (arguments.has("--rejudge"))
    return fail(make_error(ErrorCode::invalid_argument, "--rejudge goes with --replay FILE"));
  const auto spec = arguments.get("--model");
  if (!spec)
    return fail(
        make_error(ErrorCode::invalid_argument, "--model is wanted, e.g. scripted:examples/data/candidates"));
  const auto turns = whole_number(arguments, "--turns", 1);
  if (!turns) return fail(turns.error());
  const auto tokens = whole_number(arguments, "--token-budget", 1);
  if (!tokens) return fail(tokens.error());
  Result<std::unique_ptr<ChatModel>> model = find_chat_model(*spec);
  if (!model) return fail(model.error());
  const Result<Task> task = load_task(arguments);
  if (!task) return fail(task.error());
  Result<EvaluateOptions> options = evaluate_options_of(arguments);
  if (!options) return fail(options.error());
  const auto pack = pack_of(arguments);
  if (!pack) return fail(pack.error());
  if (*pack == nullptr)
    return fail(make_error(ErrorCode::invalid_argument, "--pack DIR is wanted: what the model is told"));
  const Result<std::shared_ptr<Context>> context = make_context(arguments);
  if (!context) return fail(context.error());
  const bool words = !arguments.has("--json");

  AgentOptions agent_options;
  if (words) std::fputs(definition_text(*task->definition, task->workloads).c_str(), stdout);
  const std::string device = device_text(**context, agent_options.device_name);
  if (words) std::fputs(device.c_str(), stdout);
  std::fflush(stdout);
  agent_options.definition = task->definition;
  agent_options.workloads = task->workloads;
  agent_options.pack = *pack;
  agent_options.evaluate = *options;
  agent_options.evaluator = make_evaluator(*context, task->workloads, {}, *options);
  const std::int64_t scripted = spec->starts_with("scripted:")
                                    ? static_cast<std::int64_t>(static_cast<ScriptedModel&>(**model).size())
                                    : 8;
  agent_options.max_turns =
      static_cast<int>(std::min<std::int64_t>(turns->value_or(std::max<std::int64_t>(scripted, 1)), 100000));
  agent_options.token_budget = static_cast<std::uint64_t>(tokens->value_or(0));
  const Result<std::string> out = out_folder(arguments);
  if (!out) return fail(out.error());
  agent_options.trajectory_path = *out + "/trajectory.jsonl";
  const Result<std::unique_ptr<Agent>> agent = Agent::create(std::move(agent_options));
  if (!agent) return fail(agent.error());
  const std::string trajectory = *out + "/trajectory.jsonl";
  if (const Result<void> done = run_agent(**agent, **model, words ? show : tell); !done) {
    fail(done.error());
    std::fprintf(stderr, "the turns until then: %s\n", trajectory.c_str());
    return kFailed;
  }
  return finish(arguments, **agent, *out, trajectory);
}

}  // namespace

const Command kRunCommand{
    "run",
    "let a model write candidates turn by turn, each judged, with what the model is told",
    "usage: ptxbench run --model MODEL --pack DIR --definition FILE --workloads FILE [options]\n"
    "       ptxbench run --replay TRAJECTORY [--rejudge] [--out DIR]\n"
    "\n"
    "Asks the model, judges its candidate on all workloads, tells it what was found, and so on. Without a "
    "GPU the\n"
    "emulator runs the candidates: it says whether they are right and what they execute, not how fast they are.\n"
    "\n"
    "  --model MODEL       scripted:PATH: replies from a folder (texts, or candidates), or a .jsonl file "
    "(docs/agent.md)\n"
    "  --turns N           most turns (default: as many as a script has, else 8)\n"
    "  --token-budget N    no further turn once the replies' usage adds up to N tokens\n"
    "  --out DIR           where the trajectory and the candidates go (default: a new folder in "
    "ptxbench-runs)\n"
    "  --replay FILE       a trajectory once more, with its recorded evaluations; the bytes come out the "
    "same\n"
    "  --rejudge           with --replay: judge the recorded replies again; the records say so\n"
    "  --options FILE      options of judging as JSON (docs/evaluate.md)\n"
    "  --seed N            of the attempt; a turn's seed is derived from it\n"
    "  --no-time --no-count\n"
    "  --json              turns, best candidate and trajectory as JSON\n"
    "exit code: 0 the run was completed, whatever its candidates were worth; 2 the call or the environment "
    "is at fault, or a\n"
    "replay came out different\n"
    "\n"
    "example:\n"
    "  ptxbench run --model scripted:examples/data/candidates --pack knowledge_packs/hopper \\\n"
    "    --definition examples/data/definitions/gemm/gemm_n7168_k5120.json \\\n"
    "    --workloads examples/data/workloads/gemm/gemm_n7168_k5120.jsonl\n",
    with_context_options(with_input_options({{"--model", true},
                                             {"--turns", true},
                                             {"--token-budget", true},
                                             {"--out", true},
                                             {"--replay", true},
                                             {"--rejudge"},
                                             {"--options", true},
                                             {"--seed", true},
                                             {"--no-time"},
                                             {"--no-count"},
                                             {"--json"}})),
    true,
    run};

}  // namespace ptxbench::cli
