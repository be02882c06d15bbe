// The judge's operations as loops on the CPU, with the same arithmetic as the kernels.
#include "verify/host_attention.hpp"
#include "verify/host_loops.hpp"
#include "verify/judge_ops.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

namespace ptxbench {
namespace {

using judge::u64;

constexpr std::uint64_t kDeadline = 600'000'000'000;

judge::u32 type_of(DType dtype) { return static_cast<judge::u32>(dtype); }

class HostJudge final : public JudgeOps {
 public:
  explicit HostJudge(Device& device) : device_(device) {}

  Result<void> draw(const judge::DrawSpec& spec, std::uint64_t address) override {
    if (judge::draw_units(spec) == 0) return {};
    PTXBENCH_TRY_ASSIGN(void* at, view(address));
    host_draw(spec, at);
    return {};
  }

  Result<void> gemm_reference(const GemmPattern& pattern, const GemmShape& shape, std::uint64_t a,
                              std::uint64_t b, std::uint64_t out) override {
    if (shape.m == 0 || shape.n == 0) return {};
    PTXBENCH_TRY(settle());
    PTXBENCH_TRY_ASSIGN(void* to, view(out));
    PTXBENCH_TRY_ASSIGN(const auto from, operands(shape, a, b));
    host_gemm_reference(pattern, shape, from.first, from.second, static_cast<double*>(to));
    return {};
  }
  Result<void> gemm_model(const GemmPattern& pattern, const GemmShape& shape, std::uint64_t a,
                          std::uint64_t b, std::uint64_t out) override {
    if (shape.m == 0 || shape.n == 0) return {};
    PTXBENCH_TRY(settle());
    PTXBENCH_TRY_ASSIGN(void* to, view(out));
    PTXBENCH_TRY_ASSIGN(const auto from, operands(shape, a, b));
    host_gemm_model(pattern, shape, from.first, from.second, to);
    return {};
  }

  Result<void> flush_l2() override { return {}; }     // no cache to flush,
  Result<void> read_through(std::uint64_t, std::uint64_t) override { return {}; }  // nor to fill,
  Result<void> wipe_shared() override { return {}; }  // no shared memory that outlives a launch

  Result<bool> disturb(std::uint64_t, const CtaShape&) override { return false; }

  Result<judge::Mismatch> check_draw(const judge::DrawSpec& spec, std::uint64_t address) override {
    judge::Mismatch found{0, ~0ull};
    if (judge::draw_units(spec) == 0) return found;
    PTXBENCH_TRY(settle());
    PTXBENCH_TRY_ASSIGN(const void* at, view(address));
    std::mutex mutex;
    each_drawn(spec, [&](u64 i, u64 bits) {
      if (load(at, spec.type, i) == bits) return;
      const std::lock_guard lock(mutex);
      ++found.count;
      found.first = std::min<u64>(found.first, i);
    });
    return found;
  }
  Result<judge::Mismatch> compare(std::uint64_t a, std::uint64_t b, std::uint64_t bytes) override {
    if (bytes == 0) return judge::Mismatch{0, ~0ull};
    PTXBENCH_TRY(settle());
    PTXBENCH_TRY_ASSIGN(const void* one, view(a));
    PTXBENCH_TRY_ASSIGN(const void* other, view(b));
    if (std::memcmp(one, other, bytes) == 0) return judge::Mismatch{0, ~0ull};  // the common case, and quick
    return scan(bytes, a, [&](const void* at, u64 i) {
      return static_cast<const judge::u8*>(at)[i] != static_cast<const judge::u8*>(other)[i];
    });
  }
  Result<judge::Digest> digest(std::uint64_t address, std::uint64_t bytes, std::uint64_t key) override {
    judge::Digest digest{0, 0};
    if (bytes == 0) return digest;
    PTXBENCH_TRY(settle());
    PTXBENCH_TRY_ASSIGN(const void* const at, view(address));
    const u64 words = bytes / 8;
    for (u64 i = 0; i < words; ++i) judge::add_word(digest, key, i, static_cast<const u64*>(at)[i]);
    if (bytes % 8 != 0) judge::add_word(digest, key, words, judge::last_word(static_cast<const judge::u8*>(at), bytes));
    return digest;
  }
  Result<std::uint64_t> count_poison(std::uint64_t address, int element_bytes, std::uint64_t elements,
                                     std::uint8_t byte) override {
    PTXBENCH_TRY_ASSIGN(const judge::Mismatch found, scan(elements, address, [&](const void* at, u64 i) {
                          const auto* bytes =
                              static_cast<const judge::u8*>(at) + i * static_cast<u64>(element_bytes);
                          for (int j = 0; j < element_bytes; ++j)
                            if (bytes[j] != byte) return false;
                          return true;
                        }));
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
  Result<judge::Mismatch> find_wrong(std::uint64_t elements, ElementsAt got, ElementsAt reference,
                                     double atol, double rtol) override {
    if (elements == 0) return judge::Mismatch{0, ~0ull};
    PTXBENCH_TRY_ASSIGN(const void* expected, view(reference.address));
    const judge::u32 type = type_of(got.dtype), reference_type = type_of(reference.dtype);
    const double largest = judge::largest_finite(type);
    return scan(elements, got.address, [&](const void* at, u64 i) {
      return judge::element_wrong(
          judge::decode(type, judge::load_element(at, type, i)),
          judge::decode(reference_type, judge::load_element(expected, reference_type, i)), atol, rtol,
          largest);
    });
  }
  Result<std::vector<std::uint32_t>> wrong_tiles(const TileGrid& grid, ElementsAt got, ElementsAt reference, double atol,
                                                 double rtol) override {
    std::vector<std::uint32_t> counts(grid.grid_rows() * grid.grid_columns());
    PTXBENCH_TRY_ASSIGN(const void* at, view(got.address));
    PTXBENCH_TRY_ASSIGN(const void* expected, view(reference.address));
    const judge::u32 type = type_of(got.dtype), reference_type = type_of(reference.dtype);
    const double largest = judge::largest_finite(type);
    for (u64 i = 0; i < grid.rows * grid.columns; ++i)
      if (judge::element_wrong(judge::decode(type, judge::load_element(at, type, i)),
                               judge::decode(reference_type, judge::load_element(expected, reference_type, i)), atol, rtol,
                               largest))
        ++counts[i / grid.columns / grid.tile_rows * grid.grid_columns() + i % grid.columns / grid.tile_columns];
    return counts;
  }
  Result<void> attention_forward(const AttentionSpec& spec, const AttentionShape& shape,
                                 const AttentionTensors& tensors) override {
    if (shape.elements() == 0) return {};
    PTXBENCH_TRY_ASSIGN(const HostAttention at, host_attention(spec, tensors));
    host_attention_forward(spec, shape, at);
    return {};
  }
  Result<void> attention_backward(const AttentionSpec& spec, const AttentionShape& shape,
                                  const AttentionTensors& tensors) override {
    if (shape.elements() == 0) return {};
    PTXBENCH_TRY_ASSIGN(const HostAttention at, host_attention(spec, tensors));
    host_attention_backward(spec, shape, at);
    return {};
  }

 private:
  Result<judge::Partial> sum_up(std::uint64_t elements, ElementsAt got, ElementsAt reference, const ModelAt& model) {
    judge::Partial partial{};
    if (elements == 0) return partial;
    PTXBENCH_TRY(settle());
    PTXBENCH_TRY_ASSIGN(const void* at, view(got.address));
    PTXBENCH_TRY_ASSIGN(const void* expected, view(reference.address));
    const void* modelled = nullptr;
    if (model.address != 0) {
      PTXBENCH_TRY_ASSIGN(modelled, view(model.address));
    }
    judge::Sample sample = model.sample;
    if (sample.list != 0) {
      PTXBENCH_TRY_ASSIGN(const void* list, view(sample.list));
      sample.list = reinterpret_cast<u64>(list);
    }
    const judge::u32 type = type_of(got.dtype), reference_type = type_of(reference.dtype);
    const double largest = judge::largest_finite(type);
    for (u64 i = 0; i < elements; ++i) {
      const u64 from = judge::sampled_element(sample, i);
      judge::add_element(
          partial, judge::decode(type, judge::load_element(at, type, from)),
          judge::decode(reference_type, judge::load_element(expected, reference_type, from)), modelled != nullptr,
          modelled != nullptr ? judge::decode(type, judge::load_element(modelled, type, i)) : 0, largest);
    }
    return partial;
  }

  // Where the host sees what is at the addresses that are set.
  Result<HostAttention> host_attention(const AttentionSpec& spec, const AttentionTensors& t) {
    PTXBENCH_TRY(settle());
    HostAttention at;
    const std::pair<std::uint64_t, void**> all[] = {{t.q, &at.q},     {t.k, &at.k},   {t.v, &at.v},   {t.o, &at.o},
                                                    {t.lse, &at.lse}, {t.d_o, &at.d_o}, {t.dq, &at.dq}, {t.dk, &at.dk},
                                                    {t.dv, &at.dv}};
    for (const auto& [address, to] : all)
      if (address != 0) {
        PTXBENCH_TRY_ASSIGN(*to, view(address));
      }
    if (spec.rows != 0) {
      PTXBENCH_TRY_ASSIGN(const void* rows, view(spec.rows));
      at.rows = static_cast<const std::uint32_t*>(rows);
    }
    return at;
  }

  static u64 load(const void* at, judge::u32 type, u64 unit) {
    return judge::type_bits(type) == 4 ? static_cast<const judge::u8*>(at)[unit]
                                       : judge::load_element(at, type, unit);
  }

  Result<void*> view(std::uint64_t address) {
    void* at = device_.host_view(address);
    if (at == nullptr)
      return make_error(ErrorCode::internal, "the judge has no view of an address on this device");
    return at;
  }
  Result<void> settle() {
    PTXBENCH_TRY_ASSIGN(const DeviceOutcome outcome, device_.synchronize(kDeadline));
    if (outcome)
      return make_error(ErrorCode::driver, "the device failed under the judge: " + outcome->message);
    return {};
  }

  template <class F>
  Result<judge::Mismatch> scan(u64 count, std::uint64_t address, F&& differs) {
    judge::Mismatch found{0, ~0ull};
    if (count == 0) return found;
    PTXBENCH_TRY(settle());
    PTXBENCH_TRY_ASSIGN(const void* at, view(address));
    for (u64 i = 0; i < count; ++i)
      if (differs(at, i) && found.count++ == 0) found.first = i;
    return found;
  }

  // The operands of a GEMM; of K = 0 there are none to look at.
  Result<std::pair<const void*, const void*>> operands(const GemmShape& shape, std::uint64_t a, std::uint64_t b) {
    std::pair<const void*, const void*> from(nullptr, nullptr);
    if (shape.k == 0) return from;
    PTXBENCH_TRY_ASSIGN(from.first, view(a));
    PTXBENCH_TRY_ASSIGN(from.second, view(b));
    return from;
  }

  Device& device_;
};

}  // namespace

std::unique_ptr<JudgeOps> make_host_judge(Device& device) { return std::make_unique<HostJudge>(device); }

OutputStatistics statistics_of(const judge::Partial& partial, bool has_model) noexcept {
  OutputStatistics s;
  s.elements = partial.elements;
  s.nonfinite_wrong = partial.nonfinite_wrong;
  s.sum_squared_error = partial.sum_squared_error;
  s.max_absolute_error = partial.max_absolute_error;
  s.max_relative_error = partial.max_relative_error;
  s.sum_got_times_reference = partial.sum_got_times_reference;
  s.sum_squared_reference = partial.sum_squared_reference;
  s.sum_fourth_reference = partial.sum_fourth_reference;
  s.has_model = has_model;
  s.largest_reference = partial.largest_reference;
  if (has_model) add_sample(s, partial);
  return s;
}

void add_sample(OutputStatistics& s, const judge::Partial& sample) noexcept {
  s.model_sum_squared_error = sample.model_sum_squared_error;
  s.model_max_error = sample.model_max_error;
  s.model_times_reference = sample.model_times_reference;
  s.model_elements = sample.elements;
  s.sampled_squared_error = sample.sum_squared_error;
  s.sampled_squared_reference = sample.sum_squared_reference;
  s.sampled_largest_reference = sample.largest_reference;
}

Result<std::unique_ptr<JudgeOps>> make_judge_ops(Device& device, std::span<const std::uint8_t> cubin) {
  PTXBENCH_TRY_ASSIGN(const DeviceBuffer probe, device.allocate(256));
  const bool host = device.host_view(probe.address) != nullptr;
  device.release(probe);
  if (host) return make_host_judge(device);
  if (cubin.empty())
    return make_error(ErrorCode::invalid_argument,
                      "the job carries no code of the judge for " + device.info().id +
                          "; compile judge_compile_request(\"" + device.info().arch + "\")");
  ModuleImage image;
  image.source = "judge.cu";
  image.cubin = cubin;
  return make_cuda_judge(device, image);
}

}  // namespace ptxbench
