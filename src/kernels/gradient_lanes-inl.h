// Sums over the features of a plain row that its gradient needs: of g and of g*c, c = x - hi.
#if defined(TRUENORM_GRADIENT_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_GRADIENT_LANES_INL_H_
#undef TRUENORM_GRADIENT_LANES_INL_H_
#else
#define TRUENORM_GRADIENT_LANES_INL_H_
#endif

#include "lanes-inl.h"
#include "memory-inl.h"
#include "sums-inl.h"
#include "types.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

// Sums of g and g*c of a plain row. Elements 16 apart are added in float32 first, which halves what is to be widened.
struct PairSums {
  F64x16 a, b;
  HWY_INLINE PairSums() : a(fill(0.0)), b(a) {}
  HWY_INLINE void add(size_t k, const F32Part& g0, const F32Part& c0, const F32Part& g1, const F32Part& c1) {
    set_part(a, k, part(a, k) + widen(g0 + g1));
    set_part(b, k, part(b, k) + widen(fma(g1, c1, g0 * c0)));
  }
  HWY_INLINE void add(size_t k, const F32Part& g, const F32Part& c) {  // there is no second one
    set_part(a, k, part(a, k) + widen(g));
    set_part(b, k, part(b, k) + widen(g * c));
  }
  HWY_INLINE Partial partial() const { return {fold_vectors(a), fold_vectors(b)}; }
};
// The same for a dx of a half type, which leaves room for lanes in float32.
struct ShortSums {
  F32x16 a, b;
  HWY_INLINE ShortSums() : a(fill(0.0f)), b(a) {}
  HWY_INLINE void add(size_t k, const F32Part& g0, const F32Part& c0, const F32Part& g1, const F32Part& c1) {
    set_part(a, k, (part(a, k) + g0) + g1);
    set_part(b, k, fma(g1, c1, fma(g0, c0, part(b, k))));
  }
  HWY_INLINE void add(size_t k, const F32Part& g, const F32Part& c) {
    set_part(a, k, part(a, k) + g);
    set_part(b, k, fma(g, c, part(b, k)));
  }
  HWY_INLINE Partial partial() const { return {fold_vectors(widen(a)), fold_vectors(widen(b))}; }
};
struct PlainGradientSums {
  Partial partial;
  F32x16 gmax;
};

// The distances in elements to the rows that are fetched meanwhile; 0: none are.
struct Ahead {
  int64_t x, dy;
  HWY_INLINE bool any() const { return x != 0 || dy != 0; }
};
template <class Lanes, bool kAhead, class T, class G>
HWY_INLINE PlainGradientSums plain_segment_sums(float hi, const T* HWY_RESTRICT x, const G* HWY_RESTRICT dy,
                                                const float* HWY_RESTRICT gamma, size_t n, const Ahead& ahead) {
  constexpr size_t kN = kPartVectors;
  Lanes lanes;
  F32x16 gmax = fill(0.0f);
  const F32Part shift = fill<kN>(hi);
  size_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    if constexpr (kAhead) {
      if (ahead.x) prefetch_pair(x + ahead.x + i);
      if (ahead.dy) prefetch_pair(dy + ahead.dy + i);
    }
    TRUENORM_UNROLL
    for (size_t k = 0; k < kParts; ++k) {
      const size_t j0 = i + k * kPartLanes, j1 = j0 + kLanes;
      const F32Part g0 = load<kN>(gamma + j0) * load<kN>(dy + j0), g1 = load<kN>(gamma + j1) * load<kN>(dy + j1);
      lanes.add(k, g0, load<kN>(x + j0) - shift, g1, load<kN>(x + j1) - shift);
      set_part(gmax, k, max_abs(max_abs(part(gmax, k), g0), g1));
    }
  }
  if (i < n) {  // filled with dy = 0, which adds nothing
    const size_t first = HWY_MIN(n - i, kLanes), second = n - i - first;
    const F32x16 g0 = first < kLanes ? load_n(gamma + i, first) * load_n(dy + i, first) : load(gamma + i) * load(dy + i);
    const F32x16 x0 = first < kLanes ? load_n(x + i, first) : load(x + i);
    F32x16 g1 = fill(0.0f), x1 = fill(hi);
    if (second > 0) {
      g1 = load_n(gamma + i + kLanes, second) * load_n(dy + i + kLanes, second);
      x1 = load_n(x + i + kLanes, second);
    }
    TRUENORM_UNROLL
    for (size_t k = 0; k < kParts; ++k) lanes.add(k, part(g0, k), part(x0, k) - shift, part(g1, k), part(x1, k) - shift);
    gmax = max_abs(max_abs(gmax, g0), g1);
  }
  return {lanes.partial(), gmax};
}
// Rows of kCount whole parts, without loops and ends.
template <class Lanes, size_t kCount, class T, class G>
HWY_INLINE PlainGradientSums plain_sums_of_parts(float hi, const T* HWY_RESTRICT x, const G* HWY_RESTRICT dy, const float* HWY_RESTRICT gamma) {
  constexpr size_t kN = kPartVectors;
  Lanes lanes;
  F32x16 gmax = fill(0.0f);
  const F32Part shift = fill<kN>(hi);
  TRUENORM_UNROLL
  for (size_t i0 = 0; i0 < kCount; ++i0) {
    if (i0 / kParts % 2 == 1) continue;  // is the second of a pair
    const size_t k = i0 % kParts, i1 = i0 + kParts, j0 = i0 * kPartLanes, j1 = i1 * kPartLanes;
    const F32Part g0 = load<kN>(gamma + j0) * load<kN>(dy + j0), c0 = load<kN>(x + j0) - shift;
    set_part(gmax, k, max_abs(part(gmax, k), g0));
    if (i1 < kCount) {
      const F32Part g1 = load<kN>(gamma + j1) * load<kN>(dy + j1);
      lanes.add(k, g0, c0, g1, load<kN>(x + j1) - shift);
      set_part(gmax, k, max_abs(part(gmax, k), g1));
    } else {
      lanes.add(k, g0, c0);
    }
  }
  return {lanes.partial(), gmax};
}
template <class T, class G>
HWY_INLINE PlainGradientSums plain_segment_sums(const NarrowGrad& grad, const T* x, const G* dy, const float* gamma, size_t n,
                                                const Ahead& ahead) {
  const float hi = grad.row.hi;
  if constexpr (sizeof(T) == 2)
    if (grad.half_dx)
      return ahead.any() ? plain_segment_sums<ShortSums, true>(hi, x, dy, gamma, n, ahead) : plain_segment_sums<ShortSums, false>(hi, x, dy, gamma, n, ahead);
  return ahead.any() ? plain_segment_sums<PairSums, true>(hi, x, dy, gamma, n, ahead) : plain_segment_sums<PairSums, false>(hi, x, dy, gamma, n, ahead);
}

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_GRADIENT_LANES_INL_H_
