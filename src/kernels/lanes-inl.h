// Sixteen elements of a row at a time, on every instruction set: lane j holds element 16*k + j. Loads, stores,
// conversions, the fused multiply-add and the fold. Compiled once per target.
#if defined(TRUENORM_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_LANES_INL_H_
#undef TRUENORM_LANES_INL_H_
#else
#define TRUENORM_LANES_INL_H_
#endif

#include <string.h>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "types.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kLanes = 16;

using F32 = hn::CappedTag<float, 16>;
using F64 = hn::CappedTag<double, 8>;
using VF32 = hn::Vec<F32>;
using VF64 = hn::Vec<F64>;
constexpr size_t kF32Lanes = hn::MaxLanes(F32());
constexpr size_t kF64Lanes = hn::MaxLanes(F64());
constexpr size_t kF32Vectors = kLanes / kF32Lanes;  // 1 on AVX-512, 2 on AVX2, 4 with 128-bit vectors
constexpr size_t kF64Vectors = kLanes / kF64Lanes;

// Loops over the vectors of a sixteen are unrolled, so that they stay in registers; on the portable target, whose vectors
// have one lane, they stay loops, which the compiler turns into what vectors the baseline has.
#undef TRUENORM_UNROLL
#if HWY_TARGET == HWY_SCALAR
#define TRUENORM_UNROLL
#elif HWY_COMPILER_CLANG
#define TRUENORM_UNROLL _Pragma("unroll")
#else
#define TRUENORM_UNROLL _Pragma("GCC unroll 16")
#endif

struct F32x16 {
  VF32 v[kF32Vectors];
};
struct F64x16 {
  VF64 v[kF64Vectors];
};

// The type that a row of T is computed and its parameters are held in.
template <class T>
struct ComputeOf {
  using type = float;
};
template <>
struct ComputeOf<double> {
  using type = double;
};
template <class T>
using Compute = typename ComputeOf<T>::type;

// ---------------------------------------------------------------- elementwise operations
#define TRUENORM_LANEWISE_2(NAME, OP)                                               \
  HWY_INLINE F32x16 NAME(const F32x16& x, const F32x16& y) {                        \
    F32x16 z;                                                                       \
    TRUENORM_UNROLL                                                                 \
    for (size_t i = 0; i < kF32Vectors; ++i) z.v[i] = hn::OP(x.v[i], y.v[i]);       \
    return z;                                                                       \
  }                                                                                 \
  HWY_INLINE F64x16 NAME(const F64x16& x, const F64x16& y) {                        \
    F64x16 z;                                                                       \
    TRUENORM_UNROLL                                                                 \
    for (size_t i = 0; i < kF64Vectors; ++i) z.v[i] = hn::OP(x.v[i], y.v[i]);       \
    return z;                                                                       \
  }
TRUENORM_LANEWISE_2(operator+, Add)
TRUENORM_LANEWISE_2(operator-, Sub)
TRUENORM_LANEWISE_2(operator*, Mul)
#undef TRUENORM_LANEWISE_2

HWY_INLINE F32x16 fill(float value) {
  F32x16 z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF32Vectors; ++i) z.v[i] = hn::Set(F32(), value);
  return z;
}
HWY_INLINE F64x16 fill(double value) {
  F64x16 z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF64Vectors; ++i) z.v[i] = hn::Set(F64(), value);
  return z;
}

HWY_INLINE F32x16 max_abs(const F32x16& x, const F32x16& y) {
  F32x16 z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF32Vectors; ++i) z.v[i] = hn::Max(x.v[i], hn::Abs(y.v[i]));
  return z;
}

HWY_INLINE float largest(const F32x16& x) {
  VF32 z = x.v[0];
  TRUENORM_UNROLL
  for (size_t i = 1; i < kF32Vectors; ++i) z = hn::Max(z, x.v[i]);
  return hn::GetLane(hn::MaxOfLanes(F32(), z));
}

HWY_INLINE bool is_zero(const F32x16& x) {
  auto zero = hn::Eq(x.v[0], hn::Zero(F32()));
  TRUENORM_UNROLL
  for (size_t i = 1; i < kF32Vectors; ++i) zero = hn::And(zero, hn::Eq(x.v[i], hn::Zero(F32())));
  return hn::AllTrue(F32(), zero);
}
HWY_INLINE bool is_zero(const F64x16& x) {
  auto zero = hn::Eq(x.v[0], hn::Zero(F64()));
  TRUENORM_UNROLL
  for (size_t i = 1; i < kF64Vectors; ++i) zero = hn::And(zero, hn::Eq(x.v[i], hn::Zero(F64())));
  return hn::AllTrue(F64(), zero);
}

// Every NaN becomes the canonical one: x86 and ARM make and propagate different ones.
HWY_INLINE F32x16 canonical(F32x16 x) {
  const VF32 nan = hn::BitCast(F32(), hn::Set(hn::RebindToUnsigned<F32>(), 0x7FC00000u));
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF32Vectors; ++i) x.v[i] = hn::IfThenElse(hn::Eq(x.v[i], x.v[i]), x.v[i], nan);
  return x;
}
HWY_INLINE F64x16 canonical(F64x16 x) {
  const VF64 nan = hn::BitCast(F64(), hn::Set(hn::RebindToUnsigned<F64>(), uint64_t{0x7FF8} << 48));
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF64Vectors; ++i) x.v[i] = hn::IfThenElse(hn::Eq(x.v[i], x.v[i]), x.v[i], nan);
  return x;
}

// ---------------------------------------------------------------- float32 <-> float64
HWY_INLINE F64x16 widen(const F32x16& x) {
  F64x16 z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF32Vectors; ++i) {
#if HWY_TARGET == HWY_SCALAR
    z.v[i] = hn::PromoteTo(F64(), x.v[i]);
#else
    const hn::Half<F32> half;
    z.v[2 * i] = hn::PromoteTo(F64(), hn::LowerHalf(half, x.v[i]));
    z.v[2 * i + 1] = hn::PromoteTo(F64(), hn::UpperHalf(half, x.v[i]));
#endif
  }
  return z;
}
HWY_INLINE F32x16 round_to_f32(const F64x16& x) {
  F32x16 z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF32Vectors; ++i) {
#if HWY_TARGET == HWY_SCALAR
    z.v[i] = hn::DemoteTo(F32(), x.v[i]);
#else
    const hn::Half<F32> half;
    z.v[i] = hn::Combine(F32(), hn::DemoteTo(half, x.v[2 * i + 1]), hn::DemoteTo(half, x.v[2 * i]));
#endif
  }
  return z;
}

// a*b + c where a and b are float32 values: the product is exact, so that a fused and a separate addition agree.
HWY_INLINE F64x16 add_exact_product(const F64x16& a, const F64x16& b, const F64x16& c) {
  F64x16 z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF64Vectors; ++i) z.v[i] = hn::MulAdd(a.v[i], b.v[i], c.v[i]);
  return z;
}

// a*b + c in float32 with one rounding.
#if HWY_NATIVE_FMA
HWY_INLINE F32x16 fma(const F32x16& a, const F32x16& b, const F32x16& c) {
  F32x16 z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF32Vectors; ++i) z.v[i] = hn::MulAdd(a.v[i], b.v[i], c.v[i]);
  return z;
}
#else
// Without the instruction: the product is exact in float64, the sum is rounded to odd there (two-sum gives its error), and
// rounding that to float32 is right (Boldo, Melquiond: Emulation of a FMA and correctly rounded sums, IEEE Transactions on
// Computers 57, 2008). Some twenty operations in place of one; not inlined, because it would be most of the library.
HWY_MAYBE_UNUSED static HWY_NOINLINE F32x16 fma(const F32x16& a, const F32x16& b, const F32x16& c) {
  const hn::RebindToSigned<F64> bits;
  F64x16 p = widen(a) * widen(b);
  const F64x16 addend = widen(c);
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF64Vectors; ++i) {
    const VF64 sum = hn::Add(p.v[i], addend.v[i]);
    const VF64 part = hn::Sub(sum, p.v[i]);
    const VF64 error = hn::Add(hn::Sub(p.v[i], hn::Sub(sum, part)), hn::Sub(addend.v[i], part));
    // If the last bit is even, one step away from zero when the error has the sum's sign, towards it when it has not.
    const auto inexact = hn::Or(hn::Lt(error, hn::Zero(F64())), hn::Lt(hn::Zero(F64()), error));
    const auto raw = hn::BitCast(bits, sum);
    const auto one = hn::Set(bits, 1);
    const auto inwards = hn::BroadcastSignBit(hn::Xor(raw, hn::BitCast(bits, error)));  // -1 or 0
    const auto even = hn::AndNot(raw, one);
    const auto step = hn::And(hn::Or(inwards, one), hn::Sub(hn::Zero(bits), even));
    p.v[i] = hn::IfThenElse(inexact, hn::BitCast(F64(), hn::Add(raw, step)), sum);
  }
  return round_to_f32(p);
}
#endif

// ---------------------------------------------------------------- loads of sixteen elements, no alignment demanded
HWY_INLINE F32x16 load(const float* HWY_RESTRICT p) {
  F32x16 z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF32Vectors; ++i) z.v[i] = hn::LoadU(F32(), p + i * kF32Lanes);
  return z;
}
HWY_INLINE F64x16 load(const double* HWY_RESTRICT p) {
  F64x16 z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF64Vectors; ++i) z.v[i] = hn::LoadU(F64(), p + i * kF64Lanes);
  return z;
}
HWY_INLINE F32x16 load(const BFloat16* HWY_RESTRICT p) {
  const hn::Rebind<uint16_t, F32> half;
  const hn::RebindToUnsigned<F32> word;
  F32x16 z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF32Vectors; ++i) {
    const auto u = hn::LoadU(half, reinterpret_cast<const uint16_t*>(p) + i * kF32Lanes);
    z.v[i] = hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(word, u)));
  }
  return z;
}
HWY_INLINE F32x16 load(const Float16* HWY_RESTRICT p) {
  F32x16 z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF32Vectors; ++i) {
#if HWY_CAP_GE256
    const hn::Rebind<hwy::float16_t, F32> half;  // F16C: exact, subnormals included
    z.v[i] = hn::PromoteTo(F32(), hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(p) + i * kF32Lanes));
#else
    // Integer arithmetic: the exponent and fraction shifted into place and rescaled by an exact multiplication, which
    // also normalizes subnormals; infinities and NaNs get the largest exponent.
    const hn::Rebind<uint16_t, F32> half;
    const hn::RebindToUnsigned<F32> word;
    const auto u = hn::PromoteTo(word, hn::LoadU(half, reinterpret_cast<const uint16_t*>(p) + i * kF32Lanes));
    const auto magnitude = hn::ShiftLeft<13>(hn::And(u, hn::Set(word, 0x7FFFu)));
    const VF32 scaled = hn::Mul(hn::BitCast(F32(), magnitude), hn::Set(F32(), 0x1p112f));
    const auto special = hn::Ge(scaled, hn::Set(F32(), 65536.0f));
    const VF32 whole = hn::IfThenElse(special, hn::BitCast(F32(), hn::Or(magnitude, hn::Set(word, 0x7F800000u))), scaled);
    const auto sign = hn::ShiftLeft<16>(hn::And(u, hn::Set(word, 0x8000u)));
    z.v[i] = hn::Or(whole, hn::BitCast(F32(), sign));
#endif
  }
  return z;
}

// ---------------------------------------------------------------- stores of sixteen elements; NaNs are canonical already
HWY_INLINE void store(const F32x16& x, float* HWY_RESTRICT p) {
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF32Vectors; ++i) hn::StoreU(x.v[i], F32(), p + i * kF32Lanes);
}
HWY_INLINE void store(const F64x16& x, double* HWY_RESTRICT p) {
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF64Vectors; ++i) hn::StoreU(x.v[i], F64(), p + i * kF64Lanes);
}
// Half types, as vectors of 16-bit words. Values are below 2^16: the saturating conversion is exact.
using Word16 = hn::Rebind<uint16_t, F32>;
struct U16x16 {
  hn::Vec<Word16> v[kF32Vectors];
};
HWY_INLINE hn::Vec<Word16> lower_half(hn::Vec<hn::RebindToUnsigned<F32>> word) {
  return hn::DemoteTo(Word16(), hn::BitCast(hn::RebindToSigned<F32>(), word));
}
// Round to nearest even in integer arithmetic: the instruction for it flushes subnormals.
HWY_INLINE U16x16 to_half(const F32x16& x, const BFloat16*) {
  const hn::RebindToUnsigned<F32> word;
  U16x16 z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF32Vectors; ++i) {
    const auto raw = hn::BitCast(word, x.v[i]);
    const auto last = hn::And(hn::ShiftRight<16>(raw), hn::Set(word, 1u));
    z.v[i] = lower_half(hn::ShiftRight<16>(hn::Add(raw, hn::Add(last, hn::Set(word, 0x7FFFu)))));
  }
  return z;
}
HWY_INLINE U16x16 to_half(const F32x16& x, const Float16*) {
  U16x16 z;
#if HWY_CAP_GE256
  const hn::Rebind<hwy::float16_t, F32> half;  // F16C rounds to nearest even and keeps subnormals
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF32Vectors; ++i) z.v[i] = hn::BitCast(Word16(), hn::DemoteTo(half, x.v[i]));
#else
  // Integer arithmetic for normal results, one float32 addition for subnormal ones.
  const hn::RebindToUnsigned<F32> word;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF32Vectors; ++i) {
    const auto sign = hn::And(hn::BitCast(word, x.v[i]), hn::Set(word, 0x80000000u));
    const VF32 magnitude = hn::Abs(x.v[i]);
    // Normal results: round to 11 bits, then move the exponent from bias 127 to 15.
    const auto bits = hn::BitCast(word, magnitude);
    const auto last = hn::And(hn::ShiftRight<13>(bits), hn::Set(word, 1u));
    const auto rounded = hn::ShiftRight<13>(hn::Add(bits, hn::Add(last, hn::Set(word, 0x0FFFu))));
    const auto normal = hn::Sub(rounded, hn::Set(word, (127u - 15u) << 10));
    // Subnormal results: 0.5 has its last place at 2^-24, where theirs is.
    const auto subnormal = hn::Sub(hn::BitCast(word, hn::Add(magnitude, hn::Set(F32(), 0.5f))), hn::Set(word, 0x3F000000u));
    const auto is_subnormal = hn::MaskFromVec(hn::BitCast(word, hn::VecFromMask(F32(), hn::Lt(magnitude, hn::Set(F32(), 0x1p-14f)))));
    const auto overflows = hn::MaskFromVec(hn::BitCast(word, hn::VecFromMask(F32(), hn::Ge(magnitude, hn::Set(F32(), 65520.0f)))));
    const auto is_nan = hn::MaskFromVec(hn::BitCast(word, hn::VecFromMask(F32(), hn::Ne(magnitude, magnitude))));
    auto result = hn::IfThenElse(is_subnormal, subnormal, normal);
    result = hn::IfThenElse(overflows, hn::Set(word, 0x7C00u), result);
    result = hn::IfThenElse(is_nan, hn::Set(word, 0x7E00u), result);
    z.v[i] = lower_half(hn::Or(result, hn::ShiftRight<16>(sign)));
  }
#endif
  return z;
}
template <class T>
HWY_INLINE void store(const F32x16& x, T* HWY_RESTRICT p) {
  const U16x16 half = to_half(x, p);
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF32Vectors; ++i) hn::StoreU(half.v[i], Word16(), reinterpret_cast<uint16_t*>(p) + i * kF32Lanes);
}

// Stores around the caches; p is a multiple of kStreamAlign bytes.
constexpr size_t kStreamAlign = 64;
HWY_INLINE void stream(const F32x16& x, float* HWY_RESTRICT p) {
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF32Vectors; ++i) hn::Stream(x.v[i], F32(), p + i * kF32Lanes);
}
HWY_INLINE void stream(const F64x16& x, double* HWY_RESTRICT p) {
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF64Vectors; ++i) hn::Stream(x.v[i], F64(), p + i * kF64Lanes);
}
template <class T>
HWY_INLINE void stream(const F32x16& x, T* HWY_RESTRICT p) {
  const U16x16 half = to_half(x, p);
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF32Vectors; ++i) hn::Stream(half.v[i], Word16(), reinterpret_cast<uint16_t*>(p) + i * kF32Lanes);
}
template <bool kStream, class V, class T>
HWY_INLINE void put(const V& x, T* HWY_RESTRICT p) {
  if constexpr (kStream) stream(x, p);
  else store(x, p);
}
// Elements before the first that may be streamed to.
template <class T>
HWY_INLINE size_t before_stream(const T* p) {
  return (kStreamAlign - reinterpret_cast<uintptr_t>(p) % kStreamAlign) % kStreamAlign / sizeof(T);
}

// Asks for a line of the next rows, into the L2 cache: L1 has these rows.
template <class T>
HWY_INLINE void prefetch(const T* p) {
  __builtin_prefetch(p, 0, 2);
}

// Loads as float64, for sums.
HWY_INLINE F64x16 load_f64(const float* HWY_RESTRICT p) {
  F64x16 z;  // converts from memory: half the loads and no shuffles
  const hn::Rebind<float, F64> half;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF64Vectors; ++i) z.v[i] = hn::PromoteTo(F64(), hn::LoadU(half, p + i * kF64Lanes));
  return z;
}
HWY_INLINE F64x16 load_f64(const double* HWY_RESTRICT p) { return load(p); }
template <class T>
HWY_INLINE F64x16 load_f64(const T* HWY_RESTRICT p) {
  return widen(load(p));
}

// ---------------------------------------------------------------- the last elements of a row
// n < 16 elements copied to a whole sixteen, the rest filled with `rest`: no byte outside the row is read or written.
template <class T>
struct Tail {
  HWY_ALIGN T values[kLanes];
  HWY_INLINE Tail() {}
  HWY_INLINE Tail(const T* HWY_RESTRICT p, size_t n, T rest) {
    for (size_t i = 0; i < kLanes; ++i) values[i] = i < n ? p[i] : rest;
  }
  HWY_INLINE void copy_to(T* HWY_RESTRICT p, size_t n) const {
    for (size_t i = 0; i < n; ++i) p[i] = values[i];
  }
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
#else
HWY_INLINE F64x16 load_n(const double* HWY_RESTRICT p, size_t n) { return load(Tail<double>(p, n, 0.0).values); }
HWY_INLINE void store_n(const F64x16& x, double* HWY_RESTRICT p, size_t n) {
  Tail<double> lanes;
  store(x, lanes.values);
  lanes.copy_to(p, n);
}
#endif
template <class T>
HWY_NOINLINE F32x16 load_n(const T* HWY_RESTRICT p, size_t n) {
  return load(Tail<T>(p, n, T{}).values);
}
template <class T>
HWY_NOINLINE void store_n(const F32x16& x, T* HWY_RESTRICT p, size_t n) {
  Tail<T> lanes;
  store(x, lanes.values);
  lanes.copy_to(p, n);
}

HWY_INLINE F64x16 load_f64_n(const double* HWY_RESTRICT p, size_t n) { return load_n(p, n); }
template <class T>
HWY_INLINE F64x16 load_f64_n(const T* HWY_RESTRICT p, size_t n) {
  return widen(load_n(p, n));
}

// ---------------------------------------------------------------- the fold of a segment: j+8, j+4, j+2, j+1
// As far as whole vectors go.
HWY_INLINE VF64 fold_vectors(F64x16 x) {
  TRUENORM_UNROLL
  for (size_t count = kF64Vectors / 2; count > 0; count /= 2)
    TRUENORM_UNROLL
    for (size_t i = 0; i < count; ++i) x.v[i] = hn::Add(x.v[i], x.v[i + count]);
  return x.v[0];
}

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE double fold(const F64x16& x) { return hn::GetLane(fold_vectors(x)); }
#else
template <class D>
HWY_INLINE double fold_lanes(D /*d*/, hn::Vec<D> x) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(x);
  } else {
    const hn::Half<D> half;
    return fold_lanes(half, hn::Add(hn::LowerHalf(half, x), hn::UpperHalf(half, x)));
  }
}
HWY_INLINE double fold(const F64x16& x) { return fold_lanes(F64(), fold_vectors(x)); }
#endif

// As many rows at once as a vector has lanes: lane k of the result is the sum of row k. Three operations a row and sum
// where fold() takes six, and no chain of dependent ones.
HWY_INLINE VF64 fold_halves(VF64 a, VF64 b) {  // [a | b], each lane j + its upper half's
#if HWY_CAP_GE256
  return hn::Add(hn::ConcatLowerLower(F64(), b, a), hn::ConcatUpperUpper(F64(), b, a));
#else
  return hn::Add(a, b);
#endif
}
HWY_INLINE VF64 fold_blocks(VF64 a, VF64 b) {  // blocks of two lanes: even ones of a, odd ones of b
#if HWY_CAP_GE512
  return hn::Add(hn::OddEvenBlocks(b, a), hn::SwapAdjacentBlocks(hn::OddEvenBlocks(a, b)));
#else
  return hn::Add(a, b);
#endif
}
HWY_INLINE VF64 fold_pairs(VF64 a, VF64 b) {  // even lanes of a, odd ones of b
#if HWY_TARGET == HWY_SCALAR
  return hn::Add(a, b);
#else
  return hn::Add(hn::OddEven(b, a), hn::Shuffle01(hn::OddEven(a, b)));
#endif
}
HWY_INLINE VF64 fold_rows(const VF64 (&row)[kF64Lanes]) {
#if HWY_CAP_GE512
  return fold_pairs(fold_blocks(fold_halves(row[0], row[4]), fold_halves(row[2], row[6])),
                    fold_blocks(fold_halves(row[1], row[5]), fold_halves(row[3], row[7])));
#elif HWY_CAP_GE256
  return fold_pairs(fold_halves(row[0], row[2]), fold_halves(row[1], row[3]));
#elif HWY_TARGET == HWY_SCALAR
  return row[0];
#else
  return fold_pairs(row[0], row[1]);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_LANES_INL_H_
