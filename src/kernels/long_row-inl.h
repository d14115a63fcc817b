// One row in pieces, so that threads can share it: the steps of stats-inl.h and backward-inl.h, one at a time.
#if defined(TRUENORM_LONG_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_LONG_ROW_INL_H_
#undef TRUENORM_LONG_ROW_INL_H_
#else
#define TRUENORM_LONG_ROW_INL_H_
#endif

#include "backward-inl.h"
#include "forward-inl.h"
#include "kernels.h"
#include "quick-inl.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

enum Step : int32_t {
  kQuickSums,  // bfloat16 rows: x, x*x in float32
  kRawSums,  // narrow rows: x, x*x; float64 rows: x*pre
  kCentred,  // c, c*c of float64 rows, and of narrow ones that are exact
  kGradient,
  kDone,
};

template <class T>
struct LongRowOf {
  static constexpr bool kWide = sizeof(T) == 8;
  static auto& grad(LongRow& row) { return GradOf<T>::get(row.grad); }
  static const auto& grad(const LongRow& row) { return GradOf<T>::get(row.grad); }

  static void begin(const T* x, LongRow& row) {
    row.step = kRawSums;
    row.quick = {};
    if constexpr (kWide) {
      grad(row).row.x0 = x[0];
      grad(row).row.kind = RowKind::Plain;
      grad(row).row.recentred = false;
      grad(row).row.pre = grad(row).row.post = 1.0;
    } else {
      grad(row).row.x0 = first_element(x);
    }
  }
  template <class O>
  static void begin_forward(const ForwardTask& task, LongRow& row) {
    row.backward = false;
    row.statistics = wants_statistics(task) || (task.y && !kIsQuick<T, O>);
    row.records = task.saved;
    begin(static_cast<const T*>(task.x), row);
    if (has_quick_sums<T>(task.d) && (row.records || (task.y && kIsQuick<T, O>))) row.step = kQuickSums;
  }
  static void begin_backward(const BackwardTask& task, LongRow& row) {
    row.backward = true;
    const T* x = static_cast<const T*>(task.x);
    begin(x, row);
    if constexpr (sizeof(T) == 2) grad(row).half_dx = task.half_dx;
    row.statistics = false;
    row.records = true;
    if (task.half_dx && has_quick_sums<T>(task.d)) row.step = kQuickSums;
    decltype(to_saved(grad(row).row)) saved;
    if (read_record<T>(task, 0, saved)) {
      grad(row).row = gradient_row_of(saved, first_element(x), task.d);
      row.step = kGradient;
    }
  }

  template <class G>
  static void sums(const void* x_row, const void* dy_row, const ParameterRef& gamma_ref, const LongRow& row, int64_t begin,
                   int64_t end, Part& part) {
    const T* x = static_cast<const T*>(x_row) + begin;
    const int64_t n = end - begin;
    if (row.step == kQuickSums) {
      if constexpr (kHasQuickSums<T>) part.sums = quick_sums(x, n);
    } else if (row.step == kRawSums) {
      if constexpr (kWide) part.sums = {wide_sum(x, n, grad(row).row.pre), 0.0};
      else part.sums = raw_sums(x, n);
    } else if (row.step == kCentred) {
      if constexpr (kWide) {
        const CentredTotal total = centred_total(x, n, grad(row).row);
        part.sums = total.sums;
        part.error = total.error;
      } else {
        part.sums = centred_sums(x, n, grad(row).row.hi);
      }
    } else {
      Parameter<T> gamma(gamma_ref, n, Compute<T>{1});
      const G* dy = static_cast<const G*>(dy_row) + begin;
      Tree<GradSums> tree;
      for (int64_t block = 0; block < n; block += kColumns) {
        const int64_t stop = HWY_MIN(block + kColumns, n);
        const Compute<T>* gamma_block = gamma.block(begin + block, static_cast<size_t>(stop - block));
        push_block(tree, grad(row), x + block, dy + block, gamma_block, stop - block);
      }
      const GradSums total = tree.total();
      part.sums = total.sums;
      part.sizes = total.sizes;
    }
  }

  static bool advance(const Part* parts, int64_t count, int64_t d, double eps, LongRow& row) {
    auto& g = grad(row);
    Tree<GradSums> tree;
    for (int64_t i = 0; i < count; ++i) tree.push({parts[i].sums, parts[i].sizes});
    if (row.step == kGradient) {
      row.step = set_gradient(tree.total(), d, g) ? kDone : kGradient;
      return row.step != kDone;
    }
    if constexpr (kWide) {
      const GradSums total = tree.total();
      if (row.step == kRawSums) {
        g.row.hi = total.sums.a / static_cast<double>(d);
        row.step = kCentred;
        return true;
      }
      Tree<CentredTotal> centred;
      for (int64_t i = 0; i < count; ++i) centred.push({parts[i].sums, parts[i].error});
      const Sums sums = value(centred.total());
      if (wide_row_needs_scale(sums, g.row)) {
        row.step = g.row.pre != 1.0 ? kRawSums : kCentred;
        return true;
      }
      if (wide_row_needs_mean(sums, d, g.row)) return true;
      wide_row_from_sums(sums, d, eps, g.row);
    } else if (row.step == kQuickSums) {
      if constexpr (kHasQuickSums<T>) row.quick = quick_row_from_sums(tree.total().sums, g.row.x0, d, eps);
      if (row.statistics || !(row.records ? row.quick.recorded : row.quick.enough)) {
        row.step = kRawSums;
        return true;
      }
    } else if (row.step == kRawSums) {
      const Sums raw = tree.total().sums;
      if (!narrow_row_from_sums(raw, g.row.x0, d, eps, g.row)) {
        if (is_finite(raw.b)) {
          g.row.hi = exact_shift(raw, d);
          row.step = kCentred;
          return true;
        }
        narrow_row_from_centred(raw, 0.0f, false, g.row.x0, d, eps, g.row);
      }
    } else {
      narrow_row_from_centred(tree.total().sums, g.row.hi, true, g.row.x0, d, eps, g.row);
    }
    row.step = kDone;
    if (row.backward) {
      g.row = gradient_row_of(record(row), g.row.x0, d);
      row.step = kGradient;
    }
    return row.step != kDone;
  }

  static auto record(const LongRow& row) {
    if constexpr (kHasQuickSums<T>)
      if (row.quick.recorded) return row.quick.saved;
    return to_saved(grad(row).row);
  }
  static void store_statistics(const ForwardTask& task, const LongRow& row) {
    HWY_NAMESPACE::store_statistics(task, 0, grad(row).row);
    if (task.saved) store_record(task, 0, record(row));
  }

  template <class O>
  static void finish(const ForwardTask& task, const LongRow& row, int64_t begin, int64_t end) {
    Parameter<T> gamma(task.gamma, end - begin, Compute<T>{1});
    Parameter<T> beta(task.beta, end - begin, -Compute<T>{0});
    for (int64_t i = begin; i < end; i += kColumns) {
      const size_t n = static_cast<size_t>(HWY_MIN(kColumns, end - i));
      const auto* gamma_block = gamma.block(i, n);
      if constexpr (kIsQuick<T, O>) {
        if (row.quick.enough) {
          finish_block<false>(QuickFinish(row.quick), static_cast<const T*>(task.x) + i, static_cast<O*>(task.y) + i, gamma_block,
                              beta.block(i, n), n);
          continue;
        }
      }
      finish_row(grad(row).row, static_cast<const T*>(task.x) + i, static_cast<O*>(task.y) + i, gamma_block, beta.block(i, n), n);
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_LONG_ROW_INL_H_
