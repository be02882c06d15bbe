// From PTX instructions to operations. Each family of instructions has a file op_<family>.cpp with handlers and one
// function `void register_<family>(InstructionTable&)`, called by instruction_table.cpp, that says which opcodes it
// decodes. A decoder reads modifiers as a set, asks for its operands in the widths it wants, and emits one op.
//
//   Result<void> decode_add(Decoder& d) {
//     Modifiers m(d.instruction());                       // .sat .s32
//     const bool saturate = m.take("sat");
//     PTXBENCH_TRY_ASSIGN(const Ty type, m.type());        // the last type modifier
//     PTXBENCH_TRY(m.finish(d));                          // an unknown modifier is an error that names it
//     PTXBENCH_TRY(d.expect_operands(3));
//     Emit e;
//     PTXBENCH_TRY(d.dst(e, 0, 32));
//     PTXBENCH_TRY(d.src(e, 1, type));
//     PTXBENCH_TRY(d.src(e, 2, type));
//     e.flags = kPropagate; e.run = ...;
//     return d.emit(e, "int");
//   }
#pragma once

#include "emulator/kernel.hpp"

#include <ptxbench/core.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxbench::emulator {

// Types as instruction modifiers spell them.
enum class Ty : std::uint8_t { none, pred, b8, b16, b32, b64, b128, u8, u16, u32, u64, s8, s16, s32, s64,
                               f16, f16x2, bf16, bf16x2, tf32, f32, f32x2, f64, e4m3, e5m2, e4m3x2, e5m2x2 };
unsigned ty_bits(Ty type) noexcept;       // of one operand: e4m3x2 16, f16x2 32, tf32 32
std::optional<Ty> ty_named(std::string_view name) noexcept;
std::string_view ty_name(Ty type) noexcept;

// The modifiers of one instruction, taken one by one; order never matters but for those that repeat.
class Modifiers {
 public:
  explicit Modifiers(const ptx::Instruction& instruction);
  bool take(std::string_view name);                                    // true and gone if it is there
  // The first of @p names that is there, as its index; -1 where none is.
  int take_one(std::initializer_list<std::string_view> names);
  std::optional<std::string_view> take_prefix(std::string_view prefix); // "L2::" takes "L2::cache_hint" whole
  // Types in their order; type() takes the last one that is left, types() all. An error where there is none.
  Result<Ty> type();
  std::vector<Ty> types();
  // Modifiers that are left are an error: "add.s32: unknown modifier .foo".
  Result<void> finish(const class Decoder& decoder) const;
  const std::vector<std::string_view>& rest() const { return rest_; }

 private:
  std::vector<std::string_view> rest_;
};

// An op under construction.
struct Emit {
  Handler run = nullptr;
  std::uint16_t flags = kPropagate;
  std::uint8_t a = 0, b = 0, c = 0, d = 0;
  std::int64_t imm = 0;
  Fidelity fidelity = Fidelity::exact;
  std::vector<Operand> operands;
  std::uint16_t destinations = 0, sources = 0;
};

// Memory operand [base + offset]: the base is in the op's operands, the offset in Emit::imm.
struct Address {
  bool wide = false;          // the base has 64 bits
  // Where it lies after all. Parameters and results of calls lie in the thread's local frame: for these
  // `ld.param`/`st.param` get Space::local. A kernel's own parameters are Space::param: offsets from Grid::parameters.
  ptx::Space space = ptx::Space::generic;
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual const ptx::Instruction& instruction() const = 0;
  virtual const ptx::Function& function() const = 0;
  virtual const ptx::Module& module() const = 0;

  // Operand number @p i of the instruction (0 the first) appended to e.operands. Destinations must all come before
  // sources. `bits`: 8, 16 -> a 32-bit lane; 32; 64; 128. A register of another size is an error unless PTX allows it
  // there (ld, st, cvt may name wider registers: `relaxed`).
  virtual Result<void> dst(Emit& e, std::size_t i, unsigned bits, bool relaxed = false) = 0;
  // Immediates are converted to the type (f32 from 0f or decimal; f16/bf16/f64 likewise; integers sign- or
  // zero-extended, truncated), special registers and addresses of variables are read by ops emitted before this one.
  virtual Result<void> src(Emit& e, std::size_t i, Ty type, bool relaxed = false) = 0;
  // All elements of a vector operand ({a,b,c,d}; a plain one counts as one). `_` in a destination gives kNoOperand.
  virtual Result<std::size_t> dst_vector(Emit& e, std::size_t i, unsigned bits, bool relaxed = false) = 0;
  virtual Result<std::size_t> src_vector(Emit& e, std::size_t i, Ty type, bool relaxed = false) = 0;
  // The same for an Operand of the parsed instruction itself (an element of a vector, a tensor operand's part).
  virtual Result<void> dst(Emit& e, const ptx::Operand& operand, unsigned bits, bool relaxed = false) = 0;
  virtual Result<void> src(Emit& e, const ptx::Operand& operand, Ty type, bool relaxed = false) = 0;
  // Predicates: indices (see Operand); a negated source gets an op before it. They are no register sources or
  // destinations (Emit::sources, destinations do not count them). kNoOperand for `_`.
  virtual Result<Operand> pred_dst(const ptx::Operand& operand) = 0;
  virtual Result<Operand> pred_src(const ptx::Operand& operand) = 0;
  // [base + offset] of @p space: appends the base as a source, sets e.imm. Variables and constants are resolved: shared
  // ones with the CTA's rank in bits 24 and up. A map or mbarrier operand is an address too.
  virtual Result<Address> address(Emit& e, const ptx::Operand& operand, ptx::Space space) = 0;
  // Bits of a register operand as it was declared (a predicate: 1); 0 where the operand is no register.
  virtual unsigned register_bits(const ptx::Operand& operand) const = 0;
  // An immediate; an error where the operand is none.
  virtual Result<std::int64_t> immediate(std::size_t i) = 0;
  virtual Result<void> expect_operands(std::size_t from, std::size_t to = 0) = 0;
  // A temporary of its own, for decoders that emit several ops.
  virtual Operand temporary(unsigned bits) = 0;
  virtual Operand temporary_pred() = 0;
  // The predicate that holds the condition code (CC.CF): one a kernel, live from add.cc, sub.cc, mad.cc and the like to
  // the addc, subc, madc behind. Undefined until written. It has a place of its own, never shared.
  virtual Operand carry() = 0;
  virtual Operand constant(std::uint64_t bits, unsigned width) = 0;

  // Adds the op, under the instruction's guard unless told otherwise. @p family: the counter's. Only the first op that
  // an instruction emits is counted as this instruction.
  virtual Result<void> emit(Emit& e, std::string_view family, bool guarded = true) = 0;
  // An Error of code unsupported that names instruction, PTX line and CUDA line. All of a kernel are gathered.
  virtual Error unsupported(std::string_view what) const = 0;
  // An Error of code parse: the instruction is known, its use is wrong.
  virtual Error bad(std::string_view what) const = 0;
};

using DecodeFunction = Result<void> (*)(Decoder&);
// Opcode and, where it decides, the first modifier ("cp.async", "cp", "mbarrier.try_wait"): longest match wins, of
// opcode + "." + modifiers in their order.
class InstructionTable {
 public:
  void add(std::string_view opcode, DecodeFunction decode);
  DecodeFunction find(const ptx::Instruction& instruction) const;
  // Functions without a body are instructions too: "call:vprintf". Their decoder sees the call instruction; its arguments
  // are variables in local memory, which Decoder::address(e, argument, ptx::Space::param) resolves.
  DecodeFunction find(std::string_view name) const;

 private:
  std::map<std::string, DecodeFunction, std::less<>> entries_;
};
const InstructionTable& instruction_table();  // built once, immutable

// What loading needs to know of memory: where the module's variables lie.
class SymbolAddresses {
 public:
  virtual ~SymbolAddresses() = default;
  virtual std::optional<std::uint64_t> address(const ptx::Variable& variable) const = 0;
};

// Everything about @p entry that it cannot decode: one Error of code unsupported that lists the instructions (at most
// 20), or parse where the text is wrong.
Result<std::shared_ptr<const Kernel>> decode_kernel(std::shared_ptr<const ptx::Module> module, const ptx::Function& entry,
                                                    const SymbolAddresses& symbols);

}  // namespace ptxbench::emulator
