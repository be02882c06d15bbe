// Each mistake is made to a right output, and must be recognised; a wrong output without a pattern must not be.
#include "verify/diagnose.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

using namespace ptxbench;

namespace {

struct Case {
  std::uint64_t m = 96, n = 80, k = 256;
  std::vector<double> a, b, expected, got;
  explicit Case(std::uint64_t m_ = 96, std::uint64_t n_ = 80, std::uint64_t k_ = 256) : m(m_), n(n_), k(k_) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    a.resize(m * k), b.resize(n * k);
    for (double& v : a) v = normal(random);
    for (double& v : b) v = normal(random);
    expected.resize(m * n);
    for (std::uint64_t r = 0; r < m; ++r)
      for (std::uint64_t c = 0; c < n; ++c) expected[r * n + c] = partial(r, c, 0, 0, k);
    got = expected;
  }
  double partial(std::uint64_t r, std::uint64_t c, std::uint64_t ka, std::uint64_t kb, std::uint64_t count) const {
    double sum = 0;
    for (std::uint64_t i = 0; i < count; ++i) sum += a[r * k + ka + i] * b[c * k + kb + i];
    return sum;
  }
  void make(const std::function<double(std::uint64_t, std::uint64_t)>& f) {
    for (std::uint64_t r = 0; r < m; ++r)
      for (std::uint64_t c = 0; c < n; ++c) got[r * n + c] = f(r, c);
  }
  double at(std::uint64_t r, std::uint64_t c) const { return expected[r % m * n + c % n]; }
  DiagnosisInput input(bool gemm = true) const {
    DiagnosisInput in;
    in.output = "C";
    in.shape = {1, m, n};
    in.got = got;
    in.expected = expected;
    in.allowed = {0.25, 0};
    if (gemm) {
      in.k = k;
      in.partial = [this](std::uint64_t r, std::uint64_t c, std::uint64_t ka, std::uint64_t kb, std::uint64_t count) {
        return partial(r, c, ka, kb, count);
      };
    }
    return in;
  }
};

std::string pattern(const DiagnosisInput& in) {
  for (const Finding& f : recognise(in))
    if (f.code == "wrong_pattern") {
      INFO(f.message);
      const std::string key = "\"pattern\":\"";
      const std::size_t from = f.evidence.find(key) + key.size();
      return f.evidence.substr(from, f.evidence.find('"', from) - from);
    }
  return {};
}
std::string message(const DiagnosisInput& in, const std::string& code) {
  for (const Finding& f : recognise(in))
    if (f.code == code) return f.message;
  return {};
}

}  // namespace

TEST_CASE("a right output and one of noise show no pattern", "[unit]") {
  Case c;
  CHECK(recognise(c.input()).empty());
  std::mt19937_64 random(9);
  std::normal_distribution<double> normal(0, 16);
  c.make([&](auto, auto) { return normal(random); });
  CHECK(pattern(c.input()).empty());
}

TEST_CASE("mistakes of values are recognised", "[unit]") {
  Case c;
  c.make([](auto, auto) { return 0.0; });
  CHECK(pattern(c.input()) == "zeros");
  c.make([](auto, auto) { return 3.5; });
  CHECK(pattern(c.input()) == "constant");
  c.make([](auto, auto) { return std::nan(""); });
  CHECK(pattern(c.input()) == "nan");
  c.make([&](auto r, auto col) { return c.at(r, col) * 1.4426950408889634; });
  CHECK(pattern(c.input()) == "scale");
  CHECK(message(c.input(), "wrong_pattern").find("log2(e)") != std::string::npos);
  c.make([&](auto r, auto col) { return c.at(r, col) / std::sqrt(128.0); });
  CHECK(message(c.input(), "wrong_pattern").find("1 / sqrt(128)") != std::string::npos);
  c.make([&](auto r, auto col) { return c.at(r, col) + 5; });
  CHECK(pattern(c.input()) == "offset");
}

TEST_CASE("elements in wrong places are recognised", "[unit]") {
  Case c;
  c.make([&](auto r, auto col) {
    const std::uint64_t flat = r * c.n + col;  // C^T written to C's memory
    return c.expected[flat % c.m * c.n + flat / c.m];
  });
  CHECK(pattern(c.input()) == "transposed");
  c.make([&](auto r, auto col) { return r + 4 < c.m ? c.at(r + 4, col) : 0; });
  CHECK(pattern(c.input()) == "shifted");
  CHECK(message(c.input(), "wrong_pattern").find("4 rows below") != std::string::npos);
  // mma.sync accumulators with registers 1 and 2 exchanged: 8 rows below against one column beside.
  c.make([&](auto r, auto col) {
    if (r % 16 < 8 && col % 2 == 1) return c.at(r + 8, col - 1);
    if (r % 16 >= 8 && col % 2 == 0) return c.at(r - 8, col + 1);
    return c.at(r, col);
  });
  CHECK(pattern(c.input()) == "exchanged");
  c.make([&](auto r, auto col) { return c.at((r * 37 + 11) % c.m, col); });
  CHECK(pattern(c.input()) == "rows_permuted");
  c.make([&](auto r, auto col) { return c.at(r, (col * 27 + 5) % c.n); });
  CHECK(pattern(c.input()) == "columns_permuted");
}

TEST_CASE("mistakes along the sum are recognised", "[unit]") {
  Case c;
  const auto part = [&](auto r, auto col, std::uint64_t from, std::uint64_t to) { return c.partial(r, col, from, from, to - from); };
  c.make([&](auto r, auto col) { return part(r, col, 0, 192); });
  CHECK(pattern(c.input()) == "k_tail");
  CHECK(message(c.input(), "wrong_pattern").find("k = 192..255") != std::string::npos);
  CHECK(pattern(c.input(false)).empty());
  c.make([&](auto r, auto col) { return part(r, col, 64, 256); });
  CHECK(pattern(c.input()) == "k_head");
  c.make([&](auto r, auto col) { return c.at(r, col) - part(r, col, 64, 128); });
  CHECK(pattern(c.input()) == "k_lost");
  c.make([&](auto r, auto col) { return c.at(r, col) + part(r, col, 64, 128); });
  CHECK(pattern(c.input()) == "k_doubled");
  c.make([&](auto r, auto col) { return part(r, col, 224, 256); });
  CHECK(pattern(c.input()) == "one_chunk");
  c.make([&](auto r, auto col) { return c.at(r, col) - part(r, col, 192, 256) + part(r, col, 64, 128); });
  CHECK(pattern(c.input()) == "stale_stage");
  CHECK(message(c.input(), "wrong_pattern").find("k = 64..127 stand in the place of those of k = 192..255") != std::string::npos);
  c.make([&](auto r, auto col) {
    double sum = 0;
    for (std::uint64_t i = 0; i < 8; ++i) sum += c.partial(r, col, i * 32, (i ^ 1) * 32, 32);
    return sum;
  });
  CHECK(pattern(c.input()) == "chunks_swapped");
}

TEST_CASE("a mistake whose values were computed is recognised where they explain what stands there", "[unit]") {
  Case c;
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal(0, 16);
  std::vector<float> mistaken(c.expected.size()), another(c.expected.size());
  for (float& v : mistaken) v = static_cast<float>(normal(random));
  for (float& v : another) v = static_cast<float>(normal(random));
  const auto input = [&] {
    DiagnosisInput in = c.input();
    in.alternatives = {{"another", "another", 0, another}, {"this_one", "it is this", 0, mistaken}};
    return in;
  };
  const auto rounded = [&](auto r, auto col) { return mistaken[r * c.n + col] * 1.003; };
  c.make(rounded);
  CHECK(pattern(input()) == "this_one");
  CHECK(message(input(), "wrong_pattern").find("it is this (this explains 100%") != std::string::npos);
  // Of some of the rows, and with places that have no value.
  DiagnosisInput some = input();
  some.alternatives[1].first = 10 * c.n;
  some.alternatives[1].values = std::span<const float>(mistaken).subspan(10 * c.n, 20 * c.n);
  std::fill_n(mistaken.begin() + static_cast<std::ptrdiff_t>(10 * c.n), c.n, NAN);
  CHECK(pattern(some) == "this_one");
  std::fill_n(mistaken.begin() + static_cast<std::ptrdiff_t>(10 * c.n), 15 * c.n, NAN);  // too many
  CHECK(pattern(some).empty());

  // What is near to both the mistake's values and what is expected is no proof of the mistake.
  for (std::size_t i = 0; i < mistaken.size(); ++i) mistaken[i] = static_cast<float>(c.expected[i] + 0.1 * normal(random) / 16);
  c.make([&](auto r, auto col) { return c.at(r, col) + (normal(random) > 0 ? 0.3 : -0.3); });
  CHECK(pattern(input()).empty());
  c.make([&](auto r, auto col) { return c.at(r, col) + normal(random); });
  CHECK(pattern(input()).empty());
}

TEST_CASE("where the wrong elements lie is said", "[unit]") {
  Case c(200, 80, 32);
  c.make([&](auto r, auto col) { return r >= 192 ? 0 : c.at(r, col); });
  CHECK(pattern(c.input()) == "zeros");
  CHECK(message(c.input(), "wrong_region").find("rows 192 to 199 (the last)") != std::string::npos);
  DiagnosisInput in = c.input();
  in.first_row = 1000;
  CHECK(message(in, "wrong_region").find("rows 1192 to 1199") != std::string::npos);

  const TileGrid grid = tile_grid({1, 200, 80});
  CHECK((grid.tile_rows == 16 && grid.grid_rows() == 13 && grid.grid_columns() == 5));
  std::vector<std::uint32_t> wrong(65, 0);
  wrong[60] = 8 * 16, wrong[61] = 3;
  const Finding tiles = describe_tiles("C", grid, wrong);
  CHECK(tiles.message.find("of 65 tiles of 16x16 2 hold wrong elements, 1 are wrong throughout") != std::string::npos);
  CHECK(tiles.evidence.find("\"#+...\"]") != std::string::npos);
  const TileGrid large = tile_grid({192, 4096, 128});
  CHECK((large.grid_rows() <= 64 && large.grid_columns() == 8 && large.tile_rows == 16384));
}

TEST_CASE("the elements that are furthest off are listed, with the index that the output has", "[unit]") {
  Case c(8, 8, 32);
  c.got[9] += 100;
  c.got[3] = std::nan("");
  DiagnosisInput in = c.input();
  in.first_matrix = 2;
  const Finding worst = describe_worst(in, {2, 2, 8, 8}, 2);
  CHECK(worst.message.find("[1, 0, 0, 3]: expected") != std::string::npos);
  CHECK(worst.message.find("[1, 0, 1, 1]: expected") != std::string::npos);
  CHECK(worst.message.find("got nan") != std::string::npos);
}

TEST_CASE("an output's last two dimensions are its matrices", "[unit]") {
  const MatrixStack s = matrix_stack({4, 48, 512, 128});
  CHECK((s.matrices == 192 && s.rows == 512 && s.columns == 128));
  CHECK(matrix_stack({7}).columns == 7);
  CHECK(matrix_stack({}).elements() == 1);
}
