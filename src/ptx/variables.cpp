// Variables of every state space, and formal parameters.
#include "ptx/parser.hpp"
#include "ptx/types.hpp"

#include <bit>

namespace ptxbench::ptx {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1}
                                     << 48;  // of one variable, as declared: none of it is allocated
constexpr std::size_t kMostExtents = 16;
constexpr std::uint64_t kMostNames = 10'000;  // that ranges of variables and labels make

std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

}  // namespace

std::uint32_t Parser::alignment() {
  const Position where = lexer_.peek().where;
  const auto align = static_cast<std::uint32_t>(parse_integer(lexer_, 1, 1u << 30, "an alignment"));
  if (!std::has_single_bit(align))
    fail(where, "an alignment is a power of two, not " + std::to_string(align));
  return align;
}

// Behind the state space: alignment, vector, type and .ptr in whatever order, up to the name.
Parser::Declaration Parser::declaration(Space space, const Token& directive) {
  Declaration d;
  d.where = directive.where;
  d.variable.space = space;
  while (lexer_.at(Token::Kind::dotted)) {
    const Token token = lexer_.take();
    if (token.is(".align")) {
      // Behind .ptr it speaks of what the pointer points to.
      (d.variable.pointee_space ? d.variable.pointee_align : d.variable.align) = alignment();
      if (!d.variable.pointee_space) d.has_align = true;
    } else if (token.is(".v2") || token.is(".v4") || token.is(".v8")) {
      d.variable.vector = static_cast<std::uint32_t>(token.text[2] - '0');
    } else if (token.is(".ptr")) {
      if (space != Space::param) fail(token.where, ".ptr is an attribute of parameters only");
      d.variable.pointee_space = Space::generic;
    } else if (const auto pointee = space_from_directive(token.text); pointee && d.variable.pointee_space) {
      d.variable.pointee_space = *pointee;
    } else if (token.is(".attribute")) {
      attribute();
    } else if (const auto type = type_from_directive(token.text)) {
      if (d.has_type) fail(token.where, "this declaration has a type already");
      d.variable.type = *type;
      d.has_type = true;
    } else if (token.is(".texref") || token.is(".samplerref") || token.is(".surfref")) {
      fail(token.where, "opaque variables of type " + std::string(token.text) + " are not supported");
    } else {
      fail(token.where, "unknown type or attribute " + shown(token) + " in a declaration of " +
                            std::string(directive.text));
    }
  }
  if (!d.has_type)
    fail(lexer_.peek().where, "expected a type in a declaration of " + std::string(directive.text) +
                                  ", not " + shown(lexer_.peek()));
  if (d.variable.type == Type::pred) fail(d.where, "only registers have the type .pred");
  if (!d.has_align) d.variable.align = type_bits(d.variable.type) / 8 * d.variable.vector;
  return d;
}

std::uint64_t Parser::Shape::stride(std::size_t level) const {
  std::uint64_t elements = 1;
  for (std::size_t i = level + 1; i < extents.size(); ++i) elements *= extents[i];
  return elements;
}

// `[4][2]`, `[]` or nothing.
Parser::Shape Parser::shape(const Token& name) {
  Shape shape;
  while (lexer_.at("[")) {
    const Token open = lexer_.take();
    if (shape.extents.size() == kMostExtents)
      fail(open.where, "an array has at most " + std::to_string(kMostExtents) + " extents");
    if (lexer_.accept("]")) {
      if (!shape.extents.empty()) fail(open.where, "only the first extent of an array may be left open");
      shape.open = true;
      shape.extents.push_back(0);
      continue;
    }
    const Position where = lexer_.peek().where;
    const Constant extent = parse_constant(lexer_);
    if (extent.kind != Constant::Kind::integer || extent.bits > kMostBytes)
      fail(where, "the extent of array " + quoted(name.text) + " is an integer from 0 to 2^48");
    lexer_.expect("]", "behind an array's extent");
    shape.extents.push_back(extent.bits);
  }
  return shape;
}

// The vector's components are one more extent, for sizes as for initialisers.
void Parser::give_shape(Variable& variable, const Shape& shape, const Token& name) {
  variable.unsized = shape.open && shape.extents[0] == 0;
  std::uint64_t bytes = type_bits(variable.type) / 8, at_least = bytes;
  for (const std::uint64_t extent : shape.extents) {
    const std::uint64_t rows = extent == 0 ? 1 : extent;  // of none, the rows still have a size
    if (at_least > kMostBytes / rows)
      fail(name.where, "the variable " + quoted(name.text) + " is larger than 2^48 bytes");
    at_least *= rows;
    bytes *= extent;
  }
  variable.bytes = bytes;
}

void Parser::variables(Space space, const Linking& linking, Function* function) {
  const Token directive = lexer_.take();
  const Declaration d = declaration(space, directive);
  do {
    const Token name = lexer_.expect(Token::Kind::identifier, "a name",
                                     "in a declaration of " + std::string(directive.text));
    const std::vector<Token> names = name_range(name);
    Variable variable = d.variable;
    variable.where = name.where;
    variable.external = linking.external;
    variable.visible = linking.visible;
    variable.weak = linking.weak;
    variable.common = linking.common;
    Shape extents = shape(name);
    if (variable.vector > 1) extents.extents.push_back(variable.vector);
    give_shape(variable, extents, name);  // also that initialisers need not look for overflow
    if (lexer_.at("=")) {
      const Token equals = lexer_.take();
      if (space != Space::global && space != Space::constant)
        fail(equals.where, "a variable of " + std::string(directive.text) + " has no initialiser");
      initializer(variable, extents);
      give_shape(variable, extents, name);
    } else if (variable.unsized && !linking.external && space != Space::param) {
      fail(name.where, "the array " + quoted(name.text) +
                           " has no size: only .extern arrays and initialised ones may leave it open");
    }
    if (names.size() > 1 && !variable.init.empty())
      fail(name.where, "a range of variables has no initialiser");
    for (const Token& each : names) {
      variable.name = each.text;
      add_variable(variable, each, function);
    }
  } while (lexer_.accept(","));
  lexer_.expect(";", "at the end of a declaration of " + std::string(directive.text));
}

// Each name of a range is a copy.
void Parser::check_range_name(const Token& name) {
  constexpr std::size_t kLongest = 64;
  if (name.text.size() > kLongest)
    fail(name.where, "the name of a range has at most " + std::to_string(kLongest) + " characters, not " +
                         std::to_string(name.text.size()));
}

// `name<4>`: name0 to name3. Registers do without these tokens (names.hpp): they are many.
std::vector<Token> Parser::name_range(const Token& name) {
  if (!lexer_.accept("<")) return {name};
  const auto count = parse_integer(lexer_, 1, kMostNames, "the number of names in a range");
  lexer_.expect(">", "behind the number of names");
  check_range_name(name);
  if (made_names_.size() + count > kMostNames)
    fail(name.where,
         "a module has at most " + std::to_string(kMostNames) + " names in ranges of variables and labels");
  std::vector<Token> names;
  for (std::uint64_t i = 0; i < count; ++i) {
    made_names_.push_back(std::string(name.text) + std::to_string(i));
    names.push_back({Token::Kind::identifier, made_names_.back(), name.where});
  }
  return names;
}

void Parser::add_variable(Variable variable, const Token& name, Function* function) {
  if (function == nullptr) return add_module_variable(std::move(variable), name);
  const Symbol symbol{Symbol::Kind::variable, false, 1,
                      static_cast<std::uint32_t>(function->variables.size()), name.where};
  if (const Symbol* known = names_.declare(name.text, symbol))
    fail(name.where, quoted(name.text) + " is already declared in this scope, on line " +
                         std::to_string(known->where.line));
  function->variables.push_back(std::move(variable));
}

void Parser::add_module_variable(Variable variable, const Token& name) {
  const Symbol symbol{Symbol::Kind::variable, true, 1, static_cast<std::uint32_t>(module_.variables.size()),
                      name.where};
  const Symbol* known = names_.declare(name.text, symbol);
  if (known == nullptr) {
    module_.variables.push_back(std::move(variable));
    return;
  }
  if (known->kind == Symbol::Kind::variable) {
    // `.extern` says that the definition is elsewhere, also in this module, and may be said again.
    Variable& before = module_.variables[known->index];
    if ((before.external || variable.external) && before.space == variable.space) {
      if (before.external) before = std::move(variable);
      return;
    }
  }
  fail(name.where, quoted(name.text) + " is already declared in this module, on line " +
                       std::to_string(known->where.line));
}

// `(.param .b32 a, .param .align 8 .b8 b[16])`; empty where there is no parenthesis.
std::vector<Variable> Parser::parameter_list(std::vector<Token>& names, bool named) {
  std::vector<Variable> parameters;
  if (!lexer_.accept("(")) return parameters;
  if (lexer_.accept(")")) return parameters;
  do {
    if (lexer_.at(".hidden")) {
      lexer_.take();
      note("the attribute .hidden of a parameter is ignored");
    }
    const Token directive = lexer_.expect(Token::Kind::dotted, ".param", "in a list of parameters");
    if (directive.is(".reg"))
      fail(directive.where, "formal parameters in registers are not supported: declare them .param");
    if (!directive.is(".param"))
      fail(directive.where, "expected .param in a list of parameters, not " + shown(directive));
    Declaration d = declaration(Space::param, directive);
    const Token name = lexer_.expect(Token::Kind::identifier, "a name", "in a list of parameters");
    if (named && name.is("_")) fail(name.where, "a parameter of a function has a name");
    Shape extents = shape(name);
    if (d.variable.vector > 1) extents.extents.push_back(d.variable.vector);
    give_shape(d.variable, extents, name);
    d.variable.name = name.text;
    d.variable.where = name.where;
    parameters.push_back(std::move(d.variable));
    names.push_back(name);
  } while (lexer_.accept(","));
  lexer_.expect(")", "at the end of a list of parameters");
  return parameters;
}

}  // namespace ptxbench::ptx
