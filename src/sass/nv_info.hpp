// The attribute records of .nv.info sections: what a compiler says about a module and its kernels.
#pragma once

#include "sass/elf.hpp"

#include <ptxbench/core.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace ptxbench::sass {

// The attributes that we read, by their names in cuobjdump (EIATTR_...). docs/sass.md gives their layouts.
enum class Attribute : std::uint8_t {
  max_threads = 0x05,          // u32 x, y, z: .maxntid
  param_cbank = 0x0a,          // u32 symbol, u16 offset in bank 0, u16 size
  reqntid = 0x10,              // u32 x, y, z
  frame_size = 0x11,           // u32 symbol, u32 bytes
  min_stack_size = 0x12,       // u32 symbol, u32 bytes
  kparam_info = 0x17,          // u32 index, u16 ordinal, u16 offset, u32: size in bits 18 to 31
  cbank_param_size = 0x19,     // value: bytes
  regcount = 0x2f,             // u32 symbol, u32 registers
  cta_per_cluster = 0x3d,      // u32 x, y, z
  explicit_cluster = 0x3e,     // a flag
  max_cluster_rank = 0x3f,     // u32
  kparam_info_v2 = 0x45,       // u32 index, u16 ordinal, u16 offset, u32: size in bits 0 to 15
  blocks_are_clusters = 0x5b,  // a flag
};

// One record. Small values are in the record; others have a payload.
struct AttributeRecord {
  std::uint8_t code = 0;    // an Attribute, or one that we do not know
  std::uint16_t value = 0;  // of records without payload
  elf::Bytes payload;
  std::uint64_t offset = 0;  // in the section, for messages

  bool is(Attribute attribute) const { return code == static_cast<std::uint8_t>(attribute); }
};

// All records of a section. @p section names it in errors (ErrorCode::parse).
Result<std::vector<AttributeRecord>> read_attributes(elf::Bytes bytes, std::string_view section);

// An error unless @p record has at least @p bytes of payload.
Result<void> need_payload(const AttributeRecord& record, std::size_t bytes, std::string_view section);

}  // namespace ptxbench::sass
