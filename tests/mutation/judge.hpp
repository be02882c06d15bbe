// Runs a mutant as a verdict does, and says how it was found.
#pragma once

#include "affected.hpp"
#include "equivalent.hpp"
#include "mutate.hpp"
#include "support/kernel_emulation.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace ptxbench::testing {

enum class HowFound : std::uint8_t { wrong_result, fault, hazard, deadlock, refused, survived };
std::string_view outcome_name(HowFound outcome) noexcept;
inline constexpr std::size_t kOutcomes = 6;

struct Judgement {
  HowFound outcome = HowFound::survived;
  bool has_line = false, right_line = false;
  std::string code;        // of the finding: "deadlock", "out_of_bounds"; of wrong results: the schedule
  std::string finding;     // in words, with its lines
  std::string note;        // that the right kernel does not raise
  std::string equivalent;  // survived, and why that is right; empty: missed
  double seconds = 0;
};

// A right kernel with everything to judge its mutants.
class Subject {
 public:
  Subject(Context& context, KernelCase c);
  const std::string& name() const { return case_.name; }
  const std::vector<Mutant>& mutants() const { return mutants_; }
  const ptx::Module& module() const { return module_; }
  const std::string& text() const { return candidate_.modules[module_index_].ptx; }
  double seconds() const { return seconds_; }  // of the right kernel under all schedules
  // Whether the kernel is right and raises nothing; else why not.
  const std::string& problem() const { return problem_; }
  Judgement judge(const Mutant& mutant);
  bool asynchronous() const { return asynchronous_; }

 private:
  Judgement run(const Mutant& mutant);
  // A deleted initialisation of a register: whether the kernel is right with other values than the one that
  // it has.
  bool any_value_will_do(const Mutant& mutant);
  void find_used_maps();
  VerifyEvidence verify(EmulatedDevice& device, const KernelCase& c, const Candidate& candidate,
                        double seconds);

  KernelCase case_;
  Candidate candidate_;
  ptx::Module module_;
  std::size_t module_index_ = 0;
  std::vector<Mutant> mutants_;
  std::set<std::string> known_notes_, kernels_;
  std::vector<std::string> used_maps_;
  std::unique_ptr<EmulatedDevice> device_;
  std::shared_ptr<Reference> reference_;
  double seconds_ = 1;
  std::string problem_;
  bool asynchronous_ = false;
};

// The collection: the kernels of tests/fixtures/kernels, and the examples' candidates on workloads of their
// own.
std::vector<std::string> subject_names();
KernelCase subject_case(const std::string& name);

}  // namespace ptxbench::testing
