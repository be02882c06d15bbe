// What the operands of some instructions are, traced back to constants and parameters: shapes of tcgen05.mma,
// tensor maps of TMA copies, sizes of bulk copies.
#include "sass/kernel_code.hpp"
#include "sass/trace_values.hpp"

#include <new>
#include <utility>

namespace ptxbench::sass {
namespace {

// The instruction descriptor of tcgen05.mma, of PTX ISA's tables. Block-scaled kinds keep m in the same bits.
std::optional<MmaShape> shape_of_descriptor(std::uint32_t descriptor, std::string_view mnemonic, Word word) {
  const auto bits = [&](int first, int count) { return descriptor >> first & ((1u << count) - 1); };
  const bool pair = field(word, 85, 1) != 0, alone = field(word, 83, 1) != 0;  // .2CTA, .WS
  std::uint32_t k = 0;
  if (mnemonic == "UTCHMMA") {
    constexpr std::uint32_t kF16 = 0, kBf16 = 1, kTf32 = 2;
    const std::uint32_t a = bits(7, 3), b = bits(10, 3);
    if ((a == kF16 || a == kBf16) && (b == kF16 || b == kBf16)) k = 16;
    if (a == kTf32 && b == kTf32) k = 8;
  } else if (mnemonic == "UTCQMMA" || mnemonic == "UTCIMMA") {
    k = 32;
  } else if (mnemonic == "UTCOMMA") {
    if (bits(31, 1) == 0) k = 64;
  }
  MmaShape shape;
  shape.m = static_cast<std::uint16_t>(16 * bits(24, 5));
  shape.n = static_cast<std::uint16_t>(8 * bits(17, 6));
  shape.sparse = bits(2, 1) != 0;
  shape.k = static_cast<std::uint16_t>(shape.sparse ? 2 * k : k);
  const bool rows = pair    ? shape.m == 128 || shape.m == 256
                    : alone ? shape.m == 32 || shape.m == 64 || shape.m == 128
                            : shape.m == 64 || shape.m == 128;
  if (k == 0 || !rows || shape.n == 0 || shape.n > 256)
    return std::nullopt;  // no descriptor of an mma that can run
  return shape;
}

void set_map(const Kernel& kernel, const std::optional<TracedValue>& address, BulkAccess& access) {
  if (!address || !address->in_parameters) return;
  for (const Parameter& parameter : kernel.parameters) {
    if (address->value < parameter.offset || address->value - parameter.offset >= parameter.size) continue;
    access.map_offset = address->value;
    access.parameter = parameter.ordinal;
  }
}

// Most kernels have none, and need no analysis.
bool has_any(int sm, elf::Bytes code, bool (*wanted)(const OpcodeRow&)) {
  for (std::uint64_t at = 0; at < code.size(); at += 16) {
    const OpcodeRow* row = find_row(sm, Word{elf::read64(code, at), elf::read64(code, at + 8)});
    if (row != nullptr && wanted(*row)) return true;
  }
  return false;
}

bool is_tcgen05_mma(const OpcodeRow& row) { return row.family == "tcgen05_mma"; }
bool is_bulk_access(const OpcodeRow& row) {
  return row.family == "tma_load" || row.family == "tma_multicast" || row.family == "tma_store" ||
         row.family == "tma_reduce" || row.mnemonic == "UBLKCP" || row.mnemonic == "UBLKRED";
}

}  // namespace

Result<std::vector<Tcgen05Mma>> tcgen05_mmas(std::span<const std::uint8_t> file, const Cubin& cubin,
                                             const Kernel& kernel) {
  constexpr int kDescriptor = 40;  // the second of a pair of uniform registers
  try {
    std::vector<Tcgen05Mma> found;
    PTXBENCH_TRY_ASSIGN(const elf::Bytes code, code_of(file, kernel));
    if (!has_any(cubin.sm, code, is_tcgen05_mma)) return found;
    PTXBENCH_TRY_ASSIGN(const ControlFlow flow, ControlFlow::build(cubin.sm, code));
    ValueTracer tracer(cubin.sm, flow);
    const auto& instructions = flow.instructions();
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      const Instruction& instruction = instructions[i];
      if (instruction.row == nullptr || !is_tcgen05_mma(*instruction.row)) continue;
      Tcgen05Mma mma;
      mma.pc_offset = static_cast<std::uint32_t>(16 * i);
      mma.guarded = instruction.operands.guard || instruction.operands.never;
      if (const auto pair = uniform_register(cubin.sm, instruction.word, kDescriptor)) {
        const auto value = tracer.before(i, kUniform + *pair + 1);
        if (value && !value->in_parameters)
          mma.shape = shape_of_descriptor(value->value, instruction.row->mnemonic, instruction.word);
      }
      found.push_back(mma);
    }
    return found;
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::no_memory, "out of memory while tracing the shapes of tcgen05.mma");
  }
}

Result<std::vector<BulkAccess>> bulk_accesses(std::span<const std::uint8_t> file, const Cubin& cubin,
                                              const Kernel& kernel) {
  try {
    std::vector<BulkAccess> found;
    PTXBENCH_TRY_ASSIGN(const elf::Bytes code, code_of(file, kernel));
    if (!has_any(cubin.sm, code, is_bulk_access)) return found;
    PTXBENCH_TRY_ASSIGN(const ControlFlow flow, ControlFlow::build(cubin.sm, code));
    ValueTracer tracer(cubin.sm, flow);
    const auto& instructions = flow.instructions();
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      const Instruction& instruction = instructions[i];
      const Word word = instruction.word;
      if (instruction.row == nullptr || !is_bulk_access(*instruction.row)) continue;
      BulkAccess access;
      access.pc_offset = static_cast<std::uint32_t>(16 * i);
      access.guarded = instruction.operands.guard || instruction.operands.never;
      access.tensor = instruction.row->mnemonic[1] == 'T';
      if (access.tensor) {
        // Bits 82 to 84: im2col in two forms, gather; of stores im2col and scatter.
        const bool load = instruction.row->mnemonic == "UTMALDG";
        access.direction = load ? BulkAccess::Direction::load : BulkAccess::Direction::store;
        access.tiled = field(word, 82, load ? 3 : 2) == 0;
        if (const auto map = uniform_register(cubin.sm, word, 24))
          set_map(kernel, tracer.before(i, kUniform + *map), access);
      } else {
        const bool to_shared = field(word, 73, 1) != 0, from_shared = field(word, 74, 1) != 0;
        access.direction = to_shared && from_shared ? BulkAccess::Direction::shared
                           : from_shared            ? BulkAccess::Direction::store
                                                    : BulkAccess::Direction::load;
        if (const auto size = uniform_register(cubin.sm, word, 64)) {
          const auto value = tracer.before(i, kUniform + *size);
          if (value && !value->in_parameters) access.bytes = 16 * (value->value & 0xffff);
        }
      }
      found.push_back(access);
    }
    return found;
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::no_memory, "out of memory while tracing the operands of copies");
  }
}

}  // namespace ptxbench::sass
