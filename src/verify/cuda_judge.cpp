// The judge's operations as kernels on a GPU.
#include "verify/cuda_attention.hpp"
#include "verify/judge_ops.hpp"
#include "verify/judge_source.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace ptxbench {

CompileRequest judge_compile_request(std::string_view arch) {
  CompileRequest request;
  for (const JudgeSource& source : judge_sources()) request.files.push_back({source.name, source.text});
  BoundSource source;
  source.path = "judge.cu";
  request.sources.push_back(std::move(source));
  request.arch = std::string(arch);
  return request;
}

namespace {

using judge::u64;

constexpr std::uint64_t kDeadline = 60'000'000'000;
constexpr std::uint64_t kResultBytes = 256;

judge::u32 type_of(DType dtype) { return static_cast<judge::u32>(dtype); }

class CudaJudge final : public JudgeOps {
 public:
  explicit CudaJudge(Device& device) : device_(device) {}
  ~CudaJudge() override {
    for (const DeviceBuffer& buffer : {results_, flush_})
      if (buffer.address != 0) device_.release(buffer);
    if (loaded_) device_.unload(module_);
  }

  Result<void> prepare(const ModuleImage& image) {
    PTXBENCH_TRY_ASSIGN(module_, device_.load(image));
    loaded_ = true;
    PTXBENCH_TRY_ASSIGN(results_,
                        device_.allocate(kResultBytes + judge::kStatisticsBlocks * sizeof(judge::Partial)));
    return {};
  }

  Result<void> draw(const judge::DrawSpec& spec, std::uint64_t address) override {
    return launch("ptxbench_draw", spread(judge::draw_units(spec)), judge::DrawArgs{spec, address, 0});
  }

  Result<void> gemm_reference(const GemmPattern& pattern, const GemmShape& shape, std::uint64_t a,
                              std::uint64_t b, std::uint64_t out) override {
    return gemm("ptxbench_gemm_reference_", pattern, shape, a, b, out);
  }
  Result<void> gemm_model(const GemmPattern& pattern, const GemmShape& shape, std::uint64_t a,
                          std::uint64_t b, std::uint64_t out) override {
    return gemm("ptxbench_gemm_model_", pattern, shape, a, b, out);
  }

  // The first call allocates, which must not happen behind a closed gate: callers flush once beforehand.
  Result<void> flush_l2() override {
    if (flush_.address == 0) {
      const std::int64_t l2 = device_.info().limits.l2_bytes;
      // Larger than twice the L2, whose policy is not known.
      const std::uint64_t bytes = 2 * static_cast<std::uint64_t>(l2 > 0 ? l2 : std::int64_t{64} << 20) + (16 << 20);
      PTXBENCH_TRY_ASSIGN(flush_, device_.allocate(bytes));
    }
    const judge::FlushArgs args{flush_.address, flush_.bytes / 16, results_.address, ++tag_, 0};
    PTXBENCH_TRY(launch("ptxbench_flush_write", spread(args.words), args));
    return launch("ptxbench_flush_read", spread(args.words), args);
  }

  Result<void> read_through(std::uint64_t address, std::uint64_t bytes) override {
    if (bytes < 16) return {};
    const judge::FlushArgs args{address, bytes / 16, results_.address, ++tag_, 0};
    return launch("ptxbench_flush_read", spread(args.words), args);
  }

  Result<void> wipe_shared() override {
    const DeviceLimits& limits = device_.info().limits;
    const std::uint64_t bytes =
        static_cast<std::uint64_t>(std::max<std::int64_t>(limits.smem_optin_bytes, 0)) / 4 * 4;
    if (bytes == 0) return {};
    // Twice as many CTAs as SMs, for what the scheduler leaves out the first time.
    return launch("ptxbench_wipe_shared",
                  static_cast<std::uint32_t>(2 * std::max<std::int64_t>(limits.sm_count, 1)),
                  judge::FlushArgs{0, bytes / 4, 0, 0x7fc0ffeeu, 0}, bytes);
  }

  Result<bool> disturb(std::uint64_t seed, const CtaShape& shape) override {
    constexpr std::int64_t kMostPerSm = 16, kWarp = 32;
    const DeviceLimits& limits = device_.info().limits;
    const auto per_sm = [](std::int64_t there, std::uint64_t needed) {
      return std::min<std::uint64_t>(static_cast<std::uint64_t>(std::max<std::int64_t>(there, 0)) / std::max<std::uint64_t>(needed, 1),
                                     kMostPerSm);
    };
    const std::int64_t shared = limits.smem_optin_bytes + limits.smem_reserved_bytes;
    // So many neighbours fill an SM, each as large as one of those CTAs, or larger.
    const auto count = static_cast<std::int64_t>(std::max<std::uint64_t>(
        1, std::min(per_sm(limits.max_threads_per_sm, shape.threads),
                    per_sm(shared, shape.shared_bytes + static_cast<std::uint64_t>(limits.smem_reserved_bytes)))));
    const std::int64_t sms = std::max<std::int64_t>(limits.sm_count, 1), threads = limits.max_threads_per_sm / count;
    const judge::NeighbourArgs args{seed, 300'000};
    DeviceLaunch launch;
    launch.module = module_;
    launch.symbol = "ptxbench_neighbour";
    launch.grid = {static_cast<std::uint32_t>(sms * count), 1, 1};
    launch.block = {static_cast<std::uint32_t>(
                        std::clamp(threads / kWarp * kWarp, kWarp, std::max<std::int64_t>(limits.max_threads_per_cta, kWarp))),
                    1, 1};
    launch.dynamic_shared_bytes =
        static_cast<std::uint64_t>(std::max<std::int64_t>(shared / count - limits.smem_reserved_bytes, 0)) / 1024 * 1024;
    launch.parameters = {reinterpret_cast<const std::uint8_t*>(&args), sizeof args};
    launch.beside = true;
    PTXBENCH_TRY_ASSIGN(const DeviceOutcome outcome, device_.launch(launch));
    PTXBENCH_TRY(failed("neighbour", outcome));
    return true;
  }

  Result<judge::Mismatch> check_draw(const judge::DrawSpec& spec, std::uint64_t address) override {
    return find("ptxbench_check_draw", judge::draw_units(spec),
                judge::DrawArgs{spec, address, results_.address});
  }
  Result<judge::Mismatch> compare(std::uint64_t a, std::uint64_t b, std::uint64_t bytes) override {
    return find("ptxbench_compare", bytes / 8 + 8, judge::CompareArgs{a, b, bytes, results_.address});
  }
  Result<judge::Digest> digest(std::uint64_t address, std::uint64_t bytes, std::uint64_t key) override {
    judge::Digest digest{0, 0};
    if (bytes == 0) return digest;
    PTXBENCH_TRY(device_.fill(results_.address, 0, 8, 2));
    PTXBENCH_TRY(launch("ptxbench_digest", spread(bytes / 8 + 1), judge::DigestArgs{address, bytes, key, results_.address}));
    PTXBENCH_TRY(fetch(results_.address, &digest, sizeof digest));
    return digest;
  }
  Result<std::uint64_t> count_poison(std::uint64_t address, int element_bytes, std::uint64_t elements,
                                     std::uint8_t byte) override {
    PTXBENCH_TRY_ASSIGN(const judge::Mismatch found,
                        find("ptxbench_count_poison", elements,
                             judge::PoisonArgs{address, elements, results_.address,
                                               static_cast<judge::u32>(element_bytes), byte}));
    return static_cast<std::uint64_t>(found.count);
  }
  Result<OutputStatistics> statistics(std::uint64_t elements, ElementsAt got, ElementsAt reference,
                                      const ModelAt& model) override {
    const bool sampled = model.sample.list != 0;
    PTXBENCH_TRY_ASSIGN(const judge::Partial total,
                        sum_up(elements, got, reference, sampled ? ModelAt() : ModelAt(model.address)));
    OutputStatistics statistics = statistics_of(total, model.address != 0);
    if (sampled) {
      PTXBENCH_TRY_ASSIGN(const judge::Partial sample, sum_up(model.elements, got, reference, model));
      add_sample(statistics, sample);
    }
    return statistics;
  }
  Result<void> attention_forward(const AttentionSpec& spec, const AttentionShape& shape,
                                 const AttentionTensors& tensors) override {
    return cuda_attention_forward(device_, launcher(), spec, shape, tensors);
  }
  Result<void> attention_backward(const AttentionSpec& spec, const AttentionShape& shape,
                                  const AttentionTensors& tensors) override {
    return cuda_attention_backward(device_, launcher(), spec, shape, tensors);
  }
  Result<judge::Mismatch> find_wrong(std::uint64_t elements, ElementsAt got, ElementsAt reference,
                                     double atol, double rtol) override {
    return find("ptxbench_find_wrong", elements,
                judge::WrongArgs{got.address, reference.address, elements, results_.address, atol, rtol,
                                 type_of(got.dtype), type_of(reference.dtype)});
  }
  Result<std::vector<std::uint32_t>> wrong_tiles(const TileGrid& grid, ElementsAt got, ElementsAt reference, double atol,
                                                 double rtol) override {
    std::vector<std::uint32_t> counts(grid.grid_rows() * grid.grid_columns());
    static_assert(64 * 64 * sizeof(std::uint32_t) <= judge::kStatisticsBlocks * sizeof(judge::Partial));
    const std::uint64_t at = results_.address + kResultBytes, elements = grid.rows * grid.columns;
    PTXBENCH_TRY(device_.fill(at, 0, 4, counts.size()));
    PTXBENCH_TRY(launch("ptxbench_wrong_tiles", spread(elements),
                        judge::WrongTilesArgs{{got.address, reference.address, elements, at, atol, rtol, type_of(got.dtype),
                                               type_of(reference.dtype)},
                                              grid.columns, grid.tile_rows, grid.tile_columns, grid.grid_columns()}));
    PTXBENCH_TRY(fetch(at, counts.data(), counts.size() * sizeof(std::uint32_t)));
    return counts;
  }

 private:
  std::uint32_t spread(u64 items) const {
    const u64 most = 16 * static_cast<u64>(std::max<std::int64_t>(device_.info().limits.sm_count, 1));
    return static_cast<std::uint32_t>(std::clamp<u64>((items + 255) / 256, 1, most));
  }

  Result<judge::Partial> sum_up(std::uint64_t elements, ElementsAt got, ElementsAt reference, const ModelAt& model) {
    judge::Partial total{};
    if (elements == 0) return total;
    const std::uint64_t partials = results_.address + kResultBytes;
    PTXBENCH_TRY(launch("ptxbench_statistics", judge::kStatisticsBlocks,
                        judge::StatisticsArgs{got.address, reference.address, model.address, elements, partials, model.sample,
                                              type_of(got.dtype), type_of(reference.dtype)}));
    std::vector<judge::Partial> blocks(judge::kStatisticsBlocks);
    PTXBENCH_TRY(fetch(partials, blocks.data(), blocks.size() * sizeof(judge::Partial)));
    for (const judge::Partial& block : blocks) judge::merge(total, block);
    return total;
  }

  JudgeLauncher launcher() {
    return [this](std::string_view symbol, std::array<std::uint32_t, 3> grid, std::span<const std::uint8_t> parameters) {
      return launch_bytes(symbol, grid, parameters, 0);
    };
  }
  template <class Args>
  Result<void> launch(std::string_view symbol, std::uint32_t blocks, const Args& args,
                      std::uint64_t shared = 0) {
    return launch_grid(symbol, {blocks, 1, 1}, args, shared);
  }
  template <class Args>
  Result<void> launch_grid(std::string_view symbol, std::array<std::uint32_t, 3> grid, const Args& args,
                           std::uint64_t shared = 0) {
    static_assert(std::is_trivially_copyable_v<Args>);
    return launch_bytes(symbol, grid, {reinterpret_cast<const std::uint8_t*>(&args), sizeof args}, shared);
  }
  Result<void> launch_bytes(std::string_view symbol, std::array<std::uint32_t, 3> grid, std::span<const std::uint8_t> parameters,
                            std::uint64_t shared) {
    DeviceLaunch launch;
    launch.module = module_;
    launch.symbol = symbol;
    launch.grid = grid;
    launch.block = {256, 1, 1};
    launch.dynamic_shared_bytes = shared;
    launch.parameters = parameters;
    PTXBENCH_TRY_ASSIGN(const DeviceOutcome outcome, device_.launch(launch));
    return failed(symbol, outcome);
  }
  static Result<void> failed(std::string_view what, const DeviceOutcome& outcome) {
    if (!outcome) return {};
    return make_error(ErrorCode::driver, "the judge's " + std::string(what) + " failed: " + outcome->name +
                                             ": " + outcome->message);
  }
  Result<void> fetch(std::uint64_t from, void* to, std::size_t bytes) {
    PTXBENCH_TRY_ASSIGN(const DeviceOutcome outcome, device_.synchronize(kDeadline));
    PTXBENCH_TRY(failed("check", outcome));
    return device_.read(from, {static_cast<std::uint8_t*>(to), bytes});
  }
  template <class Args>
  Result<judge::Mismatch> find(std::string_view symbol, u64 items, const Args& args) {
    judge::Mismatch found{0, ~0ull};
    if (items == 0) return found;
    PTXBENCH_TRY(device_.fill(results_.address, 0, 8, 1));
    PTXBENCH_TRY(device_.fill(results_.address + 8, ~0ull, 8, 1));
    PTXBENCH_TRY(launch(symbol, spread(items), args));
    PTXBENCH_TRY(fetch(results_.address, &found, sizeof found));
    return found;
  }
  Result<void> gemm(std::string kernel, const GemmPattern& pattern, const GemmShape& shape, std::uint64_t a,
                    std::uint64_t b, std::uint64_t out) {
    if (shape.m == 0 || shape.n == 0) return {};
    kernel += dtype_name(pattern.input);
    constexpr std::uint32_t kTile = 128;
    const std::uint32_t columns = (shape.n + kTile - 1) / kTile;
    if (columns > 65535)
      return make_error(ErrorCode::unsupported, "a GEMM with N = " + std::to_string(shape.n) +
                                                    " is beyond what the judge's reference serves");
    return launch_grid(kernel, {(shape.m + kTile - 1) / kTile, columns, 1},
                       judge::GemmArgs{a, b, out, shape.m, shape.n, shape.k, type_of(pattern.output)});
  }

  Device& device_;
  DeviceModule module_ = 0;
  bool loaded_ = false;
  DeviceBuffer results_, flush_;
  judge::u32 tag_ = 0;
};

}  // namespace

Result<std::unique_ptr<JudgeOps>> make_cuda_judge(Device& device, const ModuleImage& image) {
  auto made = std::make_unique<CudaJudge>(device);
  PTXBENCH_TRY(made->prepare(image));
  return std::unique_ptr<JudgeOps>(std::move(made));
}

}  // namespace ptxbench
