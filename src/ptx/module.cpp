#include "ptx/module.hpp"

#include "ptx/types.hpp"

#include <array>

namespace ptxbench::ptx {
namespace {

struct TypeRow {
  std::string_view name;
  unsigned bits;
};
// In the order of Type.
constexpr std::array<TypeRow, 20> kTypes{
    {{"pred", 1}, {"b8", 8},     {"b16", 16},  {"b32", 32},    {"b64", 64}, {"b128", 128}, {"u8", 8},
     {"u16", 16}, {"u32", 32},   {"u64", 64},  {"s8", 8},      {"s16", 16}, {"s32", 32},   {"s64", 64},
     {"f16", 16}, {"f16x2", 32}, {"bf16", 16}, {"bf16x2", 32}, {"f32", 32}, {"f64", 64}}};

}  // namespace

unsigned type_bits(Type type) noexcept { return kTypes[static_cast<std::size_t>(type)].bits; }
std::string_view type_name(Type type) noexcept { return kTypes[static_cast<std::size_t>(type)].name; }

std::optional<Type> type_from_directive(std::string_view directive) noexcept {
  for (std::size_t i = 0; i < kTypes.size(); ++i)
    if (directive.substr(1) == kTypes[i].name) return static_cast<Type>(i);
  return std::nullopt;
}

std::optional<Space> space_from_directive(std::string_view directive) noexcept {
  if (directive == ".global") return Space::global;
  if (directive == ".shared") return Space::shared;
  if (directive == ".local") return Space::local;
  if (directive == ".param") return Space::param;
  if (directive == ".const") return Space::constant;
  return std::nullopt;
}

std::string Instruction::text() const {
  std::string text = opcode;
  for (const std::string& modifier : modifiers) {
    text += '.';
    text += modifier;
  }
  return text;
}

const Function* Module::find(std::string_view name) const noexcept {
  for (const Function& function : functions)
    if (function.name == name) return &function;
  return nullptr;
}

std::string Module::source_line(std::int32_t location) const {
  const auto place = [&](const SourceLocation& at, bool with_column) {
    std::string text = at.file >= 0 && static_cast<std::size_t>(at.file) < files.size()
                           ? files[static_cast<std::size_t>(at.file)].path
                           : std::string("?");
    text += ":" + std::to_string(at.line);
    if (with_column && at.column > 0) text += ":" + std::to_string(at.column);
    return text;
  };
  if (location < 0 || static_cast<std::size_t>(location) >= locations.size()) return "";
  const SourceLocation& at = locations[static_cast<std::size_t>(location)];
  std::string text = place(at, true);
  if (at.inlined_at >= 0 && static_cast<std::size_t>(at.inlined_at) < locations.size())
    text += " (inlined at " + place(locations[static_cast<std::size_t>(at.inlined_at)], false) + ")";
  return text;
}

}  // namespace ptxbench::ptx
