// The totals over the rows, and all gradients of plain half rows, in two steps for some columns at a time. Row by row: dx, and what
// the totals are made of, as float32. Column by column: the totals, loaded and stored once for all rows, of numbers that are widened
// to float64 as they are loaded, which needs no shuffles (512 x 768, Zen 4: bfloat16 1.20, float16 1.21 times as fast as both at once).
#if defined(TRUENORM_GRADIENT_TOTALS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_GRADIENT_TOTALS_INL_H_
#undef TRUENORM_GRADIENT_TOTALS_INL_H_
#else
#define TRUENORM_GRADIENT_TOTALS_INL_H_
#endif

#include "gradient-inl.h"
#include "gradient_sums-inl.h"
#include "kernels.h"
#include "lanes-inl.h"
#include "memory-inl.h"
#include "totals-inl.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

// What sixteen features of a row add to the totals; returns their dx.
template <class Gradient, class V>
HWY_INLINE V gradient_lanes(const Gradient& gradient, const V& x, const V& dy, const V& gamma, const Totals& totals) {
  if (totals.dgamma) gradient.add_dgamma(x, dy, totals.dgamma, totals.dgamma_error);
  if (totals.dbeta) gradient.add_dbeta(dy, totals.dbeta, totals.dbeta_error);
  return canonical(gradient.dx(x, dy, gamma));
}

// Plain rows of one block of columns.
template <class T, class G, class O>
struct PlainRows {
  const T* x;
  const G* dy;
  O* dx;
  int64_t x_stride, dy_stride, dx_stride;
  Ahead ahead;
  HWY_INLINE PlainRows at(size_t i) const { return {x + i, dy + i, dx + i, x_stride, dy_stride, dx_stride, ahead}; }
};

// Columns from i on of its r-th row, less than sixteen.
template <class T, class G, class O>
HWY_INLINE void gradient_end(const PlainGradient& gradient, const PlainRows<T, G, O>& rows, int64_t r, const float* HWY_RESTRICT gamma,
                             const Totals& totals, size_t i, size_t n) {
  store_n(gradient_lanes(gradient, load_n(rows.x + r * rows.x_stride + i, n - i), load_n(rows.dy + r * rows.dy_stride + i, n - i),
                         load_n(gamma + i, n - i), totals.at(static_cast<int64_t>(i))),
          rows.dx + r * rows.dx_stride + i, n - i);
}
HWY_INLINE void before_ends(const Totals& totals, size_t i, size_t n) {
  if (totals.begins) clear(totals.at(static_cast<int64_t>(i)), n - i);
}
HWY_INLINE void after_ends(const Totals& totals, size_t i, size_t n) {
  if (totals.rounds()) round_totals(totals.at(static_cast<int64_t>(i)), n - i);
}

// Which types have the steps. Of float32 little is left to convert, and the terms would be more to store than dx.
template <class T>
inline constexpr bool kInSteps = sizeof(T) == 2;
// So many columns of kBatch rows stay in L1 beside x, dy and dx (with 256 a tenth slower).
constexpr int64_t kTotalColumns = 128;
struct TotalRows {
  HWY_ALIGN float x_hat[kBatch * kTotalColumns], dy[kBatch * kTotalColumns];
};

// n columns, whole sixteens, of one row.
template <bool kStream, bool kAhead, bool kNormal, class T, class G, class O>
HWY_INLINE void total_terms(const PlainGradient& row, const T* x, const G* dy, const float* HWY_RESTRICT gamma, O* dx,
                            float* HWY_RESTRICT x_hat, float* HWY_RESTRICT dy_wide, size_t n, const Ahead& ahead) {
  constexpr size_t kN = kPartVectors;
  for (size_t i = 0; i < n; i += kLanes) {
    if constexpr (kAhead) {
      if (ahead.x) prefetch(x + i + ahead.x);
      if (ahead.dy) prefetch(dy + i + ahead.dy);
    }
    F32x16 out;
    TRUENORM_UNROLL
    for (size_t k = 0; k < kParts; ++k) {
      const size_t at = i + k * kPartLanes;
      const F32Part c = row.c(load<kN>(x + at)), dy_part = load<kN>(dy + at);
      store(row.x_hat_of(c), x_hat + at);
      store(dy_part, dy_wide + at);
      set_part(out, k, row.dx_of(c, load<kN>(gamma + at) * dy_part));  // no NaN: plain rows are finite
    }
    put<kStream, kNormal>(out, dx + i);  // last: dx may be dy or x
  }
}

// sum + x by the units that multiply and add, for where those that only add are busy converting numbers (Zen has four, two of
// each; all gradients of bfloat16 4 % faster).
template <class D>
HWY_INLINE hn::Vec<D> add_busy(HWY_MAYBE_UNUSED D d, hn::Vec<D> sum, hn::Vec<D> x) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(x, hn::Set(d, 1), sum);
#else
  return hn::Add(sum, x);
#endif
}

// dgamma += dy * x_hat, dbeta += dy for n columns, whole sixteens, of some rows in order; D: vectors of float64.
template <bool kEdges, class D>
HWY_NOINLINE void add_terms(D f64, const TotalRows& rows, int64_t count, const Totals& given, size_t n) {
  const Totals totals = given;
  constexpr size_t kN = hn::MaxLanes(D()), kVectors = HWY_MIN(kLanes / kN, size_t{4});
  const hn::Rebind<float, D> f32;
  using V = hn::Vec<D>;
  for (size_t i = 0; i < n; i += kVectors * kN) {
    V dgamma_total[kVectors], dbeta_total[kVectors];
    TRUENORM_UNROLL
    for (size_t v = 0; v < kVectors; ++v) {
      const bool begins = kEdges && totals.begins;
      dgamma_total[v] = begins ? hn::Zero(f64) : hn::LoadU(f64, totals.dgamma + i + v * kN);
      dbeta_total[v] = begins ? hn::Zero(f64) : hn::LoadU(f64, totals.dbeta + i + v * kN);
    }
    const float *x_hat = rows.x_hat + i, *dy = rows.dy + i;
    for (int64_t r = 0; r < count; ++r, x_hat += kTotalColumns, dy += kTotalColumns) {
      TRUENORM_UNROLL
      for (size_t v = 0; v < kVectors; ++v) {
        const V dy_wide = hn::PromoteTo(f64, hn::LoadU(f32, dy + v * kN)), x_hat_wide = hn::PromoteTo(f64, hn::LoadU(f32, x_hat + v * kN));
        dgamma_total[v] = hn::MulAdd(x_hat_wide, dy_wide, dgamma_total[v]);  // an exact product
        dbeta_total[v] = add_busy(f64, dbeta_total[v], dy_wide);
      }
    }
    TRUENORM_UNROLL
    for (size_t v = 0; v < kVectors; ++v) {
      const size_t at = i + v * kN;
      if (kEdges && totals.rounds()) {
        hn::StoreU(canonical(f32, round_to_f32(f32, dgamma_total[v])), f32, totals.dgamma_rounded + at);
        hn::StoreU(canonical(f32, round_to_f32(f32, dbeta_total[v])), f32, totals.dbeta_rounded + at);
      } else {
        hn::StoreU(dgamma_total[v], f64, totals.dgamma + at);
        hn::StoreU(dbeta_total[v], f64, totals.dbeta + at);
      }
    }
  }
}

// n columns of up to kBatch plain rows.
template <bool kStream, bool kAhead, class T, class G, class O>
HWY_NOINLINE void gradient_in_steps(const GradRow* grads, int64_t count, const PlainRows<T, G, O>& rows, const float* HWY_RESTRICT gamma,
                                    const Totals& totals, size_t n, const Machine& machine) {
  TotalRows terms;
  const size_t whole = n / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += static_cast<size_t>(kTotalColumns)) {
    const size_t columns = HWY_MIN(static_cast<size_t>(kTotalColumns), whole - i);
    for (int64_t r = 0; r < count; ++r) {
      const auto row_terms = [&](auto normal) HWY_ATTR {
        total_terms<kStream, kAhead, normal()>(PlainGradient(grads[r].narrow), rows.x + r * rows.x_stride + i, rows.dy + r * rows.dy_stride + i,
                                               gamma + i, rows.dx + r * rows.dx_stride + i, terms.x_hat + r * kTotalColumns,
                                               terms.dy + r * kTotalColumns, columns, rows.ahead);
      };
      if constexpr (kAsksNormal<T, O>) {
        if (machine.rounds_bfloat16 && has_normal_dx(grads[r].narrow)) {
          row_terms(std::true_type());
          continue;
        }
      }
      row_terms(std::false_type());
    }
    const Totals here = totals.at(static_cast<int64_t>(i));
    const auto add = [&](auto f64) HWY_ATTR {
      if (here.has_edge()) add_terms<true>(f64, terms, count, here, columns);
      else add_terms<false>(f64, terms, count, here, columns);
    };
    if (machine.half_vectors) add(HalfF64());
    else add(F64());
  }
  if (whole == n) return;
  before_ends(totals, whole, n);
  for (int64_t r = 0; r < count; ++r) gradient_end(PlainGradient(grads[r].narrow), rows, r, gamma, totals, whole, n);
  after_ends(totals, whole, n);
}
template <class T, class G, class O>
HWY_INLINE void gradient_in_steps(const GradRow* grads, int64_t count, const PlainRows<T, G, O>& rows, const float* gamma, const Totals& totals,
                                  size_t n, bool streams, const Machine& machine) {
  if (streams) {
    if (rows.ahead.any()) return gradient_in_steps<true, true>(grads, count, rows, gamma, totals, n, machine);
    return gradient_in_steps<true, false>(grads, count, rows, gamma, totals, n, machine);
  }
  if (rows.ahead.any()) return gradient_in_steps<false, true>(grads, count, rows, gamma, totals, n, machine);
  gradient_in_steps<false, false>(grads, count, rows, gamma, totals, n, machine);
}

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_GRADIENT_TOTALS_INL_H_
