// The gradient of a row, from the sums of gradient_sums-inl.h. With g = gamma * dy and mean() over a row:
//     A = mean(g), B = mean(g * x_hat), dx = ((g - A) - x_hat * B) * rstd, dgamma += dy * x_hat, dbeta += dy.
#if defined(TRUENORM_GRADIENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_GRADIENT_INL_H_
#undef TRUENORM_GRADIENT_INL_H_
#else
#define TRUENORM_GRADIENT_INL_H_
#endif

#include <math.h>

#include <type_traits>

#include "forward-inl.h"
#include "kernels.h"
#include "lanes-inl.h"
#include "parameters-inl.h"
#include "stats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

// ---------------------------------------------------------------- the formula, for some features of one row
// x_hat is float32 in plain rows, float64 in all others. sum() adds the features to the row's sums, dx() gives their
// gradient, add_dgamma() and add_dbeta() add them to the totals over the rows.

struct PlainGradient {
  PlainFinish finish;
  float minus_Ar, minus_Kr;
  HWY_INLINE explicit PlainGradient(const NarrowGrad& grad) : finish(grad.row), minus_Ar(grad.minus_Ar), minus_Kr(grad.minus_Kr) {}
  HWY_INLINE PlainGradient(const GradScalars& rows, size_t k) : finish(rows, k), minus_Ar(rows.minus_Ar[k]), minus_Kr(rows.minus_Kr[k]) {}
  template <size_t kN>
  HWY_INLINE F32s<kN> c(const F32s<kN>& x) const {
    return x - fill<kN>(finish.hi);
  }
  template <size_t kN>
  HWY_INLINE F32s<kN> x_hat_of(const F32s<kN>& c) const {
    return fma(c, fill<kN>(finish.r), fill<kN>(finish.b));
  }
  // dx = g*r - Ar - c*Kr, with what c lacks of x - mean in Ar, and rstd once more in Ar, three times in Kr.
  template <size_t kN>
  HWY_INLINE F32s<kN> dx_of(const F32s<kN>& c, const F32s<kN>& g) const {
    return fma(c, fill<kN>(minus_Kr), fma(g, fill<kN>(finish.r), fill<kN>(minus_Ar)));
  }
  template <size_t kN>
  HWY_INLINE F32s<kN> dx(const F32s<kN>& x, const F32s<kN>& dy, const F32s<kN>& gamma) const {
    return dx_of(c(x), gamma * dy);
  }
  // Totals of no other row: their terms rounded once, with +0 in place of -0, as totals that begin at +0 have it.
  template <size_t kN>
  HWY_INLINE F32s<kN> only_dgamma(const F32s<kN>& c, const F32s<kN>& dy) const {
    return dy * x_hat_of(c) + fill<kN>(0.0f);
  }
  template <size_t kN>
  static HWY_INLINE F32s<kN> only_dbeta(const F32s<kN>& dy) {
    return dy + fill<kN>(0.0f);
  }
  HWY_INLINE void add_dgamma(const F32x16& x, const F32x16& dy, double* total, double*) const {
    store(add_exact_product(widen(dy), widen(finish.x_hat(x)), load(total)), total);
  }
  static HWY_INLINE void add_dbeta(const F32x16& dy, double* total, double*) { store(load(total) + widen(dy), total); }
};

// Whether no dx of a plain bfloat16 row is subnormal: by the scalars, since dx, if it is not 0, is a multiple of the last places of what
// cancels in it (docs/numerics.md, derivations).
HWY_INLINE bool has_normal_dx(const NarrowGrad& grad) {
  return fabsf(grad.minus_Ar) >= 0x1p-28f && fabsf(grad.minus_Kr) >= 0x1p-60f && fabsf(grad.row.hi) >= 0x1p-40f;
}
// For which dx that is asked.
template <class T, class O>
inline constexpr bool kAsksNormal = kMayRound && std::is_same_v<T, BFloat16> && std::is_same_v<O, BFloat16>;

struct ExactGradient {
  ExactFinish finish;
  double A, B;
  HWY_INLINE explicit ExactGradient(const NarrowGrad& grad) : finish(grad.row), A(grad.A), B(grad.B) {}
  HWY_INLINE void sum(const F32x16& x, const F32x16& dy, const F32x16& gamma, F64x16& a, F64x16& b) const {
    const F64x16 g = widen(gamma) * widen(dy);
    a = a + g;
    b = b + g * finish.x_hat(widen(x));
  }
  HWY_INLINE F32x16 dx(const F32x16& x, const F32x16& dy, const F32x16& gamma) const {
    return round_to_f32(((widen(gamma) * widen(dy) - fill(A)) - finish.x_hat(widen(x)) * fill(B)) * fill(finish.rstd));
  }
  HWY_INLINE void add_dgamma(const F32x16& x, const F32x16& dy, double* total, double*) const {
    store(load(total) + widen(dy) * finish.x_hat(widen(x)), total);
  }
  static HWY_INLINE void add_dbeta(const F32x16& dy, double* total, double*) { store(load(total) + widen(dy), total); }
};

// Knuth's two-sum keeps the rounding errors of a float64 total, so that any number of rows stays within the bound.
HWY_INLINE void add_with_error(const F64x16& v, const F64x16& v_error, double* total, double* error) {
  const F64x16 s = load(total);
  const F64x16 sum = s + v, part = sum - s;
  store((load(error) + v_error) + ((s - (sum - part)) + (v - part)), error);
  store(sum, total);
}

template <bool kScaled>
struct WideGradient {
  WideFinish<kScaled> finish;
  F64x16 A, B, rstd;
  HWY_INLINE explicit WideGradient(const WideGrad& grad)
      : finish(grad.row), A(fill(grad.A)), B(fill(grad.B)), rstd(fill(grad.row.rstd)) {}
  HWY_INLINE void sum(const F64x16& x, const F64x16& dy, const F64x16& gamma, F64x16& a, F64x16& b) const {
    const F64x16 g = gamma * dy;
    a = a + g;
    b = b + g * finish.x_hat(x);
  }
  HWY_INLINE F64x16 dx(const F64x16& x, const F64x16& dy, const F64x16& gamma) const {
    return ((gamma * dy - A) - finish.x_hat(x) * B) * rstd;
  }
  HWY_INLINE void add_dgamma(const F64x16& x, const F64x16& dy, double* total, double* error) const {
    add_with_error(dy * finish.x_hat(x), fill(0.0), total, error);
  }
  static HWY_INLINE void add_dbeta(const F64x16& dy, double* total, double* error) {
    add_with_error(dy, fill(0.0), total, error);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_GRADIENT_INL_H_
