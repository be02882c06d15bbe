// The logs of NVRTC and ptxas as data.
#pragma once

#include <ptxbench/compile.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxbench {

// Every message of a log, in its order, repeated ones once. Files are as the tool printed them; where ptxas
// spoke, `ptx_line` is set and file and line are not. Resource lines (resources.hpp) are not messages. A line
// that looks like an error and has no known form is kept whole, so that nothing is lost. Never fails.
std::vector<Diagnostic> parse_compiler_log(std::string_view log);

// Where the lines of a PTX text come from.
class PtxLineMap {
 public:
  explicit PtxLineMap(std::string_view ptx);
  struct Place {
    std::string file;  // as the PTX's .file says
    int line = 0, column = 0;
    std::string function;     // symbol
    std::string instruction;  // the PTX line, trimmed
    std::string opcode;       // its first word, "cp.async.bulk.tensor.2d.shared"
    int occurrence = 0;       // how many lines before it in the same asm statement have that opcode
    bool in_asm = false;
  };
  // Of a 1-based line; all empty where it says nothing.
  Place at(int ptx_line) const;

 private:
  std::vector<std::string_view> lines_;
  std::vector<std::pair<int, std::string>> files_;
};

// Gives ptxas's messages the CUDA line they are about. For an asm statement `.loc` knows only where the
// statement begins; `text_of` gives a source's text, in which the instruction itself is looked for from
// there.
using TextOf = std::function<std::string_view(const std::string& file)>;
void map_to_sources(std::vector<Diagnostic>& diagnostics, std::string_view ptx, const TextOf& text_of);

// What the messages mean: wgmma_serialized, setmaxnreg_ignored, register_budget, architecture_instruction;
// and, in the messages themselves, the nearest valid form of an unknown instruction. `arch` is what was
// compiled for.
std::vector<Finding> interpret_diagnostics(std::vector<Diagnostic>& diagnostics, std::string_view ptx,
                                           std::string_view arch);

// A readable name for a symbol: "void gemm<128>(float*)". The symbol itself where it is not mangled.
std::string demangle(const std::string& symbol);

}  // namespace ptxbench
