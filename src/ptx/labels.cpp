#include "ptx/labels.hpp"

#include <algorithm>
#include <map>
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
  definitions_.push_back({name.text, scope_, definition});
}

void Labels::define(const Token& name, std::uint32_t instruction) {
  add(name, {Definition::Kind::label, instruction});
}

void Labels::define_branch_table(const Token& name, std::vector<std::uint32_t> uses) {
  add(name, {Definition::Kind::branches, static_cast<std::uint32_t>(tables_.size())});
  tables_.push_back(std::move(uses));
}

void Labels::define_call_table(const Token& name, std::vector<std::uint32_t> functions) {
  add(name, {Definition::Kind::functions, static_cast<std::uint32_t>(tables_.size())});
  tables_.push_back(std::move(functions));
}

void Labels::define_prototype(const Token& name, std::uint32_t prototype) {
  add(name, {Definition::Kind::prototype, prototype});
}

std::uint32_t Labels::use(const Token& name, bool of_branch, std::uint32_t instruction) {
  uses_.push_back({name, scope_, instruction, of_branch});
  return static_cast<std::uint32_t>(uses_.size() - 1);
}

// Goes through the scopes in their order, with what each of the open ones defines at hand: no walk outwards
// for each use, whose cost deep nesting would multiply.
void Labels::find_all() {
  const auto by_scope = [](const auto& a, const auto& b) { return a.scope < b.scope; };
  std::stable_sort(definitions_.begin(), definitions_.end(), by_scope);
  std::vector<Use*> uses;
  for (Use& use : uses_) uses.push_back(&use);
  std::stable_sort(uses.begin(), uses.end(), [&](const Use* a, const Use* b) { return by_scope(*a, *b); });

  struct Hidden {
    std::uint32_t scope;
    std::string_view name;
    const Definition* before;
  };
  std::map<std::string_view, const Definition*> visible;
  std::vector<Hidden> hidden;
  std::vector<std::uint32_t> open;
  auto definition = definitions_.begin();
  auto use = uses.begin();
  for (std::uint32_t scope = 0; scope < parents_.size(); ++scope) {
    while (!open.empty() && open.back() != parents_[scope]) {
      for (; !hidden.empty() && hidden.back().scope == open.back(); hidden.pop_back())
        visible[hidden.back().name] = hidden.back().before;
      open.pop_back();
    }
    open.push_back(scope);
    for (; definition != definitions_.end() && definition->scope == scope; ++definition) {
      const Definition*& now = visible[definition->name];
      hidden.push_back({scope, definition->name, now});
      now = &definition->definition;
    }
    for (; use != uses.end() && (*use)->scope == scope; ++use) {
      const auto at = visible.find((*use)->name.text);
      if (at != visible.end()) (*use)->found = at->second;
    }
  }
}

void Labels::fail_undefined(const Use& use) {
  const std::string name(use.name.text);
  if (use.of_branch) fail(use.name.where, "label " + name + " is not defined in this scope");
  fail(use.name.where,
       name + " is not declared: no register, variable, function or label of that name is in scope here");
}

void Labels::replace(Operand& operand) {
  for (Operand& part : operand.parts) replace(part);
  if (operand.kind != Operand::Kind::label) return;
  const Use& use = uses_[operand.index];
  const Definition& found = *use.found;
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
      const Definition& target = *uses_[table[i]].found;
      if (target.kind != Definition::Kind::label)
        fail(uses_[table[i]].name.where, std::string(uses_[table[i]].name.text) + " is a table, not a label");
      part.kind = Operand::Kind::label;
      part.index = target.index;
    }
  }
}

void Labels::resolve(std::vector<Instruction>& body) {
  find_all();
  for (const Use& use : uses_)
    if (use.found == nullptr) fail_undefined(use);
  std::uint32_t done = kInTable;  // uses come in the order of instructions
  for (const Use& use : uses_) {
    if (use.instruction == kInTable || use.instruction == done) continue;
    done = use.instruction;
    for (Operand& operand : body[done].operands) replace(operand);
  }
}

}  // namespace ptxbench::ptx
