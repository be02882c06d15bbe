// What may stand in a function's body: labels, declarations, instructions.
#include "ptx/parser.hpp"
#include "ptx/types.hpp"

namespace ptxbench::ptx {
namespace {

constexpr std::uint64_t kMostRegisters = 1'000'000;        // of a function
constexpr std::uint64_t kMostModuleRegisters = 2'000'000;  // of a module: each takes some 40 bytes here

}  // namespace

void Parser::statement(Function& function) {
  const Token first = lexer_.peek();
  if (first.kind == Token::Kind::dotted) return directive_statement(function);
  std::optional<Guard> guard;
  if (first.is("@")) {
    lexer_.take();
    guard = this->guard();
    if (lexer_.at("{"))
      fail(lexer_.peek().where, "a guard stands before one instruction, not before a block");
  }
  const Token name =
      lexer_.expect(Token::Kind::identifier, "an instruction", guard ? "behind a guard" : "or a label");
  if (!guard && lexer_.at(":")) {
    lexer_.take();
    return labelled(function, name);
  }
  instruction(function, name, guard);
}

void Parser::directive_statement(Function& function) {
  const Token first = lexer_.peek();
  if (first.is(".reg")) return registers(function);
  if (first.is(".loc")) return location();
  if (first.is(".pragma")) return pragma();
  if (first.is(".file")) return file_directive();
  if (first.is(".section")) return section();
  if (const auto space = space_from_directive(first.text)) return variables(*space, {}, &function);
  if (first.is(".extern")) fail(first.where, "what is .extern is declared outside of functions");
  if (first.is(".branchtargets") || first.is(".calltargets") || first.is(".callprototype"))
    fail(first.where, std::string(first.text) + " stands behind a label");
  fail(first.where, "unknown directive " + shown(first) + " in function " + function.name);
}

void Parser::labelled(Function& function, const Token& name) {
  const Symbol symbol{Symbol::Kind::label, false, 1, 0, name.where};
  if (const Symbol* known = names_.declare(name.text, symbol))
    fail(name.where, "label " + std::string(name.text) + " is already declared in this scope, on line " +
                         std::to_string(known->where.line));
  if (lexer_.accept(".branchtargets")) {
    std::vector<std::uint32_t> uses;
    do {
      const Token target = lexer_.expect(Token::Kind::identifier, "a label", "in .branchtargets");
      for (const Token& each : name_range(target)) uses.push_back(labels_.use(each, true, Labels::kInTable));
    } while (lexer_.accept(","));
    lexer_.expect(";", "at the end of .branchtargets");
    labels_.define_branch_table(name, std::move(uses));
  } else if (lexer_.accept(".calltargets")) {
    std::vector<std::uint32_t> functions;
    do {
      const Token target = lexer_.expect(Token::Kind::identifier, "a function", "in .calltargets");
      const Symbol* symbol = names_.find(target.text);
      if (symbol == nullptr || symbol->kind != Symbol::Kind::function)
        fail(target.where, std::string(target.text) + " is not a function of this module");
      functions.push_back(symbol->index);
    } while (lexer_.accept(","));
    lexer_.expect(";", "at the end of .calltargets");
    labels_.define_call_table(name, std::move(functions));
  } else if (lexer_.accept(".callprototype")) {
    prototype(function, name);
  } else {
    const auto index = static_cast<std::uint32_t>(function.body.size());
    labels_.define(name, index);
    function.labels.emplace_back(name.text, index);
  }
}

// name: .callprototype (.param .b32 _) _ (.param .b64 _, ...) .noreturn;
void Parser::prototype(Function& function, const Token& name) {
  Prototype prototype;
  prototype.name = name.text;
  std::vector<Token> names;
  prototype.returns = parameter_list(names, false);
  lexer_.expect("_", "for the function in .callprototype");
  prototype.parameters = parameter_list(names, false);
  Function directives;
  directives.name = prototype.name;
  function_directives(directives);
  prototype.noreturn = directives.noreturn;
  lexer_.expect(";", "at the end of .callprototype");
  labels_.define_prototype(name, static_cast<std::uint32_t>(function.prototypes.size()));
  function.prototypes.push_back(std::move(prototype));
}

// .reg .b32 %r<100>, x;
void Parser::registers(Function& function) {
  const Token directive = lexer_.take();
  std::optional<Type> type;
  unsigned vector = 1;
  while (lexer_.at(Token::Kind::dotted)) {
    const Token token = lexer_.take();
    if (token.is(".v2") || token.is(".v4")) {
      vector = static_cast<unsigned>(token.text[2] - '0');
    } else if (token.is(".align")) {
      alignment();
    } else if (const auto named = type_from_directive(token.text)) {
      type = named;
    } else {
      fail(token.where, "unknown type " + shown(token) + " in a declaration of .reg");
    }
  }
  if (!type) fail(lexer_.peek().where, "expected a type behind .reg, not " + shown(lexer_.peek()));
  do {
    const Token name = lexer_.expect(Token::Kind::identifier, "a name", "in a declaration of .reg");
    if (name.is("_")) fail(name.where, "_ is no name of a register");
    std::uint32_t count = 1;
    const bool range = lexer_.accept("<");
    if (range) {
      count = static_cast<std::uint32_t>(parse_integer(lexer_, 0, 0xffffffff, "the number of registers"));
      lexer_.expect(">", "behind the number of registers");
      check_range_name(name);
    }
    const std::uint64_t added = std::uint64_t{count} * vector;
    register_count_ += added;
    if (function.registers.size() + added > kMostRegisters || register_count_ > kMostModuleRegisters)
      fail(name.where, "a function has at most 1000000 registers, a module 2000000");
    const Symbol symbol{Symbol::Kind::reg, false, static_cast<std::uint8_t>(vector),
                        static_cast<std::uint32_t>(function.registers.size()), name.where};
    const Symbol* known =
        range ? names_.declare_range(name.text, count, symbol) : names_.declare(name.text, symbol);
    if (known != nullptr)
      fail(name.where, std::string(name.text) + (range ? "<" + std::to_string(count) + ">" : "") +
                           " is already declared in this scope, on line " +
                           std::to_string(known->where.line));
    for (std::uint32_t i = 0; i < count; ++i)
      add_registers(function, range ? std::string(name.text) + std::to_string(i) : std::string(name.text),
                    *type, vector);
  } while (lexer_.accept(","));
  lexer_.expect(";", "at the end of a declaration of " + std::string(directive.text));
}

// A vector's components are registers one behind the other.
void Parser::add_registers(Function& function, std::string name, Type type, unsigned vector) {
  if (vector == 1) {
    function.registers.push_back({std::move(name), type});
    return;
  }
  for (unsigned i = 0; i < vector; ++i)
    function.registers.push_back({name + "." + std::string("xyzw").substr(i, 1), type});
}

void Parser::instruction(Function& function, const Token& opcode, const std::optional<Guard>& guard) {
  Instruction made;
  made.opcode = opcode.text;
  made.guard = guard;
  made.where = opcode.where;
  made.location = location_;
  while (lexer_.at(Token::Kind::dotted)) made.modifiers.emplace_back(lexer_.take().text.substr(1));
  opcode_ = opcode.text;
  instruction_ = static_cast<std::uint32_t>(function.body.size());
  const bool call = opcode_ == "call";
  if (!lexer_.at(";")) {
    do {
      made.operands.push_back(operand(call));
    } while (lexer_.accept(","));
  }
  if (!lexer_.at(";"))
    fail(lexer_.peek().where,
         "expected ',' or ';' in the instruction " + made.text() + ", not " + shown(lexer_.peek()));
  lexer_.take();
  if (call) {
    // `call f;` is `call f, ();`.
    const std::size_t callee = !made.operands.empty() && made.operands[0].kind == Operand::Kind::list ? 1 : 0;
    if (made.operands.size() <= callee) fail(opcode.where, "a call names a function or a register");
    if (made.operands.size() == callee + 1 || made.operands[callee + 1].kind != Operand::Kind::list) {
      Operand none;
      none.kind = Operand::Kind::list;
      made.operands.insert(made.operands.begin() + static_cast<std::ptrdiff_t>(callee) + 1, std::move(none));
    }
  }
  function.body.push_back(std::move(made));
}

}  // namespace ptxbench::ptx
