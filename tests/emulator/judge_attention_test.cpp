// The judge's attention kernels, emulated: what they compute on a GPU must be what its loops on the CPU do.
#include "support/attention_forms.hpp"

#include <ptxbench/compile.hpp>
#include <ptxbench/emulator.hpp>
#include <ptxbench/verify.hpp>

using namespace ptxbench;
using namespace ptxbench::testing;

TEST_CASE("the judge's attention kernels agree with its loops") {
  const auto compiled = compile_in_process(judge_compile_request("sm_90a"));
  if (!compiled && compiled.error().code == ErrorCode::toolkit) {
    WARN("skipped: " << compiled.error().to_string());
    return;
  }
  if (!compiled) FAIL(compiled.error().to_string());
  if (!compiled->ok) FAIL(compiled->log);
  auto device = open_emulator_device({});
  if (!device) FAIL(device.error().to_string());
  ModuleImage image;
  image.source = "judge.cu";
  image.ptx = compiled->modules.at(0).ptx;
  auto ops = make_cuda_judge(**device, image);
  if (!ops) FAIL(ops.error().to_string());
  AttentionForms forms(**device, **ops);
  forms.compare({1, 2, 70, 64}, true, DType::bfloat16, judge::kGaussian, false);
  forms.compare({1, 1, 150, 20}, false, DType::bfloat16, judge::kSpiky, true);
  forms.compare({1, 2, 140, 16}, true, DType::float16, judge::kIntegers, true);
  forms.compare({1, 1, 9, 144}, false, DType::float16, judge::kGaussian, false);
  forms.compare({1, 1, 1, 64}, true, DType::bfloat16, judge::kGaussian, false);
  for (const int mistaken : {-1, 1}) forms.compare({1, 2, 135, 16}, true, DType::bfloat16, judge::kGaussian, true, mistaken);
}
