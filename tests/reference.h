// The order of operations of docs/numerics.md as plain scalar code: every kernel must give these bits.
// It shares no code with the library and is written to be read beside that page. Compile with -ffp-contract=off.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

namespace truenorm::reference {

struct Float16 { std::uint16_t bits; };
struct BFloat16 { std::uint16_t bits; };

// ---------------------------------------------------------------- conversions: exact inwards, nearest even outwards
inline double widen(float v) { return v; }
inline double widen(double v) { return v; }
inline double widen(BFloat16 v) {
  const std::uint32_t u = static_cast<std::uint32_t>(v.bits) << 16;
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}
inline double widen(Float16 v) {
  const int sign = v.bits >> 15, exponent = (v.bits >> 10) & 31, fraction = v.bits & 1023;
  double a = exponent == 31  ? (fraction ? std::nan("") : std::numeric_limits<double>::infinity())
             : exponent == 0 ? std::ldexp(fraction, -24)
                             : std::ldexp(fraction + 1024, exponent - 25);
  return sign ? -a : a;
}
// Rounds to `digits` significant bits with least exponent of a unit `least`, for the half types.
inline double round_to(double v, int digits, int least) {
  if (v == 0 || !std::isfinite(v)) return v;
  int e;
  std::frexp(v, &e);
  const int unit = std::max(e - digits, least);
  return std::ldexp(std::nearbyint(std::ldexp(v, -unit)), unit);
}
inline void narrow(double v, double& out) { out = std::isnan(v) ? std::nan("") : v; }
inline void narrow(double v, float& out) { out = std::isnan(v) ? std::nanf("") : static_cast<float>(v); }
inline void narrow(double v, BFloat16& out) {  // by way of float32, as the specification says
  float f = static_cast<float>(round_to(static_cast<float>(v), 8, -133));
  if (std::isnan(v)) f = std::nanf("");
  std::uint32_t u;
  std::memcpy(&u, &f, 4);
  out.bits = static_cast<std::uint16_t>(u >> 16);
}
inline void narrow(double v, Float16& out) {
  if (std::isnan(v)) { out.bits = 0x7E00; return; }
  const double r = round_to(static_cast<float>(v), 11, -24), a = std::fabs(r);
  const unsigned sign = std::signbit(v) ? 0x8000u : 0u;
  int e;
  unsigned bits;
  if (a >= 65536) bits = 0x7C00;
  else if (a < 0x1p-14) bits = static_cast<unsigned>(std::ldexp(a, 24));
  else { const double f = std::frexp(a, &e); bits = static_cast<unsigned>((e + 14) << 10) + static_cast<unsigned>(f * 2048) - 1024; }
  out.bits = static_cast<std::uint16_t>(sign | bits);
}

// ---------------------------------------------------------------- the order of every sum over a row
// Segments; in each, lane j of 16 takes elements j, j+16, ...; lanes fold j+8, j+4, j+2, j+1; segments merge in a binary
// tree whose left child is the largest power of two of segments.
struct Sums { double a = 0, b = 0; };
template <class Term>  // term(i, a, b) adds element i
Sums segment_sums(std::int64_t begin, std::int64_t end, Term term) {
  Sums lane[16];
  for (std::int64_t i = begin; i < end; ++i) term(i, lane[(i - begin) % 16].a, lane[(i - begin) % 16].b);
  for (int half = 8; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) { lane[j].a += lane[j + half].a; lane[j].b += lane[j + half].b; }
  return lane[0];
}
template <class Node, class Leaf, class Merge>  // over segments [first, first + count)
Node tree(std::int64_t first, std::int64_t count, Leaf leaf, Merge merge) {
  if (count <= 1) return leaf(first);
  std::int64_t left = 1;
  while (left * 2 < count) left *= 2;
  const Node l = tree<Node>(first, left, leaf, merge), r = tree<Node>(first + left, count - left, leaf, merge);
  return merge(l, r);
}
template <class Term>
Sums row_sums(std::int64_t d, std::int64_t segment, Term term) {
  return tree<Sums>(0, (d + segment - 1) / segment,
                    [&](std::int64_t k) { return segment_sums(k * segment, std::min(d, (k + 1) * segment), term); },
                    [](Sums l, Sums r) { return Sums{l.a + r.a, l.b + r.b}; });
}
inline constexpr std::int64_t kNarrowSegment = 1024, kWideSegment = 128;

// ---------------------------------------------------------------- float32 and half rows
template <class T> constexpr bool is_wide = std::is_same_v<T, double>;
enum class Kind { Plain, Exact };
struct NarrowRow { Kind kind; double mean, var, rstd, m; float hi, r, b; };  // m = mean - x[0]

inline void plain_scalars(NarrowRow& row) {  // x_hat = fma(x - hi, r, b) in float32
  row.hi = static_cast<float>(row.mean);
  row.r = static_cast<float>(row.rstd);
  row.b = static_cast<float>(-((row.mean - row.hi) * static_cast<double>(row.r)));
}
template <class T>
NarrowRow narrow_row(const T* x, std::int64_t d, double eps) {
  const double n = static_cast<double>(d), inv_n = 1.0 / n, x0 = widen(x[0]);
  NarrowRow row{};
  const Sums raw = row_sums(d, kNarrowSegment, [&](std::int64_t i, double& s, double& q) {
    const double v = widen(x[i]);
    s += v;
    q += v * v;  // exact product: a fused multiply-add gives the same bits
  });
  row.mean = raw.a * inv_n;
  const double M2 = raw.b - raw.a * row.mean;
  row.var = M2 * inv_n;
  row.rstd = 1.0 / std::sqrt(row.var + eps);
  row.m = row.mean - x0;
  if (raw.b <= 16.0 * M2 && row.var >= 0x1p-100 && row.var + eps <= 0x1p100) {
    row.kind = Kind::Plain;
    plain_scalars(row);
    return row;
  }
  row.kind = Kind::Exact;
  if (!std::isfinite(raw.b)) {
    row.mean = row.var = row.rstd = row.m = std::nan("");
    return row;
  }
  row.hi = static_cast<float>(raw.a / n);
  const Sums centred = row_sums(d, kNarrowSegment, [&](std::int64_t i, double& s, double& q) {
    const double c = widen(x[i]) - static_cast<double>(row.hi);
    s += c;
    q += c * c;  // two roundings
  });
  const double lo = centred.a / n, t = centred.b - centred.a * lo;
  row.m = (static_cast<double>(row.hi) - x0) + lo;
  row.mean = static_cast<double>(row.hi) + lo;
  row.var = (t < 0 ? 0.0 : t) / n;
  row.rstd = 1.0 / std::sqrt(row.var + eps);
  return row;
}

// ---------------------------------------------------------------- float64 rows
struct WideRow { double pre, hi, post, lo, r; double mean, lo_saved, var, rstd; };  // c = (x*pre - hi)*post - lo, x_hat = c*r

inline WideRow wide_row(const double* x, std::int64_t d, double eps) {
  const double n = static_cast<double>(d);
  WideRow row{1, 0, 1, 0, 0, 0, 0, 0, 0};
  const auto mean_of = [&] {
    return row_sums(d, kWideSegment, [&](std::int64_t i, double& s, double&) { s += x[i] * row.pre; }).a / n;
  };
  const auto centred = [&] {
    struct Node { Sums sums; double error; };  // of q: two-sum keeps what its merges lose
    const Node total = tree<Node>(
        0, (d + kWideSegment - 1) / kWideSegment,
        [&](std::int64_t k) {
          return Node{segment_sums(k * kWideSegment, std::min(d, (k + 1) * kWideSegment), [&](std::int64_t i, double& s, double& q) {
            const double c = (x[i] * row.pre - row.hi) * row.post;
            s += c;
            q += c * c;
          }), 0};
        },
        [](Node l, Node r) {
          const double q = l.sums.b + r.sums.b, part = q - l.sums.b;
          return Node{{l.sums.a + r.sums.a, q}, (l.error + r.error) + ((l.sums.b - (q - part)) + (r.sums.b - part))};
        });
    return Sums{total.sums.a, total.sums.b + total.error};
  };
  row.hi = mean_of();
  Sums sums = centred();
  const bool small = sums.b < 0x1p-800, plain = !small && sums.b <= 0x1p800;
  if (small) { row.post = 0x1p600; sums = centred(); }
  if (!small && !plain) { row.pre = 0x1p-600; row.hi = mean_of(); sums = centred(); }
  if (sums.b > 16.0 * (sums.b - sums.a * (sums.a / n))) {  // the mean was off by standard deviations: once more
    row.hi += (sums.a / n) / row.post;
    sums = centred();
  }
  row.lo = sums.a / n;
  const double t = sums.b - sums.a * row.lo, M2 = t < 0 ? 0.0 : t, var = M2 / n;
  const double unscale = (1.0 / row.post) / row.pre;  // 1, 2^-600 or 2^600
  row.mean = row.hi / row.pre;
  row.lo_saved = row.lo * unscale;
  row.var = (var * unscale) * unscale;
  if (plain) {
    row.r = row.rstd = 1.0 / std::sqrt(var + eps);
  } else if (M2 == 0 || (small && eps >= 0x1p-900)) {  // eps rules
    row.rstd = 1.0 / std::sqrt(row.var + eps);
    row.r = M2 == 0 ? row.rstd : row.rstd * unscale;
  } else {
    row.r = 1.0 / std::sqrt(var + (eps / unscale) / unscale);
    row.rstd = row.r / unscale;
  }
  if (std::isnan(sums.b)) row.mean = row.lo_saved = row.lo = row.var = row.r = row.rstd = std::nan("");
  return row;
}

// bfloat16 rows with y in bfloat16: float32 sums in 32 lanes; false where they are not enough.
struct QuickRow { float r, b; };
inline bool quick_row(const BFloat16* x, std::int64_t d, double eps, QuickRow& row) {
  const Sums sums = tree<Sums>(
      0, (d + kNarrowSegment - 1) / kNarrowSegment,
      [&](std::int64_t k) {
        float s[32] = {}, q[32] = {};
        const std::int64_t begin = k * kNarrowSegment;
        for (std::int64_t i = begin; i < std::min(d, begin + kNarrowSegment); ++i) {
          const float v = static_cast<float>(widen(x[i]));
          s[(i - begin) % 32] += v;
          q[(i - begin) % 32] = std::fma(v, v, q[(i - begin) % 32]);
        }
        const auto fold = [](float* lane) {  // neighbours, then j + 8 in float32; j + 4, j + 2, j + 1 in float64
          double wide[8];
          for (int j = 0; j < 16; ++j) lane[j] = lane[2 * j] + lane[2 * j + 1];
          for (int j = 0; j < 8; ++j) wide[j] = lane[j] + lane[j + 8];
          for (int half = 4; half > 0; half /= 2)
            for (int j = 0; j < half; ++j) wide[j] += wide[j + half];
          return wide[0];
        };
        return Sums{fold(s), fold(q)};
      },
      [](Sums l, Sums r) { return Sums{l.a + r.a, l.b + r.b}; });
  const double inv_n = 1.0 / static_cast<double>(d), mean = sums.a * inv_n, M2 = sums.b - sums.a * mean, var = M2 * inv_n;
  const double rstd = 1.0 / std::sqrt(var + eps);
  row.r = static_cast<float>(rstd);
  row.b = static_cast<float>(-(mean * static_cast<double>(row.r)));
  return sums.b <= 8.0 * M2 && var >= 0x1p-100 && var + eps <= 0x1p100;
}

// ---------------------------------------------------------------- forward
struct Stats { double mean, var, rstd; };

template <class T, class P, class O>  // gamma, beta: nullptr when absent
Stats forward(const T* x, const P* gamma, const P* beta, O* y, std::int64_t d, double eps) {
  if constexpr (is_wide<T>) {
    const WideRow row = wide_row(x, d, eps);
    for (std::int64_t i = 0; i < d; ++i) {
      const double x_hat = ((x[i] * row.pre - row.hi) * row.post - row.lo) * row.r;
      narrow(x_hat * (gamma ? gamma[i] : 1.0) + (beta ? beta[i] : -0.0), y[i]);
    }
    return {row.mean + row.lo_saved, row.var, row.rstd};
  } else {
    const NarrowRow row = narrow_row(x, d, eps);  // its statistics are handed back of quick rows, too
    const double x0 = widen(x[0]);
    QuickRow quick;
    bool is_quick = false;
    if constexpr (std::is_same_v<T, BFloat16> && std::is_same_v<O, BFloat16>) is_quick = quick_row(x, d, eps, quick);
    for (std::int64_t i = 0; i < d; ++i) {
      const double v = widen(x[i]), g = gamma ? widen(gamma[i]) : 1.0, b = beta ? widen(beta[i]) : -0.0;
      if (is_quick) {
        narrow(std::fma(std::fma(static_cast<float>(v), quick.r, quick.b), static_cast<float>(g), static_cast<float>(b)), y[i]);
      } else if (row.kind == Kind::Plain) {
        const float x_hat = std::fma(static_cast<float>(v) - row.hi, row.r, row.b);
        narrow(std::fma(x_hat, static_cast<float>(g), static_cast<float>(b)), y[i]);
      } else {
        narrow((((v - x0) - row.m) * row.rstd) * g + b, y[i]);
      }
    }
    return {row.mean, row.var, row.rstd};
  }
}

// ---------------------------------------------------------------- backward
// dgamma and dbeta of all rows before the one rounding at the end: a float64 sum, for float64 rows a compensated one.
struct Total {
  double s = 0, e = 0;
  void add(double v, bool wide) {
    if (!wide) { s += v; return; }
    merge({v, 0});
  }
  void merge(Total o) {  // two-sum
    const double sum = s + o.s, part = sum - s;
    e = (e + o.e) + ((s - (sum - part)) + (o.s - part));
    s = sum;
  }
  double value() const { return std::isfinite(s) ? s + e : s; }
};

// Rows of one block of the parameter gradients; blocks merge as segments do.
inline std::int64_t rows_per_block(std::int64_t rows, std::int64_t d) {
  const std::int64_t limit = std::min<std::int64_t>(64, std::max<std::int64_t>(1, (std::int64_t{1} << 26) / (32 * d)));
  return std::max<std::int64_t>(64, (rows + limit - 1) / limit);
}

// dx of one row; adds the row to dgamma and dbeta. dx may be nullptr.
template <class T, class G, class P, class O>
void backward_row(const G* dy, const T* x, const P* gamma, O* dx, Total* dgamma, Total* dbeta, std::int64_t d, double eps) {
  const double n = static_cast<double>(d), x0 = widen(x[0]);
  const auto weight = [&](std::int64_t i) { return gamma ? widen(gamma[i]) : 1.0; };
  std::vector<double> x_hat(static_cast<std::size_t>(d));
  bool plain = false;
  double rstd;
  if constexpr (is_wide<T>) {
    WideRow row = wide_row(x, d, eps);
    const double pre = row.rstd < 0x1p-400 ? 0x1p-600 : 1.0;
    rstd = row.rstd > 0x1p1022 ? std::nan("") : row.rstd;
    for (std::int64_t i = 0; i < d; ++i)
      x_hat[i] = ((x[i] * pre - row.mean * pre) - row.lo_saved * pre) * (rstd / pre);
  } else {
    NarrowRow row = narrow_row(x, d, eps);
    row.mean = x0 + row.m;  // the saved record is (m, rstd)
    rstd = row.rstd;
    if (row.kind == Kind::Plain) {
      plain_scalars(row);
      float gmax = 0;
      const auto g = [&](std::int64_t i) { return static_cast<float>(weight(i)) * static_cast<float>(widen(dy[i])); };
      const auto c = [&](std::int64_t i) { return static_cast<float>(widen(x[i])) - row.hi; };
      for (std::int64_t i = 0; i < d; ++i) {
        x_hat[i] = std::fma(c(i), row.r, row.b);
        gmax = std::fmax(gmax, std::fabs(g(i)));
      }
      // Elements 16 apart are a pair, added in float32: lane j takes pairs 32k + j, 32k + 16 + j.
      const Sums sums = tree<Sums>(
          0, (d + kNarrowSegment - 1) / kNarrowSegment,
          [&](std::int64_t k) {
            const std::int64_t begin = k * kNarrowSegment, end = std::min(d, begin + kNarrowSegment);
            const auto pair = [&](std::int64_t t, double& a, double& b) {
              const std::int64_t i = begin + t / 16 * 32 + t % 16, j = i + 16;
              if (i >= end) return;
              a += j < end ? g(i) + g(j) : g(i);
              b += j < end ? std::fma(g(j), c(j), g(i) * c(i)) : g(i) * c(i);
            };
            return segment_sums(0, kNarrowSegment / 2, pair);
          },
          [](Sums l, Sums r) { return Sums{l.a + r.a, l.b + r.b}; });
      plain = d <= 1 << 20 && std::isfinite(sums.a) && std::isfinite(sums.b) && (gmax == 0 || (gmax >= 0x1p-50f && gmax <= 0x1p60f)) &&
              rstd >= 0x1p-20 && rstd <= 0x1p20;
      const double inv_n = 1.0 / n, lo = row.mean - row.hi, K = ((sums.b - lo * sums.a) * inv_n) * (rstd * rstd);
      const float A32 = static_cast<float>(sums.a * inv_n - lo * K), K32 = static_cast<float>(K);
      for (std::int64_t i = 0; plain && dx && i < d; ++i) narrow(std::fma(-c(i), K32, g(i) - A32) * row.r, dx[i]);
    }
    // A row that is plain by its statistics but not by its gradient keeps float32 x_hat for dgamma only when plain.
    if (!plain)
      for (std::int64_t i = 0; i < d; ++i) x_hat[i] = ((widen(x[i]) - x0) - row.m) * rstd;
  }
  if (!plain) {
    const auto g = [&](std::int64_t i) { return weight(i) * widen(dy[i]); };
    const Sums sums = row_sums(d, is_wide<T> ? kWideSegment : kNarrowSegment, [&](std::int64_t i, double& a, double& b) {
      a += g(i);
      b += g(i) * x_hat[i];
    });
    const bool finite = std::isfinite(sums.a) && std::isfinite(sums.b);
    const double A = finite ? sums.a / n : std::nan(""), B = sums.b / n;
    for (std::int64_t i = 0; dx && i < d; ++i) narrow(((g(i) - A) - x_hat[i] * B) * rstd, dx[i]);
  }
  for (std::int64_t i = 0; i < d; ++i) {
    const double v = widen(dy[i]);
    if (dgamma) dgamma[i].add(v * x_hat[i], is_wide<T>);
    if (dbeta) dbeta[i].add(v, is_wide<T>);
  }
}

// The whole of backward for contiguous rows. dgamma_sum, dbeta_sum: unrounded totals (d each), or nullptr.
template <class T, class G, class P, class O>
void backward(const G* dy, const T* x, const P* gamma, O* dx, Total* dgamma, Total* dbeta, std::int64_t rows, std::int64_t d,
              double eps) {
  const std::int64_t block = rows_per_block(rows, std::max<std::int64_t>(d, 1));
  using Totals = std::pair<std::vector<Total>, std::vector<Total>>;
  if (rows == 0 || d == 0) return;
  const Totals all = tree<Totals>(
      0, (rows + block - 1) / block,
      [&](std::int64_t k) {
        Totals t{std::vector<Total>(static_cast<std::size_t>(d)), std::vector<Total>(static_cast<std::size_t>(d))};
        for (std::int64_t r = k * block; r < std::min(rows, (k + 1) * block); ++r)
          backward_row(dy + r * d, x + r * d, gamma, dx ? dx + r * d : nullptr, t.first.data(), t.second.data(), d, eps);
        return t;
      },
      [&](Totals l, Totals r) {
        for (std::size_t i = 0; i < static_cast<std::size_t>(d); ++i) {
          if (is_wide<T>) { l.first[i].merge(r.first[i]); l.second[i].merge(r.second[i]); }
          else { l.first[i].s += r.first[i].s; l.second[i].s += r.second[i].s; }
        }
        return l;
      });
  for (std::size_t i = 0; i < static_cast<std::size_t>(d); ++i) {
    if (dgamma) dgamma[i] = all.first[i];
    if (dbeta) dbeta[i] = all.second[i];
  }
}

// The one rounding; `old` is what is accumulated to, or nullptr.
template <class O>
void round_total(const Total& total, const O* old, O& out) {
  narrow(old ? widen(*old) + total.value() : total.value(), out);
}

}  // namespace truenorm::reference
