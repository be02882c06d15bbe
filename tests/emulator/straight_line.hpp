// Runs instructions without an engine: each register of the text has slots of its own, one warp executes the
// instructions in their order, and the test reads and writes registers by name, with what is undefined.
#pragma once

#include "emulator/async.hpp"
#include "emulator/decode.hpp"
#include "emulator/formats.hpp"
#include "emulator/machine.hpp"
#include "emulator/mbarrier.hpp"
#include "emulator/run.hpp"
#include "ptx/module.hpp"
#include "support/catch.hpp"

#include <bit>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace scalar {

using namespace ptxbench;
using namespace ptxbench::emulator;

class StraightLine final : public Decoder {
 public:
  // Registers: %h0.. (.b16), %r0.. (.b32), %l0.. (.b64), %q0.. (.b128), %p0.. (.pred), eight of each.
  explicit StraightLine(std::string_view body) {
    const std::string text =
        ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n"
        ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<8>; .reg .b64 %l<8>; .reg .b128 %q<8>;\n" +
        std::string(body) + "\nret;\n}\n";
    auto parsed = ptx::parse(text, "test");
    if (!parsed) {
      error_ = parsed.error().message;
      return;
    }
    module_ = std::make_shared<ptx::Module>(std::move(parsed).value());
    function_ = module_->find("k");
    for (const ptx::Register& r : function_->registers) {
      if (r.type == ptx::Type::pred) {
        places_.push_back(static_cast<Operand>(preds_++));
      } else {
        places_.push_back(static_cast<Operand>(128 * words_++));
      }
      names_[r.name] = places_.size() - 1;
    }
    carry_ = static_cast<Operand>(preds_++);
    for (const ptx::Instruction& i : function_->body) {
      if (i.opcode == "ret") break;
      instruction_ = &i;
      const DecodeFunction decode = instruction_table().find(i);
      if (decode == nullptr) {
        error_ = "no decoder for " + i.text();
        return;
      }
      const std::size_t before = kernel_.ops.size();
      if (auto r = decode(*this); !r) {
        error_ = r.error().message;
        return;
      }
      if (before == kernel_.ops.size()) error_ = "nothing was emitted";
    }
    const std::size_t slots = 4 * (words_ + 8);
    storage_.assign(slots * kLanes + 32, 0xcdcdcdcd);
    undefined_.assign(slots, 0);
    pred_.assign(preds_ + 1, 0);
    pred_undefined_.assign(preds_ + 1, 0);
    regs_ = storage_.data();
    while (reinterpret_cast<std::uintptr_t>(regs_) % 64 != 0) ++regs_;
  }

  const std::string& error() const { return error_; }
  const Kernel& kernel() const { return kernel_; }

  // --- registers ---
  void set(const std::string& name, unsigned lane, std::uint64_t value, std::uint64_t high = 0) {
    const Place p = place(name);
    if (p.bits == 1) {
      pred_[p.at] = (pred_[p.at] & ~(1u << lane)) | static_cast<Mask>(value & 1) << lane;
    } else if (p.bits <= 32) {
      regs_[p.at + lane] = static_cast<std::uint32_t>(value) & (p.bits == 16 ? 0xffffu : ~0u);
    } else {
      std::memcpy(regs_ + p.at + 2 * lane, &value, 8);
      if (p.bits == 128) std::memcpy(regs_ + p.at + 64 + 2 * lane, &high, 8);
    }
  }
  std::uint64_t get(const std::string& name, unsigned lane) const {
    const Place p = place(name);
    if (p.bits == 1) return pred_[p.at] >> lane & 1;
    if (p.bits <= 32) return regs_[p.at + lane];
    std::uint64_t v;
    std::memcpy(&v, regs_ + p.at + 2 * lane, 8);
    return v;
  }
  std::uint64_t high(const std::string& name, unsigned lane) const {
    std::uint64_t v;
    std::memcpy(&v, regs_ + place(name).at + 64 + 2 * lane, 8);
    return v;
  }
  Mask& undefined(const std::string& name) {
    const Place p = place(name);
    return p.bits == 1 ? pred_undefined_[p.at] : undefined_[slot_of(static_cast<Operand>(p.at))];
  }
  Mask& pred(const std::string& name) { return pred_[place(name).at]; }

  // Executes all of it. Lanes outside @p mask belong to the warp but wait elsewhere.
  Flow run(Mask mask = ~Mask{0}) {
    REQUIRE(error_ == "");
    Memory* no_memory = nullptr;
    Grid grid;
    grid.kernel = &kernel_;
    grid.memory = no_memory;
    Cluster cluster;
    cluster.grid = &grid;
    Cta cta;
    cta.cluster = &cluster;
    Warp warp;
    warp.cta = &cta;
    warp.all = warp.live = ~Mask{0};
    warp.regs = regs_;
    warp.undefined = undefined_.data();
    warp.preds = pred_.data();
    warp.preds_undefined = pred_undefined_.data();
    Run run(kernel_);
    warp.fragments.push_back({});
    warp.fragments[0].mask = mask;
    for (const Op& op : kernel_.ops) {
      Mask on = mask;
      if (op.guard >= 0) on &= op.guard_negated ? ~pred_[op.guard] : pred_[op.guard];
      if (on == 0) continue;
      Exec x{grid, cluster, cta, warp, warp.fragments[0], kernel_, op, on, run};
      if (const Flow flow = op.run(x); flow != Flow::next) {
        fault = run.fault;
        return flow;
      }
      if ((op.flags & kPropagate) == 0) continue;
      Mask undefined = 0;
      for (unsigned k = 0; k < op.sources; ++k) undefined |= x.undefined_of(x.operand(op.destinations + k));
      for (unsigned k = 0; k < op.destinations; ++k) x.set_undefined(k, undefined);
    }
    return Flow::next;
  }
  std::optional<Fault> fault;

  // --- Decoder ---
  const ptx::Instruction& instruction() const override { return *instruction_; }
  const ptx::Function& function() const override { return *function_; }
  const ptx::Module& module() const override { return *module_; }
  Result<void> dst(Emit& e, std::size_t i, unsigned bits, bool relaxed) override {
    return dst(e, instruction_->operands.at(i), bits, relaxed);
  }
  Result<void> src(Emit& e, std::size_t i, Ty type, bool relaxed) override {
    return src(e, instruction_->operands.at(i), type, relaxed);
  }
  Result<void> dst(Emit& e, const ptx::Operand& o, unsigned bits, bool relaxed) override {
    if (o.kind != ptx::Operand::Kind::reg) return bad("no register");
    if (!fits(o, bits, relaxed)) return bad("the register has another size");
    e.operands.push_back(places_.at(o.index));
    ++e.destinations;
    return {};
  }
  Result<void> src(Emit& e, const ptx::Operand& o, Ty type, bool relaxed) override {
    using Kind = ptx::Operand::Kind;
    ++e.sources;
    if (o.kind == Kind::reg) {
      if (!fits(o, ty_bits(type), relaxed)) return bad("the register has another size");
      e.operands.push_back(places_.at(o.index));
      return {};
    }
    std::uint64_t bits = o.bits;
    const unsigned width = ty_bits(type);
    if (o.kind == Kind::f64 || o.kind == Kind::f32) {
      const FloatFormat from = o.kind == Kind::f64 ? FloatFormat::f64 : FloatFormat::f32;
      if (type == Ty::f32 && from == FloatFormat::f64) bits = convert_float(FloatFormat::f32, from, bits);
      if (type == Ty::f64 && from == FloatFormat::f32) bits = convert_float(FloatFormat::f64, from, bits);
    } else if (o.kind != Kind::integer) {
      return bad("no such operand");
    }
    if (width < 64) bits &= (std::uint64_t{1} << width) - 1;
    e.operands.push_back(constant(bits, width));
    return {};
  }
  Result<std::size_t> dst_vector(Emit& e, std::size_t i, unsigned bits, bool relaxed) override {
    const auto& parts = instruction_->operands.at(i).parts;
    for (const ptx::Operand& o : parts) {
      if (o.kind == ptx::Operand::Kind::sink) {
        e.operands.push_back(kNoOperand);
        ++e.destinations;
      } else if (auto r = dst(e, o, bits, relaxed); !r) {
        return r.error();
      }
    }
    return parts.size();
  }
  Result<std::size_t> src_vector(Emit& e, std::size_t i, Ty type, bool relaxed) override {
    const auto& parts = instruction_->operands.at(i).parts;
    for (const ptx::Operand& o : parts) {
      if (auto r = src(e, o, type, relaxed); !r) return r.error();
    }
    return parts.size();
  }
  Result<Operand> pred_dst(const ptx::Operand& o) override {
    return o.kind == ptx::Operand::Kind::sink ? kNoOperand : places_.at(o.index);
  }
  Result<Operand> pred_src(const ptx::Operand& o) override {
    const Operand p = places_.at(o.index);
    if (!o.negated) return p;
    Emit e;
    const Operand negated = temporary_pred();
    e.operands = {negated, p};
    e.flags = kNone;
    e.run = [](Exec& x) {
      x.set_pred(0, ~x.pred(1), x.pred_undefined(1));
      return Flow::next;
    };
    if (auto r = emit(e, "", true); !r) return r.error();
    return negated;
  }
  Result<Address> address(Emit&, const ptx::Operand&, ptx::Space) override { return bad("no memory here"); }
  unsigned register_bits(const ptx::Operand& o) const override {
    return o.kind == ptx::Operand::Kind::reg ? ptx::type_bits(function_->registers.at(o.index).type) : 0;
  }
  Result<std::int64_t> immediate(std::size_t i) override {
    const ptx::Operand& o = instruction_->operands.at(i);
    if (o.kind != ptx::Operand::Kind::integer) return bad("no immediate");
    return static_cast<std::int64_t>(o.bits);
  }
  Result<void> expect_operands(std::size_t from, std::size_t to) override {
    const std::size_t n = instruction_->operands.size();
    if (n < from || n > std::max(from, to)) return bad("wrong number of operands");
    return {};
  }
  Operand temporary(unsigned) override { return static_cast<Operand>(128 * words_++); }
  Operand temporary_pred() override { return static_cast<Operand>(preds_++); }
  Operand carry() override { return carry_; }
  Operand constant(std::uint64_t bits, unsigned width) override {
    const std::size_t at = kernel_.constants.size();
    for (unsigned i = 0; i < kLanes; ++i) {
      kernel_.constants.push_back(static_cast<std::uint32_t>(bits));
      if (width == 64) kernel_.constants.push_back(static_cast<std::uint32_t>(bits >> 32));
    }
    return ~static_cast<Operand>(at);
  }
  Result<void> emit(Emit& e, std::string_view family, bool guarded) override {
    REQUIRE(e.run != nullptr);
    REQUIRE(e.operands.size() >= e.destinations + e.sources);
    Op op;
    op.run = e.run;
    op.first_operand = static_cast<std::uint32_t>(kernel_.operands.size());
    op.destinations = e.destinations;
    op.sources = e.sources;
    op.flags = e.flags;
    op.a = e.a;
    op.b = e.b;
    op.c = e.c;
    op.d = e.d;
    op.imm = e.imm;
    if (guarded && instruction_->guard) {
      op.guard = places_.at(instruction_->guard->reg);
      op.guard_negated = instruction_->guard->negated;
    }
    op.info = static_cast<std::uint32_t>(kernel_.info.size());
    OpInfo info;
    info.family = family;
    info.fidelity = e.fidelity;
    kernel_.info.push_back(info);
    kernel_.operands.insert(kernel_.operands.end(), e.operands.begin(), e.operands.end());
    kernel_.ops.push_back(op);
    return {};
  }
  Error unsupported(std::string_view what) const override {
    return make(ErrorCode::unsupported, "unsupported: " + instruction_->text() + ": " + std::string(what));
  }
  Error bad(std::string_view what) const override {
    return make(ErrorCode::parse, instruction_->text() + ": " + std::string(what));
  }

 private:
  static Error make(ErrorCode code, std::string message) {
    Error e;
    e.code = code;
    e.message = std::move(message);
    return e;
  }
  struct Place {
    std::size_t at;
    unsigned bits;
  };
  Place place(const std::string& name) const {
    const auto found = names_.find("%" + name);
    REQUIRE(found != names_.end());
    return {static_cast<std::size_t>(places_[found->second]),
            ptx::type_bits(function_->registers[found->second].type)};
  }
  bool fits(const ptx::Operand& o, unsigned bits, bool relaxed) const {
    const unsigned has = register_bits(o);
    return relaxed ? has >= bits : has == bits || (has == 16 && bits == 8);
  }

  std::string error_;
  std::shared_ptr<ptx::Module> module_;
  const ptx::Function* function_ = nullptr;
  const ptx::Instruction* instruction_ = nullptr;
  std::vector<Operand> places_;
  std::map<std::string, std::size_t> names_;
  std::size_t words_ = 0, preds_ = 0;
  Operand carry_ = 0;
  Kernel kernel_;
  std::vector<std::uint32_t> storage_;
  std::uint32_t* regs_ = nullptr;
  std::vector<Mask> undefined_, pred_, pred_undefined_;
};

// The error that decoding @p body gives; empty: none.
inline std::string decode_error(std::string_view body) { return StraightLine(body).error(); }

// --- operands
// ---------------------------------------------------------------------------------------------------

// Random bits, mixed with what breaks things: zero, one, all ones, the extremes of each width, small numbers.
inline std::vector<std::uint64_t> integers(std::uint64_t seed, std::size_t n) {
  static constexpr std::uint64_t kSpecial[] = {0,
                                               1,
                                               2,
                                               3,
                                               7,
                                               8,
                                               15,
                                               16,
                                               31,
                                               32,
                                               33,
                                               63,
                                               64,
                                               65,
                                               127,
                                               128,
                                               255,
                                               256,
                                               0x7fff,
                                               0x8000,
                                               0xffff,
                                               0x10000,
                                               0x7fffffff,
                                               0x80000000,
                                               0x80000001,
                                               0xffffffff,
                                               0x100000000,
                                               0x7fffffffffffffff,
                                               0x8000000000000000,
                                               0xffffffffffffffff,
                                               0xfffffffffffffffe,
                                               0x8000800080008000,
                                               0x7fff7fff7fff7fff};
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> v(n);
  for (auto& x : v) {
    const unsigned pick = random() % 8;
    x = pick < 3 ? kSpecial[random() % std::size(kSpecial)] : pick < 4 ? random() % 100 : random();
  }
  return v;
}
// Bits of floats: special values, subnormals, numbers near each other and of any size.
inline std::vector<std::uint64_t> floats(std::uint64_t seed, std::size_t n) {
  static constexpr std::uint32_t kSpecial[] = {
      0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000,
      0xffc12345, 0x7f800001, 0x7fffffff, 1,          0x80000001, 0x007fffff, 0x807fffff,
      0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff, 0x3f000000, 0x40000000, 0x4f000000,
      0xcf000000, 0x4f800000, 0x3effffff, 0x3fc00000, 0x42fe0000};
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> v(n);
  for (auto& x : v) {
    const unsigned pick = random() % 8;
    if (pick < 3) {
      x = kSpecial[random() % std::size(kSpecial)];
    } else if (pick < 5) {
      x = static_cast<std::uint32_t>(random());
    } else {
      x = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-28f);
    }
  }
  return v;
}
inline std::vector<std::uint64_t> doubles(std::uint64_t seed, std::size_t n) {
  static constexpr double kSpecial[] = {0.0,    -0.0,   1.0,      -1.0,         0.5, 1e300,
                                        -1e300, 1e-310, 4.9e-324, 2147483648.0, 1e19};
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> v(n);
  for (auto& x : v) {
    const unsigned pick = random() % 8;
    if (pick < 2) {
      x = std::bit_cast<std::uint64_t>(kSpecial[random() % std::size(kSpecial)]);
    } else if (pick < 3) {
      x = random() % 2 != 0 ? 0x7ff0000000000000 : 0xfff8000000000001;
    } else if (pick < 5) {
      x = random();
    } else {
      x = std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<std::int64_t>(random())) * 0x1p-60);
    }
  }
  return v;
}
// Two halves each; the low ones serve scalars.
inline std::vector<std::uint64_t> halves(std::uint64_t seed, std::size_t n) {
  static constexpr std::uint16_t kSpecial[] = {
      0,      0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 0x7fff, 0xfe01, 1,      0x8001, 0x03ff,
      0x0400, 0x7bff, 0xfbff, 0x3f80, 0xbf80, 0x7f80, 0xff80, 0x7fc0, 0x0080, 0x007f, 0x7f7f, 0x3555};
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> v(n);
  const auto half = [&]() -> std::uint64_t {
    const unsigned pick = random() % 8;
    if (pick < 3) return kSpecial[random() % std::size(kSpecial)];
    if (pick < 5) return random() & 0xffff;
    return (0x3000 + random() % 0x1400) | (random() % 2) << 15;
  };
  for (auto& x : v) x = half() | half() << 16;
  return v;
}

// Runs "%D0 = op(%A1, %B2, %C3)": @p body names the registers; @p names the destination and the sources.
// Calls check(result, a, b, c) for every lane, with full and partial masks.
template <class Check>
void each_lane(const std::string& body, const std::vector<std::string>& names,
               const std::vector<std::vector<std::uint64_t>>& operands, Check check) {
  INFO(body);
  StraightLine code(body);
  REQUIRE(code.error() == "");
  const std::size_t n = operands.empty() ? 32 : operands[0].size();
  std::mt19937_64 random(99);
  for (std::size_t base = 0; base + kLanes <= n; base += kLanes) {
    const Mask mask = (base / kLanes) % 4 == 3 ? static_cast<Mask>(random()) | 1 : ~Mask{0};
    for (unsigned i = 0; i < kLanes; ++i) {
      for (std::size_t k = 0; k < operands.size(); ++k) code.set(names[k + 1], i, operands[k][base + i]);
      code.set(names[0], i, 0x5a5a5a5a5a5a5a5a);
    }
    REQUIRE(code.run(mask) == Flow::next);
    for (unsigned i = 0; i < kLanes; ++i) {
      const std::uint64_t got = code.get(names[0], i);
      std::uint64_t v[4] = {};
      for (std::size_t k = 0; k < operands.size(); ++k) v[k] = operands[k][base + i];
      if ((mask >> i & 1) == 0) {
        const std::uint64_t keep = names[0][0] == 'h'   ? 0x5a5a
                                   : names[0][0] == 'r' ? 0x5a5a5a5a
                                   : names[0][0] == 'p' ? 0
                                                        : 0x5a5a5a5a5a5a5a5a;
        if (got != keep) FAIL_CHECK("lane " << i << " was written though it does not execute");
        continue;
      }
      const std::uint64_t want = check(v[0], v[1], v[2], v[3]);
      if (got != want) {
        FAIL_CHECK(std::hex << "a 0x" << v[0] << " b 0x" << v[1] << " c 0x" << v[2] << ": got 0x" << got
                            << ", want 0x" << want);
        return;
      }
    }
  }
}

}  // namespace scalar
