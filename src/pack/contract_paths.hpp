// The values of a verdict that a contract's rule can name, and where each comes from.
#pragma once

#include <ptxbench/pack/contract.hpp>

#include <span>
#include <string>
#include <string_view>

namespace ptxbench {

// What a verdict has for a path: a number or a word; or nothing, and why.
struct ContractValue {
  bool known = false;
  double number = 0;   // unless it is a word
  std::string text;    // the number as written, or the word
  std::string kernel;  // whose it is, where one kernel decides
  std::string reason;  // unless known
};

struct ContractPathRow {
  ContractPath path;
  std::span<const std::string_view> words;  // that the value can be; none: it is a number
  // `family`: the name that stands for "<family>" in the path, else empty.
  ContractValue (*value)(const Verdict& verdict, std::string_view family);
};

std::span<const ContractPathRow> contract_path_rows() noexcept;

inline constexpr std::string_view kFamilyPlace = "<family>";

}  // namespace ptxbench
