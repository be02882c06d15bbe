// A whole attention of examples/data and a candidate for it: the warp-specialised wgmma kernel of
// tests/fixtures/kernels, whose definition there calls the log-sum-exp L. Judged through the whole library,
// on the emulator and on a GPU.
#pragma once

#include "support/kernel_cases.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace ptxbench::testing {

// A workload of a definition of examples/data, of its own or of other axes.
inline Workload shipped_attention(const std::string& name,
                                  const std::vector<std::pair<std::string, std::int64_t>>& axes) {
  const auto definition =
      load_definition(PTXBENCH_SOURCE_DIR "/examples/data/definitions/attention/" + name + ".json");
  if (!definition) FAIL(definition.error().to_string());
  Workload w;
  w.definition = *definition;
  w.axes = axes;
  w.uuid = "attention";
  auto made = make_workload(std::move(w));
  if (!made) FAIL(made.error().to_string());
  return *made;
}

inline void replace_once(std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  INFO(from);
  REQUIRE(at != std::string::npos);
  REQUIRE(text.find(from, at + 1) == std::string::npos);
  text.replace(at, from.size(), to);
}

// Of head dimension 128. With @p causal it hides keys behind the query (and computes what it hides all the
// same).
inline Solution attention_solution(const Workload& workload, bool causal) {
  std::string plan = text_of(kernel_case_folder("attention_wgmma_128") + "/launch.json"),
              kernel = text_of(kernel_case_folder("attention_wgmma_128") + "/kernel.cu");
  replace_once(plan, R"({"tensor": "L"})", R"({"tensor": "LSE"})");
  if (causal)
    replace_once(kernel, "  const int column = threadIdx.x % 4 * 2;\n",
                 R"cuda(  const int column = threadIdx.x % 4 * 2;
  const int query = blockIdx.x * kRows + (threadIdx.x / 128 - 1) * 64 + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
  for (int i = 0; i < 64; ++i)
    if (first + i / 4 * 8 + column + i % 2 > query + i / 2 % 2 * 8) s[i] = -INFINITY;
)cuda");
  Solution s;
  s.name = causal ? "attention_wgmma_128_causal" : "attention_wgmma_128";
  s.definition = workload.definition->name;
  s.author = "test";
  s.spec = {"cuda", {"H200"}, "launch.json::run", {}, true, {}};
  s.sources = {{"launch.json", std::move(plan)}, {"kernel.cu", std::move(kernel)}};
  auto made = make_solution(std::move(s));
  if (!made) FAIL(made.error().to_string());
  return *made;
}

// The pack's wrappers, which the kernel includes.
inline std::vector<SourceFile> hopper_headers() {
  const auto pack = KnowledgePack::load(PTXBENCH_SOURCE_DIR "/knowledge_packs/hopper");
  if (!pack) FAIL(pack.error().to_string());
  return (*pack)->headers();
}

// How many wgmma it executes, by warp: for each block of keys 8 times 16 of the depth, and 8 times 16 of the
// keys, by the eight warps of the consumers.
inline std::uint64_t attention_wgmmas(std::uint64_t heads, std::uint64_t sequence) {
  const std::uint64_t blocks = (sequence + 127) / 128;
  return heads * blocks * blocks * (8 + 8) * 8;
}
inline std::uint64_t warps_of_family(const Verdict& verdict, const std::string& family) {
  std::uint64_t total = 0;
  for (const FamilyCount& count : verdict.counts.families)
    if (count.family == family) total += count.warp_instructions;
  return total;
}

// What the verdict's diagnosis calls the mistake in an output; empty: it has no name for it.
inline std::string named_pattern(const Verdict& verdict, const std::string& output) {
  for (const Finding& finding : verdict.findings) {
    if (finding.code != "wrong_pattern") continue;
    const auto document = json::parse(finding.evidence, {"evidence", false, 4});
    REQUIRE(document);
    const json::Cursor root(*document);
    if (root.require("output").value().as_string().value() != output) continue;
    return std::string(root.require("pattern").value().as_string().value());
  }
  return {};
}

}  // namespace ptxbench::testing
