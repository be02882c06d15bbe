// rsqrt.approx.f64 against the card: sums of its results on 2^20 operands (tests/fixtures/arithmetic).
#include "emulator/support.hpp"
#include "fixtures/arithmetic/operands.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

using namespace ptxbench::testing;
using probe::u32;
using probe::u64;

namespace {

constexpr const char* kKernel = R"(
.visible .entry k(.param .u64 p) {
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  .reg .f64 %fd<4>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r1, %r1, %r2, %r3;
  mul.wide.u32 %rd2, %r1, 8;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.f64 %fd1, [%rd3];
  rsqrt.approx.f64 %fd2, %fd1;
  st.global.f64 [%rd3], %fd2;
  ret;
}
)";

// The results that lie in the file PTXBENCH_PROBE_RESULTS (the probe's second output), if any: what differs.
std::string differences(const std::vector<u64>& ours) {
  const char* path = std::getenv("PTXBENCH_PROBE_RESULTS");
  if (path == nullptr) return "";
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  int count = 0;
  u64 card = 0;
  for (u32 i = 0; i < ours.size() && file.read(reinterpret_cast<char*>(&card), sizeof card); ++i)
    if (card != ours[i] && count++ < 12)
      out << std::hex << "\n  " << probe::rsqrt_operand(i) << ": card " << card << ", here " << ours[i];
  out << std::dec << "\n  " << count << " differ";
  return out.str();
}

}  // namespace

TEST_CASE("rsqrt.approx.f64 has the card's bits") {
  std::vector<u64> values(probe::kRsqrtOperands);
  for (u32 i = 0; i < values.size(); ++i) values[i] = probe::rsqrt_operand(i);
  Machine m(kKernel);
  const std::uint64_t p = m.upload(values);
  LaunchShape shape;
  shape.grid = {probe::kRsqrtOperands / 256, 1, 1};
  shape.block = {256, 1, 1};
  const Run run = m.launch(shape, p);
  REQUIRE_CLEAN(run);
  const auto ours = m.read<u64>(p, values.size());
  std::ifstream sums(PTXBENCH_SOURCE_DIR "/tests/fixtures/arithmetic/rsqrt_f64.sums");
  REQUIRE(sums);
  std::string text;
  u32 wrong = 0, blocks = 0;
  for (; std::getline(sums, text); ++blocks) {
    REQUIRE(blocks < probe::kRsqrtOperands / probe::kBlock);
    u32 sum = 0;
    for (u32 i = blocks * probe::kBlock; i < (blocks + 1) * probe::kBlock; ++i)
      sum += probe::term(i, ours[i]);
    wrong += sum != std::stoul(text, nullptr, 16);
  }
  CHECK(blocks == probe::kRsqrtOperands / probe::kBlock);
  INFO(differences(ours));
  CHECK(wrong == 0);
}
