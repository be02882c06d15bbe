#include "core/json.hpp"
#include "support/catch.hpp"
#include "trace/sample_verdict.hpp"

#include <ptxbench/trace/verdict.hpp>

#include <cmath>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

using namespace ptxbench;
using json::Kind;
using json::Value;
using test::edit;
using test::filled_verdict;
using test::kRemove;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::string read(const std::string& path) {
  std::ifstream in(std::string(PTXBENCH_SOURCE_DIR) + "/" + path);
  std::stringstream text;
  text << in.rdbuf();
  REQUIRE_FALSE(text.str().empty());
  return text.str();
}

// The keywords of JSON Schema that docs/verdict.schema.json uses; any other is a failure of this test.
class Schema {
 public:
  explicit Schema(const Value& root) : root_(root) {}

  // Where `value` breaks `schema`, or empty. Records which definitions were met with an object.
  std::string check(const Value& schema, const Value& value, const std::string& place) {
    for (const auto& [keyword, argument] : schema.members) {
      if (keyword == "$ref") {
        const std::string name = argument.text.substr(std::string("#/$defs/").size());
        if (value.kind == Kind::object) met_.insert(name);
        if (auto bad = check(*root_.find("$defs")->find(name), value, place); !bad.empty()) return bad;
      } else if (keyword == "type") {
        if (!is_type(argument.text, value)) return place + " is not of type " + argument.text;
      } else if (keyword == "enum") {
        bool any = false;
        for (const Value& word : argument.items)
          any = any || (value.kind == Kind::string && word.text == value.text);
        if (!any) return place + " is none of the words: " + value.text;
      } else if (keyword == "const") {
        if (value.text != argument.text) return place + " is not " + argument.text;
      } else if (keyword == "minimum") {
        if (std::stod(value.text) < std::stod(argument.text)) return place + " is too small";
      } else if (keyword == "maximum") {
        if (std::stod(value.text) > std::stod(argument.text)) return place + " is too large";
      } else if (keyword == "anyOf") {
        bool any = false;
        for (const Value& option : argument.items) any = any || check(option, value, place).empty();
        if (!any) return place + " fits none of the forms";
      } else if (keyword == "items") {
        for (std::size_t i = 0; i < value.items.size(); ++i)
          if (auto bad = check(argument, value.items[i], place + "/" + std::to_string(i)); !bad.empty())
            return bad;
      } else if (keyword == "required") {
        for (const Value& name : argument.items)
          if (value.find(name.text) == nullptr) return place + " lacks " + name.text;
      } else if (keyword == "properties") {
        for (const auto& [name, member] : value.members)
          if (const Value* property = argument.find(name))
            if (auto bad = check(*property, member, place + "/" + name); !bad.empty()) return bad;
      } else if (keyword == "additionalProperties") {
        const Value* const properties = schema.find("properties");
        for (const auto& [name, member] : value.members) {
          if (properties != nullptr && properties->find(name) != nullptr) continue;
          if (argument.kind == Kind::boolean) return place + " may not have " + name;
          if (auto bad = check(argument, member, place + "/" + name); !bad.empty()) return bad;
        }
      } else if (keyword != "description" && keyword != "$defs" && keyword != "$schema" &&
                 keyword != "title") {
        return "the schema uses " + keyword + ", which this test does not know";
      }
    }
    return {};
  }

  const std::set<std::string>& met() const { return met_; }

 private:
  static bool is_type(const std::string& type, const Value& value) {
    switch (value.kind) {
      case Kind::null:
        return type == "null";
      case Kind::boolean:
        return type == "boolean";
      case Kind::number:
        return type == "number" ||
               (type == "integer" && value.text.find_first_of(".eE") == std::string::npos);
      case Kind::string:
        return type == "string";
      case Kind::array:
        return type == "array";
      case Kind::object:
        return type == "object";
    }
    return false;
  }

  const Value& root_;
  std::set<std::string> met_;
};

std::set<std::string> names_of(const Value& object) {
  std::set<std::string> names;
  for (const auto& [name, value] : object.members) names.insert(name);
  return names;
}

Evaluation evaluation_of(std::vector<Verdict> verdicts) {
  Evaluation e;
  e.definition = "d";
  e.solution = "s";
  e.solution_hash = "abc";
  e.verdicts = std::move(verdicts);
  return e;
}

Verdict judged(Status status, std::optional<double> speedup = std::nullopt) {
  Verdict v;
  v.outcome = Outcome::judged;
  v.status = status;
  v.timing.speedup = speedup;
  if (speedup) v.timing.state = Availability::measured;
  return v;
}

Verdict unjudged(Outcome outcome) {
  Verdict v;
  v.outcome = outcome;
  return v;
}

}  // namespace

TEST_CASE("verdict: what is written has exactly the members of the schema") {
  const auto document = json::parse(read("docs/verdict.schema.json")).value();
  Schema schema(document.root);
  Verdict minimal;
  for (const auto& text : {to_json(filled_verdict()), to_json(minimal), to_json(minimal, 0),
                           to_json(evaluation_of({})), to_json(evaluation_of({filled_verdict(), minimal})),
                           to_json(evaluation_of({judged(Status::passed, 2.0)}))}) {
    const auto written = json::parse(text).value();
    REQUIRE(written.repeated_keys.empty());
    const Value& kind = *document.root.find("$defs")->find(
        written.root.find("verdicts") != nullptr ? "evaluation" : "verdict");
    REQUIRE(schema.check(kind, written.root, "") == "");
    REQUIRE(schema.check(document.root, written.root, "") == "");
  }
  // The filled verdict has every block, and each block's members are all required and no others allowed, so
  // that the check above compared the names of every block.
  for (const auto& [name, definition] : document.root.find("$defs")->members) {
    const Value* const properties = definition.find("properties");
    if (properties == nullptr) continue;
    INFO(name);
    REQUIRE((schema.met().count(name) == 1 || name == "evaluation"));
    std::set<std::string> required;
    for (const Value& item : definition.find("required")->items) required.insert(item.text);
    REQUIRE(required == names_of(*properties));
    const Value* const closed = definition.find("additionalProperties");
    REQUIRE((closed != nullptr && closed->kind == Kind::boolean && !closed->boolean));
  }
}

TEST_CASE("verdict: the validator of this test can fail") {
  const auto document = json::parse(read("docs/verdict.schema.json")).value();
  const auto check = [&](const std::string& text) {
    Schema schema(document.root);
    return schema.check(*document.root.find("$defs")->find("verdict"), json::parse(text).value().root, "");
  };
  const std::string good = to_json(filled_verdict());
  REQUIRE(check(good).empty());
  REQUIRE_FALSE(check(edit(good, "/timing/pairs", kRemove)).empty());
  REQUIRE_FALSE(check(edit(good, "/timing/pears", "1")).empty());
  REQUIRE_FALSE(check(edit(good, "/timing/pairs", "1.5")).empty());
  REQUIRE_FALSE(check(edit(good, "/compile/kernels/0/registers", "-1")).empty());
  REQUIRE_FALSE(check(edit(good, "/status", R"("passed")")).empty());
  REQUIRE_FALSE(check(edit(good, "/schema_version", "1")).empty());
  REQUIRE_FALSE(check(edit(good, "/emulation/fidelity", R"("about")")).empty());
  REQUIRE_FALSE(check(edit(good, "/counts/lines/0/label", R"("guess")")).empty());
  REQUIRE_FALSE(check(edit(good, "/findings/0/evidence", "[]")).empty());
}

TEST_CASE("verdict: the page names every member and word of the schema") {
  const std::string page = read("docs/verdict.md");
  const auto document = json::parse(read("docs/verdict.schema.json")).value();
  for (const auto& [name, definition] : document.root.find("$defs")->members) {
    if (const Value* properties = definition.find("properties"))
      for (const auto& [member, unused] : properties->members) {
        INFO(name << "." << member);
        REQUIRE(page.find("`" + member + "`") != std::string::npos);
      }
    if (const Value* words = definition.find("enum"); words != nullptr && name != "dtype")
      for (const Value& word : words->items) REQUIRE(page.find("`" + word.text + "`") != std::string::npos);
  }
}

TEST_CASE("verdict: comes back exactly as it was written") {
  for (const Verdict& v : {filled_verdict(), Verdict{}}) {
    const std::string text = to_json(v);
    const auto back = parse_verdict(text, "v.json");
    if (!back) FAIL(back.error().to_string());
    REQUIRE(to_json(*back) == text);
    REQUIRE(to_json(*parse_verdict(to_json(v, 0))) == text);
  }
  const Verdict back = parse_verdict(to_json(filled_verdict())).value();
  REQUIRE(std::isnan(back.correctness.outputs[0].first_wrong_got));
  REQUIRE(std::isinf(back.correctness.outputs[0].max_relative_error));
  REQUIRE(back.correctness.outputs[0].first_wrong_index == std::vector<std::int64_t>{3, 17});
  REQUIRE(back.provenance.seed == std::numeric_limits<std::uint64_t>::max());
  REQUIRE(back.timing.speedup == 1.0 / 3);
  REQUIRE(back.status == Status::incorrect_numerical);
  REQUIRE(back.integrity == Integrity::violated);
  REQUIRE(back.findings[0].evidence == R"({"offset":4096,"bytes":[0,255]})");
  REQUIRE(back.findings[1].evidence.empty());
  REQUIRE(back.provenance.versions[0] == std::pair<std::string, std::string>{"driver", "580.1"});
  REQUIRE(back.find_finding("red_zone")->severity == Severity::error);
  REQUIRE(back.find_finding("nothing") == nullptr);
}

TEST_CASE("verdict: text that is no JSON object is kept readable") {
  Verdict v;
  v.findings = {{"x", Severity::note, "m", "not json"}, {"y", Severity::note, "m", "[1]"}};
  v.resolved_plan = "{";
  v.output_log = std::string("bytes \xff\x00 of a kernel", 19);
  const auto back = parse_verdict(to_json(v));
  REQUIRE(back);
  REQUIRE(back->findings[0].evidence == R"({"not_an_object":"not json"})");
  REQUIRE(back->findings[1].evidence == R"({"not_an_object":"[1]"})");
}

TEST_CASE("verdict: reading is strict") {
  const std::string good = to_json(filled_verdict());
  const auto refused = [&](std::string_view pointer, std::string_view text) {
    INFO(pointer << " = " << text);
    const auto result = parse_verdict(edit(good, pointer, text), "v.json");
    REQUIRE_FALSE(result);
    REQUIRE(result.error().code == ErrorCode::parse);
    return result.error().where.pointer;
  };
  REQUIRE(refused("/schema_version", "1") == "/schema_version");
  refused("/schema_version", kRemove);
  refused("/schema_version", "1.0");
  REQUIRE(refused("/timing/pears", "1") == "/timing/pears");
  refused("/timing/pairs", kRemove);
  refused("/extra", "1");
  refused("/outcome", R"("incomplete")");
  refused("/outcome", R"("not_run")");  // has a status
  refused("/status", "null");           // is judged
  REQUIRE(refused("/status", R"("passed")") == "/status");
  refused("/integrity", R"("dirty")");
  refused("/compile/state", R"("maybe")");
  refused("/compile/ok", "1");
  refused("/compile/duration_ns", "-1");
  refused("/compile/duration_ns", "1e3");
  refused("/compile/duration_ns", "18446744073709551616");
  refused("/compile/diagnostics/0/line", "2147483648");
  refused("/compile/diagnostics/0/line", "-1");
  refused("/compile/diagnostics/0/severity", R"("fatal")");
  refused("/correctness/outputs/0/dtype", R"("fp32")");
  refused("/correctness/outputs/0/rms_error", R"("nan")");
  refused("/correctness/outputs/0/rms_error", "true");
  refused("/correctness/outputs/0/rms_error", "1e400");
  refused("/correctness/outputs", "{}");
  refused("/findings/0/evidence", R"("text")");
  refused("/axes", "[]");
  refused("/axes/M", R"("1")");
  refused("/provenance/versions", R"({"driver": 1})");
  for (const char* text : {"", "null", "[]", "{}", "1"}) REQUIRE_FALSE(parse_verdict(text));
  REQUIRE_FALSE(parse_verdict(to_json(evaluation_of({}))));
}

TEST_CASE("evaluation: status, outcome and speedup") {
  const Verdict pass = judged(Status::passed, 2.0), wrong = judged(Status::incorrect_numerical),
                slow = judged(Status::timeout);
  const Verdict inapplicable = unjudged(Outcome::not_applicable), not_run = unjudged(Outcome::not_run);
  struct Case {
    std::vector<Verdict> verdicts;
    std::optional<Status> status, strict_status;
    Outcome outcome;
  };
  const Case cases[] = {
      {{}, {}, {}, Outcome::not_run},
      {{pass}, Status::passed, Status::passed, Outcome::judged},
      {{pass, wrong, slow}, Status::incorrect_numerical, Status::incorrect_numerical, Outcome::judged},
      {{pass, slow, wrong}, Status::timeout, Status::timeout, Outcome::judged},
      {{not_run}, {}, {}, Outcome::not_run},
      {{inapplicable}, {}, Status::compile_error, Outcome::not_applicable},
      {{pass, inapplicable}, {}, Status::compile_error, Outcome::incomplete},
      {{pass, not_run}, {}, {}, Outcome::incomplete},
      {{not_run, wrong}, Status::incorrect_numerical, Status::incorrect_numerical, Outcome::judged},
      {{inapplicable, wrong}, Status::incorrect_numerical, Status::compile_error, Outcome::judged},
      {{inapplicable, not_run}, {}, Status::compile_error, Outcome::incomplete},
  };
  for (const Case& c : cases) {
    const Evaluation e = evaluation_of(c.verdicts);
    INFO(to_json(e));
    REQUIRE(e.status() == c.status);
    REQUIRE(e.status(true) == c.strict_status);
    REQUIRE(e.outcome() == c.outcome);
    const auto back = parse_evaluation(to_json(e));
    REQUIRE(back);
    REQUIRE(to_json(*back) == to_json(e));
  }
  REQUIRE(evaluation_of({judged(Status::passed, 2.0), judged(Status::passed, 8.0)}).speedup() == Approx(4.0));
  REQUIRE_FALSE(evaluation_of({judged(Status::passed, 2.0), judged(Status::passed)}).speedup());
  REQUIRE_FALSE(evaluation_of({judged(Status::passed, 2.0), judged(Status::timeout, 2.0)}).speedup());
  REQUIRE_FALSE(evaluation_of({judged(Status::passed, 2.0), not_run}).speedup());
  REQUIRE_FALSE(evaluation_of({judged(Status::passed, 0.0)}).speedup());
  REQUIRE_FALSE(evaluation_of({judged(Status::passed, kNaN)}).speedup());
  REQUIRE_FALSE(evaluation_of({}).speedup());
  Verdict unsure = judged(Status::passed, 2.0);
  unsure.timing.state = Availability::inconclusive;
  REQUIRE_FALSE(evaluation_of({unsure}).speedup());
}

TEST_CASE("evaluation: reading is strict") {
  const std::string good = to_json(evaluation_of({judged(Status::passed, 2.0), judged(Status::timeout)}));
  REQUIRE(parse_evaluation(good));
  for (const auto& [pointer, text] :
       std::vector<std::pair<const char*, const char*>>{{"/status", R"("PASSED")"},
                                                        {"/status", "null"},
                                                        {"/outcome", R"("not_run")"},
                                                        {"/verdicts", "[]"},
                                                        {"/speedup", kRemove.data()},
                                                        {"/schema_version", "0"},
                                                        {"/extra", "1"},
                                                        {"/verdicts", "{}"},
                                                        {"/verdicts/0/timing/pairs", kRemove.data()},
                                                        {"/speedup", "true"}}) {
    INFO(pointer << " = " << text);
    REQUIRE_FALSE(parse_evaluation(edit(good, pointer, text)));
  }
  const auto error = parse_evaluation(edit(good, "/verdicts/1/counts/state", R"("x")"), "e.json");
  REQUIRE(error.error().where.pointer == "/verdicts/1/counts/state");
}

TEST_CASE("verdict: words") {
  for (int i = 0; i <= 6; ++i)
    REQUIRE(status_from_name(status_name(static_cast<Status>(i))) == static_cast<Status>(i));
  REQUIRE_FALSE(status_from_name("passed"));
  REQUIRE(outcome_name(Outcome::incomplete) == "incomplete");
  REQUIRE(availability_name(Availability::inconclusive) == "inconclusive");
  REQUIRE(severity_name(Severity::note) == "note");
}
