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
  const Token second = lexer_.peek();
  pair.parts.push_back(simple_operand(false));
  if (pair.parts[1].negated ||
      (pair.parts[1].kind != Operand::Kind::reg && pair.parts[1].kind != Operand::Kind::sink))
    fail(second.where, "a register or _ stands behind |, not " + shown(second));
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
  if (symbol == nullptr || symbol->kind == Symbol::Kind::label) {
    if (symbol == nullptr && !branch && name.text[0] == '%') {
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
    case Symbol::Kind::label:
      break;
  }
  operand.kind = Operand::Kind::variable;
  operand.module_scope = symbol->module_scope;
  operand.index = symbol->index;
  if (lexer_.at("[")) return element(std::move(operand));
  operand.offset = offset();
  return operand;
}

// `a[2]`: the second element behind the first; its place in memory, or for mov its address.
Operand Parser::element(Operand variable) {
  lexer_.take();
  const Position where = lexer_.peek().where;
  const Constant index = parse_constant(lexer_);
  if (index.kind != Constant::Kind::integer) fail(where, "an array's index is an integer");
  lexer_.expect("]", "behind an array's index");
  const Variable& array =
      variable.module_scope ? module_.variables[variable.index] : function_->variables[variable.index];
  const auto offset = static_cast<std::int64_t>(index.bits * (type_bits(array.type) / 8));
  if (opcode_ == "mov") {
    variable.offset = offset;
    return variable;
  }
  Operand address;
  address.kind = Operand::Kind::address;
  address.offset = offset;
  address.parts.push_back(std::move(variable));
  return address;
}

// `+ 4`, `+-4`, `+4*2-1`, or nothing. PTX has no `- 4`.
std::int64_t Parser::offset() {
  if (lexer_.at("-")) fail(lexer_.peek().where, "an offset is added: write +-4 for -4");
  if (!lexer_.accept("+")) return 0;
  const Position where = lexer_.peek().where;
  const Constant value = parse_sum(lexer_);
  if (value.kind != Constant::Kind::integer) fail(where, "an offset is an integer");
  return static_cast<std::int64_t>(value.bits);
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
    if (symbol == nullptr || symbol->kind == Symbol::Kind::label) undeclared(base);
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
  if (kind == Operand::Kind::vector && lexer_.at(close))
    fail(lexer_.peek().where, "a vector has at least one element");
  if (!lexer_.at(close)) {
    do {
      list.parts.push_back(simple_operand(false));
    } while (lexer_.accept(","));
  }
  lexer_.expect(close, "or ',' in a list of operands");
  return list;
}

}  // namespace ptxbench::ptx
