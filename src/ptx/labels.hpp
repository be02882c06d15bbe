// Labels of one function, and the tables that are labelled: used before they are defined, so resolved at its
// end.
#pragma once

#include "ptx/lexer.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace ptxbench::ptx {

class Labels {
 public:
  static constexpr std::uint32_t kInTable = 0xffffffff;

  void clear();  // for the next function
  void open_scope();
  void close_scope() { scope_ = parents_[scope_]; }

  // Name of the next instruction, whose index is given. The scope has no such name yet (names.hpp).
  void define(const Token& name, std::uint32_t instruction);
  // `name: .branchtargets a, b;` with what `use` gave for each; `name: .calltargets f, g;` with their
  // indices; `name: .callprototype ...`.
  void define_branch_table(const Token& name, std::vector<std::uint32_t> uses);
  void define_call_table(const Token& name, std::vector<std::uint32_t> functions);
  void define_prototype(const Token& name, std::uint32_t prototype);

  // A name that is to be found later: the `index` of an Operand of kind label until `resolve` replaces it.
  // @p instruction is where that operand stands (kInTable: an entry of a table).
  std::uint32_t use(const Token& name, bool of_branch, std::uint32_t instruction);
  // Replaces what stands in @p body for names used. Fails at the first that no enclosing scope of its use
  // defines.
  void resolve(std::vector<Instruction>& body);

 private:
  struct Definition {
    enum class Kind : std::uint8_t { label, branches, functions, prototype } kind = Kind::label;
    std::uint32_t index = 0;  // instruction; in `tables_`; prototype
  };
  struct Named {
    std::string_view name;
    std::uint32_t scope = 0;
    Definition definition;
  };
  struct Use {
    Token name;
    std::uint32_t scope = 0, instruction = 0;
    bool of_branch = false;
    const Definition* found = nullptr;
  };

  void add(const Token& name, const Definition& definition);
  void find_all();
  [[noreturn]] static void fail_undefined(const Use& use);
  void replace(Operand& operand);

  std::vector<std::uint32_t>
      parents_;  // of each scope, in the order of their beginnings; the first is its own
  std::uint32_t scope_ = 0;
  std::vector<Named> definitions_;
  std::vector<std::vector<std::uint32_t>> tables_;
  std::vector<Use> uses_;
  std::size_t copied_ = 0;  // entries of tables, over all their uses in the module
};

}  // namespace ptxbench::ptx
