// The words of a Verdict, and what an Evaluation concludes from its verdicts.
#include <ptxbench/trace/verdict.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace ptxbench {
namespace {

constexpr std::array<std::string_view, 7> kStatuses{
    "PASSED",        "INCORRECT_SHAPE", "INCORRECT_NUMERICAL", "INCORRECT_DTYPE", "RUNTIME_ERROR",
    "COMPILE_ERROR", "TIMEOUT"};
constexpr std::array<std::string_view, 4> kOutcomes{"judged", "not_applicable", "not_run", "incomplete"};
constexpr std::array<std::string_view, 4> kAvailabilities{"measured", "not_requested", "unavailable",
                                                          "inconclusive"};
constexpr std::array<std::string_view, 3> kSeverities{"note", "warning", "error"};
constexpr std::array<std::string_view, 3> kContractStates{"met", "not_met", "not_checked"};

template <std::size_t N, class E>
std::string_view name_of(const std::array<std::string_view, N>& names, E value) {
  const auto i = static_cast<std::size_t>(value);
  return i < N ? names[i] : std::string_view("unknown");
}

}  // namespace

std::string_view status_name(Status status) noexcept { return name_of(kStatuses, status); }

std::optional<Status> status_from_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kStatuses.size(); ++i)
    if (kStatuses[i] == name) return static_cast<Status>(i);
  return std::nullopt;
}

std::string_view outcome_name(Outcome outcome) noexcept { return name_of(kOutcomes, outcome); }
std::string_view availability_name(Availability a) noexcept { return name_of(kAvailabilities, a); }
std::string_view severity_name(Severity severity) noexcept { return name_of(kSeverities, severity); }
std::string_view contract_state_name(ContractState state) noexcept { return name_of(kContractStates, state); }

const Finding* Verdict::find_finding(std::string_view code) const noexcept {
  for (const Finding& finding : findings)
    if (finding.code == code) return &finding;
  return nullptr;
}

std::optional<Status> Evaluation::status(bool not_applicable_fails) const noexcept {
  bool all_judged = !verdicts.empty();
  for (const Verdict& verdict : verdicts) {
    if (verdict.outcome == Outcome::judged && verdict.status) {
      if (*verdict.status != Status::passed) return verdict.status;
    } else if (verdict.outcome == Outcome::not_applicable && not_applicable_fails) {
      return Status::compile_error;  // the plan's own `require` refused it before anything was launched
    } else {
      all_judged = false;
    }
  }
  return all_judged ? std::optional<Status>(Status::passed) : std::nullopt;
}

Outcome Evaluation::outcome() const noexcept {
  if (status()) return Outcome::judged;
  const auto all = [&](Outcome outcome) {
    return std::all_of(verdicts.begin(), verdicts.end(),
                       [&](const Verdict& v) { return v.outcome == outcome; });
  };
  if (all(Outcome::not_run)) return Outcome::not_run;  // also where there are none
  return all(Outcome::not_applicable) ? Outcome::not_applicable : Outcome::incomplete;
}

std::optional<double> Evaluation::speedup() const noexcept {
  if (status() != Status::passed) return std::nullopt;
  double sum = 0;
  for (const Verdict& verdict : verdicts) {
    const TimingBlock& timing = verdict.timing;
    if (timing.state != Availability::measured || !timing.speedup || !(*timing.speedup > 0))
      return std::nullopt;
    // Numbers of two protocols, or of a cold and a warm L2, have no mean.
    if (timing.l2 != verdicts.front().timing.l2 ||
        verdict.provenance.protocol != verdicts.front().provenance.protocol)
      return std::nullopt;
    sum += std::log(*timing.speedup);
  }
  return std::exp(sum / static_cast<double>(verdicts.size()));
}

}  // namespace ptxbench
