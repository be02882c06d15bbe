// Reading Verdict and Evaluation from JSON: strict, every member must be there and no other may.
#include "core/guard.hpp"
#include "core/json.hpp"
#include "trace/verdict_fields.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace ptxbench {
namespace {

using json::Cursor;

Result<void> get(const Cursor& at, std::string& out) {
  PTXBENCH_TRY_ASSIGN(out, at.as_string());
  return {};
}
Result<void> get(const Cursor& at, bool& out) {
  PTXBENCH_TRY_ASSIGN(out, at.as_bool());
  return {};
}
Result<void> get(const Cursor& at, std::int64_t& out) {
  PTXBENCH_TRY_ASSIGN(out, at.as_int());
  return {};
}
// Sizes, lines and numbers of runs.
Result<void> get(const Cursor& at, int& out) {
  PTXBENCH_TRY_ASSIGN(const std::int64_t value, at.as_int());
  if (value < 0 || value > std::numeric_limits<int>::max())
    return at.error("expected an integer from 0 to " + std::to_string(std::numeric_limits<int>::max()));
  out = static_cast<int>(value);
  return {};
}
Result<void> get(const Cursor& at, std::uint64_t& out) {
  const std::string& text = at.value().text;
  if (at.kind() == json::Kind::number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error == std::errc{} && end == text.data() + text.size()) return {};
  }
  return at.error("expected an integer from 0 to 2^64 - 1, found " +
                  json::to_string(at.value()).substr(0, 40));
}
Result<void> get(const Cursor& at, double& out) {
  if (at.is_null()) {
    out = std::numeric_limits<double>::quiet_NaN();
    return {};
  }
  const bool infinite =
      at.kind() == json::Kind::string && (at.value().text == "Infinity" || at.value().text == "-Infinity");
  if (infinite) {
    out = *json::double_from_token(at.value().text);
    return {};
  }
  if (at.kind() == json::Kind::string)
    return at.error("expected a number, null, \"Infinity\" or \"-Infinity\"");
  PTXBENCH_TRY_ASSIGN(out, at.as_double());
  return {};
}

// An enumeration of consecutive values from 0, by the function that names them.
template <class E, class Name>
Result<void> get_word(const Cursor& at, E& out, int count, Name name) {
  PTXBENCH_TRY_ASSIGN(const std::string word, at.as_string());
  std::vector<std::string_view> known;
  for (int i = 0; i < count; ++i) {
    known.push_back(name(static_cast<E>(i)));
    if (known.back() == word) {
      out = static_cast<E>(i);
      return {};
    }
  }
  std::string list;
  for (const std::string_view k : known) list += (list.empty() ? "" : ", ") + std::string(k);
  return at.error("expected one of " + list + ", found \"" + word.substr(0, 40) + "\"");
}
Result<void> get(const Cursor& at, Status& out) { return get_word(at, out, 7, status_name); }
Result<void> get(const Cursor& at, Outcome& out) { return get_word(at, out, 4, outcome_name); }
Result<void> get(const Cursor& at, Availability& out) { return get_word(at, out, 4, availability_name); }
Result<void> get(const Cursor& at, Severity& out) { return get_word(at, out, 3, severity_name); }
Result<void> get(const Cursor& at, ContractState& out) { return get_word(at, out, 3, contract_state_name); }
Result<void> get(const Cursor& at, Integrity& out) {
  return get_word(at, out, 2,
                  [](Integrity i) { return std::string_view(i == Integrity::clean ? "clean" : "violated"); });
}
Result<void> get(const Cursor& at, DType& out) {
  return get_word(at, out, static_cast<int>(DType::tfloat32) + 1, dtype_name);
}

template <VerdictBlock T>
Result<void> get(const Cursor& at, T& out);

template <class T>
Result<void> get(const Cursor& at, std::vector<T>& out) {
  PTXBENCH_TRY_ASSIGN(const std::vector<Cursor> items, at.items());
  out.clear();
  out.reserve(items.size());
  for (const Cursor& item : items) {
    out.emplace_back();
    PTXBENCH_TRY(get(item, out.back()));
  }
  return {};
}
template <class T>
Result<void> get(const Cursor& at, std::optional<T>& out) {
  out.reset();
  if (at.is_null()) return {};
  return get(at, out.emplace());
}
template <class T>
Result<void> get(const Cursor& at, std::vector<std::pair<std::string, T>>& out) {
  PTXBENCH_TRY_ASSIGN(const auto members, at.members());
  out.clear();
  for (const auto& [name, value] : members) {
    out.emplace_back(name, T{});
    PTXBENCH_TRY(get(value, out.back().second));
  }
  return {};
}
Result<void> get(const Cursor& at, JsonText<std::string> out) {
  out.text.clear();
  if (at.is_null()) return {};
  if (at.kind() != json::Kind::object) return at.error("expected an object or null");
  out.text = json::to_string(at.value());
  return {};
}

// Reads the members of a block; `extra` are members that the caller reads itself.
template <class T>
Result<void> get_members(const Cursor& at, T& out, std::vector<std::string_view> extra) {
  Result<void> result;
  std::vector<std::string_view> known = std::move(extra);
  fields(
      [&](const char* name, auto&& member) {
        known.push_back(name);
        if (!result) return;
        auto place = at.require(name);
        if (place) {
          result = get(*place, member);
        } else {
          result = std::move(place).error();
        }
      },
      out, &out);
  PTXBENCH_TRY(std::move(result));
  PTXBENCH_TRY_ASSIGN(const auto members, at.members());
  for (const auto& [name, value] : members) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string_view near = json::nearest(name, known);
    return value.error("unknown member \"" + name + "\"" +
                           (near.empty() ? "" : "; did you mean \"" + std::string(near) + "\"?"),
                       "unknown_member");
  }
  return {};
}

template <VerdictBlock T>
Result<void> get(const Cursor& at, T& out) {
  return get_members(at, out, {});
}

Result<void> check_version(const Cursor& at) {
  PTXBENCH_TRY_ASSIGN(const Cursor place, at.require("schema_version"));
  PTXBENCH_TRY_ASSIGN(const std::int64_t version, place.as_int());
  if (version != kVerdictSchemaVersion)
    return place.error("schema_version " + std::to_string(version) + " is not " +
                           std::to_string(kVerdictSchemaVersion) + ", the one that this library reads",
                       "schema_version");
  return {};
}

Result<Verdict> read_verdict(const Cursor& at) {
  PTXBENCH_TRY(check_version(at));
  Verdict verdict;
  PTXBENCH_TRY(get_members(at, verdict, {"schema_version"}));
  if (verdict.outcome == Outcome::incomplete) return at.error("\"incomplete\" is no outcome of a verdict");
  if ((verdict.outcome == Outcome::judged) != verdict.status.has_value())
    return at.error("\"status\" must be there exactly where \"outcome\" is \"judged\"");
  return verdict;
}

Result<Evaluation> read_evaluation(const Cursor& at) {
  PTXBENCH_TRY(check_version(at));
  PTXBENCH_TRY(at.only({"schema_version", "definition", "solution", "solution_hash", "outcome", "status",
                        "speedup", "verdicts"}));
  Evaluation evaluation;
  const auto member = [&at](const char* name, auto& out) -> Result<void> {
    PTXBENCH_TRY_ASSIGN(const Cursor place, at.require(name));
    return get(place, out);
  };
  PTXBENCH_TRY(member("definition", evaluation.definition));
  PTXBENCH_TRY(member("solution", evaluation.solution));
  PTXBENCH_TRY(member("solution_hash", evaluation.solution_hash));
  PTXBENCH_TRY_ASSIGN(const Cursor list, at.require("verdicts"));
  PTXBENCH_TRY_ASSIGN(const std::vector<Cursor> items, list.items());
  for (const Cursor& item : items) {
    PTXBENCH_TRY_ASSIGN(Verdict verdict, read_verdict(item));
    evaluation.verdicts.push_back(std::move(verdict));
  }
  // What follows from the verdicts must agree with them. (Not the last digits of a mean.)
  Outcome outcome{};
  std::optional<Status> status;
  double speedup = 0;
  PTXBENCH_TRY(member("outcome", outcome));
  PTXBENCH_TRY(member("status", status));
  PTXBENCH_TRY(member("speedup", speedup));
  if (outcome != evaluation.outcome() || status != evaluation.status())
    return at.error("\"outcome\" and \"status\" do not follow from the verdicts");
  return evaluation;
}

}  // namespace

Result<Verdict> parse_verdict(std::string_view text, std::string_view file) {
  return guarded([&]() -> Result<Verdict> {
    PTXBENCH_TRY_ASSIGN(const json::Document document, json::parse(text, {std::string(file)}));
    return read_verdict(Cursor(document));
  });
}

Result<Evaluation> parse_evaluation(std::string_view text, std::string_view file) {
  return guarded([&]() -> Result<Evaluation> {
    PTXBENCH_TRY_ASSIGN(const json::Document document, json::parse(text, {std::string(file)}));
    return read_evaluation(Cursor(document));
  });
}

}  // namespace ptxbench
