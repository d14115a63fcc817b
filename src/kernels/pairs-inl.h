// bfloat16 in pairs: 32 elements between memory and vectors, even and odd ones apart, so that no element is moved to another
// lane. Exact on the way in, rounded to nearest even on the way out.
#if defined(TRUENORM_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_PAIRS_INL_H_
#undef TRUENORM_PAIRS_INL_H_
#else
#define TRUENORM_PAIRS_INL_H_
#endif

#include <string.h>

#include "lanes-inl.h"
#include "memory-inl.h"
#include "types.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

// A word of two elements is the odd one and, shifted, the even one: no element is moved to another lane.
struct F32x32 {
  F32x16 even, odd;
};
constexpr size_t kPairLanes = 2 * kLanes;
using Word32 = hn::RebindToUnsigned<F32>;
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE hn::Vec<Word32> load_words(const BFloat16* HWY_RESTRICT p) {
  uint32_t word;
  memcpy(&word, p, sizeof(word));
  return hn::Set(Word32(), word);
}
HWY_INLINE void store_words(hn::Vec<Word32> v, BFloat16* HWY_RESTRICT p) {
  const uint32_t word = hn::GetLane(v);
  memcpy(p, &word, sizeof(word));
}
#else
using Word16Pairs = hn::Repartition<uint16_t, F32>;
HWY_INLINE hn::Vec<Word32> load_words(const BFloat16* HWY_RESTRICT p) {
  return hn::BitCast(Word32(), hn::LoadU(Word16Pairs(), reinterpret_cast<const uint16_t*>(p)));
}
HWY_INLINE void store_words(hn::Vec<Word32> v, BFloat16* HWY_RESTRICT p) {
  hn::StoreU(hn::BitCast(Word16Pairs(), v), Word16Pairs(), reinterpret_cast<uint16_t*>(p));
}
#endif
HWY_INLINE F32x32 load_pairs(const BFloat16* HWY_RESTRICT p) {
  F32x32 z;
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF32Vectors; ++i) {
    const auto word = load_words(p + 2 * i * kF32Lanes);
    z.even.v[i] = hn::BitCast(F32(), hn::ShiftLeft<16>(word));
    z.odd.v[i] = hn::BitCast(F32(), hn::And(word, hn::Set(Word32(), 0xFFFF0000u)));
  }
  return z;
}
HWY_INLINE hn::Vec<Word32> rounded_word(VF32 x) {  // its upper half is x in bfloat16, to nearest even
  const auto raw = hn::BitCast(Word32(), x);
  const auto last = hn::And(hn::ShiftRight<16>(raw), hn::Set(Word32(), 1u));
  return hn::Add(hn::Add(raw, hn::Set(Word32(), 0x7FFFu)), last);
}
HWY_INLINE hn::Vec<Word32> pair_words(const F32x32& x, size_t i) {
  return hn::Or(hn::ShiftRight<16>(rounded_word(x.even.v[i])), hn::And(rounded_word(x.odd.v[i]), hn::Set(Word32(), 0xFFFF0000u)));
}
HWY_INLINE void store_pairs(const F32x32& x, BFloat16* HWY_RESTRICT p) {
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF32Vectors; ++i) store_words(pair_words(x, i), p + 2 * i * kF32Lanes);
}

// Around the caches; p is a multiple of kStreamAlign bytes.
HWY_INLINE void stream_pairs(const F32x32& x, BFloat16* HWY_RESTRICT p) {
#if HWY_TARGET == HWY_SCALAR
  store_pairs(x, p);
#else
  TRUENORM_UNROLL
  for (size_t i = 0; i < kF32Vectors; ++i) hn::Stream(pair_words(x, i), Word32(), reinterpret_cast<uint32_t*>(p + 2 * i * kF32Lanes));
#endif
}
template <bool kStream>
HWY_INLINE void put(const F32x32& x, BFloat16* HWY_RESTRICT p) {
  if constexpr (kStream) stream_pairs(x, p);
  else store_pairs(x, p);
}
// ---------------------------------------------------------------- the last elements of a row, n < 32
#if HWY_CAP_GE512
HWY_INLINE F32x32 load_pairs_n(const BFloat16* HWY_RESTRICT p, size_t n) {
  const Word16Pairs d16;
  HWY_ALIGN BFloat16 values[kPairLanes];
  hn::Store(hn::MaskedLoad(hn::FirstN(d16, n), d16, reinterpret_cast<const uint16_t*>(p)), d16, reinterpret_cast<uint16_t*>(values));
  return load_pairs(values);
}
HWY_INLINE void store_pairs_n(const F32x32& x, BFloat16* HWY_RESTRICT p, size_t n) {
  const Word16Pairs d16;
  hn::BlendedStore(hn::BitCast(d16, pair_words(x, 0)), hn::FirstN(d16, n), d16, reinterpret_cast<uint16_t*>(p));
}
#else
HWY_INLINE F32x32 load_pairs_n(const BFloat16* HWY_RESTRICT p, size_t n) {
  HWY_ALIGN BFloat16 values[kPairLanes] = {};
  copy_few(p, values, n);
  return load_pairs(values);
}
HWY_INLINE void store_pairs_n(const F32x32& x, BFloat16* HWY_RESTRICT p, size_t n) {
  HWY_ALIGN BFloat16 values[kPairLanes];
  store_pairs(x, values);
  copy_few(values, p, n);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_PAIRS_INL_H_
