// gamma and beta as the kernels want them: in the type that rows are computed in, a block of columns at a time.
#if defined(TRUENORM_PARAMETERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_PARAMETERS_INL_H_
#undef TRUENORM_PARAMETERS_INL_H_
#else
#define TRUENORM_PARAMETERS_INL_H_
#endif

#include "kernels.h"
#include "lanes-inl.h"
#include "memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

// Columns of the longest rows that are treated as short (short_rows-inl.h), whose parameters are converted once.
constexpr int64_t kShortColumns = 2 * kNarrowSegment;

// `absent` stands in for every element of a parameter that is not there. Half parameters are converted a block at a time
// into a buffer, float32 and float64 ones are used where they are.
template <class T>
class Parameter {
 public:
  using C = Compute<T>;

  HWY_INLINE Parameter(const ParameterRef& ref, int64_t d, C absent)
      : data_(ref.data), converts_(ref.own_type && sizeof(T) != sizeof(C)) {
    if (data_ == nullptr)
      for (int64_t i = 0; i < HWY_MIN(d, kShortColumns); ++i) buffer_[i] = absent;
  }

  HWY_INLINE bool converts() const { return data_ != nullptr && converts_; }

  // Elements [begin, begin + n), n <= kShortColumns; valid until the next call.
  HWY_INLINE const C* block(int64_t begin, size_t n) {
    if (data_ == nullptr) return buffer_;
    if (!converts_) return static_cast<const C*>(data_) + begin;
    if constexpr (sizeof(T) != sizeof(C)) {
      const T* from = static_cast<const T*>(data_) + begin;
      size_t i = 0;
      for (; i + kLanes <= n; i += kLanes) store(load(from + i), buffer_ + i);
      if (i < n) store(load_n(from + i, n - i), buffer_ + i);
    }
    return buffer_;
  }

  // No NaN and no infinity among the d elements: 0 times any of them is 0.
  HWY_INLINE bool all_finite(int64_t d) {
    if (data_ == nullptr) return true;
    bool finite = true;
    for (int64_t begin = 0; begin < d; begin += kColumns) {
      const size_t n = static_cast<size_t>(HWY_MIN(kColumns, d - begin));
      const C* p = block(begin, n);
      auto sum = fill(C{0});
      size_t i = 0;
      for (; i + kLanes <= n; i += kLanes) sum = sum + load(p + i) * fill(C{0});
      if (i < n) sum = sum + load_n(p + i, n - i) * fill(C{0});
      finite = finite && is_zero(sum);
    }
    return finite;
  }

 private:
  const void* data_;
  bool converts_;
  HWY_ALIGN C buffer_[kShortColumns];
};

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_PARAMETERS_INL_H_
