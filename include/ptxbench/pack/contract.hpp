/// @file
/// Contracts: a pack's rules about a verdict that a machine checks, each with the sentence that a model reads
/// where it is not met. docs/packs.md has the form and every value that a rule can name.
#pragma once

#include <ptxbench/core.hpp>
#include <ptxbench/trace/verdict.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxbench {

/// A value of a verdict that a rule can name.
struct ContractPath {
  std::string_view path;     ///< "spills"; "<family>" in it stands for the name of an instruction family
  std::string_view unit;     ///< "ns", "bytes", "1" for a count or a ratio, "word"
  std::string_view meaning;  ///< one sentence
  std::string_view source;   ///< the members of the verdict that it is made of
};
/// All of them.
std::span<const ContractPath> contract_paths() noexcept;

/// A rule, parsed: `path op number` with one of == != < <= > >=, e.g. `spills == 0`; of a value that is a
/// word `path == word` or `path != word`, e.g. `status == PASSED`. Immutable.
class Contract {
 public:
  /// Strict: an unknown path or word is ErrorCode::parse (rule "contract") and names the nearest known one.
  /// @p where: of the rule's text (file and JSON pointer); an error adds the column in the rule, in bytes
  /// from 1.
  /// @p op_types: the operations that it is about; none: all.
  static Result<Contract> parse(std::string_view rule, std::string_view sentence,
                                std::vector<std::string> op_types = {}, const Location& where = {});

  const std::string& rule() const { return rule_; }
  const std::string& sentence() const { return sentence_; }
  const std::vector<std::string>& op_types() const { return op_types_; }
  bool applies_to(std::string_view op_type) const noexcept;

  /// Holds @p verdict against the rule. A value that the verdict lacks makes it `not_checked`, with the
  /// reason.
  ContractResult check(const Verdict& verdict) const;

 private:
  enum class Operator : std::uint8_t { equal, not_equal, less, less_equal, greater, greater_equal };
  Contract() = default;
  std::string rule_, sentence_;
  std::vector<std::string> op_types_;
  std::size_t path_ = 0;  // in the table of paths
  std::string family_;    // what stands for "<family>"
  Operator operator_ = Operator::equal;
  double number_ = 0;
  std::string word_;  // of a path whose value is a word
};

/// What becomes of each contract that applies to @p op_type, in their order.
std::vector<ContractResult> check_contracts(std::span<const Contract> contracts, std::string_view op_type,
                                            const Verdict& verdict);

}  // namespace ptxbench
