#include "sass/trace_values.hpp"

#include "sass/param_reads.hpp"

#include <algorithm>
#include <string_view>

namespace ptxbench::sass {
namespace {

constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 18;  // of one question
constexpr std::size_t kDeepest = 64;

constexpr TracedValue number(std::uint32_t value) { return {false, value}; }

// a + b, of which one may be an address.
std::optional<TracedValue> sum(const TracedValue& a, const TracedValue& b) {
  if (a.in_parameters && b.in_parameters) return std::nullopt;
  return TracedValue{a.in_parameters || b.in_parameters, a.value + b.value};
}
std::optional<TracedValue> negated(const std::optional<TracedValue>& a, bool negative) {
  if (!a || !negative) return a;
  if (a->in_parameters) return std::nullopt;
  return number(0 - a->value);
}

std::uint32_t logic(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t table) {
  std::uint32_t result = 0;
  for (std::uint32_t bit = 0; bit < 32; ++bit) {
    const std::uint32_t row = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | (c >> bit & 1);
    result |= (table >> row & 1) << bit;
  }
  return result;
}

std::uint32_t permuted(std::uint32_t a, std::uint32_t selector, std::uint32_t c) {
  const std::uint64_t bytes = std::uint64_t{c} << 32 | a;
  std::uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t which = selector >> 4 * i & 0xf;
    std::uint32_t byte = static_cast<std::uint32_t>(bytes >> 8 * (which & 7)) & 0xff;
    if ((which & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << 8 * i;
  }
  return result;
}

}  // namespace

std::optional<TracedValue> ValueTracer::before(std::size_t at, std::uint32_t slot) {
  active_.clear();
  arithmetic_ = 0;
  budget_ = kMostSteps;
  const Result result = trace(at, slot);
  if (result.state != State::known) return std::nullopt;
  return result.value;
}

void ValueTracer::meet(Result& all, const Result& one) {
  if (one.state == State::none) return;
  if (all.state == State::none)
    all = one;
  else if (one.state == State::unknown || (all.state == State::known && !(all.value == one.value)))
    all.state = State::unknown;
}

// Goes back over every way to `at`, to the definitions that may reach it.
ValueTracer::Result ValueTracer::trace(std::size_t at, std::uint32_t slot) {
  constexpr Result kUnknown{State::unknown, {}};
  const auto& instructions = flow_.instructions();
  const auto& blocks = flow_.blocks();
  Result all;
  std::vector<bool> seen(blocks.size(), false);
  std::vector<std::size_t> ends;  // places behind which to look backwards: instruction + 1
  ends.push_back(at);
  std::vector<std::size_t> starts = {blocks[flow_.block_of(at)].first};
  while (!ends.empty()) {
    std::size_t i = ends.back();
    const std::size_t first = starts.back();
    ends.pop_back();
    starts.pop_back();
    bool defined = false;
    while (i > first && !defined) {
      if (budget_ == 0) return kUnknown;
      --budget_;
      --i;
      const Operands& operands = instructions[i].operands;
      if (operands.never) continue;
      if (!operands.known) return kUnknown;
      if (!operands.writes[slot]) continue;
      if (!operands.certain[slot]) return kUnknown;
      meet(all, evaluate(i, slot));
      if (all.state == State::unknown) return all;
      defined = !operands.guard;
    }
    if (defined) continue;
    const std::size_t block = flow_.block_of(first);
    const auto& entries = flow_.entries();
    if (std::find(entries.begin(), entries.end(), block) != entries.end())
      return kUnknown;                                 // never set, or by a caller
    if (blocks[block].predecessors.empty()) continue;  // never executed
    for (const std::size_t p : blocks[block].predecessors) {
      if (seen[p]) continue;
      seen[p] = true;
      const std::uint32_t operation = operation_of(instructions[blocks[p].last].word);
      if (operation == 0x143 || operation == 0x144)
        return kUnknown;  // CALL: who knows what the function sets
      if (budget_ < 16) return kUnknown;
      budget_ -= 16;
      ends.push_back(blocks[p].last + 1);
      starts.push_back(blocks[p].first);
    }
  }
  return all;
}

// A definition that is reached from itself adds nothing, where there are only copies in between.
ValueTracer::Result ValueTracer::evaluate(std::size_t definition, std::uint32_t slot) {
  for (const Active& active : active_)
    if (active.definition == definition && active.slot == slot)
      return {active.arithmetic == arithmetic_ ? State::none : State::unknown, {}};
  if (active_.size() >= kDeepest) return {State::unknown, {}};
  active_.push_back({definition, slot, arithmetic_});
  const Result result = compute(definition, slot);
  active_.pop_back();
  return result;
}

ValueTracer::Result ValueTracer::copy_of(std::size_t definition, int first, bool uniform) {
  const Word word = flow_.instructions()[definition].word;
  if (uniform) {
    const auto index = uniform_register(sm_, word, first);
    return index ? trace(definition, kUniform + *index) : Result{State::known, number(0)};
  }
  const auto index = static_cast<std::uint32_t>(field(word, first, 8));
  return index == kRegisterZero ? Result{State::known, number(0)} : trace(definition, index);
}

std::optional<TracedValue> ValueTracer::source(std::size_t definition, int first, bool uniform) {
  const Result result = copy_of(definition, first, uniform);
  if (result.state != State::known) return std::nullopt;
  return result.value;
}

ValueTracer::Result ValueTracer::compute(std::size_t definition, std::uint32_t slot) {
  const Instruction& instruction = flow_.instructions()[definition];
  const Word word = instruction.word;
  const std::string_view name = instruction.row->mnemonic;
  const std::uint64_t form = field(word, 9, 3);
  const bool uniform = name[0] == 'U';
  constexpr Result kUnknown{State::unknown, {}};

  if (name == "R2UR")
    return field(word, 84, 3) == 0 ? copy_of(definition, 24, false) : kUnknown;  // not .OR or .FILL
  if (name == "MOV" || name == "UMOV") {
    if (name == "MOV" && field(word, 72, 4) != 0xf) return kUnknown;  // of some bytes
    if (form == 4) return {State::known, number(static_cast<std::uint32_t>(field(word, 32, 32)))};
    if (form != 1 && form != 6) return kUnknown;
    return copy_of(definition, 32, uniform || form == 6);
  }
  const std::uint32_t target =
      static_cast<std::uint32_t>(field(word, 16, 8)) + (slot >= kUniform ? kUniform : 0);
  if (slot != target) return kUnknown;  // the upper half of a pair
  if (name == "LDC" || name == "ULDC" || name == "LDCU") {
    const bool wide = name == "LDCU";
    const bool indexed = name == "LDC"
                             ? field(word, 24, 8) != kRegisterZero || field(word, 78, 2) != 0
                             : (wide ? field(word, 24, 8) != kRegisterZero : operation_of(word) != 0x0b9);
    const std::uint64_t offset = wide ? field(word, 37, 17) : field(word, 38, 16);
    const auto address = address_of_parameters(sm_);
    if (indexed || field(word, 54, 5) != 0 || !address || offset != *address || field(word, 73, 3) < 4)
      return kUnknown;
    return {State::known, {true, 0}};
  }
  // IMAD.MOV and additions of zero are how compilers copy, too: but not how they go round a loop.
  ++arithmetic_;
  const std::optional<TracedValue> value = arithmetic(definition);
  --arithmetic_;
  return value ? Result{State::known, *value} : kUnknown;
}

std::optional<TracedValue> ValueTracer::arithmetic(std::size_t definition) {
  const Instruction& instruction = flow_.instructions()[definition];
  const Word word = instruction.word;
  const std::string_view name = instruction.row->mnemonic;
  const std::uint32_t operation = operation_of(word);
  const std::uint64_t form = field(word, 9, 3);
  const bool uniform = name[0] == 'U';
  const auto bit = [&](int at) { return field(word, at, 1) != 0; };
  const auto immediate = [&] { return number(static_cast<std::uint32_t>(field(word, 32, 32))); };
  const auto a = [&] { return source(definition, 24, uniform); };
  const auto c = [&] { return source(definition, 64, uniform); };
  const auto b = [&]() -> std::optional<TracedValue> {  // of forms 1, 4 and 6
    if (form == 4) return immediate();
    if (form == 1 || form == 6) return source(definition, 32, uniform || form == 6);
    return std::nullopt;
  };
  const auto add = [](const std::optional<TracedValue>& x,
                      const std::optional<TracedValue>& y) -> std::optional<TracedValue> {
    if (!x || !y) return std::nullopt;
    return sum(*x, *y);
  };
  const auto plain = [](const std::optional<TracedValue>& x) { return x && !x->in_parameters; };

  switch (operation) {
    case 0x010:                          // IADD3
    case 0x090:                          // UIADD3
    case 0x097:                          // UIADD3.64, of which this is the lower half
      if (bit(74)) return std::nullopt;  // .X: with a carry
      return add(add(negated(a(), bit(72)), negated(b(), form != 4 && bit(63))), negated(c(), bit(75)));
    case 0x036:  // VIADD
      if (bit(73)) return std::nullopt;
      return add(negated(a(), bit(72)), negated(b(), form != 4 && bit(63)));
    case 0x024:  // IMAD
    case 0x025:  // IMAD.WIDE
    case 0x0a4:
    case 0x0a5: {
      if (bit(72) || bit(74)) return std::nullopt;
      std::optional<TracedValue> second, third;
      if (form == 2 || form == 7) {
        second = c();
        third = form == 2 ? std::optional(immediate()) : source(definition, 32, true);
      } else {
        second = b();
        third = c();
      }
      const auto first = a();
      const auto is_zero = [&](const std::optional<TracedValue>& x) { return plain(x) && x->value == 0; };
      std::optional<TracedValue> product;
      if (is_zero(first) || is_zero(second))
        product = number(0);
      else if (plain(first) && plain(second))
        product = number(first->value * second->value);
      return add(product, negated(third, bit(75)));
    }
    case 0x011:
    case 0x091: {  // LEA: (a << shift) + b
      if (bit(72) || bit(74) || bit(80)) return std::nullopt;
      const auto shifted = a();
      if (!plain(shifted)) return std::nullopt;
      return add(number(shifted->value << field(word, 75, 5)), negated(b(), form != 4 && bit(63)));
    }
    case 0x012:
    case 0x092: {  // LOP3
      const auto x = a(), y = b(), z = c();
      if (bit(80) || !plain(x) || !plain(y) || !plain(z)) return std::nullopt;
      return number(logic(x->value, y->value, z->value, static_cast<std::uint32_t>(field(word, 72, 8))));
    }
    case 0x019:
    case 0x099: {  // SHF: a to the left, or c to the right
      constexpr std::uint64_t kUnsigned32 = 3;
      if (field(word, 73, 2) != kUnsigned32 || bit(75)) return std::nullopt;
      const auto by = b();
      if (!plain(by) || bit(76) != bit(80)) return std::nullopt;
      const auto what = bit(76) ? c() : a();
      if (!plain(what)) return std::nullopt;
      if (by->value >= 32) return number(0);
      return number(bit(76) ? what->value >> by->value : what->value << by->value);
    }
    case 0x016:
    case 0x096: {  // PRMT
      const auto x = a(), y = b(), z = c();
      if (field(word, 72, 3) != 0 || !plain(x) || !plain(y) || !plain(z)) return std::nullopt;
      return number(permuted(x->value, y->value, z->value));
    }
    case 0x007:
    case 0x087: {  // SEL: either
      const auto x = a(), y = b();
      if (bit(63) || bit(72) || !x || !y || !(*x == *y)) return std::nullopt;
      return x;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace ptxbench::sass
