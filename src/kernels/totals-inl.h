// The totals of dgamma and dbeta over blocks of rows: merged in pairs, rounded once.
#if defined(TRUENORM_TOTALS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_TOTALS_INL_H_
#undef TRUENORM_TOTALS_INL_H_
#else
#define TRUENORM_TOTALS_INL_H_
#endif

#include "gradient-inl.h"
#include "kernels.h"
#include "lanes-inl.h"
#include "memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

// Totals over the rows; each is padded to whole sixteens of features.
struct Totals {
  double *dgamma = nullptr, *dbeta = nullptr, *dgamma_error = nullptr, *dbeta_error = nullptr;
  float *dgamma_rounded = nullptr, *dbeta_rounded = nullptr;
  bool begins = false;

  Totals() = default;
  // From feature i on, `at` features beyond the task's first.
  HWY_INLINE Totals(const BackwardTask& task, int64_t at, int64_t i)
      : dgamma(shifted(task.dgamma, at)), dbeta(shifted(task.dbeta, at)), dgamma_error(shifted(task.dgamma_error, at)),
        dbeta_error(shifted(task.dbeta_error, at)), dgamma_rounded(shifted(task.dgamma_rounded, i)),
        dbeta_rounded(shifted(task.dbeta_rounded, i)), begins(task.begins) {}

  HWY_INLINE bool has_edge() const { return begins || rounds(); }  // not only read and stored
  HWY_INLINE bool rounds() const { return dgamma_rounded || dbeta_rounded; }
  HWY_INLINE Totals at(int64_t i) const {
    Totals t;
    t.dgamma = shifted(dgamma, i);
    t.dbeta = shifted(dbeta, i);
    t.dgamma_error = shifted(dgamma_error, i);
    t.dbeta_error = shifted(dbeta_error, i);
    t.dgamma_rounded = shifted(dgamma_rounded, i);
    t.dbeta_rounded = shifted(dbeta_rounded, i);
    t.begins = begins;
    return t;
  }

 private:
  template <class P>
  static HWY_INLINE P* shifted(P* p, int64_t i) { return p ? p + i : nullptr; }
};
// n columns of them.
HWY_INLINE void clear(const Totals& totals, size_t n) {
  for (double* p : {totals.dgamma, totals.dbeta, totals.dgamma_error, totals.dbeta_error})
    for (size_t i = 0; p && i < n; i += kLanes) store(fill(0.0), p + i);
}

// n is padded to whole sixteens, as the totals are.
HWY_MAYBE_UNUSED static void merge_totals(double* to, double* to_error, const double* from, const double* from_error, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    if (to_error)
      add_with_error(load(from + i), load(from_error + i), to + i, to_error + i);
    else
      store(load(to + i) + load(from + i), to + i);
  }
}

// total + error, or total alone where it is not finite and its error therefore NaN.
HWY_INLINE F64x16 value(const double* total, const double* error) {
  F64x16 sum = load(total);
  if (error) {
    const F64x16 whole = sum + load(error);
    for (size_t i = 0; i < kF64Vectors; ++i) {
      const VF64 s = sum.v[i];
      sum.v[i] = hn::IfThenElse(hn::Eq(hn::Sub(s, s), hn::Zero(F64())), whole.v[i], s);
    }
  }
  return sum;
}

HWY_INLINE void store_rounded(const F64x16& v, double* out) { store(canonical(v), out); }
template <class O>
HWY_INLINE void store_rounded(const F64x16& v, O* out) {
  store(canonical(round_to_f32(v)), out);
}

template <class O>
HWY_INLINE void round_sixteen(const double* total, const double* error, O* out, bool accumulate) {
  F64x16 sum = value(total, error);
  if (accumulate) sum = load_f64(out) + sum;
  store_rounded(sum, out);
}
template <class O>
HWY_INLINE void round_totals_to(const double* total, const double* error, O* out, bool accumulate, int64_t n) {
  constexpr int64_t kStep = static_cast<int64_t>(kLanes);
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) round_sixteen(total + i, error ? error + i : nullptr, out + i, accumulate);
  if (i == n) return;
  const size_t count = static_cast<size_t>(n - i);
  Tail<O> lanes(out + i, accumulate ? count : 0, O{});
  round_sixteen(total + i, error ? error + i : nullptr, lanes.values, accumulate);
  lanes.copy_to(out + i, count);
}

HWY_INLINE void round_totals(const Totals& totals, size_t n) {
  if (totals.dgamma_rounded) round_totals_to(totals.dgamma, nullptr, totals.dgamma_rounded, false, static_cast<int64_t>(n));
  if (totals.dbeta_rounded) round_totals_to(totals.dbeta, nullptr, totals.dbeta_rounded, false, static_cast<int64_t>(n));
}
HWY_MAYBE_UNUSED static void round_totals(const double* total, const double* error, void* out, truenorm_dtype type, bool accumulate, int64_t n) {
  switch (type) {
    case TRUENORM_FLOAT32: return round_totals_to(total, error, static_cast<float*>(out), accumulate, n);
    case TRUENORM_FLOAT64: return round_totals_to(total, error, static_cast<double*>(out), accumulate, n);
    case TRUENORM_FLOAT16: return round_totals_to(total, error, static_cast<Float16*>(out), accumulate, n);
    case TRUENORM_BFLOAT16: return round_totals_to(total, error, static_cast<BFloat16*>(out), accumulate, n);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_TOTALS_INL_H_
