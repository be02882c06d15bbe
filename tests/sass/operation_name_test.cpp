// Names with all modifiers, and widths of accesses, against nvdisasm: tests/fixtures/sass_names.csv.
#include "sass/fixtures.hpp"
#include "sass/modifiers.hpp"
#include "support/catch.hpp"

#include <ptxbench/sass.hpp>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

using namespace ptxbench;

namespace {

struct Sample {
  int sm = 0;
  std::string name;
  sass::Word word;
  std::uint32_t bytes = 0;
  std::string stem() const { return name.substr(0, name.find('.')); }
};

std::vector<Sample> samples() {
  std::ifstream in(fixtures() / "sass_names.csv");
  std::string line;
  std::getline(in, line);
  REQUIRE(line == "arch,name,low64,high64,bytes,source");
  std::vector<Sample> all;
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    std::string arch, name, low, high, bytes;
    std::getline(fields, arch, ',');
    std::getline(fields, name, ',');
    std::getline(fields, low, ',');
    std::getline(fields, high, ',');
    std::getline(fields, bytes, ',');
    all.push_back({std::stoi(arch.substr(3)),
                   name,
                   {std::stoull(low, nullptr, 16), std::stoull(high, nullptr, 16)},
                   static_cast<std::uint32_t>(std::stoul(bytes))});
  }
  return all;
}

// Whether all modifiers of the word's operation are decoded.
bool is_whole(const Sample& sample) {
  const auto* row = sass::find_row(sample.sm, sample.word);
  REQUIRE(row != nullptr);
  const auto fields = sass::modifier_fields(sample.sm, *row);
  return !fields.empty() && fields[0].whole;
}

// What differs between the decoder and the sample; empty where nothing does.
std::string difference(const Sample& sample) {
  const std::string name = sass::operation_name(sample.sm, sample.word);
  const std::string wanted = is_whole(sample) ? sample.name : sample.stem();
  if (name != wanted) return name + " instead of " + wanted;
  const auto bytes = sass::access_bytes(sample.sm, sample.word);
  if (bytes != sample.bytes)
    return std::to_string(bytes) + " bytes instead of " + std::to_string(sample.bytes) + ": " + sample.name;
  return {};
}

// A word with other bits in @p field.
sass::Word with_value(const sass::ModifierField& field, sass::Word word, std::uint32_t value) {
  for (std::size_t i = 0; i < field.bit_count; ++i) {
    std::uint64_t& half = field.bits[i] < 64 ? word.low : word.high;
    const std::uint64_t bit = std::uint64_t{1} << (field.bits[i] % 64);
    half = (value >> i & 1) != 0 ? half | bit : half & ~bit;
  }
  return word;
}

}  // namespace

TEST_CASE("Every sample is named with all its modifiers, and has the bytes that its name says") {
  const auto all = samples();
  REQUIRE(all.size() > 600);
  for (const auto& sample : all) {
    INFO("sm_" << sample.sm << " " << sample.name << std::hex << " " << sample.word.low << " "
               << sample.word.high);
    CHECK(difference(sample) == "");
  }
}

TEST_CASE("A sample whose name or word is another is reported") {
  std::size_t renamed = 0, changed = 0;
  for (auto sample : samples()) {
    if (!is_whole(sample)) continue;
    auto other = sample;
    other.name += ".X";
    CHECK(difference(other) != "");
    ++renamed;
    // Every other value of a field is another name, or an unknown modifier.
    for (const auto& field : sass::modifier_fields(sample.sm, *sass::find_row(sample.sm, sample.word))) {
      const auto value = sass::field_value(field, sample.word);
      for (std::uint32_t v = 0; v < 1u << field.bit_count; ++v) {
        if (sass::field_text(field, v) == sass::field_text(field, value)) continue;
        other = sample;
        other.word = with_value(field, sample.word, v);
        if (sass::find_row(other.sm, other.word) != sass::find_row(sample.sm, sample.word)) continue;
        // Fields share bits, so that two may change; the name does in any case.
        CHECK(sass::operation_name(other.sm, other.word) != sample.name);
        ++changed;
      }
    }
  }
  CHECK(renamed > 300);
  CHECK(changed > 1000);
}

TEST_CASE("Samples show every text of every field") {
  std::map<const sass::ModifierField*, std::set<std::string_view>> seen;
  for (const auto& sample : samples())
    for (const auto& field : sass::modifier_fields(sample.sm, *sass::find_row(sample.sm, sample.word)))
      seen[&field].insert(sass::field_text(field, sass::field_value(field, sample.word)));
  for (const auto& field : sass::modifier_fields())
    for (std::uint32_t value = 0; value < 1u << field.bit_count; ++value) {
      const auto text = sass::field_text(field, value);
      INFO(field.first_sm << " " << field.mnemonic << " " << text);
      if (text != "?") CHECK(seen[&field].count(text) == 1);
    }
}

TEST_CASE("A modifier that nvdisasm does not know is printed as its number, never dropped") {
  // A tile of six dimensions: bits 79 to 81.
  const sass::Word tile{0x00000000060075b4, 0x0003e20008011000};
  CHECK(sass::operation_name(90, tile) == "UTMALDG.3D");
  CHECK(sass::operation_name(90, {tile.low, tile.high | 0x28000}) == "UTMALDG.0x7");
  for (const auto& field : sass::modifier_fields()) {
    INFO(field.first_sm << " " << field.mnemonic);
    CHECK(sass::field_text(field, 1u << field.bit_count) == "?");
  }
}

TEST_CASE("Operations of other families are named by their mnemonic; unknown ones by their number") {
  CHECK(sass::operation_name(90, {0x0000000000007918, 0}) == "NOP");
  CHECK(sass::operation_name(90, {0x00000000000071ff, 0}) == "unknown:0x1ff");
  CHECK(sass::operation_name(50, {0x0000000000007918, 0}) == "unknown:0x118");
  CHECK(sass::access_bytes(90, {0x0000000000007918, 0}) == 0);
  CHECK(sass::access_bytes(90, {0x00000000000071ff, 0}) == 0);
}

TEST_CASE("Widths are read as nvdisasm spells them") {
  CHECK(sass::width_bytes("U8") == 1);
  CHECK(sass::width_bytes("S16") == 2);
  CHECK(sass::width_bytes("32") == 4);
  CHECK(sass::width_bytes("F16x2") == 4);
  CHECK(sass::width_bytes("BF16x2") == 4);
  CHECK(sass::width_bytes("F64") == 8);
  CHECK(sass::width_bytes("128") == 16);
  CHECK(sass::width_bytes("256") == 32);
  for (const char* none :
       {"", "LTC128B", "E", "3D", "U", "F16x", "F16x0", "12", "64x", "99999", "32.", "STRONG"}) {
    INFO(none);
    CHECK(sass::width_bytes(none) == 0);
  }
}

TEST_CASE("The compiled table is the one in modifiers.csv") {
  std::ifstream in(fixtures() / "../../src/sass/modifiers.csv");
  std::string line;
  std::getline(in, line);
  REQUIRE(line == "first_sm,last_sm,operation,mnemonic,whole,field,bits,texts");
  for (const auto& field : sass::modifier_fields()) {
    REQUIRE(std::getline(in, line));
    std::istringstream columns(line);
    std::string first, last, operation, mnemonic, whole, number, bits, texts;
    for (std::string* column : {&first, &last, &operation, &mnemonic, &whole, &number, &bits, &texts})
      std::getline(columns, *column, ',');
    INFO(line);
    CHECK(std::stoi(first) == field.first_sm);
    CHECK(std::stoi(last) == field.last_sm);
    CHECK(std::stoi(operation, nullptr, 16) == field.operation);
    CHECK(mnemonic == field.mnemonic);
    CHECK((whole == "1") == field.whole);
    CHECK(texts == field.texts);
    std::vector<int> places;
    std::istringstream runs(bits);
    for (std::string run; std::getline(runs, run, '+');) {
      const auto dash = run.find('-');
      const int from = std::stoi(run),
                to = dash == std::string::npos ? from : std::stoi(run.substr(dash + 1));
      for (int bit = from; bit <= to; ++bit) places.push_back(bit);
    }
    REQUIRE(places.size() == field.bit_count);
    for (std::size_t i = 0; i < places.size(); ++i) CHECK(places[i] == field.bits[i]);
  }
  CHECK(!std::getline(in, line));
}
