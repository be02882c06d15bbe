// What an attention's outputs would be, had the candidate made one of the usual mistakes: the mask left out,
// or one off, or there where the definition has none; scores scaled by something else. Computed with the
// judge's own kernels, for some heads.
#pragma once

#include "verify/diagnose.hpp"
#include "verify/trial.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ptxbench {

// Of how many heads the outputs are computed under @p mistakes mistakes, 0 where one would take too long: at
// most so many that an output's elements, which are fetched, and the time, which a verdict waits for, stay
// small.
std::uint32_t heads_under_mistakes(const AttentionShape& shape, bool backward, std::size_t mistakes,
                                   bool on_host) noexcept;

class AttentionMistakes {
 public:
  // Nothing where the definition is no attention or none of @p outputs is to be explained. The inputs lie in
  // their buffers as they were placed. What would take more than a few seconds, or more memory than there is,
  // is left out: left_out() says so, and it is no error.
  static Result<std::optional<AttentionMistakes>> compute(const TrialParts& parts,
                                                          const std::vector<OutputEvidence>& outputs);

  // What each mistake would make of elements [first, first + count) of an output, where they are in the heads
  // looked at. Valid until the next call.
  Result<std::vector<Alternative>> of(std::size_t output, std::uint64_t first, std::uint64_t count);

  // Why mistakes have not been tried, if some have not.
  const std::optional<std::string>& left_out() const { return left_out_; }

 private:
  struct Mistake {
    std::string pattern, message;
    AttentionSpec spec;
    std::vector<OwnedBuffer> outputs;  // fp32, of the heads looked at
  };

  explicit AttentionMistakes(Device& device) : device_(&device) {}
  void list_mistakes(const AttentionPattern& pattern, const AttentionShape& shape);
  Result<void> run(const TrialParts& parts, const AttentionPattern& pattern, Mistake& mistake) const;
  std::uint64_t width(std::size_t output) const { return !backward_ && output == 1 ? 1 : shape_.head_dim; }

  Device* device_;
  bool backward_ = false;
  AttentionShape shape_;          // of the heads looked at
  std::uint32_t first_head_ = 0;  // of all
  std::vector<Mistake> mistakes_;
  std::vector<std::vector<float>> values_;  // of the last call of of()
  std::optional<std::string> left_out_;
};

}  // namespace ptxbench
