// The order of operations of docs/numerics.md as plain scalar code: the statistics of a row, and what finishes it.
// Compile with -ffp-contract=off.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "reference_sums.h"

namespace truenorm::reference {

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

// ---------------------------------------------------------------- bfloat16 rows: float32 sums in 32 lanes
struct QuickRow { float r, b; double mean; bool enough_for_record; };
// False where they are not enough for y in bfloat16.
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
  row.mean = mean;
  const bool in_range = var >= 0x1p-100 && var + eps <= 0x1p100;
  row.enough_for_record = in_range && sums.b <= 1.6 * M2;
  return in_range && sums.b <= 8.0 * M2;
}

// What backward knows of a row: (m, rstd) and the kind. dx of a half type, or none, takes it of these sums where they do.
template <class T>
NarrowRow backward_statistics(const T* x, std::int64_t d, double eps, [[maybe_unused]] bool half_dx) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    QuickRow quick;
    if (half_dx && d >= 64 && quick_row(x, d, eps, quick) && quick.enough_for_record) {
      NarrowRow row{};
      row.kind = Kind::Plain;
      row.m = quick.mean - widen(x[0]);
      row.rstd = quick.r;  // rounded to float32
      return row;
    }
  }
  return narrow_row(x, d, eps);
}

}  // namespace truenorm::reference
