#include "compile/ptx_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace ptxbench {
namespace {

bool name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' || c == '.';
}

// Words and single characters of a PTX text, comments and strings skipped.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}
  // The next word; empty at the end.
  std::string_view next() {
    skip();
    if (at_ >= text_.size()) return {};
    const std::size_t begin = at_;
    if (!name_char(text_[at_])) return text_.substr(at_++, 1);
    while (at_ < text_.size() && name_char(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  std::size_t offset() const { return at_; }

 private:
  void skip() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == '\0') {
        ++at_;
      } else if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        const std::size_t close = text_.find("*/", at_ + 2);
        at_ = close == std::string_view::npos ? text_.size() : close + 2;
      } else if (c == '"') {
        const std::size_t close = text_.find('"', at_ + 1);
        at_ = close == std::string_view::npos ? text_.size() : close + 1;
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

int sm_number(std::string_view target, std::string_view& suffix) {
  if (!target.starts_with("sm_")) return 0;
  target.remove_prefix(3);
  int value = 0;
  const auto [end, failed] = std::from_chars(target.data(), target.data() + target.size(), value);
  if (failed != std::errc()) return 0;
  suffix = target.substr(static_cast<std::size_t>(end - target.data()));
  return value;
}

void add_once(std::vector<std::string>& list, std::string_view name) {
  if (std::find(list.begin(), list.end(), name) == list.end()) list.emplace_back(name);
}

}  // namespace

std::optional<PtxVersion> parse_ptx_version(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  PtxVersion version;
  const char* const end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), text.data() + dot, version.major);
  const auto minor = std::from_chars(text.data() + dot + 1, end, version.minor);
  if (major.ec != std::errc() || major.ptr != text.data() + dot || minor.ec != std::errc() ||
      minor.ptr != end || version.major < 1 || version.minor < 0)
    return std::nullopt;
  return version;
}

PtxHeader read_ptx_header(std::string_view ptx) {
  PtxHeader header;
  Words words(ptx);
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    if (word == ".version") {
      const std::string_view number = words.next();
      header.version = parse_ptx_version(number);
      header.version_end = words.offset();
      header.version_begin = header.version_end - number.size();
    } else if (word == ".target") {
      header.target = std::string(words.next());
    } else if (word == ".entry" || word == ".func" || word == "{") {
      break;
    }
  }
  return header;
}

bool ptx_target_runs_on(std::string_view target, std::string_view arch) {
  std::string_view target_suffix, arch_suffix;
  const int from = sm_number(target, target_suffix), to = sm_number(arch, arch_suffix);
  if (from == 0 || to == 0) return true;  // left to the assembler
  if (target_suffix == "a") return from == to && arch_suffix == "a";
  if (target_suffix == "f") return from / 10 == to / 10 && from <= to && !arch_suffix.empty();
  return from <= to;
}

PtxSymbols read_ptx_symbols(std::string_view ptx) {
  PtxSymbols symbols;
  std::vector<std::string> declared;
  Words words(ptx);
  std::string_view word = words.next();
  bool external = false;
  int depth = 0;
  bool call = false;
  while (!word.empty()) {
    if (word == "{") ++depth;
    if (word == "}") depth = std::max(0, depth - 1);
    if (word == ".extern") external = true;
    if (word == ";" || word == "{") external = call = false;
    if (word.starts_with("call")) call = true;
    if (call && std::find(declared.begin(), declared.end(), word) != declared.end())
      add_once(symbols.externals, word);
    if (word == ".entry" && !external) {
      add_once(symbols.kernels, words.next());
    } else if (word == ".func") {
      word = words.next();
      if (word == "(") {
        while (!word.empty() && word != ")") word = words.next();
        word = words.next();
      }
      if (external && !word.empty()) add_once(declared, word);
    } else if (depth == 0 && (word == ".global" || word == ".const")) {
      // .global .align 4 .b8 name[12] = {...};
      std::string_view name;
      for (word = words.next(); !word.empty() && word != ";" && word != "=" && word != "[" && word != "{";
           word = words.next())
        if (!word.starts_with('.') && std::isdigit(static_cast<unsigned char>(word.front())) == 0)
          name = word;
      if (!name.empty()) add_once(symbols.globals, name);
      continue;
    }
    word = words.next();
  }
  return symbols;
}

std::string device_heap_function(const PtxSymbols& symbols) {
  constexpr std::array<std::string_view, 8> kHeap = {
      "malloc", "free", "cudaMalloc", "cudaFree", "__cudaCDP2Malloc", "__cudaCDP2Free", "realloc", "calloc"};
  std::string found;
  for (const std::string& external : symbols.externals)
    if (std::find(kHeap.begin(), kHeap.end(), external) != kHeap.end())
      found += (found.empty() ? "" : ", ") + external;
  return found;
}

std::string compiler_version_in(std::string_view ptx) {
  constexpr std::string_view kLine = "// Cuda compilation tools, release ";
  const std::size_t at = ptx.substr(0, 1000).find(kLine);
  if (at == std::string_view::npos) return {};
  const std::size_t end = std::min(ptx.find('\n', at), ptx.size());
  const std::size_t v = ptx.substr(0, end).find(", V", at);
  if (v == std::string_view::npos) return {};
  std::string_view text = ptx.substr(v + 3, end - v - 3);
  return std::string(text.substr(0, text.find_first_not_of("0123456789.")));
}

}  // namespace ptxbench
