#include "verify/diagnose_attention.hpp"

#include <algorithm>
#include <cmath>
#include <new>

namespace ptxbench {
namespace {

constexpr std::uint64_t kMostElements = std::uint64_t{1} << 22;  // of an output
// Multiplications and additions of all mistakes together: a second or two on two cores, and less on a GPU.
constexpr double kMostOnHost = 2e10, kMostOnGpu = 1e13;
constexpr std::uint64_t kMostNanoseconds = 4'000'000'000;

}  // namespace

std::uint32_t heads_under_mistakes(const AttentionShape& shape, bool backward, std::size_t mistakes,
                                   bool on_host) noexcept {
  const double scores = static_cast<double>(shape.sequence) * shape.sequence;
  // Products of matrices, and an exponential or two for each score.
  const double of_head = scores * ((backward ? 14.0 : 4.0) * shape.head_dim + (backward ? 200 : 100));
  const double affordable = (on_host ? kMostOnHost : kMostOnGpu) / (of_head * static_cast<double>(mistakes));
  const std::uint64_t fit =
      std::max<std::uint64_t>(1, kMostElements / (std::uint64_t{shape.sequence} * shape.head_dim));
  return static_cast<std::uint32_t>(
      std::min({static_cast<double>(fit), affordable, static_cast<double>(shape.all_heads())}));
}

void AttentionMistakes::list_mistakes(const AttentionPattern& pattern, const AttentionShape& shape) {
  AttentionSpec right;
  right.causal = pattern.causal;
  right.input = pattern.dtype;
  // As a candidate computes: a backward pass takes P from the L that it is given, whatever the mask.
  right.model = true;
  right.lse = DType::float32;
  const auto add = [&](const char* name, std::string message, auto&& change) {
    Mistake& mistake = mistakes_.emplace_back();
    mistake.pattern = name;
    mistake.message = std::move(message);
    mistake.spec = right;
    change(mistake.spec);
  };
  if (pattern.causal) {
    add("missing_mask", "the values are those without a mask: the causal mask is missing",
        [](AttentionSpec& s) { s.causal = false; });
    add("mask_off_by_one",
        "the values are those of a causal mask that is one off: query i sees keys 0 to i - 1, not itself",
        [](AttentionSpec& s) { s.mask_offset = -1; });
    add("mask_off_by_one",
        "the values are those of a causal mask that is one off: query i sees keys 0 to i + 1, one too many",
        [](AttentionSpec& s) { s.mask_offset = 1; });
  } else {
    add("unwanted_mask", "the values are those under a causal mask, which the definition does not have",
        [](AttentionSpec& s) { s.causal = true; });
  }
  const std::string d = std::to_string(shape.head_dim), root = "1 / sqrt(" + d + ")";
  add("score_scale", "the values are those of scores that are not scaled by " + root,
      [](AttentionSpec& s) { s.score_scale = 1; });
  add("score_scale", "the values are those of scores scaled by 1 / " + d + " instead of " + root,
      [&](AttentionSpec& s) { s.score_scale = 1.0 / shape.head_dim; });
  if (!pattern.backward)
    add("score_scale",
        "the values are those of scores times ln(2): powers of 2 of scores that were not multiplied by "
        "log2(e)",
        [&](AttentionSpec& s) {
          s.score_scale = 0.6931471805599453 / std::sqrt(static_cast<double>(shape.head_dim));
        });
}

Result<std::optional<AttentionMistakes>> AttentionMistakes::compute(
    const TrialParts& parts, const std::vector<OutputEvidence>& outputs) {
  std::optional<AttentionMistakes> none;
  const std::optional<AttentionPattern> pattern = match_attention(*parts.workload.definition);
  if (!pattern) return none;
  AttentionMistakes made(parts.device);
  made.backward_ = pattern->backward;
  PTXBENCH_TRY_ASSIGN(const AttentionShape all, attention_shape(parts.workload));
  made.shape_ = all;
  const auto wrong = std::find_if(outputs.begin(), outputs.end(), [](const OutputEvidence& o) {
    return o.first_wrong && o.comparator != ComparatorKind::callback;
  });
  if (wrong == outputs.end() || all.elements() == 0) return none;
  made.list_mistakes(*pattern, all);

  // Whole heads, from that of the first wrong element on.
  const auto output = static_cast<std::size_t>(wrong - outputs.begin());
  made.first_head_ = static_cast<std::uint32_t>(*wrong->first_wrong / (all.sequence * made.width(output)));
  const bool on_host = parts.device.host_view(parts.buffers.inputs[0].buffer().address) != nullptr;
  made.shape_.batch = 1;
  made.shape_.heads = std::min(heads_under_mistakes(all, pattern->backward, made.mistakes_.size(), on_host),
                               all.all_heads() - made.first_head_);
  if (made.shape_.heads == 0) {
    made.left_out_ = "computing one head under each mistake would take more than a few seconds";
    made.mistakes_.clear();
  }

  const auto start = Stopwatch::Clock::now();
  for (std::size_t i = 0; i < made.mistakes_.size(); ++i) {
    Result<void> done;
    if (Stopwatch::nanoseconds(Stopwatch::Clock::now() - start) > kMostNanoseconds)
      made.left_out_ = "the others took more than a few seconds";
    else
      done = made.run(parts, *pattern, made.mistakes_[i]);
    if (!done && done.error().code != ErrorCode::no_memory) return std::move(done).error();
    if (!done) made.left_out_ = "there is no memory for what they would make: " + done.error().message;
    if (made.left_out_) {
      made.mistakes_.resize(i);
      break;
    }
  }
  return std::optional<AttentionMistakes>(std::move(made));
}

Result<void> AttentionMistakes::run(const TrialParts& parts, const AttentionPattern& pattern,
                                    Mistake& mistake) const try {
  const std::uint64_t row = std::uint64_t{first_head_} * shape_.sequence;
  const auto rows_of = [&](std::size_t i) {
    return parts.buffers.inputs[i].buffer().address + row * shape_.head_dim * 2;
  };
  const std::size_t outputs = pattern.backward ? 3 : 2;
  for (std::size_t i = 0; i < outputs; ++i) {
    PTXBENCH_TRY_ASSIGN(OwnedBuffer made,
                        OwnedBuffer::allocate(parts.device, shape_.rows() * width(i) * sizeof(float)));
    mistake.outputs.push_back(std::move(made));
  }
  AttentionTensors t;
  t.q = rows_of(0);
  t.k = rows_of(1);
  t.v = rows_of(2);
  if (!pattern.backward) {
    t.o = mistake.outputs[0].address();
    t.lse = mistake.outputs[1].address();
    return parts.judge.attention_forward(mistake.spec, shape_, t);
  }
  t.o = rows_of(kAttentionOutput);
  t.d_o = rows_of(kAttentionGradient);
  t.lse = parts.buffers.inputs[kAttentionLse].buffer().address + row * sizeof(float);
  t.dq = mistake.outputs[0].address();
  t.dk = mistake.outputs[1].address();
  t.dv = mistake.outputs[2].address();
  return parts.judge.attention_backward(mistake.spec, shape_, t);
} catch (const std::bad_alloc&) {
  return make_error(ErrorCode::no_memory, "the host has no memory left");
}

Result<std::vector<Alternative>> AttentionMistakes::of(std::size_t output, std::uint64_t first,
                                                       std::uint64_t count) {
  std::vector<Alternative> alternatives;
  values_.clear();
  const std::uint64_t begin = std::uint64_t{first_head_} * shape_.sequence * width(output);
  const std::uint64_t from = std::max(first, begin),
                      to = std::min(first + count, begin + shape_.rows() * width(output));
  if (from >= to) return alternatives;
  const auto add = [&](const Mistake& mistake, std::string message, std::vector<float> values) {
    values_.push_back(std::move(values));
    alternatives.push_back({mistake.pattern, std::move(message), from - first, values_.back()});
  };
  for (const Mistake& mistake : mistakes_) {
    std::vector<float> values(to - from);
    PTXBENCH_TRY(
        device_->read(mistake.outputs[output].address() + (from - begin) * sizeof(float),
                      {reinterpret_cast<std::uint8_t*>(values.data()), values.size() * sizeof(float)}));
    std::vector<float> scaled;
    // One wrong factor is often used for both: for scores, and for dQ and dK.
    if (backward_ && output < 2 && mistake.spec.score_scale) {
      scaled = values;
      const double by = *mistake.spec.score_scale * std::sqrt(static_cast<double>(shape_.head_dim));
      for (float& v : scaled) v = static_cast<float>(v * by);
    }
    add(mistake, mistake.message, std::move(values));
    if (!scaled.empty()) add(mistake, mistake.message + ", and the gradients likewise", std::move(scaled));
  }
  return alternatives;
}

}  // namespace ptxbench
