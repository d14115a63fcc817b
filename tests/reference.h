// The order of operations of docs/numerics.md as plain scalar code: every kernel must give these bits. Here forward and
// backward; the statistics of rows are in reference_rows.h, conversions and the order of sums in reference_sums.h.
// It shares no code with the library and is written to be read beside that page. Compile with -ffp-contract=off.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "reference_rows.h"

namespace truenorm::reference {

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
    if constexpr (std::is_same_v<T, BFloat16> && std::is_same_v<O, BFloat16>) is_quick = d >= 64 && quick_row(x, d, eps, quick);
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
    const bool half_dx = sizeof(T) == 2 && (!dx || sizeof(O) == 2);
    NarrowRow row = backward_statistics(x, d, eps, half_dx);
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
      // dx of a half type: lanes are float32. Else four elements 16 apart are added in float32: lane j takes 64k + j,
      // 64k + 16 + j, 64k + 32 + j, 64k + 48 + j. Beyond the end g = c = 0.
      const Sums sums = tree<Sums>(
          0, (d + kNarrowSegment - 1) / kNarrowSegment,
          [&](std::int64_t k) {
            const std::int64_t begin = k * kNarrowSegment, end = std::min(d, begin + kNarrowSegment);
            if constexpr (sizeof(O) == 2)
              return segment_sums(begin, end, [&](std::int64_t i, double& a, double& b) {
                a = static_cast<float>(a) + g(i);
                b = std::fma(g(i), c(i), static_cast<float>(b));
              });
            const auto four = [&](std::int64_t t, double& a, double& b) {
              float four_g[4] = {}, four_c[4] = {};
              for (std::int64_t m = 0; m < 4; ++m) {
                const std::int64_t i = begin + t / 16 * 64 + m * 16 + t % 16;
                if (i < end) four_g[m] = g(i), four_c[m] = c(i);
              }
              a += (four_g[0] + four_g[1]) + (four_g[2] + four_g[3]);
              b += std::fma(four_g[1], four_c[1], four_g[0] * four_c[0]) + std::fma(four_g[3], four_c[3], four_g[2] * four_c[2]);
            };
            return segment_sums(0, kNarrowSegment / 4, four);
          },
          [](Sums l, Sums r) { return Sums{l.a + r.a, l.b + r.b}; });
      const double inv_n = 1.0 / n, lo = row.mean - row.hi, K = ((sums.b - lo * sums.a) * inv_n) * (rstd * rstd);
      const double A_rstd = (sums.a * inv_n - lo * K) * rstd, K_rstd = K * rstd;
      const float Ar = static_cast<float>(A_rstd), Kr = static_cast<float>(K_rstd);
      plain = d <= 1 << 20 && (gmax == 0 || gmax >= 0x1p-63f) && rstd >= 0x1p-14 && rstd <= 0x1p20 && std::fabs(A_rstd) < 0x1p127 &&
              std::fabs(K_rstd) < 0x1p127;
      for (std::int64_t i = 0; plain && dx && i < d; ++i) narrow(std::fma(-c(i), Kr, std::fma(g(i), row.r, -Ar)), dx[i]);
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
