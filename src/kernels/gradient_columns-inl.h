// dx of rows, and what they add to the totals of dgamma and dbeta, column by column: from the scalars of gradient_rows-inl.h.
#if defined(TRUENORM_GRADIENT_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_GRADIENT_COLUMNS_INL_H_
#undef TRUENORM_GRADIENT_COLUMNS_INL_H_
#else
#define TRUENORM_GRADIENT_COLUMNS_INL_H_
#endif

#include <utility>

#include "gradient-inl.h"
#include "gradient_sums-inl.h"
#include "gradient_totals-inl.h"
#include "kernels.h"
#include "lanes-inl.h"
#include "parameters-inl.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

// Everything of sixteen features is read before any is written: dx may be dy or x.
template <bool kStream = false, class Gradient, class T, class G, class O>
HWY_INLINE void gradient_block(const Gradient& gradient, const T* x, const G* dy, const Compute<T>* gamma, O* dx,
                               const Totals& totals, size_t n) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto out = gradient_lanes(gradient, load(x + i), load(dy + i), load(gamma + i), totals.at(static_cast<int64_t>(i)));
    if (dx) put<kStream>(out, dx + i);
  }
  if (i < n) {
    const auto out = gradient_lanes(gradient, load_n(x + i, n - i), load_n(dy + i, n - i), load_n(gamma + i, n - i),
                                    totals.at(static_cast<int64_t>(i)));
    if (dx) store_n(out, dx + i, n - i);
  }
}

template <class T, class G, class O>
HWY_NOINLINE void gradient_row(const NarrowGrad& grad, const T* x, const G* dy, const float* gamma, O* dx, const Totals& totals,
                             size_t n, bool /*streams*/) {
  if (grad.row.kind == RowKind::Plain) return gradient_block(PlainGradient(grad), x, dy, gamma, dx, totals, n);
  gradient_block(ExactGradient(grad), x, dy, gamma, dx, totals, n);
}
inline HWY_NOINLINE void gradient_row(const WideGrad& grad, const double* x, const double* dy, const double* gamma, double* dx,
                             const Totals& totals, size_t n, bool streams) {
  if (grad.row.kind == RowKind::Plain && streams) return gradient_block<true>(WideGradient<false>(grad), x, dy, gamma, dx, totals, n);
  if (grad.row.kind == RowKind::Plain) return gradient_block(WideGradient<false>(grad), x, dy, gamma, dx, totals, n);
  gradient_block(WideGradient<true>(grad), x, dy, gamma, dx, totals, n);
}

// Plain rows together: gamma and the totals, if there are any, are loaded once for them, the totals stored once. Stores are what
// limits a row on its own: five vectors for one of dx. Four rows need the registers of AVX-512 (512 x 768, all gradients, Intel: 9 %
// faster than with two). Half types have steps instead.
template <class T>
constexpr int64_t kTogether = sizeof(T) == 4 && HWY_CAP_GE512 ? 4 : 2;
enum UsedTotals { kNoTotals, kStoredTotals, kEdgeOfTotals };  // the last: they may begin or end with these rows
template <int64_t kRows, UsedTotals kTotals, bool kNormal, bool kStream, bool kAhead, class T, class G, class O>
HWY_INLINE size_t gradient_sixteens(const PlainGradient* HWY_RESTRICT gradient, const PlainRows<T, G, O>& given,
                                    const float* HWY_RESTRICT gamma, const Totals& given_totals, size_t n) {
  constexpr size_t kN = kPartVectors;
  const PlainRows<T, G, O> rows = given;  // its own: a store of dx could change another
  const Totals totals = given_totals;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    F64x16 dgamma_total, dbeta_total;
    if constexpr (kTotals != kNoTotals) {
      const bool begins = kTotals == kEdgeOfTotals && totals.begins;
      dgamma_total = begins ? fill(0.0) : load(totals.dgamma + i);
      dbeta_total = begins ? fill(0.0) : load(totals.dbeta + i);
    }
    F32x16 out[kRows];
    TRUENORM_UNROLL
    for (int64_t r = 0; r < kRows; ++r) {
      const PlainGradient& row = gradient[r];
      const T* const x_row = rows.x + r * rows.x_stride + i;
      const G* const dy_row = rows.dy + r * rows.dy_stride + i;
      if constexpr (kAhead) {
        if (rows.ahead.x) prefetch(x_row + rows.ahead.x);
        if (rows.ahead.dy) prefetch(dy_row + rows.ahead.dy);
      }
      TRUENORM_UNROLL
      for (size_t k = 0; k < kParts; ++k) {
        const size_t at = k * kPartLanes;
        const F32Part c = row.c(load<kN>(x_row + at));
        if constexpr (kTotals != kNoTotals) {
          const F64Part dy_wide = load_f64<kN>(dy_row + at);
          set_part(dgamma_total, k, add_exact_product(dy_wide, widen(row.x_hat_of(c)), part(dgamma_total, k)));
          set_part(dbeta_total, k, part(dbeta_total, k) + dy_wide);
        }
        set_part(out[r], k, row.dx_of(c, load<kN>(gamma + i + at) * load<kN>(dy_row + at)));  // no NaN: plain rows are finite
      }
    }
    TRUENORM_UNROLL
    for (int64_t r = 0; r < kRows; ++r) put<kStream, kNormal>(out[r], rows.dx + r * rows.dx_stride + i);
    if constexpr (kTotals != kNoTotals) {
      if (kTotals == kEdgeOfTotals && totals.rounds()) {
        store_rounded(dgamma_total, totals.dgamma_rounded + i);
        store_rounded(dbeta_total, totals.dbeta_rounded + i);
      } else {
        store(dgamma_total, totals.dgamma + i);
        store(dbeta_total, totals.dbeta + i);
      }
    }
  }
  return i;
}
template <UsedTotals kTotals, bool kStream, bool kAhead, size_t... kRow, class T, class G, class O>
HWY_NOINLINE void gradient_plain_rows(std::index_sequence<kRow...>, const GradRow* grads, const PlainRows<T, G, O>& rows,
                                      const float* HWY_RESTRICT gamma, const Totals& totals, size_t n,
                                      HWY_MAYBE_UNUSED const Machine& machine) {
  constexpr int64_t kRows = sizeof...(kRow);
  const PlainGradient gradient[] = {PlainGradient(grads[kRow].narrow)...};
  size_t i = 0;
  bool normal = false;
  if constexpr (kAsksNormal<T, O> && kTotals == kNoTotals) {
    normal = machine.rounds_bfloat16 && (has_normal_dx(grads[kRow].narrow) && ...);
    if (normal) i = gradient_sixteens<kRows, kNoTotals, true, kStream, kAhead>(gradient, rows, gamma, totals, n);
  }
  if (!normal) i = gradient_sixteens<kRows, kTotals, false, kStream, kAhead>(gradient, rows, gamma, totals, n);
  if (i == n) return;
  if constexpr (kTotals == kEdgeOfTotals) before_ends(totals, i, n);
  TRUENORM_UNROLL
  for (int64_t r = 0; r < kRows; ++r) gradient_end(gradient[r], rows, r, gamma, totals, i, n);
  if constexpr (kTotals == kEdgeOfTotals) after_ends(totals, i, n);
}
template <int64_t kRows, class T, class G, class O>
HWY_INLINE void gradient_plain_rows(const GradRow* grads, const PlainRows<T, G, O>& rows, const float* gamma, const Totals& totals,
                                    size_t n, bool streams, const Machine& machine) {
  const auto with = [&](auto streamed, auto fetched) HWY_ATTR {
    constexpr bool kStream = streamed(), kAhead = fetched();
    const std::make_index_sequence<kRows> each;
    if constexpr (!kInSteps<T>) {
      if (totals.dgamma && totals.has_edge()) return gradient_plain_rows<kEdgeOfTotals, kStream, true>(each, grads, rows, gamma, totals, n, machine);
      if (totals.dgamma) return gradient_plain_rows<kStoredTotals, kStream, kAhead>(each, grads, rows, gamma, totals, n, machine);
    }
    gradient_plain_rows<kNoTotals, kStream, kAhead>(each, grads, rows, gamma, totals, n, machine);
  };
  if (streams) return rows.ahead.any() ? with(std::true_type(), std::true_type()) : with(std::true_type(), std::false_type());
  rows.ahead.any() ? with(std::false_type(), std::true_type()) : with(std::false_type(), std::false_type());
}

// The only row of its totals, a plain one (1 x 4096, Zen 4, beside float64 totals in registers: float32 20 -> 27 GB/s, bfloat16 9 -> 15).
template <bool kStream, class T, class G, class O>
HWY_NOINLINE void gradient_only_row(const PlainGradient gradient, const T* x, const G* dy, const float* HWY_RESTRICT gamma, O* dx,
                                    float* HWY_RESTRICT dgamma, float* HWY_RESTRICT dbeta, size_t n) {
  constexpr size_t kN = kPartVectors;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    F32x16 out;
    TRUENORM_UNROLL
    for (size_t k = 0; k < kParts; ++k) {
      const size_t at = i + k * kPartLanes;
      const F32Part c = gradient.c(load<kN>(x + at)), dy_part = load<kN>(dy + at);
      store(gradient.only_dgamma(c, dy_part), dgamma + at);
      store(gradient.only_dbeta(dy_part), dbeta + at);
      set_part(out, k, gradient.dx_of(c, load<kN>(gamma + at) * dy_part));
    }
    put<kStream>(out, dx + i);  // last: dx may be dy or x
  }
  if (i == n) return;
  const F32x16 c = gradient.c(load_n(x + i, n - i)), dy_rest = load_n(dy + i, n - i), g = load_n(gamma + i, n - i) * dy_rest;
  store_n(gradient.only_dgamma(c, dy_rest), dgamma + i, n - i);
  store_n(gradient.only_dbeta(dy_rest), dbeta + i, n - i);
  store_n(gradient.dx_of(c, g), dx + i, n - i);
}

// Rows of whole aligned lines go straight to memory (half types on AVX-512, half a line at a time, Zen 4: dx alone 12 to 19 % faster,
// all gradients 10 %). Others would shift the totals; they are copied there.
template <class O>
HWY_INLINE bool streams(const BackwardTask& task, int64_t begin) {
  return (sizeof(O) > 2 || HWY_CAP_GE512) && task.traffic.past_caches && task.dx && before_stream(static_cast<O*>(task.dx) + begin) == 0 &&
         task.dx_stride * static_cast<int64_t>(sizeof(O)) % static_cast<int64_t>(kStreamAlign) == 0;
}

// Features [begin, end) of rows [first, first + rows), rows in order within a block of columns.
template <class T, class G, class O>
HWY_NOINLINE void group_columns(const BackwardTask& task, Parameter<T>& gamma, int64_t first, int64_t rows,
                              const GradRow* grads, int64_t begin, int64_t end, const Ahead& ahead) {
  const bool has_totals = task.dgamma || task.dbeta, last = first + rows == task.rows;
  const bool streams = HWY_NAMESPACE::streams<O>(task, begin), stages = task.traffic.past_caches && task.dx && !streams;
  constexpr int64_t kStagedRows = 4;
  HWY_ALIGN O stage[kStagedRows * kColumns];
  for (int64_t i = begin; i < end; i += kColumns) {
    const size_t n = static_cast<size_t>(HWY_MIN(kColumns, end - i));
    const Compute<T>* gamma_block = gamma.block(i, n);
    Totals here;
    bool rounds = false;
    if (has_totals) {
      here = Totals(task, i - begin, i);
      here.begins = here.begins && first == 0;
      rounds = last && here.rounds();
    }
    float *const dgamma_rounded = here.dgamma_rounded, *const dbeta_rounded = here.dbeta_rounded;
    // Without totals there is little to share; ends of short rows then cost more than it brings (20 features: a third).
    const bool shares = here.dgamma || n % kLanes == 0 || n >= (sizeof(T) == 2 ? 8 : 2) * kLanes;
    const bool in_steps = kInSteps<T> && here.dgamma;
    const int64_t most = !in_steps ? kTogether<T> : stages ? kStagedRows : kBatch;
    int64_t together = 1;
    for (int64_t r = 0; r < rows; r += together, here.begins = false) {
      const T* x = static_cast<const T*>(task.x) + (first + r) * task.x_stride + i;
      const G* dy = static_cast<const G*>(task.dy) + (first + r) * task.dy_stride + i;
      O* dx = task.dx ? static_cast<O*>(task.dx) + (first + r) * task.dx_stride + i : nullptr;
      together = 1;
      if constexpr (sizeof(T) < 8) {
        if (dx && shares && !here.dgamma == !here.dbeta && all_plain(grads + r, 1)) {
          while (together < HWY_MIN(most, rows - r) && all_plain(grads + r + together, 1)) ++together;
          if (!in_steps && together == 3) together = 2;
          const bool ends = rounds && r + together == rows;
          if (ends && rows == 1 && here.begins && !stages) {
            const PlainGradient gradient(grads[r].narrow);
            if (streams) gradient_only_row<true>(gradient, x, dy, gamma_block, dx, dgamma_rounded, dbeta_rounded, n);
            else gradient_only_row<false>(gradient, x, dy, gamma_block, dx, dgamma_rounded, dbeta_rounded, n);
            break;
          }
          here.dgamma_rounded = ends ? dgamma_rounded : nullptr;
          here.dbeta_rounded = ends ? dbeta_rounded : nullptr;
          const PlainRows<T, G, O> plain{x, dy, stages ? stage : dx, task.x_stride, task.dy_stride, stages ? kColumns : task.dx_stride, ahead};
          if (in_steps) gradient_in_steps(grads + r, together, plain, gamma_block, here, n, streams, task.machine);
          else if (together == 1) gradient_plain_rows<1>(grads + r, plain, gamma_block, here, n, streams, task.machine);
          else if (together == 2) gradient_plain_rows<2>(grads + r, plain, gamma_block, here, n, streams, task.machine);
          else gradient_plain_rows<kTogether<T>>(grads + r, plain, gamma_block, here, n, streams, task.machine);
          if (stages)
            for (int64_t k = 0; k < together; ++k)
              stream_bytes(reinterpret_cast<const uint8_t*>(stage + k * kColumns), reinterpret_cast<uint8_t*>(dx + k * task.dx_stride), n * sizeof(O));
          continue;
        }
      }
      if (here.begins) clear(here, n);
      gradient_row(GradOf<T>::get(grads[r]), x, dy, gamma_block, dx, here, n, streams);
      if (rounds && r + 1 == rows) round_totals(Totals(task, i - begin, i), n);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_GRADIENT_COLUMNS_INL_H_
