// Attention on the CPU in double, for tests.
#pragma once

#include "support/attention_definition.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace ptxbench::testing {

inline std::uint16_t to_bf16(double value) {
  const auto single = static_cast<float>(value);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &single, 4);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline double from_bf16(std::uint16_t value) {
  const std::uint32_t bits = std::uint32_t{value} << 16;
  float single = 0;
  std::memcpy(&single, &bits, 4);
  return single;
}

using Matrix = std::vector<double>;

// One head after the other; S x D each.
struct AttentionReference {
  std::size_t heads, sequence, width;
  bool causal;

  std::size_t seen(std::size_t row) const { return causal ? row + 1 : sequence; }

  void forward(const Matrix& q, const Matrix& k, const Matrix& v, Matrix& o, Matrix& lse) const {
    o.assign(q.size(), 0);
    lse.assign(heads * sequence, 0);
    for (std::size_t h = 0; h < heads; ++h)
      for (std::size_t i = 0; i < sequence; ++i) {
        const Matrix p = scores(q, k, h, i);
        double most = p[0];
        for (const double s : p) most = std::max(most, s);
        double sum = 0;
        for (const double s : p) sum += std::exp(s - most);
        lse[h * sequence + i] = most + std::log(sum);
        for (std::size_t j = 0; j < p.size(); ++j)
          for (std::size_t c = 0; c < width; ++c)
            o[at(h, i, c)] += std::exp(p[j] - most) / sum * v[at(h, j, c)];
      }
  }

  void backward(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& o, const Matrix& d_o,
                const Matrix& lse, Matrix& d_q, Matrix& d_k, Matrix& d_v) const {
    const double scale = 1 / std::sqrt(static_cast<double>(width));
    for (Matrix* gradient : {&d_q, &d_k, &d_v}) gradient->assign(q.size(), 0);
    for (std::size_t h = 0; h < heads; ++h)
      for (std::size_t i = 0; i < sequence; ++i) {
        const Matrix s = scores(q, k, h, i);
        double delta = 0;
        for (std::size_t c = 0; c < width; ++c) delta += o[at(h, i, c)] * d_o[at(h, i, c)];
        for (std::size_t j = 0; j < s.size(); ++j) {
          const double p = std::exp(s[j] - lse[h * sequence + i]);
          double d_p = 0;
          for (std::size_t c = 0; c < width; ++c) d_p += d_o[at(h, i, c)] * v[at(h, j, c)];
          const double d_s = p * (d_p - delta) * scale;
          for (std::size_t c = 0; c < width; ++c) {
            d_v[at(h, j, c)] += p * d_o[at(h, i, c)];
            d_k[at(h, j, c)] += d_s * q[at(h, i, c)];
            d_q[at(h, i, c)] += d_s * k[at(h, j, c)];
          }
        }
      }
  }

 private:
  std::size_t at(std::size_t h, std::size_t row, std::size_t column) const {
    return (h * sequence + row) * width + column;
  }
  Matrix scores(const Matrix& q, const Matrix& k, std::size_t h, std::size_t i) const {
    Matrix s(seen(i), 0);
    for (std::size_t j = 0; j < s.size(); ++j) {
      for (std::size_t c = 0; c < width; ++c) s[j] += q[at(h, i, c)] * k[at(h, j, c)];
      s[j] /= std::sqrt(static_cast<double>(width));
    }
    return s;
  }
};

// Root of the mean square of the difference, next to that of the reference.
inline double relative_error(const Matrix& actual, const Matrix& reference) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    difference += (actual[i] - reference[i]) * (actual[i] - reference[i]);
    size += reference[i] * reference[i];
  }
  return std::sqrt(difference / size);
}

}  // namespace ptxbench::testing
