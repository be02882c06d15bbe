// What stands behind the = of a variable: its image, up to the last byte that is given.
#include "ptx/parser.hpp"

#include <bit>

namespace ptxbench::ptx {
namespace {

constexpr std::uint64_t kMostElements = std::uint64_t{1} << 48;
// Beyond eight bytes for each byte of text: gaps in nested lists that are filled with zeros.
constexpr std::uint64_t kMostGaps = std::uint64_t{64} << 20;

bool takes_floats(Type type) noexcept { return type == Type::f32 || type == Type::f64; }
bool takes_patterns(Type type) noexcept {
  return type == Type::b8 || type == Type::b16 || type == Type::b32 || type == Type::b64 ||
         type == Type::b128;
}

}  // namespace

void Parser::initializer(Variable& variable, Shape& shape) {
  if (!lexer_.at("{")) {
    if (!shape.extents.empty())
      fail(lexer_.peek().where, "an array's initialiser is a list in braces, not " + shown(lexer_.peek()));
    initializer_element(variable, 0);
    return;
  }
  if (shape.extents.empty()) fail(lexer_.peek().where, "a single value's initialiser has no braces");
  std::uint64_t next = 0;
  initializer_list(variable, shape, 0, 0, next);
  if (shape.open) {
    const std::uint64_t stride = shape.stride(0);
    shape.extents[0] = stride == 0 ? 0 : (next + stride - 1) / stride;
    // An empty list leaves nothing to own.
    if (shape.extents[0] == 0) fail(variable.where, "an array without a size needs at least one element");
  }
}

// The elements from `first` on; `next` is the one behind the last that was given.
void Parser::initializer_list(Variable& variable, Shape& shape, std::size_t level, std::uint64_t first,
                              std::uint64_t& next) {
  const Token open = lexer_.take();
  const std::uint64_t stride = shape.stride(level);
  if (stride == 0) fail(open.where, "an array with an extent of 0 has no initialiser");
  const bool unbounded = level == 0 && shape.open;
  const std::uint64_t end = unbounded ? kMostElements : first + stride * shape.extents[level];
  next = first;
  if (lexer_.accept("}")) return;
  do {
    const Position where = lexer_.peek().where;
    if (next >= end) fail(where, "the initialiser has more elements than its array");
    if (level + 1 == shape.extents.size()) {
      if (lexer_.at("{")) fail(where, "an initialiser nests deeper than its array");
      initializer_element(variable, next++);
    } else {
      if (!lexer_.at("{"))
        fail(where, "each row of an array has its own list in braces, not " + shown(lexer_.peek()));
      std::uint64_t row_end = 0;
      initializer_list(variable, shape, level + 1, next, row_end);
      next += stride;
    }
  } while (lexer_.accept(","));
  lexer_.expect("}", "at the end of an initialiser");
}

void Parser::store(Variable& variable, std::uint64_t at, std::uint64_t bits, std::size_t bytes,
                   Position where) {
  std::vector<std::uint8_t>& image = variable.init;
  const std::uint64_t end = at + bytes;
  if (end > image.size()) {
    initialized_bytes_ += end - image.size();
    if (initialized_bytes_ > kMostGaps + 8 * std::uint64_t{text_size_})
      fail(where, "initialisers leave gaps of more than 64 MiB");
    image.resize(end);
  }
  for (std::size_t i = 0; i < bytes && i < 8; ++i) image[at + i] = static_cast<std::uint8_t>(bits >> (8 * i));
}

void Parser::initializer_element(Variable& variable, std::uint64_t element) {
  const std::size_t bytes = type_bits(variable.type) / 8;
  const std::uint64_t at = element * bytes;
  const Token first = lexer_.peek();
  if (first.kind == Token::Kind::identifier && !first.is("WARP_SZ"))
    return initializer_symbol(variable, at, 0);
  if (first.kind == Token::Kind::string) fail(first.where, "PTX has no strings as initialisers");
  const Constant value = parse_constant(lexer_);
  if (lexer_.at("(")) {
    // 0xff00(symbol): the byte of its address that the mask keeps.
    lexer_.take();
    const bool one_byte = value.kind == Constant::Kind::integer && value.bits != 0 &&
                          std::countr_zero(value.bits) % 8 == 0 &&
                          value.bits >> std::countr_zero(value.bits) == 0xff;
    if (!one_byte) fail(first.where, "the mask of an address is 0xff, 0xff00, ... up to 0xff00000000000000");
    if (bytes != 1) fail(first.where, "a masked address initialises bytes");
    initializer_symbol(variable, at, value.bits);
    lexer_.expect(")", "behind a masked address");
    return;
  }
  const bool is_float = value.kind != Constant::Kind::integer;
  if (is_float != takes_floats(variable.type) && !takes_patterns(variable.type))
    fail(first.where,
         "an element of type ." + std::string(type_name(variable.type)) +
             (is_float ? " takes an integer" : " takes a number with point or exponent, 0f... or 0d...") +
             ", not " + shown(first));
  // As ptxas does: a double becomes a single where it has no room, and the low bytes count.
  std::uint64_t bits = value.bits;
  if (value.kind == Constant::Kind::f64 && bytes < 8)
    bits = std::bit_cast<std::uint32_t>(static_cast<float>(value.as_double()));
  store(variable, at, bits, bytes, first.where);
}

// symbol, symbol + 4, generic(symbol) + 4
void Parser::initializer_symbol(Variable& variable, std::uint64_t at, std::uint64_t mask) {
  Relocation relocation;
  relocation.offset = at;
  relocation.mask = mask;
  relocation.bytes = mask != 0 ? 1 : type_bits(variable.type) / 8;
  Token name = lexer_.expect(Token::Kind::identifier, "a symbol", "in an initialiser");
  if (name.is("generic") && lexer_.accept("(")) {
    relocation.generic = true;
    name = lexer_.expect(Token::Kind::identifier, "a symbol", "behind generic(");
    relocation.addend = offset();
    lexer_.expect(")", "behind a generic address");
  }
  relocation.addend = static_cast<std::int64_t>(static_cast<std::uint64_t>(relocation.addend) +
                                                static_cast<std::uint64_t>(offset()));
  if (mask == 0 && relocation.bytes != 8 && relocation.bytes != 4)
    fail(name.where, "the address of " + std::string(name.text) +
                         " takes 8 or 4 bytes, an element here has " + std::to_string(relocation.bytes));
  const Symbol* symbol = names_.find(name.text);
  if (symbol == nullptr || (symbol->kind != Symbol::Kind::variable && symbol->kind != Symbol::Kind::function))
    fail(name.where,
         std::string(name.text) + " is not declared: no variable or function of that name stands before");
  relocation.symbol = name.text;
  variable.relocations.push_back(std::move(relocation));
  store(variable, at, 0, variable.relocations.back().bytes, name.where);
}

}  // namespace ptxbench::ptx
