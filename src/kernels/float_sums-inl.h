// Sums over float32 and float16 rows in the order of sums-inl.h, in vectors of another width. float16 numbers are first stored as
// float32, some at a time: float64 is made from memory without shuffles (forward, 512 x 768, Zen 4: 1.12 times as fast).
#if defined(TRUENORM_FLOAT_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_FLOAT_SUMS_INL_H_
#undef TRUENORM_FLOAT_SUMS_INL_H_
#else
#define TRUENORM_FLOAT_SUMS_INL_H_
#endif

#include <type_traits>

#include "kernels.h"
#include "lanes-inl.h"
#include "memory-inl.h"
#include "sums-inl.h"
#include "types.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

// So many are stored at a time.
constexpr size_t kFloats = 128;

// Which rows are summed so: in the caches, where the CPU executes 512 bits as two halves. (From memory, where stores wait, they would
// be 0.92 times as fast.) Those of bfloat16 have sums of float32, mostly.
template <class T>
inline constexpr bool kHasFloatSums = HWY_CAP_GE256 && std::is_same_v<T, Float16>;
// Long float32 rows, wherever they are: such a CPU converts halves from memory in fewer steps (Zen 4: sums alone 58 GB/s in place of
// 44 from any cache; forward, 16384 x 4096, 1.18 times as fast, 4096 x 2048 1.15). Where L1 holds the row, or it is finished in the
// same loop as in short_rows-inl.h, they lose (100 x 1500 0.98, 3 x 300 0.94; 512 x 768 0.93).
template <class T>
inline constexpr bool kHasHalfSums = HWY_CAP_GE512 && std::is_same_v<T, float>;
template <class T>
HWY_INLINE bool wants_float_sums(const ForwardTask& task) {
  return task.machine.half_vectors && (kHasHalfSums<T> ? task.d >= 2 * kColumns : !task.traffic.past_caches);
}

// LaneSums in vectors of D.
template <class D>
class FloatSums {
  using V = hn::Vec<D>;
  using Floats = hn::Rebind<float, D>;
  static constexpr size_t kN = hn::MaxLanes(D()), kVectors = kLanes / kN;
  V s_[kVectors], q_[kVectors];

  // As fold_vectors() does: to as many lanes as F64 has.
  static HWY_INLINE VF64 folded(V (&x)[kVectors]) {
    constexpr size_t kLeft = kF64Lanes / kN;
    TRUENORM_UNROLL
    for (size_t count = kVectors / 2; count >= kLeft; count /= 2)
      TRUENORM_UNROLL
      for (size_t i = 0; i < count; ++i) x[i] = hn::Add(x[i], x[i + count]);
    if constexpr (kLeft == 1) return x[0];
#if HWY_TARGET != HWY_SCALAR
    else return hn::Combine(F64(), x[1], x[0]);
#endif
  }

 public:
  HWY_INLINE FloatSums() {
    TRUENORM_UNROLL
    for (size_t i = 0; i < kVectors; ++i) s_[i] = q_[i] = hn::Zero(D());
  }
  HWY_INLINE void add_vector(size_t i, V v) {
    s_[i] = hn::Add(s_[i], v);
    q_[i] = hn::MulAdd(v, v, q_[i]);  // an exact product
  }
  HWY_INLINE void add_sixteen(const float* HWY_RESTRICT x) {
    TRUENORM_UNROLL
    for (size_t i = 0; i < kVectors; ++i) add_vector(i, hn::PromoteTo(D(), hn::LoadU(Floats(), x + i * kN)));
  }
  // The next n elements, whole sixteens but at the end of a segment.
  template <bool kAhead>
  HWY_INLINE void add(const float* HWY_RESTRICT x, size_t n, int64_t ahead) {
    size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      if constexpr (kAhead) prefetch(x + ahead + i);
      add_sixteen(x + i);
    }
    if (i == n) return;
    hn::Vec<Floats> rest[kVectors];
    load_masked(Floats(), x + i, n - i, rest);
    TRUENORM_UNROLL
    for (size_t k = 0; k < kVectors; ++k) add_vector(k, hn::PromoteTo(D(), rest[k]));  // zeros add nothing
  }
  template <bool kAhead, class T>
  HWY_INLINE void add(const T* HWY_RESTRICT x, size_t n, int64_t ahead) {
    HWY_ALIGN float floats[kFloats];
    for (size_t begin = 0; begin < n; begin += kFloats) {
      const size_t end = HWY_MIN(begin + kFloats, n);
      size_t i = begin;
      for (; i + kLanes <= end; i += kLanes) {
        if constexpr (kAhead) prefetch(x + ahead + i);
        store(load(x + i), floats + (i - begin));
      }
      if (i < end) store(load_n(x + i, end - i), floats + (i - begin));  // zeros add nothing
      for (i = begin; i < end; i += kLanes) add_sixteen(floats + (i - begin));
    }
  }
  HWY_INLINE Partial partial() { return {folded(s_), folded(q_)}; }
};

template <class D, class T>
HWY_INLINE Partial segment_float_sums(const T* HWY_RESTRICT x, size_t n, int64_t ahead) {
  FloatSums<D> sums;
  if (ahead) sums.template add<true>(x, n, ahead);
  else sums.template add<false>(x, n, 0);
  return sums.partial();
}

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_FLOAT_SUMS_INL_H_
