// Stored tensors as an input source: what is read, kept and drawn.
#include "evaluate/stored.hpp"

#include "bench/timed_trials.hpp"
#include "core/temporary_folder.hpp"
#include "support/catch.hpp"
#include "trace/safetensors.hpp"
#include "verify/host_loops.hpp"
#include "verify/seed.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

using namespace ptxbench;

TEST_CASE("stored: bytes are kept, and what is drawn beside them is Gaussian in timed runs") {
  const auto folder = TemporaryFolder::make("stored");
  REQUIRE(folder);
  std::vector<float> x(256);
  for (int i = 0; i < 256; ++i) x[static_cast<std::size_t>(i)] = static_cast<float>(i);
  REQUIRE(write_safetensors(
      folder->path() + "/data.safetensors",
      std::vector<TensorBytes>{
          {"x", DType::float32, {256}, {reinterpret_cast<const std::uint8_t*>(x.data()), 1024}}}));
  Definition d;
  d.name = "add";
  d.op_type = "elementwise";
  d.axes = {{"n", true, 256, {}}};
  for (const char* name : {"x", "z"})
    d.inputs.push_back({name, std::vector<std::string>{"n"}, DType::float32, {}});
  d.outputs = {{"y", std::vector<std::string>{"n"}, DType::float32, {}}};
  Workload w;
  w.definition = make_definition(std::move(d)).value();
  w.uuid = "w";
  w.inputs = {{"x", SafetensorsInput{"data.safetensors", "x"}}};
  const auto source = make_stored_inputs(folder->path());
  std::vector<float> read(256), drawn(256), expected(256);
  std::vector<HostTensor> tensors(2);
  tensors[0] = {"x", DType::float32, {256}, read.data(), 1024};
  tensors[1] = {"z", DType::float32, {256}, drawn.data(), 1024};
  const auto fill = [&](int trial) {
    std::fill(read.begin(), read.end(), -1.0f);
    const auto filled = source->fill(w, 7, trial, tensors);
    if (!filled) FAIL(filled.error().to_string());
    CHECK(read == x);
  };
  const auto draws = [&](int trial, judge::Distribution distribution) {
    host_draw(draw_spec(tensor_key(trial_seed(7, "w", trial), "z"), DType::float32, {256}, distribution),
              expected.data());
    return drawn == expected;
  };
  fill(2);
  CHECK(draws(2, judge::kIntegers));
  CHECK_FALSE(draws(2, judge::kGaussian));
  std::filesystem::remove(folder->path() + "/data.safetensors");
  for (int trial = kPairTrials - 2; trial < kPairTrials + 4; ++trial) {
    fill(trial);
    CHECK(draws(trial, judge::kGaussian));
  }
  fill(kNoiseTrials + 1);
  CHECK(draws(kNoiseTrials + 1, judge::kGaussian));
  // Another type is another tensor: the file is asked, and is gone.
  tensors[0].dtype = DType::int32;
  CHECK_FALSE(source->fill(w, 7, 2, tensors));
}
