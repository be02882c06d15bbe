#include "evaluate/requested.hpp"

#include "core/json.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

namespace ptxbench {
namespace {

constexpr std::string_view kInstruction = "setmaxnreg";

// PTX without its comments, word by word; words end at blanks and punctuation other than that of names.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}
  // The next word; empty at the end.
  std::string_view next() {
    while (at_ < text_.size()) {
      if (starts("//")) {
        skip_to("\n");
      } else if (starts("/*")) {
        skip_to("*/");
      } else if (text_[at_] == '"') {
        ++at_;
        skip_to("\"");
      } else if (in_word(text_[at_])) {
        const std::size_t begin = at_;
        while (at_ < text_.size() && in_word(text_[at_])) ++at_;
        return text_.substr(begin, at_ - begin);
      } else {
        ++at_;
      }
    }
    return {};
  }

 private:
  static bool in_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '.' || c == '%';
  }
  bool starts(std::string_view with) const { return text_.substr(at_, with.size()) == with; }
  void skip_to(std::string_view end) {
    const std::size_t found = text_.find(end, at_);
    at_ = found == std::string_view::npos ? text_.size() : found + end.size();
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// How often each entry's own body has the instruction.
std::map<std::string, int> requests(std::string_view ptx) {
  std::map<std::string, int> found;
  Words words(ptx);
  std::string kernel;
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    if (word == ".entry") {
      kernel = words.next();
    } else if (word == ".func") {
      kernel.clear();  // whose code it becomes is the assembler's choice
    } else if (!kernel.empty() &&
               word.substr(0, kInstruction.size() + 1) == std::string(kInstruction) + ".") {
      ++found[kernel];
    }
  }
  return found;
}

}  // namespace

std::vector<Finding> requested_but_absent(const CompiledModule& module,
                                          const std::vector<StaticFamily>& families,
                                          const std::vector<Diagnostic>& diagnostics) {
  std::vector<Finding> findings;
  if (module.ptx.empty() || module.cubin.empty()) return findings;
  for (const auto& [kernel, times] : requests(module.ptx)) {
    const auto in_kernel = [&, symbol = std::string_view(kernel)](const StaticFamily& f) {
      return f.kernel == symbol;
    };
    if (std::none_of(families.begin(), families.end(), in_kernel))
      continue;  // not in the cubin, so nothing is said of it
    if (std::any_of(families.begin(), families.end(), [&](const StaticFamily& f) {
          return in_kernel(f) && f.family == kInstruction && f.instructions > 0;
        }))
      continue;
    std::string remark;
    for (const Diagnostic& d : diagnostics)
      if (d.message.find(kInstruction) != std::string::npos && (d.function.empty() || d.function == kernel) &&
          remark.empty())
        remark = d.message;
    json::Writer evidence;
    evidence.begin_object()
        .field("kernel", kernel)
        .field("instruction", kInstruction)
        .field("in_ptx", times)
        .key("ptxas");
    if (remark.empty())
      evidence.null();
    else
      evidence.string(remark);
    evidence.end_object();
    findings.push_back({"requested_but_absent", Severity::note,
                        kernel + " has " + std::to_string(times) +
                            " setmaxnreg in its PTX and none in its machine code" +
                            (remark.empty() ? "; ptxas did not say why" : "; ptxas: " + remark),
                        std::move(evidence).str()});
  }
  return findings;
}

}  // namespace ptxbench
