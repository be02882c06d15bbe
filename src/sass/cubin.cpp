#include "sass/elf.hpp"
#include "sass/nv_info.hpp"
#include "sass/param_reads.hpp"

#include <ptxbench/sass.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace ptxbench::sass {
namespace {

constexpr std::uint8_t kOsAbiCuda12 = 0x33, kOsAbiCuda13 = 0x41;
constexpr std::uint8_t kSymbolIsEntry = 0x10;  // in a symbol's `other`
constexpr std::string_view kTextPrefix = ".text.";
constexpr std::uint64_t kReservedShared =
    1024;  // of every CTA, from 9.0 on; at the start of its shared memory

Error bad(std::string message) { return make_error(ErrorCode::parse, "cubin: " + std::move(message)); }

std::string quoted(std::string_view name) {
  return "'" + std::string(name.substr(0, 200)) + (name.size() > 200 ? "...'" : "'");
}

// Per-kernel numbers that the module's own .nv.info holds, by symbol index.
struct SymbolNumbers {
  std::uint32_t registers = 0, frame = 0, stack = 0;
};

class Reader {
 public:
  explicit Reader(elf::Bytes file) : bytes_(file), budget_(4 * std::uint64_t{file.size()} + (1u << 20)) {}

  Result<Cubin> read() {
    PTXBENCH_TRY_ASSIGN(file_, elf::read(bytes_));
    PTXBENCH_TRY(read_architecture());
    for (const elf::Section& section : file_.sections) {
      PTXBENCH_TRY(spend(section.name.size()));
      by_name_.emplace(section.name, &section);
    }
    PTXBENCH_TRY(read_module_info());
    for (std::uint32_t i = 0; i < file_.symbols.size(); ++i) PTXBENCH_TRY(read_symbol(i));
    return std::move(cubin_);
  }

 private:
  // In a compiler's file sections do not overlap and names overlap little, so a reader looks at each byte a
  // few times; without this limit a small file in which everything overlaps could keep us busy for ever.
  Result<void> spend(std::uint64_t bytes) {
    if (bytes > budget_) return bad("its sections or names overlap");
    budget_ -= bytes;
    return {};
  }

  const elf::Section* find(std::string_view prefix, std::string_view kernel) const {
    const std::string name = std::string(prefix) + std::string(kernel);
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

  Result<void> read_architecture() {
    // Up to ABI 7 the flags hold the architecture in their lowest byte and mark 'a' with 0x800; from ABI 8 in
    // the second byte, with the 'a' marked by 0x8 (CUDA 12.8) or in .nv.compat (CUDA 13).
    bool accelerated = false;
    if (file_.os_abi == kOsAbiCuda13) {
      cubin_.sm = static_cast<int>(file_.flags >> 8 & 0xff);
      accelerated = (file_.flags & 0x8) != 0;
      if (const elf::Section* compat = file_.find(".nv.compat")) {
        constexpr std::uint8_t kAcceleratorTarget = 9;
        PTXBENCH_TRY_ASSIGN(const auto records, read_attributes(compat->bytes, compat->name));
        for (const AttributeRecord& record : records)
          if (record.code == kAcceleratorTarget && record.value == 1) accelerated = true;
      }
    } else if (file_.os_abi == kOsAbiCuda12) {
      cubin_.sm = static_cast<int>(file_.flags & 0xff);
      accelerated = (file_.flags & 0x800) != 0;
    } else {
      return bad("unknown ELF ABI " + std::to_string(file_.os_abi) +
                 "; known are 51 and 65 (CUDA 12 and 13)");
    }
    if (cubin_.sm < 10) return bad("its flags name no architecture");
    cubin_.arch = "sm_" + std::to_string(cubin_.sm) + (accelerated ? "a" : "");
    return {};
  }

  Result<void> read_module_info() {
    const elf::Section* info = file_.find(".nv.info");
    if (info == nullptr) return {};
    PTXBENCH_TRY_ASSIGN(const auto records, read_attributes(info->bytes, info->name));
    for (const AttributeRecord& record : records) {
      std::uint32_t SymbolNumbers::*field = nullptr;
      if (record.is(Attribute::regcount)) field = &SymbolNumbers::registers;
      if (record.is(Attribute::frame_size)) field = &SymbolNumbers::frame;
      if (record.is(Attribute::min_stack_size)) field = &SymbolNumbers::stack;
      if (field == nullptr) continue;
      PTXBENCH_TRY(need_payload(record, 8, info->name));
      numbers_[elf::read32(record.payload, 0)].*field = elf::read32(record.payload, 4);
    }
    return {};
  }

  Result<void> read_symbol(std::uint32_t index) {
    const elf::Symbol& symbol = file_.symbols[index];
    if (symbol.name.empty()) return {};
    if (symbol.section == 0) {
      // .nv.reservedSmem.*: names for what the driver lays out, not something to find elsewhere.
      if (symbol.binding == elf::kBindLocal || symbol.name.substr(0, 4) == ".nv.") return {};
      PTXBENCH_TRY(spend(symbol.name.size()));
      cubin_.undefined.emplace_back(symbol.name);
      if (symbol.name == "malloc" || symbol.name == "free" || symbol.name == "__nv_aligned_device_malloc")
        cubin_.uses_device_heap = true;
      return {};
    }
    if (symbol.section >= file_.sections.size()) return {};  // absolute, common...: no bytes of ours
    const elf::Section& section = file_.sections[symbol.section];
    if (symbol.type == elf::kSymbolFunction && (symbol.other & kSymbolIsEntry) != 0)
      return read_kernel(index, section);
    if (symbol.type == elf::kSymbolObject) return read_global(symbol, section);
    return {};
  }

  Result<void> read_global(const elf::Symbol& symbol, const elf::Section& section) {
    const bool writable = section.name.substr(0, 10) == ".nv.global";
    // Bank 3 has what the source declares __constant__; the other banks are the compiler's and the driver's.
    if (!writable && section.name != ".nv.constant3") return {};
    PTXBENCH_TRY(spend(symbol.name.size()));
    const std::uint64_t start = symbol.value - (symbol.value >= section.address ? section.address : 0);
    if (start > section.size || symbol.size > section.size - start)
      return bad("symbol " + quoted(symbol.name) + " reaches outside its section");
    Global global;
    global.symbol = std::string(symbol.name);
    global.bytes = symbol.size;
    global.writable = writable;
    global.initialised = section.type != elf::kTypeNoBits && section.type != 0;
    if (global.initialised) global.image_offset = section.offset + start;
    cubin_.globals.push_back(std::move(global));
    return {};
  }

  Result<void> read_kernel(std::uint32_t index, const elf::Section& text) {
    const elf::Symbol& symbol = file_.symbols[index];
    const std::string name = quoted(symbol.name);
    if (text.name.substr(0, kTextPrefix.size()) != kTextPrefix || text.bytes.empty())
      return bad("kernel " + name + " has no code");
    Kernel kernel;
    kernel.symbol = std::string(symbol.name);
    if (text.bytes.size() % 16 != 0)
      return bad("the code of kernel " + name + " is not whole instructions of 16 bytes");
    // Functions that the kernel calls are copied into its own section.
    kernel.code_offset = text.offset;
    kernel.code_bytes = text.bytes.size();
    const elf::Section* info = find(".nv.info.", symbol.name);
    if (info == nullptr)
      return bad("kernel " + name + " has no section .nv.info." + std::string(symbol.name));
    PTXBENCH_TRY(spend(symbol.name.size() + info->bytes.size() + text.bytes.size()));
    PTXBENCH_TRY(read_kernel_info(kernel, *info));
    if (const auto found = numbers_.find(index); found != numbers_.end()) {
      const SymbolNumbers& numbers = found->second;
      if (numbers.registers > 255) return bad("kernel " + name + " claims more than 255 registers");
      kernel.registers = static_cast<int>(numbers.registers);
      kernel.local_bytes = std::max(numbers.frame, numbers.stack == 0xffffffff ? 0 : numbers.stack);
    }
    if (const elf::Section* shared = find(".nv.shared.", symbol.name)) {
      kernel.static_shared_bytes = shared->size;
      if (cubin_.sm >= 90 && shared->size >= kReservedShared) kernel.static_shared_bytes -= kReservedShared;
    }
    mark_parameter_reads(cubin_.sm, text.bytes, kernel);
    kernel.uses_dynamic_shared = kernel.static_shared_bytes == 0 && addresses_shared(cubin_.sm, text.bytes);
    cubin_.kernels.push_back(std::move(kernel));
    return {};
  }

  Result<void> read_kernel_info(Kernel& kernel, const elf::Section& info) {
    PTXBENCH_TRY_ASSIGN(const auto records, read_attributes(info.bytes, info.name));
    for (const AttributeRecord& record : records)
      PTXBENCH_TRY(read_kernel_attribute(kernel, record, info.name));
    std::sort(kernel.parameters.begin(), kernel.parameters.end(),
              [](const Parameter& a, const Parameter& b) { return a.ordinal < b.ordinal; });
    for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
      const Parameter& parameter = kernel.parameters[i];
      const std::string which = "parameter " + std::to_string(i) + " of kernel " + quoted(kernel.symbol);
      if (parameter.ordinal != i) return bad(which + " is missing or there twice");
      if (i > 0 && parameter.offset < kernel.parameters[i - 1].offset + kernel.parameters[i - 1].size)
        return bad(which + " overlaps the one before it");
      if (parameter.offset > kernel.parameter_bytes ||
          parameter.size > kernel.parameter_bytes - parameter.offset)
        return bad(which + " reaches outside the parameter buffer of " +
                   std::to_string(kernel.parameter_bytes) + " bytes");
    }
    return {};
  }

  static Result<void> read_kernel_attribute(Kernel& kernel, const AttributeRecord& record,
                                            std::string_view section) {
    const auto word = [&](std::uint64_t i) { return elf::read32(record.payload, 4 * i); };
    const auto triple = [&] { return std::array<std::uint32_t, 3>{word(0), word(1), word(2)}; };
    switch (static_cast<Attribute>(record.code)) {
      case Attribute::max_threads:
        PTXBENCH_TRY(need_payload(record, 12, section));
        kernel.max_block = triple();
        break;
      case Attribute::reqntid:
        PTXBENCH_TRY(need_payload(record, 12, section));
        kernel.required_block = triple();
        break;
      case Attribute::cta_per_cluster:
        PTXBENCH_TRY(need_payload(record, 12, section));
        kernel.required_cluster = triple();
        break;
      case Attribute::max_cluster_rank:
        PTXBENCH_TRY(need_payload(record, 4, section));
        kernel.max_cluster_rank = word(0);
        break;
      case Attribute::explicit_cluster:
        kernel.explicit_cluster = true;
        break;
      case Attribute::blocks_are_clusters:
        kernel.blocks_are_clusters = true;
        break;
      case Attribute::cbank_param_size:
        kernel.parameter_bytes = record.value;
        break;
      case Attribute::param_cbank:
        PTXBENCH_TRY(need_payload(record, 8, section));
        kernel.parameter_base = word(1) & 0xffff;
        break;
      case Attribute::kparam_info:
      case Attribute::kparam_info_v2: {
        PTXBENCH_TRY(need_payload(record, 12, section));
        const bool wide = record.is(Attribute::kparam_info_v2);
        kernel.parameters.push_back(Parameter{word(1) & 0xffff, word(1) >> 16,
                                              wide ? word(2) & 0xffff : word(2) >> 18, std::nullopt});
        break;
      }
      default:
        break;  // about scheduling, tools, workarounds: not our matter
    }
    return {};
  }

  elf::Bytes bytes_;
  std::uint64_t budget_;
  elf::File file_;
  std::unordered_map<std::string_view, const elf::Section*> by_name_;
  std::unordered_map<std::uint32_t, SymbolNumbers> numbers_;
  Cubin cubin_;
};

}  // namespace

Result<Cubin> read_cubin(std::span<const std::uint8_t> file) {
  try {
    return Reader(file).read();
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::no_memory, "cubin: out of memory while reading it");
  }
}

}  // namespace ptxbench::sass
