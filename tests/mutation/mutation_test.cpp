// A sample of the mutation bar, which CI runs: mutants drawn from all subjects and kinds by a seed, and those
// that are known to be missed. The whole matrix is slow.mutation_* (README.md).
#include "judge.hpp"
#include "known_misses.hpp"

#include <cstdlib>
#include <map>
#include <random>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

constexpr std::size_t kParts = 4;
// Mutants of all parts: about a minute of one core. The sanitizers look at the emulator, not at the bar: fewer mutants, of each
// kind all the same, do for them, and no known misses beyond those.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
constexpr std::size_t kSample = kSanitized ? 240 : 960;

std::uint64_t seed() {
  const char* chosen = std::getenv("PTXBENCH_MUTATION_SEED");
  return chosen != nullptr ? std::strtoull(chosen, nullptr, 10) : 20'261'202;
}

// Of one part of the subjects: each kind once before any kind comes twice, so that rare ones are in it.
std::vector<std::pair<std::size_t, const Mutant*>> drawn(
    const std::vector<std::unique_ptr<Subject>>& subjects, std::uint64_t seed, std::size_t most) {
  std::map<std::string, std::vector<std::pair<std::size_t, const Mutant*>>> by_kind;
  for (std::size_t s = 0; s < subjects.size(); ++s)
    for (const Mutant& m : subjects[s]->mutants()) by_kind[m.kind].push_back({s, &m});
  std::mt19937_64 random(seed);
  for (auto& [kind, list] : by_kind) std::shuffle(list.begin(), list.end(), random);
  std::vector<std::pair<std::size_t, const Mutant*>> out;
  for (std::size_t round = 0; out.size() < most; ++round) {
    const std::size_t before = out.size();
    for (auto& [kind, list] : by_kind)
      if (round < list.size() && out.size() < most) out.push_back(list[round]);
    if (out.size() == before) break;
  }
  return out;
}

std::vector<std::unique_ptr<Subject>> subjects_of(std::size_t part) {
  const auto context = compile_only_context();
  const std::vector<std::string> names = subject_names();
  std::vector<std::unique_ptr<Subject>> subjects;
  for (std::size_t n = part; n < names.size(); n += kParts) {
    subjects.push_back(std::make_unique<Subject>(*context, subject_case(names[n])));
    INFO(subjects.back()->problem());
    REQUIRE(subjects.back()->problem().empty());
  }
  return subjects;
}

void check_part(std::size_t part) {
  const std::vector<KnownMiss> known = known_misses();
  const std::vector<std::unique_ptr<Subject>> subjects = subjects_of(part);
  std::vector<std::pair<std::size_t, const Mutant*>> sample =
      drawn(subjects, seed() + part, kSample / kParts);
  const std::size_t drawn_at_random = sample.size();
  std::map<const KnownMiss*, std::size_t> still_missed;
  for (std::size_t s = 0; s < subjects.size() && !kSanitized; ++s)
    for (const Mutant& m : subjects[s]->mutants())
      if (const KnownMiss* k = find_known(known, subjects[s]->name(), m)) {
        still_missed.emplace(k, 0);
        if (std::find(sample.begin(), sample.end(), std::pair(s, &m)) == sample.end())
          sample.push_back({s, &m});
      }
  std::size_t with_line = 0, right_line = 0;
  for (std::size_t n = 0; n < sample.size(); ++n) {
    const auto& [s, m] = sample[n];
    Subject& subject = *subjects[s];
    const KnownMiss* k = find_known(known, subject.name(), *m);
    // Beyond the sample one miss shows that an entry still says something; how many there are the whole matrix tells.
    if (n >= drawn_at_random && still_missed[k] > 0) continue;
    const Judgement j = subject.judge(*m);
    const bool missed = j.outcome == HowFound::survived && j.equivalent.empty();
    INFO("seed " << seed() << ": " << subject.name() << ", PTX line " << m->line << ", " << m->what << ": "
                 << outcome_name(j.outcome) << "\n"
                 << j.finding);
    if (k != nullptr && kSanitized) continue;
    if (k != nullptr)
      still_missed[k] += missed ? 1 : 0;
    else
      CHECK_FALSE(missed);
    with_line += j.has_line ? 1 : 0;
    right_line += j.right_line ? 1 : 0;
  }
  for (const auto& [k, missed] : still_missed) {
    INFO(k->subject << " | " << k->kind << " | " << k->what << ": " << missed << " missed, not "
                    << k->misses);
    CHECK(missed > 0);
    CHECK(missed <= k->misses);
  }
  INFO(right_line << " of " << with_line << " findings with lines at the right one");
  CHECK(right_line * 10 >= with_line * 9);
}

}  // namespace

TEST_CASE("a sample of all mutants is found: subjects 0, 4, 8, ...") { check_part(0); }
TEST_CASE("a sample of all mutants is found: subjects 1, 5, 9, ...") { check_part(1); }
TEST_CASE("a sample of all mutants is found: subjects 2, 6, 10, ...") { check_part(2); }
TEST_CASE("a sample of all mutants is found: subjects 3, 7, 11, ...") { check_part(3); }

TEST_CASE("the sample has every kind of mutant, and every known miss is about mutants that there are") {
  std::map<std::string, std::size_t> drawn_of;
  const std::vector<KnownMiss> known = known_misses();
  std::map<const KnownMiss*, std::size_t> about;
  for (std::size_t part = 0; part < kParts; ++part) {
    const std::vector<std::unique_ptr<Subject>> subjects = subjects_of(part);
    for (const auto& [s, m] : drawn(subjects, seed() + part, kSample / kParts)) ++drawn_of[m->kind];
    for (const auto& subject : subjects)
      for (const Mutant& m : subject->mutants())
        if (const KnownMiss* k = find_known(known, subject->name(), m)) ++about[k];
  }
  for (const char* kind :
       {"change_descriptor", "delete_arrive", "delete_barrier", "delete_commit", "delete_fence",
        "delete_wait", "drop_initialisation", "flip_parity", "flip_scale_d", "plan_box", "plan_swizzle",
        "shift_arrival_count", "shift_barrier_count", "shift_coordinate", "shift_global_access",
        "shift_global_address", "shift_shared_access", "shift_shared_address", "shift_transaction_bytes"}) {
    INFO(kind);
    CHECK(drawn_of[kind] > 0);
  }
  CHECK(drawn_of.size() == 19);
  for (const KnownMiss& k : known) {
    INFO(k.subject << " | " << k.kind << " | " << k.what);
    CHECK(about[&k] >= k.misses);
    CHECK(k.reason.size() > 20);
  }
}
