// What compilers emit: every fixture parses, and says what its text says.
#include "ptx_support.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

using namespace ptxbench;
using namespace ptxbench::testing;
using Kind = ptx::Operand::Kind;

namespace {

const std::filesystem::path kFixtures = std::filesystem::path(PTXBENCH_SOURCE_DIR) / "tests" / "fixtures";

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

ptx::Module parse_file(const std::filesystem::path& path) {
  auto module = ptx::parse(read(path), path.filename().string());
  if (!module) FAIL(module.error().to_string());
  return std::move(module).value();
}

std::size_t occurrences(const std::string& text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size()))
    ++count;
  return count;
}

std::map<std::string, int> histogram(const ptx::Module& module) {
  std::map<std::string, int> counts;
  for (const ptx::Function& function : module.functions)
    for (const ptx::Instruction& instruction : function.body) ++counts[instruction.text()];
  return counts;
}

// What holds in any module: indices lead somewhere.
void check_operand(const ptx::Module& module, const ptx::Function& function, const ptx::Operand& operand) {
  bool inside = true;
  if (operand.kind == Kind::reg) inside = operand.index < function.registers.size();
  if (operand.kind == Kind::variable)
    inside = operand.index < (operand.module_scope ? module.variables.size() : function.variables.size());
  if (operand.kind == Kind::function) inside = operand.index < module.functions.size();
  if (operand.kind == Kind::label) inside = operand.index <= function.body.size();
  if (operand.kind == Kind::special) inside = !operand.name.empty();
  if (!inside) FAIL("an operand of " + function.name + " leads nowhere");
  for (const ptx::Operand& part : operand.parts) check_operand(module, function, part);
}

}  // namespace

TEST_CASE("every compiler's PTX parses") {
  int files = 0;
  for (const char* folder : {"compiler_ptx", "nvrtc_ptx"}) {
    for (const auto& entry : std::filesystem::directory_iterator(kFixtures / folder)) {
      if (entry.path().extension() != ".ptx") continue;
      ++files;
      INFO(entry.path().filename().string());
      const std::string text = read(entry.path());
      const ptx::Module module = parse_file(entry.path());
      std::size_t entries = 0, instructions = 0, parameters = 0;
      for (const ptx::Function& function : module.functions) {
        entries += function.entry;
        parameters += function.entry ? function.parameter_count : 0;
        instructions += function.body.size();
        for (const ptx::Instruction& instruction : function.body) {
          for (const ptx::Operand& operand : instruction.operands) check_operand(module, function, operand);
          if (instruction.location >= 0) CHECK(module.source_line(instruction.location) != "");
        }
      }
      CHECK(entries == occurrences(text, ".entry "));
      CHECK(entries > 0);
      CHECK(parameters > 0);
      CHECK(instructions > 10);
      CHECK(module.address_bits == 64);
      REQUIRE(module.targets.size() >= 1);
      CHECK(module.targets[0].substr(0, 3) == "sm_");
      CHECK(module.files.size() == occurrences(text, "\t.file\t"));
      const bool nul = text.back() == '\0';
      CHECK(module.notes.size() == (nul ? 1u : 0u));
    }
  }
  CHECK(files >= 65);
}

TEST_CASE("Triton: parameters, shared memory, source lines, a branch table") {
  const ptx::Module vadd = parse_file(kFixtures / "compiler_ptx" / "triton3.9.0_vadd_pdl_sm90.ptx");
  const ptx::Function& k = *vadd.find("vadd");
  CHECK(k.parameter_count == 6);
  CHECK(k.variables[0].pointee_space == ptx::Space::global);
  CHECK(k.variables[0].pointee_align == 1);
  CHECK_FALSE(k.variables[3].pointee_space);
  CHECK(k.required_block == std::array<std::uint32_t, 3>{128, 1, 1});
  CHECK(k.max_registers == 64u);
  CHECK(k.body.size() == 81);
  CHECK(vadd.source_line(k.body[0].location).find("tri_kernels.py:5") != std::string::npos);
  // @%p1 ld.global.b32 { %r1 }, [ %rd1 + 0 ];
  const auto load = std::find_if(k.body.begin(), k.body.end(),
                                 [](const ptx::Instruction& i) { return i.text() == "ld.global.b32"; });
  REQUIRE(load != k.body.end());
  REQUIRE(load->guard);
  CHECK(k.registers[load->guard->reg].name == "%p1");
  CHECK(load->operands[0].kind == Kind::vector);
  CHECK(load->operands[1].kind == Kind::address);

  const ptx::Module warps = parse_file(kFixtures / "compiler_ptx" / "triton3.9.0_gemm_ws_ws_sm100.ptx");
  int tables = 0;
  for (const ptx::Instruction& instruction : warps.functions[0].body) {
    if (instruction.opcode != "brx") continue;
    ++tables;
    CHECK(instruction.operands[1].kind == Kind::list);
    CHECK(instruction.operands[1].parts.size() == 4);
    CHECK(instruction.operands[1].parts[0].kind == Kind::label);
  }
  CHECK(tables == 1);

  const ptx::Module cluster =
      parse_file(kFixtures / "compiler_ptx" / "triton3.9.0_gemm_hostdesc_ctas2_sm90.ptx");
  CHECK(cluster.functions[0].required_cluster == std::array<std::uint32_t, 3>{2, 1, 1});
  CHECK(cluster.functions[0].explicit_cluster);
  CHECK(cluster.functions[0].variables[0].bytes == 128);
  CHECK(cluster.functions[0].variables[0].align == 64);
  REQUIRE(cluster.variables.size() == 1);
  CHECK((cluster.variables[0].unsized && cluster.variables[0].external && cluster.variables[0].align == 16));
}

TEST_CASE("the other compilers") {
  const ptx::Module mosaic = parse_file(kFixtures / "compiler_ptx" / "jax0.10.2_mosaicgpu_gemm_sm90a.ptx");
  CHECK(mosaic.functions[0].max_block == std::array<std::uint32_t, 3>{128, 1, 1});
  CHECK(mosaic.functions[0].variables[0].bytes == 384);
  CHECK(mosaic.functions[0].variables[1].space == ptx::Space::shared);
  CHECK(mosaic.functions[0].variables[1].bytes == 1);

  const ptx::Module warp = parse_file(kFixtures / "compiler_ptx" / "warp1.19.0_vadd_sm90.ptx");
  CHECK(warp.notes == std::vector<std::string>{"a NUL at the end of the text is left out"});
  CHECK(warp.variables.size() == 50);

  const ptx::Module clang =
      parse_file(kFixtures / "compiler_ptx" / "clang19.1.7_vadd_softmax_gemm64_sm90a.ptx");
  CHECK(clang.functions.size() == 3);
  CHECK(clang.find("vadd") != nullptr);

  const ptx::Module numba = parse_file(kFixtures / "compiler_ptx" / "numbacuda0.30.4_softmax_sm90.ptx");
  CHECK(std::any_of(numba.variables.begin(), numba.variables.end(),
                    [](const ptx::Variable& v) { return v.common; }));
  CHECK(std::any_of(numba.variables.begin(), numba.variables.end(),
                    [](const ptx::Variable& v) { return v.space == ptx::Space::shared && v.bytes == 1024; }));

  const ptx::Module tile = parse_file(kFixtures / "compiler_ptx" / "cutile1.7.0_gemm_sm90_plain90.ptx");
  CHECK(std::any_of(tile.variables.begin(), tile.variables.end(),
                    [](const ptx::Variable& v) { return v.bytes == 196760; }) !=
        std::any_of(tile.functions[0].variables.begin(), tile.functions[0].variables.end(),
                    [](const ptx::Variable& v) { return v.bytes == 196760; }));
}

TEST_CASE("NVRTC: the fast candidate") {
  const ptx::Module gemm = parse_file(kFixtures / "nvrtc_ptx" / "gemm_wgmma_sm_90a.ptx");
  REQUIRE(gemm.functions.size() == 3);
  for (const ptx::Function& function : gemm.functions) {
    CHECK((function.entry && function.weak && function.parameter_count == 4));
    CHECK((function.variables[0].bytes == 128 && function.variables[0].align == 128));
    CHECK(function.variables[3].bytes == 4);
    CHECK(function.max_block == std::array<std::uint32_t, 3>{384, 1, 1});
  }
  const auto counts = histogram(gemm);
  CHECK(counts.at("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16") == 4);
  int accumulators = 0;
  bool inlined = false;
  for (const ptx::Function& function : gemm.functions) {
    for (const ptx::Instruction& instruction : function.body) {
      if (instruction.text() == "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16")
        accumulators = static_cast<int>(instruction.operands[0].parts.size());
      inlined = inlined || gemm.source_line(instruction.location).find("(inlined at gemm_wgmma.cu:") !=
                               std::string::npos;
    }
  }
  CHECK(accumulators == 128);
  CHECK(inlined);
}

TEST_CASE("NVRTC: calls, tables, externs, constants") {
  for (const char* file : {"features_sm_90a.ptx", "features_sm_100a.ptx", "features_debug_sm_90a.ptx"}) {
    INFO(file);
    const ptx::Module module = parse_file(kFixtures / "nvrtc_ptx" / file);
    const ptx::Function* print = module.find("vprintf");
    REQUIRE(print != nullptr);
    CHECK((print->declared_only && print->parameter_count == 2 && print->return_count == 1));
    REQUIRE(module.find("__assertfail") != nullptr);
    CHECK(module.find("__assertfail")->parameter_count == 5);
    const ptx::Function* k = module.find("features");
    REQUIRE(k != nullptr);
    int direct = 0, indirect = 0;
    for (const ptx::Instruction& instruction : k->body) {
      if (instruction.opcode != "call") continue;
      const std::size_t callee = instruction.operands[0].kind == Kind::list ? 1 : 0;
      REQUIRE(instruction.operands.size() >= callee + 2);
      CHECK(instruction.operands[callee + 1].kind == Kind::list);
      if (instruction.operands[callee].kind == Kind::function) ++direct;
      if (instruction.operands[callee].kind != Kind::reg) continue;
      ++indirect;
      REQUIRE(instruction.operands.size() == callee + 3);
      const ptx::Prototype& prototype = k->prototypes.at(instruction.operands[callee + 2].index);
      CHECK((prototype.parameters.size() == 1 && prototype.returns.size() == 1));
    }
    CHECK(direct >= 4);
    CHECK(indirect == 1);
    const auto variable = [&](std::string_view name) -> const ptx::Variable& {
      for (const ptx::Variable& v : module.variables)
        if (v.name == name) return v;
      FAIL("no variable " + std::string(name));
      return module.variables[0];
    };
    CHECK(variable("scale").space == ptx::Space::constant);
    CHECK(variable("scale").init.size() == 16);
    CHECK(variable("grid_shape").bytes == 24);
    CHECK(variable("cursor").relocations.at(0).symbol == "counter");
    CHECK(variable("cursor").relocations.at(0).generic);
    CHECK(variable("steps").relocations.size() == 2);
    CHECK(variable("links").relocations.size() == 3);
    CHECK(variable("table").bytes == 300);
    CHECK(variable("dynamic").unsized);
  }
}
