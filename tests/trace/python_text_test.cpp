#include "trace/python_text.hpp"

#include "support/catch.hpp"

using namespace ptxbench;

TEST_CASE("python text: expressions that are constraints") {
  for (const char* good : {"M",
                           "M > 0",
                           "M >= 1 and N != 0 or not K",
                           "M not in (1, 2)",
                           "x is not None",
                           "a if b else c",
                           "f(a, b=1, *c, **d)",
                           "a[1:2, ::3]",
                           "{1: 2, 'k': x}",
                           "{1, 2}",
                           "()",
                           "(1,)",
                           "1,",
                           "a.b.c()",
                           "-x ** 2",
                           "~x",
                           "not not x",
                           "'a' 'b' == c",
                           "0x1F + 1e-3 + 1_000",
                           "all(x > 0 for x in y)",
                           "(lambda x: x)(1)",
                           "M\n\n",
                           "M  # comment",
                           "(\nM > 0\n)",
                           "kv_indices.shape[0] == kv_indptr[-1].item()",
                           "(y := 3) > 2",
                           "len_indptr == batch_size + 1",
                           "a <\\\n b",
                           "x == ...",
                           "r'a\\\\' == b",
                           "max(a , b) <= 3.5"}) {
    INFO(good);
    const auto problem = constraint_problem(good);
    if (problem) INFO(*problem);
    REQUIRE_FALSE(problem);
  }
}

TEST_CASE("python text: texts that are none") {
  for (const char* bad : {"",
                          "\n",
                          "# c",
                          " M",
                          "\tM",
                          "M >",
                          "M = 4",
                          "M == ",
                          "M N",
                          "M > 1\nN > 1",
                          "M > 1; N > 1",
                          "(M",
                          "M)",
                          "(M]",
                          "'M",
                          "M &&  N",
                          "M || N",
                          "!M",
                          "M ? 1 : 2",
                          "$M",
                          "1M",
                          "M..",
                          "M.1",
                          "M . ",
                          "x not y",
                          "x + in y",
                          "f(,)",
                          "a[1",
                          "M > 1 // at least",
                          "import os",
                          "return x",
                          "x += 1",
                          "f() = 1",
                          "* M",
                          "M >> > 1",
                          "{1} {2}",
                          "a := 1",
                          "(not)",
                          "'a' b",
                          "M -> N",
                          "\"\"\"a"}) {
    INFO(bad);
    REQUIRE(constraint_problem(bad));
  }
  REQUIRE(constraint_problem(std::string_view("M\0", 2)));
}

TEST_CASE("python text: the problem is named") {
  REQUIRE(reference_problem("def run(a:\n  pass")->find("'('") != std::string::npos);
  REQUIRE(reference_problem("def run(a):\n")->find("body") != std::string::npos);
  REQUIRE(reference_problem("x = 1")->find("run") != std::string::npos);
  REQUIRE(reference_problem("")->find("run") != std::string::npos);
  REQUIRE_FALSE(reference_problem("def run (a): return a"));
  REQUIRE_FALSE(reference_problem("def run[T](a: T) -> T:\n  return a"));
  REQUIRE_FALSE(reference_problem("\n\ndef helper(): pass\n\ndef run(a):\n\treturn a\n\n\n"));
  REQUIRE(reference_problem("def runner(a): return a"));
}
