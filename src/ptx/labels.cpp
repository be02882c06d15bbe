#include "ptx/labels.hpp"

#include <string>
#include <utility>

namespace ptxbench::ptx {
namespace {

// Each use of a table copies it: a bound, or a small text could ask for the square of its size.
constexpr std::size_t kMostTableEntries = 1'000'000;

}  // namespace

void Labels::clear() {
  const std::size_t copied = copied_;
  *this = Labels();
  copied_ = copied;
}

void Labels::open_scope() {
  parents_.push_back(scope_);
  scope_ = static_cast<std::uint32_t>(parents_.size() - 1);
}

void Labels::add(const Token& name, const Definition& definition) {
  definitions_.try_emplace({name.text, scope_}, definition);
}

void Labels::define(const Token& name, std::uint32_t instruction) {
  add(name, {Definition::Kind::label, instruction, name.where});
}

void Labels::define_branch_table(const Token& name, std::vector<std::uint32_t> uses) {
  add(name, {Definition::Kind::branches, static_cast<std::uint32_t>(tables_.size()), name.where});
  tables_.push_back(std::move(uses));
}

void Labels::define_call_table(const Token& name, std::vector<std::uint32_t> functions) {
  add(name, {Definition::Kind::functions, static_cast<std::uint32_t>(tables_.size()), name.where});
  tables_.push_back(std::move(functions));
}

void Labels::define_prototype(const Token& name, std::uint32_t prototype) {
  add(name, {Definition::Kind::prototype, prototype, name.where});
}

std::uint32_t Labels::use(const Token& name, bool of_branch, std::uint32_t instruction) {
  uses_.push_back({name, scope_, instruction, of_branch});
  return static_cast<std::uint32_t>(uses_.size() - 1);
}

const Labels::Definition& Labels::find(const Use& use) const {
  for (std::uint32_t scope = use.scope;; scope = parents_[scope]) {
    const auto at = definitions_.find({use.name.text, scope});
    if (at != definitions_.end()) return at->second;
    if (parents_[scope] == scope) break;
  }
  const std::string name(use.name.text);
  if (use.of_branch) fail(use.name.where, "label " + name + " is not defined in this scope");
  fail(use.name.where,
       name + " is not declared: no register, variable, function or label of that name is in scope here");
}

void Labels::replace(Operand& operand) {
  for (Operand& part : operand.parts) replace(part);
  if (operand.kind != Operand::Kind::label) return;
  const Use& use = uses_[operand.index];
  const Definition& found = find(use);
  if (found.kind == Definition::Kind::label) {
    operand.index = found.index;
    return;
  }
  operand.kind = Operand::Kind::list;
  operand.name = use.name.text;
  operand.index = found.kind == Definition::Kind::prototype ? found.index : 0;
  if (found.kind == Definition::Kind::prototype) return;
  const std::vector<std::uint32_t>& table = tables_[found.index];
  copied_ += table.size();
  if (copied_ > kMostTableEntries)
    fail(use.name.where, "a module's branch and call tables are used too often");
  operand.parts.resize(table.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    Operand& part = operand.parts[i];
    if (found.kind == Definition::Kind::functions) {
      part.kind = Operand::Kind::function;
      part.index = table[i];
    } else {
      const Definition& target = find(uses_[table[i]]);
      if (target.kind != Definition::Kind::label)
        fail(uses_[table[i]].name.where, std::string(uses_[table[i]].name.text) + " is a table, not a label");
      part.kind = Operand::Kind::label;
      part.index = target.index;
    }
  }
}

void Labels::resolve(std::vector<Instruction>& body) {
  std::uint32_t done = kInTable;  // uses come in the order of instructions
  for (const Use& use : uses_) {
    if (use.instruction == kInTable || use.instruction == done) continue;
    done = use.instruction;
    for (Operand& operand : body[done].operands) replace(operand);
  }
  for (const auto& [key, definition] : definitions_) {
    if (definition.kind != Definition::Kind::branches) continue;
    for (const std::uint32_t target : tables_[definition.index]) find(uses_[target]);
  }
}

}  // namespace ptxbench::ptx
