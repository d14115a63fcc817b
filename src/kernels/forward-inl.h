// y = gamma * x_hat + beta, row by row.
#if defined(TRUENORM_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_FORWARD_INL_H_
#undef TRUENORM_FORWARD_INL_H_
#else
#define TRUENORM_FORWARD_INL_H_
#endif

#include "kernels.h"
#include "lanes-inl.h"
#include "memory-inl.h"
#include "parameters-inl.h"
#include "stats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

// ---------------------------------------------------------------- the formula, for some features of one row
// Each finish is made once per row and applied to its elements; x_hat and y are named as in docs/numerics.md.

struct PlainFinish {  // float32: two roundings in x_hat, one in y
  float hi, r, b;
  HWY_INLINE explicit PlainFinish(const NarrowRow& row) : hi(row.hi), r(row.r), b(row.b) {}
  template <class Batch>
  HWY_INLINE PlainFinish(const Batch& batch, size_t k) : hi(batch.hi[k]), r(batch.r[k]), b(batch.b[k]) {}
  template <size_t kN>
  HWY_INLINE F32s<kN> x_hat(const F32s<kN>& x) const {
    return fma(x - fill<kN>(hi), fill<kN>(r), fill<kN>(b));
  }
  template <size_t kN>
  HWY_INLINE F32s<kN> operator()(const F32s<kN>& x, const F32s<kN>& gamma, const F32s<kN>& beta) const {
    return fma(x_hat(x), gamma, beta);
  }
};

struct ExactFinish {  // float32 and half rows in float64
  double x0, m, rstd;
  HWY_INLINE explicit ExactFinish(const NarrowRow& row) : x0(row.x0), m(row.m), rstd(row.rstd) {}
  template <size_t kN>
  HWY_INLINE F64s<kN> x_hat(const F64s<kN>& x) const {
    return ((x - fill<kN>(x0)) - fill<kN>(m)) * fill<kN>(rstd);
  }
  template <size_t kN>
  HWY_INLINE F32s<kN> operator()(const F32s<kN>& x, const F32s<kN>& gamma, const F32s<kN>& beta) const {
    return round_to_f32(x_hat(widen(x)) * widen(gamma) + widen(beta));
  }
};

template <bool kScaled>
struct WideFinish {  // float64 rows, vector by vector: a sixteen at each step would need more registers than there are
  const WideRow row;  // its own: a store of y could change another
  HWY_INLINE explicit WideFinish(const WideRow& r) : row(r) {}
  HWY_INLINE VF64 x_hat(VF64 x) const {
    return hn::Mul(hn::Sub(centred<kScaled>(x, row), hn::Set(F64(), row.lo)), hn::Set(F64(), row.r));
  }
  HWY_INLINE VF64 operator()(VF64 x, VF64 gamma, VF64 beta) const { return hn::Add(hn::Mul(x_hat(x), gamma), beta); }
  template <size_t kN>
  HWY_INLINE F64s<kN> x_hat(F64s<kN> x) const {
    TRUENORM_UNROLL
    for (size_t i = 0; i < kN * kWidth; ++i) x.v[i] = x_hat(x.v[i]);
    return x;
  }
  template <size_t kN>
  HWY_INLINE F64s<kN> operator()(const F64s<kN>& x, const F64s<kN>& gamma, const F64s<kN>& beta) const {
    return x_hat(x) * gamma + beta;
  }
};

// ---------------------------------------------------------------- a block of columns of one row
// kFinite: gamma and beta are, so that no NaN arises in a plain row.
template <bool kFinite, class V>
HWY_INLINE V finished(const V& v) {
  if constexpr (kFinite) return v;
  else return canonical(v);
}
template <bool kFinite, class Finish, class T>
HWY_INLINE auto finished_part(const Finish& finish, const T* x, const Compute<T>* HWY_RESTRICT gamma, const Compute<T>* HWY_RESTRICT beta) {
  constexpr size_t kN = kPartVectors;
  return finished<kFinite>(finish(load<kN>(x), load<kN>(gamma), load<kN>(beta)));
}
template <bool kFinite, bool kStream = false, class Finish, class T, class O>
HWY_INLINE void finish_block(const Finish& finish, const T* x, O* y, const Compute<T>* HWY_RESTRICT gamma,
                             const Compute<T>* HWY_RESTRICT beta, size_t n) {
  size_t i = 0;
  if constexpr (sizeof(O) == 4 && sizeof(T) == 4) {
    // Four are loaded before any is stored: where rows start anywhere in a line and arrays at the same place of a page, as large ones
    // do, a load has the last bits of the address of a store just before it, and waits (Zen 4: 9 x 4099 9 % faster, 7 x 65552 5 %).
    constexpr size_t kTogether = 4;
    for (; i + kTogether * kPartLanes <= n; i += kTogether * kPartLanes) {
      F32Part out[kTogether];
      TRUENORM_UNROLL
      for (size_t k = 0; k < kTogether; ++k) {
        const size_t at = i + k * kPartLanes;
        out[k] = finished_part<kFinite>(finish, x + at, gamma + at, beta + at);
      }
      TRUENORM_UNROLL
      for (size_t k = 0; k < kTogether; ++k) put<kStream>(out[k], y + i + k * kPartLanes);
    }
  }
  for (; i + kLanes <= n; i += kLanes) {
    TRUENORM_UNROLL
    for (size_t k = 0; k < kParts; ++k) {
      const size_t at = i + k * kPartLanes;
      put<kStream>(finished_part<kFinite>(finish, x + at, gamma + at, beta + at), y + at);
    }
  }
  if (i < n) store_n(finished<kFinite>(finish(load_n(x + i, n - i), load_n(gamma + i, n - i), load_n(beta + i, n - i))), y + i, n - i);
}

template <class T, class O>
HWY_NOINLINE void finish_row(const NarrowRow& row, const T* x, O* y, const float* gamma, const float* beta, size_t n) {
  if (row.kind == RowKind::Plain) return finish_block<false>(PlainFinish(row), x, y, gamma, beta, n);
  finish_block<false>(ExactFinish(row), x, y, gamma, beta, n);
}
inline HWY_NOINLINE void finish_row(const WideRow& row, const double* x, double* y, const double* gamma, const double* beta, size_t n) {
  if (row.kind == RowKind::Plain) return finish_block<false>(WideFinish<false>(row), x, y, gamma, beta, n);
  finish_block<false>(WideFinish<true>(row), x, y, gamma, beta, n);
}

// ---------------------------------------------------------------- statistics handed back
HWY_INLINE double public_mean(const NarrowRow& row) { return row.mean; }
HWY_INLINE double public_mean(const WideRow& row) { return row.mean + row.mean_lo; }

// A NaN as x86 and ARM make them, made canonical.
HWY_INLINE double canonical(double v) { return v == v ? v : static_cast<double>(NAN); }

template <class Row>
HWY_INLINE void store_statistics(const ForwardTask& task, int64_t r, const Row& row) {
  if (task.mean) task.mean[r] = canonical(public_mean(row));
  if (task.var) task.var[r] = canonical(row.var);
  if (task.rstd) task.rstd[r] = canonical(row.rstd);
}
HWY_INLINE bool wants_statistics(const ForwardTask& task) { return task.mean || task.var || task.rstd; }
template <class Saved>
HWY_INLINE void store_record(const ForwardTask& task, int64_t r, const Saved& saved) {
  memcpy(static_cast<char*>(task.saved) + r * static_cast<int64_t>(sizeof(saved)), &saved, sizeof(saved));
}

// ---------------------------------------------------------------- rows
// A few rows at a time: their statistics, then block by block of columns their elements, so that a block of gamma and
// beta is converted and brought into the cache once for all of them. The rows stay in the cache meanwhile.
constexpr int64_t kGroupBytes = int64_t{1} << 16;
// How far beyond the rows at work short ones are fetched: enough for memory to answer, near enough for L2 to hold it.
constexpr int64_t kAheadBytes = int64_t{1} << 13;
// The longest row that is fetched while the one before it is at work: a longer one does not stay in a core's caches until it is
// used (16 x 1048576: 26 GB/s in place of 28).
constexpr int64_t kMostFetchedBytes = int64_t{1} << 19;
template <class T>
HWY_INLINE int64_t group_rows(int64_t d) {
  const int64_t fit = kGroupBytes / (d * static_cast<int64_t>(sizeof(T)));
  return HWY_MIN(kBatch, HWY_MAX(fit, int64_t{1}));
}

// A block of columns of a plain row with finite parameters, around the caches from the first whole line on.
template <class Finish, class T, class O>
HWY_INLINE void stream_block(const Finish& finish, const T* x, O* y, const float* gamma, const float* beta, size_t n) {
  const size_t head = HWY_MIN(before_stream(y), n);
  if (head) finish_block<true>(finish, x, y, gamma, beta, head);
  if (head < n) finish_block<true, true>(finish, x + head, y + head, gamma + head, beta + head, n - head);
}

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_FORWARD_INL_H_
