#include "sass/operands.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace ptxbench::sass {
namespace {

// Sources of arithmetic: a is in bits 24 to 31; where b and c are depends on the form (bits 9 to 11).
enum : std::uint8_t { kA = 1, kB = 2, kC = 4 };
// Predicates written: bits 81 to 83, 84 to 86. Read: bits 87 to 89, 77 to 79, 68 to 70.
enum : std::uint8_t { k81 = 1, k84 = 2 };
enum : std::uint8_t { k87 = 1, k77 = 2, k68 = 4 };

struct Rule {
  std::string_view mnemonic;  // of the ordinary datapath; the uniform one's has a U before it
  std::uint8_t sources;
  bool writes_register = true;
  std::uint8_t predicates_written = 0, predicates_read = 0;
};
constexpr Rule kRules[] = {
    {"BMSK", kA | kB},
    {"BREV", kB},
    {"CLMAD", kA | kB | kC},
    {"CS2R", 0},
    {"DADD", kA | kC},
    {"DFMA", kA | kB | kC},
    {"DMUL", kA | kB},
    {"DSETP", kA | kB, false, k81 | k84, k87},
    {"F2F", kB},
    {"F2FP", kA | kB | kC},
    {"F2I", kB},
    {"F2IP", kA | kB},
    {"FADD", kA | kC},
    {"FADD2", kA | kC},
    {"FCHK", kA | kB, false, k81, 0},
    {"FFMA", kA | kB | kC},
    {"FFMA2", kA | kB | kC},
    {"FHADD", kA | kC},
    {"FHFMA", kA | kB | kC},
    {"FLO", kB},
    {"FMNMX", kA | kB, true, 0, k87},
    {"FMNMX3", kA | kB | kC, true, 0, k87},
    {"FMUL", kA | kB},
    {"FMUL2", kA | kB},
    {"FRND", kB},
    {"FSEL", kA | kB, true, 0, k87},
    {"FSET", kA | kB, true, 0, k87},
    {"FSETP", kA | kB, false, k81 | k84, k87},
    {"FSWZADD", kA | kC},
    {"HADD2", kA | kC},
    {"HFMA2", kA | kB | kC},
    {"HMNMX2", kA | kB, true, 0, k87},
    {"HMUL2", kA | kB},
    {"HSET2", kA | kB, true, 0, k87},
    {"HSETP2", kA | kB, false, k81 | k84, k87},
    {"I2F", kB},
    {"I2FP", kB},
    {"I2I", kB},
    {"I2IP", kA | kB | kC},
    {"IABS", kB},
    {"IADD", kA | kB | kC, true, k81 | k84, k87 | k77},
    {"IADD3", kA | kB | kC, true, k81 | k84, k87 | k77},
    {"IDP", kA | kB | kC},
    {"IMAD", kA | kB | kC, true, k81, k87},
    {"IMNMX", kA | kB, true, 0, k87},
    {"IMUL", kA | kB | kC, true, k81, k87},
    {"ISETP", kA | kB, false, k81 | k84, k87 | k68},
    {"LEA", kA | kB | kC, true, k81, k87},
    {"LOP3", kA | kB | kC, true, k81, k87},
    {"MATCH", kA, true, k81, 0},
    {"MOV", kB},
    {"MOVM", kA},
    {"MUFU", kB},
    {"P2R", kA},
    {"PLOP3", 0, false, k81 | k84, k87 | k77 | k68},
    {"POPC", kB},
    {"PRMT", kA | kB | kC},
    {"QADD4", kA | kC},
    {"QFMA4", kA | kB | kC},
    {"QMUL4", kA | kB},
    {"QSPC", kA, true, k81, 0},
    {"S2R", 0},
    {"SEL", kA | kB, true, 0, k87},
    {"SGXT", kA | kB},
    {"SHF", kA | kB | kC},
    {"VABSDIFF", kA | kB | kC},
    {"VABSDIFF4", kA | kB | kC},
    {"VIADD", kA | kB},
    {"VIADDMNMX", kA | kB | kC, true, 0, k87},
    {"VIMNMX", kA | kB, true, k81 | k84, k87},
    {"VIMNMX3", kA | kB | kC, true, 0, k87},
    {"VOTE", 0, true, k81, k87},
};

const Rule* find_rule(std::string_view mnemonic) {
  const Rule* end = std::end(kRules);
  const Rule* rule = std::lower_bound(std::begin(kRules), end, mnemonic,
                                      [](const Rule& r, std::string_view m) { return r.mnemonic < m; });
  return rule != end && rule->mnemonic == mnemonic ? rule : nullptr;
}

constexpr bool is_sorted() {
  for (std::size_t i = 1; i < std::size(kRules); ++i)
    if (kRules[i - 1].mnemonic >= kRules[i].mnemonic) return false;
  return true;
}
static_assert(is_sorted());

constexpr std::string_view kStores[] = {"REDAS", "REDG", "ST", "STAS", "STG", "STL", "STS", "STSM"};
constexpr std::string_view kLoads[] = {"ATOM", "ATOMG", "ATOMS", "LD", "LDC", "LDG", "LDGMC", "LDL", "LDS", "LDSM"};
constexpr std::string_view kWarpMma[] = {"BMMA", "DMMA", "HMMA", "IMMA"};
constexpr std::string_view kWarpgroupMma[] = {"BGMMA", "HGMMA", "IGMMA", "QGMMA"};
constexpr std::string_view kSetsUniform[] = {"CREDUX", "R2UR", "REDUX"};

template <std::size_t N>
bool is_in(const std::string_view (&list)[N], std::string_view mnemonic) {
  return std::find(std::begin(list), std::end(list), mnemonic) != std::end(list);
}

class Builder {
 public:
  Builder(int sm, Word word, const OpcodeRow* row) : sm_(sm), word_(word), row_(row) {
    form_ = static_cast<std::uint32_t>(field(word, 9, 3));
  }

  Operands build() {
    std::string_view name = row_ != nullptr ? row_->mnemonic : std::string_view{};
    uniform_ = !name.empty() && name[0] == 'U';
    const std::uint32_t operation = operation_of(word_);
    const bool on_uniform_predicate = uniform_ || name == "S2UR" || name == "LDCU" || name == "LDTM" ||
                                      name == "STTM" || (name == "SYNCS" && operation == 0x1b2);
    read_guard(on_uniform_predicate);
    if (row_ == nullptr) {
      out_.known = false;
      arithmetic({name, kA | kB | kC});
      out_.certain.reset();
      return out_;
    }
    if (special(name, operation)) return out_;
    if (uniform_) name.remove_prefix(1);
    if (const Rule* rule = find_rule(name)) {
      arithmetic(*rule);
      widths(name, operation);
    }
    return out_;  // the rest neither reads nor writes anything that decides a branch
  }

 private:
  void read_guard(bool on_uniform) {
    const auto index = static_cast<std::uint32_t>(field(word_, 12, 3));
    const bool negated = field(word_, 15, 1) != 0;
    if (index == kPredicateTrue)
      out_.never = negated;
    else
      out_.guard = (on_uniform ? kUniformPredicate : kPredicate) + index;
  }

  std::optional<std::uint32_t> slot(int first, bool uniform) const {
    if (uniform) {
      const auto index = uniform_register(sm_, word_, first);
      if (!index) return std::nullopt;
      return kUniform + *index;
    }
    const auto index = static_cast<std::uint32_t>(field(word_, first, 8));
    if (index == kRegisterZero) return std::nullopt;
    return index;
  }
  void read(int first, bool uniform, std::uint32_t count = 1) {
    if (const auto s = slot(first, uniform)) mark(out_.reads, *s, count);
  }
  void write(int first, bool uniform, std::uint32_t certain = 1, std::uint32_t at_most = 1) {
    const auto s = slot(first, uniform);
    if (!s) return;
    mark(out_.writes, *s, std::max(certain, at_most));
    mark(out_.certain, *s, certain);
  }
  static void mark(Slots& set, std::uint32_t first, std::uint32_t count) {
    const std::uint32_t end =
        first < kUniform ? kRegisterZero : kUniform + kRegisterZero;  // RZ and what is past it
    for (std::uint32_t s = first; s < first + count && s < end; ++s) set.set(s);
  }
  void read_predicate(int first, bool uniform) {
    const auto index = static_cast<std::uint32_t>(field(word_, first, 3));
    if (index != kPredicateTrue) out_.reads.set((uniform ? kUniformPredicate : kPredicate) + index);
  }
  void write_predicate(int first, bool uniform) {
    const auto index = static_cast<std::uint32_t>(field(word_, first, 3));
    if (index == kPredicateTrue) return;
    const std::uint32_t s = (uniform ? kUniformPredicate : kPredicate) + index;
    out_.writes.set(s);
    out_.certain.set(s);
  }

  // Where the sources are, by form: 1 registers; 2, 3 an immediate or a constant as the last of them; 4, 5 as
  // the second; 6, 7 a uniform register as the second or the last.
  void sources(std::uint8_t mask, std::uint32_t width_ab = 1, std::uint32_t width_c = 1) {
    const bool a = (mask & kA) != 0, b = (mask & kB) != 0, c = (mask & kC) != 0, three = b && c;
    if (a) read(24, uniform_, width_ab);
    switch (form_) {
      case 1:
        if (b) read(32, uniform_, width_ab);
        if (c) read(c_place(), uniform_, width_c);
        break;
      case 2:
      case 3:
        if (three) read(64, uniform_, width_ab);
        break;
      case 4:
      case 5:
        if (c) read(64, uniform_, width_c);
        break;
      case 6:
        if (b) read(32, true, width_ab);
        if (c) read(64, uniform_, width_c);
        break;
      case 7:
        read(32, true, three ? width_c : width_ab);
        if (three) read(64, uniform_, width_ab);
        break;
      default:
        break;
    }
  }
  // Two-operand additions of floats have their second operand where others have b, except those of doubles.
  int c_place() const {
    const std::string_view name = row_ != nullptr ? row_->mnemonic : std::string_view{};
    return name == "FADD" || name == "FADD2" || name == "FHADD" || name == "HADD2" ? 32 : 64;
  }

  void arithmetic(const Rule& rule) {
    sources(rule.sources, width_of_ab(), width_of_c());
    if (rule.writes_register) write(16, uniform_);
    if ((rule.predicates_written & k81) != 0) write_predicate(81, uniform_);
    if ((rule.predicates_written & k84) != 0) write_predicate(84, uniform_);
    if ((rule.predicates_read & k87) != 0) read_predicate(87, uniform_);
    if ((rule.predicates_read & k77) != 0) read_predicate(77, uniform_);
    if ((rule.predicates_read & k68) != 0)
      read_predicate(68, uniform_ || (rule.mnemonic == "PLOP3" && field(word_, 67, 1) != 0));
  }
  bool is_double() const { return row_ != nullptr && row_->family == "fp64"; }
  bool is_wide() const {
    return operation_of(word_) == 0x025 || operation_of(word_) == 0x0a5;
  }                                                              // IMAD.WIDE, UIMAD.WIDE
  bool is_pair() const { return operation_of(word_) == 0x097; }  // UIADD3.64
  bool is_packed() const { return row_ != nullptr && row_->family == "fp32" && row_->mnemonic.back() == '2'; }
  std::uint32_t width_of_ab() const { return is_double() || is_pair() || is_packed() ? 2 : 1; }
  std::uint32_t width_of_c() const { return is_wide() ? 2 : width_of_ab(); }

  void widths(std::string_view name, std::uint32_t operation) {
    if (is_double() || is_wide() || is_pair() || is_packed()) {
      if (name != "DSETP") write(16, uniform_, 2, 2);
    } else if (name == "CS2R" || operation == 0x110 || operation == 0x111 || operation == 0x112 ||
               operation == 0x113) {
      write(16, uniform_, 1, 2);  // to or from 64 bits
      if (name != "CS2R") read(32, form_ == 6, 2);
    }
  }

  // Registers of a load, from bits 73 to 75.
  std::uint32_t loaded() const {
    constexpr std::uint32_t kRegisters[8] = {1, 1, 1, 1, 1, 2, 4, 4};
    return kRegisters[field(word_, 73, 3)];
  }

  bool special(std::string_view name, std::uint32_t operation) {
    if (is_in(kLoads, name)) {
      const bool shared = name == "LDS" || name == "LDL" || name == "LDSM";
      read(24, false, shared || name == "LDC" || name == "ATOMS" ? 1 : 2);
      if (name == "LD" || name == "LDG" || (shared && field(word_, 91, 1) != 0))
        read(32, true, shared ? 1 : 2);
      if (name.substr(0, 4) == "ATOM") {
        read(32, false, 2);
        read(64, form_ >= 4, 2);
        if (name != "ATOMS" || form_ == 2) write_predicate(81, false);
      }
      const bool load = name[0] == 'L' && name != "LDSM";
      if (operation == 0x17e) write(64, false, 1, 4);
      write(16, false, load ? loaded() : 1, 4);
      return true;
    }
    if (is_in(kStores, name)) {
      const bool sized = name == "ST" || name == "STG" || name == "STL" || name == "STS";
      read(operation == 0x185 && form_ == 1 ? 64 : 32, false, sized ? loaded() : 4);
      out_.stored = out_.reads;
      read(24, false, 2);
      if (form_ == 4 && name != "STSM") read(64, true, 2);
      return true;
    }
    if (is_in(kWarpMma, name)) {
      const std::uint32_t registers = name == "DMMA" ? 8 : 4;
      read(24, false, registers), read(32, false, registers / 2), read(64, false, registers);
      write(16, false, 1, registers);
      return true;
    }
    if (is_in(kWarpgroupMma, name)) {
      write(16, false, 1, 128);
      return true;
    }
    if (is_in(kSetsUniform, name)) {
      read(24, false);
      write(16, true);
      if (name == "R2UR") write_predicate_if_set(81);
      return true;
    }
    if (name == "S2UR") return write(16, true), true;
    if (name == "LDTM") return write(16, false, 1, 128), true;
    if (name == "LDCU" || name == "ULDC") {
      if (name == "LDCU" || operation == 0x0bb) read(24, true);
      write(16, true,
            name == "LDCU" ? std::uint32_t{1} << (field(word_, 73, 3) < 4 ? 0 : field(word_, 73, 3) - 4)
                           : loaded());
      return true;
    }
    if (name == "SHFL") {  // form 1: both in registers; 2: the lane; 4: the mask; 7: none
      read(24, false);
      if (form_ == 1 || form_ == 2) read(32, false);
      if (form_ == 1 || form_ == 4) read(64, false);
      write(16, false);
      write_predicate(81, false);
      return true;
    }
    if (name == "VOTEU") {  // of a warp's predicates
      read_predicate(87, false);
      write(16, true);
      write_predicate(81, true);
      return true;
    }
    if (name == "ELECT") {
      read_predicate(87, false);
      write(16, true);
      write_predicate(81, false);
      return true;
    }
    if (name == "P2R" || name == "UP2UR") {
      const std::uint32_t base = uniform_ ? kUniformPredicate : kPredicate;
      for (std::uint32_t i = 0; i < 7; ++i)
        if (form_ != 4 || (field(word_, 32, 8) >> i & 1) != 0) out_.reads.set(base + i);
      read(24, uniform_);
      write(16, uniform_);
      return true;
    }
    if (name == "R2P" || name == "UR2UP") {
      const std::uint32_t base = uniform_ ? kUniformPredicate : kPredicate;
      read(24, uniform_);
      for (std::uint32_t i = 0; i < 7; ++i) out_.writes.set(base + i);
      return true;
    }
    if (name == "SYNCS") {
      if (operation == 0x1b2) return write(16, true), true;
      if (operation == 0x1a7 && form_ == 2) {  // PHASECHK
        read(24, false), read(32, false);
        write_predicate(81, false);
      } else if (operation == 0x1a7) {
        write(16, false, 1, 2);
      }
      return true;
    }
    if (name == "B2R") {
      write(16, false);
      write_predicate(81, false);
      return true;
    }
    if (name == "UTCATOMSWS") {
      if (form_ == 2) write_predicate(81, true);
      write(16, true);
      return true;
    }
    if (name == "USETMAXREG") return write_predicate(81, true), true;
    if (name == "ULEPC") return write(16, true, 2, 2), true;
    if (name == "LEPC" || (name == "BMOV" && operation == 0x155) || name == "RPCMOV" || name == "GETLMEMBASE")
      return write(16, false, 0, 2), true;
    if (row_->family == "texture") {
      write(16, false, 0, 4), write(64, false, 0, 4);
      return true;
    }
    if (name == "BRX" || name == "JMX" || name == "RET" || name == "CALL") {
      if (form_ == 1) read(24, false, 2);
      return true;
    }
    if (name == "BRXU" || name == "JMXU") {
      read(24, true, 2);
      read_predicate(87, false);
      return true;
    }
    if (name == "BRA") {
      read_predicate(87, false);
      if (form_ == 2) read_predicate(24, true);
      return true;
    }
    if (name == "EXIT") return read_predicate(87, false), true;
    if (row_->family == "tcgen05_mma") {
      read(24, true, 2), read(32, true, 2), read(64, true), read(40, true, 2);
      read_predicate(87, true);
      return true;
    }
    return row_->family == "tma_load" || row_->family == "tma_multicast" || row_->family == "tma_store" ||
           row_->family == "tma_reduce" || row_->family == "bulk_copy";
  }
  void write_predicate_if_set(int first) { write_predicate(first, false); }

  int sm_;
  Word word_;
  const OpcodeRow* row_;
  std::uint32_t form_ = 0;
  bool uniform_ = false;
  Operands out_;
};

}  // namespace

std::optional<std::uint32_t> uniform_register(int sm, Word word, int first) {
  const auto index = static_cast<std::uint32_t>(sm < 100 ? field(word, first, 6) : field(word, first, 8));
  if (index == (sm < 100 ? 63u : 255u)) return std::nullopt;
  return index;
}

Operands operands_of(int sm, Word word, const OpcodeRow* row) { return Builder(sm, word, row).build(); }

}  // namespace ptxbench::sass
