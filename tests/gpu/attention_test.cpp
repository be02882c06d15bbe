// The judge's attention on the GPU against its loops on the CPU, and what it takes.
#include "support/attention_forms.hpp"
#include "support/gpu.hpp"

#include <ptxbench/compile.hpp>
#include <ptxbench/verify.hpp>

#include <chrono>
#include <cstdlib>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

std::unique_ptr<JudgeOps> judge_on(Device& device) {
  const auto compiled = compile_in_process(judge_compile_request(device.info().arch));
  if (!compiled) FAIL(compiled.error().to_string());
  if (!compiled->ok) FAIL(compiled->log);
  auto made = make_judge_ops(device, compiled->modules.at(0).cubin);
  if (!made) FAIL(made.error().to_string());
  return std::move(*made);
}

}  // namespace

TEST_CASE("attention's references and models on the GPU are the CPU's") {
  const auto gpu = gpu_or_skip();
  if (!gpu) return;
  const auto ops = judge_on(*gpu);
  AttentionForms forms(*gpu, *ops);
  for (const bool causal : {false, true})
    for (const DType dtype : {DType::bfloat16, DType::float16})
      for (const auto distribution : {judge::kGaussian, judge::kSpiky, judge::kIntegers}) {
        forms.compare({1, 2, 200, 64}, causal, dtype, distribution, false);
        forms.compare({2, 2, 300, 96}, causal, dtype, distribution, true);
        forms.compare({1, 1, 257, 256}, causal, dtype, distribution, false);
        forms.compare({1, 3, 65, 20}, causal, dtype, distribution, true);
        forms.compare({1, 1, 1, 128}, causal, dtype, distribution, false);
      }
  forms.compare({1, 2, 1100, 128}, true, DType::bfloat16, judge::kGaussian,
                false);  // more than one piece of rows
  for (const int mistaken : {-1, 1}) forms.compare({1, 2, 700, 64}, true, DType::bfloat16, judge::kGaussian, false, mistaken);
}

// Not run by default: test_gpu "[measure]" prints what the judge's own work takes.
TEST_CASE("what references and models of attention take", "[.][measure]") {
  const auto gpu = gpu_or_skip();
  if (!gpu) return;
  const auto ops = judge_on(*gpu);
  for (const AttentionShape shape :
       {AttentionShape{4, 48, 4096, 128}, {4, 48, 1024, 64}, {4, 48, 4096, 256}, {4, 48, 16384, 128}}) {
    std::vector<DeviceBuffer> owned;
    const auto room = [&](std::uint64_t bytes) {
      owned.push_back(gpu->allocate(bytes).value());
      return owned.back().address;
    };
    AttentionTensors t;
    for (auto [name, at] : {std::pair("Q", &t.q), {"K", &t.k}, {"V", &t.v}, {"dO", &t.d_o}}) {
      *at = room(shape.elements() * 2);
      REQUIRE(ops->draw(draw_spec(tensor_key(1, name), DType::bfloat16,
                                  {shape.all_heads(), shape.sequence, shape.head_dim}, judge::kGaussian),
                        *at));
    }
    t.o = room(shape.elements() * 4);
    t.lse = room(shape.rows() * 8);
    for (auto* at : {&t.dq, &t.dk, &t.dv}) *at = room(shape.elements() * 4);
    const std::vector<std::uint32_t> rows = sample_rows(shape, 1);
    const std::uint64_t list = room(rows.size() * 4);
    REQUIRE(gpu->write(list, {reinterpret_cast<const std::uint8_t*>(rows.data()), rows.size() * 4}));
    for (const bool causal : {false, true})
      for (const bool model : {false, true}) {
        AttentionSpec spec;
        spec.causal = causal;
        spec.model = model;
        if (model) {
          spec.output = DType::bfloat16;
          spec.lse = DType::float32;
          if (sampled_rows(shape) < shape.sequence) {
            spec.rows = list;
            spec.rows_of_head = sampled_rows(shape);
          }
        }
        for (const bool backward : {false, true}) {
          AttentionTensors to = t;
          std::uint64_t lse = 0;
          if (backward) {  // inputs of their own types; their contents do not matter to the time
            to.o = t.v;
            lse = room(shape.rows() * 4);
            REQUIRE(gpu->fill(lse, 0x41000000, 4, shape.rows()));
            to.lse = lse;
          }
          REQUIRE_FALSE(*gpu->synchronize(60'000'000'000));
          const auto start = std::chrono::steady_clock::now();
          REQUIRE((backward ? ops->attention_backward(spec, shape, to)
                            : ops->attention_forward(spec, shape, to)));
          REQUIRE_FALSE(*gpu->synchronize(60'000'000'000));
          const double ms =
              std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
          WARN("S=" << shape.sequence << " D=" << shape.head_dim << (causal ? " causal " : " ")
                    << (backward ? "backward " : "forward ") << (model ? "model: " : "reference: ") << ms
                    << " ms");
        }
      }
    for (const DeviceBuffer& buffer : owned) gpu->release(buffer);
  }
}
