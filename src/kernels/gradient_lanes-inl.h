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

// Sums of g and g*c of a plain row, of up to kQuad elements 16 apart at a time. They are added in float32 first, which leaves a
// quarter to be widened (float32, 512 x 768, AVX-512, Zen 4: 5 % of backward beside pairs).
constexpr size_t kQuad = 4;
struct LaneSum {
  F32Part g, gc;
};
struct QuadSums {
  F64x16 a, b;
  HWY_INLINE QuadSums() : a(fill(0.0)), b(a) {}
  static HWY_INLINE LaneSum sum(size_t count, const F32Part* g, const F32Part* c) {
    LaneSum sum{g[0], g[0] * c[0]};
    if (count > 1) {
      sum.g = sum.g + g[1];
      sum.gc = fma(g[1], c[1], sum.gc);
    }
    if (count > 2) {
      sum.g = sum.g + (count > 3 ? g[2] + g[3] : g[2]);
      sum.gc = sum.gc + (count > 3 ? fma(g[3], c[3], g[2] * c[2]) : g[2] * c[2]);
    }
    return sum;
  }
  HWY_INLINE void add(size_t k, size_t count, const F32Part* g, const F32Part* c) {
    const LaneSum four = sum(count, g, c);
    set_part(a, k, part(a, k) + widen(four.g));
    set_part(b, k, part(b, k) + widen(four.gc));
  }
  HWY_INLINE Partial partial() const { return {fold_vectors(a), fold_vectors(b)}; }
};
// The same for a dx of a half type, which leaves room for lanes in float32.
struct ShortSums {
  F32x16 a, b;
  HWY_INLINE ShortSums() : a(fill(0.0f)), b(a) {}
  HWY_INLINE void add(size_t k, size_t count, const F32Part* g, const F32Part* c) {
    TRUENORM_UNROLL
    for (size_t m = 0; m < count; ++m) {
      set_part(a, k, part(a, k) + g[m]);
      set_part(b, k, fma(g[m], c[m], part(b, k)));
    }
  }
  HWY_INLINE Partial partial() const { return {fold_vectors(widen(a)), fold_vectors(widen(b))}; }
};
struct PlainGradientSums {
  Partial partial;
  F32x16 g_bits;  // of all g, or-ed
};

// How large the g are whose or-ed bits these are: a number of 2^-63 and more has an upper or the second bit of the exponent, and
// no smaller one has either. That costs half an operation a vector, where their largest takes two (dx alone 6 % faster).
enum : uint32_t { kNotZero = 1, kNotTiny = 2 };
constexpr uint32_t kMagnitude = 0x7FFFFFFFu, kLeastNotTiny = 0x20000000u;  // the bits of 2^-63
HWY_INLINE uint32_t sizes_of(const F32x16& g_bits) {
  const hn::RebindToUnsigned<F32> word;
  auto bits = hn::BitCast(word, g_bits.v[0]);
  TRUENORM_UNROLL
  for (size_t i = 1; i < kF32Vectors; ++i) bits = hn::Or(bits, hn::BitCast(word, g_bits.v[i]));
  const auto lack = [&](uint32_t mask) { return hn::AllTrue(word, hn::Eq(hn::And(bits, hn::Set(word, mask)), hn::Zero(word))); };
  return (lack(kMagnitude) ? 0u : uint32_t{kNotZero}) | (lack(kMagnitude & ~(kLeastNotTiny - 1)) ? 0u : uint32_t{kNotTiny});
}
// Below that, products that float32 flushes could matter.
HWY_INLINE bool sizes_fit(uint32_t sizes) { return sizes != kNotZero; }

// The distances in elements to the rows that are fetched meanwhile; 0: none are.
struct Ahead {
  int64_t x, dy;
  HWY_INLINE bool any() const { return x != 0 || dy != 0; }
};
// The sums of one segment, of any number of features at a time: whole quads of sixteens, until its last ones.
template <class Lanes>
class PlainSegment {
 public:
  HWY_INLINE PlainSegment() : g_bits_(fill(0.0f)) {}

  template <bool kAhead, class T, class G>
  HWY_INLINE void add(float hi, const T* HWY_RESTRICT x, const G* HWY_RESTRICT dy, const float* HWY_RESTRICT gamma, size_t n,
                      const Ahead& ahead) {
    const F32Part shift = fill<kN>(hi);
    size_t i = 0;
    for (; i + kQuad * kLanes <= n; i += kQuad * kLanes) {
      if constexpr (kAhead)
        for (size_t j = i; j < i + kQuad * kLanes; j += 2 * kLanes) {
          if (ahead.x) prefetch_pair(x + ahead.x + j);
          if (ahead.dy) prefetch_pair(dy + ahead.dy + j);
        }
      TRUENORM_UNROLL
      for (size_t k = 0; k < kParts; ++k) {
        F32Part g[kQuad], c[kQuad];
        TRUENORM_UNROLL
        for (size_t m = 0; m < kQuad; ++m) {
          const size_t j = i + m * kLanes + k * kPartLanes;
          g[m] = load<kN>(gamma + j) * load<kN>(dy + j);
          c[m] = load<kN>(x + j) - shift;
          set_part(g_bits_, k, part(g_bits_, k) | g[m]);
        }
        lanes_.add(k, kQuad, g, c);
      }
    }
    if (i < n) add_end(shift, x, dy, gamma, i, n);
  }
  HWY_INLINE PlainGradientSums sums() const { return {lanes_.partial(), g_bits_}; }

 private:
  static constexpr size_t kN = kPartVectors;

  template <class T, class G>  // filled with dy = 0, which adds nothing
  HWY_INLINE void add_end(const F32Part& shift, const T* HWY_RESTRICT x, const G* HWY_RESTRICT dy, const float* HWY_RESTRICT gamma, size_t i,
                          size_t n) {
    F32x16 g[kQuad], x_rest[kQuad];
    size_t count = 0;
    for (; i < n; i += kLanes, ++count) {
      const bool whole = i + kLanes <= n;
      g[count] = whole ? load(gamma + i) * load(dy + i) : load_n(gamma + i, n - i) * load_n(dy + i, n - i);
      x_rest[count] = whole ? load(x + i) : load_n(x + i, n - i);
      g_bits_ = g_bits_ | g[count];
    }
    TRUENORM_UNROLL
    for (size_t k = 0; k < kParts; ++k) {
      F32Part g_part[kQuad], c_part[kQuad];
      TRUENORM_UNROLL
      for (size_t m = 0; m < kQuad; ++m) {
        if (m >= count) break;
        g_part[m] = part(g[m], k);
        c_part[m] = part(x_rest[m], k) - shift;
      }
      lanes_.add(k, count, g_part, c_part);
    }
  }

  Lanes lanes_;
  F32x16 g_bits_;
};
// Rows of kCount whole parts, without loops and ends. What is summed in float32 is stored, and widened as it is loaded, which needs no
// shuffles (8 features, AVX2, Zen 4: dx alone 15.7 -> 18 GB/s, in part by fewer tests of a row's scalars). Lanes begin with
// their first number, not with +0: that differs where all of a row are -0, and +0 is added in the end.
template <class T, size_t kCount>
struct PartSums {
  static constexpr size_t kN = kPartVectors, kUsed = HWY_MIN(kCount, kParts), kStored = kUsed * kPartLanes, kFeatures = kCount * kPartLanes;
  static_assert(kCount <= kQuad * kParts);
  // Returns the bits of all g, or-ed lane by lane. Of a half type c and dy are stored, too.
  static HWY_INLINE F32x16 sum(float hi, const T* HWY_RESTRICT x, const T* HWY_RESTRICT dy, const float* HWY_RESTRICT gamma,
                               float* HWY_RESTRICT a, float* HWY_RESTRICT b, HWY_MAYBE_UNUSED float* HWY_RESTRICT c_wide,
                               HWY_MAYBE_UNUSED float* HWY_RESTRICT dy_wide) {
    F32x16 g_bits;
    const F32Part shift = fill<kN>(hi);
    TRUENORM_UNROLL
    for (size_t k = 0; k < kUsed; ++k) {
      F32Part g[kQuad], c[kQuad];
      size_t count = 0;
      TRUENORM_UNROLL
      for (size_t i = k; i < kCount; i += kParts, ++count) {
        const size_t j = i * kPartLanes;
        const F32Part dy_part = load<kN>(dy + j);
        g[count] = load<kN>(gamma + j) * dy_part;
        c[count] = load<kN>(x + j) - shift;
        if constexpr (sizeof(T) == 2) {
          store(c[count], c_wide + j);
          store(dy_part, dy_wide + j);
        }
        set_part(g_bits, k, count == 0 ? g[0] : part(g_bits, k) | g[count]);
      }
      LaneSum sum;
      if constexpr (sizeof(T) == 2) {  // such rows' dx is of their type
        sum = {g[0], g[0] * c[0]};
        TRUENORM_UNROLL
        for (size_t m = 1; m < count; ++m) sum = {sum.g + g[m], fma(g[m], c[m], sum.gc)};
      } else {
        sum = QuadSums::sum(count, g, c);
      }
      store(sum.g, a + k * kPartLanes);
      store(sum.gc, b + k * kPartLanes);
    }
    return g_bits;
  }
  // As many rows as there are lanes, each folded to one.
  static HWY_INLINE VF64 folded(const float* HWY_RESTRICT stored) {
    VF64 rows[kF64Lanes];
    TRUENORM_UNROLL
    for (size_t r = 0; r < kF64Lanes; ++r) {
      F64x16 lanes;
      TRUENORM_UNROLL
      for (size_t k = 0; k < kUsed; ++k) set_part(lanes, k, load_f64<kN>(stored + r * kStored + k * kPartLanes));
      rows[r] = fold_vectors<kUsed * kN * kWidth>(lanes);
    }
    return hn::Add(fold_rows(rows), hn::Zero(F64()));
  }
};
template <class Lanes, class T, class G>
HWY_INLINE PlainGradientSums plain_segment_sums(float hi, const T* x, const G* dy, const float* gamma, size_t n, const Ahead& ahead) {
  PlainSegment<Lanes> segment;
  if (ahead.any()) segment.template add<true>(hi, x, dy, gamma, n, ahead);
  else segment.template add<false>(hi, x, dy, gamma, n, ahead);
  return segment.sums();
}
template <class T, class G>
HWY_INLINE PlainGradientSums plain_segment_sums(const NarrowGrad& grad, const T* x, const G* dy, const float* gamma, size_t n,
                                                const Ahead& ahead) {
  if constexpr (sizeof(T) == 2)
    if (grad.half_dx) return plain_segment_sums<ShortSums>(grad.row.hi, x, dy, gamma, n, ahead);
  return plain_segment_sums<QuadSums>(grad.row.hi, x, dy, gamma, n, ahead);
}

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_GRADIENT_LANES_INL_H_
