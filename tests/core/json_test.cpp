#include "core/json.hpp"

#include "support/catch.hpp"

#include <cmath>
#include <limits>

using namespace ptxbench;
using json::Cursor;
using json::Kind;

namespace {

json::Document must_parse(std::string_view text, bool lenient = false) {
  auto result = json::parse(text, {"t.json", lenient, 200});
  if (!result) FAIL(result.error().to_string());
  return std::move(result).value();
}

Error must_fail(std::string_view text, bool lenient = false) {
  const auto result = json::parse(text, {"t.json", lenient, 200});
  if (result) FAIL("accepted: " << text);
  REQUIRE(result.error().code == ErrorCode::parse);
  REQUIRE(result.error().where.file == "t.json");
  REQUIRE(result.error().where.line >= 1);
  REQUIRE(result.error().where.column >= 1);
  return result.error();
}

std::string round_trip(std::string_view text, bool lenient = false) {
  return json::to_string(must_parse(text, lenient).root);
}

std::string nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

}  // namespace

TEST_CASE("json: every kind of value") {
  const auto document =
      must_parse(R"( {"a": [1, -2.5e3, true, false, null, "x", {}, []], "b": {"c": "d"}} )");
  REQUIRE(json::to_string(document.root) == R"({"a":[1,-2.5e3,true,false,null,"x",{},[]],"b":{"c":"d"}})");
  REQUIRE(document.root.find("b")->find("c")->text == "d");
  REQUIRE(document.root.find("z") == nullptr);
}

TEST_CASE("json: scalars as roots") {
  REQUIRE(must_parse("1").root.text == "1");
  REQUIRE(must_parse(" \"x\" \n").root.text == "x");
  REQUIRE(must_parse("null").root.kind == Kind::null);
  REQUIRE(must_parse("true").root.boolean);
}

TEST_CASE("json: numbers keep their text and obey the grammar") {
  for (const char* good : {"0", "-0", "1e2", "1E+400", "1180591620717411303424", "0.5", "12.25e-3"})
    REQUIRE(round_trip(good) == good);
  for (const char* bad : {"02", "-", "+1", "1.", ".5", "1e", "1e+", "0x10", "1_000", "--1", "1.5.2", "NaN",
                          "Infinity", "-Infinity", "1a", "-a", "1\"a\""}) {
    must_fail(bad);
    must_fail("[" + std::string(bad) + "]");
    must_fail("{\"a\": " + std::string(bad) + "}");
  }
}

TEST_CASE("json: NaN and infinities only where numbers are lenient") {
  REQUIRE(round_trip("[NaN,Infinity,-Infinity]", true) == "[NaN,Infinity,-Infinity]");
  for (const char* bad : {"nan", "inf", "-NaN", "+Infinity", "Infinit", "infinity"}) must_fail(bad, true);
}

TEST_CASE("json: malformed text is refused, in any place") {
  for (const char* bad : {"",
                          "  \n",
                          "[",
                          "]",
                          "{",
                          "}",
                          "[1,]",
                          "[,1]",
                          "[1 2]",
                          "[1]]",
                          "[[1]",
                          "{\"a\"}",
                          "{\"a\":}",
                          "{\"a\" 1}",
                          "{\"a\":1,}",
                          "{,}",
                          "{\"a\":1 \"b\":2}",
                          "{a:1}",
                          "{1:2}",
                          "'a'",
                          "\"a",
                          "\"a\\\"",
                          "tru",
                          "truee",
                          "nulll",
                          "// c\n1",
                          "[1] // c",
                          "/* */1",
                          "1 2",
                          "{} {}",
                          "[1],[2]",
                          "1,2",
                          "1]",
                          "{\"a\":1]",
                          "[1}",
                          "\"a\"\"b\"",
                          "\"a\"b",
                          "[\"a\"b]",
                          "[1:2]",
                          ":",
                          ",",
                          "{\"a\":{\"b\":[1,{\"c\":tru}]}}",
                          "{\"unread\": 01}",
                          "[{}{}]"}) {
    INFO(bad);
    must_fail(bad);
  }
  must_fail(std::string_view("1\0", 2));
  must_fail(std::string_view("[1]\0", 4));
}

TEST_CASE("json: an error names line and column") {
  const Error number = must_fail("{\n  \"a\": 1,\n  \"b\": 02\n}");
  REQUIRE(number.where.line == 3);
  REQUIRE(number.where.column == 8);
  const Error comma = must_fail("[1\n 2]");
  REQUIRE(comma.where.line == 2);
  REQUIRE(comma.where.column == 2);
  const Error trailing = must_fail("{\"a\": 1}\n{\"b\": 2}");
  REQUIRE(trailing.where.line == 2);
  const Error open = must_fail("[1,\n \"abc");
  REQUIRE(open.where.line == 2);
  REQUIRE(open.where.column == 2);
  REQUIRE(must_fail("").message.find("empty") != std::string::npos);
}

TEST_CASE("json: a byte order mark is named") {
  REQUIRE(must_fail("\xEF\xBB\xBF{}").message.find("byte order mark") != std::string::npos);
}

TEST_CASE("json: strings") {
  REQUIRE(must_parse(R"("\ud83d\ude00 \u00e9 \n\t\"\\\/\b\f\r")").root.text ==
          "\xF0\x9F\x98\x80 \xC3\xA9 \n\t\"\\/\b\f\r");
  REQUIRE(must_parse(R"("a\u0000b")").root.text == std::string("a\0b", 3));
  REQUIRE(must_parse("{\"\\u0061\": 1}").root.find("a") != nullptr);
  REQUIRE(must_parse("\"\x7f\"").root.text == "\x7f");
  for (const char* bad : {R"("\x41")", R"("\u12")", R"("\u12G4")", R"("\ud800")", R"("\udc00")",
                          R"("\ud800\u0041")", R"("\udc00\ud800")", R"("\ud800x")", "\"a\tb\"", "\"a\nb\"",
                          "\"\x01\"", "\"\xC3\"", "\"\xED\xA0\x80\"", "\"\xFF\""}) {
    INFO(bad);
    must_fail(bad);
    must_fail("{" + std::string(bad) + ": 1}");
  }
  const Error control = must_fail("[\"ok\",\n\"a\tb\"]");
  REQUIRE(control.where.line == 2);
  REQUIRE(control.where.column == 3);
  REQUIRE(control.message.find("0x09") != std::string::npos);
  REQUIRE(must_fail("[\"ok\", \"\xFF\"]").message.find("UTF-8") != std::string::npos);
}

TEST_CASE("json: nesting has a limit") {
  REQUIRE(round_trip(nested(200)) == nested(200));
  REQUIRE(must_fail(nested(201)).message.find("200") != std::string::npos);
  must_fail(std::string(100000, '['));
  std::string objects;
  for (int i = 0; i < 5000; ++i) objects += "{\"a\":";
  must_fail(objects);
}

TEST_CASE("json: of a repeated key the last value wins, in the first one's place") {
  const auto document = must_parse(R"({"a": {"x": 1, "x": [2]}, "b/c": 1, "b/c": 2, "d": 3})");
  REQUIRE(json::to_string(document.root) == R"({"a":{"x":[2]},"b/c":2,"d":3})");
  REQUIRE(document.repeated_keys == std::vector<std::string>{"/a/x", "/b~1c"});
  std::string many = "{";  // beyond the linear search
  for (int i = 0; i < 100; ++i) many += "\"k" + std::to_string(i) + "\":0,";
  many += "\"k3\":7,\"k99\":8}";
  const auto large = must_parse(many);
  REQUIRE(large.root.members.size() == 100);
  REQUIRE(large.root.find("k3")->text == "7");
  REQUIRE(large.root.find("k99")->text == "8");
  REQUIRE(large.repeated_keys.size() == 2);
}

TEST_CASE("json: a cursor knows its place") {
  const auto document = must_parse(R"({"steps": [{"grid": [1, "x"]}], "a/b": {"~": null}})");
  const Cursor root(document);
  const Cursor steps = root.require("steps").value();
  const Cursor grid = steps.items().value()[0].require("grid").value();
  const Error error = grid.items().value()[1].as_int().error();
  REQUIRE(error.to_string() == "t.json:/steps/0/grid/1: expected an integer, found \"x\"");
  REQUIRE(root.require("a/b").value().require("~").value().pointer() == "/a~1b/~0");
  REQUIRE_FALSE(root.get("nothing").value());
  REQUIRE(root.require("nothing").error().message.find("\"nothing\"") != std::string::npos);
  REQUIRE_FALSE(steps.get("x"));
  REQUIRE_FALSE(root.items());
  REQUIRE_FALSE(grid.members());
  REQUIRE(root.members().value()[1].second.pointer() == "/a~1b");
}

TEST_CASE("json: strict integers") {
  const auto document = must_parse("[9223372036854775807, -9223372036854775808, 0]");
  const auto items = Cursor(document).items().value();
  REQUIRE(items[0].as_int().value() == std::numeric_limits<std::int64_t>::max());
  REQUIRE(items[1].as_int().value() == std::numeric_limits<std::int64_t>::min());
  REQUIRE(items[2].as_int().value() == 0);
  for (const char* bad : {"1e3", "4.0", "\"4\"", "true", "null", "9223372036854775808", "[]"}) {
    const auto refused = must_parse(bad);
    REQUIRE_FALSE(Cursor(refused).as_int());
  }
}

TEST_CASE("json: lax integers, as the trace schema's own reader takes them") {
  const std::vector<std::pair<const char*, std::int64_t>> good = {
      {"4", 4},       {"4.0", 4},
      {"1e3", 1000},  {"1e2", 100},
      {"\"4\"", 4},   {"\" 4 \"", 4},
      {"\"4.0\"", 4}, {"\"1_000\"", 1000},
      {"true", 1},    {"false", 0},
      {"\"-7\"", -7}, {"\"+7\"", 7},
      {"-0", 0},      {"9223372036854775807", std::numeric_limits<std::int64_t>::max()}};
  for (const auto& [text, value] : good) {
    INFO(text);
    const auto document = must_parse(text);
    const auto got = Cursor(document).as_int_lax();
    REQUIRE(got);
    REQUIRE(*got == value);
  }
  for (const char* bad : {"4.5",      "\"0x10\"",
                          "null",     "\"\"",
                          "\" \"",    "\"4.5\"",
                          "\"1__0\"", "\"_1\"",
                          "\"1_\"",   "\"1e3\"",
                          "\"-\"",    "\".0\"",
                          "[]",       "{}",
                          "1e400",    "9223372036854775808",
                          "1e19",     "\"9223372036854775808\"",
                          "\"1 2\"",  "\"abc\""}) {
    INFO(bad);
    const auto document = must_parse(bad);
    REQUIRE_FALSE(Cursor(document).as_int_lax());
  }
  const auto lenient = must_parse("[NaN, Infinity]", true);
  const auto words = Cursor(lenient).items().value();
  for (const Cursor& item : words) REQUIRE_FALSE(item.as_int_lax());
}

TEST_CASE("json: doubles") {
  const auto document = must_parse(
      "[0.1, 1e308, -3, NaN, -Infinity, 1e-400, 1e400, -1e999999999999999999999, \"1\", "
      "1180591620717411303424]",
      true);
  const auto items = Cursor(document).items().value();
  REQUIRE(items[0].as_double().value() == 0.1);
  REQUIRE(items[1].as_double().value() == 1e308);
  REQUIRE(items[2].as_double().value() == -3.0);
  REQUIRE(std::isnan(items[3].as_double().value()));
  REQUIRE(items[4].as_double().value() == -std::numeric_limits<double>::infinity());
  REQUIRE(items[5].as_double().value() == 0.0);
  REQUIRE_FALSE(items[6].as_double());
  REQUIRE_FALSE(items[7].as_double());
  REQUIRE_FALSE(items[8].as_double());
  REQUIRE(items[9].as_double().value() == std::ldexp(1.0, 70));
  REQUIRE(std::isinf(*json::double_from_token("1e400")));
  REQUIRE(*json::double_from_token("0.000000000000000000000000000000000000000001e-400") == 0.0);
  REQUIRE(std::isinf(*json::double_from_token("-" + std::string(400, '9') + ".5")));
  REQUIRE_FALSE(json::double_from_token("abc"));
  REQUIRE_FALSE(json::double_from_token("1x"));
}

TEST_CASE("json: other typed readers") {
  const auto document = must_parse(R"([true, "s", "", 1])");
  const auto items = Cursor(document).items().value();
  REQUIRE(items[0].as_bool().value());
  REQUIRE_FALSE(items[3].as_bool());
  REQUIRE(items[1].as_string().value() == "s");
  REQUIRE(items[2].as_string().value().empty());
  REQUIRE_FALSE(items[2].as_nonempty_string());
  REQUIRE_FALSE(items[3].as_string());
}

TEST_CASE("json: an unknown member is refused with the nearest known one") {
  const auto document = must_parse(R"({"grid": 1, "blcok": 2, "zzzzzz": 3})");
  const auto result = Cursor(document).only({"grid", "block", "cluster", "zzzzzz"});
  REQUIRE_FALSE(result);
  REQUIRE(result.error().where.pointer == "/blcok");
  REQUIRE(result.error().message.find("\"block\"") != std::string::npos);
  REQUIRE(Cursor(document).only({"grid", "blcok", "zzzzzz"}));
  const auto far = Cursor(document).only({"grid", "blcok"});
  REQUIRE(far.error().message.find("did you mean") == std::string::npos);
  REQUIRE(json::nearest("shard_bytes", {"shared_bytes", "block"}) == "shared_bytes");
  REQUIRE(json::nearest("x", {"block"}).empty());
  REQUIRE(json::nearest("", {}).empty());
}

TEST_CASE("json: the writer") {
  json::Writer compact;
  compact.begin_object()
      .field("a", 1)
      .key("b")
      .begin_array()
      .boolean(true)
      .null()
      .string("x\n\"\\\x01")
      .end_array();
  compact.key("c").begin_object().end_object().key("d").begin_array().end_array().field(
      "e", std::uint64_t{18446744073709551615u});
  compact.key("f").raw("[1]").field("g", std::numeric_limits<double>::quiet_NaN()).end_object();
  REQUIRE(compact.str() ==
          "{\"a\":1,\"b\":[true,null,\"x\\n\\\"\\\\\\u0001\"],\"c\":{},\"d\":[],\"e\":18446744073709551615,"
          "\"f\":[1],\"g\":null}");
  REQUIRE(round_trip(compact.str()) == compact.str());

  json::Writer pretty(json::Writer::Options{2, true});
  pretty.begin_object()
      .key("a")
      .begin_array()
      .number(1.5)
      .number(-std::numeric_limits<double>::infinity())
      .end_array();
  pretty.key("b").begin_object().end_object().end_object();
  REQUIRE(pretty.str() == "{\n  \"a\": [\n    1.5,\n    \"-Infinity\"\n  ],\n  \"b\": {}\n}");
}

TEST_CASE("json: the writer makes valid JSON of any bytes") {
  json::Writer writer;
  writer.string("a\xFF\xC3\x28\xED\xA0\x80\xF0\x9F\x98\x80\xC3");
  const auto document = must_parse(writer.str());
  REQUIRE(document.root.text.find("\xF0\x9F\x98\x80") != std::string::npos);
  REQUIRE(document.root.text.find('\xFF') == std::string::npos);
}

TEST_CASE("json: doubles print shortest and read back the same") {
  REQUIRE(json::format_double(0.1) == "0.1");
  REQUIRE(json::format_double(1e30) == "1e+30");
  REQUIRE(json::format_double(-0.0) == "-0");
  REQUIRE(json::format_double(std::numeric_limits<double>::infinity()) == "Infinity");
  for (const double v : {5e-324, 1.7976931348623157e308, 1.0 / 3, 123456789.125, 8192.0}) {
    const auto document = must_parse(json::format_double(v));
    REQUIRE(Cursor(document).as_double().value() == v);
  }
}
