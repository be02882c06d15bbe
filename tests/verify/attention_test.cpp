// The judge's attention on the CPU: against loops that share nothing with it, and against candidates that are
// honest, cheap or wrong.
#include "verify/judge/attention.h"

#include "support/attention_case.hpp"
#include "support/catch.hpp"
#include "verify/input_pool.hpp"
#include "verify/session.hpp"

#include <cstring>
#include <map>
#include <set>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

double value_at(const void* tensor, DType dtype, std::size_t i) {
  return judge::decode(static_cast<judge::u32>(dtype),
                       judge::load_element(tensor, static_cast<judge::u32>(dtype), i));
}

// Tensors of one attention on a FakeDevice, drawn, with the judge's CPU form.
struct Bench {
  FakeDevice device;
  std::unique_ptr<JudgeOps> judge = make_host_judge(device);
  AttentionShape shape;
  AttentionSpec spec;
  AttentionTensors t;

  Bench(AttentionShape s, bool causal, DType dtype, judge::Distribution distribution = judge::kGaussian)
      : shape(s) {
    spec.causal = causal;
    spec.input = dtype;
    for (auto [name, at] : {std::pair("Q", &t.q), {"K", &t.k}, {"V", &t.v}, {"dO", &t.d_o}}) {
      *at = room(s.elements() * 2);
      REQUIRE(judge->draw(
          draw_spec(tensor_key(7, name), dtype, {s.all_heads(), s.sequence, s.head_dim}, distribution), *at));
    }
    t.o = room(s.elements() * 2);
    t.lse = room(s.rows() * 4);
    AttentionPattern pattern;
    pattern.causal = causal;
    pattern.dtype = dtype;
    REQUIRE(judge->attention_forward(forward_as_inputs(pattern), shape, t));
  }
  std::uint64_t room(std::uint64_t bytes) { return device.allocate(bytes + 8).value().address; }
  const void* host(std::uint64_t address) { return device.host_view(address); }
  double in(std::uint64_t address, std::size_t i) { return value_at(host(address), spec.input, i); }
};

// Definitions of a mathematics book: fp64, nothing shared, nothing clever.
struct Naive {
  std::vector<double> o, lse, dq, dk, dv;

  explicit Naive(Bench& b) {
    const std::size_t s = b.shape.sequence, d = b.shape.head_dim;
    const double root = std::sqrt(static_cast<double>(d));
    for (auto* v : {&o, &dq, &dk, &dv}) v->assign(b.shape.elements(), 0.0);
    lse.assign(b.shape.rows(), 0.0);
    for (std::size_t h = 0; h < b.shape.all_heads(); ++h)
      for (std::size_t i = 0; i < s; ++i) {
        const std::size_t row = (h * s + i) * d, seen = b.spec.causal ? i + 1 : s;
        const auto key = [&](std::size_t j) { return (h * s + j) * d; };
        std::vector<double> score(seen);
        double total = 0, dot = 0;
        for (std::size_t j = 0; j < seen; ++j) {
          for (std::size_t c = 0; c < d; ++c)
            score[j] += b.in(b.t.q, row + c) * b.in(b.t.k, key(j) + c) / root;
          total += std::exp(score[j]);
        }
        lse[h * s + i] = std::log(total);
        for (std::size_t c = 0; c < d; ++c) dot += b.in(b.t.d_o, row + c) * b.in(b.t.o, row + c);
        for (std::size_t j = 0; j < seen; ++j) {
          const double p = std::exp(score[j]) / total;
          double dp = 0;
          for (std::size_t c = 0; c < d; ++c) dp += b.in(b.t.d_o, row + c) * b.in(b.t.v, key(j) + c);
          const double ds = p * (dp - dot) / root;
          for (std::size_t c = 0; c < d; ++c) {
            o[row + c] += p * b.in(b.t.v, key(j) + c);
            dv[key(j) + c] += p * b.in(b.t.d_o, row + c);
            dq[row + c] += ds * b.in(b.t.k, key(j) + c);
            dk[key(j) + c] += ds * b.in(b.t.q, row + c);
          }
        }
      }
  }
};

double worst(const std::vector<double>& expected, const void* got, DType dtype) {
  double error = 0, size = 1e-30;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error = std::max(error, std::abs(expected[i] - value_at(got, dtype, i)));
    size = std::max(size, std::abs(expected[i]));
  }
  return error / size;
}

struct Judged {
  VerifyEvidence evidence;
  Verdict verdict;
};

Judged judged(const Workload& workload, bool backward, const AttentionStyle& style, int trials = 3,
              const std::function<void(AttentionCall&)>& after = {}) {
  FakeDevice device;
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
  job.workload = workload;
  job.candidate = attention_candidate(*workload.definition);
  job.seed = 42;
  job.trials = trials;
  LocalCallbacks none;
  Result<VerifyEvidence> evidence = run_verify(device, job, none);
  if (!evidence) FAIL(evidence.error().to_string());
  Judged result{std::move(*evidence), {}};
  compose_correctness(result.evidence, result.verdict);
  CHECK(device.bad_releases == 0);
  CHECK(device.live_allocations() == 0);
  return result;
}

// For whoever sets the limits.
bool print_margins() { return std::getenv("PTXBENCH_PRINT_MARGINS") != nullptr; }

std::string numbers(const Judged& judged) {
  std::string text;
  for (const Finding& f : judged.verdict.findings) text += f.code + ": " + f.message + "\n";
  for (const TrialEvidence& trial : judged.evidence.trials)
    for (const OutputEvidence& output : trial.outputs) {
      const OutputCorrectness o = judge_output(output);
      char line[240];
      std::snprintf(line, sizeof line,
                    "%-9s %-3s rms/model %.3f rms/limit %.3f max/limit %.3f slope-1 %.2e of %.2e %s\n",
                    trial.distribution.c_str(), o.output.c_str(),
                    o.rms_error / std::max(o.model_rms_error, 1e-300), o.rms_error / o.rms_limit,
                    o.max_absolute_error / o.max_limit, o.scale - 1,
                    model_limits(output.statistics, output.dtype).scale, o.ok ? "" : "WRONG");
      text += line;
    }
  return text;
}

}  // namespace

TEST_CASE("the judge's exponential is exp") {
  for (int i = -7100; i <= 7090; ++i) {
    const double x = i * 0.1 + i * 1e-5, expected = std::exp(x);
    if (expected < 1e-300) continue;
    REQUIRE(std::abs(judge::exponential(x) / expected - 1) < 5e-16);
  }
  CHECK(judge::exponential(0) == 1);
  CHECK(judge::exponential(-INFINITY) == 0);
  CHECK(judge::exponential(-745.5) == 0);
  CHECK(judge::exponential(-744.0) > 0);
  CHECK(judge::exponential(INFINITY) == INFINITY);
  CHECK(std::isnan(judge::exponential(NAN)));
}

TEST_CASE("attention references agree with loops in fp64") {
  for (const bool causal : {false, true})
    for (const DType dtype : {DType::bfloat16, DType::float16})
      for (const AttentionShape shape :
           {AttentionShape{1, 1, 1, 64}, {1, 2, 40, 96}, {2, 1, 65, 20}, {1, 1, 33, 256}, {1, 1, 130, 64}}) {
        INFO(causal << " " << dtype_name(dtype) << " S=" << shape.sequence << " D=" << shape.head_dim);
        Bench b(shape, causal, dtype);
        const Naive naive(b);
        AttentionTensors to = b.t;
        to.o = b.room(shape.elements() * 4);
        to.lse = b.room(shape.rows() * 8);
        REQUIRE(b.judge->attention_forward(b.spec, shape, to));
        CHECK(worst(naive.o, b.host(to.o), DType::float32) < 1e-7);  // it is kept in fp32
        CHECK(worst(naive.lse, b.host(to.lse), DType::float64) < 1e-14);
        to = b.t;
        for (auto* at : {&to.dq, &to.dk, &to.dv}) *at = b.room(shape.elements() * 4);
        REQUIRE(b.judge->attention_backward(b.spec, shape, to));
        CHECK(worst(naive.dq, b.host(to.dq), DType::float32) < 1e-7);
        CHECK(worst(naive.dk, b.host(to.dk), DType::float32) < 1e-7);
        CHECK(worst(naive.dv, b.host(to.dv), DType::float32) < 1e-7);
        // What a backward pass is given is the forward pass rounded.
        CHECK(worst(naive.o, b.host(b.t.o), dtype) < (dtype == DType::bfloat16 ? 4e-3 : 5e-4));
        CHECK(worst(naive.lse, b.host(b.t.lse), DType::float32) < 1e-7);
      }
}

TEST_CASE("a model of some rows has the rows that a model of all has") {
  Bench b({2, 3, 50, 32}, true, DType::bfloat16);
  const std::uint32_t some = 4;
  std::vector<std::uint32_t> rows;
  for (std::uint32_t head = 0; head < b.shape.all_heads(); ++head)
    for (std::uint32_t i = 0; i < some; ++i) rows.push_back(i * 12 + head);
  AttentionSpec spec = b.spec;
  spec.model = true;
  spec.output = DType::bfloat16;
  spec.lse = DType::float32;
  AttentionTensors all = b.t, few = b.t;
  for (auto* at : {&all.dq, &all.dk, &all.dv, &few.dq, &few.dk, &few.dv})
    *at = b.room(b.shape.elements() * 2);
  REQUIRE(b.judge->attention_backward(spec, b.shape, all));
  AttentionTensors all_forward = b.t, few_forward = b.t;
  for (auto* at : {&all_forward.o, &all_forward.lse, &few_forward.o, &few_forward.lse})
    *at = b.room(b.shape.elements() * 4);
  REQUIRE(b.judge->attention_forward(spec, b.shape, all_forward));
  spec.rows = b.room(rows.size() * 4);
  spec.rows_of_head = some;
  REQUIRE(b.device.write(spec.rows, {reinterpret_cast<const std::uint8_t*>(rows.data()), rows.size() * 4}));
  REQUIRE(b.judge->attention_backward(spec, b.shape, few));
  REQUIRE(b.judge->attention_forward(spec, b.shape, few_forward));
  const std::size_t width = b.shape.head_dim;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::size_t from = r / some * b.shape.sequence + rows[r];
    for (const auto& [full, part] :
         {std::pair(all.dq, few.dq), {all.dk, few.dk}, {all.dv, few.dv}, {all_forward.o, few_forward.o}})
      REQUIRE(std::memcmp(static_cast<const std::uint16_t*>(b.host(full)) + from * width,
                          static_cast<const std::uint16_t*>(b.host(part)) + r * width, width * 2) == 0);
    REQUIRE(static_cast<const float*>(b.host(all_forward.lse))[from] ==
            static_cast<const float*>(b.host(few_forward.lse))[r]);
  }

  // Statistics of the sample are of its rows: got is the full model with one element of a sampled row and one
  // of another off.
  AttentionTensors reference = b.t;
  for (auto* at : {&reference.dq, &reference.dk, &reference.dv}) *at = b.room(b.shape.elements() * 4);
  REQUIRE(b.judge->attention_backward(b.spec, b.shape, reference));
  ModelAt model;
  model.address = few.dq;
  model.sample = {spec.rows, some, b.shape.sequence, b.shape.head_dim, 0};
  model.elements = rows.size() * width;
  const auto statistics = [&] {
    return b.judge
        ->statistics(b.shape.elements(), {all.dq, DType::bfloat16}, {reference.dq, DType::float32}, model)
        .value();
  };
  const OutputStatistics before = statistics();
  CHECK(before.elements == b.shape.elements());
  CHECK(before.model_elements == rows.size() * width);
  CHECK(before.sampled_squared_error == before.model_sum_squared_error);
  CHECK(before.sum_squared_error > before.sampled_squared_error);
  CHECK(before.largest_reference >= before.sampled_largest_reference);
  auto* got = static_cast<std::uint16_t*>(b.device.host_view(all.dq));
  got[(std::size_t{b.shape.sequence} + rows[some]) * width + 3] = narrow_bf16(100);
  const OutputStatistics sampled = statistics();
  CHECK(sampled.sampled_squared_error == Approx(10000).epsilon(0.1));
  got[(std::size_t{b.shape.sequence} + rows[some] + 1) * width + 3] = narrow_bf16(50);
  const OutputStatistics both = statistics();
  CHECK(both.sampled_squared_error == sampled.sampled_squared_error);
  CHECK(both.sum_squared_error == Approx(12500).epsilon(0.1));
}

TEST_CASE("sampled rows are spread, differ by head and seed, and are all rows where those are few") {
  const AttentionShape large{4, 48, 4096, 128};
  const std::uint32_t rows = sampled_rows(large);
  CHECK(rows == 43);
  const auto list = sample_rows(large, 1);
  REQUIRE(list.size() == 192 * rows);
  for (std::size_t i = 0; i < list.size(); ++i) {
    REQUIRE(list[i] < large.sequence);
    if (i % rows != 0) REQUIRE(list[i] > list[i - 1]);
    REQUIRE(list[i] / (4096 / rows + 1) <= i % rows);
  }
  CHECK(list == sample_rows(large, 1));
  CHECK(list != sample_rows(large, 2));
  CHECK(!std::equal(list.begin(), list.begin() + rows, list.begin() + rows));
  CHECK(sampled_rows({1, 2, 200, 64}) == 200);
  CHECK(sampled_rows({4, 48, 16384, 256}) == 22);
}

TEST_CASE("limits of a sampled model are for the sample, and wider for the rest") {
  OutputEvidence e;
  e.output = "O";
  e.dtype = DType::bfloat16;
  e.shape = {1000, 100};
  OutputStatistics& s = e.statistics;
  s.elements = 100000;
  s.has_model = true;
  s.model_elements = 1000;
  s.sum_squared_reference = 100000;
  s.sampled_squared_reference = 1000;
  s.sum_fourth_reference = 300000;
  s.sum_got_times_reference = 100000;
  s.largest_reference = 8;
  s.sampled_largest_reference = 4;
  s.model_sum_squared_error = 1000 * 1e-6;
  s.model_max_error = 4e-3;
  s.sampled_squared_error = 1000 * 1.1e-6;
  s.sum_squared_error = 100000 * 1.4e-6;
  s.max_absolute_error = 16e-3;
  CHECK(judge_output(e).ok);
  CHECK(judge_output(e).rms_error == Approx(std::sqrt(1.1e-6)));
  CHECK(model_limits(s, e.dtype).max == Approx(4 * 8e-3));  // the largest output is twice the sample's
  OutputEvidence worse = e;
  worse.statistics.sampled_squared_error = 1000 * 1.5e-6;
  CHECK_FALSE(judge_output(worse).ok);
  worse = e;
  worse.statistics.sum_squared_error = 100000 * 4e-6;
  CHECK_FALSE(judge_output(worse).ok);
  CHECK(judge_output(worse).rms_error > judge_output(worse).rms_limit);
  worse = e;
  worse.statistics.model_sum_squared_error = worse.statistics.model_max_error =
      0;  // of a sample that means nothing exact
  CHECK_FALSE(model_limits(worse.statistics, e.dtype).exact);
}

TEST_CASE("honest attention passes under every distribution, forward and backward") {
  for (const bool backward : {false, true})
    for (const bool causal : {false, true})
      for (const auto& [b, h, s, d] : {std::tuple{1, 2, 200, 64}, {2, 1, 77, 96}}) {
        const Workload workload = attention_workload(attention_definition(backward, causal, d), b, h, s);
        for (const bool fp32_units : {false, true}) {
          AttentionStyle style;
          style.causal = causal;
          style.fp32_units = fp32_units;
          const Judged result = judged(workload, backward, style);
          const std::string text = numbers(result);
          INFO((backward ? "backward" : "forward")
               << (causal ? " causal" : "") << " S=" << s << " D=" << d << " fp32 " << fp32_units << "\n"
               << text);
          CHECK(result.verdict.status == Status::passed);
          for (const TrialEvidence& trial : result.evidence.trials)
            for (const OutputEvidence& output : trial.outputs)
              CHECK(output.comparator == ComparatorKind::model_error);
          if (print_margins()) std::printf("S=%d D=%d causal %d\n%s", s, d, causal, text.c_str());
        }
      }
}

TEST_CASE("cheap and wrong attention is caught") {
  const auto with = [](auto change) {
    AttentionStyle style;
    change(style);
    return style;
  };
  const std::map<std::string, AttentionStyle> both = {
      {"scale 1 / D", with([](auto& s) { s.score_scale = 0.125f; })},
      {"bf16 accumulation", with([](auto& s) { s.bf16_accumulator = true; })},
      {"P in fp8", with([](auto& s) { s.weight = to_fp8; })},
      {"the last key skipped", with([](auto& s) { s.skip_last_key = true; })},
      {"scaled by 1.002", with([](auto& s) { s.output_scale = 1.002f; })}};
  std::map<std::string, AttentionStyle> forward = both, backward = both;
  forward["LSE in base 2"] = with([](auto& s) { s.lse_base_2 = true; });
  forward["LSE in bf16"] = with([](auto& s) { s.coarse_lse = true; });
  backward["no row sum"] = with([](auto& s) { s.no_row_sum = true; });
  backward["no scale"] = with([](auto& s) { s.no_scale = true; });
  for (const bool back : {false, true}) {
    const Workload workload = attention_workload(attention_definition(back, false, 64), 1, 2, 200);
    for (const auto& [name, style] : back ? backward : forward) {
      const Judged result = judged(workload, back, style, 1);
      INFO((back ? "backward " : "forward ") << name << "\n" << numbers(result));
      CHECK(result.verdict.status == Status::incorrect_numerical);
      if (print_margins()) std::printf("%s\n%s", name.c_str(), numbers(result).c_str());
    }
  }
}

TEST_CASE("attention is judged as well where the model is of some rows only") {
  const Workload workload = attention_workload(attention_definition(false, true, 256), 4, 16, 130);
  REQUIRE(sampled_rows(attention_shape(workload).value()) == 64);
  AttentionStyle style;
  style.causal = style.fp32_units = true;
  const Judged honest = judged(workload, false, style, 1);
  INFO(numbers(honest));
  CHECK(honest.verdict.status == Status::passed);
  for (const OutputEvidence& output : honest.evidence.trials[0].outputs) {
    CHECK(output.statistics.model_elements < output.statistics.elements / 2 + 1);
    CHECK(output.statistics.model_elements == output.statistics.elements / 130 * 64);
  }
  const Judged wrong = judged(workload, false, style, 1,
                              [](AttentionCall& call) { call.out(3, 63)[255] ^= 0x8000; });
  CHECK(wrong.verdict.status == Status::incorrect_numerical);
  CHECK(wrong.verdict.correctness.outputs[0].elements_wrong == 1);
  CHECK(wrong.verdict.correctness.outputs[0].first_wrong_index == std::vector<std::int64_t>{3, 15, 0, 255});
  style.tile = 16;
  style.bf16_accumulator = true;
  const Judged cheap = judged(workload, false, style, 1);
  CHECK(cheap.verdict.status == Status::incorrect_numerical);
  CHECK(cheap.verdict.correctness.outputs[0].rms_error > cheap.verdict.correctness.outputs[0].rms_limit);
  if (print_margins()) std::printf("sampled\n%sbf16\n%s", numbers(honest).c_str(), numbers(cheap).c_str());
}

TEST_CASE("a mask that is missing, or not asked for, is caught") {
  for (const bool backward : {false, true})
    for (const bool causal : {false, true}) {
      AttentionStyle style;
      style.causal = !causal;
      const Judged result = judged(attention_workload(attention_definition(backward, causal, 64), 1, 1, 100),
                                   backward, style, 1);
      CHECK(result.verdict.status == Status::incorrect_numerical);
    }
}

TEST_CASE("of a backward pass, O and L are the forward pass's, and changing them is seen") {
  const Workload workload = attention_workload(attention_definition(true, true, 64), 1, 2, 40);
  const Judged result = judged(
      workload, true,
      [] {
        AttentionStyle s;
        s.causal = true;
        return s;
      }(),
      2,
      [](AttentionCall& call) {
        reinterpret_cast<std::uint16_t*>(call.at[3])[5] ^= 1;
        call.rows(5, 1)[3] += 1;
      });
  CHECK(result.verdict.integrity == Integrity::violated);
  REQUIRE(result.evidence.trials.size() == 2);
  for (const TrialEvidence& trial : result.evidence.trials) {
    REQUIRE(trial.violations.size() == 2);
    CHECK(trial.violations[0].tensor == "O");
    CHECK(trial.violations[0].first_offset == 10);
    CHECK(trial.violations[1].tensor == "L");
    for (const OutputEvidence& output : trial.outputs)
      CHECK(judge_output(output).ok);  // judged by the inputs as they were
  }
}

TEST_CASE("pooled inputs are consistent, and no two are the same") {
  // One head has no other order, and is drawn anew; eight have many.
  for (const auto& [batch, heads] : {std::pair<int, int>{1, 1}, {2, 3}, {2, 4}}) {
    const Workload workload = attention_workload(attention_definition(true, false, 32), batch, heads, 24);
    const TensorLayouts layouts = tensor_layouts(workload).value();
    FakeDevice device;
    const auto judge = make_host_judge(device);
    const AttentionShape shape = attention_shape(workload).value();
    {
    InputPool pool(workload, layouts, 9);
    TensorBuffers buffers = TensorBuffers::allocate(device, layouts, 9, false).value();
    REQUIRE(buffers.arm(device));
    std::set<std::string> contents[6];
    const auto bytes = [&](std::size_t i) {
      const DeviceBuffer at = buffers.inputs[i].buffer();
      return std::string(static_cast<const char*>(device.host_view(at.address)), at.bytes);
    };
    std::vector<std::string> fourth;
    for (int number = 0; number < 8; ++number) {
      Inputs inputs = pool.draw(*judge, device, number).value();
      REQUIRE(inputs.place(*judge, device, buffers));
      for (std::size_t i = 0; i < 6; ++i) contents[i].insert(bytes(i));
      if (number == 4)
        for (std::size_t i = 0; i < 6; ++i) fourth.push_back(bytes(i));
      // O and L belong to Q, K and V.
      AttentionTensors t;
      t.q = buffers.inputs[0].buffer().address;
      t.k = buffers.inputs[1].buffer().address;
      t.v = buffers.inputs[2].buffer().address;
      const DeviceBuffer o = device.allocate(shape.elements() * 2).value(),
                         lse = device.allocate(shape.rows() * 4).value();
      t.o = o.address;
      t.lse = lse.address;
      AttentionPattern pattern;
      REQUIRE(judge->attention_forward(forward_as_inputs(pattern), shape, t));
      CHECK(std::memcmp(device.host_view(o.address), bytes(3).data(), o.bytes) == 0);
      CHECK(std::memcmp(device.host_view(lse.address), bytes(5).data(), lse.bytes) == 0);
      device.release(o);
      device.release(lse);
      std::vector<IntegrityViolation> found;
      REQUIRE(inputs.check(*judge, device, layouts, buffers, found));
      CHECK(found.empty());
      static_cast<std::uint8_t*>(device.host_view(buffers.inputs[3].buffer().address))[7] ^= 1;
      static_cast<std::uint8_t*>(device.host_view(buffers.inputs[4].buffer().address))[9] ^= 1;
      REQUIRE(inputs.check(*judge, device, layouts, buffers, found));
      REQUIRE(found.size() == 2);
      CHECK(found[0].tensor == "O");
      CHECK(found[0].first_offset == 7);
      CHECK(found[1].tensor == "dO");
    }
    for (const auto& of_tensor : contents) CHECK(of_tensor.size() == 8);
    Inputs again = pool.draw(*judge, device, 4).value();
    REQUIRE(again.place(*judge, device, buffers));
    for (std::size_t i = 0; i < 6; ++i) CHECK(bytes(i) == fourth[i]);
    }
    CHECK(device.live_allocations() == 0);
  }
}
