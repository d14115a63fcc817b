// Half types to float32 and back, sixteen elements at a time: exact on the way in, rounded to nearest even on the way out.
#if defined(TRUENORM_HALVES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_HALVES_INL_H_
#undef TRUENORM_HALVES_INL_H_
#else
#define TRUENORM_HALVES_INL_H_
#endif

#include "hwy/highway.h"
#include "lanes-inl.h"
#include "types.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

using Word16 = hn::Rebind<uint16_t, F32>;

#if HWY_CAP_GE512
// A bfloat16 is the upper word of a float32: one permutation of words takes it there or from there, in place of widening and a
// shift, or a shift and narrowing (512 x 768, backward, Intel with AVX-512: 3 to 6 %).
// Not by Highway, which has permutations of words in newer versions only.
HWY_INLINE VF32 from_upper_words(__m256i words) {
  const __m512i index = _mm512_set_epi16(15, 0, 14, 0, 13, 0, 12, 0, 11, 0, 10, 0, 9, 0, 8, 0,  //
                                         7, 0, 6, 0, 5, 0, 4, 0, 3, 0, 2, 0, 1, 0, 0, 0);
  return VF32{_mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(0xAAAAAAAAu, index, _mm512_castsi256_si512(words)))};
}
HWY_INLINE __m256i upper_words(__m512i x) {
  const __m512i index = _mm512_set_epi16(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1,  //
                                         31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  return _mm512_castsi512_si256(_mm512_permutexvar_epi16(index, x));
}
#endif

template <size_t kN = kF32Vectors>
HWY_INLINE F32s<kN> load(const BFloat16* HWY_RESTRICT p) {
  F32s<kN> z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN; ++i) {
    const auto u = hn::LoadU(Word16(), reinterpret_cast<const uint16_t*>(p) + i * kF32Lanes);
#if HWY_CAP_GE512
    z.v[i] = from_upper_words(u.raw);
#else
    z.v[i] = hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<F32>(), u)));
#endif
  }
  return z;
}
template <size_t kN = kF32Vectors>
HWY_INLINE F32s<kN> load(const Float16* HWY_RESTRICT p) {
  F32s<kN> z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN; ++i) {
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

// Half types, as vectors of 16-bit words. Values are below 2^16: the saturating conversion is exact.
template <size_t kN>
struct U16s {
  hn::Vec<Word16> v[kN];
};
HWY_INLINE hn::Vec<Word16> lower_half(hn::Vec<hn::RebindToUnsigned<F32>> word) {
  return hn::DemoteTo(Word16(), hn::BitCast(hn::RebindToSigned<F32>(), word));
}
// Round to nearest even in integer arithmetic: the instruction for it flushes subnormals.
template <size_t kN>
HWY_INLINE U16s<kN> to_half(const F32s<kN>& x, const BFloat16*) {
  const hn::RebindToUnsigned<F32> word;
  U16s<kN> z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN; ++i) {
    const auto raw = hn::BitCast(word, x.v[i]);
    const auto last = hn::And(hn::ShiftRight<16>(raw), hn::Set(word, 1u));
    const auto rounded = hn::Add(hn::Add(raw, hn::Set(word, 0x7FFFu)), last);
#if HWY_CAP_GE512
    z.v[i] = hn::Vec<Word16>{upper_words(rounded.raw)};
#else
    z.v[i] = lower_half(hn::ShiftRight<16>(rounded));
#endif
  }
  return z;
}
// The same by the instruction, of CPUs that have it (Machine) and numbers that are 0 or normal (backward, 512 x 768, Zen 4: dx alone
// 1.13 times as fast, all gradients 1.07). Written out, since it is above the level.
#if HWY_CAP_GE512
inline constexpr bool kMayRound = true;
template <size_t kN>
HWY_INLINE U16s<kN> rounded_normal(const F32s<kN>& x) {
  U16s<kN> z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN; ++i) asm("vcvtneps2bf16 %1, %0" : "=v"(z.v[i].raw) : "v"(x.v[i].raw));
  return z;
}
#else
inline constexpr bool kMayRound = false;
#endif

template <size_t kN>
HWY_INLINE U16s<kN> to_half(const F32s<kN>& x, const Float16*) {
  U16s<kN> z;
#if HWY_CAP_GE256
  const hn::Rebind<hwy::float16_t, F32> half;  // F16C rounds to nearest even and keeps subnormals
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN; ++i) z.v[i] = hn::BitCast(Word16(), hn::DemoteTo(half, x.v[i]));
#else
  // Integer arithmetic for normal results, one float32 addition for subnormal ones.
  const hn::RebindToUnsigned<F32> word;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kN; ++i) {
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

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_HALVES_INL_H_
