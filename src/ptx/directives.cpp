// What may stand at module scope, and parse() itself.
#include "core/guard.hpp"
#include "ptx/parser.hpp"
#include "ptx/types.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace ptxbench::ptx {
namespace {

constexpr std::size_t kMostText = std::size_t{32} << 20;  // what is parsed may take eighty times as much
constexpr std::size_t kMostNotes = 100;

// A quoted string's text. PTX has no escapes: a backslash is one.
std::string unquoted(const Token& token) { return std::string(token.text.substr(1, token.text.size() - 2)); }

}  // namespace

void Parser::note(std::string text) {
  if (noted_.size() < kMostNotes && noted_.insert(text).second) module_.notes.push_back(std::move(text));
}

Module Parser::run() {
  if (!lexer_.at(".version"))
    fail(lexer_.peek().where, "a PTX module begins with .version, not with " + shown(lexer_.peek()));
  version();
  while (!lexer_.at(Token::Kind::end)) module_statement();
  finish();
  return std::move(module_);
}

void Parser::module_statement() {
  const Token first = lexer_.peek();
  if (first.is(".target")) return target();
  if (first.is(".version")) fail(first.where, "a module has one .version, at its beginning");
  if (module_.targets.empty()) fail(first.where, "expected .target behind .version, not " + shown(first));
  if (first.is(".address_size")) return address_size();
  if (first.is(".file")) return file_directive();
  if (first.is(".section")) return section();
  if (first.is(".pragma")) return pragma();
  if (first.is(".alias")) return alias();
  const Linking link = linking();
  const Token next = lexer_.peek();
  if (next.is(".entry") || next.is(".func")) return function(link, next.is(".entry"));
  const auto space = space_from_directive(next.text);
  if (next.kind == Token::Kind::dotted && space && *space != Space::param && *space != Space::local)
    return variables(*space, link, nullptr);
  if (next.is(".loc")) fail(next.where, ".loc belongs in a function");
  if (space) fail(next.where, "a variable of " + std::string(next.text) + " belongs in a function");
  if (next.is(".reg")) fail(next.where, "registers are declared in functions");
  if (next.is(".tex")) fail(next.where, "variables of .tex are not supported: textures are declared .texref");
  if (next.kind == Token::Kind::dotted) fail(next.where, "unknown directive " + shown(next));
  fail(next.where, "expected a directive, not " + shown(next));
}

Parser::Linking Parser::linking() {
  Linking link;
  while (true) {
    if (lexer_.accept(".extern")) {
      link.external = true;
    } else if (lexer_.accept(".visible")) {
      link.visible = true;
    } else if (lexer_.accept(".weak")) {
      link.weak = true;
    } else if (lexer_.accept(".common")) {
      link.common = true;
    } else if (lexer_.accept(".hidden")) {
      note("the linking directive .hidden is ignored");
    } else {
      return link;
    }
  }
}

void Parser::version() {
  lexer_.take();
  const Token number = lexer_.expect(Token::Kind::number, "a version", "behind .version");
  const char* const end = number.text.data() + number.text.size();
  const auto [dot, error] = std::from_chars(number.text.data(), end, module_.version_major);
  const bool has_minor = error == std::errc() && dot != end && *dot == '.' && dot + 1 != end;
  if (has_minor) {
    const auto [rest, minor_error] = std::from_chars(dot + 1, end, module_.version_minor);
    if (minor_error == std::errc() && rest == end) {
      if (module_.version_major > 9 || (module_.version_major == 9 && module_.version_minor > 5))
        note("PTX " + std::string(number.text) + " is newer than this parser, which knows 9.5");
      return;
    }
  }
  fail(number.where, "a version has the form 9.0, not " + shown(number));
}

void Parser::target() {
  lexer_.take();
  do {
    const Token name = lexer_.expect(Token::Kind::identifier, "a target", "behind .target");
    module_.targets.emplace_back(name.text);
  } while (lexer_.accept(","));
}

void Parser::address_size() {
  lexer_.take();
  const Position where = lexer_.peek().where;
  const std::uint64_t bits = parse_integer(lexer_, 32, 64, "an address size");
  if (bits != 32 && bits != 64) fail(where, "an address size is 32 or 64");
  module_.address_bits = static_cast<std::uint32_t>(bits);
}

// .file 1 "path" [, timestamp, size]
void Parser::file_directive() {
  const Token directive = lexer_.take();
  const auto number = static_cast<std::uint32_t>(
      parse_integer(lexer_, 0, std::numeric_limits<std::int32_t>::max(), "a file's number"));
  const Token path = lexer_.expect(Token::Kind::string, "a path in quotes", "behind a file's number");
  while (lexer_.accept(",")) parse_integer(lexer_, 0, ~std::uint64_t{0}, "a file's timestamp or size");
  if (!files_.try_emplace(static_cast<std::int32_t>(number), static_cast<std::int32_t>(module_.files.size()))
           .second)
    fail(directive.where, "file " + std::to_string(number) + " is already given");
  module_.files.push_back({number, unquoted(path)});
}

// Debugging information, and whatever else a compiler puts beside its code.
void Parser::section() {
  const Token directive = lexer_.take();
  while (!lexer_.at("{")) {
    if (lexer_.at(Token::Kind::end)) fail(directive.where, "expected '{' behind the name of a .section");
    lexer_.take();
  }
  lexer_.skip_block();
}

void Parser::pragma() {
  lexer_.take();
  do {
    const Token token = lexer_.expect(Token::Kind::string, "a string", "behind .pragma");
    const std::string text = unquoted(token);
    const std::string word = text.substr(0, text.find(' '));
    if (word != "nounroll" && word != "used_bytes_mask" && word != "enable_smem_spilling" &&
        word != "frequency")
      note("unknown pragma \"" + text + "\" on line " + std::to_string(token.where.line) + " is ignored");
  } while (lexer_.accept(","));
  lexer_.expect(";", "at the end of .pragma");
}

// .attribute(.managed), .attribute(.unified(1, 2)): where memory lies, which changes nothing here.
void Parser::attribute() {
  const Token open = lexer_.expect("(", "behind .attribute");
  int depth = 1;
  while (depth > 0) {
    if (lexer_.at(Token::Kind::end)) fail(open.where, "this '(' is not closed");
    const Token token = lexer_.take();
    if (token.is("(")) ++depth;
    if (token.is(")")) --depth;
  }
}

// .alias name, function;
void Parser::alias() {
  const Token directive = lexer_.take();
  std::uint32_t index[2] = {};
  Token name[2];
  for (int i = 0; i < 2; ++i) {
    if (i > 0) lexer_.expect(",", "between the names of .alias");
    name[i] = lexer_.expect(Token::Kind::identifier, "a function", "behind .alias");
    const Symbol* symbol = names_.find(name[i].text);
    if (symbol == nullptr || symbol->kind != Symbol::Kind::function)
      fail(name[i].where, std::string(name[i].text) + " is not a function of this module");
    index[i] = symbol->index;
  }
  lexer_.expect(";", "at the end of .alias");
  if (!module_.functions[index[0]].declared_only)
    fail(name[0].where, std::string(name[0].text) + " has a body, so it is no alias");
  if (module_.functions[index[1]].declared_only || aliases_.count(index[0]) != 0)
    fail(directive.where, "an alias stands for one function that is defined before it");
  aliases_[index[0]] = index[1];
}

// .loc file line column [, function_name label [+ offset], inlined_at file line column]
void Parser::location() {
  lexer_.take();
  constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
  const auto place = [&] {
    SourceLocation at;
    at.file = static_cast<std::int32_t>(parse_integer(lexer_, 0, kMost, "a file's number"));
    at.line = static_cast<std::uint32_t>(parse_integer(lexer_, 0, kMost, "a line"));
    at.column = static_cast<std::uint32_t>(parse_integer(lexer_, 0, kMost, "a column"));
    return at;
  };
  SourceLocation at = place();
  while (lexer_.accept(",")) {
    const Token word =
        lexer_.expect(Token::Kind::identifier, "function_name or inlined_at", "behind the comma of .loc");
    if (word.is("function_name")) {
      lexer_.expect(Token::Kind::identifier, "a label", "behind function_name");
      if (lexer_.accept("+")) parse_integer(lexer_, 0, kMost, "an offset");
    } else if (word.is("inlined_at")) {
      at.inlined_at = location_index(place());
    } else {
      fail(word.where, "expected function_name or inlined_at behind the comma of .loc, not " + shown(word));
    }
  }
  location_ = location_index(at);
}

std::int32_t Parser::location_index(SourceLocation at) {
  const auto [found, fresh] = locations_.try_emplace({at.file, at.line, at.column, at.inlined_at},
                                                     static_cast<std::int32_t>(module_.locations.size()));
  if (fresh) module_.locations.push_back(at);
  return found->second;
}

void Parser::finish() {
  if (module_.targets.empty()) fail(lexer_.peek().where, "the module has no .target");
  // .file may come behind the .loc that use it.
  for (SourceLocation& at : module_.locations) {
    const auto file = files_.find(at.file);
    if (file == files_.end()) note(".loc names file " + std::to_string(at.file) + ", which no .file gives");
    at.file = file == files_.end() ? -1 : file->second;
  }
  if (aliases_.empty()) return;
  const auto follow = [&](auto& self, Operand& operand) -> void {
    if (operand.kind == Operand::Kind::function)
      if (const auto alias = aliases_.find(operand.index); alias != aliases_.end())
        operand.index = alias->second;
    for (Operand& part : operand.parts) self(self, part);
  };
  for (Function& function : module_.functions)
    for (Instruction& instruction : function.body)
      for (Operand& operand : instruction.operands) follow(follow, operand);
}

Result<Module> parse(std::string_view text, std::string_view name) {
  return guarded([&]() -> Result<Module> {
    if (text.size() > kMostText)
      return make_error(ErrorCode::parse, "the text has more than 32 MiB", {std::string(name), "", 0, 0});
    std::string_view stripped = text;
    while (!stripped.empty() && stripped.back() == '\0') stripped.remove_suffix(1);
    try {
      Parser parser(stripped);
      if (stripped.size() != text.size()) parser.note("a NUL at the end of the text is left out");
      return parser.run();
    } catch (const ParseFailure& failure) {
      return make_error(ErrorCode::parse, failure.message,
                        {std::string(name), "", static_cast<int>(failure.where.line),
                         static_cast<int>(failure.where.column)});
    }
  });
}

}  // namespace ptxbench::ptx
