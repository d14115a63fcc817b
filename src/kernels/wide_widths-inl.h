// What is made of float64 rows side by side, and how such a row is read and summed, by its width.
#if defined(TRUENORM_WIDE_WIDTHS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_WIDE_WIDTHS_INL_H_
#undef TRUENORM_WIDE_WIDTHS_INL_H_
#else
#define TRUENORM_WIDE_WIDTHS_INL_H_
#endif

#include "forward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR  // whose vectors have one lane
constexpr size_t kLineLanes = kStreamAlign / sizeof(double);

// Plain rows side by side, as vectors make them. Bit k of `plain`: these sums were enough for row k, as row_statistics() decides.
struct WideBatch {
  alignas(64) double hi[kBatch], lo[kBatch], var[kBatch], rstd[kBatch];
  WideRow other[kBatch];  // rows for which they were not
  uint32_t plain;
  int64_t first;
};
HWY_INLINE WideRow centred_row(double hi) {  // as far as its sums need it
  WideRow row{};
  row.hi = hi;
  row.kind = RowKind::Plain;
  return row;
}
HWY_INLINE WideRow plain_row(const WideBatch& batch, size_t k) {  // as far as its finish needs it
  WideRow row = centred_row(batch.hi[k]);
  row.lo = batch.lo[k];
  row.r = batch.rstd[k];
  return row;
}

// Partial sums of a row of kVectors vectors. A lane's first addition, to +0, is left out: it makes a difference only where all
// that is added is -0, in constant rows, which are not plain.
template <size_t kVectors>
HWY_INLINE VF64 partial_sum(const VF64 (&x)[kVectors]) {
  F64x16 s;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kVectors; ++i) s.v[i % kF64Vectors] = i < kF64Vectors ? x[i] : hn::Add(s.v[i % kF64Vectors], x[i]);
  return fold_vectors<HWY_MIN(kVectors, kF64Vectors)>(s);
}

// Rows of few vectors, of which the last may be a part of one: without loops and ends, which cost more than their features.
// Whole ones: kVectors vectors, every lane a feature. kVectors 0: rows of any number, sixteen at a time.
template <size_t kVectors_, bool kWhole_>
struct WideWidth {
  static constexpr size_t kVectors = kVectors_, kLastAt = (kVectors - 1) * kF64Lanes;
  static constexpr bool kWhole = kWhole_;
  size_t n;

  HWY_INLINE hn::Mask<F64> last() const { return hn::FirstN(F64(), n - kLastAt); }
  HWY_INLINE void load(const double* HWY_RESTRICT x, VF64 (&v)[kVectors]) const {
    TRUENORM_UNROLL
    for (size_t i = 0; i < kVectors; ++i)
      v[i] = kWhole || i + 1 < kVectors ? hn::LoadU(F64(), x + i * kF64Lanes) : hn::MaskedLoad(last(), F64(), x + i * kF64Lanes);
  }
  HWY_INLINE VF64 sum(const double* x, int64_t ahead) const {
    if (ahead) fetch(x + ahead);
    VF64 v[kVectors];
    load(x, v);
    return partial_sum(v);
  }
  HWY_INLINE Partial centred_sums(const double* x, const WideRow& row) const {
    VF64 c[kVectors], square[kVectors];
    load(x, c);
    TRUENORM_UNROLL
    for (size_t i = 0; i < kVectors; ++i) {
      c[i] = centred<false>(c[i], row);
      if (!kWhole && i + 1 == kVectors) c[i] = hn::IfThenElseZero(last(), c[i]);
      square[i] = hn::Mul(c[i], c[i]);
    }
    return {partial_sum(c), partial_sum(square)};
  }
  HWY_INLINE void fetch(const double* x) const {
    TRUENORM_UNROLL
    for (size_t i = 0; i < kVectors * kF64Lanes; i += kLineLanes) __builtin_prefetch(x + i, 0, 3);
  }
};
struct AnyWideWidth {
  static constexpr size_t kVectors = 0;
  size_t n;

  HWY_INLINE VF64 sum(const double* x, int64_t ahead) const { return segment_wide_partial_sum(x, n, 1.0, ahead); }
  HWY_INLINE Partial centred_sums(const double* x, const WideRow& row) const { return segment_centred_partial_sums<false>(x, n, row); }
  HWY_INLINE void fetch(const double* x) const {
    for (size_t i = 0; i < n; i += kLineLanes) __builtin_prefetch(x + i, 0, 3);
  }
};
#endif  // HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_WIDE_WIDTHS_INL_H_
