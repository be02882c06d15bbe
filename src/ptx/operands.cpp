// Operands and guards.
#include "ptx/parser.hpp"
#include "ptx/types.hpp"

namespace ptxbench::ptx {
namespace {

constexpr int kMostDepth = 8;  // of lists inside lists: the parser recurses on them

bool is_component(std::string_view text) noexcept {
  return text == ".x" || text == ".y" || text == ".z" || text == ".w" || text == ".r" || text == ".g" ||
         text == ".b" || text == ".a";
}
unsigned component_index(std::string_view text) noexcept {
  switch (text[1]) {
    case 'x':
    case 'r':
      return 0;
    case 'y':
    case 'g':
      return 1;
    case 'z':
    case 'b':
      return 2;
    default:
      return 3;
  }
}

}  // namespace

void Parser::undeclared(const Token& name) {
  const std::string text(name.text);
  if (text[0] == '%') fail(name.where, "register " + text + " is not declared");
  fail(name.where, text + " is not declared: no register or variable of that name is in scope here");
}

Guard Parser::guard() {
  Guard guard;
  guard.negated = lexer_.accept("!");
  const Token name = lexer_.expect(Token::Kind::identifier, "a predicate", "behind @");
  const Symbol* symbol = names_.find(name.text);
  if (symbol == nullptr) fail(name.where, "predicate " + std::string(name.text) + " is not declared");
  if (symbol->kind != Symbol::Kind::reg || symbol->vector != 1)
    fail(name.where, std::string(name.text) + " is not a register, so it cannot guard an instruction");
  guard.reg = symbol->index;
  return guard;
}

Operand Parser::operand(bool call_list) {
  Operand first = simple_operand(call_list);
  if (!lexer_.at("|")) return first;
  lexer_.take();
  Operand pair;
  pair.kind = Operand::Kind::pair;
  pair.parts.push_back(std::move(first));
  pair.parts.push_back(simple_operand(false));
  return pair;
}

Operand Parser::simple_operand(bool call_list) {
  const Token next = lexer_.peek();
  if (operand_depth_ == kMostDepth)
    fail(next.where, "operands nest at most " + std::to_string(kMostDepth) + " deep");
  ++operand_depth_;
  Operand operand = operand_from(next, call_list);
  --operand_depth_;
  return operand;
}

Operand Parser::operand_from(const Token& next, bool call_list) {
  if (next.is("{")) return list("{", "}", Operand::Kind::vector);
  if (next.is("[")) return address();
  if (next.is("(") && call_list) return list("(", ")", Operand::Kind::list);
  if (next.kind == Token::Kind::identifier && !next.is("WARP_SZ")) {
    lexer_.take();
    return named_operand(next);
  }
  if (next.is("!")) {
    lexer_.take();
    if (lexer_.at(Token::Kind::identifier) && !lexer_.at("WARP_SZ")) {
      const Token name = lexer_.take();
      const Symbol* symbol = names_.find(name.text);
      if (symbol == nullptr) undeclared(name);
      if (symbol->kind != Symbol::Kind::reg)
        fail(name.where,
             "only a predicate is negated with !, and " + std::string(name.text) + " is no register");
      Operand negated = register_operand(name, *symbol);
      negated.negated = true;
      return negated;
    }
    Operand value = constant_operand();
    value.kind = Operand::Kind::integer;
    value.bits = value.bits == 0;
    return value;
  }
  if (next.is("WARP_SZ") || starts_constant(lexer_)) return constant_operand();
  fail(next.where, "expected an operand of the instruction " + std::string(opcode_) + ", not " + shown(next));
}

Operand Parser::constant_operand() {
  Operand operand;
  const Token first = lexer_.peek();
  const Constant value = parse_constant(lexer_);
  operand.kind = value.kind == Constant::Kind::integer ? Operand::Kind::integer
                 : value.kind == Constant::Kind::f32   ? Operand::Kind::f32
                                                       : Operand::Kind::f64;
  operand.bits = value.bits;
  if (first.is("WARP_SZ") && value.bits == 32 && (lexer_.at(",") || lexer_.at(";") || lexer_.at("}"))) {
    operand.kind = Operand::Kind::special;
    operand.name = first.text;
  }
  return operand;
}

Operand Parser::register_operand(const Token& name, const Symbol& symbol) {
  Operand operand;
  operand.kind = Operand::Kind::reg;
  operand.index = symbol.index;
  if (symbol.vector == 1) {
    if (lexer_.at(Token::Kind::dotted))
      fail(lexer_.peek().where,
           std::string(name.text) + " is no vector, so it has no component " + shown(lexer_.peek()));
    return operand;
  }
  if (lexer_.at(Token::Kind::dotted)) {
    const Token component = lexer_.take();
    if (!is_component(component.text) || component_index(component.text) >= symbol.vector)
      fail(component.where, std::string(name.text) + " has no component " + shown(component));
    operand.index += component_index(component.text);
    return operand;
  }
  operand.kind = Operand::Kind::vector;
  operand.index = 0;
  for (unsigned i = 0; i < symbol.vector; ++i) {
    Operand part;
    part.kind = Operand::Kind::reg;
    part.index = symbol.index + i;
    operand.parts.push_back(std::move(part));
  }
  return operand;
}

Operand Parser::special_operand(const Token& name) {
  Operand operand;
  operand.kind = Operand::Kind::special;
  operand.name = name.text;
  if (!lexer_.at(Token::Kind::dotted)) return operand;
  const Token component = lexer_.take();
  if (!is_special_vector(name.text) || !is_component(component.text) || component.text > ".z" ||
      component.text < ".w")
    fail(component.where,
         "the special register " + std::string(name.text) + " has no component " + shown(component));
  operand.name += component.text;
  return operand;
}

Operand Parser::named_operand(const Token& name) {
  Operand operand;
  if (name.is("_")) return operand;  // Kind::sink
  const bool branch = opcode_ == "bra";
  const Symbol* symbol = branch ? nullptr : names_.find(name.text);
  if (symbol == nullptr) {
    if (!branch && name.text[0] == '%') {
      if (is_special_register(name.text)) return special_operand(name);
      undeclared(name);
    }
    operand.kind = Operand::Kind::label;
    operand.index = labels_.use(name, branch, instruction_);
    return operand;
  }
  switch (symbol->kind) {
    case Symbol::Kind::reg:
      return register_operand(name, *symbol);
    case Symbol::Kind::function:
      operand.kind = Operand::Kind::function;
      operand.index = symbol->index;
      return operand;
    case Symbol::Kind::variable:
      break;
  }
  if (lexer_.at("["))
    fail(lexer_.peek().where, "an element of " + std::string(name.text) + " is addressed in bytes, as [" +
                                  std::string(name.text) + "+4]");
  operand.kind = Operand::Kind::variable;
  operand.module_scope = symbol->module_scope;
  operand.index = symbol->index;
  operand.offset = offset();
  return operand;
}

// `+ 4`, `-8`, `+-4`, several of them, or nothing.
std::int64_t Parser::offset() {
  std::uint64_t sum = 0;
  while (lexer_.at("+") || lexer_.at("-")) {
    const Token sign = lexer_.take();
    const Position where = lexer_.peek().where;
    const Constant value = parse_term(lexer_);
    if (value.kind != Constant::Kind::integer) fail(where, "an offset is an integer");
    sum += sign.is("+") ? value.bits : 0 - value.bits;
  }
  return static_cast<std::int64_t>(sum);
}

// [base], [base + offset], [map, {c0, c1}], [map, {c0}, {o0}]
Operand Parser::address() {
  lexer_.take();
  Operand address;
  address.kind = Operand::Kind::address;
  const Token base = lexer_.peek();
  Operand from;
  if (base.kind == Token::Kind::identifier && !base.is("WARP_SZ")) {
    lexer_.take();
    const Symbol* symbol = names_.find(base.text);
    if (symbol == nullptr) undeclared(base);
    if (symbol->kind == Symbol::Kind::function)
      fail(base.where, "the function " + std::string(base.text) + " is no place in memory");
    if (symbol->kind == Symbol::Kind::reg) {
      from = register_operand(base, *symbol);
      if (from.kind != Operand::Kind::reg)
        fail(base.where, "the vector " + std::string(base.text) + " is no address");
    } else {
      from.kind = Operand::Kind::variable;
      from.module_scope = symbol->module_scope;
      from.index = symbol->index;
    }
    address.offset = offset();
  } else {
    if (!starts_constant(lexer_)) fail(base.where, "expected an address behind '[', not " + shown(base));
    from = constant_operand();
    if (from.kind != Operand::Kind::integer) fail(base.where, "an address is an integer");
  }
  address.parts.push_back(std::move(from));
  if (!lexer_.at(",")) {
    lexer_.expect("]", "at the end of an address");
    return address;
  }
  Operand tensor;
  tensor.kind = Operand::Kind::tensor;
  tensor.parts.push_back(std::move(address));
  while (lexer_.accept(",")) tensor.parts.push_back(simple_operand(false));
  lexer_.expect("]", "at the end of a tensor's coordinates");
  return tensor;
}

Operand Parser::list(std::string_view open, std::string_view close, Operand::Kind kind) {
  lexer_.expect(open, "before a list");
  Operand list;
  list.kind = kind;
  if (!lexer_.at(close)) {
    do {
      list.parts.push_back(simple_operand(false));
    } while (lexer_.accept(","));
  }
  lexer_.expect(close, "or ',' in a list of operands");
  return list;
}

}  // namespace ptxbench::ptx
