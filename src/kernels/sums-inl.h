// Sums over a row, in the order of docs/numerics.md: lanes, segments, and the tree that merges them.
#if defined(TRUENORM_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_SUMS_INL_H_
#undef TRUENORM_SUMS_INL_H_
#else
#define TRUENORM_SUMS_INL_H_
#endif

#include "lanes-inl.h"
#include "memory-inl.h"
#include "types.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

HWY_INLINE Sums merge(const Sums& l, const Sums& r) { return {l.a + r.a, l.b + r.b}; }

// Knuth's two-sum keeps what is lost of c*c, so that the variance of a float64 row is as good at any length.
HWY_INLINE CentredTotal merge(const CentredTotal& l, const CentredTotal& r) {
  const Sums sums = merge(l.sums, r.sums);
  const double part = sums.b - l.sums.b;
  return {sums, (l.error + r.error) + ((l.sums.b - (sums.b - part)) + (r.sums.b - part))};
}
HWY_INLINE Sums value(const CentredTotal& total) { return {total.sums.a, total.sums.b + total.error}; }

// The binary tree over parts of equal length whose left child is the largest power of two of parts: parts are pushed in
// order, and equal subtrees merge at once. The stack holds one subtree per bit of the number of parts.
template <class Node>
class Tree {
 public:
  HWY_INLINE void push(const Node& part) {
    Node node = part;
    for (uint64_t bit = count_; bit & 1; bit >>= 1) node = merge(stack_[--height_], node);
    stack_[height_++] = node;
    ++count_;
  }
  HWY_INLINE Node total() const {
    Node node = stack_[height_ - 1];
    for (int i = height_ - 2; i >= 0; --i) node = merge(stack_[i], node);
    return node;
  }

 private:
  Node stack_[48];  // 2^48 segments are more than memory holds
  uint64_t count_ = 0;
  int height_ = 0;
};

// Sums of x and x*x of one segment in sixteen lanes of float64, where both x and x*x are exact.
struct LaneSums {
  F64x16 s, q;
  HWY_INLINE void add(const F64x16& v) {
    s = s + v;
    q = add_exact_product(v, v, q);
  }
  HWY_INLINE void add(size_t k, const F64Part& v) {  // the k-th part of a sixteen
    set_part(s, k, part(s, k) + v);
    set_part(q, k, add_exact_product(v, v, part(q, k)));
  }
  // Of the k-th part of a row of few whole parts. A lane's first addition, to +0, is left out: it makes a difference only where
  // all of a row are -0, and such a row is exact, whose sums of c are +0. (8 features, AVX2, with the fold of what is there only:
  // forward of float16 1.13 times as fast, of bfloat16 1.09.)
  HWY_INLINE void add_of_row(size_t k, const F64Part& v) {
    if (k >= kParts) return add(k % kParts, v);
    set_part(s, k, v);
    set_part(q, k, v * v);
  }
  template <class T>
  HWY_INLINE void add_sixteen(const T* HWY_RESTRICT x) {
    TRUENORM_UNROLL
    for (size_t k = 0; k < kParts; ++k) add(k, load_f64<kPartVectors>(x + k * kPartLanes));
  }
};
// Such sums folded as far as whole vectors go, and to the end.
struct Partial {
  VF64 s, q;
};
template <size_t kPresentParts = kParts>  // others have had nothing added to them
HWY_INLINE Partial partial(const LaneSums& sums) {
  constexpr size_t kPresent = HWY_MIN(kPresentParts, kParts) * kPartVectors * kWidth;
  return {fold_vectors<kPresent>(sums.s), fold_vectors<kPresent>(sums.q)};
}
HWY_INLINE Sums folded(const Partial& partial) { return {fold_vector(partial.s), fold_vector(partial.q)}; }

// ahead: the distance in elements to what is fetched meanwhile; 0: nothing is.
template <class T>
HWY_INLINE Partial segment_partial_sums(const T* HWY_RESTRICT x, size_t n, int64_t ahead = 0) {
  LaneSums sums{fill(0.0), fill(0.0)};
  size_t i = 0;
  if (ahead)
    for (; i + kLanes <= n; i += kLanes) {
      prefetch(x + ahead + i);
      sums.add_sixteen(x + i);
    }
  for (; i + kLanes <= n; i += kLanes) sums.add_sixteen(x + i);
  if (i < n) sums.add(load_f64_n(x + i, n - i));  // zeros add nothing: a sum that began at +0 is never -0
  return partial(sums);
}

// The same of kCount whole parts.
template <size_t kCount, class T>
HWY_INLINE Partial part_sums(const T* HWY_RESTRICT x) {
  LaneSums sums;
  TRUENORM_UNROLL
  for (size_t k = 0; k < kCount; ++k) sums.add_of_row(k, load_f64<kPartVectors>(x + k * kPartLanes));
  return partial<kCount>(sums);
}

// Sums of c and c*c.
struct CentredSums {
  F64x16 s, q;
  HWY_INLINE CentredSums() : s(fill(0.0)), q(s) {}
  HWY_INLINE void add(const F64x16& c) {
    s = s + c;
    q = q + c * c;
  }
  HWY_INLINE void add_n(const F64x16& c, size_t n) {  // what is not there counts 0 after centring
    add(first_n(c, n));
  }
  HWY_INLINE Partial partial() const { return {fold_vectors(s), fold_vectors(q)}; }
  HWY_INLINE Sums folded() const { return truenorm::HWY_NAMESPACE::folded(partial()); }
};

// c = x - hi of one segment of a float32 or half row.
template <class T>
HWY_INLINE Sums segment_centred_sums(const T* HWY_RESTRICT x, size_t n, float hi) {
  const F64x16 shift = fill(static_cast<double>(hi));
  CentredSums sums;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) sums.add(load_f64(x + i) - shift);
  if (i < n) sums.add_n(load_f64_n(x + i, n - i) - shift, n - i);
  return sums.folded();
}

// c = (x*pre - hi)*post of one segment of a float64 row: sums of c and c*c.
template <bool kScaled>
HWY_INLINE VF64 centred(VF64 x, const WideRow& row) {
  const F64 f64;
  if constexpr (kScaled)
    return hn::Mul(hn::Sub(hn::Mul(x, hn::Set(f64, row.pre)), hn::Set(f64, row.hi)), hn::Set(f64, row.post));
  return hn::Sub(x, hn::Set(f64, row.hi));
}
template <bool kScaled, size_t kN>
HWY_INLINE F64s<kN> centred(F64s<kN> x, const WideRow& row) {
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN * kWidth; ++i) x.v[i] = centred<kScaled>(x.v[i], row);
  return x;
}
template <bool kScaled>
HWY_INLINE Partial segment_centred_partial_sums(const double* HWY_RESTRICT x, size_t n, const WideRow& row) {
  CentredSums sums;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) sums.add(centred<kScaled>(load(x + i), row));
  if (i < n) sums.add_n(centred<kScaled>(load_n(x + i, n - i), row), n - i);
  return sums.partial();
}
template <bool kScaled>
HWY_INLINE Sums segment_centred_sums(const double* HWY_RESTRICT x, size_t n, const WideRow& row) {
  return folded(segment_centred_partial_sums<kScaled>(x, n, row));
}
HWY_INLINE VF64 segment_wide_partial_sum(const double* HWY_RESTRICT x, size_t n, double pre, int64_t ahead) {
  const F64x16 scale = fill(pre);
  F64x16 s = fill(0.0);
  size_t i = 0;
  if (ahead)
    for (; i + kLanes <= n; i += kLanes) {
      prefetch(x + ahead + i);
      s = s + load(x + i) * scale;
    }
  for (; i + kLanes <= n; i += kLanes) s = s + load(x + i) * scale;
  if (i < n) s = s + load_n(x + i, n - i) * scale;
  return fold_vectors(s);
}
HWY_INLINE Sums segment_wide_sums(const double* HWY_RESTRICT x, size_t n, double pre, int64_t ahead) {
  return {fold_vector(segment_wide_partial_sum(x, n, pre, ahead)), 0.0};
}

// Sums over n elements that start at a segment's beginning. Inputs of up to 2^k segments, or the end of a row, are
// subtrees of the row's tree: so threads may share a long row.
template <class T>
HWY_INLINE Sums raw_sums(const T* HWY_RESTRICT x, int64_t n, int64_t ahead = 0) {
  if (n <= kNarrowSegment) return folded(segment_partial_sums(x, static_cast<size_t>(n), ahead));
  Tree<Sums> tree;
  for (int64_t i = 0; i < n; i += kNarrowSegment)
    tree.push(folded(segment_partial_sums(x + i, static_cast<size_t>(HWY_MIN(kNarrowSegment, n - i)), ahead)));
  return tree.total();
}
template <class T>
HWY_NOINLINE Sums centred_sums(const T* HWY_RESTRICT x, int64_t n, float hi) {
  Tree<Sums> tree;
  for (int64_t i = 0; i < n; i += kNarrowSegment)
    tree.push(segment_centred_sums(x + i, static_cast<size_t>(HWY_MIN(kNarrowSegment, n - i)), hi));
  return tree.total();
}
HWY_INLINE double wide_sum(const double* HWY_RESTRICT x, int64_t n, double pre, int64_t ahead = 0) {
  Tree<Sums> tree;
  for (int64_t i = 0; i < n; i += kWideSegment)
    tree.push(segment_wide_sums(x + i, static_cast<size_t>(HWY_MIN(kWideSegment, n - i)), pre, ahead));
  return tree.total().a;
}
inline HWY_NOINLINE CentredTotal centred_total(const double* HWY_RESTRICT x, int64_t n, const WideRow& row) {
  Tree<CentredTotal> tree;
  const bool scaled = row.pre != 1.0 || row.post != 1.0;
  for (int64_t i = 0; i < n; i += kWideSegment) {
    const size_t count = static_cast<size_t>(HWY_MIN(kWideSegment, n - i));
    tree.push({scaled ? segment_centred_sums<true>(x + i, count, row) : segment_centred_sums<false>(x + i, count, row), 0.0});
  }
  return tree.total();
}
HWY_INLINE Sums centred_sums(const double* HWY_RESTRICT x, int64_t n, const WideRow& row) { return value(centred_total(x, n, row)); }

HWY_INLINE double first_element(const float* x) { return static_cast<double>(*x); }
HWY_INLINE double first_element(const double* x) { return *x; }
HWY_INLINE double first_element(const BFloat16* x) {
  const uint32_t bits = static_cast<uint32_t>(x->bits) << 16;
  float value;
  memcpy(&value, &bits, sizeof(value));
  return static_cast<double>(value);
}
HWY_INLINE double first_element(const Float16* x) {  // of a finite row
  // No branch on the sign, which nothing can predict: that takes as long as a row of 8.
  const uint32_t extended = static_cast<uint32_t>(static_cast<int32_t>(static_cast<int16_t>(x->bits)));
  const uint32_t bits = extended << 13 & 0x8FFFE000u;
  float value;
  memcpy(&value, &bits, sizeof(value));
  return static_cast<double>(value) * 0x1p112;
}

// The first elements of as many rows as there are lanes. Not by way of memory: a wide load waits for narrow stores.
#if HWY_CAP_GE256
// Four of a half type are put together as integers and converted as one (8 features, AVX2, records stored by vectors, too: forward
// with records, bfloat16 1.14 times as fast; float16, whose sign was a branch, 1.6 times, dx alone 1.2 times).
template <class T>
HWY_INLINE uint64_t four_words(const T* x, int64_t x_stride) {
  const auto word = [&](int64_t k) { return static_cast<uint64_t>(x[k * x_stride].bits) << (16 * k); };
  return (word(0) | word(1)) | (word(2) | word(3));
}
HWY_INLINE hn::Vec<hn::CappedTag<float, 4>> four_elements(const Float16* x, int64_t x_stride) {
  const hn::CappedTag<uint64_t, 1> words;
  const hn::CappedTag<float, 4> f32;
  return hn::PromoteTo(f32, hn::BitCast(hn::Rebind<hwy::float16_t, decltype(f32)>(), hn::Set(words, four_words(x, x_stride))));
}
HWY_INLINE hn::Vec<hn::CappedTag<float, 4>> four_elements(const BFloat16* x, int64_t x_stride) {
  const hn::CappedTag<uint64_t, 1> words;
  const hn::CappedTag<float, 4> f32;
  const hn::RebindToUnsigned<decltype(f32)> u32;
  const auto u = hn::PromoteTo(u32, hn::BitCast(hn::Rebind<uint16_t, decltype(f32)>(), hn::Set(words, four_words(x, x_stride))));
  return hn::BitCast(f32, hn::ShiftLeft<16>(u));
}
#endif
template <class D, class T>
HWY_INLINE hn::Vec<D> first_elements(D f64, const T* x, HWY_MAYBE_UNUSED int64_t x_stride) {
  constexpr size_t kRows = hn::MaxLanes(D());
  if constexpr (kRows == 1) {
    return hn::Set(f64, first_element(x));
#if HWY_CAP_GE256
  } else if constexpr (kRows == 4 && sizeof(T) == 2) {
    return hn::PromoteTo(f64, four_elements(x, x_stride));
#endif
#if HWY_TARGET != HWY_SCALAR
  } else if constexpr (kRows == 2) {
    return hn::OddEven(hn::Set(f64, first_element(x + x_stride)), hn::Set(f64, first_element(x)));
  } else {
    const hn::Half<D> half;
    return hn::Combine(f64, first_elements(half, x + static_cast<int64_t>(kRows / 2) * x_stride, x_stride),
                       first_elements(half, x, x_stride));
#endif
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_SUMS_INL_H_
