// What the judge takes and how steady it is, on a GPU: the bars of the judge, one line each, and all numbers
// as JSON. Asserts nothing. Under five minutes on an H200.
//   judge_benchmark SOURCE_DIR WORKER OUT.json [PART ...]    parts: aa, exchange, evaluate, verify, early,
//   sweep
#include "core/json.hpp"

#include <ptxbench/evaluate.hpp>
#include <ptxbench/pack.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string>

using namespace ptxbench;

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

template <class T>
T must(Result<T> result, const char* what) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s: %s\n", what, result.error().to_string().c_str());
  std::exit(1);
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Benchmark {
 public:
  Benchmark(std::string source, std::string worker) : source_(std::move(source)) {
    ContextOptions options;
    options.worker_path = std::move(worker);
    options.cache_dir = "";  // nothing is found compiled
    context_ = must(Context::create(options), "context");
    device_ = must(context_->device(), "device");
    headers_ = must(KnowledgePack::load(source_ + "/knowledge_packs/hopper"), "pack")->headers();
    out_.begin_object().field("device", device_.name).key("rows").begin_array();
  }

  // Time taken by the library next to itself, through the same stage as any pair. No candidate is run.
  void aa(const std::string& name, const Workload& workload, int rounds) {
    TimeJob job;
    job.workload = workload;
    Solution nothing = solution("3_slow", *workload.definition);
    nothing.sources = {
        {"launch.json", R"json({"version": 1, "steps": [{"kernel": "none", "grid": [1], "block": [32],
                                              "args": []}]})json"},
        {"none.cu", "extern \"C\" __global__ void none() {}\n"}};
    EvaluateOptions options = base();
    const CompiledCandidate compiled =
        must(compile_candidate(*context_, nothing, workload, options), "compiling the placeholder");
    job.candidate = {nothing, {}, compiled.compiled.modules};
    job.judge_cubin = must(context_->workers().compile(judge_compile_request(device_.arch), {}), "judge")
                          .modules.at(0)
                          .cubin;
    job.pairs = 0;
    job.warmup_pairs = 0;
    job.noise = true;
    std::vector<double> off;
    std::string baseline;
    double pairs = 0, ns = 0;
    for (int i = 0; i < rounds; ++i) {
      job.seed = static_cast<std::uint64_t>(i + 1);
      LocalCallbacks none;
      const TimeEvidence evidence =
          must(context_->workers().time(device_.id, job, none, {}, {}), "timing the library against itself");
      if (!evidence.baseline_missing.empty()) {
        row("A/A " + name, "skipped: " + evidence.baseline_missing, {});
        return;
      }
      std::vector<double> ratios, times;
      for (const TimedPair& pair : evidence.noise) {
        ratios.push_back(static_cast<double>(pair.baseline_ns) / static_cast<double>(pair.candidate_ns));
        times.push_back(static_cast<double>(pair.baseline_ns));
      }
      off.push_back(std::abs(median_of(ratios) - 1));
      pairs += static_cast<double>(ratios.size()) / rounds;
      ns += median_of(times) / rounds;
      baseline = evidence.baseline_description;
    }
    row("A/A " + name,
        "largest |ratio - 1| " + percent(*std::max_element(off.begin(), off.end())) + ", median " +
            percent(median_of(off)) + " over " + std::to_string(rounds) + " runs of " +
            std::to_string(static_cast<int>(pairs)) + " pairs, " + std::to_string(static_cast<int>(ns)) +
            " ns, " + baseline,
        off);
  }

  // Two candidates of like speed, each as the other's baseline.
  void exchange(const Workload& workload) {
    std::vector<double> products;
    for (int i = 0; i < 5; ++i) {
      double product = 1;
      for (const bool swapped : {false, true}) {
        Judging judging;
        judging.baseline = choice(workload, swapped ? 1024 : 2048);
        EvaluateOptions options = base();
        options.count = false;
        options.trials = 1;
        options.constants = {{"GROUP_ROWS", PlanNumber(std::int64_t{swapped ? 2048 : 1024})}};
        const Verdict verdict = judge("4_fast", workload, judging, options);
        product *= verdict.timing.speedup.value_or(0);
      }
      products.push_back(std::abs(product - 1));
    }
    row("exchanged roles",
        "largest |product of both speedups - 1| " +
            percent(*std::max_element(products.begin(), products.end())),
        products);
  }

  // From source text to verdict, workers warm, nothing compiled before.
  void evaluate_cold(const Workload& workload) {
    judge("3_slow", workload, {}, base());  // warms the workers, compiles the judge's own code
    judge("4_fast", workload, {}, base());  // and measures the noise floor
    std::vector<double> wall;
    std::string stages;
    for (int i = 0; i < 3; ++i) {
      EvaluateOptions options = base();
      options.constants = {{"GROUP_ROWS", PlanNumber(std::int64_t{256 * (i + 1)})}};
      const Clock::time_point start = Clock::now();
      const Verdict verdict = judge("4_fast", workload, {}, options);
      wall.push_back(ms_since(start));
      stages.clear();
      for (const StageTime& stage : verdict.provenance.stages)
        stages += " " + stage.stage + " " + std::to_string(stage.duration_ns / 1'000'000);
    }
    row("source text to verdict, cold cache", number(median_of(wall)) + " ms; by stage, ms:" + stages, wall);
  }

  void verify_only(const Workload& workload) {
    for (const int trials : {1, 3}) {
      EvaluateOptions options = base();
      options.time = options.count = false;
      options.trials = trials;
      std::vector<double> stage;
      std::string parts;
      for (int i = 0; i < 5; ++i) {
        const Verdict verdict = judge("4_fast", workload, {}, options);
        parts.clear();
        for (const StageTime& s : verdict.provenance.stages) {
          if (s.stage == "verify") stage.push_back(static_cast<double>(s.duration_ns) / 1e6);
          parts += " " + s.stage + " " + std::to_string(s.duration_ns / 1'000'000);
        }
      }
      row("verify only, " + std::to_string(trials) + (trials == 1 ? " trial" : " trials"),
          number(median_of(stage)) + " ms; by stage, ms:" + parts, stage);
    }
  }

  void early_stop(const Workload& workload) {
    EvaluateOptions options = base();
    options.count = false;
    options.trials = 1;
    options.stop_if_slower_than = 0.9;
    std::vector<double> stage;
    std::string rule;
    for (int i = 0; i < 5; ++i) {
      const Verdict verdict = judge("3_slow", workload, {}, options);
      rule = verdict.timing.stop_rule + " after " + std::to_string(verdict.timing.pairs) +
             " pairs, speedup " + number(verdict.timing.speedup.value_or(0));
      for (const StageTime& s : verdict.provenance.stages)
        if (s.stage == "time") stage.push_back(static_cast<double>(s.duration_ns) / 1e6);
    }
    row("timing that stops early", number(median_of(stage)) + " ms: " + rule, stage);
  }

  // 32 sets of constants, verified, timed and counted as one list, after one more that finds the judge's own device code
  // not compiled and starts the workers.
  void sweep(const Workload& workload) {
    constexpr int kSets = 32;
    const Clock::time_point cold = Clock::now();
    judge("4_fast", workload, {}, base());
    row("the first verdict, the judge's code not compiled", number(ms_since(cold)) + " ms", {});
    std::vector<EvaluateRequest> requests;
    const auto candidate = std::make_shared<const Solution>(solution("4_fast", *workload.definition));
    for (int i = 0; i < kSets; ++i) {
      EvaluateRequest request;
      request.solution = candidate;
      request.workloads = {workload};
      request.options = base();
      request.options.constants = {{"GROUP_ROWS", PlanNumber(std::int64_t{256 * (i + 1)})}};
      requests.push_back(std::move(request));
    }
    std::vector<double> speedups;
    std::map<std::string, std::vector<double>> stages;  // ms; of all sets
    const Clock::time_point start = Clock::now();
    const auto results = must(evaluate_many(*context_, requests), "sweep");
    const double wall = ms_since(start);
    for (const auto& result : results) {
      const Evaluation evaluation = must(result, "sweep");
      const Verdict& verdict = evaluation.verdicts.at(0);
      speedups.push_back(verdict.timing.speedup.value_or(0));
      if (verdict.counts.state != Availability::measured) std::fprintf(stderr, "not counted: %s\n", verdict.counts.reason.c_str());
      for (const StageTime& s : verdict.provenance.stages)
        stages[s.stage].push_back(static_cast<double>(s.duration_ns) / 1e6);
    }
    row("32 sets of constants, cold cache", number(kSets * 1000 / wall) + " verdicts a second", speedups);
    for (auto& [stage, ms] : stages) row("  stage " + stage, number(median_of(ms)) + " ms", ms);
  }

  Workload gemm(const std::string& definition, std::int64_t m) {
    return workload(must(load_definition(source_ + "/examples/data/definitions/gemm/" + definition + ".json"),
                         "definition"),
                    "M", m);
  }
  std::optional<Workload> attention(const std::string& definition, std::int64_t s) {
    auto loaded = load_definition(source_ + "/examples/data/definitions/attention/" + definition + ".json");
    if (!loaded) return std::nullopt;
    return workload(*loaded, "S", s);
  }
  static Workload small_gemm() {
    Definition d;
    d.name = "gemm_n128_k2048";
    d.op_type = "gemm";
    d.axes = {{"M", false, 0, {}}, {"N", true, 128, {}}, {"K", true, 2048, {}}};
    d.inputs = {{"A", std::vector<std::string>{"M", "K"}, DType::bfloat16, {}},
                {"B", std::vector<std::string>{"N", "K"}, DType::bfloat16, {}}};
    d.outputs = {{"C", std::vector<std::string>{"M", "N"}, DType::bfloat16, {}}};
    return workload(must(make_definition(std::move(d)), "definition"), "M", 8828);
  }

  void skipped(const std::string& name, const std::string& why) { row(name, "skipped: " + why, {}); }

  std::string json() {
    out_.end_array().end_object();
    return std::move(out_).str();
  }

 private:
  static Workload workload(DefinitionPtr definition, const std::string& axis, std::int64_t value) {
    Workload made;
    made.definition = std::move(definition);
    made.axes = {{axis, value}};
    made.uuid = axis + "-" + std::to_string(value);
    return must(make_workload(std::move(made)), "workload");
  }

  EvaluateOptions base() const {
    EvaluateOptions options;
    options.headers = headers_;
    return options;
  }

  Solution solution(const std::string& name, const Definition& definition) const {
    return must(load_solution(source_ + "/examples/data/candidates/" + name, definition), "solution");
  }
  SolutionChoice choice(const Workload& workload, std::int64_t group_rows) const {
    return {std::make_shared<const Solution>(solution("4_fast", *workload.definition)),
            {{"GROUP_ROWS", PlanNumber(group_rows)}}};
  }

  Verdict judge(const std::string& name, const Workload& workload, const Judging& judging,
                const EvaluateOptions& options) {
    Evaluation evaluation =
        must(evaluate(*context_, solution(name, *workload.definition), {&workload, 1}, judging, options),
             "evaluating");
    Verdict verdict = std::move(evaluation.verdicts.at(0));
    if (verdict.status != Status::passed)
      std::fprintf(stderr, "%s did not pass: %s\n", name.c_str(), to_json(verdict).substr(0, 2000).c_str());
    return verdict;
  }

  static std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", value);
    return text;
  }
  static std::string percent(double value) { return number(100 * value) + "%"; }

  void row(const std::string& what, const std::string& result, const std::vector<double>& samples) {
    std::printf("%-40s %s\n", what.c_str(), result.c_str());
    std::fflush(stdout);
    out_.begin_object().field("what", what).field("result", result).key("samples").begin_array();
    for (const double sample : samples) out_.number(sample);
    out_.end_array().end_object();
  }

  std::string source_;
  std::shared_ptr<Context> context_;
  DeviceInfo device_;
  std::vector<SourceFile> headers_;
  json::Writer out_{json::Writer::Options{2, false}};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr,
                 "judge_benchmark SOURCE_DIR WORKER OUT.json [aa exchange evaluate verify early sweep]\n");
    return 2;
  }
  const std::set<std::string> parts(argv + 4, argv + argc);
  const auto wanted = [&](const char* part) { return parts.empty() || parts.count(part) != 0; };
  Benchmark benchmark(argv[1], argv[2]);
  const Workload large = benchmark.gemm("gemm_n7168_k5120", 8192);
  if (wanted("evaluate")) benchmark.evaluate_cold(large);
  if (wanted("verify")) benchmark.verify_only(large);
  if (wanted("early")) benchmark.early_stop(large);
  if (wanted("sweep")) benchmark.sweep(large);
  if (wanted("exchange")) benchmark.exchange(large);
  if (wanted("aa")) {
    benchmark.aa("GEMM M=8192 N=7168 K=5120", large, 20);
    benchmark.aa("GEMM M=8828 N=128 K=2048", Benchmark::small_gemm(), 20);
    if (const auto forward = benchmark.attention("mha_with_lse_d128", 4096))
      benchmark.aa("attention forward S=4096 D=128", *forward, 20);
    else
      benchmark.skipped("A/A attention forward S=4096 D=128", "no definition of it here");
  }
  std::ofstream(argv[3]) << benchmark.json() << "\n";
  return 0;
}
