// Rules of contracts: `path op number`, parsed once, held against verdicts.
#include "core/guard.hpp"
#include "core/json.hpp"
#include "pack/contract_paths.hpp"

#include <ptxbench/pack/contract.hpp>
#include <ptxbench/sass.hpp>

#include <algorithm>
#include <cmath>

namespace ptxbench {
namespace {

constexpr std::size_t kMostRuleBytes = 200, kMostSentenceBytes = 1000;
constexpr std::string_view kForm = "a rule is `value op number`, e.g. `spills == 0`";

bool space(char c) { return c == ' ' || c == '\t'; }
bool in_path(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.'; }
bool in_operator(char c) { return c == '=' || c == '!' || c == '<' || c == '>'; }

// Text of a message: what cannot be printed is not repeated.
std::string quoted(std::string_view text) {
  constexpr std::size_t kMost = 80;
  std::string out = "\"";
  for (const char c : text.substr(0, kMost)) out += c >= 0x20 && c < 0x7f ? c : '?';
  return out + (text.size() > kMost ? "...\"" : "\"");
}

// The rule's text, read from left to right.
class Reader {
 public:
  Reader(std::string_view text, const Location& where) : text_(text), where_(where) { skip(); }

  template <class In>
  std::string_view take(In in) {
    const std::size_t start = at_;
    while (at_ < text_.size() && in(text_[at_])) ++at_;
    const std::string_view part = text_.substr(start, at_ - start);
    begin_ = start;
    skip();
    return part;
  }
  bool at_end() const { return at_ == text_.size(); }
  std::string_view rest() const { return text_.substr(at_); }

  // At the start of the last part taken; `next`: at what follows it.
  Error error(std::string message) const { return error_at(begin_, std::move(message)); }
  Error error_next(std::string message) const { return error_at(at_, std::move(message)); }

 private:
  void skip() {
    while (at_ < text_.size() && space(text_[at_])) ++at_;
  }
  Error error_at(std::size_t at, std::string message) const {
    Location where = where_;
    where.column = static_cast<int>(at) + 1;
    return make_error(ErrorCode::parse, "column " + std::to_string(where.column) + ": " + std::move(message),
                      std::move(where), "contract");
  }

  std::string_view text_;
  const Location& where_;
  std::size_t at_ = 0, begin_ = 0;
};

bool is_family(std::string_view name) {
  const auto known = sass::families();
  return std::any_of(known.begin(), known.end(), [&](const sass::Family& f) { return f.name == name; });
}

// The family that `path` names where `pattern` has its place, or nothing where they do not fit.
std::optional<std::string_view> fit(std::string_view pattern, std::string_view path) {
  const std::size_t place = pattern.find(kFamilyPlace);
  if (place == pattern.npos) return pattern == path ? std::optional<std::string_view>("") : std::nullopt;
  const std::string_view before = pattern.substr(0, place),
                         after = pattern.substr(place + kFamilyPlace.size());
  if (path.size() <= before.size() + after.size() || !path.starts_with(before) || !path.ends_with(after))
    return std::nullopt;
  const std::string_view family = path.substr(before.size(), path.size() - before.size() - after.size());
  return is_family(family) ? std::optional(family) : std::nullopt;
}

std::string unknown_path(std::string_view path) {
  std::vector<std::string> all;
  for (const ContractPath& known : contract_paths()) {
    const std::size_t place = known.path.find(kFamilyPlace);
    if (place == known.path.npos) {
      all.emplace_back(known.path);
      continue;
    }
    for (const sass::Family& family : sass::families())
      all.push_back(std::string(known.path).replace(place, kFamilyPlace.size(), family.name));
  }
  std::string text = "a verdict has no value " + quoted(path);
  if (const std::string_view near = json::nearest(path, {all.begin(), all.end()}); !near.empty())
    return text + "; did you mean \"" + std::string(near) + "\"?";
  text += "; there are ";
  for (const ContractPath& known : contract_paths())
    text += std::string(known.path) + (&known == &contract_paths().back() ? "" : ", ");
  return text;
}

}  // namespace

Result<Contract> Contract::parse(std::string_view rule, std::string_view sentence,
                                 std::vector<std::string> op_types, const Location& where) {
  return guarded([&]() -> Result<Contract> {
    Reader reader(rule, where);
    if (rule.size() > kMostRuleBytes)
      return reader.error("a rule has at most " + std::to_string(kMostRuleBytes) + " bytes");
    if (sentence.empty() || sentence.size() > kMostSentenceBytes)
      return make_error(
          ErrorCode::parse,
          "the sentence of a contract has 1 to " + std::to_string(kMostSentenceBytes) + " bytes", where,
          "contract");
    Contract out;
    out.rule_ = rule;
    out.sentence_ = sentence;
    out.op_types_ = std::move(op_types);

    const std::string_view path = reader.take(in_path);
    if (path.empty())
      return reader.error(std::string(kForm) + ", and this does not begin with a value's name");
    const auto rows = contract_path_rows();
    const ContractPathRow* row = nullptr;
    for (std::size_t i = 0; i < rows.size() && row == nullptr; ++i)
      if (const auto family = fit(rows[i].path.path, path)) {
        row = &rows[i];
        out.path_ = i;
        out.family_ = *family;
      }
    if (row == nullptr) return reader.error(unknown_path(path));

    using Op = Operator;
    constexpr std::pair<std::string_view, Op> kOperators[] = {{"==", Op::equal},  {"!=", Op::not_equal},
                                                              {"<", Op::less},    {"<=", Op::less_equal},
                                                              {">", Op::greater}, {">=", Op::greater_equal}};
    const std::string_view op = reader.take(in_operator);
    const auto* known = std::find_if(std::begin(kOperators), std::end(kOperators),
                                     [&](const auto& entry) { return entry.first == op; });
    if (known == std::end(kOperators))
      return reader.error((op.empty() ? "an operator is missing" : quoted(op) + " is no operator") +
                          std::string(op == "=" ? "; equality is ==" : "; there are == != < <= > >="));
    out.operator_ = known->second;

    if (!row->words.empty()) {
      if (out.operator_ != Op::equal && out.operator_ != Op::not_equal)
        return reader.error(std::string(path) + " is a word: it is compared by == or !=");
      const std::string_view word = reader.take([](char c) { return !space(c); });
      if (std::find(row->words.begin(), row->words.end(), word) == row->words.end()) {
        const std::string_view near = json::nearest(word, {row->words.begin(), row->words.end()});
        std::string list;
        for (const std::string_view w : row->words) list += (list.empty() ? "" : ", ") + std::string(w);
        return reader.error(quoted(word) + " is none of the words of " + std::string(path) +
                            (near.empty() ? ": " + list : "; did you mean " + std::string(near) + "?"));
      }
      out.word_ = word;
    } else {
      const std::string_view token = reader.take([](char c) { return !space(c); });
      if (token.empty()) return reader.error("a number is missing; " + std::string(kForm));
      const bool digits = token[0] == '-' || (token[0] >= '0' && token[0] <= '9');  // no NaN, no Infinity
      const std::optional<double> number = digits ? json::double_from_token(token) : std::nullopt;
      if (!number || !std::isfinite(*number))
        return reader.error(quoted(token) + " is no number; " + std::string(kForm));
      out.number_ = *number;
    }
    if (!reader.at_end())
      return reader.error_next(quoted(reader.rest()) + " is too much: one contract has one comparison");
    return out;
  });
}

bool Contract::applies_to(std::string_view op_type) const noexcept {
  return op_types_.empty() || std::find(op_types_.begin(), op_types_.end(), op_type) != op_types_.end();
}

ContractResult Contract::check(const Verdict& verdict) const {
  const ContractPathRow& row = contract_path_rows()[path_];
  ContractValue value = row.value(verdict, family_);
  ContractResult result;
  result.rule = rule_;
  result.sentence = sentence_;
  if (!value.known) {
    result.reason = std::move(value.reason);
    return result;
  }
  const auto compare = [&]() {
    const bool equal = row.words.empty() ? value.number == number_ : value.text == word_;
    switch (operator_) {
      case Operator::equal:
        return equal;
      case Operator::not_equal:
        return !equal;
      case Operator::less:
        return value.number < number_;
      case Operator::less_equal:
        return value.number <= number_;
      case Operator::greater:
        return value.number > number_;
      case Operator::greater_equal:
        return value.number >= number_;
    }
    return false;
  };
  result.state = compare() ? ContractState::met : ContractState::not_met;
  result.value = std::move(value.text);
  result.kernel = std::move(value.kernel);
  return result;
}

std::vector<ContractResult> check_contracts(std::span<const Contract> contracts, std::string_view op_type,
                                            const Verdict& verdict) {
  std::vector<ContractResult> results;
  for (const Contract& contract : contracts)
    if (contract.applies_to(op_type)) results.push_back(contract.check(verdict));
  return results;
}

}  // namespace ptxbench
