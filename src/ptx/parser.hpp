// The parser of a whole module. One class, for its parts share the tokens, the names and the module; each of
// its parts has a file of its own.
#pragma once

#include "ptx/expressions.hpp"
#include "ptx/labels.hpp"
#include "ptx/lexer.hpp"
#include "ptx/names.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace ptxbench::ptx {

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text), text_size_(text.size()) {}

  // The module, or a ParseFailure.
  Module run();
  void note(std::string text);  // once each

 private:
  struct Linking {
    bool external = false, visible = false, weak = false, common = false;
  };
  // What stands before the names in `.global .align 4 .v2 .f32 a, b[3];`.
  struct Declaration {
    Variable variable;
    bool has_align = false, has_type = false;
    Position where;
  };
  struct Shape {
    std::vector<std::uint64_t> extents;  // the first is 0 where it is left open
    bool open = false;
    std::uint64_t stride(std::size_t level) const;  // elements between neighbours of the extent `level`
  };

  // directives.cpp: what may stand at module scope
  void module_statement();
  void version();
  void target();
  void address_size();
  void file_directive();
  void section();
  void pragma();
  void alias();
  void attribute();
  void location();
  std::int32_t location_index(SourceLocation location);
  Linking linking();
  void finish();

  // variables.cpp
  Declaration declaration(Space space, const Token& directive);
  Shape shape(const Token& name);
  void give_shape(Variable& variable, const Shape& shape, const Token& name);
  void variables(Space space, const Linking& linking, Function* function);
  static void check_range_name(const Token& name);
  std::vector<Token> name_range(const Token& name);
  void add_variable(Variable variable, const Token& name, Function* function);
  void add_module_variable(Variable variable, const Token& name);
  std::vector<Variable> parameter_list(std::vector<Token>& names, bool named);
  std::uint32_t alignment();

  // initializers.cpp
  void initializer(Variable& variable, Shape& shape);
  void initializer_list(Variable& variable, Shape& shape, std::size_t level, std::uint64_t first,
                        std::uint64_t& next);
  void initializer_element(Variable& variable, std::uint64_t element);
  void initializer_symbol(Variable& variable, std::uint64_t at, std::uint64_t mask);
  void store(Variable& variable, std::uint64_t at, std::uint64_t bits, std::size_t bytes, Position where);

  // functions.cpp
  void function(const Linking& linking, bool entry);
  std::uint32_t function_slot(const Token& name, const Function& function,
                              const std::vector<Variable>& parameters);
  void function_directives(Function& function);
  void declare_parameters(Function& function, std::vector<Variable> parameters,
                          const std::vector<Token>& names);
  void body(Function& function, const Token& opening);

  // statements.cpp: what may stand in a body
  void statement(Function& function);
  void directive_statement(Function& function);
  void labelled(Function& function, const Token& name);
  void prototype(Function& function, const Token& name);
  void registers(Function& function);
  void add_registers(Function& function, std::string name, Type type, unsigned vector);
  void instruction(Function& function, const Token& opcode, const std::optional<Guard>& guard);

  // operands.cpp
  Operand operand(bool call_list);
  Operand named_operand(const Token& name);
  Operand simple_operand(bool call_list);
  Operand operand_from(const Token& next, bool call_list);
  Operand register_operand(const Token& name, const Symbol& symbol);
  Operand special_operand(const Token& name);
  Operand constant_operand();
  Operand address();
  Operand element(Operand variable);
  Operand list(std::string_view open, std::string_view close, Operand::Kind kind);
  std::int64_t offset();
  Guard guard();
  [[noreturn]] void undeclared(const Token& name);

  Lexer lexer_;
  std::size_t text_size_;
  Module module_;
  Names names_;
  Labels labels_;
  std::int32_t location_ = -1;
  std::map<std::tuple<std::int32_t, std::uint32_t, std::uint32_t, std::int32_t>, std::int32_t> locations_;
  std::map<std::int32_t, std::int32_t> files_;  // by the number of .file
  std::set<std::string> noted_;
  std::deque<std::string> made_names_;              // of ranges, where tokens are no spans of the text
  std::map<std::uint32_t, std::uint32_t> aliases_;  // function to the function it stands for
  std::uint64_t register_count_ = 0, initialized_bytes_ = 0;
  const Function* function_ = nullptr;  // whose body is read
  std::string_view opcode_;             // of the instruction that is read
  std::uint32_t instruction_ = 0;       // its index
  int operand_depth_ = 0;
};

}  // namespace ptxbench::ptx
