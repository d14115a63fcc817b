// Backward of rows that are few whole vectors, in batches and steps: from records scalars, from features sums, from sums scalars,
// then the columns. Each step is made of all rows before the next, so that their chains of dependent operations, which take longer
// than the operations of such a row, run side by side; what a step leaves to the next is stored by vectors, not number by number.
// Nothing is fetched ahead: the processor does it for rows that follow one another, and asking costs as much as a tenth of a row.
// (float32, Zen 4, GB/s of all gradients and of dx alone, in place of groups of rows as others have them: 1000000 x 8 14.5 and 17, not
// 6.5 and 8; 100000 x 24 20 and 28, not 14.5 and 18; 65536 x 64 28 and 41, not 27 and 38; without records 1000000 x 8 8.4, not 3.1.)
#if defined(TRUENORM_GRADIENT_BATCHES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_GRADIENT_BATCHES_INL_H_
#undef TRUENORM_GRADIENT_BATCHES_INL_H_
#else
#define TRUENORM_GRADIENT_BATCHES_INL_H_
#endif

#include <math.h>

#include <type_traits>

#include "gradient-inl.h"
#include "gradient_lanes-inl.h"
#include "gradient_rows-inl.h"
#include "gradient_sums-inl.h"
#include "kernels.h"
#include "lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {
#if HWY_CAP_GE256  // where there are rows in parts

// Whether the g of each row fit, by sizes_of(), seen lane by lane for all of some rows: a lane that is tiny and not zero makes it
// false, whatever the other lanes of its row are. Row by row it costs 6 % of 8 features.
template <size_t kVectors>
class SizesOfRows {
  using U32 = hn::RebindToUnsigned<F32>;
  hn::Vec<U32> least_;  // of the magnitudes - 1, so that 0 is largest

 public:
  HWY_INLINE SizesOfRows() : least_(hn::Set(U32(), ~0u)) {}
  HWY_INLINE void add(const F32x16& g_bits) {
    TRUENORM_UNROLL
    for (size_t i = 0; i < kVectors; ++i)
      least_ = hn::Min(least_, hn::Sub(hn::BitCast(U32(), hn::Abs(g_bits.v[i])), hn::Set(U32(), 1u)));
  }
  HWY_INLINE bool all_fit() const {
    const auto limit = hn::Set(U32(), kLeastNotTiny - 1);
    return hn::AllTrue(U32(), hn::Eq(hn::Min(least_, limit), limit));
  }
};

// Features of a batch of a half type are widened once: the sums leave c and dy to the columns, where they are also widened to
// float64 as they are loaded, which needs no shuffles (AVX2, all gradients: bfloat16, 8 features 7 %, 24 features 13 % faster;
// float16, 24 features 4 %).
template <class T>
inline constexpr bool kWidens = sizeof(T) == 2;
template <size_t kFloats>
struct WideFeatures {
  HWY_ALIGN float c[kFloats], dy[kFloats];
  HWY_INLINE float* c_at(size_t i) { return c + i; }
  HWY_INLINE float* dy_at(size_t i) { return dy + i; }
};
template <>
struct WideFeatures<0> {
  HWY_INLINE float* c_at(size_t) { return nullptr; }
  HWY_INLINE float* dy_at(size_t) { return nullptr; }
};

// Whether a g could be too small for its row to be plain. A float16 dy is 0 or at least 2^-24, so that none is where no gamma is
// below 2^-39 and not 0: then nobody looks at them (dx alone, 8 and 24 features, AVX2: 4 to 6 % faster).
template <class T>
HWY_INLINE bool g_may_be_tiny(const float* HWY_RESTRICT gamma, size_t d) {
  if constexpr (!std::is_same_v<T, Float16>) return true;
  bool tiny = false;
  for (size_t i = 0; i < d; ++i) tiny |= gamma[i] != 0.0f && fabsf(gamma[i]) < 0x1p-39f;
  return tiny;
}

// A batch on its way: what one step leaves to the next.
template <class T, size_t kCount>
struct GradBatch {
  using Sums = PartSums<T, kCount>;
  HWY_ALIGN double records[2 * kGradBatch], lo[kGradBatch], rstd[kGradBatch];
  HWY_ALIGN float a[kGradBatch * Sums::kStored], b[kGradBatch * Sums::kStored];
  GradScalars scalars;
  static constexpr int64_t kRows = kCount * kPartLanes <= 16 ? kGradBatch : kBatch;
  WideFeatures<kWidens<T> ? static_cast<size_t>(kRows) * Sums::kFeatures : 0> wide;
};

// Records where there are none, as forward makes them, of the rows whose bits are returned: plain ones.
template <class T, size_t kCount>
HWY_INLINE uint32_t batch_records(const BackwardTask& task, int64_t first, size_t rows, double inv_d, double* HWY_RESTRICT records) {
  const F64 f64;
  NarrowBatch eight;
  uint32_t plain = 0;
  const T* x = static_cast<const T*>(task.x) + first * task.x_stride;
  for (size_t k = 0; k < rows; k += kBatch) {
    for (size_t i = 0; i < kBatch; i += kF64Lanes) {
      hn::Store(first_elements(f64, x, task.x_stride), f64, eight.x0 + i);
      VF64 s[kF64Lanes], q[kF64Lanes];
      for (size_t r = 0; r < kF64Lanes; ++r, x += task.x_stride) {
        const Partial sums = part_sums<kCount>(x);
        s[r] = sums.s;
        q[r] = sums.q;
      }
      hn::Store(fold_rows(s), f64, eight.sum + i);
      hn::Store(fold_rows(q), f64, eight.square_sum + i);
    }
    scalars_from_sums<false>(inv_d, task.eps, kBatch, eight);
    for (size_t i = 0; i < kBatch; i += kF64Lanes)
      hn::StoreInterleaved2(hn::Load(f64, eight.m + i), hn::Load(f64, eight.rstd + i), f64, records + 2 * (k + i));
    plain |= eight.plain << k;
  }
  return plain;
}

// Records to scalars. Bits of plain rows.
template <class T, class Batch>
HWY_INLINE uint32_t batch_rows(const BackwardTask& task, int64_t first, size_t rows, const double* HWY_RESTRICT records, Batch& batch) {
  const F64 f64;
  const int64_t x_stride = task.x_stride;
  const T* x = static_cast<const T*>(task.x) + first * x_stride;
  uint32_t plain = 0;
  for (size_t k = 0; k < rows; k += kF64Lanes, x += static_cast<int64_t>(kF64Lanes) * x_stride) {
    VF64 m, rstd;
    hn::LoadInterleaved2(f64, records + 2 * k, m, rstd);
    const VF64 lo = plain_scalars(f64, hn::Add(first_elements(f64, x, x_stride), m), rstd, batch.scalars.hi + k, batch.scalars.r + k,
                                  batch.scalars.b + k);
    hn::Store(lo, f64, batch.lo + k);
    hn::Store(rstd, f64, batch.rstd + k);
    plain |= bits_of(f64, hn::Gt(rstd, hn::Zero(f64))) << k;
  }
  return plain;
}

// Sums over the features. Bits of rows whose g fits; none of eight rows if one's may not.
template <bool kSizes, class T, size_t kCount>
HWY_INLINE uint32_t batch_sums(const BackwardTask& task, const float* HWY_RESTRICT gamma, int64_t first, size_t rows,
                               GradBatch<T, kCount>& batch) {
  using Sums = PartSums<T, kCount>;
  const int64_t x_stride = task.x_stride, dy_stride = task.dy_stride;
  const T* x = static_cast<const T*>(task.x) + first * x_stride;
  const T* dy = static_cast<const T*>(task.dy) + first * dy_stride;
  float *a = batch.a, *b = batch.b;
  uint32_t fit = 0;
  for (size_t k = 0; k < rows;) {
    SizesOfRows<Sums::kUsed * kPartVectors> sizes;
    for (const size_t end = k + kBatch; k < end; ++k, x += x_stride, dy += dy_stride, a += Sums::kStored, b += Sums::kStored) {
      const F32x16 g_bits = Sums::sum(batch.scalars.hi[k], x, dy, gamma, a, b, batch.wide.c_at(k * Sums::kFeatures), batch.wide.dy_at(k * Sums::kFeatures));
      if constexpr (kSizes) sizes.add(g_bits);
    }
    fit |= (!kSizes || sizes.all_fit() ? 0xFFu : 0u) << (k - kBatch);
  }
  return fit;
}

// Sums to scalars. Bits of rows that fit.
template <class T, size_t kCount>
HWY_INLINE uint32_t batch_scalars(double inv_d, size_t rows, GradBatch<T, kCount>& batch) {
  using Sums = PartSums<T, kCount>;
  const F64 f64;
  uint32_t fit = 0;
  for (size_t k = 0; k < rows; k += kF64Lanes)
    fit |= bits_of(f64, plain_gradient_scalars(f64, Sums::folded(batch.a + k * Sums::kStored), Sums::folded(batch.b + k * Sums::kStored),
                                               hn::Load(f64, batch.lo + k), hn::Load(f64, batch.rstd + k), inv_d, batch.scalars.minus_Ar + k,
                                               batch.scalars.minus_Kr + k)) << k;
  return fit;
}

// All steps before the columns, apart from them because those are compiled four times. Bits of plain rows; none where half are not,
// which would be work for nothing.
template <class T, size_t kCount>
HWY_NOINLINE uint32_t plain_of_batch(const BackwardTask& task, const float* gamma, int64_t first, size_t rows, double inv_d,
                                     bool may_be_tiny, GradBatch<T, kCount>& batch) {
  uint32_t plain = ~0u;
  const double* records = batch.records;
  if (task.saved) records = static_cast<const double*>(task.saved) + 2 * first;
  else plain = batch_records<T, kCount>(task, first, rows, inv_d, batch.records);
  plain &= batch_rows<T>(task, first, rows, records, batch);
  if (2 * hwy::PopCount(plain) < rows) return 0;
  if constexpr (std::is_same_v<T, Float16>) {
    if (!may_be_tiny) {
      plain &= batch_sums<false>(task, gamma, first, rows, batch);
      return plain & batch_scalars<T, kCount>(inv_d, rows, batch);
    }
  }
  plain &= batch_sums<true>(task, gamma, first, rows, batch);
  return plain & batch_scalars<T, kCount>(inv_d, rows, batch);
}

// Rows [begin, end) of a batch. The totals, if there are any, are loaded and stored once.
template <size_t kCount, bool kTotals, bool kStream, class T>
HWY_INLINE void batch_columns(const BackwardTask& task, const float* HWY_RESTRICT gamma, int64_t first, size_t begin, size_t end,
                              GradBatch<T, kCount>& batch) {
  constexpr size_t kN = kPartVectors, kFeatures = PartSums<T, kCount>::kFeatures;
  F64Part dgamma[kCount], dbeta[kCount];
  if constexpr (kTotals) {
    TRUENORM_UNROLL
    for (size_t i = 0; i < kCount; ++i) {
      dgamma[i] = load<kN>(task.dgamma + i * kPartLanes);
      dbeta[i] = load<kN>(task.dbeta + i * kPartLanes);
    }
  }
  const int64_t x_stride = task.x_stride, dy_stride = task.dy_stride, dx_stride = task.dx_stride;  // a store of dx could change others
  const int64_t begin_row = first + static_cast<int64_t>(begin);
  const T* x = static_cast<const T*>(task.x) + begin_row * x_stride;
  const T* dy = static_cast<const T*>(task.dy) + begin_row * dy_stride;
  T* dx = static_cast<T*>(task.dx) + begin_row * dx_stride;
  for (size_t k = begin; k < end; ++k, x += x_stride, dy += dy_stride, dx += dx_stride) {
    const PlainGradient row(batch.scalars, k);
    const float *const c_wide = batch.wide.c_at(k * kFeatures), *const dy_wide = batch.wide.dy_at(k * kFeatures);
    TRUENORM_UNROLL
    for (size_t i = 0; i < kCount; ++i) {
      const size_t at = i * kPartLanes;
      F32Part c, g;
      F64Part dy_f64;
      if constexpr (kWidens<T>) {
        c = load<kN>(c_wide + at);
        g = load<kN>(gamma + at) * load<kN>(dy_wide + at);
        dy_f64 = load_f64<kN>(dy_wide + at);
      } else {
        c = row.c(load<kN>(x + at));
        g = load<kN>(gamma + at) * load<kN>(dy + at);
        dy_f64 = load_f64<kN>(dy + at);
      }
      const F32Part out = row.dx_of(c, g);
      if constexpr (kTotals) {
        dgamma[i] = add_exact_product(dy_f64, widen(row.x_hat_of(c)), dgamma[i]);
        dbeta[i] = dbeta[i] + dy_f64;
      }
      put<kStream>(out, dx + at);  // last: dx may be dy or x
    }
  }
  if constexpr (kTotals) {
    TRUENORM_UNROLL
    for (size_t i = 0; i < kCount; ++i) {
      store(dgamma[i], task.dgamma + i * kPartLanes);
      store(dbeta[i], task.dbeta + i * kPartLanes);
    }
  }
}

// As many eights of rows as there are, up to kGradBatch at a time (8 features: 15.8 GB/s, with 8 rows 14.1), but where these push
// one another out of L1 or what was fetched into it (24 features: 15.3, with 8 rows 21.3). Runs of plain rows have their columns
// made together; others(begin, end) makes the rest, in order. Returns the first row that is left.
template <size_t kCount, bool kTotals, bool kStream, class T, class Others>
HWY_NOINLINE int64_t gradient_batches(const BackwardTask& task, const float* gamma, const Others& others) {
  const double inv_d = 1.0 / static_cast<double>(task.d);
  const bool may_be_tiny = g_may_be_tiny<T>(gamma, static_cast<size_t>(task.d));
  GradBatch<T, kCount> batch;
  int64_t first = 0;
  while (first + kBatch <= task.rows) {
    const size_t rows = static_cast<size_t>(HWY_MIN(batch.kRows, (task.rows - first) / kBatch * kBatch));
    const uint32_t plain = plain_of_batch<T, kCount>(task, gamma, first, rows, inv_d, may_be_tiny, batch);
    for (size_t k = 0; k < rows;) {
      const size_t begin = k;
      const bool is_plain = plain >> k & 1;
      const uint32_t others_from = (is_plain ? ~plain : plain) >> k;
      k = others_from == 0 ? rows : HWY_MIN(rows, k + hwy::Num0BitsBelowLS1Bit_Nonzero32(others_from));
      if (is_plain) batch_columns<kCount, kTotals, kStream, T>(task, gamma, first, begin, k, batch);
      else others(first + static_cast<int64_t>(begin), first + static_cast<int64_t>(k));
    }
    first += static_cast<int64_t>(rows);
  }
  return first;
}
template <size_t kCount, class T, class Others>
HWY_INLINE int64_t gradient_batches(const BackwardTask& task, const float* gamma, const Others& others) {
  // Rows that follow one another fill the lines as they come.
  if (task.traffic.past_caches && task.dx_stride == task.d && before_stream(static_cast<T*>(task.dx)) == 0) {
    if (task.dgamma) return gradient_batches<kCount, true, true, T>(task, gamma, others);
    return gradient_batches<kCount, false, true, T>(task, gamma, others);
  }
  if (task.dgamma) return gradient_batches<kCount, true, false, T>(task, gamma, others);
  return gradient_batches<kCount, false, false, T>(task, gamma, others);
}
template <class T, class Others>
HWY_INLINE int64_t gradient_batches(const BackwardTask& task, Parameter<T>& gamma, const Others& others) {
  const bool has_records = task.saved || !has_quick_sums<T>(task.d);
  const int64_t parts = has_records && task.dx && !task.dgamma == !task.dbeta && (sizeof(T) > 2 || task.half_dx) ? whole_parts(task.d) : 0;
  if (parts == 0) return 0;
  const float* const gamma_row = gamma.block(0, static_cast<size_t>(task.d));
  if (parts == 1) return gradient_batches<1, T>(task, gamma_row, others);
  if (parts == 2) return gradient_batches<2, T>(task, gamma_row, others);
  if (parts == 3) return gradient_batches<3, T>(task, gamma_row, others);
  return gradient_batches<4, T>(task, gamma_row, others);
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_GRADIENT_BATCHES_INL_H_
