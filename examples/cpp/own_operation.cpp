// Judges an operation of one's own, RMSNorm: the definition is made in memory, the reference is a C++ callback, and there is
// no baseline. Compiles with -fno-exceptions -fno-rtti.
//   own_operation CANDIDATE_FOLDER [device]
#include <ptxbench/ptxbench.hpp>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

using namespace ptxbench;

namespace {

float from_bf16(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

std::uint16_t to_bf16(float value) {  // to nearest even; no NaN occurs here
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

class RmsNorm final : public Reference {
 public:
  Result<void> compute(const Workload&, std::span<const HostTensor> inputs, std::span<HostTensor> outputs) override {
    const auto* x = static_cast<const std::uint16_t*>(inputs[0].data);
    const auto* w = static_cast<const std::uint16_t*>(inputs[1].data);
    auto* y = static_cast<std::uint16_t*>(outputs[0].data);
    const std::int64_t rows = inputs[0].shape[0], width = inputs[0].shape[1];
    for (std::int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (std::int64_t c = 0; c < width; ++c) sum += std::pow(double{from_bf16(x[r * width + c])}, 2);
      const double scale = 1 / std::sqrt(sum / static_cast<double>(width) + 1e-6);
      for (std::int64_t c = 0; c < width; ++c)
        y[r * width + c] = to_bf16(static_cast<float>(from_bf16(x[r * width + c]) * scale * from_bf16(w[c])));
    }
    return {};
  }
};

Result<Evaluation> judge(const char* folder, const char* device) {
  Definition d;
  d.name = "my_rmsnorm_h4096";
  d.op_type = "rmsnorm";
  d.axes = {{"rows", false, 0, {}}, {"width", true, 4096, {}}};
  d.inputs = {{"x", std::vector<std::string>{"rows", "width"}, DType::bfloat16, {}},
              {"w", std::vector<std::string>{"width"}, DType::bfloat16, {}}};
  d.outputs = {{"y", std::vector<std::string>{"rows", "width"}, DType::bfloat16, {}}};
  PTXBENCH_TRY_ASSIGN(DefinitionPtr definition, make_definition(std::move(d)));

  Workload w;
  w.definition = definition;
  w.axes = {{"rows", 513}};
  w.uuid = "rows-513";
  PTXBENCH_TRY_ASSIGN(const Workload workload, make_workload(std::move(w)));
  PTXBENCH_TRY_ASSIGN(const Solution solution, load_solution(folder, *definition));

  ContextOptions options;
  options.device = device;
  options.worker_path = PTXBENCH_WORKER;
  PTXBENCH_TRY_ASSIGN(const std::shared_ptr<Context> context, Context::create(options));
  Judging judging;
  judging.reference = std::shared_ptr<Reference>(std::make_shared<RmsNorm>());
  judging.baseline = NoBaseline{};
  return evaluate(*context, solution, {&workload, 1}, judging, EvaluateOptions{});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s CANDIDATE_FOLDER [device]\n", argv[0]);
    return 2;
  }
  const Result<Evaluation> evaluation = judge(argv[1], argc > 2 ? argv[2] : "auto");
  if (!evaluation) {
    std::fprintf(stderr, "%s\n", evaluation.error().to_string().c_str());
    return 2;
  }
  std::printf("%s\n", to_json(*evaluation).c_str());
  const std::optional<Status> status = evaluation->status();
  return !status || *status == Status::passed ? 0 : 1;
}
