// Compiled with -ffp-contract=off: what judge/attention.h computes has the GPU's bits.
#include "verify/host_attention.hpp"

#include "emulator/clones.hpp"
#include "verify/host_loops.hpp"
#include "verify/judge/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace ptxbench {
namespace {

using judge::u32;
using judge::u64;

// out[c] = sum over k < depth of a[k] * b[k * columns + c], each a chain in the order of k. Products of two
// 16-bit floats are exact in fp32.
constexpr u64 kColumns = 32;
#define PTXBENCH_ROW_TIMES_MATRIX(T, name)                                            \
  PTXBENCH_CLONES void name(const T* a, const T* b, u64 depth, u64 columns, T* out) { \
    u64 c0 = 0;                                                                       \
    for (; c0 + kColumns <= columns; c0 += kColumns) {                                \
      T acc[kColumns] = {};                                                           \
      for (u64 k = 0; k < depth; ++k) {                                               \
        const T x = a[k];                                                             \
        const T* y = b + k * columns + c0;                                            \
        for (u64 c = 0; c < kColumns; ++c) acc[c] += x * y[c];                        \
      }                                                                               \
      for (u64 c = 0; c < kColumns; ++c) out[c0 + c] = acc[c];                        \
    }                                                                                 \
    for (; c0 < columns; ++c0) {                                                      \
      T acc = 0;                                                                      \
      for (u64 k = 0; k < depth; ++k) acc += a[k] * b[k * columns + c0];              \
      out[c0] = acc;                                                                  \
    }                                                                                 \
  }
PTXBENCH_ROW_TIMES_MATRIX(double, row_times_matrix)
PTXBENCH_ROW_TIMES_MATRIX(float, row_times_matrix)

PTXBENCH_CLONES void scale_row(double* v, u64 count, double scale) {
  for (u64 i = 0; i < count; ++i) v[i] *= scale;
}
PTXBENCH_CLONES void scale_row(float* v, u64 count, float scale) {
  for (u64 i = 0; i < count; ++i) v[i] *= scale;
}

// In place: weight(v - by[i * step]); step 0 or 1.
PTXBENCH_CLONES void weights_row(double* v, u64 count, const double* by, u64 step) {
  for (u64 i = 0; i < count; ++i) v[i] = judge::weight(v[i] - by[i * step]);
}
PTXBENCH_CLONES void weights_row(float* v, u64 count, const float* by, u64 step) {
  for (u64 i = 0; i < count; ++i) v[i] = judge::weight(v[i] - by[i * step]);
}

// One head's [rows, columns] in T.
template <class T>
struct Matrix {
  std::vector<T> v;
  u64 columns = 0;
  const T* row(u64 r) const { return v.data() + r * columns; }
};

template <class T>
Matrix<T> head_of(const void* tensor, u32 type, const AttentionShape& s, u64 head) {
  Matrix<T> m{std::vector<T>(u64{s.sequence} * s.head_dim), s.head_dim};
  const u64 from = head * s.sequence * s.head_dim;
  for (u64 i = 0; i < m.v.size(); ++i)
    m.v[i] = static_cast<T>(judge::decode(type, judge::load_element(tensor, type, from + i)));
  return m;
}
template <class T>
Matrix<T> transposed(const Matrix<T>& m) {
  const u64 rows = m.v.size() / m.columns;
  Matrix<T> t{std::vector<T>(m.v.size()), rows};
  for (u64 r = 0; r < rows; ++r)
    for (u64 c = 0; c < m.columns; ++c) t.v[c * rows + r] = m.v[r * m.columns + c];
  return t;
}

void store(void* to, DType dtype, u64 at, float value) {
  const auto type = static_cast<u32>(dtype);
  const u64 bits = judge::encode_from_float(type, value);
  if (judge::type_bits(type) == 16)
    static_cast<judge::u16*>(to)[at] = static_cast<judge::u16>(bits);
  else
    static_cast<u32*>(to)[at] = static_cast<u32>(bits);
}

template <class T>
class Attention {
 public:
  Attention(const AttentionSpec& spec, const AttentionShape& shape, const HostAttention& at)
      : spec_(spec),
        s_(shape),
        at_(at),
        type_(static_cast<u32>(spec.input)),
        rows_(at.rows != nullptr ? spec.rows_of_head : shape.sequence),
        mask_(spec.mask()),
        root_(static_cast<T>(1 / std::sqrt(static_cast<double>(shape.head_dim)))),
        scale_(spec.score_scale ? static_cast<T>(*spec.score_scale) : root_) {}

  void forward() {
    for (u64 head = 0; head < s_.all_heads(); ++head) {
      const Matrix<T> q = head_of<T>(at_.q, type_, s_, head),
                      k = transposed(head_of<T>(at_.k, type_, s_, head)),
                      v = head_of<T>(at_.v, type_, s_, head);
      each_row(rows_, [&](u64 r, std::vector<T>& p, std::vector<T>&, std::vector<T>& out) {
        const u64 row = row_of(head, r), visible = keys_seen(row),
                  to = head * rows_ + r;
        T sum;
        const double lse = softmax(q.row(row), k, visible, p, sum);
        for (u64 c = 0; c < visible; ++c) p[c] = judge::narrowed(type_, p[c]);
        row_times_matrix(p.data(), v.v.data(), visible, s_.head_dim, out.data());
        for (u64 d = 0; d < s_.head_dim; ++d)
          store(at_.o, spec_.output, to * s_.head_dim + d, static_cast<float>(judge::product(out[d], T(1) / sum)));
        if (spec_.lse == DType::float64)
          static_cast<double*>(at_.lse)[to] = lse;
        else
          static_cast<float*>(at_.lse)[to] = static_cast<float>(lse);
      });
    }
  }

  void backward() {
    for (u64 head = 0; head < s_.all_heads(); ++head) {
      const Matrix<T> q = head_of<T>(at_.q, type_, s_, head), k = head_of<T>(at_.k, type_, s_, head),
                      v = head_of<T>(at_.v, type_, s_, head), d_o = head_of<T>(at_.d_o, type_, s_, head),
                      o = head_of<T>(at_.o, type_, s_, head);
      const Matrix<T> q_t = transposed(q), k_t = transposed(k), v_t = transposed(v), d_o_t = transposed(d_o);
      std::vector<T> lse(s_.sequence), dots(s_.sequence);
      for (u64 i = 0; i < s_.sequence; ++i) {
        T dot = 0;
        for (u64 d = 0; d < s_.head_dim; ++d)
          dot = judge::sum(dot, judge::product(d_o.row(i)[d], o.row(i)[d]));
        dots[i] = dot;
      }
      if (spec_.model) {
        for (u64 i = 0; i < s_.sequence; ++i)
          lse[i] = static_cast<T>(static_cast<const float*>(at_.lse)[head * s_.sequence + i]);
      } else {
        each_row(s_.sequence, [&](u64 i, std::vector<T>& p, std::vector<T>&, std::vector<T>&) {
          T sum;
          lse[i] = static_cast<T>(softmax(q.row(i), k_t, keys_seen(i), p, sum));
        });
      }
      // Of queries, then of keys.
      each_row(rows_, [&](u64 r, std::vector<T>& p, std::vector<T>& ds, std::vector<T>& out) {
        const u64 i = row_of(head, r), visible = keys_seen(i);
        gradients(q.row(i), k_t, d_o.row(i), v_t, &lse[i], &dots[i], 0, p, ds);
        row_times_matrix(ds.data(), k.v.data(), visible, s_.head_dim, out.data());
        put(at_.dq, head * rows_ + r, out, root_);
      });
      each_row(rows_, [&](u64 r, std::vector<T>& p, std::vector<T>& ds, std::vector<T>& out) {
        const u64 j = row_of(head, r), first = judge::first_to_see(mask_, static_cast<u32>(j)), visible = s_.sequence - first;
        gradients(k.row(j), q_t, v.row(j), d_o_t, lse.data(), dots.data(), 1, p, ds);
        row_times_matrix(p.data() + first, d_o.row(first), visible, s_.head_dim, out.data());
        put(at_.dv, head * rows_ + r, out, T(1));
        row_times_matrix(ds.data() + first, q.row(first), visible, s_.head_dim, out.data());
        put(at_.dk, head * rows_ + r, out, root_);
      });
    }
  }

 private:
  u64 keys_seen(u64 query) const { return judge::keys_seen(mask_, static_cast<u32>(query), s_.sequence); }
  u64 row_of(u64 head, u64 r) const { return at_.rows != nullptr ? at_.rows[head * rows_ + r] : r; }

  // Calls f(row, p, ds, out) with memory of a thread's own.
  template <class F>
  void each_row(u64 rows, F&& f) const {
    parallel_pieces(rows, 8, [&](u64 first, u64 last) {
      std::vector<T> p(s_.sequence), ds(s_.sequence), out(s_.head_dim);
      for (u64 r = first; r < last; ++r) f(r, p, ds, out);
    });
  }

  // The first `visible` of p are exp(s - m), not narrowed; returns the LSE.
  double softmax(const T* query, const Matrix<T>& keys, u64 visible, std::vector<T>& p, T& sum) const {
    row_times_matrix(query, keys.v.data(), s_.head_dim, s_.sequence, p.data());
    scale_row(p.data(), visible, scale_);
    T most = -std::numeric_limits<T>::infinity();
    for (u64 c = 0; c < visible; ++c) most = p[c] > most ? p[c] : most;
    weights_row(p.data(), visible, &most, 0);
    sum = 0;
    for (u64 c = 0; c < visible; ++c) sum += p[c];
    return static_cast<double>(most) + std::log(static_cast<double>(sum));
  }

  // p and ds of one row of scores and products, narrowed. `lse` and `dots` have one for all columns (step 0)
  // or one each.
  void gradients(const T* a, const Matrix<T>& b, const T* c, const Matrix<T>& d, const T* lse, const T* dots,
                 u64 step, std::vector<T>& p, std::vector<T>& ds) const {
    const u64 n = s_.sequence;
    row_times_matrix(a, b.v.data(), s_.head_dim, n, p.data());
    scale_row(p.data(), n, scale_);
    weights_row(p.data(), n, lse, step);
    row_times_matrix(c, d.v.data(), s_.head_dim, n, ds.data());
    for (u64 i = 0; i < n; ++i) {
      ds[i] = judge::narrowed(type_, judge::product(p[i], judge::sum(ds[i], -dots[i * step])));
      p[i] = judge::narrowed(type_, p[i]);
    }
  }

  void put(void* to, u64 row, const std::vector<T>& out, T scale) const {
    for (u64 d = 0; d < s_.head_dim; ++d)
      store(to, spec_.output, row * s_.head_dim + d, static_cast<float>(judge::product(out[d], scale)));
  }

  const AttentionSpec& spec_;
  const AttentionShape& s_;
  const HostAttention& at_;
  const u32 type_;
  const u64 rows_;
  const u32 mask_;
  const T root_, scale_;  // 1 / sqrt(D); what scores are multiplied by
};

}  // namespace

void host_attention_forward(const AttentionSpec& spec, const AttentionShape& shape, const HostAttention& at) {
  if (spec.model)
    Attention<float>(spec, shape, at).forward();
  else
    Attention<double>(spec, shape, at).forward();
}

void host_attention_backward(const AttentionSpec& spec, const AttentionShape& shape,
                             const HostAttention& at) {
  if (spec.model)
    Attention<float>(spec, shape, at).backward();
  else
    Attention<double>(spec, shape, at).backward();
}

}  // namespace ptxbench
