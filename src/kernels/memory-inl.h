// Sixteen elements between memory and vectors: the last elements of a row, stores around the caches; halves-inl.h has the
// conversions of the half types. No alignment is demanded but by stream(), and no byte outside the elements is touched.
#if defined(TRUENORM_MEMORY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_MEMORY_INL_H_
#undef TRUENORM_MEMORY_INL_H_
#else
#define TRUENORM_MEMORY_INL_H_
#endif

#include <string.h>

#include "halves-inl.h"
#include "hwy/cache_control.h"
#include "lanes-inl.h"
#include "types.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

// ---------------------------------------------------------------- loads of sixteen elements, no alignment demanded
template <size_t kN = kF32Vectors>
HWY_INLINE F32s<kN> load(const float* HWY_RESTRICT p) {
  F32s<kN> z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN; ++i) z.v[i] = hn::LoadU(F32(), p + i * kF32Lanes);
  return z;
}
template <size_t kN = kF32Vectors>
HWY_INLINE F64s<kN> load(const double* HWY_RESTRICT p) {
  F64s<kN> z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN * kWidth; ++i) z.v[i] = hn::LoadU(F64(), p + i * kF64Lanes);
  return z;
}
// ---------------------------------------------------------------- stores of sixteen elements; NaNs are canonical already
template <size_t kN>
HWY_INLINE void store(const F32s<kN>& x, float* HWY_RESTRICT p) {
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN; ++i) hn::StoreU(x.v[i], F32(), p + i * kF32Lanes);
}
template <size_t kN>
HWY_INLINE void store(const F64s<kN>& x, double* HWY_RESTRICT p) {
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN * kWidth; ++i) hn::StoreU(x.v[i], F64(), p + i * kF64Lanes);
}
template <class T, size_t kN>
HWY_INLINE void store(const F32s<kN>& x, T* HWY_RESTRICT p) {
  const U16s<kN> half = to_half(x, p);
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN; ++i) hn::StoreU(half.v[i], Word16(), reinterpret_cast<uint16_t*>(p) + i * kF32Lanes);
}

// ---------------------------------------------------------------- around the caches
// Stores around the caches; p is a multiple of kStreamAlign bytes.
constexpr size_t kStreamAlign = 64;
template <size_t kN>
HWY_INLINE void stream(const F64s<kN>& x, double* HWY_RESTRICT p) {
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN * kWidth; ++i) hn::Stream(x.v[i], F64(), p + i * kF64Lanes);
}
template <size_t kN>
HWY_INLINE void stream(const F32s<kN>& x, float* HWY_RESTRICT p) {
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN; ++i) hn::Stream(x.v[i], F32(), p + i * kF32Lanes);
}
template <class T, size_t kN>
HWY_INLINE void stream(const F32s<kN>& x, T* HWY_RESTRICT p) {
  // Half of a 128-bit vector: Stream() would write 16 bytes for its 8.
  if constexpr (kF32Lanes * sizeof(T) < 16) return store(x, p);
  const U16s<kN> half = to_half(x, p);
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN; ++i) hn::Stream(half.v[i], Word16(), reinterpret_cast<uint16_t*>(p) + i * kF32Lanes);
}
template <bool kStream, class V, class T>
HWY_INLINE void put(const V& x, T* HWY_RESTRICT p) {
  if constexpr (kStream) stream(x, p);
  else store(x, p);
}
// kNormal: bfloat16 numbers that rounded_normal() rounds.
template <bool kStream, bool kNormal, size_t kN, class T>
HWY_INLINE void put(const F32s<kN>& x, T* HWY_RESTRICT p) {
#if HWY_CAP_GE512
  if constexpr (kNormal) {
    const U16s<kN> half = rounded_normal(x);
    TRUENORM_UNROLL
    for (size_t i = 0; i < kN; ++i) {
      uint16_t* const to = reinterpret_cast<uint16_t*>(p) + i * kF32Lanes;
      if constexpr (kStream) hn::Stream(half.v[i], Word16(), to);
      else hn::StoreU(half.v[i], Word16(), to);
    }
    return;
  }
#endif
  put<kStream>(x, p);
}
// Elements before the first that may be streamed to.
template <class T>
HWY_INLINE size_t before_stream(const T* p) {
  return (kStreamAlign - reinterpret_cast<uintptr_t>(p) % kStreamAlign) % kStreamAlign / sizeof(T);
}

// Bytes that were made elsewhere, whole lines at a time.
HWY_INLINE void stream_bytes(const uint8_t* from, uint8_t* to, size_t bytes) {
  const hn::CappedTag<uint8_t, kStreamAlign> d8;
  constexpr size_t kBytes = hn::MaxLanes(hn::CappedTag<uint8_t, kStreamAlign>());
  size_t i = HWY_MIN(before_stream(to), bytes);
  memcpy(to, from, i);
  for (; i + kStreamAlign <= bytes; i += kStreamAlign)
    for (size_t k = 0; k < kStreamAlign; k += kBytes) hn::Stream(hn::LoadU(d8, from + i + k), d8, to + i + k);
  memcpy(to + i, from + i, bytes - i);
}

// Asks for the lines of sixteen elements of the next rows, into the L2 cache: more of them can be under way than into L1
// (float32, 65536 x 768, Zen 4: forward 40 GB/s in place of 25, dx alone 37 in place of 20).
template <class T>
HWY_INLINE void prefetch(const T* p) {
  __builtin_prefetch(p, 0, 2);
  if constexpr (kLanes * sizeof(T) > kStreamAlign) __builtin_prefetch(p + kLanes / 2, 0, 2);
}
// Of thirty-two, which are one line of a half type.
template <class T>
HWY_INLINE void prefetch_pair(const T* p) {
  prefetch(p);
  if constexpr (sizeof(T) > 2) prefetch(p + kLanes);
}

// Loads as float64, for sums.
template <size_t kN = kF32Vectors>
HWY_INLINE F64s<kN> load_f64(const float* HWY_RESTRICT p) {
  F64s<kN> z;  // converts from memory: half the loads and no shuffles
  const hn::Rebind<float, F64> half;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN * kWidth; ++i) z.v[i] = hn::PromoteTo(F64(), hn::LoadU(half, p + i * kF64Lanes));
  return z;
}
template <size_t kN = kF32Vectors>
HWY_INLINE F64s<kN> load_f64(const double* HWY_RESTRICT p) { return load<kN>(p); }
template <size_t kN = kF32Vectors, class T>
HWY_INLINE F64s<kN> load_f64(const T* HWY_RESTRICT p) {
  return widen(load<kN>(p));
}

// ---------------------------------------------------------------- the last elements of a row
// n < 32 elements; a call of memcpy() would cost as much as a short row.
template <class T>
HWY_INLINE void copy_few(const T* HWY_RESTRICT from, T* HWY_RESTRICT to, size_t n) {
  for (size_t part = 16; part > 0; part /= 2)
    if (n & part) {
      memcpy(to, from, part * sizeof(T));
      from += part;
      to += part;
    }
}
// n < 16 elements copied to a whole sixteen, the rest filled with `rest`: no byte outside the row is read or written.
template <class T>
struct Tail {
  HWY_ALIGN T values[kLanes];
  HWY_INLINE Tail() {}
  HWY_INLINE Tail(const T* HWY_RESTRICT p, size_t n, T rest) {
    for (size_t i = 0; i < kLanes; ++i) values[i] = rest;
    copy_few(p, values, n);
  }
  HWY_INLINE void copy_to(T* HWY_RESTRICT p, size_t n) const { copy_few(values, p, n); }
};

// The first n < 16 of sixteen elements, zeros after them. Masked where the instruction set does not touch what is masked.
#if HWY_CAP_GE256
template <class D, class T, size_t kVectors>
HWY_INLINE void load_masked(D d, const T* HWY_RESTRICT p, size_t n, hn::Vec<D> (&v)[kVectors]) {
  constexpr size_t kN = hn::MaxLanes(D());
  TRUENORM_UNROLL
  for (size_t i = 0; i < kVectors; ++i)
    v[i] = n >= (i + 1) * kN ? hn::LoadU(d, p + i * kN)
                             : hn::MaskedLoad(hn::FirstN(d, n > i * kN ? n - i * kN : 0), d, p + i * kN);
}
template <class D, class T, size_t kVectors>
HWY_INLINE void store_masked(D d, const hn::Vec<D> (&v)[kVectors], T* HWY_RESTRICT p, size_t n) {
  constexpr size_t kN = hn::MaxLanes(D());
  TRUENORM_UNROLL
  for (size_t i = 0; i < kVectors; ++i) {
    if (n >= (i + 1) * kN)
      hn::StoreU(v[i], d, p + i * kN);
    else if (n > i * kN)
      hn::BlendedStore(v[i], hn::FirstN(d, n - i * kN), d, p + i * kN);
  }
}
HWY_INLINE F32x16 load_n(const float* HWY_RESTRICT p, size_t n) {
  F32x16 z;
  load_masked(F32(), p, n, z.v);
  return z;
}
HWY_INLINE F64x16 load_n(const double* HWY_RESTRICT p, size_t n) {
  F64x16 z;
  load_masked(F64(), p, n, z.v);
  return z;
}
HWY_INLINE void store_n(const F32x16& x, float* HWY_RESTRICT p, size_t n) { store_masked(F32(), x.v, p, n); }
HWY_INLINE void store_n(const F64x16& x, double* HWY_RESTRICT p, size_t n) { store_masked(F64(), x.v, p, n); }
#elif HWY_TARGET != HWY_SCALAR
// Two lanes: whole vectors, and one element. By way of a Tail rows of 5 features take ten times as long, since each of its loads
// waits for narrower stores.
HWY_INLINE F64x16 load_n(const double* HWY_RESTRICT p, size_t n) {
  const hn::Half<F64> one;
  F64x16 z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF64Vectors; ++i) {
    const size_t at = i * kF64Lanes;
    z.v[i] = n >= at + kF64Lanes ? hn::LoadU(F64(), p + at) : n > at ? hn::ZeroExtendVector(F64(), hn::LoadU(one, p + at)) : hn::Zero(F64());
  }
  return z;
}
HWY_INLINE void store_n(const F64x16& x, double* HWY_RESTRICT p, size_t n) {
  const hn::Half<F64> one;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF64Vectors; ++i) {
    const size_t at = i * kF64Lanes;
    if (n >= at + kF64Lanes) hn::StoreU(x.v[i], F64(), p + at);
    else if (n > at) hn::StoreU(hn::LowerHalf(one, x.v[i]), one, p + at);
  }
}
#else
HWY_INLINE F64x16 load_n(const double* HWY_RESTRICT p, size_t n) { return load(Tail<double>(p, n, 0.0).values); }
HWY_INLINE void store_n(const F64x16& x, double* HWY_RESTRICT p, size_t n) {
  Tail<double> lanes;
  store(x, lanes.values);
  lanes.copy_to(p, n);
}
#endif
#if HWY_CAP_GE512  // 16-bit elements are masked, too
template <class T>
HWY_INLINE F32x16 load_n(const T* HWY_RESTRICT p, size_t n) {
  const Word16 d16;
  HWY_ALIGN T values[kLanes];
  hn::Store(hn::MaskedLoad(hn::FirstN(d16, n), d16, reinterpret_cast<const uint16_t*>(p)), d16, reinterpret_cast<uint16_t*>(values));
  return load(values);
}
template <class T>
HWY_INLINE void store_n(const F32x16& x, T* HWY_RESTRICT p, size_t n) {
  const Word16 d16;
  hn::BlendedStore(to_half(x, p).v[0], hn::FirstN(d16, n), d16, reinterpret_cast<uint16_t*>(p));
}
#else
// Whole vectors need no copy, which takes five times as long.
template <class T>
HWY_NOINLINE F32x16 load_n(const T* HWY_RESTRICT p, size_t n) {
  if (n % kPartLanes != 0) return load(Tail<T>(p, n, T{}).values);
  F32x16 z = fill(0.0f);
  TRUENORM_UNROLL
  for (size_t k = 0; k < kParts; ++k)
    if (n >= (k + 1) * kPartLanes) set_part(z, k, load<kPartVectors>(p + k * kPartLanes));
  return z;
}
template <class T>
HWY_NOINLINE void store_n(const F32x16& x, T* HWY_RESTRICT p, size_t n) {
  if (n % kPartLanes == 0) {
    TRUENORM_UNROLL
    for (size_t k = 0; k < kParts; ++k)
      if (n >= (k + 1) * kPartLanes) store(part(x, k), p + k * kPartLanes);
    return;
  }
  Tail<T> lanes;
  store(x, lanes.values);
  lanes.copy_to(p, n);
}
#endif

// The first n of sixteen elements, zeros for the rest.
HWY_INLINE F64x16 first_n(F64x16 x, size_t n) {
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF64Vectors; ++i) {
    const size_t before = i * kF64Lanes;
    x.v[i] = hn::IfThenElseZero(hn::FirstN(F64(), n > before ? HWY_MIN(n - before, kF64Lanes) : 0), x.v[i]);
  }
  return x;
}

HWY_INLINE F64x16 load_f64_n(const double* HWY_RESTRICT p, size_t n) { return load_n(p, n); }
template <class T>
HWY_INLINE F64x16 load_f64_n(const T* HWY_RESTRICT p, size_t n) {
  return widen(load_n(p, n));
}

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_MEMORY_INL_H_
