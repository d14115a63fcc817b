// Sixteen elements of a row at a time, on every instruction set: lane j holds element 16*k + j. Arithmetic, the fused
// multiply-add and the fold; memory-inl.h loads and stores them. Compiled once per target.
#if defined(TRUENORM_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_LANES_INL_H_
#undef TRUENORM_LANES_INL_H_
#else
#define TRUENORM_LANES_INL_H_
#endif

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
// For CPUs that execute 512 bits as two halves (Machine); else the same.
using HalfF64 = hn::CappedTag<double, HWY_MIN(kF64Lanes, size_t{4})>;
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

// kN vectors of float32, and the same elements in float64.
constexpr size_t kWidth = kF64Vectors / kF32Vectors;
template <size_t kN>
struct F32s {
  VF32 v[kN];
};
template <size_t kN>
struct F64s {
  VF64 v[kN * kWidth];
};
using F32x16 = F32s<kF32Vectors>;
using F64x16 = F64s<kF32Vectors>;

// Loops go through a sixteen in parts of one vector, one after the other: with all of a sixteen at each step they would
// need more than the 16 registers of AVX2, and spill sums and constants. The portable target leaves that to the compiler.
constexpr size_t kPartVectors = HWY_TARGET == HWY_SCALAR ? kF32Vectors : 1;
constexpr size_t kParts = kF32Vectors / kPartVectors;
constexpr size_t kPartLanes = kLanes / kParts;
using F32Part = F32s<kPartVectors>;
using F64Part = F64s<kPartVectors>;
HWY_INLINE F32Part part(const F32x16& x, size_t k) {
  F32Part z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kPartVectors; ++i) z.v[i] = x.v[k * kPartVectors + i];
  return z;
}
HWY_INLINE F64Part part(const F64x16& x, size_t k) {
  F64Part z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kPartVectors * kWidth; ++i) z.v[i] = x.v[k * kPartVectors * kWidth + i];
  return z;
}
HWY_INLINE void set_part(F32x16& x, size_t k, const F32Part& value) {
  TRUENORM_UNROLL
  for (size_t i = 0; i < kPartVectors; ++i) x.v[k * kPartVectors + i] = value.v[i];
}
HWY_INLINE void set_part(F64x16& x, size_t k, const F64Part& value) {
  TRUENORM_UNROLL
  for (size_t i = 0; i < kPartVectors * kWidth; ++i) x.v[k * kPartVectors * kWidth + i] = value.v[i];
}

// The parts of a row of d features, if it is one of few whole ones; 0: of any other. Such rows need no loops and no ends,
// which cost more than their features (8 features, AVX2, Zen 3: forward 2 times, backward 3 to 4 times as fast). Kernels for
// them are long to compile, so that there are some only for operands of one type, and vectors that make it worth while.
constexpr int64_t kMostParts = 4;
HWY_INLINE int64_t whole_parts(int64_t d) {
  constexpr int64_t kPart = static_cast<int64_t>(kPartLanes);
  return d % kPart == 0 && d <= kMostParts * kPart ? d / kPart : 0;
}
template <class T, class G>
inline constexpr bool kInParts = false;
#if HWY_CAP_GE256
template <class T>
inline constexpr bool kInParts<T, T> = sizeof(T) < 8;
#endif

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
  template <size_t kN>                                                              \
  HWY_INLINE F32s<kN> NAME(const F32s<kN>& x, const F32s<kN>& y) {                  \
    F32s<kN> z;                                                                     \
    TRUENORM_UNROLL                                                                 \
    for (size_t i = 0; i < kN; ++i) z.v[i] = hn::OP(x.v[i], y.v[i]);                \
    return z;                                                                       \
  }                                                                                 \
  template <size_t kN>                                                              \
  HWY_INLINE F64s<kN> NAME(const F64s<kN>& x, const F64s<kN>& y) {                  \
    F64s<kN> z;                                                                     \
    TRUENORM_UNROLL                                                                 \
    for (size_t i = 0; i < kN * kWidth; ++i) z.v[i] = hn::OP(x.v[i], y.v[i]);       \
    return z;                                                                       \
  }
TRUENORM_LANEWISE_2(operator+, Add)
TRUENORM_LANEWISE_2(operator-, Sub)
TRUENORM_LANEWISE_2(operator*, Mul)
#undef TRUENORM_LANEWISE_2

template <size_t kN = kF32Vectors>
HWY_INLINE F32s<kN> fill(float value) {
  F32s<kN> z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN; ++i) z.v[i] = hn::Set(F32(), value);
  return z;
}
template <size_t kN = kF32Vectors>
HWY_INLINE F64s<kN> fill(double value) {
  F64s<kN> z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN * kWidth; ++i) z.v[i] = hn::Set(F64(), value);
  return z;
}

template <size_t kN>
HWY_INLINE F32s<kN> operator|(const F32s<kN>& x, const F32s<kN>& y) {  // of their bits
  F32s<kN> z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN; ++i) z.v[i] = hn::Or(x.v[i], y.v[i]);
  return z;
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
template <class D>
HWY_INLINE hn::Vec<D> canonical(D d, hn::Vec<D> x) {
  using Bits = hn::TFromD<hn::RebindToUnsigned<D>>;
  constexpr Bits kNaN = sizeof(Bits) == 4 ? Bits{0x7FC00000u} : static_cast<Bits>(uint64_t{0x7FF8} << 48);
  return hn::IfThenElse(hn::Eq(x, x), x, hn::BitCast(d, hn::Set(hn::RebindToUnsigned<D>(), kNaN)));
}
HWY_INLINE VF64 canonical(VF64 x) { return canonical(F64(), x); }
template <size_t kN>
HWY_INLINE F32s<kN> canonical(F32s<kN> x) {
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN; ++i) x.v[i] = canonical(F32(), x.v[i]);
  return x;
}
template <size_t kN>
HWY_INLINE F64s<kN> canonical(F64s<kN> x) {
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN * kWidth; ++i) x.v[i] = canonical(x.v[i]);
  return x;
}

// ---------------------------------------------------------------- float32 <-> float64
template <size_t kN>
HWY_INLINE F64s<kN> widen(const F32s<kN>& x) {
  F64s<kN> z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN; ++i) {
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
template <class D>
HWY_INLINE hn::Vec<D> round_to_f32(D f32, hn::Vec<hn::Rebind<double, D>> x) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(f32, static_cast<float>(hn::GetLane(x)));  // DemoteTo() saturates where IEEE 754 overflows
#else
  return hn::DemoteTo(f32, x);
#endif
}
template <size_t kN>
HWY_INLINE F32s<kN> round_to_f32(const F64s<kN>& x) {
  F32s<kN> z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN; ++i) {
#if HWY_TARGET == HWY_SCALAR
    z.v[i] = round_to_f32(F32(), x.v[i]);
#else
    const hn::Half<F32> half;
    z.v[i] = hn::Combine(F32(), round_to_f32(half, x.v[2 * i + 1]), round_to_f32(half, x.v[2 * i]));
#endif
  }
  return z;
}

// a*b + c where a and b are float32 values: the product is exact, so that a fused and a separate addition agree.
template <size_t kN>
HWY_INLINE F64s<kN> add_exact_product(const F64s<kN>& a, const F64s<kN>& b, const F64s<kN>& c) {
  F64s<kN> z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN * kWidth; ++i) z.v[i] = hn::MulAdd(a.v[i], b.v[i], c.v[i]);
  return z;
}

// a*b + c in float32 with one rounding.
#if HWY_NATIVE_FMA
template <size_t kN>
HWY_INLINE F32s<kN> fma(const F32s<kN>& a, const F32s<kN>& b, const F32s<kN>& c) {
  F32s<kN> z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN; ++i) z.v[i] = hn::MulAdd(a.v[i], b.v[i], c.v[i]);
  return z;
}
#else
// Without the instruction: the product is exact in float64, the sum is rounded to odd there (two-sum gives its error), and
// rounding that to float32 is right (Boldo, Melquiond: Emulation of a FMA and correctly rounded sums, IEEE Transactions on
// Computers 57, 2008). Some twenty operations in place of one; not inlined, because it would be most of the library.
template <size_t kN>
HWY_NOINLINE F32s<kN> fma(const F32s<kN>& a, const F32s<kN>& b, const F32s<kN>& c) {
  const hn::RebindToSigned<F64> bits;
  F64s<kN> p = widen(a) * widen(b);
  const F64s<kN> addend = widen(c);
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN * kWidth; ++i) {
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

// ---------------------------------------------------------------- the fold of a segment: j+8, j+4, j+2, j+1
// As far as whole vectors go. Those from kPresent on have had nothing added to them: they are +0 and are left out.
template <size_t kPresent = kF64Vectors>
HWY_INLINE VF64 fold_vectors(F64x16 x) {
  TRUENORM_UNROLL
  for (size_t count = kF64Vectors / 2; count > 0; count /= 2)
    TRUENORM_UNROLL
    for (size_t i = 0; i < count; ++i)
      if (i + count < kPresent) x.v[i] = hn::Add(x.v[i], x.v[i + count]);
  return x.v[0];
}

// The rest, lane by lane.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE double fold_vector(VF64 x) { return hn::GetLane(x); }
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
HWY_INLINE double fold_vector(VF64 x) { return fold_lanes(F64(), x); }
#endif
HWY_INLINE double fold(const F64x16& x) { return fold_vector(fold_vectors(x)); }

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
HWY_INLINE VF64 fold_rows(const VF64* row) {
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
