// Shapes and FLOPs of machine instructions: against nvdisasm's words, and against the PTX that ptxas made
// them of (tests/fixtures/mma_samples.csv, from tools/mma_shapes.py).
#include "sass/fixtures.hpp"
#include "sass/mma_shapes.hpp"
#include "sass/opcode_table.hpp"
#include "support/catch.hpp"

#include <ptxbench/sass.hpp>

#include <fstream>
#include <iomanip>
#include <map>
#include <regex>
#include <set>
#include <sstream>

using namespace ptxbench;
using sass::FlopPipe;

namespace {

struct Row {
  int sm;
  std::string ptx, disassembly;
  sass::Word word;
};

std::vector<Row> rows_of(const char* file, const std::string& header) {
  std::ifstream in(fixtures() / file);
  std::string line;
  std::getline(in, line);
  REQUIRE(line == header);
  std::vector<Row> rows;
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    std::string arch, ptx, low, high, text;
    std::getline(fields, arch, ',');
    std::getline(fields, ptx, ',');
    std::getline(fields, low, ',');
    std::getline(fields, high, ',');
    std::getline(fields, text);
    rows.push_back({std::stoi(arch.substr(3)),
                    ptx,
                    text,
                    {std::stoull(low, nullptr, 16), std::stoull(high, nullptr, 16)}});
  }
  return rows;
}
std::vector<Row> mma_samples() { return rows_of("mma_samples.csv", "arch,ptx,low64,high64,disassembly"); }

bool is_matrix(const sass::Opcode& opcode) { return opcode.family == "wgmma" || opcode.family == "mma_sync"; }

// The shape as nvdisasm writes it: "HGMMA.64x8x16", "HMMA.SP.16832", "DMMA.8x8x4".
std::optional<sass::MmaShape> written_shape(const std::string& disassembly) {
  static const std::regex kWithX(R"(MMA(\.SP)?\.(\d+)x(\d+)x(\d+))"),
      kDigits(R"(MMA(\.SP)?\.(16|8)(8)(\d+))");
  std::smatch m;
  if (!std::regex_search(disassembly, m, kWithX) && !std::regex_search(disassembly, m, kDigits))
    return std::nullopt;
  const auto number = [&](std::size_t i) { return static_cast<std::uint16_t>(std::stoi(m[i].str())); };
  return sass::MmaShape{number(2), number(3), number(4), m[1].matched};
}

void check_shape(int sm, sass::Word word, const std::string& disassembly) {
  INFO("sm_" << sm << " " << disassembly);
  const auto wanted = written_shape(disassembly);
  const auto got = sass::mma_shape(sm, word);
  REQUIRE(wanted);
  REQUIRE(got);
  CHECK(got->m == wanted->m);
  CHECK(got->n == wanted->n);
  CHECK(got->k == wanted->k);
  CHECK(got->sparse == wanted->sparse);
}

sass::Flops flops(int sm, std::uint64_t low, std::uint64_t high) { return sass::flops_of(sm, {low, high}); }
void check(sass::Flops got, FlopPipe pipe, std::optional<std::uint32_t> per_thread) {
  CHECK(got.pipe == pipe);
  CHECK(got.per_thread == per_thread);
}

}  // namespace

TEST_CASE("mma shapes: every sample has the shape that nvdisasm writes") {
  std::size_t matrix = 0;
  for (const Row& sample : rows_of("sass_samples.csv", "arch,opcode,low64,high64,disassembly"))
    if (is_matrix(sass::decode(sample.sm, sample.word))) {
      check_shape(sample.sm, sample.word, sample.disassembly);
      ++matrix;
    }
  CHECK(matrix > 20);
  const std::vector<Row> samples = mma_samples();
  REQUIRE(samples.size() > 150);
  for (const Row& sample : samples) {
    check_shape(sample.sm, sample.word, sample.disassembly);
    // What the scheduler writes beside it, registers and the predicate are not the shape's.
    check_shape(sample.sm, {sample.word.low ^ 0xff000f000, sample.word.high ^ 0xff00000000000},
                sample.disassembly);
  }
}

TEST_CASE("mma shapes: what ptxas makes of a PTX instruction has its FLOPs") {
  static const std::regex kShape(R"(\.m(\d+)n(\d+)k(\d+)\.)");
  std::map<std::pair<int, std::string>, std::uint64_t> executed;
  for (const Row& sample : mma_samples()) {
    const sass::Flops got = sass::flops_of(sample.sm, sample.word);
    REQUIRE(got.per_thread);
    const bool own = sample.ptx.rfind("wgmma", 0) == 0;
    CHECK(got.pipe == (own ? FlopPipe::arch_mma : FlopPipe::mma_sync));
    executed[{sample.sm, sample.ptx}] += std::uint64_t{*got.per_thread} * (own ? 128 : 32);
  }
  std::set<std::string> shapes;
  for (const auto& [key, sum] : executed) {
    std::smatch m;
    REQUIRE(std::regex_search(key.second, m, kShape));
    shapes.insert(m.str());
    std::uint64_t wanted = 2;
    for (std::size_t i = 1; i < 4; ++i) wanted *= std::stoull(m[i].str());
    if (key.second.find(".sp") != std::string::npos) wanted /= 2;
    // What the architecture lacks, the assembler makes of other shapes: twice the work, and that is what is
    // executed.
    const auto is = [&](int sm, const char* start) {
      return key.first == sm && key.second.rfind(start, 0) == 0;
    };
    if (is(90, "mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.xor") ||
        is(100, "mma.sync.aligned.m8n8k16.row.col.s32") ||
        is(100, "mma.sync.aligned.m8n8k128.row.col.s32.b1"))
      wanted *= 2;
    INFO("sm_" << key.first << " " << key.second);
    CHECK(sum == wanted);
  }
  for (int n = 8; n <= 256; n += 8) CHECK(shapes.count(".m64n" + std::to_string(n) + "k16.") == 1);
}

TEST_CASE("FLOPs: by hand") {
  // HGMMA.64x128x16: 2*64*128*16 = 262144 for 128 threads. HGMMA.64x8x16 2*64*8*16 / 128.
  check(flops(90, 0x41e000000c1879f0, 0x000fd8000c7000ff), FlopPipe::arch_mma, 2048);
  check(flops(90, 0x00000000041879f0, 0x000fe2000c0018ff), FlopPipe::arch_mma, 128);
  // HGMMA.SP.64x8x32 makes half of 64*8*32 products. QGMMA.64x8x32, BGMMA.64x8x256.
  check(flops(90, 0x08001c00081879f0, 0x000fe60008001a18), FlopPipe::arch_mma, 128);
  check(flops(90, 0x00000000041879f3, 0x000fe2000c0008ff), FlopPipe::arch_mma, 256);
  check(flops(90, 0x00000000081879f2, 0x000fe60008014018), FlopPipe::arch_mma, 2048);
  // HMMA.16816.F32.BF16: 2*16*8*16 = 4096 for 32 threads. IMMA.16832, DMMA.8x8x4, HMMA.SP.16832.
  check(flops(90, 0x000000020804723c, 0x000fe200000418ff), FlopPipe::mma_sync, 128);
  check(flops(90, 0x0000000c08087237, 0x000fe20000405cff), FlopPipe::mma_sync, 256);
  check(flops(90, 0x0000000c0a04723f, 0x008e1e0000000004), FlopPipe::mma_sync, 16);
  check(flops(90, 0x0000000c0804723c, 0x004fee0000045a04), FlopPipe::mma_sync, 128);
  // tcgen05.mma: its shape is not in the instruction.
  check(flops(100, 0x00ff040a080075ea, 0x00f9d8000b800006), FlopPipe::arch_mma, std::nullopt);
  // FADD, FMUL, FFMA, FFMA2, FMUL2, FADD2; DADD, DMUL, DFMA; HADD2, HMUL2, HFMA2, HFMA2.MMA.
  check(flops(90, 0x0000001512127221, 0x001fce0000000000), FlopPipe::fp32, 1);
  check(flops(90, 0x4040000008087820, 0x002fc80000400000), FlopPipe::fp32, 1);
  check(flops(90, 0x0000001710098223, 0x000fc80000000109), FlopPipe::fp32, 2);
  check(flops(100, 0x0000000604047249, 0x004fca0000000004), FlopPipe::fp32, 4);
  check(flops(100, 0x000000080606724a, 0x000fe20000000000), FlopPipe::fp32, 2);
  check(flops(100, 0x00000008060c724b, 0x040fe40000000000), FlopPipe::fp32, 2);
  check(flops(90, 0x00000000060a7229, 0x040fe40000000004), FlopPipe::fp64, 1);
  check(flops(90, 0x00000004060c7228, 0x000fc80000000000), FlopPipe::fp64, 1);
  check(flops(90, 0x0000000c0c0c722b, 0x000fe4000000000c), FlopPipe::fp64, 2);
  check(flops(90, 0x0000001011157230, 0x004fe20000000000), FlopPipe::half, 2);
  check(flops(90, 0x00000007000b7232, 0x0d0fe40000000000), FlopPipe::half, 2);
  check(flops(90, 0x0000000700077231, 0x004fca0003808008), FlopPipe::half, 4);
  check(flops(90, 0x00000007000d7235, 0x004fe2000000000c), FlopPipe::half, 4);
}

TEST_CASE("FLOPs: moves, conversions and what is no arithmetic are none") {
  check(flops(90, 0xb94d4153ff057435, 0x000fe200000001ff), FlopPipe::half,
        0);  // HFMA2.MMA R5, -RZ, RZ, a constant
  check(flops(100, 0x00000000ff027431, 0x001fe400000001ff), FlopPipe::half, 0);  // HFMA2 R2, -RZ, RZ, 0, 0
  check(flops(100, 0x200000170214727c, 0x0c1fe2000501b800), FlopPipe::half, 4);  // QMUL4 R20, R2, R23, of fp8
  check(flops(90, 0x20000012ff097230, 0x008fca0000004100), FlopPipe::half,
        0);  // HADD2.F32 R9, -RZ, R18.H0_H0
  check(flops(90, 0x800000ff02027221, 0x000fc80000010100), FlopPipe::fp32, 0);  // FADD.FTZ R2, -R2, -RZ
  check(flops(90, 0x00000004ff117221, 0x000fe20000002000), FlopPipe::fp32, 0);  // FADD.SAT R17, RZ, R4
  // FADD R2, R0, 1: the immediate is no register, whatever its bits.
  check(flops(90, 0x3f80000000021421, 0x000fe20000010000), FlopPipe::fp32, 1);
  check(flops(90, 0x3f8000ff00021421, 0x000fe20000010000), FlopPipe::fp32, 1);
  // DADD R10, R6, -RZ: its second operand is in the high half.
  check(flops(90, 0x00000000060a7229, 0x040fe400000001ff), FlopPipe::fp64, 0);
  for (const Row& sample : rows_of("sass_samples.csv", "arch,opcode,low64,high64,disassembly")) {
    const std::string family = sass::decode(sample.sm, sample.word).family;
    const FlopPipe pipe = sass::flops_of(sample.sm, sample.word).pipe;
    INFO(sample.disassembly);
    if (family == "int" || family == "sfu" || family == "conversion" || family == "atomics" ||
        family == "control")
      CHECK(pipe == FlopPipe::none);
    CHECK((pipe == FlopPipe::arch_mma) == (family == "wgmma" || family == "tcgen05_mma"));
    CHECK((pipe == FlopPipe::mma_sync) == (family == "mma_sync"));
  }
}

TEST_CASE("FLOPs: what the tables lack is unknown") {
  check(flops(90, 0x00000000000071ff, 0), FlopPipe::none, std::nullopt);
  check(flops(50, 0x000000020804723c, 0x000fe200000418ff), FlopPipe::none, std::nullopt);
  // Bits that nvdisasm calls INVALID: HMMA with sizes 3, HGMMA.INVALID64.
  check(flops(90, 0x000000020804723c, 0x000fe200000458ff), FlopPipe::mma_sync, std::nullopt);
  check(flops(90, 0x08000000041879f0, 0x000fe2000c0018ff), FlopPipe::arch_mma, std::nullopt);
  CHECK(!sass::mma_shape(90, {0x0000001512127221, 0x001fce0000000000}));   // FADD
  CHECK(!sass::mma_shape(100, {0x00000000041879f0, 0x000fe2000c0018ff}));  // no wgmma on 10.0
}

TEST_CASE("mma shapes: no two rows take the same word, and the compiled table is the one in the file") {
  std::ifstream in(fixtures() / "../../src/sass/mma_shapes.csv");
  std::string line;
  std::getline(in, line);
  std::set<std::string> keys;
  std::map<std::pair<int, int>, std::pair<std::uint64_t, std::uint64_t>> masks;
  for (const sass::MmaShapeRow& row : sass::mma_shape_rows()) {
    REQUIRE(std::getline(in, line));
    std::ostringstream key, text;
    key << row.first_sm << ',' << row.last_sm << ",0x" << std::hex << std::setfill('0') << std::setw(3)
        << row.operation << std::setw(0) << ",0x" << row.mask_low << ",0x" << row.value_low << ",0x"
        << row.mask_high << ",0x" << row.value_high << ',' << std::dec;
    const std::string start = key.str();
    CHECK(keys.insert(start).second);
    CHECK(line.substr(0, start.size()) == start);
    text << ',' << row.m << ',' << row.n << ',' << row.k << ',' << (row.sparse ? 1 : 0);
    const std::string end = text.str();
    REQUIRE(line.size() > end.size());
    CHECK(line.substr(line.size() - end.size()) == end);
    const sass::Opcode opcode = sass::decode(row.first_sm, {row.operation, 0});
    CHECK(is_matrix(opcode));
    // One operation, one set of bits: so keys that differ never take the same word.
    const auto bits =
        masks.try_emplace({row.first_sm, row.operation}, row.mask_low, row.mask_high).first->second;
    CHECK(bits == std::make_pair(row.mask_low, row.mask_high));
  }
  CHECK(!std::getline(in, line));
}
