// dx alone of float32 and half rows that are long: each has its columns made while the next one is summed, as forward_rows_in_turn()
// does.
#if defined(TRUENORM_DX_IN_TURN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_DX_IN_TURN_INL_H_
#undef TRUENORM_DX_IN_TURN_INL_H_
#else
#define TRUENORM_DX_IN_TURN_INL_H_
#endif

#include "gradient_columns-inl.h"
#include "gradient_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

// They take turns after every segment; plain rows of float32 after every four sixteens, so that what is read and what is written go on
// together (Zen 4, beside turns of a segment: 7 x 65537 11 % faster, 16 x 1048576 15 %, 512 x 4096 8 %).
template <class T, class G, class O>
class DxInTurn {
 public:
  HWY_INLINE DxInTurn(const BackwardTask& task, Parameter<T>& gamma)
      : task_(task), gamma_(gamma), d_(task.d), streams_(streams<O>(task, 0)), stages_(task.traffic.past_caches && !streams_),
        fetches_(task.traffic.from_memory && d_ * kElement <= kMostFetchedBytes) {}

  HWY_NOINLINE void operator()() {
    for (int64_t r = -1; r < task_.rows; ++r) {  // -1: there is none to finish yet
      const bool has_later = r + 1 < task_.rows;
      GradRow& later = pair_[(r + 1) & 1];
      if (has_later) {
        make_rows<T>(task_, r + 1, 1, &later);
        if constexpr (sizeof(T) == 2) later.narrow.half_dx = task_.half_dx;
      }
      const bool turns = kTurns && has_later && r >= 0 && !stages_ && all_plain(pair_, 2);
      const Ahead with_sums = fetched<T>(task_, r + 2).with_sums, with_columns = fetched<T>(task_, r + 1).with_columns;
      Tree<GradSums> sums;
      for (int64_t begin = 0; begin < d_; begin += kColumns) {
        const int64_t end = HWY_MIN(begin + kColumns, d_);
        const size_t n = static_cast<size_t>(end - begin);
        if (turns) {
          if constexpr (kTurns) sums.push(turn(r, begin, n));
          continue;
        }
        if (has_later) push_block(sums, later.narrow, x(r + 1) + begin, dy(r + 1) + begin, gamma_.block(begin, n), end - begin, with_sums);
        if (r >= 0) finish(r, begin, n, with_columns);
      }
      if (has_later && !set_gradient(sums.total(), d_, later.narrow)) {
        make_exact<T>(task_, r + 1, later.narrow.row);
        sum_group<T, G>(task_, gamma_, r + 1, 1, 1, &later);
      }
    }
  }

 private:
  static constexpr int64_t kElement = sizeof(T);
  static constexpr bool kTurns = sizeof(T) == 4;

  const T* x(int64_t r) const { return static_cast<const T*>(task_.x) + r * task_.x_stride; }
  const G* dy(int64_t r) const { return static_cast<const G*>(task_.dy) + r * task_.dy_stride; }

  HWY_INLINE PlainRows<T, G, O> columns(int64_t r, int64_t begin, const Ahead& ahead) const {
    return {x(r) + begin, dy(r) + begin, static_cast<O*>(task_.dx) + r * task_.dx_stride + begin, 0, 0, 0, ahead};
  }
  HWY_INLINE void finish(int64_t r, int64_t begin, size_t n, const Ahead& ahead) {
    const GradRow* const row = &pair_[r & 1];
    if (stages_ || !all_plain(row, 1))
      return group_columns<T, G, O>(task_, gamma_, r, 1, row, begin, begin + static_cast<int64_t>(n), ahead);
    gradient_plain_rows<1>(row, columns(r, begin, ahead), gamma_.block(begin, n), Totals{}, n, streams_, task_.machine);
  }

  // The sums of one segment of row r + 1, and those columns of row r.
  HWY_INLINE GradSums turn(int64_t r, int64_t begin, size_t n) {
    const PlainRows<T, G, O> rows = columns(r, begin, {});
    const PlainGradient gradient(pair_[r & 1].narrow);
    const float hi = pair_[(r + 1) & 1].narrow.row.hi;
    const float* const gamma = gamma_.block(begin, n);
    if (streams_) return segment_in_turn<true>(hi, x(r + 1) + begin, dy(r + 1) + begin, gradient, rows, gamma, n);
    return segment_in_turn<false>(hi, x(r + 1) + begin, dy(r + 1) + begin, gradient, rows, gamma, n);
  }
  // What lies kAheadBytes beyond is fetched with the sums. From memory each turn ends when it has read all that it needs, where the CPU
  // gains by that (Machine): what it would read early takes the place of what is fetched.
  template <bool kStream>
  HWY_NOINLINE GradSums segment_in_turn(float hi, const T* HWY_RESTRICT x, const G* HWY_RESTRICT dy, PlainGradient gradient,
                                        PlainRows<T, G, O> rows, const float* HWY_RESTRICT gamma, size_t n) const {
    constexpr size_t kTurn = kQuad * kLanes;
    constexpr int64_t kAhead = kAheadBytes / kElement;
    const Ahead ahead = fetches_ ? Ahead{kAhead, kAhead} : Ahead{0, 0};
    const bool waits = fetches_ && task_.traffic.far && task_.machine.fences_reads;
    PlainSegment<QuadSums> segment;
    size_t i = 0;
    for (; i + kTurn <= n; i += kTurn) {
      segment.template add<true>(hi, x + i, dy + i, gamma + i, kTurn, ahead);
      gradient_sixteens<1, kNoTotals, false, kStream, false>(&gradient, rows.at(i), gamma + i, Totals{}, kTurn);
      if (waits) hwy::LoadFence();
    }
    if (i < n) {
      segment.template add<false>(hi, x + i, dy + i, gamma + i, n - i, {});
      i += gradient_sixteens<1, kNoTotals, false, kStream, false>(&gradient, rows.at(i), gamma + i, Totals{}, n - i);
      if (i < n) gradient_end(gradient, rows, 0, gamma, Totals{}, i, n);
    }
    const PlainGradientSums sums = segment.sums();
    return {folded(sums.partial), sizes_of(sums.g_bits)};
  }

  const BackwardTask& task_;
  Parameter<T>& gamma_;
  const int64_t d_;
  const bool streams_, stages_, fetches_;
  GradRow pair_[2];
};

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_DX_IN_TURN_INL_H_
