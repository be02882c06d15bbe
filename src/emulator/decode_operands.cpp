// Operands of instructions as slots, constants, and ops that are emitted before.
#include "emulator/control.hpp"
#include "emulator/decode_builder.hpp"
#include "emulator/memory.hpp"
#include "emulator/special.hpp"

#include <bit>
#include <cmath>
#include <cstring>

namespace ptxbench::emulator {
namespace {

using Kind = ptx::Operand::Kind;

// @p value in a binary format of @p mantissa explicit bits and @p exponent bits, to nearest even.
std::uint32_t to_small_float(double value, int mantissa, int exponent) {
  const std::uint32_t sign = std::signbit(value) ? 1u << (mantissa + exponent) : 0;
  const std::uint32_t infinity = ((1u << exponent) - 1) << mantissa;
  if (std::isnan(value)) return infinity | ((1u << mantissa) - 1);
  value = std::fabs(value);
  const int bias = (1 << (exponent - 1)) - 1;
  if (std::isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  int e = 0;
  std::frexp(value, &e);  // value = m * 2^e, m in [0.5, 1)
  const int scale = std::max(e - 1, 1 - bias) - mantissa;
  const double units = std::nearbyint(std::ldexp(value, -scale));
  const double rounded = std::ldexp(units, scale);
  if (rounded >= std::ldexp(2.0 - std::ldexp(1.0, -mantissa), bias) + std::ldexp(1.0, bias - mantissa))
    return sign | infinity;
  std::frexp(rounded, &e);
  if (e - 1 < 1 - bias) return sign | static_cast<std::uint32_t>(units);  // subnormal
  const auto fraction = static_cast<std::uint32_t>(std::ldexp(rounded, mantissa - (e - 1))) - (1u << mantissa);
  return sign | (static_cast<std::uint32_t>(e - 1 + bias) << mantissa) | fraction;
}

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::reg: return "a register";
    case Kind::integer: return "an integer";
    case Kind::f32:
    case Kind::f64: return "a number";
    case Kind::variable: return "a variable";
    case Kind::function: return "a function";
    case Kind::special: return "a special register";
    case Kind::label: return "a label";
    case Kind::address: return "an address";
    case Kind::vector: return "a vector";
    case Kind::tensor: return "a tensor operand";
    case Kind::pair: return "a pair";
    case Kind::sink: return "_";
    case Kind::list: return "a list";
  }
  return "?";
}

}  // namespace

const ptx::Operand* Builder::operand_at(std::size_t i) const {
  return i < instruction_->operands.size() ? &instruction_->operands[i] : nullptr;
}

Error Builder::no_operand(std::size_t i) const { return bad("operand " + std::to_string(i + 1) + " is missing"); }

Result<void> Builder::expect_operands(std::size_t from, std::size_t to) {
  if (to < from) to = from;
  const std::size_t n = instruction_->operands.size();
  if (n >= from && n <= to) return {};
  std::string wanted = std::to_string(from);
  if (to != from) wanted += " to " + std::to_string(to);
  return bad(std::to_string(n) + " operands where it takes " + wanted);
}

Operand Builder::temporary(unsigned bits) {
  const unsigned slots = bits <= 32 ? 1 : bits <= 64 ? 2 : 4;
  const auto first = static_cast<std::uint32_t>(decoded_.slots.size());
  if (first > 16'000'000) {
    too_large_ = true;
    return kVirtual;
  }
  decoded_.slots.push_back(static_cast<std::uint8_t>(slots));
  for (unsigned i = 1; i < slots; ++i) decoded_.slots.push_back(0);
  decoded_.exclusive.resize(decoded_.slots.size());
  return kVirtual + static_cast<Operand>(first * kLanes);
}

Operand Builder::temporary_pred() { return static_cast<Operand>(kernel_->predicates++); }

Operand Builder::constant(std::uint64_t bits, unsigned width) {
  if (width < 64) bits &= (std::uint64_t{1} << width) - 1;
  const unsigned words = width <= 32 ? 1 : width <= 64 ? 2 : 4;
  const auto [at, fresh] = constants_.try_emplace({bits, words}, 0);
  if (!fresh) return at->second;
  const std::size_t offset = kernel_->constants.size();
  kernel_->constants.resize(offset + words * kLanes);
  for (unsigned i = 0; i < kLanes; ++i) {
    if (words == 1)
      kernel_->constants[offset + i] = static_cast<std::uint32_t>(bits);
    else
      std::memcpy(&kernel_->constants[offset + 2 * i], &bits, 8);  // .b128: the high plane stays zero
  }
  return at->second = ~static_cast<Operand>(offset);
}

unsigned Builder::register_bits(const ptx::Operand& operand) const {
  if (operand.kind != Kind::reg || operand.index >= function().registers.size()) return 0;
  return ptx::type_bits(function().registers[operand.index].type);
}

Result<Operand> Builder::register_operand(const ptx::Operand& operand, unsigned bits, bool relaxed,
                                          std::string_view what) {
  if (operand.kind != Kind::reg || operand.index >= function().registers.size())
    return bad(std::string(kind_name(operand.kind)) + " where " + std::string(what) + " needs a register");
  const ptx::Register& r = function().registers[operand.index];
  const unsigned declared = ptx::type_bits(r.type);
  if (r.type == ptx::Type::pred || (relaxed ? declared < bits : declared != bits))
    return bad("register " + r.name + " is ." + std::string(ptx::type_name(r.type)) + " where " + std::string(what) +
               " has " + std::to_string(bits) + " bits");
  return instance_->registers[operand.index];
}

Result<void> Builder::dst(Emit& e, const ptx::Operand& operand, unsigned bits, bool relaxed) {
  if (e.sources != 0) return unsupported("a destination behind sources");
  if (operand.kind == Kind::sink) {
    e.operands.push_back(temporary(bits));  // written and never read
  } else if (operand.kind == Kind::vector && operand.parts.size() == 1) {
    return dst(e, operand.parts[0], bits, relaxed);
  } else {
    PTXBENCH_TRY_ASSIGN(const Operand o, register_operand(operand, bits, relaxed, "the destination"));
    e.operands.push_back(o);
  }
  ++e.destinations;
  return {};
}

Result<void> Builder::dst(Emit& e, std::size_t i, unsigned bits, bool relaxed) {
  const ptx::Operand* o = operand_at(i);
  return o != nullptr ? dst(e, *o, bits, relaxed) : Result<void>(no_operand(i));
}

Result<void> Builder::src(Emit& e, std::size_t i, Ty type, bool relaxed) {
  const ptx::Operand* o = operand_at(i);
  return o != nullptr ? src(e, *o, type, relaxed) : Result<void>(no_operand(i));
}

Result<std::size_t> Builder::dst_vector(Emit& e, std::size_t i, unsigned bits, bool relaxed) {
  const ptx::Operand* o = operand_at(i);
  if (o == nullptr) return no_operand(i);
  if (o->kind != Kind::vector) {
    PTXBENCH_TRY(dst(e, *o, bits, relaxed));
    return std::size_t{1};
  }
  for (const ptx::Operand& part : o->parts) {
    if (part.kind == Kind::sink) {
      e.operands.push_back(kNoOperand);
      ++e.destinations;
    } else {
      PTXBENCH_TRY(dst(e, part, bits, relaxed));
    }
  }
  return o->parts.size();
}

Result<std::size_t> Builder::src_vector(Emit& e, std::size_t i, Ty type, bool relaxed) {
  const ptx::Operand* o = operand_at(i);
  if (o == nullptr) return no_operand(i);
  if (o->kind != Kind::vector) {
    PTXBENCH_TRY(src(e, *o, type, relaxed));
    return std::size_t{1};
  }
  for (const ptx::Operand& part : o->parts) PTXBENCH_TRY(src(e, part, type, relaxed));
  return o->parts.size();
}

Result<std::uint64_t> Builder::constant_bits(const ptx::Operand& operand, Ty type) const {
  const bool is_float = type == Ty::f32 || type == Ty::f64;
  if (operand.kind == Kind::integer) {
    if (is_float && operand.bits != 0) return bad("an integer where ." + std::string(ty_name(type)) + " needs a floating-point number");
    return operand.bits;
  }
  const double value = operand.kind == Kind::f32
                           ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(operand.bits)))
                           : std::bit_cast<double>(operand.bits);
  switch (type) {
    case Ty::f16: return std::uint64_t{to_small_float(value, 10, 5)};
    case Ty::bf16: return std::uint64_t{to_small_float(value, 7, 8)};
    case Ty::f64:
    case Ty::b64:
      // A NaN keeps its bits only where no conversion is needed.
      return operand.kind == Kind::f64 ? operand.bits : std::bit_cast<std::uint64_t>(value);
    case Ty::f32:
    case Ty::tf32:
    case Ty::b32:
      if (operand.kind == Kind::f32) return operand.bits & 0xffff'ffff;
      return std::uint64_t{std::bit_cast<std::uint32_t>(static_cast<float>(value))};
    default: return bad("a floating-point number where ." + std::string(ty_name(type)) + " is needed");
  }
}

Result<Operand> Builder::special_operand(const ptx::Operand& operand, Ty type, bool relaxed) {
  const unsigned bits = ty_bits(type);
  if (operand.name == "WARP_SZ") return constant(kLanes, bits);
  const std::optional<SpecialInfo> info = special_named(operand.name);
  if (!info) return unsupported("the special register " + operand.name);
  if (info->bits == 1) return bad(operand.name + " is a predicate");
  if (info->bits < bits && !relaxed) return bad(operand.name + " has " + std::to_string(info->bits) + " bits");
  const Operand to = temporary(bits);
  auxiliary(op_read_special, {to}, 1, 0, static_cast<std::int64_t>(info->special), static_cast<std::uint8_t>(bits), kPropagate);
  return to;
}

Result<void> Builder::src(Emit& e, const ptx::Operand& operand, Ty type, bool relaxed) {
  if (type == Ty::pred) {
    PTXBENCH_TRY_ASSIGN(const Operand p, pred_src(operand));
    e.operands.push_back(p);
    return {};
  }
  Operand o = kNoOperand;
  switch (operand.kind) {
    case Kind::reg: {
      PTXBENCH_TRY_ASSIGN(o, register_operand(operand, ty_bits(type), relaxed, "the source"));
      break;
    }
    case Kind::integer:
    case Kind::f32:
    case Kind::f64: {
      PTXBENCH_TRY_ASSIGN(const std::uint64_t bits, constant_bits(operand, type));
      o = constant(bits, ty_bits(type));
      break;
    }
    case Kind::special: {
      PTXBENCH_TRY_ASSIGN(o, special_operand(operand, type, relaxed));
      break;
    }
    case Kind::variable: {
      PTXBENCH_TRY_ASSIGN(o, variable_operand(operand, ty_bits(type), false));
      break;
    }
    case Kind::vector:
      if (operand.parts.size() == 1) return src(e, operand.parts[0], type, relaxed);
      [[fallthrough]];
    case Kind::function:
      if (operand.kind == Kind::function) return unsupported("the address of a function");
      [[fallthrough]];
    default: return bad(std::string(kind_name(operand.kind)) + " where a value is needed");
  }
  e.operands.push_back(o);
  ++e.sources;
  return {};
}

Result<Operand> Builder::pred_dst(const ptx::Operand& operand) {
  if (operand.kind == Kind::sink) return kNoOperand;
  if (register_bits(operand) != 1) return bad(std::string(kind_name(operand.kind)) + " where a predicate is written");
  const Operand p = instance_->registers[operand.index];
  pending_predicates_.push_back(~p);
  return p;
}

Result<Operand> Builder::pred_src(const ptx::Operand& operand) {
  if (operand.kind == Kind::integer) return operand.bits != 0 ? kPredTrue : kPredFalse;
  std::vector<std::int32_t> pending = std::exchange(pending_predicates_, {});
  Operand p = kNoOperand;
  if (operand.kind == Kind::special) {
    const std::optional<SpecialInfo> info = special_named(operand.name);
    if (!info) return unsupported("the special register " + operand.name);
    if (info->bits != 1) return bad(operand.name + " is no predicate");
    p = temporary_pred();
    auxiliary(op_read_special_pred, {p}, 0, 0, static_cast<std::int64_t>(info->special));
  } else {
    if (register_bits(operand) != 1) return bad(std::string(kind_name(operand.kind)) + " where a predicate is needed");
    p = instance_->registers[operand.index];
  }
  if (operand.negated) {
    const Operand not_p = temporary_pred();
    const auto op = static_cast<std::uint32_t>(kernel_->ops.size());
    auxiliary(op_negate_pred, {not_p, p}, 0, 0, 0);
    decoded_.predicates.emplace_back(op, p);
    decoded_.predicates.emplace_back(op, ~not_p);
    p = not_p;
  }
  pending_predicates_ = std::move(pending);
  pending_predicates_.push_back(p);
  return p;
}

// --- variables --------------------------------------------------------------------------------------------------

const ptx::Variable* Builder::variable_of(const ptx::Operand& operand) const {
  const std::vector<ptx::Variable>& variables = operand.module_scope ? module().variables : function().variables;
  return operand.index < variables.size() ? &variables[operand.index] : nullptr;
}

std::uint64_t Builder::local_place(Instance& instance, std::uint64_t bytes, std::uint32_t align) {
  const std::uint64_t a = std::max<std::uint32_t>(align, 1);
  const std::uint64_t address = (instance.frame + a - 1) / a * a;
  instance.frame = address + bytes;
  local_end_ = std::max(local_end_, instance.frame);
  return address;
}

Result<Place*> Builder::placed(const ptx::Operand& operand) {
  const ptx::Variable* v = variable_of(operand);
  if (v == nullptr) return bad("an unknown variable");
  const bool of_module = operand.module_scope || v->space == ptx::Space::shared || v->space == ptx::Space::global ||
                         v->space == ptx::Space::constant;
  Place& place = of_module ? module_places_[v] : instance_->places[operand.index];
  if (place.kind != Place::Kind::none) return &place;
  place.bytes = v->bytes;
  switch (v->space) {
    case ptx::Space::shared:
      place.kind = v->unsized ? Place::Kind::dynamic_shared : Place::Kind::shared;
      shared_order_.push_back(v);
      break;
    case ptx::Space::local:
    case ptx::Space::param: return unsupported("the variable " + v->name + " of the module's local space");
    default: {
      const std::optional<std::uint64_t> address = symbols_.address(*v);
      if (!address) return unsupported("the variable " + v->name + " is defined nowhere");
      place.kind = Place::Kind::global;
      place.address = *address;
    }
  }
  return &place;
}

Operand Builder::hoisted(PrologueKind kind, const ptx::Variable* variable, std::uint64_t offset, unsigned bits,
                         bool generic) {
  for (const Prologue& p : prologue_)
    if (p.kind == kind && p.variable == variable && p.offset == offset && p.bits == bits && p.generic == generic)
      return p.destination;
  const Operand to = temporary(bits);
  prologue_.push_back({kind, variable, offset, bits, generic, to});
  return to;
}

Result<Operand> Builder::variable_operand(const ptx::Operand& operand, unsigned bits, bool generic) {
  if (bits != 32 && bits != 64) return bad("the address of a variable has 32 or 64 bits");
  PTXBENCH_TRY_ASSIGN(const Place* const place, placed(operand));
  const auto offset = static_cast<std::uint64_t>(operand.offset);
  switch (place->kind) {
    case Place::Kind::kernel_parameter:
      if (generic) return hoisted(PrologueKind::parameter, nullptr, place->address + offset, 64, true);
      return constant(place->address + offset, bits);
    case Place::Kind::local: return constant((generic ? kLocalWindow : 0) + place->address + offset, bits);
    case Place::Kind::global:
      if (bits != 64) return bad("the address of a global variable has 64 bits");
      return constant(place->address + offset, 64);
    default: return hoisted(PrologueKind::shared, variable_of(operand), offset, bits, generic);
  }
}

Result<Address> Builder::address(Emit& e, const ptx::Operand& operand, ptx::Space space) {
  const ptx::Operand* base = &operand;
  std::int64_t offset = 0;
  while (base->kind == Kind::address) {
    if (base->parts.empty()) return bad("an address without a base");
    offset += base->offset;
    base = &base->parts[0];
  }
  Address result;
  result.space = space;
  if (base->kind == Kind::reg) {
    const unsigned bits = register_bits(*base);
    if (bits != 32 && bits != 64) return bad("an address register has 32 or 64 bits");
    if (bits == 32 && (space == ptx::Space::generic || space == ptx::Space::global || space == ptx::Space::constant))
      return bad("a global or generic address has 64 bits");
    PTXBENCH_TRY_ASSIGN(const Operand o, register_operand(*base, bits, false, "the address"));
    e.operands.push_back(o);
    result.wide = bits == 64;
  } else if (base->kind == Kind::integer) {
    e.operands.push_back(constant(base->bits, 64));
    result.wide = true;
  } else if (base->kind == Kind::variable) {
    offset += base->offset;
    ptx::Operand plain = *base;
    plain.offset = 0;
    PTXBENCH_TRY_ASSIGN(const Place* const place, placed(plain));
    const ptx::Space own = place->kind == Place::Kind::kernel_parameter ? ptx::Space::param
                           : place->kind == Place::Kind::local          ? ptx::Space::local
                           : place->kind == Place::Kind::global         ? ptx::Space::global
                                                                        : ptx::Space::shared;
    const bool generic = space == ptx::Space::generic;
    const bool fits = generic || space == own || (space == ptx::Space::constant && own == ptx::Space::global) ||
                      (space == ptx::Space::param && own == ptx::Space::local &&
                       variable_of(plain)->space == ptx::Space::param);
    if (!fits) return bad("the variable " + variable_of(plain)->name + " does not lie in the instruction's state space");
    result.wide = generic || own == ptx::Space::global;
    if (!generic && own != ptx::Space::global) result.space = own;
    PTXBENCH_TRY_ASSIGN(const Operand o, variable_operand(plain, result.wide ? 64 : 32, generic));
    e.operands.push_back(o);
  } else {
    return bad(std::string(kind_name(base->kind)) + " where an address is needed");
  }
  ++e.sources;
  e.imm = offset;
  return result;
}

Result<std::int64_t> Builder::immediate(std::size_t i) {
  const ptx::Operand* o = operand_at(i);
  if (o == nullptr) return no_operand(i);
  if (o->kind == Kind::special && o->name == "WARP_SZ") return std::int64_t{kLanes};
  if (o->kind != Kind::integer) return bad("operand " + std::to_string(i + 1) + " has to be an integer constant");
  return static_cast<std::int64_t>(o->bits);
}

}  // namespace ptxbench::emulator
