#include "pack/contract_list.hpp"

namespace ptxbench {
namespace {

Result<Contract> read_contract(const json::Cursor& at) {
  PTXBENCH_TRY(at.only({"rule", "sentence", "op_types"}));
  PTXBENCH_TRY_ASSIGN(const json::Cursor rule, at.require("rule"));
  PTXBENCH_TRY_ASSIGN(const std::string rule_text, rule.as_nonempty_string());
  PTXBENCH_TRY_ASSIGN(const json::Cursor sentence, at.require("sentence"));
  PTXBENCH_TRY_ASSIGN(const std::string sentence_text, sentence.as_nonempty_string());
  std::vector<std::string> op_types;
  PTXBENCH_TRY_ASSIGN(const auto listed, at.get("op_types"));
  if (listed) {
    PTXBENCH_TRY_ASSIGN(const std::vector<json::Cursor> items, listed->items());
    if (items.empty())
      return listed->error("names no operation, so the contract would apply to none", "contract");
    for (const json::Cursor& item : items) {
      PTXBENCH_TRY_ASSIGN(std::string name, item.as_nonempty_string());
      op_types.push_back(std::move(name));
    }
  }
  if (sentence_text.size() > 1000) return sentence.error("is longer than 1000 bytes", "contract");
  return Contract::parse(rule_text, sentence_text, std::move(op_types), rule.location());
}

}  // namespace

Result<std::vector<Contract>> read_contracts(const json::Cursor& list) {
  PTXBENCH_TRY_ASSIGN(const std::vector<json::Cursor> items, list.items());
  if (items.size() > kMostContracts)
    return list.error("has more than " + std::to_string(kMostContracts) + " entries", "contract");
  std::vector<Contract> contracts;
  for (const json::Cursor& item : items) {
    PTXBENCH_TRY_ASSIGN(Contract contract, read_contract(item));
    contracts.push_back(std::move(contract));
  }
  return contracts;
}

void write_contracts(json::Writer& out, const std::vector<Contract>& contracts) {
  out.begin_array();
  for (const Contract& contract : contracts) {
    out.begin_object().field("rule", contract.rule()).field("sentence", contract.sentence());
    if (!contract.op_types().empty()) {
      out.key("op_types").begin_array();
      for (const std::string& name : contract.op_types()) out.string(name);
      out.end_array();
    }
    out.end_object();
  }
  out.end_array();
}

}  // namespace ptxbench
