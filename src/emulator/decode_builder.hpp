// The decoder behind decode.hpp: a kernel under construction. Until slots are allocated registers are virtual: their
// operands lie from kVirtual on, so that they are told from everything else that decoders keep in Emit::operands.
#pragma once

#include "emulator/decode.hpp"

#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ptxbench::emulator {

inline constexpr Operand kVirtual = 0x4000'0000;
inline bool is_virtual(Operand o) { return o >= kVirtual; }
inline std::uint32_t virtual_slot(Operand o) { return static_cast<std::uint32_t>(o - kVirtual) / kLanes; }

// Where a variable lies.
struct Place {
  enum class Kind : std::uint8_t { none, kernel_parameter, local, shared, dynamic_shared, global } kind = Kind::none;
  std::uint64_t address = 0;  // of shared: set when all of them are known
  std::uint64_t bytes = 0;
};

// One function's body, inlined once.
struct Instance {
  const ptx::Function* function = nullptr;
  const Instance* caller = nullptr;
  std::vector<Operand> registers;       // virtual operands; predicates by number
  std::vector<Place> places;            // of its parameters and local variables
  std::uint64_t frame = 0;              // end of its part of the local frame so far
  std::vector<std::uint32_t> first_op;  // by instruction; one more for the end
  std::vector<bool> contractible;       // by instruction (contraction.hpp)
};

// A reference to an op that is known only when the body has been emitted.
struct Fixup {
  std::uint32_t op = 0;           // its imm, or
  std::int64_t table_entry = -1;  // an element of Kernel::branch_tables
  std::uint32_t target = 0;       // instruction of the instance, body.size() the end
};

// What liveness and the graph want to know beside Kernel::ops.
struct DecodedOps {
  std::vector<std::uint8_t> slots;      // by virtual slot: number of slots of the register that begins there; 0 inside
  std::vector<std::uint8_t> exclusive;  // by virtual slot (of the first): wgmma works on it
  // Predicates that an op reads (p) and writes (~p), by op.
  std::vector<std::pair<std::uint32_t, std::int32_t>> predicates;
};

class Builder final : public Decoder {
 public:
  Builder(std::shared_ptr<const ptx::Module> module, const ptx::Function& entry, const SymbolAddresses& symbols);
  Result<std::shared_ptr<const Kernel>> build();

  const ptx::Instruction& instruction() const override { return *instruction_; }
  const ptx::Function& function() const override { return *instance_->function; }
  const ptx::Module& module() const override { return *kernel_->module; }
  Result<void> dst(Emit& e, std::size_t i, unsigned bits, bool relaxed) override;
  Result<void> src(Emit& e, std::size_t i, Ty type, bool relaxed) override;
  Result<std::size_t> dst_vector(Emit& e, std::size_t i, unsigned bits, bool relaxed) override;
  Result<std::size_t> src_vector(Emit& e, std::size_t i, Ty type, bool relaxed) override;
  Result<void> dst(Emit& e, const ptx::Operand& operand, unsigned bits, bool relaxed) override;
  Result<void> src(Emit& e, const ptx::Operand& operand, Ty type, bool relaxed) override;
  Result<Operand> pred_dst(const ptx::Operand& operand) override;
  Result<Operand> pred_src(const ptx::Operand& operand) override;
  Result<Address> address(Emit& e, const ptx::Operand& operand, ptx::Space space) override;
  unsigned register_bits(const ptx::Operand& operand) const override;
  Result<std::int64_t> immediate(std::size_t i) override;
  Result<void> expect_operands(std::size_t from, std::size_t to) override;
  Operand temporary(unsigned bits) override;
  Operand temporary_pred() override;
  Operand carry() override {
    if (carry_ == kNoOperand) carry_ = temporary_pred();
    return carry_;
  }
  Operand constant(std::uint64_t bits, unsigned width) override;
  Result<void> emit(Emit& e, std::string_view family, bool guarded) override;
  Error unsupported(std::string_view what) const override;
  Error bad(std::string_view what) const override;

  // For the decoders of control flow (they know that the Decoder is a Builder).
  Result<void> emit_branch(Emit& e, const ptx::Operand& label, std::string_view family);
  Result<void> emit_branch_table(Emit& e, const std::vector<ptx::Operand>& labels, std::string_view family);
  Result<void> emit_return();
  void mark_setmaxnreg() { kernel_->has_setmaxnreg = true; }

 private:
  enum class PrologueKind : std::uint8_t { shared, parameter };
  struct Prologue {
    PrologueKind kind;
    const ptx::Variable* variable = nullptr;
    std::uint64_t offset = 0;
    unsigned bits = 32;
    bool generic = false;
    Operand destination = 0;
  };

  // decode.cpp
  void decode_body(Instance& instance);
  void decode_instruction();
  Result<void> decode_call();
  Result<void> inline_call(const ptx::Function& callee, const std::vector<ptx::Operand>& returns,
                           const std::vector<ptx::Operand>& arguments);
  Result<void> bind_formal(Instance& callee, std::size_t variable, const ptx::Operand& actual, bool is_return);
  Instance begin_instance(const ptx::Function& function, const Instance* caller);
  void keep(Error error);
  Error gathered() const;
  std::string place() const;
  std::uint32_t push_op(const Emit& e, std::string_view family, bool guarded, bool auxiliary);
  std::uint32_t info_for(std::string_view family, Fidelity fidelity, bool auxiliary);
  void layout_shared();
  void prepend_prologue();
  // An op of the decoder's own, before the instruction's.
  void auxiliary(Handler run, std::vector<Operand> operands, std::uint16_t destinations, std::uint16_t sources,
                 std::int64_t imm, std::uint8_t a = 0, std::uint16_t flags = kNone);

  // decode_operands.cpp
  const ptx::Operand* operand_at(std::size_t i) const;
  Error no_operand(std::size_t i) const;
  Result<Operand> register_operand(const ptx::Operand& operand, unsigned bits, bool relaxed, std::string_view what);
  Result<std::uint64_t> constant_bits(const ptx::Operand& operand, Ty type) const;
  Result<Operand> special_operand(const ptx::Operand& operand, Ty type, bool relaxed);
  Result<Operand> variable_operand(const ptx::Operand& operand, unsigned bits, bool generic);
  const ptx::Variable* variable_of(const ptx::Operand& operand) const;
  Result<Place*> placed(const ptx::Operand& operand);
  Operand hoisted(PrologueKind kind, const ptx::Variable* variable, std::uint64_t offset, unsigned bits, bool generic);
  std::uint64_t local_place(Instance& instance, std::uint64_t bytes, std::uint32_t align);

  std::shared_ptr<Kernel> kernel_;
  const SymbolAddresses& symbols_;
  const ptx::Function& entry_;
  Instance* instance_ = nullptr;
  std::uint32_t index_ = 0;  // of the instruction in its body
  const ptx::Instruction* instruction_ = nullptr;
  bool counted_ = false;     // the instruction has its info
  std::uint32_t auxiliary_info_ = UINT32_MAX;
  std::vector<Fixup> fixups_;  // of the instance being emitted
  std::vector<std::int32_t> pending_predicates_;
  DecodedOps decoded_;
  std::map<std::pair<std::uint64_t, unsigned>, Operand> constants_;
  std::map<const ptx::Variable*, Place> module_places_;  // shared (also those declared in functions) and global
  std::vector<const ptx::Variable*> shared_order_;       // in the order of their first use
  std::vector<Prologue> prologue_;
  std::vector<Error> errors_;
  std::vector<std::pair<std::uint32_t, std::string>> error_keys_;
  std::uint64_t local_end_ = 0;
  bool too_large_ = false;
  Operand carry_ = kNoOperand;  // the condition code of add.cc and its kin
};

// cfg.cpp: ranks and spin loops. liveness.cpp: slots.
struct BasicBlock {
  std::uint32_t begin = 0, end = 0;  // ops
  std::vector<std::uint32_t> successors;
};
struct Graph {
  std::vector<BasicBlock> blocks;
  std::vector<std::uint32_t> block_of;           // by op
  std::vector<std::uint32_t> order;              // blocks: loops lie together, each behind what leads to it
  std::vector<std::vector<std::uint32_t>> loops; // blocks of each, inner ones too; head first
};
Graph build_graph(const Kernel& kernel);
void rank_ops(Kernel& kernel, const Graph& graph);
void find_spin_loops(Kernel& kernel, const Graph& graph, const DecodedOps& decoded);
// Gives slots to virtual registers; rewrites Kernel::operands, sets slot_words and kMayBeInFlight.
void allocate_slots(Kernel& kernel, const Graph& graph, const DecodedOps& decoded);
// Operands of op @p i: [first, last) in Kernel::operands.
inline std::pair<std::uint32_t, std::uint32_t> operand_range(const Kernel& k, std::size_t i) {
  const std::uint32_t last =
      i + 1 < k.ops.size() ? k.ops[i + 1].first_operand : static_cast<std::uint32_t>(k.operands.size());
  return {k.ops[i].first_operand, last};
}

}  // namespace ptxbench::emulator
