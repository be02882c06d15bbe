// Arithmetic and conversions against the card: for each instruction of tests/fixtures/arithmetic/sums.txt the
// sums of its results on 65,536 operands (a sample of them, all under [.slow]).
#include "emulator/convert_lanes.hpp"
#include "emulator/scalar_math.hpp"
#include "fixtures/arithmetic/operands.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace ptxbench::emulator;
using probe::u32;
using probe::u64;
using Lanes = std::array<u32, 32>;
using Lanes64 = std::array<u64, 32>;

struct Instruction {
  explicit Instruction(const std::string& text) : name(text) {
    std::istringstream stream(text);
    std::getline(stream, opcode, '.');
    for (std::string word; std::getline(stream, word, '.');) words.push_back(word);
  }
  bool has(const char* word) const { return std::find(words.begin(), words.end(), word) != words.end(); }
  const std::string& last(std::size_t back = 0) const { return words[words.size() - 1 - back]; }
  Rounding rounding() const {
    if (has("rz") || has("rzi")) return Rounding::zero;
    if (has("rm") || has("rmi")) return Rounding::down;
    if (has("rp") || has("rpi")) return Rounding::up;
    return has("rna") ? Rounding::nearest_away : Rounding::nearest_even;
  }
  std::string name, opcode;
  std::vector<std::string> words;
};

std::optional<FloatFormat> float_format(std::string word) {
  if (word.size() > 2 && word.ends_with("x2")) word.resize(word.size() - 2);
  constexpr const char* kNames[] = {"f16", "bf16", "tf32", "f32", "f64", "e4m3", "e5m2"};
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (word == kNames[i]) return static_cast<FloatFormat>(i);
  }
  return std::nullopt;
}
IntegerFormat integer_format(const std::string& word) {
  return {static_cast<unsigned>(std::atoi(word.c_str() + 1)), word[0] == 's'};
}
bool is_half_pair(const std::string& type) { return type == "f16x2" || type == "bf16x2"; }

probe::Kind kind_of(const Instruction& instruction) {
  const std::string type = instruction.has("pack") ? "s32" : instruction.last();
  const std::optional<FloatFormat> format = float_format(type);
  if (!format) return probe::Kind::integer;
  switch (*format) {
    case FloatFormat::f16:
      return probe::Kind::f16;
    case FloatFormat::bf16:
      return probe::Kind::bf16;
    case FloatFormat::e4m3:
    case FloatFormat::e5m2:
      return probe::Kind::f8;
    case FloatFormat::f64:
      return probe::Kind::f64;
    default:
      return probe::Kind::f32;
  }
}

// Bits of the register that holds the result on the card.
unsigned result_bits(const Instruction& instruction) {
  if (instruction.opcode == "testp" || instruction.has("pack")) return 32;
  const std::string& type = instruction.opcode == "cvt" ? instruction.last(1) : instruction.last();
  if (type == "f64" || type == "s64" || type == "u64") return 64;
  const std::string& source = instruction.last();
  if (type == "f16" || type == "bf16" || type == "e4m3x2" || type == "e5m2x2" ||
      ((type == "s16" || type == "u16") && source == "bf16")) {
    return 16;
  }
  return 32;
}

u64 convert(const Instruction& in, u64 a, u64 b, u64 c) {
  const u32 a32 = static_cast<u32>(a), b32 = static_cast<u32>(b);
  if (in.has("pack")) {
    const bool third = in.last() == "b32";
    return pack_saturated(integer_format(in.words[2]), {32, true}, a32, b32, third ? static_cast<u32>(c) : 0);
  }
  const std::string &to = in.last(1), &from = in.last();
  const std::optional<FloatFormat> to_float = float_format(to), from_float = float_format(from);
  const ConvertMode mode{in.rounding(), in.has("ftz"), in.has("sat"), in.has("satfinite"), in.has("relu")};
  if (to_float && from_float) {
    if (is_half_pair(to) && from == "f32") {
      return pair_from_f32(*to_float, a32, b32, mode);
    }
    if (to == from && to != "tf32" && (in.words[0].size() == 3 && in.words[0][2] == 'i')) {
      return round_to_integral(*to_float, a, mode.rounding, mode.ftz, mode.sat);
    }
    return convert_float(*to_float, *from_float, a, mode);
  }
  if (from_float) return integer_from_float(integer_format(to), *from_float, a, mode.rounding, mode.ftz);
  if (to_float) return float_from_integer(*to_float, integer_format(from), a, mode.rounding, mode.sat);
  return integer_from_integer(integer_format(to), integer_format(from), a, mode.sat);
}

// Conversions that have a form of all lanes at once, which is the one that kernels run.
bool convert_lanes(const Instruction& in, Lanes64& out, const Lanes64& wide, const Lanes& a, const Lanes& b) {
  if (in.has("pack") || in.has("sat")) return false;
  const std::string &to = in.last(1), &from = in.last();
  const ConvertMode mode{in.rounding(), in.has("ftz"), false, in.has("satfinite"), in.has("relu")};
  const bool integral = in.words[0].size() == 3 && in.words[0][2] == 'i';
  const bool nearest = mode.rounding == Rounding::nearest_even && !integral;
  const bool plain = !mode.satfinite && !mode.relu;
  Lanes d{};
  const auto is = [&](const char* t, const char* f) { return to == t && from == f; };
  if (is("f64", "f32") && !integral) return f64_from_f32(out.data(), a.data(), mode.ftz), true;
  if (is("f32", "f64") && nearest && !mode.ftz) {
    f32_from_f64(d.data(), wide.data());
  } else if (is("tf32", "f32")) {
    tf32_from_f32(d.data(), a.data(), mode);
  } else if (is_half_pair(to) && from == "f32" && nearest && plain) {
    (to == "f16x2" ? f16x2_from_f32 : bf16x2_from_f32)(d.data(), a.data(), b.data());
  } else if (is_half_pair(to) && from == "f32" && nearest) {
    pairs_from_f32(*float_format(to), d.data(), a.data(), b.data(), mode.relu, mode.satfinite);
  } else if (to == "f16x2" && from.ends_with("x2")) {
    f16x2_from_f8x2(*float_format(from), d.data(), a.data(), mode.relu);
  } else if (to.ends_with("x2") && from == "f32" && !is_half_pair(to)) {
    f8x2_from_f32(*float_format(to), d.data(), a.data(), b.data(), mode.relu);
  } else if (to.ends_with("x2") && from == "f16x2") {
    f8x2_from_f16x2(*float_format(to), d.data(), a.data(), mode.relu);
  } else if (is("f16", "f32") && nearest && plain) {
    f16_from_f32(d.data(), a.data());
  } else if (is("bf16", "f32") && nearest && plain) {
    bf16_from_f32(d.data(), a.data());
  } else if (is("f32", "f16")) {
    f32_from_f16(d.data(), a.data());
  } else if (is("f32", "bf16") && !mode.ftz) {
    f32_from_bf16(d.data(), a.data());
  } else if (is("f32", "f32") && integral) {
    integral_f32(d.data(), a.data(), mode.rounding, mode.ftz);
  } else if (is("u32", "f32")) {
    u32_from_f32(d.data(), a.data(), mode.rounding, mode.ftz);
  } else if (from == "f32" && !float_format(to) && integer_format(to).bits <= 32) {
    const IntegerFormat format = integer_format(to);
    const std::int64_t top = std::int64_t{1} << (format.bits - 1);
    s32_from_f32(d.data(), a.data(), mode.rounding, mode.ftz,
                 static_cast<std::int32_t>(format.is_signed ? -top : 0),
                 static_cast<std::int32_t>(format.is_signed ? top - 1 : 2 * top - 1));
  } else {
    return false;
  }
  std::copy(d.begin(), d.end(), out.begin());
  return true;
}

bool arithmetic_f32(const Instruction& in, u32* d, const u32* a, const u32* b, const u32* c) {
  const FloatMode mode{in.rounding(), in.has("ftz"), in.has("sat")};
  const MinMaxMode extremes{in.has("ftz"), in.has("NaN"), in.has("xorsign")};
  const std::string& op = in.opcode;
  if (op == "add") return add_f32(d, a, b, mode), true;
  if (op == "sub") return sub_f32(d, a, b, mode), true;
  if (op == "mul") return mul_f32(d, a, b, mode), true;
  if (op == "fma") return fma_f32(d, a, b, c, mode), true;
  if (op == "div") return div_f32(d, a, b, mode), true;
  if (op == "rcp") return rcp_f32(d, a, mode), true;
  if (op == "sqrt") return sqrt_f32(d, a, mode), true;
  if (op == "min") return min_f32(d, a, b, extremes), true;
  if (op == "max") return max_f32(d, a, b, extremes), true;
  for (int i = 0; i < 32; ++i) {
    if (op == "abs")
      d[i] = abs_f32(a[i], mode.ftz);
    else if (op == "neg")
      d[i] = neg_f32(a[i], mode.ftz);
    else if (op == "copysign")
      d[i] = copysign_f32(a[i], b[i]);
    else
      return false;
  }
  return true;
}

bool arithmetic_half(const Instruction& in, u32* d, const u32* a, const u32* b, const u32* c) {
  const HalfMode mode{in.has("ftz"), in.has("sat"), in.has("relu")};
  const MinMaxMode extremes{in.has("ftz"), in.has("NaN"), in.has("xorsign")};
  const std::string& op = in.opcode;
  const bool f16 = in.last().starts_with("f16");
  if (op == "add") return (f16 ? add_f16x2 : add_bf16x2)(d, a, b, mode), true;
  if (op == "sub") return (f16 ? sub_f16x2 : sub_bf16x2)(d, a, b, mode), true;
  if (op == "mul") return (f16 ? mul_f16x2 : mul_bf16x2)(d, a, b, mode), true;
  if (op == "fma") return (f16 ? fma_f16x2 : fma_bf16x2)(d, a, b, c, mode), true;
  if (op == "min") return (f16 ? min_f16x2 : min_bf16x2)(d, a, b, extremes), true;
  if (op == "max") return (f16 ? max_f16x2 : max_bf16x2)(d, a, b, extremes), true;
  for (int i = 0; i < 32; ++i) {
    if (op == "abs")
      d[i] = f16 ? abs_f16x2(a[i], mode.ftz) : abs_bf16x2(a[i]);
    else if (op == "neg")
      d[i] = f16 ? neg_f16x2(a[i], mode.ftz) : neg_bf16x2(a[i]);
    else
      return false;
  }
  return true;
}

bool arithmetic_f64(const Instruction& in, u64* d, const u64* a, const u64* b, const u64* c) {
  const std::string& op = in.opcode;
  const Rounding rounding = in.rounding();
  if (op == "add") return add_f64(d, a, b, rounding), true;
  if (op == "sub") return sub_f64(d, a, b, rounding), true;
  if (op == "mul") return mul_f64(d, a, b, rounding), true;
  if (op == "fma") return fma_f64(d, a, b, c, rounding), true;
  if (op == "div") return div_f64(d, a, b, rounding), true;
  if (op == "rcp") return rcp_f64(d, a, rounding), true;
  if (op == "sqrt") return sqrt_f64(d, a, rounding), true;
  if (op == "min") return min_f64(d, a, b), true;
  if (op == "max") return max_f64(d, a, b), true;
  for (int i = 0; i < 32; ++i) {
    if (op == "abs")
      d[i] = abs_f64(a[i]);
    else if (op == "neg")
      d[i] = neg_f64(a[i]);
    else if (op == "copysign")
      d[i] = copysign_f64(a[i], b[i]);
    else
      return false;
  }
  return true;
}

bool tests(const Instruction& in, u64* d, const Lanes64& a) {
  constexpr const char* kNames[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  for (std::size_t t = 0; t < std::size(kNames); ++t) {
    if (in.words[0] != kNames[t]) continue;
    const FloatTest test = static_cast<FloatTest>(t);
    for (int i = 0; i < 32; ++i) {
      d[i] = in.last() == "f64" ? test_f64(test, a[i]) : test_f32(test, static_cast<u32>(a[i]));
    }
    return true;
  }
  return false;
}

bool run(const Instruction& in, Lanes64& d, const Lanes64& a, const Lanes64& b, const Lanes64& c) {
  if (in.opcode == "cvt") {
    Lanes low, second;
    for (std::size_t i = 0; i < 32; ++i) low[i] = static_cast<u32>(a[i]), second[i] = static_cast<u32>(b[i]);
    if (convert_lanes(in, d, a, low, second)) return true;
    for (std::size_t i = 0; i < 32; ++i) d[i] = convert(in, a[i], b[i], c[i]);
    return true;
  }
  if (in.opcode == "testp") return tests(in, d.data(), a);
  const std::string& type = in.last();
  if (type == "f64") return arithmetic_f64(in, d.data(), a.data(), b.data(), c.data());
  const u32 mask = type == "f16" || type == "bf16" ? 0xffff : 0xffffffff;
  Lanes x, y, z, out{};
  for (std::size_t i = 0; i < 32; ++i) {
    x[i] = static_cast<u32>(a[i]) & mask, y[i] = static_cast<u32>(b[i]) & mask,
    z[i] = static_cast<u32>(c[i]) & mask;
  }
  const bool known = type == "f32" ? arithmetic_f32(in, out.data(), x.data(), y.data(), z.data())
                                   : arithmetic_half(in, out.data(), x.data(), y.data(), z.data());
  for (std::size_t i = 0; i < 32; ++i) d[i] = out[i];
  return known;
}

// Of one block; empty where the instruction is not known here.
std::vector<u64> results(const Instruction& instruction, u32 block) {
  const probe::Kind kind = kind_of(instruction);
  const unsigned bits = result_bits(instruction);
  std::vector<u64> out;
  Lanes64 a, b, c, d;
  for (u32 i = block; i < block + probe::kBlock; i += 32) {
    for (u32 lane = 0; lane < 32; ++lane) {
      const probe::Operands o = probe::operands(kind, i + lane);
      a[lane] = o.a, b[lane] = o.b, c[lane] = o.c;
    }
    if (!run(instruction, d, a, b, c)) return {};
    for (u64 v : d) out.push_back(bits == 64 ? v : v & ((u64{1} << bits) - 1));
  }
  return out;
}

// Where the card's results lie beside the sums (the probe's second output), what differs first.
std::string differences(const Instruction& instruction, const std::vector<u64>& ours, std::size_t number,
                        u32 block) {
  const char* path = std::getenv("PTXBENCH_PROBE_RESULTS");
  if (path == nullptr || block >= 16384) return "";
  std::ifstream file(path, std::ios::binary);
  std::vector<u64> card(ours.size());
  file.seekg(static_cast<std::streamoff>((number * 16384 + block) * sizeof(u64)));
  file.read(reinterpret_cast<char*>(card.data()), static_cast<std::streamsize>(card.size() * sizeof(u64)));
  std::ostringstream out;
  out << std::hex;
  int count = 0;
  for (u32 i = 0; i < card.size(); ++i) {
    if (card[i] == ours[i] || count++ >= 6) continue;
    const probe::Operands o = probe::operands(kind_of(instruction), block + i);
    out << "\n  a " << o.a << " b " << o.b << " c " << o.c << ": card " << card[i] << ", here " << ours[i];
  }
  out << std::dec << "\n  " << count << " of " << card.size();
  return out.str();
}

// All blocks, or of each instruction some that differ from one to the next, and two with half NaN.
void check_all(bool every_block) {
  std::ifstream file(PTXBENCH_SOURCE_DIR "/tests/fixtures/arithmetic/sums.txt");
  u32 number = 0;
  for (std::string line; std::getline(file, line); ++number) {
    std::istringstream words(line);
    std::string name;
    words >> name >> std::hex;
    const Instruction instruction(name);
    int wrong = 0;
    std::string first;
    for (u32 block = 0; block < 16; ++block) {
      u32 sum = 0, card = 0;
      REQUIRE(words >> card);
      if (!every_block && block != number % 16 && block != 7 && block != 15) continue;
      const std::vector<u64> ours = results(instruction, block * probe::kBlock);
      REQUIRE((ours.size() == probe::kBlock));
      for (u32 i = 0; i < probe::kBlock; ++i) sum += probe::term(block * probe::kBlock + i, ours[i]);
      if (sum == card) continue;
      ++wrong;
      if (first.empty()) first = differences(instruction, ours, number, block * probe::kBlock);
    }
    if (wrong != 0) FAIL_CHECK(name << ": " << wrong << " blocks differ" << first);
  }
  CHECK(number >= 500);
}

}  // namespace

TEST_CASE("arithmetic and conversions have the card's bits") { check_all(false); }

TEST_CASE("arithmetic and conversions have the card's bits on all operands", "[.slow]") { check_all(true); }
