// A PTX module as parsed: names resolved, blocks flattened, nothing interpreted. What instructions mean is known
// by who executes or reads them; here an instruction is its opcode, its modifiers and its operands.
//
// PTX ISA 9.0, chapters 4 (Syntax), 5 (State Spaces, Types, and Variables), 6 (Instruction Operands), 7
// (Abstracting the ABI), 11 (Directives). Accepted: what NVRTC, LLVM, Triton, Mosaic GPU, cuTile and Numba emit.
#pragma once

#include <ptxbench/core.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ptxbench::ptx {

struct Position {
  std::uint32_t line = 0, column = 0;  // from 1, in the PTX text; 0 unknown
};

enum class Space : std::uint8_t { generic, global, shared, local, param, constant };

// Types of registers and variables.
enum class Type : std::uint8_t { pred, b8, b16, b32, b64, b128, u8, u16, u32, u64, s8, s16, s32, s64,
                                 f16, f16x2, bf16, bf16x2, f32, f64 };
unsigned type_bits(Type type) noexcept;  // pred: 1
std::string_view type_name(Type type) noexcept;  // "b32"

// `.loc`: where in the source text an instruction came from.
struct SourceLocation {
  std::int32_t file = -1;  // in Module::files
  std::uint32_t line = 0, column = 0;
  std::int32_t inlined_at = -1;  // index in Module::locations of the call site that was inlined; -1 none
};
struct SourceFile {
  std::uint32_t number = 0;  // as `.file` numbers it
  std::string path;
};

// A place in a variable's image that holds the address of another symbol (or a function, which none executes).
struct Relocation {
  std::uint64_t offset = 0;
  std::string symbol;
  std::int64_t addend = 0;
  std::uint32_t bytes = 8;
  bool generic = false;  // generic(symbol)
  std::uint64_t mask = 0;  // mask(symbol): of one byte, 0xff << 8n, where not zero
};

// A variable of any space but .reg: of the module, of a function's body, or a parameter.
struct Variable {
  std::string name;
  Space space = Space::global;
  Type type = Type::b8;
  std::uint32_t vector = 1;               // .v2: 2
  std::uint64_t bytes = 0;                // all of it; 0 where unsized
  std::uint32_t align = 1;                // stated, else the natural one
  bool unsized = false;                   // `extern .shared .b8 s[]`
  bool external = false, visible = false, weak = false, common = false;
  std::vector<std::uint8_t> init;         // empty: zero. Never longer than `bytes`
  std::vector<Relocation> relocations;
  std::optional<Space> pointee_space;     // of a parameter: `.ptr .global`; generic for a bare .ptr
  std::uint32_t pointee_align = 0;
  Position where;
};

struct Register {
  std::string name;
  Type type = Type::b32;
};

struct Operand {
  enum class Kind : std::uint8_t {
    reg,         // `index` in Function::registers; `negated` for !p
    integer,     // `bits`: two's complement of 64
    f32,         // 0fXXXXXXXX: low 32 of `bits`
    f64,         // 0dX...X or a decimal number with point or exponent: `bits` of a double
    variable,    // the address of a variable, plus `offset`
    function,    // `index` in Module::functions
    special,     // %tid.x, %laneid, WARP_SZ: `name`
    label,       // `index` of the instruction that it stands before (body.size() at the end)
    address,     // [base + offset]: `parts` has one element, the base (reg, variable or integer)
    vector,      // {a, b}: `parts`; also a tensor operand's coordinates
    tensor,      // [map, {c0, c1}] or [map, {c0}, {o0}]: `parts` = address, vector(s)
    pair,        // a|b: `parts`, two
    sink,        // _
    list,        // (a, b) of a call, or a branch or call table: `parts`; or a call's prototype: no parts, `index` in
                 // Function::prototypes. Tables and prototypes have a `name`
  } kind = Kind::sink;
  bool negated = false;         // !p
  bool module_scope = false;    // of a variable: index in Module::variables, else as below
  std::uint32_t index = 0;      // a variable of the function: in Function::variables
  std::uint64_t bits = 0;
  std::int64_t offset = 0;
  std::string name;             // special
  std::vector<Operand> parts;
};

struct Guard {
  std::uint32_t reg = 0;
  bool negated = false;
};

struct Instruction {
  std::string opcode;                    // "cp"
  std::vector<std::string> modifiers;    // "async", "bulk", "mbarrier::complete_tx::bytes", in their order
  std::optional<Guard> guard;
  std::vector<Operand> operands;         // call: [list of returns,] function or reg, list of arguments[, prototype]
  Position where;
  std::int32_t location = -1;            // in Module::locations
  std::string text() const;              // opcode with its modifiers
};

// `name: .callprototype (...) _ (...);`: how the function is called whose address a register holds.
struct Prototype {
  std::string name;
  std::vector<Variable> parameters, returns;
  bool noreturn = false;
};

struct Function {
  std::string name;
  bool entry = false, declared_only = false, noreturn = false, visible = false, weak = false;
  // Parameters come first in `variables` (space param), then returns, then what the body declares. Registers that are
  // formal parameters of a .func (old style) are not supported.
  std::uint32_t parameter_count = 0, return_count = 0;
  std::vector<Variable> variables;
  std::vector<Register> registers;
  std::vector<Instruction> body;
  std::vector<std::pair<std::string, std::uint32_t>> labels;  // name, index of the instruction behind it
  std::vector<Prototype> prototypes;
  std::optional<std::array<std::uint32_t, 3>> required_block, max_block, required_cluster;  // .reqntid .maxntid .reqnctapercluster
  bool explicit_cluster = false, blocks_are_clusters = false;
  std::optional<std::uint32_t> max_cluster_rank, min_ctas_per_sm, max_registers;
  Position where;
};

struct Module {
  std::uint32_t version_major = 0, version_minor = 0;
  std::vector<std::string> targets;      // "sm_90a"
  std::uint32_t address_bits = 64;
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::vector<SourceFile> files;
  std::vector<SourceLocation> locations;
  std::vector<std::string> notes;        // hygiene: a trailing NUL, an unknown pragma or directive that was ignored

  const Function* find(std::string_view name) const noexcept;
  // "gemm.cu:12:3 (inlined at gemm.cu:40)"; empty where unknown.
  std::string source_line(std::int32_t location) const;
};

// Parses PTX text. Errors have ErrorCode::parse and name @p name, the
// line and the column. Never crashes or hangs on any text; nesting and sizes are bounded.
Result<Module> parse(std::string_view text, std::string_view name);

}  // namespace ptxbench::ptx
