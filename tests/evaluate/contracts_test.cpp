// Contracts where evaluations come from: every way to a verdict holds it against the request's rules.
#include "fake_workers.hpp"

using namespace testing;

namespace {

std::vector<Contract> rules() {
  return {Contract::parse("code.elect.instructions >= 1", "Elect a thread.").value(),
          Contract::parse("median_ns <= 999", "Be faster.").value(),
          Contract::parse("status == PASSED", "Be right.", {"own"}).value(),
          Contract::parse("spills == 0", "Of another operation.", {"gemm"}).value(),
          Contract::parse("registers >= 0", "Never mind.").value()};
}

std::string states(const Verdict& verdict) {
  std::string out;
  for (const ContractResult& result : verdict.contracts)
    out += result.rule.substr(0, result.rule.find(' ')) + " " +
           std::string(contract_state_name(result.state)) + "; ";
  return out;
}

const std::string kPassed =
    "code.elect.instructions met; median_ns not_met; status met; registers not_checked; ";

}  // namespace

TEST_CASE("contracts: a verdict is held against those of its operation, whatever became of it") {
  Bench bench;
  CHECK(bench.verdict().contracts.empty());  // none were asked for
  bench.options.contracts = rules();
  const Verdict verdict = bench.verdict();
  CHECK(states(verdict) == kPassed);
  CHECK(verdict.contracts[1].value == "1000");
  CHECK(verdict.contracts[1].sentence == "Be faster.");
  CHECK(verdict.contracts[3].reason.find("came ready made") != std::string::npos);  // the fixture's code
  CHECK(verdict.status == Status::passed);  // a rule changes no status

  bench.options.time = false;
  CHECK(states(bench.verdict()) ==
        "code.elect.instructions met; median_ns not_checked; status met; registers not_checked; ");
  bench.workers->wrong = 3;
  CHECK(states(bench.verdict()) ==
        "code.elect.instructions met; median_ns not_checked; status not_met; registers not_checked; ");
  // Nothing is executed, and nothing is compiled.
  bench.options.verify = false;
  CHECK(states(bench.verdict()) ==
        "code.elect.instructions met; median_ns not_checked; status not_checked; registers not_checked; ");
  bench.workers->compiles = false;
  CHECK(
      states(bench.verdict()) ==
      "code.elect.instructions not_checked; median_ns not_checked; status not_met; registers not_checked; ");
}

TEST_CASE("contracts: lists and jobs hold verdicts against them too") {
  Bench bench;
  std::vector<EvaluateRequest> requests;
  for (int i = 0; i < 3; ++i)
    requests.push_back(
        {std::make_shared<const Solution>(bench.solution), {bench.workload}, bench.judging, bench.options});
  requests[0].options.contracts = rules();
  requests[2].options.contracts = rules();
  requests[2].options.verify = requests[2].options.time = false;  // needs no device
  const auto results = evaluate_many(*bench.context, requests);
  REQUIRE(results);
  CHECK(states((*results)[0]->verdicts.at(0)) == kPassed);
  CHECK(states((*results)[1]->verdicts.at(0)).empty());
  CHECK(states((*results)[2]->verdicts.at(0)) ==
        "code.elect.instructions met; median_ns not_checked; status not_checked; registers not_checked; ");
  const auto job = submit(bench.context, requests[0]).value();
  REQUIRE(job->wait());
  CHECK(states(job->take()->verdicts.at(0)) == kPassed);
}

TEST_CASE("contracts: as options, read strictly and written again") {
  const auto options = parse_evaluate_options(
      R"({"contracts": [{"rule": "spills == 0", "sentence": "a \"quoted\" one"},
                        {"rule": "speedup >= 0.6", "sentence": "b", "op_types": ["gemm"]}]})");
  REQUIRE(options);
  REQUIRE(options->contracts.size() == 2);
  const auto again = parse_evaluate_options(to_json(*options));
  REQUIRE(again);
  REQUIRE(again->contracts.size() == 2);
  CHECK(again->contracts[0].sentence() == "a \"quoted\" one");
  CHECK(again->contracts[0].op_types().empty());
  CHECK(again->contracts[1].rule() == "speedup >= 0.6");
  CHECK(again->contracts[1].op_types() == std::vector<std::string>{"gemm"});
  CHECK(to_json(*again) == to_json(*options));
  CHECK(to_json(EvaluateOptions{}).find("contracts") == std::string::npos);

  const auto wrong = parse_evaluate_options(R"({"contracts": [{"rule": "spils == 0", "sentence": "s"}]})");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().where.pointer == "/contracts/0/rule");
  CHECK(wrong.error().where.column == 1);
  CHECK(wrong.error().message.find("did you mean \"spills\"") != std::string::npos);
  CHECK_FALSE(parse_evaluate_options(R"({"contracts": {}})"));
  CHECK_FALSE(parse_evaluate_options(R"({"contract": []})"));
}
