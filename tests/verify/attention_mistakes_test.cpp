// Usual mistakes of an attention, forward and backward, are named in its verdict; a wrong one of another kind
// is not.
#include "support/attention_case.hpp"
#include "support/catch.hpp"
#include "verify/diagnose_attention.hpp"
#include "verify/session.hpp"

#include <cmath>
#include <map>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

std::string field(const Finding& f, const std::string& name) {
  const std::string key = "\"" + name + "\":\"";
  const std::size_t from = f.evidence.find(key);
  if (from == std::string::npos) return {};
  return f.evidence.substr(from + key.size(), f.evidence.find('"', from + key.size()) - from - key.size());
}

struct Diagnosed {
  Verdict verdict;
  std::map<std::string, std::string> pattern, message;  // by output, of the first trial that is wrong
  std::string text;
};

Diagnosed diagnosed(bool backward, bool causal, const AttentionStyle& style, std::int64_t s = 120,
                    std::int64_t d = 64, int heads = 1, const std::function<void(AttentionCall&)>& after = {},
                    FakeDevice* on = nullptr) {
  FakeDevice own;
  FakeDevice& device = on != nullptr ? *on : own;
  device.define("attention.cu", "attention",
                backward ? std::vector<std::uint32_t>{8, 8, 8, 8, 8, 8, 8, 8, 8, 4, 4, 4}
                         : std::vector<std::uint32_t>{8, 8, 8, 8, 8, 4, 4, 4},
                [&](FakeCall& fake) {
                  AttentionCall call(fake, backward);
                  if (backward)
                    attention_backward(call, style);
                  else
                    attention_forward(call, style);
                  if (after) after(call);
                });
  VerifyJob job;
  job.workload = attention_workload(attention_definition(backward, causal, d), 1, heads, s);
  job.candidate = attention_candidate(*job.workload.definition);
  job.seed = 42;
  job.trials = 3;  // every distribution
  LocalCallbacks none;
  Result<VerifyEvidence> evidence = run_verify(device, job, none);
  if (!evidence) FAIL(evidence.error().to_string());
  Diagnosed result;
  for (const TrialEvidence& trial : evidence->trials)
    for (const OutputEvidence& output : trial.outputs)
      for (const Finding& f : output.diagnosis) {
        if (f.code != "worst_elements" && f.code != "wrong_tiles")
          result.text += trial.distribution + ": " + f.message + "\n";
        if (f.code != "wrong_pattern") continue;
        result.pattern.emplace(output.output, field(f, "pattern"));
        result.message.emplace(output.output, f.message);
      }
  compose_correctness(*evidence, result.verdict);
  CHECK(device.live_allocations() == 0);
  return result;
}

struct Wrong {
  const char* name;
  bool causal;  // the definition's
  AttentionStyle style;
  std::string pattern, says;
  bool lse = true;  // the LSE, too, is what the mistake makes of it
};

std::vector<Wrong> mistakes(std::int64_t d) {
  const auto root = static_cast<float>(std::sqrt(static_cast<double>(d)));
  const auto with = [](bool causal, auto change) {
    AttentionStyle style;
    style.causal = causal;
    change(style);
    return style;
  };
  const auto scaled = [&](bool causal, float by) {
    return with(causal, [&](AttentionStyle& s) { s.score_scale = by; });
  };
  const std::string n = std::to_string(d);
  return {
      {"no mask", true, with(false, [](auto&) {}), "missing_mask", "causal mask is missing"},
      {"a mask", false, with(true, [](auto&) {}), "unwanted_mask", "which the definition does not have"},
      {"one key less", true, with(true, [](auto& s) { s.mask_offset = -1; }), "mask_off_by_one",
       "0 to i - 1"},
      {"one key more", true, with(true, [](auto& s) { s.mask_offset = 1; }), "mask_off_by_one", "0 to i + 1"},
      {"no scale", false, scaled(false, root), "score_scale", "not scaled by 1 / sqrt(" + n + ")"},
      {"no scale, causal", true, scaled(true, root), "score_scale", "not scaled by 1 / sqrt(" + n + ")"},
      {"1 / D", false, scaled(false, 1 / root), "score_scale", "scaled by 1 / " + n + " instead"},
      {"1 / D, causal", true, scaled(true, 1 / root), "score_scale", "scaled by 1 / " + n + " instead"},
  };
}

}  // namespace

TEST_CASE("mistakes of mask and scale are named, of every output") {
  for (const bool backward : {false, true})
    for (const std::int64_t d : {64, 96})
      for (const Wrong& wrong : mistakes(d)) {
        const Diagnosed result = diagnosed(backward, wrong.causal, wrong.style, d == 64 ? 90 : 50, d);
        INFO((backward ? "backward, " : "forward, ") << wrong.name << ", D=" << d << "\n" << result.text);
        CHECK(result.verdict.status == Status::incorrect_numerical);
        for (const char* output :
             backward ? std::vector<const char*>{"dQ", "dK", "dV"} : std::vector<const char*>{"O", "LSE"}) {
          INFO(output);
          REQUIRE(result.pattern.count(output) == 1);
          CHECK(result.pattern.at(output) == wrong.pattern);
          CHECK(result.message.at(output).find(wrong.says) != std::string::npos);
        }
        CHECK(std::any_of(result.verdict.findings.begin(), result.verdict.findings.end(),
                          [&](const Finding& f) {
                            return f.code == "wrong_pattern" && field(f, "pattern") == wrong.pattern;
                          }));
      }
}

TEST_CASE("one wrong scale for scores and gradients is named as that") {
  AttentionStyle style;
  style.score_scale = 0.125f;
  style.one_scale = true;
  const Diagnosed result = diagnosed(true, false, style);
  INFO(result.text);
  for (const char* output : {"dQ", "dK"}) {
    REQUIRE(result.pattern.count(output) == 1);
    CHECK(result.message.at(output).find("and the gradients likewise") != std::string::npos);
  }
  REQUIRE(result.pattern.count("dV") == 1);
  CHECK(result.message.at("dV").find("likewise") == std::string::npos);
}

TEST_CASE("powers of 2 without log2(e) are named") {
  AttentionStyle style;
  style.score_scale = 0.69314718f;
  const Diagnosed result = diagnosed(false, true, [&] {
    style.causal = true;
    return style;
  }());
  INFO(result.text);
  REQUIRE(result.pattern.count("O") == 1);
  CHECK(result.pattern.at("O") == "score_scale");
  CHECK(result.message.at("O").find("log2(e)") != std::string::npos);
}

TEST_CASE("a wrong attention of another kind is not named after mask or scale") {
  const auto with = [](auto change) {
    AttentionStyle style;
    change(style);
    return style;
  };
  const std::map<std::string, AttentionStyle> both = {
      {"bf16 accumulation", with([](auto& s) {
         s.bf16_accumulator = true;
         s.tile = 16;
       })},
      {"P in fp8", with([](auto& s) { s.weight = to_fp8; })},
      {"the last key skipped", with([](auto& s) { s.skip_last_key = true; })},
      {"outputs scaled", with([](auto& s) { s.output_scale = 1.25f; })},
      {"other scores", with([](auto& s) { s.score_scale = 0.6f; })},
      {"LSE in base 2", with([](auto& s) { s.lse_base_2 = true; })},
      {"no row sum", with([](auto& s) { s.no_row_sum = true; })},
      {"no scale of gradients", with([](auto& s) { s.no_scale = true; })}};
  for (const bool backward : {false, true})
    for (const bool causal : {false, true})
      for (const auto& [name, style] : both) {
        AttentionStyle s = style;
        s.causal = causal;
        const Diagnosed result = diagnosed(backward, causal, s);
        INFO((backward ? "backward, " : "forward, ") << name << (causal ? ", causal" : "") << "\n"
                                                     << result.text);
        for (const auto& [output, pattern] : result.pattern) {
          INFO(output << ": " << result.message.at(output));
          CHECK(pattern != "missing_mask");
          CHECK(pattern != "unwanted_mask");
          CHECK(pattern != "mask_off_by_one");
          CHECK(pattern != "score_scale");
        }
        if (name == "LSE in base 2" && !backward) {
          REQUIRE(result.pattern.count("LSE") == 1);
          CHECK(result.pattern.at("LSE") == "scale");
        }
      }
}

TEST_CASE("a mask that is missing for some heads only is named from the first wrong one on") {
  AttentionStyle right, wrong;
  right.causal = true;
  const Diagnosed result = diagnosed(false, true, right, 64, 64, 6, [&](AttentionCall& call) {
    AttentionCall last = call;
    const std::size_t skip = 4;
    for (std::size_t i = 0; i < 4; ++i) last.at[i] += skip * call.s * call.d * 2;
    last.at[4] += skip * call.s * 4;
    last.heads = 2;
    attention_forward(last, wrong);
  });
  INFO(result.text);
  REQUIRE(result.pattern.count("O") == 1);
  CHECK(result.pattern.at("O") == "missing_mask");
  CHECK(result.pattern.at("LSE") == "missing_mask");
}

TEST_CASE("heads under mistakes are as many as can be computed in a second or two") {
  CHECK(heads_under_mistakes({1, 2, 120, 64}, false, 6, true) == 2);
  CHECK(heads_under_mistakes({4, 48, 4096, 128}, false, 6, false) == 8);
  CHECK(heads_under_mistakes({4, 48, 4096, 128}, true, 5, false) == 8);
  CHECK(heads_under_mistakes({4, 48, 16384, 256}, true, 5, false) == 1);
  CHECK(heads_under_mistakes({4, 48, 1024, 128}, false, 6, true) == 5);
  CHECK(heads_under_mistakes({1, 1, 16384, 128}, false, 6, true) == 0);
}

TEST_CASE("where memory is short mistakes are left out, and the verdict is the same") {
  struct Counting final : FakeDevice {
    Result<DeviceBuffer> allocate(std::uint64_t bytes) override {
      auto made = FakeDevice::allocate(bytes);
      most = std::max(most, live_bytes());
      return made;
    }
    std::uint64_t most = 0;
  };
  AttentionStyle right, wrong, unmasked;
  right.causal = wrong.causal = true;
  wrong.weight = to_fp8;  // no mistake that is looked for
  const auto run = [](const AttentionStyle& style, FakeDevice& device) {
    return diagnosed(false, true, style, 100, 64, 2, {}, &device);
  };
  Counting enough, judging;
  const std::string note = "not all usual mistakes of an attention were looked for: there is no memory";
  CHECK(run(wrong, enough).text.find(note) == std::string::npos);
  CHECK(run(right, judging).verdict.status == Status::passed);
  REQUIRE(judging.most < enough.most);
  for (const std::uint64_t bytes : {enough.most - 1, judging.most}) {
    FakeDevice device;
    device.mutable_info().limits.memory_bytes = static_cast<std::int64_t>(bytes);
    const Diagnosed result = run(wrong, device);
    INFO(result.text);
    CHECK(result.verdict.status == Status::incorrect_numerical);
    CHECK(result.text.find(note) != std::string::npos);
  }
  // What has been tried is named all the same.
  FakeDevice device;
  device.mutable_info().limits.memory_bytes = static_cast<std::int64_t>(enough.most - 1);
  const Diagnosed result = run(unmasked, device);
  REQUIRE(result.pattern.count("O") == 1);
  CHECK(result.pattern.at("O") == "missing_mask");
  CHECK(result.text.find(note) == std::string::npos);
}
