// What a caller may bring beside callbacks: stored inputs and outputs, and the definition's own Python reference.
#include "emulator_context.hpp"
#include "support/catch.hpp"
#include "trace/safetensors.hpp"

#include <ptxbench/evaluate.hpp>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

using namespace ptxbench;
using ptxbench::testing::emulator_context;

namespace {

struct Folder {
  std::string path = (std::filesystem::temp_directory_path() / ("ptxbench-references-" + std::to_string(::getpid()))).string();
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

// y = 2 x over 256 floats.
Workload twice(const std::function<void(Workload&)>& change = {}, std::string reference = {}) {
  Definition d;
  d.name = "twice";
  d.op_type = "elementwise";
  d.axes = {{"n", true, 256, {}}};
  d.inputs = {{"x", std::vector<std::string>{"n"}, DType::float32, {}}};
  d.outputs = {{"y", std::vector<std::string>{"n"}, DType::float32, {}}};
  d.reference = std::move(reference);
  Workload w;
  w.definition = make_definition(std::move(d)).value();
  w.uuid = "w";
  if (change) change(w);
  return w;
}

Result<Evaluation> judge(Context& context, const Workload& workload, Judging judging, const std::string& factor = "2") {
  Solution s;
  s.name = "s";
  s.definition = "twice";
  s.author = "test";
  s.spec.language = "cuda";
  s.spec.target_hardware = {"cuda"};
  s.spec.entry_point = "launch.json::run";
  s.sources = {{"launch.json",
                R"json({"version": 1, "steps": [{"kernel": "k", "grid": [1], "block": [256], "args": [{"tensor": "x"}, {"tensor": "y"}]}]})json"},
               {"k.cu", "extern \"C\" __global__ void k(const float* x, float* y) { y[threadIdx.x] = " + factor + " * x[threadIdx.x]; }\n"}};
  judging.baseline = NoBaseline{};
  EvaluateOptions options;
  options.time = options.count = false;
  return evaluate(context, s, {&workload, 1}, judging, options);
}

Status status_of(const Result<Evaluation>& evaluation) {
  if (!evaluation) FAIL(evaluation.error().to_string());
  REQUIRE(evaluation->verdicts.at(0).status);
  return *evaluation->verdicts.at(0).status;
}

}  // namespace

TEST_CASE("references: stored inputs and outputs are used, and what does not fit is an error that says so") {
  const Folder folder;
  const auto context = emulator_context();
  std::vector<float> x(256), y(256);
  for (int i = 0; i < 256; ++i) x[i] = static_cast<float>(i) - 100, y[i] = 2 * x[i];
  const auto bytes = [](std::vector<float>& v) {
    return std::span<const std::uint8_t>(reinterpret_cast<const std::uint8_t*>(v.data()), v.size() * 4);
  };
  REQUIRE(write_safetensors(folder.path + "/data.safetensors",
                            std::vector<TensorBytes>{{"x", DType::float32, {256}, bytes(x)}, {"gold", DType::float32, {256}, bytes(y)}}));
  const auto stored = [](Workload& w) {
    w.inputs = {{"x", SafetensorsInput{"data.safetensors", "x"}}};
    w.outputs = {{"y", SafetensorsInput{"data.safetensors", "gold"}}};
  };
  Judging judging;
  judging.data_root = folder.path;
  // Nothing native computes this: the stored outputs serve by themselves.
  CHECK(status_of(judge(*context, twice(stored), judging)) == Status::passed);
  CHECK(status_of(judge(*context, twice(stored), judging, "3")) == Status::incorrect_numerical);
  judging.reference = GoldenReference{};
  CHECK(status_of(judge(*context, twice(stored), judging)) == Status::passed);

  const auto message = [&](const Workload& workload) {
    const auto evaluation = judge(*context, workload, judging);
    REQUIRE_FALSE(evaluation);
    return evaluation.error().to_string();
  };
  CHECK(message(twice()).find("not every workload stores every output") != std::string::npos);
  CHECK(message(twice([&](Workload& w) {
          stored(w);
          w.inputs.clear();
        })).find("belong to inputs that are not stored: \"x\" is drawn") != std::string::npos);
  CHECK(message(twice([&](Workload& w) {
          stored(w);
          w.outputs[0].second.tensor_key = "silver";
        })).find("there is no tensor \"silver\"; there are x, gold") != std::string::npos);
  CHECK(message(twice([&](Workload& w) {
          stored(w);
          w.inputs[0].second = SafetensorsInput{"../data.safetensors", "x"};
        })).find("leads out of the data set") != std::string::npos);
  judging.reference = NativeReference{};
  CHECK(message(twice()).find("Ways to bring one: another Solution, outputs stored with the workloads (golden), the definition's own "
                              "Python `reference`, or a callback") != std::string::npos);
}

TEST_CASE("references: the definition's own Python reference is run in a process of its own") {
  // A stand-in for torch, so that this needs none; where there is a real one the GPU tests use it.
  ::setenv("PYTHONPATH", PTXBENCH_SOURCE_DIR "/tests/fixtures/python_torch", 1);
  const auto context = emulator_context();
  Judging judging;
  PythonReference python;
  judging.reference = python;
  const std::string good = "import torch\n\ndef run(x):\n    return x * 2\n";
  CHECK(status_of(judge(*context, twice({}, good), judging)) == Status::passed);
  CHECK(status_of(judge(*context, twice({}, good), judging, "3")) == Status::incorrect_numerical);
  CHECK(status_of(judge(*context, twice({}, "def run(x):\n    return {'y': x * 2}\n"), judging)) == Status::passed);
  const auto message = [&](const std::string& reference) {
    const auto evaluation = judge(*context, twice({}, reference), judging);
    REQUIRE_FALSE(evaluation);
    return evaluation.error().to_string();
  };
  CHECK(message("def run(x):\n    raise ValueError('no such luck')\n").find("no such luck") != std::string::npos);
  CHECK(message("def run(x):\n    return x, x\n").find("returned 2 outputs for 1") != std::string::npos);
  CHECK(message("def run(x):\n    return x.reshape([2, 128])\n").find("has the shape [2, 128], not [256]") != std::string::npos);
  CHECK(message("").find("needs a definition with `reference`") != std::string::npos);
  python.python = "/no/such/python";
  judging.reference = python;
  CHECK(message(good).find("/no/such/python") != std::string::npos);
  python.python = "python3";
  python.deadline_ns = 300'000'000;
  judging.reference = python;
  CHECK(message("import time\ndef run(x):\n    time.sleep(60)\n").find("did not end within") != std::string::npos);
  ::setenv("PYTHONPATH", PTXBENCH_SOURCE_DIR "/tests/fixtures/python_no_torch", 1);
  judging.reference = PythonReference{};
  CHECK(message(good).find("has no torch") != std::string::npos);
  ::unsetenv("PYTHONPATH");
}
