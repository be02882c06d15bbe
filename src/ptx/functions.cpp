// .entry and .func: header, launch directives, body.
#include "ptx/parser.hpp"

namespace ptxbench::ptx {
namespace {

constexpr std::size_t kMostScopes = 200;  // blocks inside blocks

}  // namespace

void Parser::function(const Linking& link, bool entry) {
  lexer_.take();
  Function function;
  function.entry = entry;
  function.visible = link.visible;
  function.weak = link.weak;
  std::vector<Token> return_names, names;
  std::vector<Variable> returns;
  while (lexer_.accept(".attribute")) attribute();
  if (!entry) returns = parameter_list(return_names, true);
  const Token name = lexer_.expect(Token::Kind::identifier, "a name", entry ? "behind .entry" : "of a .func");
  function.name = name.text;
  function.where = name.where;
  std::vector<Variable> parameters = parameter_list(names, true);
  function.parameter_count = static_cast<std::uint32_t>(parameters.size());
  function.return_count = static_cast<std::uint32_t>(returns.size());
  for (Variable& variable : returns) parameters.push_back(std::move(variable));
  names.insert(names.end(), return_names.begin(), return_names.end());
  function_directives(function);
  function.declared_only = !lexer_.at("{");
  const std::uint32_t slot = function_slot(name, function, parameters);
  if (function.declared_only) {
    lexer_.expect(";", "or '{' behind the header of function " + function.name);
    function.variables = std::move(parameters);
    // A declaration behind the definition adds nothing.
    if (module_.functions[slot].declared_only) module_.functions[slot] = std::move(function);
    return;
  }
  names_.open_scope();
  labels_.clear();
  labels_.open_scope();
  location_ = -1;
  declare_parameters(function, std::move(parameters), names);
  function_ = &function;
  body(function, lexer_.take());
  function_ = nullptr;
  labels_.resolve(function.body);
  names_.close_scope();
  location_ = -1;
  module_.functions[slot] = std::move(function);
}

// The index of a function of that name, declared here or before.
std::uint32_t Parser::function_slot(const Token& name, const Function& function,
                                    const std::vector<Variable>& parameters) {
  const Symbol symbol{Symbol::Kind::function, true, 1, static_cast<std::uint32_t>(module_.functions.size()),
                      name.where};
  const Symbol* known = names_.declare(name.text, symbol);
  if (known == nullptr) {
    Function declared;
    declared.name = function.name;
    declared.entry = function.entry;
    declared.where = function.where;
    declared.declared_only = true;
    declared.parameter_count = function.parameter_count;
    declared.return_count = function.return_count;
    declared.variables = parameters;  // what a second header is held against
    module_.functions.push_back(std::move(declared));
    return symbol.index;
  }
  const std::string line = std::to_string(known->where.line);
  if (known->kind != Symbol::Kind::function)
    fail(name.where, function.name + " is already declared as a variable, on line " + line);
  const Function& before = module_.functions[known->index];
  if (before.entry != function.entry)
    fail(name.where,
         function.name + " is an .entry here and a .func there, or the reverse: see line " + line);
  bool same =
      before.parameter_count == function.parameter_count && before.return_count == function.return_count;
  for (std::size_t i = 0; same && i < parameters.size(); ++i)
    same =
        before.variables[i].bytes == parameters[i].bytes && before.variables[i].align == parameters[i].align;
  if (!same)
    fail(name.where, "function " + function.name + " has other parameters or returns than on line " + line);
  if (!before.declared_only && !function.declared_only)
    fail(name.where,
         "function " + function.name + " is already defined, on line " + std::to_string(before.where.line));
  return known->index;
}

void Parser::declare_parameters(Function& function, std::vector<Variable> parameters,
                                const std::vector<Token>& names) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Token& name = names[i];
    const Symbol symbol{Symbol::Kind::variable, false, 1, static_cast<std::uint32_t>(i), name.where};
    if (names_.declare(name.text, symbol) != nullptr)
      fail(name.where, "two parameters of " + function.name + " are named " + std::string(name.text));
  }
  function.variables = std::move(parameters);
}

void Parser::function_directives(Function& function) {
  const auto extents = [&](std::string_view what) {
    std::array<std::uint32_t, 3> all{1, 1, 1};
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] = static_cast<std::uint32_t>(parse_integer(lexer_, 1, 0x7fffffff, what));
      if (i + 1 == all.size() || !lexer_.accept(",")) break;
    }
    return all;
  };
  const auto number = [&](std::string_view what) {
    return static_cast<std::uint32_t>(parse_integer(lexer_, 0, 0x7fffffff, what));
  };
  while (lexer_.at(Token::Kind::dotted)) {
    if (lexer_.at(".pragma")) {
      pragma();
      continue;
    }
    const Token token = lexer_.take();
    if (token.is(".maxntid")) {
      function.max_block = extents(".maxntid");
    } else if (token.is(".reqntid")) {
      function.required_block = extents(".reqntid");
    } else if (token.is(".reqnctapercluster")) {
      function.required_cluster = extents(".reqnctapercluster");
    } else if (token.is(".minnctapersm")) {
      function.min_ctas_per_sm = number(".minnctapersm");
    } else if (token.is(".maxnreg")) {
      function.max_registers = number(".maxnreg");
    } else if (token.is(".maxclusterrank")) {
      function.max_cluster_rank = number(".maxclusterrank");
    } else if (token.is(".explicitcluster")) {
      function.explicit_cluster = true;
    } else if (token.is(".blocksareclusters")) {
      function.blocks_are_clusters = true;
    } else if (token.is(".noreturn")) {
      function.noreturn = true;
    } else if (token.is(".maxnctapersm") || token.is(".abi_preserve") || token.is(".abi_preserve_control") ||
               token.is(".language")) {
      number(token.text);
      note("the directive " + std::string(token.text) + " is ignored");
    } else if (token.is(".attribute")) {
      attribute();
    } else {
      fail(token.where, "unknown directive " + shown(token) + " of function " + function.name);
    }
  }
}

void Parser::body(Function& function, const Token& opening) {
  std::vector<Token> open{opening};
  while (true) {
    if (lexer_.at(Token::Kind::end))
      fail(open.back().where, "this '{' is not closed: the text ends in function " + function.name);
    if (lexer_.at("{")) {
      if (open.size() == kMostScopes)
        fail(lexer_.peek().where, "blocks nest at most " + std::to_string(kMostScopes) + " deep");
      open.push_back(lexer_.take());
      names_.open_scope();
      labels_.open_scope();
    } else if (lexer_.at("}")) {
      lexer_.take();
      open.pop_back();
      if (open.empty()) return;
      labels_.close_scope();
      names_.close_scope();
    } else {
      statement(function);
    }
  }
}

}  // namespace ptxbench::ptx
