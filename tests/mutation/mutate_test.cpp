// Mutants of a small module: what is made, that it is still PTX, and which survivors the rules excuse.
#include "mutate.hpp"

#include "affected.hpp"
#include "equivalent.hpp"
#include "support/catch.hpp"

#include <algorithm>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

// The body begins on line 7.
ptx::Module parsed(const std::string& text) {
  auto module = ptx::parse(text, "test.ptx");
  if (!module) FAIL(module.error().to_string());
  return std::move(*module);
}
std::string kernel(const std::string& body) {
  return ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n.reg .b32 %r<9>; .reg .b64 "
         "%rd<9>; "
         ".reg .pred %p<9>;\n.shared .align 16 .b8 s[256];\n" +
         body + "\n}\n";
}
std::set<std::uint32_t> lines(std::uint32_t from, std::uint32_t to) {
  std::set<std::uint32_t> out;
  for (; from <= to; ++from) out.insert(from);
  return out;
}
std::size_t count(const std::vector<Mutant>& all, const std::string& kind) {
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [&](const Mutant& m) { return m.kind == kind; }));
}

const char* const kBody =
    "mov.u32 %r1, s;\n"
    "mbarrier.init.shared.b64 [%r1], 2;\n"
    "fence.mbarrier_init.release.cluster;\n"
    "bar.sync 0, 64;\n"
    "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 128;\n"
    "{ .reg .pred done; L: mbarrier.try_wait.parity.shared.b64 done, [%r1+0],\n"
    "  %r2; @!done bra L; }\n"
    "st.shared.u32 [%r1+64], %r2;\n"
    "bar.sync 0;\n"
    "bar.sync 0;\n"
    "ld.shared.v2.u32 {%r3, %r4}, [%r1+64];\n"
    "ret;";

}  // namespace

TEST_CASE("mutants of PTX are PTX, with the lines where they were") {
  const std::string text = kernel(kBody);
  const ptx::Module module = parsed(text);
  const std::vector<Mutant> all = mutants_of(module, text, lines(7, 19));
  CHECK(count(all, "delete_fence") == 1);
  CHECK(count(all, "delete_barrier") == 3);
  CHECK(count(all, "shift_barrier_count") == 2);
  CHECK(count(all, "shift_arrival_count") == 2);
  CHECK(count(all, "shift_transaction_bytes") == 2);
  CHECK(count(all, "delete_arrive") == 1);
  CHECK(count(all, "delete_wait") == 1);
  CHECK(count(all, "flip_parity") == 1);
  CHECK(count(all, "drop_initialisation") == 1);
  CHECK(count(all, "shift_shared_access") == 2);
  for (const Mutant& m : all) {
    const std::string changed = edited(text, m.edit);
    INFO(m.what << "\n" << changed);
    CHECK(changed != text);
    const auto again = ptx::parse(changed, "mutant.ptx");
    if (!again) FAIL(again.error().to_string());
    CHECK(again->functions[0].body.back().where.line == module.functions[0].body.back().where.line);
  }
  CHECK(mutants_of(module, text, {}).empty());  // what never runs has none
}

TEST_CASE("mutants of a plan change one map") {
  const std::string launch =
      R"({"tensor_maps": [{"name": "a", "tensor": "A", "box": [64, "BM / 2"], "swizzle": "128B"}]})";
  const std::vector<Mutant> all = plan_mutants(launch);
  REQUIRE(all.size() == 4);
  CHECK(count(all, "plan_swizzle") == 3);
  CHECK(edited(launch, all.back().edit).find(R"([64, "(BM / 2) / 2"])") != std::string::npos);
}

TEST_CASE("rules excuse what is no bug, and nothing else") {
  const std::string text = kernel(kBody);
  const ptx::Module module = parsed(text);
  for (const Mutant& m : mutants_of(module, text, lines(7, 19))) {
    const std::string why = equivalent_because({module, m, "{}", "", {}, {}, true});
    INFO(m.what << " on line " << m.line << ": " << why);
    const bool beside = m.kind == "delete_barrier" && m.line >= 15;
    CHECK(why.empty() != (beside || m.kind == "delete_fence"));
  }
}

TEST_CASE("affected lines are those of the barrier, not of all the kernel") {
  const std::string text = kernel(kBody);
  const ptx::Module module = parsed(text);
  for (const Mutant& m : mutants_of(module, text, lines(7, 19))) {
    const std::set<std::uint32_t> affected = affected_lines(module, m);
    INFO(m.what);
    CHECK(affected.count(m.line) == 1);
    if (m.kind == "shift_arrival_count") {
      CHECK(affected.count(12) == 1);  // who waits
      CHECK(affected.count(18) == 0);
    }
  }
  CHECK(lines_in("at PTX line 12 (a.cu:3), PTX line 4, line 9") == std::set<std::uint32_t>{4, 12});
}
