// A kernel from its PTX: bodies emitted one after the other, calls inlined, branches and shared variables resolved at the
// end, then ranks and slots.
#include "emulator/contraction.hpp"
#include "emulator/control.hpp"
#include "emulator/decode_builder.hpp"

#include <algorithm>
#include <new>

namespace ptxbench::emulator {
namespace {

constexpr std::size_t kMaxOps = 1'000'000;  // a text whose calls blow up by inlining ends here
constexpr std::size_t kListed = 20;         // instructions that an error lists

std::uint64_t align_up(std::uint64_t value, std::uint64_t align) {
  return align <= 1 ? value : (value + align - 1) / align * align;
}

}  // namespace

Builder::Builder(std::shared_ptr<const ptx::Module> module, const ptx::Function& entry, const SymbolAddresses& symbols)
    : kernel_(std::make_shared<Kernel>()), symbols_(symbols), entry_(entry) {
  kernel_->module = std::move(module);
  kernel_->function = &entry;
  kernel_->name = entry.name;
}

std::string Builder::place() const {
  std::string text = "PTX line " + std::to_string(instruction_->where.line);
  const std::string source = kernel_->module->source_line(instruction_->location);
  if (!source.empty()) text += " (" + source + ")";
  return text;
}

Error Builder::unsupported(std::string_view what) const {
  Error e = make_error(ErrorCode::unsupported, place() + ": " + instruction_->text() + ": " + std::string(what));
  e.where.line = static_cast<int>(instruction_->where.line);
  e.where.column = static_cast<int>(instruction_->where.column);
  return e;
}

Error Builder::bad(std::string_view what) const {
  Error e = unsupported(what);
  e.code = ErrorCode::parse;
  return e;
}

void Builder::keep(Error error) {
  if (error.where.line == 0) {  // from a helper that does not know the place
    const ErrorCode code = error.code;
    error = code == ErrorCode::parse ? bad(error.message) : unsupported(error.message);
    error.code = code;
  }
  // A function that is inlined twice has its faults once.
  std::pair<std::uint32_t, std::string> key(static_cast<std::uint32_t>(error.where.line), error.message);
  if (std::find(error_keys_.begin(), error_keys_.end(), key) != error_keys_.end()) return;
  if (error_keys_.size() < 1000) error_keys_.push_back(std::move(key));
  errors_.push_back(std::move(error));
}

Error Builder::gathered() const {
  const auto parse = std::find_if(errors_.begin(), errors_.end(), [](const Error& e) { return e.code == ErrorCode::parse; });
  Error all = make_error(parse != errors_.end() ? ErrorCode::parse : ErrorCode::unsupported,
                         "kernel " + kernel_->name + ": " + std::to_string(errors_.size()) +
                             (errors_.size() == 1 ? " instruction" : " instructions") +
                             (parse != errors_.end() ? " cannot be decoded" : " not supported by the emulator"));
  all.where = parse != errors_.end() ? parse->where : errors_.front().where;
  for (std::size_t i = 0; i < errors_.size() && i < kListed; ++i) all.message += "\n  " + errors_[i].message;
  if (errors_.size() > kListed) all.message += "\n  and " + std::to_string(errors_.size() - kListed) + " more";
  return all;
}

// --- emission ---------------------------------------------------------------------------------------------------

std::uint32_t Builder::info_for(std::string_view family, Fidelity fidelity, bool auxiliary) {
  if (auxiliary && auxiliary_info_ != UINT32_MAX) return auxiliary_info_;
  OpInfo info;
  info.text = instruction_->text();
  if (!auxiliary) info.family = family;
  info.fidelity = fidelity;
  if (!auxiliary && fidelity == Fidelity::exact && index_ < instance_->contractible.size() && instance_->contractible[index_])
    info.fidelity = Fidelity::ptxas;
  info.where = instruction_->where;
  info.location = instruction_->location;
  if (instance_->caller != nullptr) info.function = instance_->function->name;
  const auto index = static_cast<std::uint32_t>(kernel_->info.size());
  kernel_->info.push_back(std::move(info));
  if (auxiliary) auxiliary_info_ = index;
  return index;
}

std::uint32_t Builder::push_op(const Emit& e, std::string_view family, bool guarded, bool auxiliary) {
  if (kernel_->ops.size() >= kMaxOps) too_large_ = true;
  Op op;
  op.run = e.run;
  op.first_operand = static_cast<std::uint32_t>(kernel_->operands.size());
  op.destinations = e.destinations;
  op.sources = e.sources;
  op.flags = e.flags;
  op.a = e.a, op.b = e.b, op.c = e.c, op.d = e.d;
  op.imm = e.imm;
  const auto index = static_cast<std::uint32_t>(kernel_->ops.size());
  if (guarded && instruction_->guard) {
    op.guard = instance_->registers[instruction_->guard->reg];
    op.guard_negated = instruction_->guard->negated;
    decoded_.predicates.emplace_back(index, op.guard);
  }
  op.info = info_for(family, e.fidelity, auxiliary);
  kernel_->operands.insert(kernel_->operands.end(), e.operands.begin(), e.operands.end());
  if (e.flags & kAsync) kernel_->any_async = true;
  if (e.flags & kCommunicates) kernel_->communicates = true;
  // bar.warp.sync keeps the lanes of one warp together: it has no side effect.
  const bool waits = instruction_->opcode == "bar" || instruction_->opcode == "barrier";
  if ((waits && (e.flags & kSideEffect)) || (e.flags & kCommunicates)) kernel_->shares = true;
  if (instruction_->opcode == "wgmma" && (e.flags & kAsync))
    for (const Operand o : e.operands)
      if (is_virtual(o) && decoded_.slots[virtual_slot(o)] == 1) decoded_.exclusive[virtual_slot(o)] = 1;
  kernel_->ops.push_back(op);
  return index;
}

void Builder::auxiliary(Handler run, std::vector<Operand> operands, std::uint16_t destinations, std::uint16_t sources,
                        std::int64_t imm, std::uint8_t a, std::uint16_t flags) {
  Emit e;
  e.run = run;
  e.flags = flags;
  e.operands = std::move(operands);
  e.destinations = destinations;
  e.sources = sources;
  e.imm = imm;
  e.a = a;
  push_op(e, "", false, true);
}

Result<void> Builder::emit(Emit& e, std::string_view family, bool guarded) {
  if (e.run == nullptr) return unsupported("has no handler");
  const auto index = static_cast<std::uint32_t>(kernel_->ops.size());
  for (const std::int32_t p : pending_predicates_) decoded_.predicates.emplace_back(index, p);
  pending_predicates_.clear();
  push_op(e, family, guarded, counted_);
  counted_ = true;
  return {};
}

Result<void> Builder::emit_branch(Emit& e, const ptx::Operand& label, std::string_view family) {
  if (label.kind != ptx::Operand::Kind::label) return bad("the target is no label");
  fixups_.push_back({static_cast<std::uint32_t>(kernel_->ops.size()), -1, label.index});
  return emit(e, family, true);
}

Result<void> Builder::emit_branch_table(Emit& e, const std::vector<ptx::Operand>& labels, std::string_view family) {
  e.imm = static_cast<std::int64_t>(kernel_->branch_tables.size());
  kernel_->branch_tables.push_back(static_cast<std::uint32_t>(labels.size()));
  for (const ptx::Operand& label : labels) {
    if (label.kind != ptx::Operand::Kind::label) return bad("the table of targets has something that is no label");
    fixups_.push_back({0, static_cast<std::int64_t>(kernel_->branch_tables.size()), label.index});
    kernel_->branch_tables.push_back(0);
  }
  return emit(e, family, true);
}

Result<void> Builder::emit_return() {
  Emit e;
  if (instance_->caller == nullptr) {
    e.run = op_exit;
    e.flags = kSideEffect;
    return emit(e, "control", true);
  }
  e.run = op_branch;
  e.flags = kBranch;
  fixups_.push_back({static_cast<std::uint32_t>(kernel_->ops.size()), -1,
                     static_cast<std::uint32_t>(instance_->function->body.size())});
  return emit(e, "control", true);
}

// --- bodies -----------------------------------------------------------------------------------------------------

Instance Builder::begin_instance(const ptx::Function& function, const Instance* caller) {
  Instance instance;
  instance.function = &function;
  instance.caller = caller;
  instance.frame = caller != nullptr ? caller->frame : 0;
  instance.places.resize(function.variables.size());
  instance.registers.reserve(function.registers.size());
  for (const ptx::Register& r : function.registers)
    instance.registers.push_back(r.type == ptx::Type::pred ? temporary_pred() : temporary(ptx::type_bits(r.type)));
  // All local variables now: what is called from here lies behind all of them.
  for (std::size_t i = function.parameter_count + function.return_count; i < function.variables.size(); ++i) {
    const ptx::Variable& v = function.variables[i];
    if (v.space != ptx::Space::local && v.space != ptx::Space::param) continue;
    instance.places[i] = {Place::Kind::local, local_place(instance, v.bytes, v.align), v.bytes};
    if (v.space == ptx::Space::local)
      kernel_->placed.push_back({v.name, ptx::Space::local, instance.places[i].address, v.bytes});
  }
  return instance;
}

void Builder::decode_body(Instance& instance) {
  Instance* const outer = std::exchange(instance_, &instance);
  std::vector<Fixup> fixups = std::exchange(fixups_, {});
  const ptx::Instruction* const outer_instruction = instruction_;
  const std::uint32_t outer_index = index_;
  const std::vector<ptx::Instruction>& body = instance.function->body;
  instance.first_op.resize(body.size() + 1);
  instance.contractible = contractible(*instance.function);
  for (std::uint32_t i = 0; i < body.size() && !too_large_; ++i) {
    index_ = i;
    instruction_ = &body[i];
    instance.first_op[i] = static_cast<std::uint32_t>(kernel_->ops.size());
    decode_instruction();
  }
  instance.first_op[body.size()] = static_cast<std::uint32_t>(kernel_->ops.size());
  for (const Fixup& f : fixups_) {
    const std::uint32_t target = instance.first_op[std::min<std::size_t>(f.target, body.size())];
    if (f.table_entry >= 0)
      kernel_->branch_tables[static_cast<std::size_t>(f.table_entry)] = target;
    else
      kernel_->ops[f.op].imm = target;
  }
  fixups_ = std::move(fixups);
  instance_ = outer;
  instruction_ = outer_instruction;
  index_ = outer_index;
}

void Builder::decode_instruction() {
  counted_ = false;
  auxiliary_info_ = UINT32_MAX;
  pending_predicates_.clear();
  Result<void> result;
  if (instruction_->opcode == "call") {
    result = decode_call();
  } else if (const DecodeFunction decode = instruction_table().find(*instruction_)) {
    result = decode(*this);
  } else {
    result = unsupported("unknown instruction");
  }
  if (!result) keep(std::move(result).error());
}

Result<void> Builder::decode_call() {
  using Kind = ptx::Operand::Kind;
  const std::vector<ptx::Operand>& operands = instruction_->operands;
  std::size_t at = 0;
  std::vector<ptx::Operand> returns, arguments;
  if (at < operands.size() && operands[at].kind == Kind::list) returns = operands[at++].parts;
  if (at >= operands.size()) return bad("a call needs a function");
  if (operands[at].kind != Kind::function) return unsupported("an indirect call");
  const ptx::Function* callee = &module().functions[operands[at++].index];
  if (at < operands.size() && operands[at].kind == Kind::list) arguments = operands[at].parts;
  if (callee->declared_only)
    for (const ptx::Function& f : module().functions)
      if (f.name == callee->name && !f.declared_only) callee = &f;
  if (callee->declared_only) {
    if (const DecodeFunction decode = instruction_table().find("call:" + callee->name)) return decode(*this);
    return unsupported("the function " + callee->name + " has no body");
  }
  if (callee->entry) return bad("a kernel cannot be called");
  unsigned depth = 0;
  for (const Instance* i = instance_; i != nullptr; i = i->caller, ++depth)
    if (i->function == callee || depth > 256) return unsupported("the recursive function " + callee->name);
  return inline_call(*callee, returns, arguments);
}

Result<void> Builder::inline_call(const ptx::Function& callee, const std::vector<ptx::Operand>& returns,
                                  const std::vector<ptx::Operand>& arguments) {
  if (arguments.size() != callee.parameter_count || returns.size() != callee.return_count)
    return bad("the function " + callee.name + " has " + std::to_string(callee.parameter_count) + " parameters and " +
               std::to_string(callee.return_count) + " results");
  // The call itself, as an instruction that is counted; with a guard, a branch around the body.
  Emit call;
  call.flags = kNone;
  call.run = op_nop;
  PTXBENCH_TRY(emit(call, "control", true));
  std::uint32_t around = UINT32_MAX;
  if (instruction_->guard) {
    Emit e;
    e.flags = kBranch;
    e.run = op_branch;
    around = push_op(e, "", true, true);
    kernel_->ops[around].guard_negated = !kernel_->ops[around].guard_negated;
  }
  Instance inlined = begin_instance(callee, instance_);
  for (std::size_t i = 0; i < arguments.size(); ++i) PTXBENCH_TRY(bind_formal(inlined, i, arguments[i], false));
  for (std::size_t i = 0; i < returns.size(); ++i)
    PTXBENCH_TRY(bind_formal(inlined, callee.parameter_count + i, returns[i], true));
  decode_body(inlined);
  // What follows belongs to the call again.
  counted_ = true;
  auxiliary_info_ = UINT32_MAX;
  for (std::size_t i = 0; i < returns.size(); ++i) {
    if (returns[i].kind != ptx::Operand::Kind::reg) continue;
    const Place& place = inlined.places[callee.parameter_count + i];
    const unsigned bits = static_cast<unsigned>(place.bytes) * 8;
    PTXBENCH_TRY_ASSIGN(const Operand to, register_operand(returns[i], bits, true, "a result"));
    auxiliary(op_load_result, {to}, 1, 0, static_cast<std::int64_t>(place.address), static_cast<std::uint8_t>(bits));
  }
  if (around != UINT32_MAX) kernel_->ops[around].imm = static_cast<std::int64_t>(kernel_->ops.size());
  return {};
}

Result<void> Builder::bind_formal(Instance& callee, std::size_t variable, const ptx::Operand& actual, bool is_return) {
  using Kind = ptx::Operand::Kind;
  const ptx::Variable& formal = callee.function->variables[variable];
  Place& to = callee.places[variable];
  if (actual.kind == Kind::variable) {
    PTXBENCH_TRY_ASSIGN(Place * const from, placed(actual));
    if (from->kind != Place::Kind::local) return bad("argument " + formal.name + " is no .param variable of the call");
    if (from->bytes < formal.bytes)
      return bad("argument " + formal.name + " has " + std::to_string(from->bytes) + " bytes, the function wants " +
                 std::to_string(formal.bytes));
    to = *from;
    to.address += static_cast<std::uint64_t>(actual.offset);
    return {};
  }
  if (formal.bytes != 1 && formal.bytes != 2 && formal.bytes != 4 && formal.bytes != 8)
    return bad("argument " + formal.name + " needs a .param variable");
  to = {Place::Kind::local, local_place(callee, formal.bytes, formal.align), formal.bytes};
  if (is_return) return {};
  const unsigned bits = static_cast<unsigned>(formal.bytes) * 8;
  Emit value;
  value.flags = kNone;
  const Ty type = bits == 64 ? Ty::b64 : bits == 32 ? Ty::b32 : bits == 16 ? Ty::b16 : Ty::b8;
  PTXBENCH_TRY(src(value, actual, type, true));
  auxiliary(op_store_argument, value.operands, 0, 1, static_cast<std::int64_t>(to.address),
            static_cast<std::uint8_t>(bits));
  return {};
}

// --- the whole --------------------------------------------------------------------------------------------------

void Builder::layout_shared() {
  const std::vector<ptx::Variable>& globals = module().variables;
  const auto module_index = [&](const ptx::Variable* v) {
    return !globals.empty() && v >= globals.data() && v < globals.data() + globals.size()
               ? static_cast<std::size_t>(v - globals.data())
               : globals.size();
  };
  std::stable_sort(shared_order_.begin(), shared_order_.end(), [&](const ptx::Variable* a, const ptx::Variable* b) {
    return module_index(a) < module_index(b);
  });
  std::uint64_t end = kSystemShared;
  bool dynamic = false;
  for (const ptx::Variable* v : shared_order_) {
    Place& place = module_places_[v];
    if (place.kind == Place::Kind::dynamic_shared) {
      dynamic = true;
      kernel_->dynamic_shared_align = std::max(kernel_->dynamic_shared_align, v->align);
      continue;
    }
    end = align_up(end, v->align);
    place.address = end;
    end += v->bytes;
    kernel_->placed.push_back({v->name, ptx::Space::shared, place.address, v->bytes});
  }
  if (dynamic) end = align_up(end, kernel_->dynamic_shared_align);
  for (const ptx::Variable* v : shared_order_) {
    Place& place = module_places_[v];
    if (place.kind != Place::Kind::dynamic_shared) continue;
    place.address = end;
    kernel_->placed.push_back({v->name, ptx::Space::shared, end, 0});
  }
  kernel_->static_shared_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(end - kSystemShared, UINT32_MAX));
}

void Builder::prepend_prologue() {
  if (prologue_.empty()) return;
  std::vector<Op> body = std::exchange(kernel_->ops, {});
  std::vector<Operand> operands = std::exchange(kernel_->operands, {});
  static const ptx::Instruction none;
  instruction_ = &none;
  Instance root;
  root.function = &entry_;
  instance_ = &root;
  auxiliary_info_ = UINT32_MAX;
  for (const Prologue& p : prologue_) {
    if (p.kind == PrologueKind::parameter) {
      auxiliary(op_parameter_address, {p.destination}, 1, 0, static_cast<std::int64_t>(p.offset), 64, kPropagate);
    } else {
      const std::uint64_t address = module_places_[p.variable].address + p.offset;
      auxiliary(op_shared_address, {p.destination}, 1, 0, static_cast<std::int64_t>(address),
                static_cast<std::uint8_t>(p.bits), kPropagate);
      kernel_->ops.back().b = p.generic;
    }
  }
  instance_ = nullptr;
  const auto shift = static_cast<std::uint32_t>(kernel_->ops.size());
  const auto operand_shift = static_cast<std::uint32_t>(kernel_->operands.size());
  for (Op& op : body) {
    op.first_operand += operand_shift;
    if (op.run == op_branch) op.imm += shift;
  }
  for (std::size_t i = 0; i < kernel_->branch_tables.size();) {
    const std::uint32_t n = kernel_->branch_tables[i++];
    for (std::uint32_t k = 0; k < n; ++k) kernel_->branch_tables[i++] += shift;
  }
  for (auto& [op, predicate] : decoded_.predicates) op += shift;
  kernel_->ops.insert(kernel_->ops.end(), body.begin(), body.end());
  kernel_->operands.insert(kernel_->operands.end(), operands.begin(), operands.end());
}

Result<std::shared_ptr<const Kernel>> Builder::build() {
  if (entry_.declared_only || !entry_.entry)
    return make_error(ErrorCode::invalid_argument, entry_.name + " is no kernel with a body");
  std::uint64_t offset = 0;
  Instance root = begin_instance(entry_, nullptr);
  for (std::size_t i = 0; i < entry_.parameter_count; ++i) {
    const ptx::Variable& v = entry_.variables[i];
    offset = align_up(offset, v.align);
    kernel_->parameter_offsets.push_back(static_cast<std::uint32_t>(offset));
    root.places[i] = {Place::Kind::kernel_parameter, offset, v.bytes};
    offset += v.bytes;
  }
  if (offset > 32764)
    return make_error(ErrorCode::unsupported, entry_.name + ": " + std::to_string(offset) + " bytes of parameters, the limit is 32764");
  kernel_->parameter_bytes = static_cast<std::uint32_t>(offset);
  decode_body(root);
  if (too_large_)
    return make_error(ErrorCode::unsupported, entry_.name + ": more than " + std::to_string(kMaxOps) +
                                                  " instructions once all calls are inlined");
  if (!errors_.empty()) return gathered();
  {  // Running off the end of the body is an exit.
    static const ptx::Instruction none{.opcode = "ret"};
    instruction_ = &none;
    instance_ = &root;
    auxiliary_info_ = UINT32_MAX;
    auxiliary(op_exit, {}, 0, 0, 0, 0, kSideEffect);
  }
  layout_shared();
  prepend_prologue();
  kernel_->local_bytes = static_cast<std::uint32_t>(align_up(local_end_, 16));
  if (local_end_ > (512u << 10))
    return make_error(ErrorCode::unsupported, entry_.name + ": " + std::to_string(local_end_) +
                                                  " bytes of local memory a thread, the limit is 524288");
  const Graph graph = build_graph(*kernel_);
  rank_ops(*kernel_, graph);
  find_spin_loops(*kernel_, graph, decoded_);
  allocate_slots(*kernel_, graph, decoded_);
  return std::shared_ptr<const Kernel>(std::move(kernel_));
}

Result<std::shared_ptr<const Kernel>> decode_kernel(std::shared_ptr<const ptx::Module> module, const ptx::Function& entry,
                                                    const SymbolAddresses& symbols) {
  try {
    Builder builder(std::move(module), entry, symbols);
    return builder.build();
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::no_memory, "no memory to decode " + entry.name);
  }
}

}  // namespace ptxbench::emulator
