// Sixteen elements of a row at a time, on every instruction set: lane j holds element 16*k + j. Loads, stores,
// conversions, the fused multiply-add and the fold. Compiled once per target.
#if defined(TRUENORM_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_LANES_INL_H_
#undef TRUENORM_LANES_INL_H_
#else
#define TRUENORM_LANES_INL_H_
#endif

#include <string.h>

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
    for (size_t i = 0; i < kF32Vectors; ++i) z.v[i] = hn::OP(x.v[i], y.v[i]);       \
    return z;                                                                       \
  }                                                                                 \
  HWY_INLINE F64x16 NAME(const F64x16& x, const F64x16& y) {                        \
    F64x16 z;                                                                       \
    for (size_t i = 0; i < kF64Vectors; ++i) z.v[i] = hn::OP(x.v[i], y.v[i]);       \
    return z;                                                                       \
  }
TRUENORM_LANEWISE_2(operator+, Add)
TRUENORM_LANEWISE_2(operator-, Sub)
TRUENORM_LANEWISE_2(operator*, Mul)
#undef TRUENORM_LANEWISE_2

HWY_INLINE F32x16 fill(float value) {
  F32x16 z;
  for (size_t i = 0; i < kF32Vectors; ++i) z.v[i] = hn::Set(F32(), value);
  return z;
}
HWY_INLINE F64x16 fill(double value) {
  F64x16 z;
  for (size_t i = 0; i < kF64Vectors; ++i) z.v[i] = hn::Set(F64(), value);
  return z;
}

HWY_INLINE F32x16 max_abs(const F32x16& x, const F32x16& y) {
  F32x16 z;
  for (size_t i = 0; i < kF32Vectors; ++i) z.v[i] = hn::Max(x.v[i], hn::Abs(y.v[i]));
  return z;
}

HWY_INLINE float largest(const F32x16& x) {
  VF32 z = x.v[0];
  for (size_t i = 1; i < kF32Vectors; ++i) z = hn::Max(z, x.v[i]);
  return hn::GetLane(hn::MaxOfLanes(F32(), z));
}

// Every NaN becomes the canonical one: x86 and ARM make and propagate different ones.
HWY_INLINE F32x16 canonical(F32x16 x) {
  const VF32 nan = hn::BitCast(F32(), hn::Set(hn::RebindToUnsigned<F32>(), 0x7FC00000u));
  for (size_t i = 0; i < kF32Vectors; ++i) x.v[i] = hn::IfThenElse(hn::Eq(x.v[i], x.v[i]), x.v[i], nan);
  return x;
}
HWY_INLINE F64x16 canonical(F64x16 x) {
  const VF64 nan = hn::BitCast(F64(), hn::Set(hn::RebindToUnsigned<F64>(), uint64_t{0x7FF8} << 48));
  for (size_t i = 0; i < kF64Vectors; ++i) x.v[i] = hn::IfThenElse(hn::Eq(x.v[i], x.v[i]), x.v[i], nan);
  return x;
}

// ---------------------------------------------------------------- float32 <-> float64
HWY_INLINE F64x16 widen(const F32x16& x) {
  F64x16 z;
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
  for (size_t i = 0; i < kF64Vectors; ++i) z.v[i] = hn::MulAdd(a.v[i], b.v[i], c.v[i]);
  return z;
}

// a*b + c in float32 with one rounding. Without the instruction: the product is exact in float64, the sum is rounded to
// odd there (two-sum gives its error), and rounding that to float32 is right (Boldo, Melquiond: Emulation of a FMA and
// correctly rounded sums, IEEE Transactions on Computers 57, 2008). About six times the cost of a multiply and an add.
HWY_INLINE F32x16 fma(const F32x16& a, const F32x16& b, const F32x16& c) {
#if HWY_NATIVE_FMA
  F32x16 z;
  for (size_t i = 0; i < kF32Vectors; ++i) z.v[i] = hn::MulAdd(a.v[i], b.v[i], c.v[i]);
  return z;
#else
  const hn::RebindToSigned<F64> bits;
  F64x16 p = widen(a) * widen(b);
  const F64x16 addend = widen(c);
  for (size_t i = 0; i < kF64Vectors; ++i) {
    const VF64 sum = hn::Add(p.v[i], addend.v[i]);
    const VF64 part = hn::Sub(sum, p.v[i]);
    const VF64 error = hn::Add(hn::Sub(p.v[i], hn::Sub(sum, part)), hn::Sub(addend.v[i], part));
    // Away from zero when the error has the sum's sign, towards it otherwise: one step of the last bit, if that is even.
    const VF64 zero = hn::Zero(F64());
    const auto inexact = hn::Or(hn::Lt(error, zero), hn::Lt(zero, error));
    const auto one = hn::Set(bits, 1);
    const auto raw = hn::BitCast(bits, sum);
    const auto outwards = hn::MaskFromVec(hn::BitCast(F64(), hn::BroadcastSignBit(hn::Xor(raw, hn::BitCast(bits, error)))));
    const auto step = hn::BitCast(bits, hn::IfThenElse(outwards, hn::BitCast(F64(), hn::Set(bits, -1)), hn::BitCast(F64(), one)));
    const auto even = hn::AndNot(raw, one);  // 1 where the last bit is 0
    const auto move = hn::And(step, hn::Sub(hn::Zero(bits), even));
    p.v[i] = hn::IfThenElse(inexact, hn::BitCast(F64(), hn::Add(raw, move)), sum);
  }
  return round_to_f32(p);
#endif
}

// ---------------------------------------------------------------- loads of sixteen elements, no alignment demanded
HWY_INLINE F32x16 load(const float* HWY_RESTRICT p) {
  F32x16 z;
  for (size_t i = 0; i < kF32Vectors; ++i) z.v[i] = hn::LoadU(F32(), p + i * kF32Lanes);
  return z;
}
HWY_INLINE F64x16 load(const double* HWY_RESTRICT p) {
  F64x16 z;
  for (size_t i = 0; i < kF64Vectors; ++i) z.v[i] = hn::LoadU(F64(), p + i * kF64Lanes);
  return z;
}
HWY_INLINE F32x16 load(const BFloat16* HWY_RESTRICT p) {
  const hn::Rebind<uint16_t, F32> half;
  const hn::RebindToUnsigned<F32> word;
  F32x16 z;
  for (size_t i = 0; i < kF32Vectors; ++i) {
    const auto u = hn::LoadU(half, reinterpret_cast<const uint16_t*>(p) + i * kF32Lanes);
    z.v[i] = hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(word, u)));
  }
  return z;
}
HWY_INLINE F32x16 load(const Float16* HWY_RESTRICT p) {
  F32x16 z;
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
  for (size_t i = 0; i < kF32Vectors; ++i) hn::StoreU(x.v[i], F32(), p + i * kF32Lanes);
}
HWY_INLINE void store(const F64x16& x, double* HWY_RESTRICT p) {
  for (size_t i = 0; i < kF64Vectors; ++i) hn::StoreU(x.v[i], F64(), p + i * kF64Lanes);
}
// The lower half of each word of u to memory.
template <class U>
HWY_INLINE void store_lower_halves(const U (&u)[kF32Vectors], uint16_t* HWY_RESTRICT p) {
  const hn::RebindToSigned<F32> word;
  const hn::Rebind<uint16_t, F32> half;
  for (size_t i = 0; i < kF32Vectors; ++i)  // values are below 2^16: the saturating conversion is exact
    hn::StoreU(hn::DemoteTo(half, hn::BitCast(word, u[i])), half, p + i * kF32Lanes);
}
// Round to nearest even in integer arithmetic: the instruction for it flushes subnormals.
HWY_INLINE void store(const F32x16& x, BFloat16* HWY_RESTRICT p) {
  const hn::RebindToUnsigned<F32> word;
  hn::Vec<hn::RebindToUnsigned<F32>> u[kF32Vectors];
  for (size_t i = 0; i < kF32Vectors; ++i) {
    const auto raw = hn::BitCast(word, x.v[i]);
    const auto last = hn::And(hn::ShiftRight<16>(raw), hn::Set(word, 1u));
    u[i] = hn::ShiftRight<16>(hn::Add(raw, hn::Add(last, hn::Set(word, 0x7FFFu))));
  }
  store_lower_halves(u, reinterpret_cast<uint16_t*>(p));
}
HWY_INLINE void store(const F32x16& x, Float16* HWY_RESTRICT p) {
#if HWY_CAP_GE256
  const hn::Rebind<hwy::float16_t, F32> half;  // F16C rounds to nearest even and keeps subnormals
  for (size_t i = 0; i < kF32Vectors; ++i)
    hn::StoreU(hn::DemoteTo(half, x.v[i]), half, reinterpret_cast<hwy::float16_t*>(p) + i * kF32Lanes);
#else
  // Integer arithmetic for normal results, one float32 addition for subnormal ones.
  const hn::RebindToUnsigned<F32> word;
  hn::Vec<hn::RebindToUnsigned<F32>> u[kF32Vectors];
  for (size_t i = 0; i < kF32Vectors; ++i) {
    const auto raw = hn::BitCast(word, x.v[i]);
    const auto sign = hn::And(raw, hn::Set(word, 0x80000000u));
    const VF32 magnitude = hn::Abs(x.v[i]);
    // Normal results: round to 11 bits by integers, then move the exponent from bias 127 to 15.
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
    u[i] = hn::Or(result, hn::ShiftRight<16>(sign));
  }
  store_lower_halves(u, reinterpret_cast<uint16_t*>(p));
#endif
}

// Loads as float64, for sums.
HWY_INLINE F64x16 load_f64(const float* HWY_RESTRICT p) {
  F64x16 z;  // converts from memory: half the loads and no shuffles
  const hn::Rebind<float, F64> half;
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
    for (size_t i = n; i < kLanes; ++i) values[i] = rest;
    memcpy(values, p, n * sizeof(T));
  }
  HWY_INLINE void copy_to(T* HWY_RESTRICT p, size_t n) const { memcpy(p, values, n * sizeof(T)); }
};

// ---------------------------------------------------------------- the fold of a segment: j+8, j+4, j+2, j+1
template <class D>
HWY_INLINE double fold_vector(D /*d*/, hn::Vec<D> x) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(x);
  } else {
    const hn::Half<D> half;
    return fold_vector(half, hn::Add(hn::LowerHalf(half, x), hn::UpperHalf(half, x)));
  }
}
HWY_INLINE double fold(F64x16 x) {
  for (size_t count = kF64Vectors / 2; count > 0; count /= 2)
    for (size_t i = 0; i < count; ++i) x.v[i] = hn::Add(x.v[i], x.v[i + count]);
  return fold_vector(F64(), x.v[0]);
}

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_LANES_INL_H_
