// The line table of a cubin (.debug_line): DWARF 2 to 4, with NVIDIA's extended operation for inlined code.
#include "core/guard.hpp"
#include "sass/elf.hpp"

#include <ptxbench/sass.hpp>

#include <algorithm>
#include <map>

namespace ptxbench::sass {
namespace {

constexpr std::uint32_t kTypeRela = 4, kTypeRel = 9;  // sh_type
constexpr std::size_t kMostRows = std::size_t{1} << 22;
constexpr int kMostInlined = 32;  // callers that are followed

// Reads forwards; past the end every read gives 0 and `ok` is false.
class Cursor {
 public:
  Cursor(elf::Bytes bytes, std::uint64_t at, std::uint64_t end)
      : bytes_(bytes), at_(at), end_(std::min<std::uint64_t>(end, bytes.size())) {}

  std::uint64_t at() const { return at_; }
  bool ok() const { return ok_; }
  bool more() const { return ok_ && at_ < end_; }
  std::uint64_t fixed(int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value |= static_cast<std::uint64_t>(byte()) << (8 * i);
    return value;
  }
  std::uint64_t uleb() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const std::uint8_t b = byte();
      if (shift < 64) value |= static_cast<std::uint64_t>(b & 0x7f) << shift;
      if ((b & 0x80) == 0) return value;
    }
  }
  std::int64_t sleb() {
    std::uint64_t value = 0;
    for (int shift = 0;;) {
      const std::uint8_t b = byte();
      if (shift < 64) value |= static_cast<std::uint64_t>(b & 0x7f) << shift;
      shift += 7;
      if ((b & 0x80) != 0) continue;
      if ((b & 0x40) != 0 && shift < 64) value |= ~std::uint64_t{0} << shift;
      return static_cast<std::int64_t>(value);
    }
  }
  std::string text() {
    std::string out;
    for (char c; (c = static_cast<char>(byte())) != '\0';) out += c;
    return out;
  }
  void go(std::uint64_t at) {
    if (at < at_ || at > end_) ok_ = false;
    else at_ = at;
  }

 private:
  std::uint8_t byte() {
    if (at_ < end_) return bytes_[at_++];
    ok_ = false;
    return 0;
  }
  elf::Bytes bytes_;
  std::uint64_t at_, end_;
  bool ok_ = true;
};

struct Row {
  std::uint64_t pc = 0;
  std::uint32_t file = 1;
  std::uint64_t line = 1;
  std::uint64_t context = 0;  // 0: not inlined; else the number of the row of its call, from 1
};

// The functions that addresses in .debug_line are relocated to, by the place of the address.
std::map<std::uint64_t, std::string_view> relocated_functions(const elf::File& file, const elf::Section& lines) {
  std::map<std::uint64_t, std::string_view> out;
  const auto index = static_cast<std::uint32_t>(&lines - file.sections.data());
  for (const elf::Section& section : file.sections) {
    if ((section.type != kTypeRela && section.type != kTypeRel) || section.info != index) continue;
    const std::uint64_t size = section.type == kTypeRela ? 24 : 16;
    for (std::uint64_t at = 0; at + size <= section.bytes.size(); at += size) {
      const std::uint64_t symbol = elf::read64(section.bytes, at + 8) >> 32;
      if (symbol < file.symbols.size()) out[elf::read64(section.bytes, at)] = file.symbols[symbol].name;
    }
  }
  return out;
}

class Program {
 public:
  Program(const elf::File& file, const elf::Section& lines, std::string_view symbol)
      : bytes_(lines.bytes), functions_(relocated_functions(file, lines)), symbol_(symbol) {}

  Result<std::vector<SourceLine>> read() {
    std::vector<SourceLine> out;
    for (std::uint64_t at = 0; at + 4 <= bytes_.size();) {
      Cursor unit(bytes_, at, bytes_.size());
      const std::uint64_t length = unit.fixed(4), end = at + 4 + length;
      if (length >= 0xfffffff0 || end > bytes_.size()) return bad("a unit is longer than the section");
      PTXBENCH_TRY(read_unit(at + 4, end, out));
      at = end;
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const SourceLine& a, const SourceLine& b) { return a.pc_offset < b.pc_offset; });
    return out;
  }

 private:
  static Error bad(std::string what) {
    return make_error(ErrorCode::parse, "cubin: line table: " + std::move(what));
  }

  Result<void> read_unit(std::uint64_t at, std::uint64_t end, std::vector<SourceLine>& out) {
    Cursor c(bytes_, at, end);
    const std::uint64_t version = c.fixed(2);
    if (version < 2 || version > 4) return bad("DWARF version " + std::to_string(version) + " is not read");
    const std::uint64_t header_length = c.fixed(4), program = c.at() + header_length;
    step_ = c.fixed(1);
    if (version >= 4) c.fixed(1);  // operations of an instruction: 1
    c.fixed(1);                    // is_stmt at first
    line_base_ = static_cast<std::int8_t>(c.fixed(1));
    line_range_ = c.fixed(1);
    opcode_base_ = c.fixed(1);
    if (!c.ok() || line_range_ == 0 || opcode_base_ == 0) return bad("its header is broken");
    arguments_.clear();
    for (std::uint64_t i = 1; i < opcode_base_; ++i) arguments_.push_back(static_cast<std::uint8_t>(c.fixed(1)));
    folders_.clear();
    files_.clear();
    while (c.ok()) {
      std::string name = c.text();
      if (name.empty()) break;
      folders_.push_back(std::move(name));
    }
    while (c.ok()) {
      const std::string name = c.text();
      if (name.empty()) break;
      add_file(name, c);
    }
    c.go(program);
    if (!c.ok()) return bad("its header is broken");
    return run(c, out);
  }

  void add_file(const std::string& name, Cursor& c) {
    const std::uint64_t folder = c.uleb();
    c.uleb();
    c.uleb();
    const bool inside = folder > 0 && folder <= folders_.size() && !name.starts_with('/');
    files_.push_back(inside ? folders_[folder - 1] + "/" + name : name);
  }

  Result<void> run(Cursor& c, std::vector<SourceLine>& out) {
    rows_.clear();
    row_ = {};
    wanted_ = false;
    while (c.more()) {
      const std::uint64_t opcode = c.fixed(1);
      if (opcode >= opcode_base_) {
        const std::uint64_t adjusted = opcode - opcode_base_;
        row_.pc += adjusted / line_range_ * step_;
        row_.line += static_cast<std::uint64_t>(line_base_ + static_cast<std::int64_t>(adjusted % line_range_));
        PTXBENCH_TRY(emit());
      } else if (opcode == 0) {
        PTXBENCH_TRY(extended(c, out));
      } else {
        PTXBENCH_TRY(standard(opcode, c));
      }
    }
    if (!c.ok()) return bad("it ends inside an operation");
    return {};
  }

  Result<void> standard(std::uint64_t opcode, Cursor& c) {
    switch (opcode) {
      case 1:
        return emit();
      case 2:
        row_.pc += c.uleb() * step_;
        break;
      case 3:
        row_.line += static_cast<std::uint64_t>(c.sleb());
        break;
      case 4:
        row_.file = static_cast<std::uint32_t>(c.uleb());
        break;
      case 8:
        row_.pc += (255 - opcode_base_) / line_range_ * step_;
        break;
      case 9:
        row_.pc += c.fixed(2);
        break;
      default:
        for (int i = 0; i < arguments_[opcode - 1]; ++i) c.uleb();
    }
    return {};
  }

  Result<void> extended(Cursor& c, std::vector<SourceLine>& out) {
    const std::uint64_t length = c.uleb(), start = c.at();
    if (!c.ok() || length == 0) return bad("an extended operation has no length");
    switch (c.fixed(1)) {
      case 1:  // the end of a sequence
        finish(out);
        break;
      case 2: {  // the address of a function's code
        const auto function = functions_.find(c.at());
        row_.pc = c.fixed(8);
        wanted_ = function != functions_.end() && function->second == symbol_;
        break;
      }
      case 3: {
        const std::string name = c.text();
        add_file(name, c);
        break;
      }
      case 0x90:  // NVIDIA's: where this code was inlined, then its function's name
        row_.context = c.uleb();
        break;
      default:
        break;
    }
    c.go(start + length);
    return {};
  }

  Result<void> emit() {
    if (rows_.size() >= kMostRows) return bad("it has more than " + std::to_string(kMostRows) + " rows");
    rows_.push_back(row_);
    return {};
  }

  void finish(std::vector<SourceLine>& out) {
    if (wanted_)
      for (const Row& row : rows_)
        if (row.pc <= UINT32_MAX) out.push_back({static_cast<std::uint32_t>(row.pc), place(row)});
    rows_.clear();
    row_ = {};
    wanted_ = false;
  }

  std::vector<SourcePlace> place(Row row) const {
    std::vector<SourcePlace> out;
    for (int depth = 0; depth < kMostInlined; ++depth) {
      const bool known = row.file > 0 && row.file <= files_.size();
      out.push_back({known ? files_[row.file - 1] : std::string(), static_cast<std::uint32_t>(row.line)});
      if (row.context == 0 || row.context > rows_.size()) break;
      row = rows_[row.context - 1];
    }
    return out;
  }

  elf::Bytes bytes_;
  std::map<std::uint64_t, std::string_view> functions_;
  std::string_view symbol_;
  std::vector<std::string> folders_, files_;
  std::vector<std::uint8_t> arguments_;  // of standard operations, how many
  std::uint64_t step_ = 1, line_range_ = 1, opcode_base_ = 1;
  std::int64_t line_base_ = 0;
  std::vector<Row> rows_;
  Row row_;
  bool wanted_ = false;
};

}  // namespace

Result<std::vector<SourceLine>> source_lines(std::span<const std::uint8_t> file, const Kernel& kernel) {
  return guarded([&]() -> Result<std::vector<SourceLine>> {
    PTXBENCH_TRY_ASSIGN(const elf::File elf, elf::read(file));
    const elf::Section* lines = elf.find(".debug_line");
    if (lines == nullptr) return std::vector<SourceLine>();
    return Program(elf, *lines, kernel.symbol).read();
  });
}

const SourceLine* line_at(std::span<const SourceLine> lines, std::uint32_t pc_offset) noexcept {
  const auto after = std::upper_bound(lines.begin(), lines.end(), pc_offset,
                                      [](std::uint32_t pc, const SourceLine& l) { return pc < l.pc_offset; });
  return after == lines.begin() ? nullptr : &*(after - 1);
}

}  // namespace ptxbench::sass
