#include "support/catch.hpp"

#include <ptxbench/evaluate.hpp>

using namespace ptxbench;

TEST_CASE("options: protocol, target width and the L2's state are read strictly and written again") {
  const auto options =
      parse_evaluate_options(R"({"protocol": "ptxbench-published", "target_width": 0.01, "l2": "cold"})");
  if (!options) FAIL(options.error().to_string());
  CHECK(options->protocol == kPublished);
  CHECK(options->target_width == 0.01);
  const auto warm = parse_evaluate_options(R"({"l2": "warm"})");
  REQUIRE(warm);
  CHECK(warm->l2 == L2State::warm);
  CHECK(warm->protocol == kRigorous);
  const auto again = parse_evaluate_options(to_json(*warm));
  if (!again) FAIL(again.error().to_string());
  CHECK(again->l2 == L2State::warm);
  CHECK(again->target_width == warm->target_width);
  for (const char* wrong : {R"({"l2": "hot"})", R"({"target_width": 1})", R"({"target_width": -0.1})",
                            R"({"protocol": "published"})"})
    CHECK_FALSE(parse_evaluate_options(wrong));
  CHECK(parse_evaluate_options(R"({"protocol": "published"})").error().message.find("ptxbench-published") !=
        std::string::npos);
}

TEST_CASE("a protocol decides the comparator") {
  ComparatorSpec own;
  own.tolerance = {1, 2};
  CHECK(protocol_comparator(kRigorous, own).tolerance.atol == 1);
  const ComparatorSpec published = protocol_comparator(kPublished, own);
  CHECK(published.kind == ComparatorKind::tolerance);
  CHECK(published.tolerance.either);
  CHECK(published.tolerance.atol == 1e-2);
  CHECK(published.tolerance.rtol == 1e-2);
}
