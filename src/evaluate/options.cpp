#include "evaluate/check.hpp"

#include "core/guard.hpp"
#include "core/json.hpp"
#include "pack/contract_list.hpp"

#include <ptxbench/evaluate.hpp>

#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>

namespace ptxbench {
namespace {

constexpr std::int64_t kMaxTrials = 1000;
constexpr std::int64_t kMaxPairs = 10000;
constexpr double kMaxSeconds = 86400;

Result<PlanNumber> plan_number(const json::Cursor& cursor) {
  if (cursor.kind() == json::Kind::boolean) {
    PTXBENCH_TRY_ASSIGN(const bool value, cursor.as_bool());
    return PlanNumber(value);
  }
  if (const Result<std::int64_t> integer = cursor.as_int()) return PlanNumber(*integer);
  PTXBENCH_TRY_ASSIGN(const double value, cursor.as_double());
  return PlanNumber(value);
}

Result<std::uint64_t> seconds(const json::Cursor& cursor) {
  PTXBENCH_TRY_ASSIGN(const double value, cursor.as_double());
  if (!(value > 0 && value <= kMaxSeconds)) return cursor.error("a time in seconds must lie in (0, 86400]");
  return static_cast<std::uint64_t>(std::llround(value * 1e9));
}

Result<CandidateLimits> limits_of(const json::Cursor& root) {
  CandidateLimits limits;
  PTXBENCH_TRY(root.only({"source_bytes", "steps", "grid_ctas", "workspace_bytes", "global_bytes"}));
  const auto number = [&](const char* name) -> Result<std::optional<std::uint64_t>> {
    PTXBENCH_TRY_ASSIGN(const auto found, root.get(name));
    if (!found) return std::optional<std::uint64_t>();
    PTXBENCH_TRY_ASSIGN(const std::int64_t value, found->as_int());
    if (value < 0) return found->error("a limit must not be negative");
    return std::optional<std::uint64_t>(static_cast<std::uint64_t>(value));
  };
  const std::initializer_list<std::pair<const char*, std::uint64_t*>> known = {{"source_bytes", &limits.source_bytes},
                                                                              {"steps", &limits.steps},
                                                                              {"grid_ctas", &limits.grid_ctas},
                                                                              {"global_bytes", &limits.global_bytes}};
  for (const auto& [name, to] : known) {
    PTXBENCH_TRY_ASSIGN(const auto value, number(name));
    if (value) *to = *value;
  }
  PTXBENCH_TRY_ASSIGN(limits.workspace_bytes, number("workspace_bytes"));
  return limits;
}

Result<EvaluateOptions> parse(std::string_view text) {
  EvaluateOptions options;
  json::ParseOptions parse_options;
  parse_options.file = "options";
  PTXBENCH_TRY_ASSIGN(const json::Document document, json::parse(text, parse_options));
  const json::Cursor root(document);
  PTXBENCH_TRY(root.only({"stages", "trials", "protocol", "seed", "compile_deadline_s", "run_deadline_s", "constants",
                          "arch", "pairs", "time_budget_s", "stop_if_slower_than", "memory_budget_bytes", "count_workloads",
                          "schedules", "small_sm_count", "schedule_budget_s", "target_width", "l2", "limits", "contracts"}));
  PTXBENCH_TRY_ASSIGN(const auto stages, root.get("stages"));
  if (stages) {
    options.verify = options.time = options.count = false;
    PTXBENCH_TRY_ASSIGN(const auto items, stages->items());
    for (const json::Cursor& item : items) {
      PTXBENCH_TRY_ASSIGN(const std::string name, item.as_string());
      if (name == "verify") options.verify = true;
      else if (name == "time") options.time = true;
      else if (name == "count") options.count = true;
      else if (name != "compile")
        return item.error("unknown stage \"" + name + "\"; the stages are compile, verify, time, count");
    }
    if ((options.time || options.count) && !options.verify)
      return stages->error("time and count need verify: an unverified number says nothing");
  }
  PTXBENCH_TRY_ASSIGN(const auto scope, root.get("count_workloads"));
  if (scope) {
    PTXBENCH_TRY_ASSIGN(const std::string word, scope->as_string());
    if (word != "first" && word != "all")
      return scope->error("count_workloads is \"first\" or \"all\", not \"" + word + "\"");
    options.count_workloads = word == "all" ? CountScope::all : CountScope::first;
  }
  PTXBENCH_TRY_ASSIGN(const auto trials, root.get("trials"));
  if (trials) {
    PTXBENCH_TRY_ASSIGN(const std::int64_t value, trials->as_int());
    if (value < 1 || value > kMaxTrials) return trials->error("trials must lie in 1 to 1000");
    options.trials = static_cast<int>(value);
  }
  PTXBENCH_TRY_ASSIGN(const auto pairs, root.get("pairs"));
  if (pairs) {
    PTXBENCH_TRY_ASSIGN(const std::int64_t value, pairs->as_int());
    if (value < 6 || value > kMaxPairs) return pairs->error("pairs must lie in 6 (fewer give no interval) to 10000");
    options.pairs = static_cast<int>(value);
  }
  PTXBENCH_TRY_ASSIGN(const auto schedules, root.get("schedules"));
  if (schedules) {
    PTXBENCH_TRY_ASSIGN(const std::int64_t value, schedules->as_int());
    if (value < 0 || value > 1000) return schedules->error("schedules must lie in 0 to 1000");
    options.schedules = static_cast<int>(value);
  }
  PTXBENCH_TRY_ASSIGN(const auto small, root.get("small_sm_count"));
  if (small) {
    PTXBENCH_TRY_ASSIGN(const std::int64_t value, small->as_int());
    if (value < 0 || value > 1024) return small->error("small_sm_count must lie in 0 (no such run) to 1024");
    options.small_sm_count = static_cast<int>(value);
  }
  PTXBENCH_TRY_ASSIGN(const auto schedule_budget, root.get("schedule_budget_s"));
  if (schedule_budget) {
    PTXBENCH_TRY_ASSIGN(options.schedule_budget_ns, seconds(*schedule_budget));
  }
  PTXBENCH_TRY_ASSIGN(const auto budget, root.get("time_budget_s"));
  if (budget) {
    PTXBENCH_TRY_ASSIGN(options.time_budget_ns, seconds(*budget));
  }
  PTXBENCH_TRY_ASSIGN(const auto memory, root.get("memory_budget_bytes"));
  if (memory) {
    PTXBENCH_TRY_ASSIGN(const std::int64_t value, memory->as_int());
    if (value < 0) return memory->error("a memory budget must not be negative");
    options.memory_budget_bytes = static_cast<std::uint64_t>(value);
  }
  PTXBENCH_TRY_ASSIGN(const auto limits, root.get("limits"));
  if (limits) {
    PTXBENCH_TRY_ASSIGN(options.limits, limits_of(*limits));
  }
  PTXBENCH_TRY_ASSIGN(const auto slower, root.get("stop_if_slower_than"));
  if (slower) {
    PTXBENCH_TRY_ASSIGN(const double value, slower->as_double());
    if (!(value > 0)) return slower->error("a speedup must be above 0");
    options.stop_if_slower_than = value;
  }
  PTXBENCH_TRY_ASSIGN(const auto width, root.get("target_width"));
  if (width) {
    PTXBENCH_TRY_ASSIGN(options.target_width, width->as_double());
    if (!(options.target_width >= 0 && options.target_width < 1))
      return width->error("a target width is a part of the ratio: it must lie in 0 (never stop by it) to 1");
  }
  PTXBENCH_TRY_ASSIGN(const auto l2, root.get("l2"));
  if (l2) {
    PTXBENCH_TRY_ASSIGN(const std::string word, l2->as_string());
    if (word != "cold" && word != "warm") return l2->error("l2 is \"cold\" or \"warm\", not \"" + word + "\"");
    options.l2 = word == "warm" ? L2State::warm : L2State::cold;
  }
  PTXBENCH_TRY_ASSIGN(const auto protocol, root.get("protocol"));
  if (protocol) {
    PTXBENCH_TRY_ASSIGN(options.protocol, protocol->as_string());
    if (const Result<void> known = check_protocol(options.protocol); !known) return protocol->error(known.error().message);
  }
  PTXBENCH_TRY_ASSIGN(const auto seed, root.get("seed"));
  if (seed) {
    PTXBENCH_TRY_ASSIGN(const std::int64_t value, seed->as_int());
    if (value < 0) return seed->error("a seed must not be negative");
    options.seed = static_cast<std::uint64_t>(value);
  }
  PTXBENCH_TRY_ASSIGN(const auto compile_deadline, root.get("compile_deadline_s"));
  if (compile_deadline) {
    PTXBENCH_TRY_ASSIGN(options.compile_deadline_ns, seconds(*compile_deadline));
  }
  PTXBENCH_TRY_ASSIGN(const auto run_deadline, root.get("run_deadline_s"));
  if (run_deadline) {
    PTXBENCH_TRY_ASSIGN(options.run_deadline_ns, seconds(*run_deadline));
  }
  PTXBENCH_TRY_ASSIGN(const auto constants, root.get("constants"));
  if (constants) {
    PTXBENCH_TRY_ASSIGN(const auto members, constants->members());
    for (const auto& [name, value] : members) {
      PTXBENCH_TRY_ASSIGN(PlanNumber number, plan_number(value));
      options.constants.emplace_back(name, number);
    }
  }
  PTXBENCH_TRY_ASSIGN(const auto arch, root.get("arch"));
  if (arch) {
    PTXBENCH_TRY_ASSIGN(options.arch, arch->as_string());
    if (const Result<Architecture> known = find_architecture(options.arch); !known)
      return arch->error(known.error().message);
  }
  PTXBENCH_TRY_ASSIGN(const auto contracts, root.get("contracts"));
  if (contracts) {
    PTXBENCH_TRY_ASSIGN(options.contracts, read_contracts(*contracts));
  }
  return options;
}

}  // namespace

std::string to_json(const EvaluateOptions& options) {
  json::Writer out(json::Writer::Options{2, false});
  const auto seconds = [](std::uint64_t ns) { return static_cast<double>(ns) / 1e9; };
  out.begin_object().key("stages").begin_array().string("compile");
  if (options.verify) out.string("verify");
  if (options.time) out.string("time");
  if (options.count) out.string("count");
  out.end_array();
  out.field("count_workloads", options.count_workloads == CountScope::all ? "all" : "first");
  if (options.trials) out.field("trials", *options.trials);
  out.field("pairs", options.pairs).field("time_budget_s", seconds(options.time_budget_ns));
  if (options.stop_if_slower_than) out.field("stop_if_slower_than", *options.stop_if_slower_than);
  if (options.memory_budget_bytes) out.field("memory_budget_bytes", *options.memory_budget_bytes);
  out.field("target_width", options.target_width).field("l2", l2_state_name(options.l2));
  out.key("limits").begin_object().field("source_bytes", options.limits.source_bytes).field("steps", options.limits.steps);
  out.field("grid_ctas", options.limits.grid_ctas).field("global_bytes", options.limits.global_bytes);
  if (options.limits.workspace_bytes) out.field("workspace_bytes", *options.limits.workspace_bytes);
  out.end_object();
  out.field("protocol", options.protocol);
  if (options.seed) out.field("seed", *options.seed);
  out.field("compile_deadline_s", seconds(options.compile_deadline_ns));
  if (options.run_deadline_ns) out.field("run_deadline_s", seconds(*options.run_deadline_ns));
  out.field("schedules", options.schedules).field("small_sm_count", options.small_sm_count);
  out.field("schedule_budget_s", seconds(options.schedule_budget_ns));
  if (!options.constants.empty()) {
    out.key("constants").begin_object();
    for (const auto& [name, value] : options.constants) {
      out.key(name);
      if (const auto* integer = std::get_if<std::int64_t>(&value)) out.integer(*integer);
      else if (const auto* real = std::get_if<double>(&value)) out.number(*real);
      else out.boolean(std::get<bool>(value));
    }
    out.end_object();
  }
  if (!options.arch.empty()) out.field("arch", options.arch);
  if (!options.contracts.empty()) {
    out.key("contracts");
    write_contracts(out, options.contracts);
  }
  out.end_object();
  return std::move(out).str();
}

Result<EvaluateOptions> parse_evaluate_options(std::string_view json) {
  return guarded([&] { return parse(json); });
}

}  // namespace ptxbench
