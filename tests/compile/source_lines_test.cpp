// Which source line each machine instruction is of, by the compiler's own table.
#include "support/catch.hpp"
#include "support/nvrtc_compile.hpp"

#include <ptxbench/count.hpp>
#include <ptxbench/sass.hpp>

#include <algorithm>
#include <cstring>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

constexpr const char* kSource = R"(__device__ __forceinline__ float twice(float x) {
  return x * 2.0f + 1.0f;
}
extern "C" __global__ void first(float* y) {
  y[threadIdx.x] = twice(y[threadIdx.x]);
}
extern "C" __global__ void second(float* y) {
  float x = y[threadIdx.x];
  for (int i = 0; i < 100; ++i)
    asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x));
  y[threadIdx.x] = x;
}
)";

struct Built {
  std::vector<std::uint8_t> file;
  sass::Cubin cubin;
};
Built compiled(const std::string& arch) {
  auto text = nvrtc_compile(kSource, arch);
  if (!text) FAIL(text.error().to_string());
  const auto cubin = sass::read_cubin(text->cubin);
  REQUIRE(cubin);
  return {std::move(text->cubin), *cubin};
}

const sass::Kernel& kernel(const sass::Cubin& cubin, const char* symbol) {
  const auto found = std::find_if(cubin.kernels.begin(), cubin.kernels.end(),
                                  [&](const sass::Kernel& k) { return k.symbol == symbol; });
  REQUIRE(found != cubin.kernels.end());
  return *found;
}

// Of the kernel's instructions of @p mnemonic: the lines.
std::vector<std::string> lines_of(const std::vector<std::uint8_t>& file, const sass::Cubin& cubin,
                                  const char* symbol, const std::string& mnemonic) {
  const sass::Kernel& k = kernel(cubin, symbol);
  const auto lines = sass::source_lines(file, k);
  REQUIRE(lines);
  std::vector<std::string> out;
  for (std::uint64_t pc = 0; pc < k.code_bytes; pc += 16) {
    sass::Word word;
    std::memcpy(&word, file.data() + k.code_offset + pc, 16);
    if (sass::decode(cubin.sm, word).mnemonic != mnemonic) continue;
    const sass::SourceLine* line = sass::line_at(*lines, static_cast<std::uint32_t>(pc));
    REQUIRE(line != nullptr);
    std::string text;
    for (const sass::SourcePlace& place : line->places)
      text += (text.empty() ? "" : " < ") + place.file.substr(place.file.rfind('/') + 1) + ":" +
              std::to_string(place.line);
    out.push_back(text);
  }
  return out;
}

}  // namespace

TEST_CASE("source lines: of each kernel, and where code is inlined the call's line") {
  const auto [file, cubin] = compiled(GENERATE(as<std::string>{}, "sm_90a", "sm_100a"));
  CHECK(lines_of(file, cubin, "first", "LDG") == std::vector<std::string>{"test.cu:5"});
  CHECK(lines_of(file, cubin, "first", "STG") == std::vector<std::string>{"test.cu:5"});
  const auto inlined = lines_of(file, cubin, "first", "FFMA");
  REQUIRE(inlined.size() == 1);
  CHECK(inlined[0] == "test.cu:2 < test.cu:5");
  CHECK(lines_of(file, cubin, "second", "LDG") == std::vector<std::string>{"test.cu:8"});
  CHECK(lines_of(file, cubin, "second", "STG") == std::vector<std::string>{"test.cu:11"});
  const auto looped = lines_of(file, cubin, "second", "FFMA");
  REQUIRE_FALSE(looped.empty());
  for (const std::string& line : looped) CHECK(line == "test.cu:10");
}

TEST_CASE("source lines: counts are added up by line and family") {
  const auto [file, cubin] = compiled("sm_90a");
  const sass::Kernel& k = kernel(cubin, "first");
  CountEvidence evidence;
  evidence.method = "cupti_sass";
  evidence.trial.emplace();
  evidence.as_verified = true;
  KernelRecords records;
  records.symbol = "first";
  for (std::uint32_t pc = 0; pc < k.code_bytes; pc += 16) records.records.push_back({pc, 2, 64});
  evidence.kernels.push_back(records);
  CompiledModule module;
  module.source = "test.cu";
  module.cubin = file;
  Verdict verdict;
  compose_counts(evidence, {module}, {{"first", "one"}}, verdict);
  REQUIRE(verdict.counts.state == Availability::measured);
  std::uint64_t all = 0, fma = 0;
  for (const LineCount& line : verdict.counts.lines) {
    CHECK(line.kernel == "one");
    all += line.warp_instructions;
    if (line.family == "fp32" && line.source.find("test.cu:2 (inlined at ") != std::string::npos) fma += line.thread_instructions;
  }
  CHECK(all == 2 * k.code_bytes / 16);  // every instruction is of a line
  CHECK(fma == 64);
}

TEST_CASE("source lines: a broken table is an error or other lines, never a crash; none is none") {
  const auto [file, cubin] = compiled("sm_90a");
  const sass::Kernel& k = kernel(cubin, "second");
  // Where the table is: its file's name stands in it once.
  const std::string name = "test.cu";
  const auto at = std::search(file.begin(), file.end(), name.begin(), name.end());
  REQUIRE(at != file.end());
  const auto from = static_cast<std::size_t>(at - file.begin());
  std::size_t errors = 0;
  for (std::size_t i = from < 64 ? 0 : from - 64; i < from + 400; ++i)
    for (const std::uint8_t value : {0x00, 0xff, 0x80}) {
      std::vector<std::uint8_t> broken = file;
      broken[i] = value;
      if (const auto lines = sass::source_lines(broken, k)) {
        for (const auto& line : *lines) CHECK_FALSE(line.places.empty());
      } else {
        ++errors;
      }
    }
  CHECK(errors > 0);
  sass::Kernel other = k;
  other.symbol = "another";
  CHECK(sass::source_lines(file, other)->empty());
}
