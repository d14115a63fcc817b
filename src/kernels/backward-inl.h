// dx, dgamma and dbeta of rows: first the sums of gradient_rows-inl.h, then column by column.
#if defined(TRUENORM_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_BACKWARD_INL_H_
#undef TRUENORM_BACKWARD_INL_H_
#else
#define TRUENORM_BACKWARD_INL_H_
#endif

#include <stdlib.h>
#include "dx_in_turn-inl.h"
#include "gradient-inl.h"
#include "gradient_batches-inl.h"
#include "gradient_columns-inl.h"
#include "gradient_rows-inl.h"
#include "gradient_sums-inl.h"
#include "kernels.h"
#include "lanes-inl.h"
#include "parameters-inl.h"
#include "stats-inl.h"
#include "totals-inl.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

template <class T, class G, class O>
void backward_columns(const BackwardTask& task, int64_t begin, int64_t end) {
  Parameter<T> gamma(task.gamma, task.d, Compute<T>{1});
  const char* e = getenv("CB"); const int64_t q = e ? atol(e) : 0;
  const Ahead ahead{q, q};
  group_columns<T, G, O>(task, gamma, 0, task.rows, task.grad_rows, begin, end, ahead);
  if (task.traffic.past_caches) hwy::FlushStream();
}

// Both, a few rows at a time while they are in the cache.
template <class T, class G, class O>
void backward_rows(const BackwardTask& given) {
  BackwardTask task = given;
  // Batches of short rows take totals as they are.
  const Totals totals(given, 0, 0);
  const bool batches = kInParts<T, G> && whole_parts(task.d) > 0;
  if (batches && totals.begins) clear(totals, static_cast<size_t>(task.d));
  if (batches) {
    task.begins = false;
    task.dgamma_rounded = task.dbeta_rounded = nullptr;
  }
  Parameter<T> gamma(task.gamma, task.d, Compute<T>{1});
  const int64_t group = gradient_rows<T>(task);
  GradRow grads[kBatch];
  const auto in_groups = [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += group) {
      const int64_t rows = HWY_MIN(group, end - first);
      group_sums<T, G>(task, gamma, first, rows, grads);
      group_columns<T, G, O>(task, gamma, first, rows, grads, 0, task.d, fetched<T>(task, first + rows).with_columns);
    }
  };
  int64_t first = 0;
  if constexpr (kInParts<T, G> && kInParts<T, O>) first = gradient_batches(task, gamma, in_groups);
  if constexpr (sizeof(T) < 8) {
    if (task.dx && !task.dgamma && !task.dbeta && task.d > kColumns) {
      DxInTurn<T, G, O>(task, gamma)();
      first = task.rows;
    }
  }
  in_groups(first, task.rows);
  if (batches && totals.rounds()) round_totals(totals, static_cast<size_t>(task.d));
  if (task.traffic.past_caches) hwy::FlushStream();
}

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_BACKWARD_INL_H_
