// Changing tensor maps: tensormap.replace, tensormap.cp_fenceproxy. PTX ISA 9.7.9.26, 9.7.13.16.
#include "emulator/async_operands.hpp"
#include "emulator/map_changes.hpp"
#include "emulator/races.hpp"
#include "emulator/tensor_map.hpp"
#include "emulator/text.hpp"

#include <algorithm>
#include <cstring>

namespace ptxbench::emulator {
namespace {

enum Field : std::uint8_t {  // Op::a
  kGlobalAddress,
  kRank,
  kBoxDim,
  kGlobalDim,
  kGlobalStride,
  kElementStride,
  kElementType,
  kInterleave,
  kSwizzleMode,
  kSwizzleAtomicity,
  kFillMode,
};
enum Place : std::uint8_t { kInGlobal, kInShared, kAnywhere };  // Op::b

// The ISA numbers element types otherwise than CUtensorMapDataType does; -1: none on this architecture.
int map_type_of(std::uint64_t v) {
  constexpr std::uint8_t kTypes[] = {kMapU8,  kMapU16,    kMapU32, kMapS32,  kMapU64,  kMapS64,    kMapF16,
                                     kMapF32, kMapF32Ftz, kMapF64, kMapBF16, kMapTF32, kMapTF32Ftz};
  return v < std::size(kTypes) ? kTypes[v] : -1;
}

// Empty where it is fine; else why not.
std::string replace_field(TensorMap& map, Field field, std::uint64_t ordinal, std::uint64_t v) {
  const auto element = [&](auto& array, auto value) -> std::string {
    if (ordinal >= array.size())
      return "ordinal " + std::to_string(ordinal) + "; there are " + std::to_string(array.size());
    array[ordinal] = static_cast<typename std::decay_t<decltype(array)>::value_type>(value);
    return {};
  };
  const auto number = [&](std::uint8_t& to, std::uint64_t most) -> std::string {
    if (v > most) return "value " + std::to_string(v) + "; it must be at most " + std::to_string(most);
    to = static_cast<std::uint8_t>(v);
    return {};
  };
  switch (field) {
    case kGlobalAddress:
      map.address = v;
      return {};
    case kRank:  // the rank less one
      if (v > 4) return "value " + std::to_string(v) + "; it is the rank less one, at most 4";
      map.rank = static_cast<std::uint8_t>(v + 1);
      return {};
    case kBoxDim:
      return element(map.box, v);
    case kGlobalDim:
      return element(map.dims, v == 0 ? std::uint64_t{1} << 32 : v);
    case kGlobalStride:
      return element(map.strides, v);
    case kElementStride:
      if (v > 255) return "value " + std::to_string(v) + "; it must be 1 to 8";
      return element(map.element_strides, v);
    case kElementType: {
      const int type = map_type_of(v);
      if (type < 0)
        return "element type " + std::to_string(v) + ", which compute capability 9.0 does not have";
      map.data_type = static_cast<std::uint8_t>(type);
      return {};
    }
    case kInterleave:
      return number(map.interleave, 2);
    case kSwizzleMode:
      return number(map.swizzle, 3);
    case kSwizzleAtomicity:
      return v == 0 ? std::string()
                    : "a swizzle atom other than of 16 bytes, which needs compute capability 10.0";
    case kFillMode:
      return number(map.oob_fill, 1);
  }
  return {};
}

// The 128 bytes of a map at @p address. Null, and a fault, where they cannot be had.
std::uint8_t* map_bytes(Exec& x, Agent& agent, int lane, std::uint64_t address, Place place, Access access,
                        Cta*& cta, std::uint32_t& offset) {
  Memory& memory = *x.grid.memory;
  auto shared = static_cast<std::uint32_t>(address);
  const bool in_shared = place == kInShared || (place == kAnywhere && shared_from_generic(address, shared));
  (void)lane;
  cta = nullptr;
  if (in_shared) return memory.shared(agent, shared, 128, 64, access, Proxy::generic, true, cta, offset);
  return memory.global(agent, address, 128, 64, access);
}

// Operands: address, [ordinal,] value. Op::c: an ordinal is there, 2: the value has 64 bits.
Flow run_replace(Exec& x) {
  const bool has_ordinal = (x.op.c & 1) != 0, wide = (x.op.c & 2) != 0;
  const unsigned value = has_ordinal ? 2 : 1;
  if (!defined(x, 0, x.op.sources, "an operand of tensormap.replace")) return Flow::stop;
  for (Mask m = x.mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    Agent agent = agent_of(x, lane);
    Cta* cta = nullptr;
    std::uint32_t offset = 0;
    const std::uint64_t address = address_of(x, 0, 0, x.op.sources, lane);
    std::uint8_t* bytes =
        map_bytes(x, agent, lane, address, static_cast<Place>(x.op.b), Access::write, cta, offset);
    if (!bytes) return Flow::stop;
    if (cta != nullptr ? any_undefined(cta->shared_undefined, offset, 128)
                       : x.grid.memory->global_undefined(address, 128))
      return x.fault(FaultKind::undefined_value, lane,
                     "tensormap.replace on 128 bytes at " + hex(address) +
                         " of which some were never written: where a map keeps its fields nobody knows");
    if (cta != nullptr && x.cluster.races != nullptr) x.cluster.races->object(x, lane, *cta, offset, 128, Access::write);
    auto map = decode_tensor_map(bytes);
    // Compilers make maps from nothing: zeros, then every field.
    if (!map && std::all_of(bytes, bytes + 128, [](std::uint8_t b) { return b == 0; })) map = TensorMap{};
    if (!map)
      return x.fault(FaultKind::tensor_map, lane,
                     "tensormap.replace on 128 bytes at " + hex(address) + " that are no tensor map");
    const std::uint64_t v = wide ? x.src64(value)[lane] : x.src(value)[lane];
    const std::string problem =
        replace_field(*map, static_cast<Field>(x.op.a), has_ordinal ? x.src(1)[lane] : 0, v);
    if (!problem.empty()) return x.fault(FaultKind::tensor_map, lane, "tensormap.replace with " + problem);
    const auto image = encode(*map);
    std::memcpy(bytes, image.data(), image.size());
    if (cta == nullptr) x.grid.memory->map_changes().changed(agent, address, false);
  }
  return Flow::next;
}

Result<void> decode_replace(Decoder& d) {
  Modifiers m(d.instruction());
  Emit e;
  e.flags = kSideEffect;
  e.run = run_replace;
  m.take("replace");
  if (!m.take("tile")) return d.unsupported("a mode other than .tile");
  const int field =
      m.take_one({"global_address", "rank", "box_dim", "global_dim", "global_stride", "element_stride",
                  "elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity", "fill_mode"});
  if (field < 0) return d.bad("the field must be there");
  e.a = static_cast<std::uint8_t>(field);
  const int place = m.take_one({"global", "shared::cta", "shared"});
  e.b = place < 0 ? kAnywhere : place == 0 ? kInGlobal : kInShared;
  if (!m.take("b1024")) return d.bad("the type of the map must be .b1024");
  const int type = m.take_one({"b32", "b64"});
  PTXBENCH_TRY(m.finish(d));
  const bool wide = field == kGlobalAddress || field == kGlobalStride;
  if (type != (wide ? 1 : 0))
    return d.bad(std::string("the type of the value must be ") + (wide ? ".b64" : ".b32"));
  const bool has_ordinal = field >= kBoxDim && field <= kElementStride;
  e.c = static_cast<std::uint8_t>((has_ordinal ? 1 : 0) | (wide ? 2 : 0));
  PTXBENCH_TRY(d.expect_operands(has_ordinal ? 3 : 2));
  AddressOperands addresses(d, e);
  PTXBENCH_TRY(addresses.add(d.instruction().operands[0], place < 0    ? ptx::Space::generic
                                                          : place == 0 ? ptx::Space::global
                                                                       : ptx::Space::shared));
  if (has_ordinal) PTXBENCH_TRY(d.src(e, 1, Ty::u32));
  PTXBENCH_TRY(d.src(e, has_ordinal ? 2 : 1, wide ? Ty::b64 : Ty::b32));
  addresses.finish();
  return d.emit(e, "tma_control");
}

// Copies a map from shared to global memory; the fence has nothing to do here.
Flow run_copy(Exec& x) {
  if (!defined(x, 0, x.op.sources, "an operand of tensormap.cp_fenceproxy")) return Flow::stop;
  // The whole warp names the same map: what one lane does is done.
  const int lane = __builtin_ctz(x.mask);
  Agent agent = agent_of(x, lane);
  const std::uint64_t to = address_of(x, 0, 0, x.op.sources, lane);
  Cta* cta = nullptr;
  std::uint32_t offset = 0;
  const std::uint8_t* from = map_bytes(x, agent, lane, address_of(x, 1, 1, x.op.sources, lane), kInShared,
                                       Access::read, cta, offset);
  if (!from) return Flow::stop;
  if (x.cluster.races != nullptr) x.cluster.races->async_read(agent_of(x, -1), *cta, offset, 128);  // the warp does
  std::uint8_t* p = x.grid.memory->global(agent, to, 128, 128, Access::write);
  if (!p) return Flow::stop;
  std::memcpy(p, from, 128);
  x.grid.memory->map_changes().changed(agent, to, true);
  for (std::uint32_t b = 0; b < 128; b += 64) {
    const std::uint64_t bits = undefined_bits(cta->shared_undefined, offset + b, 64);
    if ((bits != 0 || x.grid.memory->any_global_undefined()) &&
        !x.grid.memory->stored(agent, to + b, 64, bits))
      return Flow::stop;
  }
  return Flow::next;
}

Result<void> decode_copy(Decoder& d) {
  Modifiers m(d.instruction());
  Emit e;
  e.flags = kSideEffect | kAligned;
  e.run = run_copy;
  m.take("cp_fenceproxy");
  if (!m.take("global") || m.take_one({"shared::cta", "shared"}) < 0)
    return d.bad("a map is copied from .shared::cta to .global");
  m.take("tensormap::generic");
  m.take("release");
  m.take_one({"cta", "cluster", "gpu", "sys"});
  m.take("sync");
  m.take("aligned");
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(3));
  PTXBENCH_TRY_ASSIGN(const std::int64_t size, d.immediate(2));
  if (size != 128) return d.bad("a size of " + std::to_string(size) + "; it must be 128");
  AddressOperands addresses(d, e);
  PTXBENCH_TRY(addresses.add(d.instruction().operands[0], ptx::Space::global));
  PTXBENCH_TRY(addresses.add(d.instruction().operands[1], ptx::Space::shared));
  addresses.finish();
  return d.emit(e, "tma_control");
}

}  // namespace

void register_tensormap(InstructionTable& table) {
  table.add("tensormap.replace", decode_replace);
  table.add("tensormap.cp_fenceproxy", decode_copy);
}

}  // namespace ptxbench::emulator
