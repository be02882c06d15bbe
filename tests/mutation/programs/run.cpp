// The mutation matrix: mutation_run FILE [--fresh] [--case NAME] [--kind KIND] [--line N] [--sample N]
// [--seed N]
// [--part I/N] [--list] [--ptx FOLDER]. Appends one line a mutant to FILE (JSON); what FILE already has is
// not run again, but for --fresh, which begins anew. --sample: most mutants of a kernel and a plentiful kind
// (default 8; 0: all). --part: every N-th mutant. --list: only says what there is. --ptx: writes each
// subject's PTX there.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_RUNNER
#endif
#include "core/json.hpp"
#include "judge.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <random>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

struct Options {
  std::string file, only_case, only_kind;
  std::size_t sample = 8, part = 0, parts = 1, line = 0;
  std::uint64_t seed = 1;
  bool list = false, fresh = false;
  std::string ptx;  // folder
};
Options options;

std::string key_of(const std::string& subject, const Mutant& m) {
  return subject + " " + std::to_string(m.line) + " " + std::to_string(m.index) + " " + m.kind + " " + m.what;
}

std::vector<Mutant> chosen(const std::vector<Mutant>& all, const std::string& name) {
  std::map<std::string, std::vector<Mutant>> by_kind;
  for (const Mutant& m : all)
    if (options.only_kind.empty() || m.kind == options.only_kind) by_kind[m.kind].push_back(m);
  std::vector<Mutant> out;
  for (auto& [kind, list] : by_kind) {
    if (is_plentiful(kind) && options.sample != 0 && list.size() > options.sample) {
      std::mt19937_64 random(options.seed + std::hash<std::string>()(name + kind));
      std::shuffle(list.begin(), list.end(), random);
      list.resize(options.sample);
    }
    out.insert(out.end(), list.begin(), list.end());
  }
  return out;
}

}  // namespace

TEST_CASE("mutation matrix", "[matrix]") {
  std::set<std::string> done;
  if (options.fresh) std::remove(options.file.c_str());
  {
    std::ifstream file(options.file);
    for (std::string line; std::getline(file, line);) {
      const auto document = json::parse(line, {"matrix", false, 4});
      if (document) done.insert(json::Cursor(*document).require("key").value().as_string().value());
    }
  }
  std::ofstream file(options.file, std::ios::app);
  const auto context = compile_only_context();
  const std::vector<std::string> names = subject_names();
  for (std::size_t n = 0; n < names.size(); ++n) {
    if (!options.only_case.empty() && names[n].find(options.only_case) == std::string::npos) continue;
    Subject subject(*context, subject_case(names[n]));
    if (!options.ptx.empty()) std::ofstream(options.ptx + "/" + names[n] + ".ptx") << subject.text();
    if (!subject.problem().empty()) {
      FAIL_CHECK(names[n] << ": " << subject.problem());
      continue;
    }
    const std::vector<Mutant> mutants = chosen(subject.mutants(), names[n]);
    std::cerr << names[n] << ": " << mutants.size() << " of " << subject.mutants().size() << " mutants, "
              << subject.seconds() << " s\n";
    for (std::size_t i = 0; i < mutants.size(); ++i) {
      if (i % options.parts != options.part) continue;
      const Mutant& m = mutants[i];
      const std::string key = key_of(names[n], m);
      if (options.line != 0 && m.line != options.line) continue;
      if (options.list) std::cout << key << "\n";
      if (options.list || done.count(key) != 0) continue;
      const Judgement j = subject.judge(m);
      json::Writer w;
      w.begin_object().field("key", key).field("case", names[n]).field("kind", m.kind).field("what", m.what);
      w.field("line", static_cast<std::int64_t>(m.line))
          .field("outcome", std::string(outcome_name(j.outcome)));
      w.field("has_line", j.has_line).field("right_line", j.right_line).field("code", j.code);
      w.field("finding", j.finding)
          .field("note", j.note)
          .field("equivalent", j.equivalent)
          .field("seconds", j.seconds)
          .end_object();
      file << std::move(w).str() << std::endl;
    }
  }
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto value = [&] { return std::string(i + 1 < argc ? argv[++i] : ""); };
    if (arg == "--case")
      options.only_case = value();
    else if (arg == "--kind")
      options.only_kind = value();
    else if (arg == "--sample")
      options.sample = std::strtoull(value().c_str(), nullptr, 10);
    else if (arg == "--line")
      options.line = std::strtoull(value().c_str(), nullptr, 10);
    else if (arg == "--seed")
      options.seed = std::strtoull(value().c_str(), nullptr, 10);
    else if (arg == "--ptx")
      options.ptx = value();
    else if (arg == "--list")
      options.list = true;
    else if (arg == "--fresh")
      options.fresh = true;
    else if (arg == "--part") {
      const std::string part = value();
      options.part = std::strtoull(part.c_str(), nullptr, 10);
      const std::size_t slash = part.find('/');
      options.parts = slash == std::string::npos ? 1 : std::strtoull(part.c_str() + slash + 1, nullptr, 10);
      if (options.parts == 0) options.parts = 1;
    } else
      options.file = arg;
  }
  if (options.file.empty()) return std::fprintf(stderr, "which FILE?\n"), 2;
  char* none[] = {argv[0], nullptr};
  return Catch::Session().run(1, none);
}
