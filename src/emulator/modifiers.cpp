// Modifiers of an instruction as a set, and the types that they spell.
#include "emulator/decode.hpp"

#include <algorithm>

namespace ptxbench::emulator {
namespace {

struct TyInfo {
  std::string_view name;
  unsigned bits;
};
constexpr TyInfo kTypes[] = {{"", 0},      {"pred", 1},  {"b8", 8},      {"b16", 16},   {"b32", 32},
                             {"b64", 64},  {"b128", 128}, {"u8", 8},      {"u16", 16},   {"u32", 32},
                             {"u64", 64},  {"s8", 8},    {"s16", 16},    {"s32", 32},   {"s64", 64},
                             {"f16", 16},  {"f16x2", 32}, {"bf16", 16},   {"bf16x2", 32}, {"tf32", 32},
                             {"f32", 32},  {"f32x2", 64}, {"f64", 64},    {"e4m3", 8},   {"e5m2", 8},
                             {"e4m3x2", 16}, {"e5m2x2", 16}};
static_assert(std::size(kTypes) == static_cast<std::size_t>(Ty::e5m2x2) + 1);

}  // namespace

unsigned ty_bits(Ty type) noexcept { return kTypes[static_cast<std::size_t>(type)].bits; }

std::optional<Ty> ty_named(std::string_view name) noexcept {
  for (std::size_t i = 1; i < std::size(kTypes); ++i)
    if (kTypes[i].name == name) return static_cast<Ty>(i);
  return std::nullopt;
}

std::string_view ty_name(Ty type) noexcept { return kTypes[static_cast<std::size_t>(type)].name; }

Modifiers::Modifiers(const ptx::Instruction& instruction)
    : rest_(instruction.modifiers.begin(), instruction.modifiers.end()) {}

bool Modifiers::take(std::string_view name) {
  const auto at = std::find(rest_.begin(), rest_.end(), name);
  if (at == rest_.end()) return false;
  rest_.erase(at);
  return true;
}

int Modifiers::take_one(std::initializer_list<std::string_view> names) {
  int index = 0;
  for (const std::string_view name : names) {
    if (take(name)) return index;
    ++index;
  }
  return -1;
}

std::optional<std::string_view> Modifiers::take_prefix(std::string_view prefix) {
  for (auto at = rest_.begin(); at != rest_.end(); ++at) {
    if (at->substr(0, prefix.size()) != prefix) continue;
    const std::string_view found = *at;
    rest_.erase(at);
    return found;
  }
  return std::nullopt;
}

Result<Ty> Modifiers::type() {
  for (auto at = rest_.rbegin(); at != rest_.rend(); ++at) {
    if (const std::optional<Ty> type = ty_named(*at)) {
      rest_.erase(std::next(at).base());
      return *type;
    }
  }
  return make_error(ErrorCode::parse, "a type modifier is missing");
}

std::vector<Ty> Modifiers::types() {
  std::vector<Ty> found;
  for (auto at = rest_.begin(); at != rest_.end();) {
    if (const std::optional<Ty> type = ty_named(*at)) {
      found.push_back(*type);
      at = rest_.erase(at);
    } else {
      ++at;
    }
  }
  return found;
}

Result<void> Modifiers::finish(const Decoder& decoder) const {
  if (rest_.empty()) return {};
  std::string what = "unknown modifier";
  for (const std::string_view m : rest_) what += " ." + std::string(m);
  return decoder.unsupported(what);
}

}  // namespace ptxbench::emulator
