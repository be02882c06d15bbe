// A sample of the mutation bar: mutants of right kernels are found, and at the right line.
#include "judge.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

// The first mutants of @p kinds in @p name.
void check_found(const std::string& name, const std::vector<std::string>& kinds, std::size_t sites) {
  const auto context = compile_only_context();
  Subject subject(*context, subject_case(name));
  INFO(subject.problem());
  REQUIRE(subject.problem().empty());
  for (const std::string& kind : kinds) {
    std::size_t seen = 0;
    for (const Mutant& m : subject.mutants()) {
      if (m.kind != kind || seen >= sites) continue;
      ++seen;
      const Judgement j = subject.judge(m);
      INFO(name << ", line " << m.line << ", " << m.what << ": " << outcome_name(j.outcome) << "\n"
                << j.finding);
      CHECK((j.outcome != HowFound::survived || !j.equivalent.empty()));
      if (j.has_line) CHECK(j.right_line);
    }
    INFO(name << " " << kind);
    CHECK(seen > 0);
  }
}

}  // namespace

TEST_CASE("mutants of a TMA ring are found") {
  check_found("gemm_wgmma_64b",
              {"delete_arrive", "flip_parity", "shift_transaction_bytes", "shift_arrival_count",
               "shift_coordinate", "plan_swizzle", "plan_box"},
              2);
}

TEST_CASE("a missing barrier is found where nothing is asynchronous") {
  check_found("rmsnorm_block", {"delete_barrier"}, 4);
}

TEST_CASE("a copy that no wait covers is found") {
  check_found("triton_331_gemm_pointers", {"delete_commit", "delete_wait"}, 3);
}
