#include "mutate.hpp"

#include "ptx_text.hpp"

#include <algorithm>
#include <cctype>

namespace ptxbench::testing {
namespace {

using ptx::Instruction;
using ptx::Operand;
using Kind = ptx::Operand::Kind;

// What one function's instructions are mutated with.
class Mutator {
 public:
  Mutator(const ptx::Module& module, std::string_view text, const std::set<std::uint32_t>& executed)
      : module_(module), text_(text), lines_(text), executed_(executed) {}

  std::vector<Mutant> run() {
    for (std::uint32_t f = 0; f < module_.functions.size(); ++f) {
      function_ = &module_.functions[f];
      note_accumulators();
      for (std::uint32_t i = 0; i < function_->body.size(); ++i) {
        at_ = &function_->body[i];
        if (executed_.count(at_->where.line) == 0) continue;
        f_ = f;
        i_ = i;
        statement_ = statement_at(text_, lines_.offset(at_->where), at_->guard.has_value());
        if (statement_.operands.size() != at_->operands.size()) continue;
        mutate();
      }
    }
    return std::move(mutants_);
  }

 private:
  bool is(std::string_view opcode) const { return at_->opcode == opcode; }
  bool has(std::string_view modifier) const {
    return std::find(at_->modifiers.begin(), at_->modifiers.end(), modifier) != at_->modifiers.end();
  }
  bool begins(std::string_view name) const { return at_->text().rfind(name, 0) == 0; }

  void add(std::string kind, std::string what, std::size_t offset, std::size_t length,
           std::string replacement) {
    Mutant m;
    m.kind = std::move(kind);
    m.instruction = at_->text();
    m.what = m.instruction + ": " + std::move(what);
    m.line = at_->where.line;
    m.function = f_;
    m.index = i_;
    const std::string_view old = text_.substr(offset, length);
    const auto breaks = [](std::string_view s) { return std::count(s.begin(), s.end(), '\n'); };
    for (auto n = breaks(replacement); n < breaks(old); ++n) replacement += '\n';
    m.edit = {offset, length, std::move(replacement)};
    mutants_.push_back(std::move(m));
  }
  void erase(const std::string& kind) {
    // An empty block: a label may stand before it, and the statement may be the only one behind it.
    add(kind, "deleted", statement_.begin, statement_.end - statement_.begin, "{ }");
  }
  // Operand @p i becomes @p with; @p before stands before the instruction, which is put in a block of its
  // own.
  void replace(const std::string& kind, const std::string& what, std::size_t i, const std::string& with,
               const std::string& before = {}) {
    const auto [at, size] = statement_.operands[i];
    replace_at(kind, what, at, size, with, before);
  }
  void replace_at(const std::string& kind, const std::string& what, std::size_t at, std::size_t size,
                  const std::string& with, const std::string& before) {
    std::string whole(text_.substr(statement_.begin, statement_.end - statement_.begin));
    whole.replace(at - statement_.begin, size, with);
    if (!before.empty()) whole = "{ " + before + " " + whole + " }";
    add(kind, what, statement_.begin, statement_.end - statement_.begin, whole);
  }
  std::string operand_text(std::size_t i) const {
    return std::string(text_.substr(statement_.operands[i].first, statement_.operands[i].second));
  }

  // An integer operand (number or register of @p type) plus @p delta.
  void shift(const std::string& kind, std::size_t i, std::int64_t delta, const std::string& type,
             const std::string& name) {
    const auto [at, size] = statement_.operands[i];
    shift_text(kind, at, size, at_->operands[i], delta, type, name);
  }
  void shift_text(const std::string& kind, std::size_t at, std::size_t size, const Operand& operand,
                  std::int64_t delta, const std::string& type, const std::string& name) {
    const std::string signed_delta = (delta < 0 ? "" : "+") + std::to_string(delta);
    if (operand.kind == Kind::integer) {
      const auto value = static_cast<std::int64_t>(operand.bits) + delta;
      replace_at(kind, name + " " + signed_delta, at, size, std::to_string(value), "");
    } else if (operand.kind == Kind::reg) {
      replace_at(kind, name + " " + signed_delta, at, size, "%mutated",
                 ".reg .b" + type.substr(1) + " %mutated; add." + type + " %mutated, " +
                     std::string(text_.substr(at, size)) + ", " + std::to_string(delta) + ";");
    }
  }
  // [base + offset] with another offset.
  void shift_address(const std::string& kind, std::size_t i, std::int64_t delta, const std::string& name) {
    const Operand& operand = at_->operands[i];
    if (operand.kind != Kind::address || operand.parts.empty()) return;
    std::string inner = operand_text(i);
    if (inner.size() < 2 || inner.front() != '[') return;
    inner = inner.substr(1, inner.size() - 2);
    const std::size_t end = inner.find_first_of("+-", 1);
    std::string base = inner.substr(0, end);
    while (!base.empty() && std::isspace(static_cast<unsigned char>(base.back()))) base.pop_back();
    const Operand& part = operand.parts[0];
    if (part.kind == Kind::integer) return;
    const std::int64_t offset = operand.offset + (part.kind == Kind::variable ? part.offset : 0) + delta;
    replace(kind, name + (delta < 0 ? " " : " +") + std::to_string(delta), i,
            "[" + base + (offset < 0 ? "+" + std::to_string(offset) : "+" + std::to_string(offset)) + "]");
  }

  // Registers that sums are built in: what a product or a sum reads and writes, or a wgmma's D.
  void note_accumulators() {
    accumulators_.clear();
    const auto registers = [](const Operand& o) {
      std::vector<std::uint32_t> out;
      if (o.kind == Kind::reg) out.push_back(o.index);
      for (const Operand& p : o.parts)
        if (p.kind == Kind::reg) out.push_back(p.index);
      return out;
    };
    for (const Instruction& i : function_->body) {
      const std::string& op = i.opcode;
      if (op != "mma" && op != "wgmma" && op != "fma" && op != "add" && op != "max" && op != "wmma") continue;
      if (op == "wgmma" && (i.modifiers.empty() || i.modifiers[0] != "mma_async")) continue;
      if (op == "wgmma" && !i.operands.empty()) {
        for (const std::uint32_t r : registers(i.operands[0])) accumulators_.insert(r);
      } else if (i.operands.size() >= 2) {
        // C of mma and fma, either of add's and max's.
        for (std::size_t k = op == "add" || op == "max" ? 1 : i.operands.size() - 1; k < i.operands.size();
             ++k)
          for (const std::uint32_t r : registers(i.operands[k])) accumulators_.insert(r);
      }
    }
    // What is copied into one is one.
    for (bool more = true; more;) {
      more = false;
      for (const Instruction& i : function_->body)
        if (i.opcode == "mov" && i.operands.size() == 2 && i.operands[0].kind == Kind::reg &&
            i.operands[1].kind == Kind::reg && accumulators_.count(i.operands[0].index) != 0)
          more = accumulators_.insert(i.operands[1].index).second || more;
    }
  }

  void mutate() {
    if (is("fence") || is("membar") || begins("wgmma.fence")) return erase("delete_fence");
    if (begins("cp.async.wait") || begins("cp.async.bulk.wait") || begins("wgmma.wait_group") ||
        begins("griddepcontrol.wait"))
      return erase("delete_wait");
    if (begins("cp.async.commit_group") || begins("cp.async.bulk.commit_group") ||
        begins("wgmma.commit_group"))
      return erase("delete_commit");
    if (is("bar") || is("barrier")) return barrier();
    if (is("mbarrier")) return mbarrier();
    if (is("cp")) return copy();
    if (begins("wgmma.mma_async")) return wgmma();
    if (is("ldmatrix") || is("stmatrix")) {
      const std::size_t i = is("ldmatrix") ? 1 : 0;
      return shift_address("shift_shared_address", i, 16, "address");
    }
    if (is("ld") || is("st")) return access();
    if (is("mov")) return initialisation();
  }

  void barrier() {
    erase("delete_barrier");
    const bool cta_wide = !has("warp") && !has("cluster") && !has("red");
    if (cta_wide && at_->operands.size() >= 2) {
      shift("shift_barrier_count", 1, 32, "u32", "threads");
      shift("shift_barrier_count", 1, -32, "u32", "threads");
    }
  }

  void mbarrier() {
    if (begins("mbarrier.init")) {
      erase("drop_initialisation");
      shift("shift_arrival_count", 1, 1, "u32", "arrivals");
      shift("shift_arrival_count", 1, -1, "u32", "arrivals");
    } else if (begins("mbarrier.arrive") || begins("mbarrier.expect_tx")) {
      erase("delete_arrive");
      const std::size_t count = at_->operands.size() - 1;
      const Kind last = at_->operands[count].kind;
      if (last == Kind::integer || last == Kind::reg) {
        if (has("expect_tx")) {
          shift("shift_transaction_bytes", count, 16, "u32", "bytes");
          shift("shift_transaction_bytes", count, -16, "u32", "bytes");
        } else {
          shift("shift_arrival_count", count, 1, "u32", "count");
          shift("shift_arrival_count", count, -1, "u32", "count");
        }
      }
    } else if (begins("mbarrier.try_wait") || begins("mbarrier.test_wait")) {
      const std::string done = operand_text(0);
      std::string guard(text_.substr(statement_.begin, statement_.opcode - statement_.begin));
      add("delete_wait", "true at once", statement_.begin, statement_.end - statement_.begin,
          guard + "setp.eq.u32 " + done + ", 0, 0;");
      if (has("parity")) {
        const Operand& parity = at_->operands[2];
        if (parity.kind == Kind::integer)
          replace("flip_parity", "parity flipped", 2, std::to_string(parity.bits ^ 1));
        else if (parity.kind == Kind::reg)
          replace("flip_parity", "parity flipped", 2, "%mutated",
                  ".reg .b32 %mutated; xor.b32 %mutated, " + operand_text(2) + ", 1;");
      }
    }
  }

  void copy() {
    for (std::size_t i = 0; i < at_->operands.size(); ++i) {
      const Operand& operand = at_->operands[i];
      if (operand.kind != Kind::tensor || operand.parts.size() < 2) continue;
      const std::string whole = operand_text(i);
      const std::size_t open = whole.find('{'), close = whole.find('}');
      if (open == std::string::npos || close == std::string::npos) continue;
      std::size_t begin = open + 1;
      for (std::size_t c = 0; c < operand.parts[1].parts.size() && begin < close; ++c) {
        std::size_t end = std::min(whole.find(',', begin), close);
        const std::size_t next = end + 1;
        while (begin < end && std::isspace(static_cast<unsigned char>(whole[begin]))) ++begin;
        while (end > begin && std::isspace(static_cast<unsigned char>(whole[end - 1]))) --end;
        shift_text("shift_coordinate", statement_.operands[i].first + begin, end - begin,
                   operand.parts[1].parts[c], 1, "s32", "coordinate " + std::to_string(c));
        begin = next;
      }
    }
    const bool bulk = has("bulk");
    if (at_->operands.empty() || begins("cp.async.bulk.prefetch") || begins("cp.async.mbarrier")) return;
    const bool to_global = at_->modifiers.size() > 2 && bulk && is_first_space_global();
    const bool tensor = has("tensor");
    const std::int64_t by = bulk ? 128 : 16;
    if (!to_global) {
      shift_address("shift_shared_address", 0, by, "destination");
      if (!tensor && at_->operands.size() > 1)
        shift_address(has("global") ? "shift_global_address" : "shift_shared_address", 1, 16, "source");
    } else {
      shift_address("shift_shared_address", 1, by, "source");
      if (!tensor) shift_address("shift_global_address", 0, 16, "destination");
    }
  }
  bool is_first_space_global() const {
    for (const std::string& m : at_->modifiers) {
      if (m == "global") return true;
      if (m.rfind("shared", 0) == 0) return false;
    }
    return false;
  }

  void wgmma() {
    // D, A (descriptor or registers), B descriptor, scale-d, ...
    for (std::size_t i = 1; i <= 2 && i < at_->operands.size(); ++i) {
      if (at_->operands[i].kind != Kind::reg) continue;
      const std::string name = i == 1 ? "A's " : "B's ";
      const auto field = [&](const std::string& what, const std::string& op, const std::string& value) {
        replace("change_descriptor", name + what, i, "%mutated",
                ".reg .b64 %mutated; " + op + " %mutated, " + operand_text(i) + ", " + value + ";");
      };
      field("start +2", "add.u64", "2");
      field("leading offset +1", "add.u64", "65536");
      field("stride offset +1", "add.u64", "4294967296");
      field("swizzle changed", "xor.b64", "4611686018427387904");
    }
    if (at_->operands.size() > 3) {
      const Operand& scale = at_->operands[3];
      if (scale.kind == Kind::reg)
        replace("flip_scale_d", "scale-d negated", 3, "%mutated",
                ".reg .pred %mutated; not.pred %mutated, " + operand_text(3) + ";");
      else if (scale.kind == Kind::integer)
        replace("flip_scale_d", "scale-d negated", 3, scale.bits == 0 ? "1" : "0");
    }
  }

  void access() {
    const std::size_t i = is("ld") ? 1 : 0;
    if (at_->operands.size() <= i || has("param") || has("local") || has("const")) return;
    std::int64_t element = 4;
    vector_ = 1;
    for (const std::string& m : at_->modifiers) {
      for (const std::string_view bits : {"8", "16", "32", "64", "128"})
        if (m.size() >= bits.size() + 1 && m.size() <= bits.size() + 2 &&
            m.substr(m.size() - bits.size()) == bits && std::string("busf").find(m[0]) != std::string::npos)
          element = std::stoll(std::string(bits)) / 8;
      if (m == "v2") vector_ = 2;
      if (m == "v4") vector_ = 4;
    }
    const bool shared = std::any_of(at_->modifiers.begin(), at_->modifiers.end(),
                                    [](const std::string& m) { return m.rfind("shared", 0) == 0; });
    const bool global = has("global");
    if (is("ld") && (has("acquire") || has("volatile") || has("relaxed"))) skip_poll();
    if (!shared && !global) return;
    shift_address(shared ? "shift_shared_access" : "shift_global_access", i, element * vector_, "address");
  }

  // A flag that is polled: the loop around the load is left at once.
  void skip_poll() {
    for (std::uint32_t j = i_ + 1; j < function_->body.size() && j < i_ + 24; ++j) {
      const Instruction& jump = function_->body[j];
      if (jump.opcode != "bra" || jump.operands.empty() || jump.operands[0].kind != Kind::label) continue;
      if (jump.operands[0].index > i_ || !jump.guard) continue;
      const Statement s = statement_at(text_, lines_.offset(jump.where), true);
      const Instruction* load = at_;
      const std::uint32_t index = i_;
      at_ = &jump;
      i_ = j;
      add("delete_wait", "poll of " + load->text() + " left at once", s.begin, s.end - s.begin, "{ }");
      at_ = load;
      i_ = index;
      return;
    }
  }

  void initialisation() {
    if (at_->operands.size() != 2 || at_->operands[0].kind != Kind::reg) return;
    const Kind source = at_->operands[1].kind;
    if (source != Kind::integer && source != Kind::f32 && source != Kind::f64) return;
    const std::uint32_t to = at_->operands[0].index;
    if (accumulators_.count(to) == 0) return;
    erase("drop_initialisation");
    // A NaN or a number that is far off, in every type.
    const bool wide = has("b64") || has("u64") || has("s64") || has("f64"),
               narrow = has("b16") || has("u16") || has("s16");
    const bool f32 = has("f32"), f64 = has("f64");
    for (const char* hex : {"7FC12345", "5B5B5B5B"}) {
      const std::string digits =
          narrow ? std::string(hex).substr(0, 4) : std::string(hex) + (wide ? hex : "");
      Mutant& m = mutants_.back();
      const std::string was(text_.substr(m.edit.offset, m.edit.length));
      const auto [at, size] = statement_.operands[1];
      std::string now = was;
      now.replace(at - m.edit.offset, size, (f32 ? "0f" : f64 ? "0d" : "0x") + digits);
      m.other_values.push_back(std::move(now));
    }
  }

  const ptx::Module& module_;
  std::string_view text_;
  LineTable lines_;
  const std::set<std::uint32_t>& executed_;
  const ptx::Function* function_ = nullptr;
  const Instruction* at_ = nullptr;
  std::uint32_t f_ = 0, i_ = 0;
  std::int64_t vector_ = 1;
  Statement statement_;
  std::set<std::uint32_t> accumulators_;
  std::vector<Mutant> mutants_;
};

}  // namespace

std::string edited(std::string_view text, const Edit& edit) {
  std::string out(text.substr(0, edit.offset));
  out += edit.text;
  out += text.substr(edit.offset + edit.length);
  return out;
}

std::vector<Mutant> mutants_of(const ptx::Module& module, std::string_view text,
                               const std::set<std::uint32_t>& executed) {
  return Mutator(module, text, executed).run();
}

std::vector<Mutant> plan_mutants(std::string_view launch) {
  std::vector<Mutant> out;
  const auto each = [&](std::string_view key, auto&& mutate) {
    for (std::size_t at = launch.find(key); at != std::string_view::npos; at = launch.find(key, at + 1))
      mutate(at + key.size());
  };
  const auto add = [&](const std::string& kind, const std::string& what, std::size_t at, std::size_t size,
                       const std::string& with) {
    Mutant m;
    m.kind = kind;
    m.what = "launch.json, byte " + std::to_string(at) + ": " + what;
    m.edit = {at, size, with};
    m.plan = true;
    out.push_back(std::move(m));
  };
  each("\"swizzle\": \"", [&](std::size_t at) {
    const std::size_t end = launch.find('"', at);
    if (end == std::string_view::npos) return;
    const std::string old(launch.substr(at, end - at));
    for (const char* other : {"none", "32B", "64B", "128B"})
      if (old != other) add("plan_swizzle", "swizzle " + old + " becomes " + other, at, end - at, other);
  });
  each("\"box\": [", [&](std::size_t at) {
    std::size_t end = launch.find(']', at);
    if (end == std::string_view::npos) return;
    const std::size_t comma = launch.rfind(',', end);
    if (comma == std::string_view::npos || comma < at) return;
    std::size_t begin = comma + 1;
    while (begin < end && launch[begin] == ' ') ++begin;
    std::string rows(launch.substr(begin, end - begin));
    if (rows.size() > 2 && rows.front() == '"') rows = rows.substr(1, rows.size() - 2);
    add("plan_box", "rows of a box " + rows + " halved", begin, end - begin, "\"(" + rows + ") / 2\"");
  });
  return out;
}

bool is_plentiful(std::string_view kind) {
  return kind == "shift_shared_address" || kind == "shift_global_address" || kind == "shift_shared_access" ||
         kind == "shift_global_access" || kind == "change_descriptor" || kind == "drop_initialisation" ||
         kind == "shift_coordinate" || kind == "flip_scale_d";
}

}  // namespace ptxbench::testing
