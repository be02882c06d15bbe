#include "compile/include_closure.hpp"
#include "emulator/modules.hpp"

#include <ptxbench/sass.hpp>

#include <algorithm>
#include <cstring>
#include <set>

namespace ptxbench::emulator {
namespace {

bool in_device_memory(const ptx::Variable& variable) {
  return variable.space == ptx::Space::global || variable.space == ptx::Space::constant;
}

// Which parameters a body names: those that no code reads may be left out of a plan.
void note_parameters(const ptx::Operand& operand, std::uint32_t count, std::set<std::uint32_t>& named) {
  if (operand.kind == ptx::Operand::Kind::variable && !operand.module_scope && operand.index < count)
    named.insert(operand.index);
  for (const ptx::Operand& part : operand.parts) note_parameters(part, count, named);
}

// An upper bound of the registers that an assembler may give to a thread, from what the code promises; 0 where it
// promises nothing.
int register_bound(const ptx::Function& function) {
  constexpr std::uint64_t kPerCta = 65536, kMost = 255;
  if (function.max_registers) return static_cast<int>(std::min<std::uint64_t>(*function.max_registers, kMost));
  const auto& block = function.required_block ? function.required_block : function.max_block;
  if (!block) return 0;
  std::uint64_t threads = 1;
  for (const std::uint32_t extent : *block) threads = std::min<std::uint64_t>(threads * std::max(extent, 1u), 1024);
  threads = (threads + 127) / 128 * 128;  // warps are given registers in fours
  const std::uint64_t ctas = std::max(function.min_ctas_per_sm.value_or(1), 1u);
  return static_cast<int>(std::min(kPerCta / (threads * ctas) / 8 * 8, kMost));
}

KernelInfo kernel_of(const ptx::Function& function, std::uint64_t module_shared_bytes) {
  KernelInfo info;
  info.symbol = function.name;
  std::set<std::uint32_t> named;
  for (const ptx::Instruction& instruction : function.body)
    for (const ptx::Operand& operand : instruction.operands) note_parameters(operand, function.parameter_count, named);
  std::uint32_t end = 0;
  for (std::uint32_t i = 0; i < function.parameter_count && i < function.variables.size(); ++i) {
    const ptx::Variable& parameter = function.variables[i];
    const std::uint32_t offset = parameter_offset(end, parameter);
    info.parameters.push_back({offset, static_cast<std::uint32_t>(parameter.bytes), named.count(i) != 0});
    end = offset + static_cast<std::uint32_t>(parameter.bytes);
  }
  info.parameter_bytes = end;
  info.registers = register_bound(function);
  std::uint64_t shared = module_shared_bytes;
  for (const ptx::Variable& variable : function.variables)
    if (variable.space == ptx::Space::shared && !variable.external)
      shared = (shared + variable.align - 1) / variable.align * variable.align + variable.bytes;
  info.static_shared_bytes = shared;
  info.required_block = function.required_block;
  info.max_block = function.max_block;
  info.required_cluster = function.required_cluster;
  info.explicit_cluster = function.explicit_cluster;
  return info;
}

// Text that an assembler took is not wrong, whatever is thought of it here.
Error not_known_here(Error error) {
  error.code = ErrorCode::unsupported;
  error.message = "the emulator does not understand this PTX, which the assembler accepts: " + error.message;
  return error;
}

}  // namespace

std::uint32_t parameter_offset(std::uint32_t end_of_last, const ptx::Variable& parameter) noexcept {
  const std::uint32_t align = std::max(parameter.align, 1u);
  return (end_of_last + align - 1) / align * align;
}

MemoryLabel label_of(const ptx::Variable& variable) {
  MemoryLabel label;
  label.role = MemoryLabel::Role::variable;
  label.name = variable.name;
  switch (variable.type) {
    case ptx::Type::u16: case ptx::Type::b16: label.dtype = DType::uint16; break;
    case ptx::Type::s16: label.dtype = DType::int16; break;
    case ptx::Type::u32: case ptx::Type::b32: label.dtype = DType::uint32; break;
    case ptx::Type::s32: label.dtype = DType::int32; break;
    case ptx::Type::u64: case ptx::Type::b64: label.dtype = DType::uint64; break;
    case ptx::Type::s64: label.dtype = DType::int64; break;
    case ptx::Type::f16: label.dtype = DType::float16; break;
    case ptx::Type::bf16: label.dtype = DType::bfloat16; break;
    case ptx::Type::f32: label.dtype = DType::float32; break;
    case ptx::Type::f64: label.dtype = DType::float64; break;
    default: break;
  }
  const std::uint64_t size = static_cast<std::uint64_t>(dtype_bits(label.dtype)) / 8;
  if (variable.bytes > size) label.shape = {static_cast<std::int64_t>(variable.bytes / size)};
  return label;
}

Result<std::unique_ptr<LoadedModule>> LoadedModule::load(Memory& memory, const ModuleImage& image) {
  if (image.ptx.empty())
    return make_error(ErrorCode::unsupported,
                      image.source + " has no PTX, only machine code (a cubin); the emulator runs PTX: hand in the .cu or "
                                     ".ptx that it was made from, or judge on a GPU");
  std::unique_ptr<LoadedModule> loaded(new LoadedModule(memory));
  loaded->source_ = image.source;
  loaded->assembled_ = !image.cubin.empty();
  Result<ptx::Module> parsed = ptx::parse(image.ptx, image.source);
  if (!parsed) return loaded->assembled_ ? not_known_here(std::move(parsed).error()) : std::move(parsed).error();
  // NVRTC's virtual folder of the candidate: its files go by the names that the candidate gave them.
  for (ptx::SourceFile& file : parsed->files)
    if (file.path.starts_with(kCandidateRoot)) file.path.erase(0, kCandidateRoot.size());
  if (parsed->address_bits != 64)
    return make_error(ErrorCode::unsupported, image.source + " has addresses of " +
                                                  std::to_string(parsed->address_bits) + " bits; the emulator runs 64-bit code");
  loaded->module_ = std::make_shared<const ptx::Module>(std::move(*parsed));
  PTXBENCH_TRY(loaded->place());
  PTXBENCH_TRY(loaded->initialise());
  loaded->describe(image);
  return loaded;
}

LoadedModule::~LoadedModule() {
  for (const auto& [name, buffer] : variables_) memory_.release(buffer.address);
}

Result<void> LoadedModule::place() {
  for (const ptx::Variable& variable : module_->variables) {
    if (!in_device_memory(variable) || variables_.count(variable.name) != 0) continue;
    if (variable.external) {
      const bool defined = std::any_of(module_->variables.begin(), module_->variables.end(), [&](const ptx::Variable& other) {
        return &other != &variable && other.name == variable.name && !other.external;
      });
      if (defined) continue;  // placed where it is defined
      return make_error(ErrorCode::invalid_argument,
                        "the variable " + variable.name + " is declared extern and defined nowhere; there is no linking",
                        {source_, {}, static_cast<int>(variable.where.line), 0});
    }
    if (variable.align > 256)
      return make_error(ErrorCode::unsupported,
                        "the variable " + variable.name + " is aligned to " + std::to_string(variable.align) +
                            " bytes; the emulator places variables at multiples of 256",
                        {source_, {}, static_cast<int>(variable.where.line), 0});
    PTXBENCH_TRY_ASSIGN(const std::uint64_t address,
                        memory_.allocate(std::max<std::uint64_t>(variable.bytes, 1), variable.space == ptx::Space::constant));
    variables_.emplace(variable.name, DeviceBuffer{address, variable.bytes});
    if (variable.bytes != 0) memory_.name(address, variable.bytes, label_of(variable));
  }
  return {};
}

Result<void> LoadedModule::initialise() {
  for (const ptx::Variable& variable : module_->variables) {
    const auto found = variables_.find(variable.name);
    if (!in_device_memory(variable) || variable.external || found == variables_.end() || variable.bytes == 0) continue;
    std::uint8_t* to = memory_.host(found->second.address, variable.bytes);
    if (to == nullptr) return make_error(ErrorCode::internal, "the variable " + variable.name + " has no memory");
    std::copy_n(variable.init.data(), std::min<std::uint64_t>(variable.init.size(), variable.bytes), to);
    for (const ptx::Relocation& relocation : variable.relocations) {
      // The address of a function stays zero: nothing here calls through memory.
      std::uint64_t value = 0;
      if (const auto symbol = variables_.find(relocation.symbol); symbol != variables_.end()) {
        value = symbol->second.address + static_cast<std::uint64_t>(relocation.addend);
      } else if (module_->find(relocation.symbol) == nullptr) {
        return make_error(ErrorCode::invalid_argument,
                          "the initial value of " + variable.name + " names " + relocation.symbol +
                              ", which is no variable in global or constant memory of this module",
                          {source_, {}, static_cast<int>(variable.where.line), 0});
      }
      if (relocation.mask != 0) {
        unsigned shift = 0;
        while ((relocation.mask >> shift & 0xff) == 0) shift += 8;
        value = (value & relocation.mask) >> shift;
      }
      if (relocation.offset > variable.bytes || relocation.bytes > 8 || relocation.bytes > variable.bytes - relocation.offset)
        return make_error(ErrorCode::internal, "a relocation lies outside of " + variable.name);
      std::memcpy(to + relocation.offset, &value, relocation.bytes);
    }
  }
  return {};
}

void LoadedModule::describe(const ModuleImage& image) {
  info_.source = source_;
  info_.lowered = image.lowered;
  std::uint64_t module_shared = 0;  // of the module's scope: every kernel has it
  for (const ptx::Variable& variable : module_->variables)
    if (variable.space == ptx::Space::shared && !variable.external)
      module_shared = (module_shared + variable.align - 1) / variable.align * variable.align + variable.bytes;
  for (const ptx::Function& function : module_->functions)
    if (function.entry && !function.declared_only) info_.kernels.push_back(kernel_of(function, module_shared));
  // What the assembler really gave; its cubin says.
  if (!image.cubin.empty())
    if (const Result<sass::Cubin> cubin = sass::read_cubin(image.cubin))
      for (const sass::Kernel& kernel : cubin->kernels)
        for (KernelInfo& info : info_.kernels)
          if (info.symbol == kernel.symbol) {
            info.registers = kernel.registers;
            info.static_shared_bytes = kernel.static_shared_bytes;
          }
  for (const ptx::Variable& variable : module_->variables)
    if (in_device_memory(variable) && !variable.external) info_.globals.push_back({variable.name, variable.bytes});
}

const KernelInfo* LoadedModule::find(std::string_view symbol) const noexcept {
  for (const KernelInfo& kernel : info_.kernels)
    if (kernel.symbol == symbol) return &kernel;
  return nullptr;
}

std::optional<DeviceBuffer> LoadedModule::variable(std::string_view symbol) const {
  const auto found = variables_.find(symbol);
  if (found == variables_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::uint64_t> LoadedModule::address(const ptx::Variable& variable) const {
  const std::optional<DeviceBuffer> place = this->variable(variable.name);
  if (!place) return std::nullopt;
  return place->address;
}

Result<std::shared_ptr<const Kernel>> LoadedModule::kernel(std::string_view symbol) {
  if (const auto found = decoded_.find(symbol); found != decoded_.end()) return found->second;
  const ptx::Function* function = module_->find(symbol);
  if (function == nullptr || !function->entry || function->declared_only)
    return make_error(ErrorCode::not_found, source_ + " has no kernel " + std::string(symbol));
  Result<std::shared_ptr<const Kernel>> decoded = decode_kernel(module_, *function, *this);
  if (!decoded) {
    Error error = std::move(decoded).error();
    if (error.where.file.empty()) error.where.file = source_;
    if (assembled_ && error.code == ErrorCode::parse) return not_known_here(std::move(error));
    return error;
  }
  decoded_.emplace(symbol, *decoded);
  return *decoded;
}

}  // namespace ptxbench::emulator
