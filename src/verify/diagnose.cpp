#include "verify/diagnose.hpp"

#include "core/json.hpp"
#include "verify/judge/judge.h"
#include "verify/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <span>

namespace ptxbench {
namespace {

constexpr double kExplains = 0.9;      // of the wrong elements, to be named
constexpr double kMostChance = 0.3;    // of places that agree by chance, for a hypothesis about places to mean anything
constexpr std::size_t kSamples = 512;  // wrong elements that hypotheses are tried on
constexpr std::size_t kSamplesOfAlternatives = 4096, kLeastOfAlternatives = 8;
constexpr int kNear = 16;              // rows and columns around a place
constexpr std::size_t kMostShifts = 4;
constexpr std::uint64_t kSide = 64;  // tiles of a map

std::string percent(double fraction) {
  char text[16];
  std::snprintf(text, sizeof text, "%.0f%%", 100 * fraction);
  return text;
}

struct Place {
  std::uint64_t matrix = 0, row = 0, column = 0;
};

// A mistake, and the share of the wrong elements that it explains.
struct Hypothesis {
  std::string pattern, message;
  double explains = 0;
};

class Recogniser {
 public:
  explicit Recogniser(const DiagnosisInput& input) : in_(input) {
    const std::uint64_t n = in_.shape.elements();
    for (std::uint64_t i = 0; i < n; ++i)
      if (!allowed(in_.got[i], in_.expected[i])) wrong_.push_back(i);
    if (wrong_.empty()) return;
    first_row_ = rows() * in_.shape.matrices;
    first_column_ = in_.shape.columns;
    for (const std::uint64_t i : wrong_) {
      first_row_ = std::min(first_row_, i / in_.shape.columns);
      last_row_ = std::max(last_row_, i / in_.shape.columns);
      first_column_ = std::min(first_column_, i % in_.shape.columns);
      last_column_ = std::max(last_column_, i % in_.shape.columns);
    }
    std::uint64_t state = 0x9e3779b97f4a7c15ull;
    sample_ = spread(wrong_, kSamples, state);
    std::size_t by_chance = 0;
    for (const std::uint64_t i : sample_) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      by_chance += agrees(i, in_.expected[(state >> 20) % n]) ? 1 : 0;
    }
    chance_ = static_cast<double>(by_chance) / static_cast<double>(sample_.size());
  }

  std::vector<Finding> findings() const {
    std::vector<Finding> found;
    if (wrong_.empty()) return found;
    // The simplest that explains enough.
    std::optional<Hypothesis> h = constant();
    if (!h) h = alternative();  // strict, where a factor that many a mistake comes near to is not
    if (!h) h = scaled();
    if (!h) h = offset();
    if (chance_ <= kMostChance) {
      if (!h) h = transposed();
      if (!h) h = shifted();
      if (!h) h = moved_lines(true);
      if (!h) h = moved_lines(false);
    }
    if (!h) h = chunks();
    if (h) {
      json::Writer w;
      w.begin_object().field("output", in_.output).field("pattern", h->pattern).field("explains", h->explains);
      w.end_object();
      found.push_back({"wrong_pattern", Severity::note,
                       "output " + in_.output + ": " + h->message + " (this explains " + percent(h->explains) +
                           " of the wrong elements looked at)",
                       std::move(w).str()});
    }
    if (std::optional<Finding> r = region()) found.push_back(std::move(*r));
    return found;
  }

 private:
  // At most @p most, spread over all of them, and not in step with any tile.
  static std::vector<std::uint64_t> spread(std::span<const std::uint64_t> all, std::size_t most, std::uint64_t& state) {
    std::vector<std::uint64_t> sample;
    const std::size_t samples = std::min(most, all.size());
    for (std::size_t s = 0; s < samples; ++s) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      const std::size_t from = all.size() * s / samples, to = all.size() * (s + 1) / samples;
      sample.push_back(all[from + (state >> 33) % std::max<std::size_t>(1, to - from)]);
    }
    return sample;
  }

  std::uint64_t rows() const { return in_.shape.rows; }
  std::uint64_t columns() const { return in_.shape.columns; }
  Place place(std::uint64_t i) const {
    return {i / columns() / rows(), i / columns() % rows(), i % columns()};
  }
  std::uint64_t index(const Place& p) const { return (p.matrix * rows() + p.row) * columns() + p.column; }

  bool allowed(double got, double expected) const {
    return !judge::element_wrong(got, expected, in_.allowed.atol, in_.allowed.rtol, in_.allowed.largest);
  }
  // Whether what stands at i is what a hypothesis says.
  bool agrees(std::uint64_t i, double value) const {
    return std::isfinite(value) && std::isfinite(in_.got[i]) && allowed(in_.got[i], value);
  }
  template <class F>
  double share(F&& explained) const {
    std::size_t n = 0;
    for (const std::uint64_t i : sample_) n += explained(i) ? 1 : 0;
    return static_cast<double>(n) / static_cast<double>(sample_.size());
  }

  std::optional<Hypothesis> constant() const {
    std::vector<double> values;
    for (const std::uint64_t i : sample_) values.push_back(in_.got[i]);
    std::size_t nans = 0;
    for (const double v : values) nans += std::isnan(v) ? 1 : 0;
    const double all = static_cast<double>(values.size());
    if (static_cast<double>(nans) >= kExplains * all)
      return Hypothesis{"nan", "NaN stands where a number is due", static_cast<double>(nans) / all};
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end(),
                     [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; });
    const double middle = values[values.size() / 2];
    const double same = share([&](std::uint64_t i) { return in_.got[i] == middle; });
    if (same < kExplains || sample_.size() < 8) return {};
    if (middle == 0) return Hypothesis{"zeros", "zeros stand where other values are due", same};
    return Hypothesis{"constant", number_text(middle) + " stands everywhere, whatever the inputs", same};
  }

  // Factors that tell where a scale was forgotten or taken twice.
  static std::string factor_name(double s) {
    struct Known {
      double value;
      const char* name;
    };
    static constexpr Known known[] = {{-1, "the sign is wrong"},
                                      {2, "counted twice"},
                                      {0.5, "halved"},
                                      {1.4426950408889634, "log2(e): a logarithm or exponential to base 2 for one to base e"},
                                      {0.6931471805599453, "ln(2): one to base e for one to base 2"}};
    for (const Known& k : known)
      if (std::abs(s / k.value - 1) < 2e-3) return std::string(", ") + k.name;
    for (const int d : {64, 96, 128, 256}) {
      const double root = std::sqrt(static_cast<double>(d));
      for (const auto& [value, name] : {std::pair<double, std::string>{root, "sqrt(" + std::to_string(d) + ")"},
                                        {1 / root, "1 / sqrt(" + std::to_string(d) + ")"}})
        if (std::abs(s / value - 1) < 2e-3) return ", " + name;
    }
    return {};
  }
  std::optional<Hypothesis> scaled() const {
    std::vector<double> ratios;
    for (const std::uint64_t i : sample_)
      if (std::isfinite(in_.got[i]) && std::isfinite(in_.expected[i]) && in_.expected[i] != 0)
        ratios.push_back(in_.got[i] / in_.expected[i]);
    if (ratios.size() < 8) return {};
    std::nth_element(ratios.begin(), ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2), ratios.end());
    const double s = ratios[ratios.size() / 2];
    if (s == 0 || !std::isfinite(s)) return {};
    const double explains = share([&](std::uint64_t i) {
      const double expected = s * in_.expected[i];
      return std::isfinite(in_.got[i]) &&
             std::abs(in_.got[i] - expected) <= std::max(1.0, std::abs(s)) * in_.allowed.atol + 0.01 * std::abs(expected);
    });
    // A mixture of elements far apart and near zero has a median too: what is explained must be off without the factor.
    if (explains < kExplains || std::abs(s - 1) < 1e-3) return {};
    return Hypothesis{"scale", "each is " + number_text(s) + " times what it should be" + factor_name(s), explains};
  }
  std::optional<Hypothesis> offset() const {
    std::vector<double> differences;
    for (const std::uint64_t i : sample_)
      if (std::isfinite(in_.got[i]) && std::isfinite(in_.expected[i]))
        differences.push_back(in_.got[i] - in_.expected[i]);
    if (differences.size() < 8) return {};
    std::nth_element(differences.begin(), differences.begin() + static_cast<std::ptrdiff_t>(differences.size() / 2),
                     differences.end());
    const double d = differences[differences.size() / 2];
    const double explains = share([&](std::uint64_t i) { return agrees(i, in_.expected[i] + d); });
    if (explains < kExplains || std::abs(d) <= 2 * in_.allowed.atol) return {};
    return Hypothesis{"offset", "each is off by " + number_text(d), explains};
  }

  // A mistake whose values were computed. What stands there is one rounding or two from them, and is much nearer to them than
  // to what is expected: where the mistake changes little, an error of another kind would else pass for it.
  std::optional<Hypothesis> alternative() const {
    constexpr double kRoundings = 4, kNearer = 0.25;
    const Alternative* best = nullptr;
    double most = 0;
    std::uint64_t state = 1;
    for (const Alternative& a : in_.alternatives) {
      const auto from = std::lower_bound(wrong_.begin(), wrong_.end(), a.first),
                 to = std::lower_bound(from, wrong_.end(), a.first + a.values.size());
      std::size_t numbers = 0, explained = 0;
      const std::vector<std::uint64_t> looked = spread({from, to}, kSamplesOfAlternatives, state);
      for (const std::uint64_t i : looked) {
        const double value = a.values[i - a.first], off = std::abs(in_.got[i] - value);
        if (!std::isfinite(value)) continue;
        ++numbers;
        explained += off <= kNearer * std::abs(in_.got[i] - in_.expected[i]) &&
                             off <= std::abs(in_.allowed.atol) + kRoundings * in_.rounding * std::abs(value)
                         ? 1
                         : 0;
      }
      if (numbers < kLeastOfAlternatives || 2 * numbers < looked.size()) continue;
      const double explains = static_cast<double>(explained) / static_cast<double>(numbers);
      if (explains > most) most = explains, best = &a;
    }
    if (best == nullptr || most < kExplains) return {};
    return Hypothesis{best->pattern, best->message, most};
  }

  std::optional<Hypothesis> transposed() const {
    // As a matrix of the other shape: element [r, c] of the transposed one lies at c * rows + r.
    if (rows() < 2 || columns() < 2) return {};
    const double explains = share([&](std::uint64_t i) {
      const Place p = place(i);
      const std::uint64_t within = p.row * columns() + p.column;
      return agrees(i, in_.expected[p.matrix * rows() * columns() + within % rows() * columns() + within / rows()]);
    });
    if (explains < kExplains) return {};
    return Hypothesis{"transposed", "the matrix stands there transposed", explains};
  }

  struct Shift {
    std::int64_t matrix = 0, row = 0, column = 0;
  };
  bool explained_by(std::uint64_t i, const Shift& s) const {
    const Place p = place(i);
    const auto inside = [](std::uint64_t at, std::int64_t by, std::uint64_t extent) {
      return by < 0 ? at >= static_cast<std::uint64_t>(-by) : at + static_cast<std::uint64_t>(by) < extent;
    };
    if (!inside(p.matrix, s.matrix, in_.shape.matrices) || !inside(p.row, s.row, rows()) ||
        !inside(p.column, s.column, columns()))
      return false;
    const auto moved = [](std::uint64_t at, std::int64_t by) {
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(at) + by);
    };
    return agrees(i, in_.expected[index({moved(p.matrix, s.matrix), moved(p.row, s.row), moved(p.column, s.column)})]);
  }
  static std::string shift_text(const Shift& s) {
    std::string text;
    const auto part = [&](std::int64_t by, const char* one, const char* back, const char* on) {
      if (by == 0) return;
      if (!text.empty()) text += " and ";
      text += std::to_string(std::abs(by)) + " " + one + (std::abs(by) == 1 ? "" : one == std::string_view("matrix") ? "" : "s") +
              (by < 0 ? back : on);
    };
    part(s.matrix, "matrix", " before", " behind");
    part(s.row, "row", " above", " below");
    part(s.column, "column", " to the left", " to the right");
    return text;
  }
  // Elements that belong to another place: one distance for all, or a few, as where fragments were laid out wrongly.
  std::optional<Hypothesis> shifted() const {
    std::vector<Shift> shifts;
    for (int r = -kNear; r <= kNear; ++r)
      for (int c = -kNear; c <= kNear; ++c)
        if (r != 0 || c != 0) shifts.push_back({0, r, c});
    for (const std::int64_t far : {24, 32, 48, 64, 96, 128, 192, 256, 512})
      for (const std::int64_t by : {-far, far}) {
        shifts.push_back({0, by, 0});
        shifts.push_back({0, 0, by});
      }
    for (const std::int64_t by : {-8, -4, -2, -1, 1, 2, 4, 8}) shifts.push_back({by, 0, 0});
    std::vector<std::uint64_t> left = sample_;
    std::vector<std::pair<Shift, std::size_t>> chosen;
    const double all = static_cast<double>(sample_.size());
    while (chosen.size() < kMostShifts && static_cast<double>(sample_.size() - left.size()) < kExplains * all) {
      std::size_t best = 0, most = 0;
      for (std::size_t k = 0; k < shifts.size(); ++k) {
        std::size_t n = 0;
        for (const std::uint64_t i : left) n += explained_by(i, shifts[k]) ? 1 : 0;
        if (n > most) most = n, best = k;
      }
      if (static_cast<double>(most) < 0.1 * all || static_cast<double>(most) < 4 * chance_ * static_cast<double>(left.size()))
        return {};
      chosen.push_back({shifts[best], most});
      std::erase_if(left, [&](std::uint64_t i) { return explained_by(i, shifts[best]); });
    }
    const double explains = static_cast<double>(sample_.size() - left.size()) / all;
    if (explains < kExplains) return {};
    if (chosen.size() == 1)
      return Hypothesis{"shifted", "what stands at a place belongs " + shift_text(chosen[0].first), explains};
    std::string text = "elements have changed places: what stands there belongs ";
    for (std::size_t k = 0; k < chosen.size(); ++k)
      text += (k == 0 ? "" : k + 1 == chosen.size() ? " or " : ", ") + shift_text(chosen[k].first) + " (" +
              percent(static_cast<double>(chosen[k].second) / all) + ")";
    return Hypothesis{"exchanged", std::move(text), explains};
  }

  // Whole rows (or columns) that stand in the place of others.
  std::optional<Hypothesis> moved_lines(bool by_row) const {
    constexpr std::size_t kLines = 32, kAlong = 48;
    const std::uint64_t lines = by_row ? rows() : columns(), along = by_row ? columns() : rows();
    if (lines < 2 || along < 8) return {};
    std::vector<std::pair<std::uint64_t, std::uint64_t>> looked;  // matrix, line
    for (const std::uint64_t i : sample_) {
      const Place p = place(i);
      const std::pair<std::uint64_t, std::uint64_t> line{p.matrix, by_row ? p.row : p.column};
      if (looked.size() < kLines && std::find(looked.begin(), looked.end(), line) == looked.end()) looked.push_back(line);
    }
    const auto at = [&](std::uint64_t matrix, std::uint64_t line, std::uint64_t position) {
      return by_row ? index({matrix, line, position}) : index({matrix, position, line});
    };
    std::vector<std::uint64_t> positions;
    for (std::size_t k = 0; k < kAlong; ++k) positions.push_back(along * (2 * k + 1) / (2 * kAlong));
    positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
    std::vector<std::pair<std::uint64_t, std::uint64_t>> pairs;
    for (const auto& [matrix, line] : looked) {
      std::uint64_t found = line;
      for (std::uint64_t other = 0; other < lines && found == line; ++other) {
        if (other == line) continue;
        std::size_t bad = 0;
        for (const std::uint64_t position : positions) {
          bad += agrees(at(matrix, line, position), in_.expected[at(matrix, other, position)]) ? 0 : 1;
          if (10 * bad > positions.size()) break;
        }
        if (10 * bad <= positions.size()) found = other;
      }
      if (found != line) pairs.emplace_back(line, found);
    }
    const double explains = static_cast<double>(pairs.size()) / static_cast<double>(looked.size());
    if (explains < kExplains || looked.size() < 2) return {};
    std::sort(pairs.begin(), pairs.end());
    const std::uint64_t first = by_row ? in_.first_row : 0;
    std::string text = by_row ? "rows stand in the place of others: " : "columns stand in the place of others: ";
    for (std::size_t k = 0; k < std::min<std::size_t>(4, pairs.size()); ++k)
      text += (k == 0 ? "" : ", ") + std::string(by_row ? "row " : "column ") + std::to_string(first + pairs[k].first) +
              " holds " + std::to_string(first + pairs[k].second);
    return Hypothesis{by_row ? "rows_permuted" : "columns_permuted", std::move(text), explains};
  }

  // Mistakes along the summed dimension of a GEMM.
  std::optional<Hypothesis> chunks() const {
    constexpr std::uint64_t kFinest = 16;
    constexpr std::size_t kElements = 24;
    if (!in_.partial || in_.k < 2 * kFinest) return {};
    std::vector<std::uint64_t> looked;
    for (std::size_t s = 0; s < std::min(kElements, sample_.size()); ++s)
      looked.push_back(sample_[s * sample_.size() / std::min(kElements, sample_.size())]);
    const std::uint64_t fine = (in_.k + kFinest - 1) / kFinest;
    std::vector<std::vector<double>> sums(looked.size());  // prefix sums over chunks of 16
    for (std::size_t e = 0; e < looked.size(); ++e) {
      const Place p = place(looked[e]);
      sums[e].assign(fine + 1, 0);
      for (std::uint64_t c = 0; c < fine; ++c)
        sums[e][c + 1] = sums[e][c] + in_.partial(p.row, p.column, c * kFinest, c * kFinest,
                                                  std::min(kFinest, in_.k - c * kFinest));
    }
    const double all = static_cast<double>(looked.size());
    const auto explains = [&](auto&& value) {
      std::size_t n = 0;
      for (std::size_t e = 0; e < looked.size(); ++e) n += agrees(looked[e], value(e)) ? 1 : 0;
      return static_cast<double>(n) / all;
    };
    const auto range = [](std::uint64_t from, std::uint64_t to) {
      return "k = " + std::to_string(from) + ".." + std::to_string(to - 1);
    };
    for (const std::uint64_t chunk : {256, 128, 64, 32, 16}) {
      const std::uint64_t n = (in_.k + chunk - 1) / chunk, step = chunk / kFinest;
      if (n < 2) continue;
      const auto sum = [&](std::size_t e, std::uint64_t from, std::uint64_t to) {
        return sums[e][std::min(to * step, fine)] - sums[e][std::min(from * step, fine)];
      };
      const auto bounds = [&](std::uint64_t from, std::uint64_t to) { return range(from * chunk, std::min(to * chunk, in_.k)); };
      for (std::uint64_t j = 0; j < n; ++j) {
        if (const double x = explains([&](std::size_t e) { return sum(e, j, j + 1); }); x >= kExplains)
          return Hypothesis{"one_chunk", "only the products of " + bounds(j, j + 1) + " are there: the sum was begun anew", x};
        if (j > 0) {
          if (const double x = explains([&](std::size_t e) { return sum(e, 0, j); }); x >= kExplains)
            return Hypothesis{"k_tail", "the products of " + bounds(j, n) + " are missing: the end of the sum", x};
          if (const double x = explains([&](std::size_t e) { return sum(e, j, n); }); x >= kExplains)
            return Hypothesis{"k_head", "the products of " + bounds(0, j) + " are missing: the beginning of the sum", x};
        }
        // j = 0 is the head's case.
        if (const double x = explains([&](std::size_t e) { return sum(e, 0, n) - sum(e, j, j + 1); }); j > 0 && x >= kExplains)
          return Hypothesis{"k_lost", "the products of " + bounds(j, j + 1) + " are missing", x};
        if (const double x = explains([&](std::size_t e) { return sum(e, 0, n) + sum(e, j, j + 1); }); x >= kExplains)
          return Hypothesis{"k_doubled", "the products of " + bounds(j, j + 1) + " are counted twice", x};
        if (n <= 512)
          for (std::uint64_t i = 0; i < n; ++i) {
            if (i == j) continue;
            const double x = explains([&](std::size_t e) { return sum(e, 0, n) - sum(e, j, j + 1) + sum(e, i, i + 1); });
            if (x >= kExplains)
              return Hypothesis{"stale_stage",
                                "the products of " + bounds(i, i + 1) + " stand in the place of those of " + bounds(j, j + 1) +
                                    ": a buffer was read before it was filled anew, or after",
                                x};
          }
      }
      // One operand's chunks exchanged in pairs: each of B meets its neighbour's of A.
      if (in_.k % (2 * chunk) == 0) {
        const double x = explains([&](std::size_t e) {
          const Place p = place(looked[e]);
          double total = 0;
          for (std::uint64_t i = 0; i < n; ++i) total += in_.partial(p.row, p.column, i * chunk, (i ^ 1) * chunk, chunk);
          return total;
        });
        if (x >= kExplains)
          return Hypothesis{"chunks_swapped",
                            "chunks of " + std::to_string(chunk) + " along k are exchanged in pairs in one of the operands", x};
      }
    }
    return {};
  }

  // Where all the wrong elements lie, if it is a strip at an edge.
  std::optional<Finding> region() const {
    const std::uint64_t all_rows = rows() * in_.shape.matrices;
    const std::uint64_t high = last_row_ - first_row_ + 1, wide = last_column_ - first_column_ + 1;
    std::string text;
    const bool some_rows = 2 * high <= all_rows, some_columns = 2 * wide <= columns();
    if (!some_rows && !some_columns) return {};
    const std::uint64_t base = in_.first_matrix * rows() + in_.first_row;
    if (some_rows)
      text += "rows " + std::to_string(base + first_row_) + " to " + std::to_string(base + last_row_) +
              (last_row_ + 1 == all_rows ? " (the last)" : "");
    if (some_columns)
      text += std::string(text.empty() ? "" : " and ") + "columns " + std::to_string(first_column_) + " to " +
              std::to_string(last_column_) + (last_column_ + 1 == columns() ? " (the last)" : "");
    const double density = static_cast<double>(wrong_.size()) / static_cast<double>(high * wide);
    json::Writer w;
    w.begin_object().field("output", in_.output);
    w.field("first_row", base + first_row_).field("last_row", base + last_row_);
    w.field("first_column", first_column_).field("last_column", last_column_).field("wrong_share", density).end_object();
    return Finding{"wrong_region", Severity::note,
                   "output " + in_.output + ": all wrong elements looked at lie in " + text + "; " + percent(density) +
                       " of those are wrong",
                   std::move(w).str()};
  }

  const DiagnosisInput& in_;
  std::vector<std::uint64_t> wrong_, sample_;  // all of them, and some
  std::uint64_t first_row_ = 0, last_row_ = 0, first_column_ = 0, last_column_ = 0;  // of wrong ones; rows of all matrices count on
  double chance_ = 0;
};

}  // namespace

MatrixStack matrix_stack(const std::vector<std::int64_t>& shape) {
  MatrixStack stack;
  const auto extent = [&](std::size_t d) { return static_cast<std::uint64_t>(std::max<std::int64_t>(shape[d], 0)); };
  if (!shape.empty()) stack.columns = extent(shape.size() - 1);
  if (shape.size() > 1) stack.rows = extent(shape.size() - 2);
  for (std::size_t d = 0; d + 2 < shape.size(); ++d) stack.matrices *= extent(d);
  return stack;
}

std::vector<Finding> recognise(const DiagnosisInput& input) { return Recogniser(input).findings(); }

TileGrid tile_grid(const MatrixStack& shape) {
  TileGrid grid;
  grid.rows = std::max<std::uint64_t>(1, shape.matrices * shape.rows);
  grid.columns = std::max<std::uint64_t>(1, shape.columns);
  for (grid.tile_rows = 16; grid.grid_rows() > kSide; grid.tile_rows *= 2) {}
  for (grid.tile_columns = 16; grid.grid_columns() > kSide; grid.tile_columns *= 2) {}
  return grid;
}

Finding describe_tiles(const std::string& output, const TileGrid& grid, std::span<const std::uint32_t> wrong) {
  const std::uint64_t high = grid.grid_rows(), wide = grid.grid_columns();
  std::uint64_t some = 0, whole = 0;
  std::vector<std::string> lines;
  for (std::uint64_t r = 0; r < high; ++r) {
    std::string line;
    for (std::uint64_t c = 0; c < wide; ++c) {
      const std::uint64_t elements = std::min(grid.tile_rows, grid.rows - r * grid.tile_rows) *
                                     std::min(grid.tile_columns, grid.columns - c * grid.tile_columns);
      const std::uint32_t n = wrong[r * wide + c];
      some += n != 0 ? 1 : 0;
      // Nearly all: an element may be right by chance.
      const bool all = 20 * std::uint64_t{n} >= 19 * elements;
      whole += n != 0 && all ? 1 : 0;
      line += n == 0 ? '.' : all ? '#' : '+';
    }
    lines.push_back(std::move(line));
  }
  json::Writer w;
  w.begin_object().field("output", output).field("tile_rows", grid.tile_rows).field("tile_columns", grid.tile_columns);
  w.field("tiles", high * wide).field("tiles_wrong", some).field("tiles_wholly_wrong", whole);
  w.key("map").begin_array();
  for (const std::string& line : lines) w.string(line);
  w.end_array().end_object();
  return {"wrong_tiles", Severity::note,
          "output " + output + ": of " + std::to_string(high * wide) + " tiles of " + std::to_string(grid.tile_rows) + "x" +
              std::to_string(grid.tile_columns) + " " + std::to_string(some) + " hold wrong elements, " +
              std::to_string(whole) + " are wrong throughout",
          std::move(w).str()};
}

Finding describe_worst(const DiagnosisInput& input, const std::vector<std::int64_t>& shape, std::size_t most) {
  const auto off = [&](std::uint64_t i) {
    const double error = std::abs(input.got[i] - input.expected[i]);
    if (std::isnan(input.got[i]) && std::isnan(input.expected[i])) return 0.0;
    return std::isnan(error) ? HUGE_VAL : error;
  };
  std::vector<std::uint64_t> order;  // the furthest first
  for (std::uint64_t i = 0; i < input.shape.elements(); ++i) {
    if (order.size() == most && !(off(i) > off(order.back()))) continue;
    if (order.size() == most) order.pop_back();
    order.insert(std::find_if(order.begin(), order.end(), [&](std::uint64_t o) { return off(o) < off(i); }), i);
  }
  const std::uint64_t base = (input.first_matrix * input.shape.rows + input.first_row) * input.shape.columns;
  json::Writer w;
  w.begin_object().field("output", input.output).key("elements").begin_array();
  std::string text = "output " + input.output + ": furthest off are ";
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::uint64_t i = order[k];
    const std::string at = index_text(index_of(base + i, shape));
    if (k < 4)
      text += (k == 0 ? "" : "; ") + at + ": expected " + number_text(input.expected[i]) + ", got " + number_text(input.got[i]);
    w.begin_object().field("index", at).field("expected", input.expected[i]).field("got", input.got[i]).end_object();
  }
  w.end_array().end_object();
  return {"worst_elements", Severity::note, std::move(text), std::move(w).str()};
}

}  // namespace ptxbench
