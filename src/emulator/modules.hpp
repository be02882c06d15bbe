// A PTX module loaded into emulated memory: its variables have places, its kernels are described at once and decoded
// when somebody wants to run them.
#pragma once

#include "emulator/decode.hpp"
#include "emulator/memory.hpp"

#include <ptxbench/device.hpp>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ptxbench::emulator {

class LoadedModule final : public SymbolAddresses {
 public:
  // Parses and places. What PTX itself forbids is ErrorCode::parse (or invalid_argument: a symbol that is nowhere); what
  // only this emulator does not know, ErrorCode::unsupported. Text that an assembler has accepted (there is a cubin
  // beside it) is never called wrong.
  static Result<std::unique_ptr<LoadedModule>> load(Memory& memory, const ModuleImage& image);
  ~LoadedModule() override;
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  const ModuleInfo& info() const { return info_; }
  const KernelInfo* find(std::string_view symbol) const noexcept;
  // Where a variable of the module lies; nothing where there is none of that name.
  std::optional<DeviceBuffer> variable(std::string_view symbol) const;
  std::optional<std::uint64_t> address(const ptx::Variable& variable) const override;
  // The kernel decoded; the first call does it. @p symbol exists.
  Result<std::shared_ptr<const Kernel>> kernel(std::string_view symbol);

 private:
  explicit LoadedModule(Memory& memory) : memory_(memory) {}
  Result<void> place();
  Result<void> initialise();
  void describe(const ModuleImage& image);

  Memory& memory_;
  std::string source_;
  bool assembled_ = false;  // an assembler has accepted the text
  std::shared_ptr<const ptx::Module> module_;
  std::map<std::string, DeviceBuffer, std::less<>> variables_;
  std::map<std::string, std::shared_ptr<const Kernel>, std::less<>> decoded_;
  ModuleInfo info_;
};

// A variable's place in a parameter buffer: PTX aligns each as it says, without more.
std::uint32_t parameter_offset(std::uint32_t end_of_last, const ptx::Variable& parameter) noexcept;

// Bytes as a label names them: the element type that PTX declares, where a dtype is like it.
MemoryLabel label_of(const ptx::Variable& variable);

}  // namespace ptxbench::emulator
