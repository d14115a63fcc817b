// How a short row is summed and finished: what short_rows-inl.h needs of a type.
#if defined(TRUENORM_ROW_METHODS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_ROW_METHODS_INL_H_
#undef TRUENORM_ROW_METHODS_INL_H_
#else
#define TRUENORM_ROW_METHODS_INL_H_
#endif

#include <type_traits>

#include "float_sums-inl.h"
#include "forward-inl.h"
#include "quick-inl.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

// ---------------------------------------------------------------- the two ways of a row
// What a row's sums and finish are made of. Narrow: float64 sums, and rows whose plain sums were not enough are exact. D: the vectors
// of FloatSums; void: of LaneSums.
template <class T_, class O_, class D = void>
struct NarrowRows {
  using T = T_;
  using O = O_;
  using Finish = PlainFinish;
  static constexpr bool kQuick = false;
  static constexpr bool kAnyStart = true;  // any element may be the first of the streamed ones

  // n columns of a row finished, and later_n of a later row summed.
  template <bool kStream, bool kAhead>
  static HWY_INLINE Partial finish_and_sum(const Finish& finish, const T* x, O* y, const float* HWY_RESTRICT gamma,
                                            const float* HWY_RESTRICT beta, size_t n, const T* later, size_t later_n, int64_t ahead) {
    constexpr size_t kN = kPartVectors;
    if constexpr (!std::is_void_v<D>) return finish_and_add<kStream, kAhead>(finish, x, y, gamma, beta, n, later, later_n, ahead);
    LaneSums sums{fill(0.0), fill(0.0)};
    size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      if constexpr (kAhead) prefetch(later + ahead + i);
      TRUENORM_UNROLL
      for (size_t part = 0; part < kParts; ++part) {
        const size_t at = i + part * kPartLanes;
        put<kStream>(finish(load<kN>(x + at), load<kN>(gamma + at), load<kN>(beta + at)), y + at);
        sums.add(part, load_f64<kN>(later + at));
      }
    }
    size_t k = i;
    for (; k + kLanes <= later_n; k += kLanes) sums.add_sixteen(later + k);
    if (k < later_n) sums.add(load_f64_n(later + k, later_n - k));
    if (i < n) store_n(finish(load_n(x + i, n - i), load_n(gamma + i, n - i), load_n(beta + i, n - i)), y + i, n - i);
    return partial(sums);
  }
  template <bool kStream, bool kAhead>
  static HWY_INLINE Partial finish_and_add(const Finish finish, const T* x, O* y, const float* HWY_RESTRICT gamma,
                                           const float* HWY_RESTRICT beta, size_t n, const T* later, size_t later_n, int64_t ahead) {
    FloatSums<D> sums;
    HWY_ALIGN float floats[kFloats];
    const size_t whole = n / kLanes * kLanes;
    for (size_t begin = 0; begin < whole; begin += kFloats) {
      const size_t end = HWY_MIN(begin + kFloats, whole);
      for (size_t i = begin; i < end; i += kLanes) {
        if constexpr (kAhead) prefetch(later + ahead + i);
        TRUENORM_UNROLL
        for (size_t part = 0; part < kParts; ++part) {
          const size_t at = i + part * kPartLanes;
          put<kStream>(finish(load<kPartVectors>(x + at), load<kPartVectors>(gamma + at), load<kPartVectors>(beta + at)), y + at);
          store(load<kPartVectors>(later + at), floats + (at - begin));
        }
      }
      for (size_t i = begin; i < end; i += kLanes) sums.add_sixteen(floats + (i - begin));
    }
    sums.template add<false>(later + whole, later_n - whole, 0);
    if (whole < n)
      store_n(finish(load_n(x + whole, n - whole), load_n(gamma + whole, n - whole), load_n(beta + whole, n - whole)), y + whole, n - whole);
    return sums.partial();
  }
  // The same for rows of kCount whole parts.
  template <size_t kCount, bool kStream, bool kAhead>
  static HWY_INLINE Partial finish_and_sum_parts(const Finish& finish, const T* x, O* y, const float* HWY_RESTRICT gamma,
                                                 const float* HWY_RESTRICT beta, const T* later, int64_t ahead) {
    constexpr size_t kN = kPartVectors;
    LaneSums sums;
    TRUENORM_UNROLL
    for (size_t k = 0; k < kCount; ++k) {
      const size_t at = k * kPartLanes;
      put<kStream>(finish(load<kN>(x + at), load<kN>(gamma + at), load<kN>(beta + at)), y + at);
      if constexpr (kAhead)
        if (k % kParts == 0) prefetch(later + ahead + at);
      sums.add_of_row(k, load_f64<kN>(later + at));
    }
    return partial<kCount>(sums);
  }
  static HWY_INLINE Partial segment_sums(const T* x, size_t n, int64_t ahead) {
    if constexpr (!std::is_void_v<D>) return segment_float_sums<D>(x, n, ahead);
    else return segment_partial_sums(x, n, ahead);
  }
  template <bool kStream>
  static HWY_INLINE void finish_columns(const Finish& finish, const T* x, O* y, const float* gamma, const float* beta, size_t n) {
    finish_block<true, kStream>(finish, x, y, gamma, beta, n);
  }
  static HWY_INLINE NarrowRow other_row(const T* x, const NarrowBatch& batch, size_t k, int64_t d, double eps) {
    return exact_row(x, d, eps, {batch.sum[k], batch.square_sum[k]});
  }
};

// bfloat16: float32 sums, and rows for which they were not enough are narrow ones. gamma and beta come split.
struct QuickRows {
  using T = BFloat16;
  using O = BFloat16;
  using Finish = QuickFinish;
  static constexpr bool kQuick = true;
  static constexpr bool kAnyStart = false;  // pairs and split parameters cannot be shifted

  template <bool kStream, bool kAhead>
  static HWY_INLINE Partial finish_and_sum(const Finish& finish, const T* x, O* y, const float* HWY_RESTRICT gamma,
                                            const float* HWY_RESTRICT beta, size_t n, const T* later, size_t, int64_t ahead) {
    QuickSums sums;
    size_t i = 0;
    for (; i + kPairLanes <= n; i += kPairLanes) {
      put<kStream>(finish(load_pairs(x + i), load_split(gamma + i), load_split(beta + i)), y + i);
      if constexpr (kAhead) prefetch(later + ahead + i);
      sums.add(load_pairs(later + i));
    }
    if (i < n) {
      sums.add(load_pairs_n(later + i, n - i));
      store_pairs_n(finish(load_pairs_n(x + i, n - i), load_split(gamma + i), load_split(beta + i)), y + i, n - i);
    }
    return sums.partial();
  }
  static HWY_INLINE Partial segment_sums(const T* x, size_t n, int64_t ahead) { return quick_segment_sums(x, n, ahead); }
  template <bool kStream>
  static HWY_INLINE void finish_columns(const Finish& finish, const T* x, O* y, const float* gamma, const float* beta, size_t n) {
    quick_block<kStream>(finish, x, y, gamma, beta, n);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_ROW_METHODS_INL_H_
