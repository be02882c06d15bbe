// Tables of a mutation matrix: mutation_report [--bar | --known] FILE... reads what mutation_run wrote and
// prints Markdown. With --bar it fails where less than 95% of what is not equivalent was found, less than 90%
// of what names lines names the right ones, a miss is not in known_misses.txt, or of an entry of that list
// more or fewer are missed than it says. --known prints what that list would have to be, with the reasons
// that it has; a person writes the others, in the place of "?".
#include "core/json.hpp"
#include "equivalent.hpp"
#include "known_misses.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

const std::array<const char*, 7> kColumns = {"wrong result", "fault",      "deadlock", "hazard",
                                             "refused",      "equivalent", "missed"};

struct Row {
  std::size_t mutants = 0, with_line = 0, right_line = 0;
  std::array<std::size_t, 7> by{};
  std::size_t equivalent() const { return by[5]; }
  std::size_t missed() const { return by[6]; }
  std::size_t others() const { return mutants - equivalent(); }
};

struct One {
  std::string key, subject, kind, what, outcome, equivalent, code;
  std::uint32_t line = 0;
  bool has_line = false, right_line = false;
  double seconds = 0;
};

One read_one(const json::Cursor& c) {
  const auto text = [&](const char* field) {
    return std::string(c.require(field).value().as_string().value());
  };
  One o;
  o.key = text("key");
  o.subject = text("case");
  o.kind = text("kind");
  o.what = text("what");
  o.outcome = text("outcome");
  o.equivalent = text("equivalent");
  o.code = text("code");
  o.line = static_cast<std::uint32_t>(c.require("line").value().as_int().value());
  o.has_line = c.require("has_line").value().as_bool().value();
  o.right_line = c.require("right_line").value().as_bool().value();
  o.seconds = c.require("seconds").value().as_double().value();
  return o;
}

void count(Row& row, const One& o) {
  ++row.mutants;
  const std::string column = o.outcome != "survived" ? o.outcome
                             : o.equivalent.empty()  ? "missed"
                                                     : "equivalent";
  const auto at = std::find(kColumns.begin(), kColumns.end(), column);
  if (at != kColumns.end()) ++row.by[static_cast<std::size_t>(at - kColumns.begin())];
  row.with_line += o.has_line ? 1 : 0;
  row.right_line += o.right_line ? 1 : 0;
}

void print(const std::string& name, const Row& row) {
  std::cout << "| " << name << " | " << row.mutants;
  for (const std::size_t n : row.by) std::cout << " | " << (n == 0 ? std::string() : std::to_string(n));
  std::cout << " | " << row.right_line << " of " << row.with_line << " |\n";
}

void table(const std::string& title, const std::map<std::string, Row>& rows, const Row& all) {
  std::cout << "## By " << title << "\n| " << title << " | mutants";
  for (const char* c : kColumns) std::cout << " | " << c;
  std::cout << " | right line |\n|---|---";
  for (std::size_t i = 0; i < kColumns.size(); ++i) std::cout << "|---";
  std::cout << "|---|\n";
  for (const auto& [name, row] : rows) print(name, row);
  print("**all**", all);
  std::cout << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  bool bar = false, list_known = false;
  std::map<std::string, One> ones;  // what stands later counts
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--bar" || std::string(argv[i]) == "--known") {
      (argv[i] == std::string("--bar") ? bar : list_known) = true;
      continue;
    }
    std::ifstream file(argv[i]);
    if (!file) return std::fprintf(stderr, "%s cannot be read\n", argv[i]), 2;
    for (std::string line; std::getline(file, line);) {
      const auto document = json::parse(line, {"matrix", false, 4});
      if (!document) return std::fprintf(stderr, "%s: %s\n", argv[i], line.c_str()), 2;
      One o = read_one(json::Cursor(*document));
      std::string key = o.key;
      ones.insert_or_assign(std::move(key), std::move(o));
    }
  }
  const std::vector<KnownMiss> known = known_misses();
  const auto known_of = [&](const One& o) {
    Mutant m;
    m.kind = o.kind;
    m.what = o.what;
    return find_known(known, o.subject, m);
  };
  if (list_known) {
    std::map<std::string, std::pair<std::size_t, std::string>> entries;  // misses, reason
    for (const auto& [key, o] : ones) {
      if (o.outcome != "survived" || !o.equivalent.empty()) continue;
      const KnownMiss* k = known_of(o);
      auto& [misses, reason] = entries[o.subject + " | " + o.kind + " | " + o.what];
      ++misses;
      reason = k != nullptr ? k->reason : "?";
    }
    for (const auto& [what, entry] : entries)
      std::cout << what << " | " << entry.first << " | " << entry.second << "\n";
    return 0;
  }
  Row all;
  std::map<std::string, Row> by_kind, by_subject;
  std::map<std::string, std::size_t> reasons;
  double seconds = 0;
  for (const auto& [key, o] : ones) {
    count(all, o);
    count(by_kind[o.kind], o);
    count(by_subject[o.subject], o);
    if (o.outcome == "survived" && !o.equivalent.empty()) ++reasons[o.equivalent];
    seconds += o.seconds;
  }
  if (all.others() == 0) return std::fprintf(stderr, "no mutants\n"), 2;
  const double found =
      100.0 * static_cast<double>(all.others() - all.missed()) / static_cast<double>(all.others());
  const double lines = all.with_line == 0
                           ? 100
                           : 100.0 * static_cast<double>(all.right_line) / static_cast<double>(all.with_line);
  std::printf(
      "%zu mutants, %zu equivalent, %zu of %zu others found = **%.1f%%** (bar: 95%%), %zu of %zu lines right "
      "= "
      "**%.1f%%** (bar: 90%%); %.0f s of one core.\n\n",
      all.mutants, all.equivalent(), all.others() - all.missed(), all.others(), found, all.right_line,
      all.with_line, lines, seconds);
  if (const std::size_t n = reasons.count(kOrdersNothing) != 0 ? reasons.at(kOrdersNothing) : 0; n != 0)
    std::printf(
        "%zu barriers are needless by the word of the detector of races alone; were they counted as missed, "
        "it "
        "would be %zu of %zu = %.1f%%.\n\n",
        n, all.others() - all.missed(), all.others() + n,
        100.0 * static_cast<double>(all.others() - all.missed()) / static_cast<double>(all.others() + n));
  std::fflush(stdout);
  table("mutation", by_kind, all);
  table("subject", by_subject, all);
  std::cout << "## Equivalent, by reason\n";
  for (const auto& [why, n] : reasons) std::cout << "- " << n << ": " << why << "\n";
  std::cout << "\n## Missed\n";
  std::map<const KnownMiss*, std::size_t> seen;
  std::size_t unknown = 0;
  for (const auto& [key, o] : ones) {
    if (o.outcome != "survived" || !o.equivalent.empty()) continue;
    const KnownMiss* k = known_of(o);
    if (k != nullptr) ++seen[k];
    unknown += k == nullptr ? 1 : 0;
    std::cout << "- " << o.subject << ", PTX line " << o.line << ", " << o.what << ": "
              << (k != nullptr ? k->reason : "**not explained**") << "\n";
  }
  std::cout << "\n## Findings at a wrong line\n";
  for (const auto& [key, o] : ones)
    if (o.has_line && !o.right_line)
      std::cout << "- " << o.subject << ", PTX line " << o.line << ", " << o.what << ": " << o.code << "\n";
  std::cout.flush();
  if (!bar) return 0;
  int result = 0;
  const auto fail = [&](const std::string& why) {
    std::fprintf(stderr, "%s\n", why.c_str());
    result = 1;
  };
  if (found < 95) fail("fewer than 95% found");
  if (lines < 90) fail("fewer than 90% at the right line");
  if (unknown != 0) fail(std::to_string(unknown) + " misses are not in known_misses.txt");
  for (const KnownMiss& k : known)
    if (seen[&k] != k.misses)
      fail("known_misses.txt: " + std::to_string(seen[&k]) + " missed, not " + std::to_string(k.misses) +
           ": " + k.subject + " | " + k.kind + " | " + k.what);
  return result;
}
